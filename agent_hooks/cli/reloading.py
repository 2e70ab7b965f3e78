"""The hooks of a running agent, which are loaded again when one of their files, the settings or trust has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_hooks.cli.setup import Setup, find_watched, load, put_in_force, sources_of
from agent_hooks.errors import AgentHooksError
from agent_hooks.guards.base import Guard
from agent_hooks.host import CLIENT
from agent_hooks.host.lifecycle import Renewed
from agent_hooks.runner.reloaded import Reloaded
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.watch import Kept, changes_of_own
from agent_hooks.trust.policy import Trust
from agent_hooks.trust.standing import Standing
from agent_hooks.values.content import Entry
from agent_hooks.values.tool import Tool

FORMER = "the former hooks and settings stay in force"


class HostReloading:
    """The generation that is in force in a host, and the change to the next one.

    `setup`: the sources of the generation in force; `problems`: a sentence for each problem that the last reload met.
    `trust`: decides which projects count; `guards`, `tools`: make those of a host from a setup.
    """

    def __init__(
        self,
        setup: Setup,
        runner: HookRunner,
        trust: Trust,
        *,
        guards: Callable[[Setup], Sequence[Guard]],
        tools: Callable[[Setup], Sequence[Tool]],
    ) -> None:
        self.setup = setup
        failed = Reloaded(failed=tuple(setup.loaded.errors))
        self.problems = (*failed.messages, *map(str, setup.transformers.errors))
        self._runner = runner
        self._trust = trust
        self._guards = guards
        self._tools = tools
        self._read = sources_of(setup)
        self._edits = Kept(setup.sources.place)
        self._standing = Standing(trust, setup.sources)
        # A change that was found stays due until a reload has ended, which may be cancelled.
        self._due = False
        # The sentences that the person has read.
        self._said = {*setup.warnings(), *self.problems}

    def answers_of_session(self) -> list[str]:
        """Return the questions whose answers count until the session ends."""
        engine = self._runner.engine
        return engine.remembering.of_session(engine.surroundings)

    def end_answer_of_session(self, number: int) -> str:
        """End one of these, counted from 1, and return its question; empty without such an answer."""
        engine = self._runner.engine
        return engine.remembering.end_of_session(engine.surroundings, number)

    def withdrawn(self) -> str | None:
        """Return a sentence when a project of the generation has lost its approval, empty when it has a newer one."""
        return self._standing.withdrawn()

    def tools(self) -> Sequence[Tool]:
        """Return the tools of the generation in force, with those that its hooks have registered since the load."""
        return self._tools(self.setup)

    def changed(self) -> bool:
        """Tell whether a file of the generation in force has changed since it was loaded; costs some calls of `stat`."""
        self._due = self._due or self._read.changed()
        return self._due

    def note_edits(self) -> tuple[str, ...]:
        """Record the edits since the last time; return sentences for the person about their own files."""
        if not self._read.changed():
            return ()
        self._edits.record(self._runner)
        return changes_of_own(self._read.differing)

    async def reload(self, entries: Sequence[Entry]) -> Renewed:
        """Load the sources again, and put them in force; where that fails, the former ones stay."""
        edits = changes_of_own(self._read.differing) if self.changed() else ()
        self._due = True
        self._edits.record(self._runner)
        try:
            messages = await self._change(entries)
        # Settings or trust cannot be read, or two hooks do not go together.
        except AgentHooksError as exc:
            messages = [f"{exc}; {FORMER}"]
            self.problems = tuple(messages)
        self._due = False
        new = [text for text in messages if text not in self._said]
        self._said = {*messages}
        return Renewed(
            self._tools(self.setup),
            self.setup.settings,
            messages=(*edits, *new),
            hooks=tuple(hook.path for hook in self.setup.loaded.hooks),
            problems=self.problems,
        )

    async def _change(self, entries: Sequence[Entry]) -> list[str]:
        cwd, files = self.setup.cwd, self.setup.hook_files
        found = find_watched(cwd, files, self._trust.sources(cwd), without=self.setup.without)
        # Wrong settings of guards are found before any code of a hook runs.
        found.check()
        before = self.setup.sources.place
        self.setup, reloaded = await put_in_force(
            await load(found), self._runner, guards=self._guards, client=CLIENT, entries=entries
        )
        setup = self.setup
        self._runner.know_tools(setup.settings.known_tools)
        if setup.sources.place != before:
            self._edits = Kept(setup.sources.place)
        self._read = sources_of(self.setup)
        self._standing = Standing(self._trust, setup.sources)
        self.problems = (*reloaded.messages, *map(str, setup.transformers.errors))
        return [*setup.warnings(), *self.problems]
