"""The start of every mode: the arguments of `run`, and the runner and host made from them.

A mode first takes over stdin and stdout, then calls `load` (which runs the code of hooks), `runner` and `host`.

A session file that this machine did not write is resumed only after a question: a repository may bring one, and the model
would take its messages for its own conversation.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import anyio
from msgspec.structs import replace

from agent_hooks.cli.lifetime import INTERRUPTED, leave_at_once
from agent_hooks.cli.reloading import HostReloading
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.setup import Setup, find_watched, hiding, load, make_runner, records_of
from agent_hooks.cli.starting import is_users_start
from agent_hooks.cli.streams import can_show_question, complain
from agent_hooks.concurrency.orphans import Orphans
from agent_hooks.dispatch.context import Mode
from agent_hooks.errors import SessionError
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import GuardException
from agent_hooks.host import CLIENT
from agent_hooks.host.caution import Level
from agent_hooks.host.instructions import Instructions, Skills
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.model import Model, ThinkingLevel
from agent_hooks.host.session import Session
from agent_hooks.host.session_file import SessionSummary, list_sessions
from agent_hooks.host.tools import builtin_tools
from agent_hooks.host.view import View
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import agent_home
from agent_hooks.storage.files import StorageError
from agent_hooks.trust.open_sessions import OpenSession
from agent_hooks.trust.policy import Trust, TrustedSources
from agent_hooks.trust.written import WrittenSessions
from agent_hooks.ui.base import Dialogs
from agent_hooks.values.tool import Tool

Report = Callable[[str], object]
APPROVAL_INTERVAL = 0.2
"""Seconds between two checks of whether the loaded projects still have their approval."""


class Start(NamedTuple):
    """The arguments of `agent-hooks run`.

    `thinking_level`: `None` for the session's own; `caution`: `None` for the level of the settings; `resume`: the file of
    a session to resume; `go_on`: resume the latest session of `cwd`; `no_session`: save nothing;
    `allow_once`: for each rule named here, one veto is lifted; `trust_session`: resume sessions that this machine did not
    write, too; `sources`: the trees that count, after the person was asked; `required`: tool calls are denied where a set
    was never approved; `allow_remember`: a client of RPC mode may answer a question for always; `without`: the absolute
    paths of hooks that do not count in this run; `model_note`: a sentence about the model, said before anything is sent;
    `more_guards`: those of the mode.
    """

    cwd: str
    hook_files: tuple[str, ...]
    model: Model
    thinking_level: ThinkingLevel | None = None
    caution: Level | None = None
    prompt: str | None = None
    as_json: bool = False
    no_session: bool = False
    go_on: bool = False
    resume: str | None = None
    allow_once: Sequence[str] = ()
    trust_session: bool = False
    sources: TrustedSources | None = None
    required: bool = False
    allow_remember: bool = False
    without: tuple[str, ...] = ()
    model_note: str | None = None
    more_guards: tuple[Guard, ...] = ()

    async def load(self, warn: Report, error: Report) -> Setup:
        """Read the settings and load the hooks, whose own code runs here; raises `SettingsError`."""
        sources = self.trust.sources(self.cwd) if self.sources is None else self.sources
        found = find_watched(
            self.cwd,
            self.hook_files,
            sources,
            without=self.without,
            takes_up=is_users_start(at_terminal=can_show_question()),
        )
        setup = await load(found)
        for warning in setup.warnings():
            warn(warning)
        for failure in setup.loaded.errors:
            error(f"hook not loaded, so every tool call is blocked: {failure}")
        for failure in setup.transformers.errors:
            error(str(failure))
        return setup

    def runner(self, setup: Setup, mode: Mode, ui: Dialogs | None = None) -> HookRunner:
        """Return the runner of the loaded hooks."""
        records = records_of(setup, CLIENT)
        guards = self._guards(setup)
        runner = make_runner(setup, mode, ui=ui, guards=guards, redactor=setup.redactor, records=records, client=CLIENT)
        runner.know_tools(setup.settings.known_tools)
        return runner

    @property
    def trust(self) -> Trust:
        """The approvals of the person, with the wish of the command."""
        return Trust(required=self.required)

    def reloading(self, setup: Setup, runner: HookRunner, warn: Report) -> HostReloading:
        """Return the object that loads the hooks again."""
        return HostReloading(
            setup,
            runner,
            self.trust,
            guards=self._guards,
            tools=lambda setup: _tools(setup, warn),
        )

    def host(
        self, reloading: HostReloading, runner: HookRunner, view: View, confirm: Confirm | None = None
    ) -> SessionHost:
        """Return the agent and its session; raises `SessionError` when the session to resume cannot be read.

        `confirm`: asks the person about a later session that this machine did not write; without it, it is refused.
        """
        checks = SessionCheck(accept_all=self.trust_session, confirm=confirm)
        setup = reloading.setup
        resumes = self.resume is not None or self.go_on
        instructions, skills = self.instructions(setup, view.warning), self.skills(setup)
        return SessionHost(
            runner=runner,
            model=self.model,
            # The start asks for them again, and warns.
            tools=_tools(setup, lambda _: None),
            session=self._session(setup.cwd, setup.sources.sessions_home, checks, view.warning),
            view=view,
            thinking_level=self.thinking_level or (None if resumes else setup.settings.thinking),
            settings=setup.settings,
            checks=checks,
            reloading=reloading,
            instructions=lambda: [*instructions.read(), *skills.read()],
        )

    @staticmethod
    def instructions(setup: Setup, warn: Report) -> Instructions:
        """Return the instructions of the person and the project."""
        return Instructions(agent_home(), setup.sources.place.top, setup.cwd, hiding(setup.settings), warn)

    @staticmethod
    def skills(setup: Setup) -> Skills:
        """Return the skills of the person and the project."""
        return Skills(agent_home(), setup.sources.place.top, setup.cwd, hiding(setup.settings))

    def _guards(self, setup: Setup) -> list[Guard]:
        settings = setup.guard_settings
        once = (GuardException(id=rule, reason="allowed for one call", once=True) for rule in self.allow_once)
        own = setup.guards(replace(settings, exceptions=(*once, *settings.exceptions)))
        return [*own, *self.more_guards]

    @property
    def sessions_home(self) -> str:
        """The directory whose `.agent` has the session files."""
        return self.cwd if self.sources is None else self.sources.sessions_home

    def resumed(self, home: str, checks: SessionCheck) -> Session | None:
        """Return the session to resume, if there is one; raises `SessionError`."""
        if self.resume is None and not self.go_on:
            return None
        path = checks.latest(home) if self.resume is None else self.resume
        return Session.open(path, os.path.abspath(self.cwd), home=home)

    def _session(self, cwd: str, home: str, checks: SessionCheck, warn: Report) -> Session:
        """Return the session to begin or to resume; `home`: the directory whose `.agent` has the session files."""
        if (session := self.resumed(home, checks)) is not None:
            checks.check(session)
            return session
        if self.no_session:
            return Session(cwd=cwd, home=home)
        try:
            return Session.create(cwd, home=home)
        except SessionError as exc:
            warn(f"{exc}; going on without saving")
            return Session(cwd=cwd, home=home)


def _tools(setup: Setup, warn: Report) -> list[Tool]:
    """Return the built-in tools and those of the hooks, which may replace a built-in tool but not each other's."""
    tools = {tool.name: tool for tool in builtin_tools(cwd=setup.cwd, redactor=setup.redactor)}
    owners: dict[str, str] = {}
    for hook in setup.loaded.hooks:
        for tool in hook.tools:
            if tool.name in owners:
                warn(f"{short(hook.path)}: tool {tool.name!r} is left out; {owners[tool.name]} has one too")
            else:
                tools[tool.name], owners[tool.name] = tool, short(hook.path)
    return list(tools.values())


