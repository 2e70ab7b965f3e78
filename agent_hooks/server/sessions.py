"""The sessions of another agent, each with hooks of its own that live as long as it does.

Above: server, cli.  Below: opened, tasks, bridging.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge, Happening, Told, Verdict
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.concurrency.stepping import event_loop
from agent_hooks.errors import AgentHooksError
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.opened import Opened
from agent_hooks.server.tasks import Tasks
from agent_hooks.values.events import SessionEvent, SessionReason

if TYPE_CHECKING:
    import anyio
    from anyio.abc import TaskStatus


class Opening(Protocol):
    """Hooks that were found for a session; `plain`: there are none, so that `open` needs no event loop."""

    plain: bool

    async def open(self) -> Opened:
        """Load them."""
        ...


FRESH = 0.001  # seconds for which files are as they were: to run the client takes longer, so no edit comes before it
LOAD_TIMEOUT = 30.0  # seconds until the hooks of a session must be loaded

Find = Callable[[Bridge, Happening, Mapping[str, str]], Opening]


class Session:
    """One session: its happenings are answered one after the other, by the hooks as their files are now.

    `process`: the other agent's, by its id, if that is known; `environment`: what that was last said to be; `heard`: when
    it last had something to say, in seconds of `time.monotonic`.
    """

    def __init__(self, bridge: Bridge, find: Find, tasks: Tasks, process: int | None) -> None:
        self.process = process
        self.environment: Mapping[str, str] = {}
        self.heard = time.monotonic()
        self.left = False
        self.file: str | None = None
        self._bridge = bridge
        self._find = find
        self._tasks = tasks
        self._lane = Lane()
        self._opened: Opened | None = None
        self._news: tuple[str, ...] = ()
        self._looked = 0.0  # at the hooks' files
        self._end: anyio.Event | None = None  # of the hooks' tasks

    async def answer(self, happening: Happening, environment: Mapping[str, str]) -> Verdict:
        """Return what the hooks make of a happening; raises what loading them raised."""
        self.heard = time.monotonic()
        await self._enter()
        try:
            opened = self._opened
            if opened is None or self._is_outdated(opened):
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
        await self._enter()
        try:
            await self._close(tell=not self.left)
        finally:
            self._lane.leave()

    @property
    def needs_task(self) -> bool:
        """Whether what it does next may have to wait: there are hooks, or are about to be."""
        return self._end is not None or self._lane.busy

    async def _enter(self) -> None:
        if self.needs_task:
            await event_loop()
            await self._lane.enter()
        self._lane.busy = True

    def _is_outdated(self, opened: Opened) -> bool:
        now = time.monotonic()
        if now - self._looked < FRESH:
            return False
        self._looked = now
        return opened.sources.changed()

    async def _load_anew(self, happening: Happening, environment: Mapping[str, str]) -> Opened:
        await self._close()
        opening = self._find(self._bridge, happening, environment)
        if opening.plain:
            self._opened = await opening.open()
        else:
            await event_loop()
            self._opened = await self._load_hooks(opening, happening)
        self._news = self._opened.news
        return self._opened

    async def _load_hooks(self, opening: Opening, happening: Happening) -> Opened:
        import anyio  # here, for without hooks there is no event loop

        opened = None
        with anyio.move_on_after(LOAD_TIMEOUT, shield=True):  # or a client that goes would leave hooks half loaded
            found = await opening.open()
            assert self._tasks.group is not None, "we are in a task"
            end = anyio.Event()
            await self._tasks.group.start(self._keep, found.runner, end)
            opened, self._end = found, end
        if opened is None:
            raise AgentHooksError(f"the hooks did not load within {LOAD_TIMEOUT:g} s: agent-hooks check tells which")
        if not _tells(happening, "start"):  # the agent began without these hooks, or without this process
            with anyio.CancelScope(shield=True):  # each handler has a deadline of its own
                await opened.runner.emit(SessionEvent(reason="start", session_file=happening.session_file))
        return opened

    async def _keep(self, runner: HookRunner, end: anyio.Event, *, task_status: TaskStatus[None]) -> None:
        async with runner:
            task_status.started()
            await end.wait()

    async def _close(self, *, tell: bool = True) -> None:
        opened, self._opened = self._opened, None
        end, self._end = self._end, None
        if end is None:
            return
        import anyio  # here, for without hooks there is no event loop

        try:
            if tell and opened is not None:  # they may have failed at their start
                with anyio.CancelScope(shield=True):  # it has a deadline of its own
                    await opened.runner.emit(SessionEvent(reason="shutdown", session_file=self.file))
        finally:
            end.set()


class Sessions:
    """All sessions of this process, each by its agent and its id."""

    def __init__(self, find: Find, tasks: Tasks) -> None:
        self._find = find
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
                self._end(session)
        return verdict

    def environment(self, bridge: Bridge, happening: Happening) -> Mapping[str, str] | None:
        """Return what a happening's session was last known to run in; `None` if it is not known."""
        session = self._all.get((bridge.name, happening.session_id))
        return None if session is None else session.environment

    def end_the_dead(self) -> None:
        """End the sessions whose agent has gone without a word."""
        for key, session in list(self._all.items()):
            if session.process is not None and not _lives(session.process):
                del self._all[key]
                self._end(session)

    async def end(self) -> None:
        """End all sessions, and wait for their hooks, if any have some."""
        ending = [session for session in self._all.values() if session.needs_task]
        self._all.clear()
        if ending:
            import anyio  # here, for without hooks there is no event loop

            async with anyio.create_task_group() as group:
                for session in ending:
                    group.start_soon(session.end)

    def idle_since(self) -> float:
        """Return when the last thing happened, in seconds of `time.monotonic`; now, if an agent lives."""
        alive = any(session.process is not None and not session.left for session in self._all.values())
        return time.monotonic() if alive else self.heard

    def _end(self, session: Session) -> None:
        if session.needs_task:
            self._tasks.later(session.end)

    def _session(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> Session:
        key = (bridge.name, happening.session_id)
        process = environment.get(bridge.process_variable, "")
        pid = int(process) if process.isdecimal() else None
        session = self._all.get(key)
        if session is None and pid is not None:  # the agent has gone on from one session to another: so do its hooks
            old = next((each for each, it in self._all.items() if it.left and it.process == pid), None)
            session = None if old is None else self._all.pop(old)
        if session is None:
            session = Session(bridge, self._find, self._tasks, pid)
        session.left = False
        session.environment = environment
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
