"""The sessions of another agent: each has hooks of its own, which live as long as the session."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge, EventsReported, Happening, Verdict
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.concurrency.stepping import event_loop
from agent_hooks.errors import AgentHooksError
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.opened import Opened
from agent_hooks.server.tasks import Tasks
from agent_hooks.server.watch import Kept, changes_of_own
from agent_hooks.values.events import SessionEvent, SessionReason

if TYPE_CHECKING:
    import anyio
    from anyio.abc import TaskStatus


class SessionOpener(Protocol):
    """The hook files that were found for a session; `plain`: there are none, so `open` needs no event loop."""

    plain: bool

    async def open(self) -> Opened:
        """Load the hooks."""
        ...


FRESH = 0.001
"""Seconds for which files count as unchanged.  The client takes longer to start, so no edit comes between."""
LOAD_TIMEOUT = 30.0
"""Seconds in which the hooks of a session must be loaded."""

FindHooks = Callable[[Bridge, Happening, Mapping[str, str]], SessionOpener]


class ServedSession:
    """One session.  Its happenings are answered one after the other, by the hooks as their files are now.

    `process`: the id of the other agent's process, if it is known.
    `environment`: the environment of the last event that had one.
    `last_event`: the time of the last event, in seconds of `time.monotonic`.
    `left`: the agent has left this session, and may continue with the same hooks in another one.
    """

    def __init__(self, bridge: Bridge, find_hooks: FindHooks, tasks: Tasks, process: int | None) -> None:
        self.process = process
        self.environment: Mapping[str, str] = {}
        self.last_event = time.monotonic()
        self.left = False
        self._file: str | None = None
        # The working directory of the last event.
        self._cwd: str | None = None
        self._bridge = bridge
        self._find_hooks = find_hooks
        self._tasks = tasks
        self._lane = Lane()
        self._opened: Opened | None = None
        self._news: tuple[str, ...] = ()
        # The hooks and settings as they were when they were loaded; `None` in a process of one event.
        self._kept: Kept | None = None
        # The time at which the hook files were last checked for changes.
        self._checked = 0.0
        # Ends the hooks' tasks when it is set; `None` without hooks.
        self._end: anyio.Event | None = None
        self._has_shut_down = False

    async def answer(self, happening: Happening, environment: Mapping[str, str]) -> Verdict:
        """Return the verdict of the hooks on a happening.  Raises the error with which the hooks failed to load."""
        self.last_event = time.monotonic()
        await self._enter()
        try:
            opened = self._opened
            if opened is None or self._is_outdated(opened) or self._has_moved(opened, happening):
                opened = await self._load(happening, environment)
            self._file = happening.session_file or self._file
            verdict = await opened.bridging.answer(happening)
            self._has_shut_down = _has_session_event(happening, "shutdown")
            news, self._news = self._news, ()
            return replace(verdict, messages=(*verdict.messages, *news)) if news else verdict
        finally:
            self.last_event = time.monotonic()
            self._lane.leave()

    async def end(self) -> None:
        """End the hooks' tasks and unload the hooks, after a `shutdown` event unless they have had one."""
        await self._enter()
        try:
            await self._unload(emit=not self._has_shut_down)
        finally:
            self._lane.leave()

    @property
    def is_busy(self) -> bool:
        """Whether a happening is being answered."""
        return self._lane.busy

    def end_plain(self) -> None:
        """End a session without hooks, which needs no task."""
        if self._opened is not None:
            self._opened.runner.end_records()

    @property
    def needs_task(self) -> bool:
        """Whether the next step may have to wait, because hooks are loaded or are about to be."""
        return self._end is not None or self.is_busy

    async def _enter(self) -> None:
        if self.needs_task:
            await event_loop()
            await self._lane.enter()
        self._lane.busy = True

    # ---- the hooks

    def _is_outdated(self, opened: Opened) -> bool:
        now = time.monotonic()
        if now - self._checked < FRESH:
            return False
        self._checked = now
        return opened.sources.changed()

    def _has_moved(self, opened: Opened, happening: Happening) -> bool:
        """Return whether the agent works in another directory now, to which another project applies."""
        before, self._cwd = self._cwd, happening.cwd or self._cwd
        return self._cwd is not None and self._cwd != before and not opened.covers(self._cwd)

    async def _load(self, happening: Happening, environment: Mapping[str, str]) -> Opened:
        """Load the hooks as their files are now, after the former ones were unloaded."""
        changed = () if self._opened is None else self._opened.sources.differing
        await self._unload()
        opener = self._find_hooks(self._bridge, happening, environment)
        if opener.plain:
            self._opened = await opener.open()
        else:
            await event_loop()
            self._opened = await self._load_hooks(opener, happening)
        self._news = (*self._opened.news, *changes_of_own(changed))
        if self._kept is not None and changed:
            self._kept.record(self._opened.runner)
        elif self._opened.resident or self._kept is not None:
            self._kept = Kept(self._opened.place)
        return self._opened

    async def _load_hooks(self, opener: SessionOpener, happening: Happening) -> Opened:
        # Imported here, because a server without hooks needs no event loop.
        import anyio

        opened = None
        # The scope is shielded, because a client that goes must not leave hooks half loaded.
        with anyio.move_on_after(LOAD_TIMEOUT, shield=True):
            found = await opener.open()
            assert self._tasks.group is not None, "hooks are loaded in a task"
            end = anyio.Event()
            await self._tasks.group.start(self._run_tasks, found.runner, end)
            opened, self._end = found, end
        if opened is None:
            raise AgentHooksError(f"the hooks did not load within {LOAD_TIMEOUT:g} s: agent-hooks check tells which")
        # If this event is no start, the agent started before these hooks or before this process.
        if not _has_session_event(happening, "start"):
            # Each handler has a deadline of its own, so the shield ends.
            with anyio.CancelScope(shield=True):
                await opened.runner.emit(SessionEvent(reason="start", session_file=happening.session_file))
        return opened

    async def _run_tasks(self, runner: HookRunner, end: anyio.Event, *, task_status: TaskStatus[None]) -> None:
        """Run the background tasks of the hooks until `end` is set."""
        async with runner:
            task_status.started()
            await end.wait()

    async def _unload(self, *, emit: bool = True) -> None:
        opened, self._opened = self._opened, None
        end, self._end = self._end, None
        if end is None:
            if opened is not None:
                # This runner was not entered, because it has no hooks.
                opened.runner.end_records()
            return
        # Imported here, because a server without hooks needs no event loop.
        import anyio

        try:
            # The hooks are missing if they failed at their start.
            if emit and opened is not None:
                # Each handler has a deadline of its own, so the shield ends.
                with anyio.CancelScope(shield=True):
                    await opened.runner.emit(SessionEvent(reason="shutdown", session_file=self._file))
        finally:
            end.set()