@asynccontextmanager
async def until_signal(
    reloading: HostReloading,
    host: SessionHost,
    *,
    before: Callable[[], object] = lambda: None,
    last_words: Callable[[], object] = lambda: None,
) -> AsyncIterator[anyio.CancelScope]:
    """Cancel the block on SIGINT, SIGTERM or SIGHUP; load the hooks again when a loaded project loses its approval.

    Afterwards, `cancelled_caught` of the scope tells whether it was.  `before` is called before the cancellation.  A
    second signal calls `last_words` and ends the process at once, except for SIGHUP: it comes twice when a terminal
    closes, from the shell and from the system.
    """

    async def watch() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                # At a second signal the person is in a hurry, or a tool hangs.
                if scope.cancel_called and number != signal.SIGHUP:
                    last_words()
                    with suppress(OSError):  # stderr is closed
                        complain("interrupted again; leaving at once")
                    leave_at_once(INTERRUPTED)
                before()
                scope.cancel()

    async def watch_approvals() -> None:
        while True:
            sign.seen(os.getpid())
            orphans.collect()
            await anyio.sleep(APPROVAL_INTERVAL)
            if (reason := reloading.withdrawn()) is None:
                continue
            if reason:
                complain(reason)
            await host.reload()
            # The sources could not be loaded again, so the hooks end with the session.
            if reloading.withdrawn():
                break
        before()
        scope.cancel()

    sign = OpenSession(CLIENT, host.state().session_id)
    sign.seen(os.getpid())
    # A program that an agent's command leaves behind still is below an agent.
    orphans = Orphans()
    orphans.adopt()
    # Not `async with`: a task group would wrap the mode's own exception in a group.
    tasks = anyio.create_task_group()
    await tasks.__aenter__()
    try:
        with anyio.CancelScope() as scope:
            tasks.start_soon(watch)
            tasks.start_soon(watch_approvals)
            yield scope
    finally:
        tasks.cancel_scope.cancel()
        sign.end()
        await tasks.__aexit__(None, None, None)
    # Hooks have to unload yet, and the closed terminal may send its second SIGHUP.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


