"""The sessions of another agent, each with hooks of its own that live as long as it does.

Above: server, cli.  Below: opened, bridging.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping

import anyio
from anyio.abc import TaskGroup, TaskStatus
from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge, Happening, Told, Verdict
from agent_hooks.errors import AgentHooksError
from agent_hooks.events import SessionEvent, SessionReason
from agent_hooks.lanes import Lane
from agent_hooks.runner import HookRunner
from agent_hooks.server.opened import Opened

LOAD_TIMEOUT = 30.0  # seconds until the hooks of a session must be loaded

Open = Callable[[Bridge, Happening, Mapping[str, str]], Awaitable[Opened]]


class Session:
    """One session: its happenings are answered one after the other, by the hooks as their files are now.

    `process`: the other agent's, by its id, if that is known; `heard`: when it last had something to say, in seconds of
    `time.monotonic`.
    """

    def __init__(self, bridge: Bridge, open: Open, tasks: TaskGroup, process: int | None) -> None:
        self.process = process
        self.heard = time.monotonic()
        self.left = False
        self.file: str | None = None
        self._bridge = bridge
        self._open = open
        self._tasks = tasks
        self._lane = Lane()
        self._opened: Opened | None = None
        self._news: tuple[str, ...] = ()
        self._end = anyio.Event()

    async def answer(self, happening: Happening, environment: Mapping[str, str]) -> Verdict:
        """Return what the hooks make of a happening; raises what loading them raised."""
        self.heard = time.monotonic()
        await self._lane.enter()
        try:
            opened = self._opened
            if opened is None or opened.sources.changed():
                opened = await self._load_anew(happening, environment)
            self.file = happening.session_file or self.file
            verdict = await opened.bridging.answer(happening)
            news, self._news = self._news, ()
            return replace(verdict, messages=(*verdict.messages, *news)) if news else verdict
        finally:
            self.heard = time.monotonic()
            self._lane.leave()

    async def end(self) -> None:
        """End the hooks' tasks and unload them; hooks hear of it unless they have."""
        await self._lane.enter()
        try:
            await self._close(tell=not self.left)
        finally:
            self._lane.leave()

    async def _load_anew(self, happening: Happening, environment: Mapping[str, str]) -> Opened:
        await self._close()
        with anyio.move_on_after(LOAD_TIMEOUT, shield=True):  # or a client that goes would leave hooks half loaded
            opened = await self._open(self._bridge, happening, environment)
            self._end = anyio.Event()
            await self._tasks.start(self._keep, opened.runner, self._end)
            self._opened, self._news = opened, opened.news
        if self._opened is None:
            raise AgentHooksError(f"the hooks did not load within {LOAD_TIMEOUT:g} s: agent-hooks check tells which")
        if not _tells(happening, "start"):  # the agent began without these hooks, or without this process
            with anyio.CancelScope(shield=True):  # each handler has a deadline of its own
                await self._opened.runner.emit(SessionEvent(reason="start", session_file=happening.session_file))
        return self._opened

    async def _keep(self, runner: HookRunner, end: anyio.Event, *, task_status: TaskStatus[None]) -> None:
        async with runner:
            task_status.started()
            await end.wait()

    async def _close(self, *, tell: bool = True) -> None:
        opened, self._opened = self._opened, None
        if opened is None:
            return
        if tell:
            with anyio.CancelScope(shield=True):  # it has a deadline of its own
                await opened.runner.emit(SessionEvent(reason="shutdown", session_file=self.file))
        self._end.set()


class Sessions:
    """All sessions of this process, each by its agent and its id."""

    def __init__(self, open: Open, tasks: TaskGroup) -> None:
        self._open = open
        self._tasks = tasks
        self._all: dict[tuple[str, str | None], Session] = {}
        self.heard = time.monotonic()

    def __len__(self) -> int:
        return len(self._all)

    async def answer(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> Verdict:
        """Return what the hooks of a happening's session make of it."""
        self.heard = time.monotonic()
        session = self._session(bridge, happening, environment)
        verdict = await session.answer(happening, environment)
        if happening.leaves:
            session.left = True
            if _tells(happening, "shutdown"):
                self._all.pop((bridge.name, happening.session_id), None)
                self._tasks.start_soon(session.end)
        return verdict

    def end_the_dead(self) -> None:
        """End the sessions whose agent has gone without a word."""
        for key, session in list(self._all.items()):
            if session.process is not None and not _lives(session.process):
                del self._all[key]
                self._tasks.start_soon(session.end)

    async def end(self) -> None:
        """End all sessions."""
        async with anyio.create_task_group() as ending:
            while self._all:
                ending.start_soon(self._all.popitem()[1].end)

    def idle_since(self) -> float:
        """Return when the last thing happened, in seconds of `time.monotonic`; now, if an agent lives."""
        alive = any(session.process is not None and not session.left for session in self._all.values())
        return time.monotonic() if alive else self.heard

    def _session(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> Session:
        key = (bridge.name, happening.session_id)
        process = environment.get(bridge.process_variable, "")
        pid = int(process) if process.isdecimal() else None
        session = self._all.get(key)
        if session is None and pid is not None:  # the agent has gone on from one session to another: so do its hooks
            old = next((each for each, it in self._all.items() if it.left and it.process == pid), None)
            session = None if old is None else self._all.pop(old)
        if session is None:
            session = Session(bridge, self._open, self._tasks, pid)
        session.left = False
        session.process = pid or session.process  # a session can be resumed, by another process, that had no end
        self._all[key] = session
        return session


def _tells(happening: Happening, reason: SessionReason) -> bool:
    """Tell whether hooks hear this of their session."""
    events = happening.events if isinstance(happening, Told) else ()
    return any(isinstance(event, SessionEvent) and event.reason == reason for event in events)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
