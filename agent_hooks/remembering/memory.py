"""Keeps the person's answers of one runner: those of its sessions in memory, and those for good in the store.

An answer of a session counts for that session and agent.  It ends with the session, and when its conversation is cleared.
An answer in another agent counts for that call only, so neither kind is offered there; answers for good count there too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from agent_hooks.concurrency.stepping import event_loop
from agent_hooks.dispatch.context import Surroundings
from agent_hooks.dispatch.recording import Recorder
from agent_hooks.dispatch.remembering import AskedCall
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.remembering import EXCEPTIONS
from agent_hooks.remembering.kept import About, Kept, Project, encoded, project_of
from agent_hooks.remembering.store import RememberingError, Store
from agent_hooks.storage.digests import sha256
from agent_hooks.ui.base import Choice
from agent_hooks.values.answers import Ask
from agent_hooks.values.events import Event, SessionEvent
from agent_hooks.values.tool import call_line

# The answers of one session; the oldest ends when there are more.
_MOST = 1000

# Arguments of a call that are in the words of a guard, by their role, and those that change nothing, by their name.
_IN_WORDS = frozenset({"command", "commands", "program", "words", "directory", "variables", "code", "path", "text"})
_HARMLESS = frozenset({"timeout", "timeout_ms", "run_in_background", "background", "limit", "offset"})

# The session events after which the answers of a session no longer count.
_ENDS = frozenset({"switch", "clear", "branch", "shutdown"})


class Owner(Protocol):
    """The engine of a runner: its hooks, in a list that is changed in place, its observers, and its recorder."""

    hooks: list[LoadedHook]
    recorder: Recorder | None

    def observe(self, listener: Callable[[Event[Any]], object]) -> Callable[[], None]:
        """Add an observer of all events."""
        ...


class Memory:
    """The answers of one runner; see `dispatch.remembering.Remembering`.

    `owner`: the runner's engine; `store`: keeps the answers for good, `None` for no such answers.
    """

    def __init__(self, owner: Owner, store: Store | None = None) -> None:
        self._owner = owner
        self._store = store
        # The answers of each session and agent, with the place in which the last one was given.
        self._sessions: dict[tuple[str, str], dict[tuple[About, Project], Surroundings]] = {}
        self._observes = False

    def offered(self, ask: Ask, call: AskedCall) -> tuple[Choice, ...]:
        """Return the answers that can be kept for a question."""
        if call.surroundings.mode == "bridge" or self._about(ask, call) is None:
            return ()
        if self._store is None or not self._store.find().usable:
            return ("session",)
        return ("session", "always")

    def recall(self, ask: Ask, call: AskedCall) -> str:
        """Return a line that names the answer which allows a call, empty when there is none."""
        place = call.surroundings
        if (found := self._about(ask, call)) is None:
            return ""
        if found in self._sessions.get(_key(place), ()):
            self._record("used", *found, place)
            return "the answer for this session"
        kept = None if self._store is None else self._store.recall(*found)
        if kept is None:
            return ""
        self._record("used", *found, place, kept)
        return f"answer {kept.number} of {kept.written}"

    async def keep(self, ask: Ask, call: AskedCall, choice: Choice) -> str:
        """Keep an answer, and return a line for the person; raises `RememberingError`."""
        found = self._about(ask, call)
        if found is None:
            raise RememberingError(f"no answer can be kept for {ask.title!r}")
        if choice == "always":
            if self._store is None:
                raise RememberingError("no answer is kept for good here")
            kept = await self._added(self._store, *found)
            self._record("written", *found, call.surroundings, kept)
            at_prompt = call.surroundings.mode == "interactive"
            ending = f"/hooks revoke {kept.number}" if at_prompt else f"{EXCEPTIONS} --revoke {kept.number}"
            return f"answer {kept.number}, until {kept.expires}: {found[0]}; to end it: {ending}"
        self._observe()
        answers = self._sessions.setdefault(_key(call.surroundings), {})
        answers[found] = call.surroundings
        while len(answers) > _MOST:
            del answers[next(iter(answers))]
        self._record("written", *found, call.surroundings)
        return f"until this session ends: {found[0]}"

    async def _added(self, store: Store, about: About, project: Project) -> Kept:
        """Keep an answer for good in a thread, which may wait for the lock of another process.

        A cancellation comes afterwards, so that no answer stands in the file without a record.
        """
        await event_loop()
        # Imported here, because few questions are answered for good.
        import anyio
        from anyio.to_thread import run_sync

        with anyio.CancelScope(shield=True):
            kept = await run_sync(store.add, about, project)
        return kept  # noqa: RET504  # a scope may swallow the cancellation, says the type checker

    def forget(self) -> None:
        """End the answers of all sessions."""
        ended, self._sessions = self._sessions, {}
        for answers in ended.values():
            for (about, project), place in answers.items():
                self._record("ended", about, project, place)

    def of_session(self, place: Surroundings) -> list[str]:
        """Return the questions whose answers count for a session and agent, in the order of the answers."""
        return [str(about) for about, _ in self._sessions.get(_key(place), ())]

    def end_of_session(self, place: Surroundings, number: int) -> str:
        """End the answer with this number in `of_session`, from 1; return its question, empty without such an answer."""
        answers = self._sessions.get(_key(place), {})
        if not 0 < number <= len(answers):
            return ""
        about, project = found = [*answers][number - 1]
        del answers[found]
        self._record("ended", about, project, place)
        return str(about)

    def _observe(self) -> None:
        """Hear of the ends of sessions from now on; a runner without answers of a session has no observer."""
        if not self._observes:
            self._observes = True
            self._owner.observe(self._take)

    def _take(self, event: Event[Any]) -> None:
        if isinstance(event, SessionEvent) and event.reason in _ENDS and not event.reload:
            self.forget()

    def _about(self, ask: Ask, call: AskedCall) -> tuple[About, Project] | None:
        """Return the question and its place; `None` for one whose answer cannot be kept."""
        try:
            about = self._of_hook(ask, call) if ask.hook else _of_guard(ask, call)
            return None if about is None else (about, project_of(call.surroundings.cwd))
        except (OSError, ValueError, TypeError, RecursionError):
            # The directory is gone, or the input is no JSON: no later call can be told to be the same.
            return None

    def _of_hook(self, ask: Ask, call: AskedCall) -> About | None:
        hook = next((each for each in self._owner.hooks if each.path == ask.hook), None)
        if hook is None or not (digest := hook.digest):
            return None
        return About(
            tool=call.tool_name,
            by=ask.by,
            hook=hook.path,
            sha256=digest,
            title=ask.title,
            words=(call_line(call.tool_name, dict(call.input)),),
            input=sha256(encoded(call.input)),
        )

    def _record(
        self, event: str, about: About, project: Project, place: Surroundings, kept: Kept | None = None
    ) -> None:
        if self._owner.recorder is not None:
            self._owner.recorder.remembered(fields_of(event, about, project, kept), place)


def fields_of(event: str, about: About, project: Project, kept: Kept | None = None) -> dict[str, Any]:
    """Return the fields of the record about an answer; without `kept`, it is one of a session."""
    return {
        "event": event,
        "scope": "session" if kept is None else "always",
        "number": 0 if kept is None else kept.number,
        "tool": about.tool,
        "by": about.by,
        "rule": about.rule,
        "program": " ".join(about.words),
        "hook": about.hook,
        "sha256": about.sha256,
        "title": about.title,
        "counts_in": project.path,
    }


def _of_guard(ask: Ask, call: AskedCall) -> About | None:
    if not ask.rule or not ask.words:
        return None
    others = {name: value for name, value in call.input.items() if not _is_harmless(name)}
    digest = sha256(encoded(others)) if others else ""
    return About(tool=call.tool_name, by=ask.by, rule=ask.rule, words=ask.words, input=digest)


def _is_harmless(argument: str) -> bool:
    """Return whether an argument changes nothing about a call, or is part of the words that a guard has found."""
    # Imported here, because few calls are asked about.
    from agent_hooks.guards.tools import roles_of

    return argument in _HARMLESS or not roles_of(argument).isdisjoint(_IN_WORDS)


def _key(place: Surroundings) -> tuple[str, str]:
    return place.session_id, place.agent_id