FLAG = "--trust-session"
TITLE = "Go on with a session from elsewhere?"

Confirm = Callable[[str, str], Awaitable[bool]]
"""Asks the person yes or no: a title, and a text."""


class SessionCheck:
    """Notes the sessions of this host, and accepts those that may be resumed.

    `accept_all`: the person has said yes beforehand; `confirm`: asks the person, `None` where no person can be asked.
    """

    def __init__(self, *, accept_all: bool = False, confirm: Confirm | None = None) -> None:
        self._written = WrittenSessions(agent_home())
        self._accept_all = accept_all
        self._confirm = confirm

    def wrote(self, session: Session) -> None:
        """Note a session that the host works on; a failure is a message of the session."""
        if session.path is None:
            return
        try:
            self._written.note(session.path, session.id)
        except StorageError as exc:
            session.report(f"{exc}; to go on with this session later, {FLAG} is needed")

    def knows(self, session: Session | SessionSummary) -> bool:
        """Tell whether a session may be resumed without a question."""
        session_id = session.id if isinstance(session, Session) else session.session_id
        return self._accept_all or session.path is None or self._written.noted(session.path, session_id)

    async def accept(self, session: Session) -> None:
        """Return if a session may be resumed, after a question where one is needed; raises `SessionError`."""
        if not self.knows(session) and not (
            self._confirm is not None and await self._confirm(TITLE, question(session))
        ):
            raise refusal(session)

    def check(self, session: Session) -> None:
        """Raise `SessionError`, and close the session, if it may not be resumed without a question."""
        if not self.knows(session):
            session.close()
            raise refusal(session)

    def latest(self, home: str) -> str:
        """Return the session of a directory that was written last, by this machine if there is one.

        Raises `SessionError` when there is none.
        """
        sessions = list_sessions(home)
        if not sessions:
            raise SessionError(f"{home}: there is no session to go on with; leave out --continue")
        return next((each for each in sessions if self.knows(each)), sessions[0]).path


def question(session: Session) -> str:
    """Return the text of the question about a session."""
    return (
        f"{session.path} was not written on this machine. The model takes all of its messages, also those about "
        "finished calls, for its own conversation."
    )


def refusal(session: Session) -> SessionError:
    """Return the error for a session that may not be resumed."""
    path = shlex.quote(os.fspath(session.path or ""))
    return SessionError(
        f"{session.path}: this machine did not write this session, and it may tell the model anything; "
        f"read it, and then: agent-hooks run --resume {path} {FLAG}"
    )