class Sessions:
    """All sessions of this process, by agent and id."""

    def __init__(self, find_hooks: FindHooks, tasks: Tasks) -> None:
        self._find_hooks = find_hooks
        self._tasks = tasks
        self._all: dict[tuple[str, str | None], ServedSession] = {}
        self._last_event = time.monotonic()

    def __len__(self) -> int:
        return len(self._all)

    async def answer(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> Verdict:
        """Return the verdict on a happening by the hooks of its session."""
        self._last_event = time.monotonic()
        session = self._session(bridge, happening, environment)
        verdict = await session.answer(happening, environment)
        if happening.leaves:
            session.left = True
            if _has_session_event(happening, "shutdown"):
                self._all.pop((bridge.name, happening.session_id), None)
                self._end(session)
        return verdict

    def environment(self, bridge: Bridge, happening: Happening) -> Mapping[str, str] | None:
        """Return the last known environment of a happening's session, or `None` for an unknown session."""
        session = self._all.get((bridge.name, happening.session_id))
        return None if session is None else session.environment

    def end_abandoned(self, idle: float) -> None:
        """End the sessions that can get no more events.

        These are the sessions whose agent has died, and, after `idle` seconds without an event, those that the agent has
        left and those whose process is not known.
        """
        now = time.monotonic()
        for key, session in list(self._all.items()):
            has_died = session.process is not None and not _is_alive(session.process)
            is_idle = now - session.last_event >= idle and not session.is_busy
            if has_died or (is_idle and (session.left or session.process is None)):
                del self._all[key]
                self._end(session)

    async def end(self) -> None:
        """End all sessions, and wait until their hooks have ended."""
        ending = [session for session in self._all.values() if session.needs_task]
        for session in self._all.values():
            if not session.needs_task:
                session.end_plain()
        self._all.clear()
        if ending:
            # Imported here, because a server without hooks needs no event loop.
            import anyio

            async with anyio.create_task_group() as group:
                for session in ending:
                    group.start_soon(session.end)

    def idle_since(self) -> float:
        """Return the time of the last event, in seconds of `time.monotonic`; the time now while an agent lives."""
        is_used = any(session.process is not None and not session.left for session in self._all.values())
        return time.monotonic() if is_used else self._last_event

    def _end(self, session: ServedSession) -> None:
        if session.needs_task:
            self._tasks.later(session.end)
        else:
            session.end_plain()

    def _session(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> ServedSession:
        """Return the session of a happening, under its present id."""
        key = (bridge.name, happening.session_id)
        process = environment.get(bridge.process_variable, "")
        pid = int(process) if process.isdecimal() else None
        session = self._all.get(key) or self._pop_left(pid)
        if session is None:
            session = ServedSession(bridge, self._find_hooks, self._tasks, pid)
        session.left = False
        session.environment = environment
        # Another process may resume a session that has had no end.
        session.process = pid or session.process
        self._all[key] = session
        return session

    def _pop_left(self, pid: int | None) -> ServedSession | None:
        """Remove and return the session that a process has left: its hooks continue in the process's next session."""
        if pid is None:
            return None
        left = (key for key, session in self._all.items() if session.left and session.process == pid)
        key = next(left, None)
        return None if key is None else self._all.pop(key)


def _has_session_event(happening: Happening, reason: SessionReason) -> bool:
    events = happening.events if isinstance(happening, EventsReported) else ()
    return any(isinstance(event, SessionEvent) and event.reason == reason for event in events)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # The process belongs to another user.
        return True
    return True
