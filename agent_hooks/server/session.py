"""One session of another agent: its hooks are loaded at its first event, loaded again, put aside, and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.driver import Bridging
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.concurrency.stepping import event_loop
from agent_hooks.errors import AgentHooksError
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.calls import Calls, has_session_event
from agent_hooks.server.sources import Sources
from agent_hooks.server.tasks import Tasks
from agent_hooks.server.watch import Kept, changes_of_own
from agent_hooks.trust.open_sessions import OpenSession
from agent_hooks.trust.place import Place, find_place
from agent_hooks.values.events import SessionEvent

if TYPE_CHECKING:
    from agent_hooks.server.life import Life


FRESH = 0.001
"""Seconds for which files count as unchanged.  The client takes longer to start, so no edit comes between."""
LOAD_TIMEOUT = 30.0
"""Seconds in which the hooks of a session must be loaded."""


class Opened(Struct, frozen=True):
    """The hooks that were loaded for a session.

    - `place`: the projects that they come from
    - `news`: texts for the user about the loading
    - `resident`: this process answers all events of the session
    - `notes`: the texts of `news` about own hooks, which are told once
    """

    runner: HookRunner
    bridging: Bridging
    sources: Sources
    place: Place
    news: tuple[str, ...] = ()
    resident: bool = False
    notes: tuple[str, ...] = ()

    def covers(self, cwd: str) -> bool:
        """Tell whether no other project than those of `place` applies to a working directory."""
        return set(find_place(cwd).projects) <= set(self.place.projects)


class SessionOpener(Protocol):
    """The hook files that were found for a session; `plain`: there are none, so `open` needs no event loop."""

    plain: bool

    async def open(self) -> Opened:
        """Load the hooks."""
        ...

    async def renew(self, opened: Opened) -> Opened | None:
        """Load the hooks of a session again, in the same runner; return `None` where it has to be opened anew.

        Raises `AgentHooksError` when the former hooks stay.
        """
        ...


FindHooks = Callable[[Bridge, Happening, Mapping[str, str]], SessionOpener]


class ServedSession:
    """One session.  Its happenings are answered one after the other, by the hooks as their files are now.

    `process`: the id of the other agent's process, if it is known.
    `environment`: the environment of the last event that had one.
    `last_event`: the time of the last event, in seconds of `time.monotonic`.
    `left`: the agent has left this session, and may continue with the same hooks in another one.
    `calls`: the calls and prompts of the session, while its hooks are loaded.
    `sign`: tells commands that the session is open.
    """

    def __init__(
        self,
        bridge: Bridge,
        find_hooks: FindHooks,
        tasks: Tasks,
        process: int | None,
        make_calls: Callable[[Bridge], Calls] = Calls,
        session_id: str | None = None,
    ) -> None:
        self.process = process
        self.sign = OpenSession(bridge.name, session_id or "")
        self.calls: Calls | None = None
        self._make_calls = make_calls
        self.environment: Mapping[str, str] = {}
        self.last_event = monotonic()
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
        # The texts about own hooks that the user has read.
        self._notes: tuple[str, ...] = ()
        # The hooks and settings as they were when they were loaded; `None` in a process of one event.
        self._kept: Kept | None = None
        # The time at which the hook files were last checked for changes.
        self._checked = 0.0
        # Ends the hooks; `None` without hooks.
        self._life: Life | None = None
        self._has_shut_down = False
        # The hooks were unloaded, although the session goes on.
        self._aside = False
        # A text for the person, if the hooks have lost their state.
        self._restarted: str | None = None

    async def answer(self, happening: Happening, environment: Mapping[str, str]) -> Verdict:
        """Return the verdict of the hooks on a happening.  Raises the error with which the hooks failed to load."""
        self.last_event = monotonic()
        await self._enter()
        try:
            if self.calls is None:
                self.calls = self._make_calls(self._bridge)
            happening = self.calls.complete(happening)
            opened = self._opened
            if opened is None or self._is_broken() or self._is_outdated(opened) or self._has_moved(opened, happening):
                opened = await self._load(happening, environment)
            self._file = happening.session_file or self._file
            verdict = await self.calls.answer(happening, opened.bridging)
            self._has_shut_down = has_session_event(happening, "shutdown")
            news, self._news = self._news, ()
            return replace(verdict, messages=(*verdict.messages, *news)) if news else verdict
        finally:
            # Imported by its name, so that a hook that replaces `time.monotonic` does not keep the lane busy.
            self.last_event = monotonic()
            self._lane.leave()

    async def end(self) -> None:
        """End the hooks' tasks and unload the hooks, after a `shutdown` event unless they have had one."""
        await self._enter()
        try:
            await self._unload(emit=not self._has_shut_down)
        finally:
            self._lane.leave()

    async def put_aside(self, event: float) -> None:
        """Unload the hooks of a session that goes on, unless it had another event after `event`, the time of one.

        Its next event loads them again.
        """
        if self.last_event != event:
            return
        await self._enter()
        try:
            self._aside = True
            # The contents of all hooks are read again with the next event.
            self._kept = None
            # The journal has the judged calls.
            self.calls = None
            await self._unload()
        finally:
            self._lane.leave()

    @property
    def is_loaded(self) -> bool:
        """Whether hooks are loaded."""
        return self._life is not None

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
        return self._life is not None or self.is_busy

    async def _enter(self) -> None:
        if self.needs_task:
            await event_loop()
            await self._lane.enter()
        self._lane.busy = True

    # ---- the hooks

    def _is_broken(self) -> bool:
        if self._life is None or self._life.broken is None:
            return False
        self._restarted = f"the hooks of this session ended ({self._life.broken}) and were loaded again, without state"
        return True

    def _is_outdated(self, opened: Opened) -> bool:
        now = monotonic()
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
        if (renewed := await self._reload(happening, environment)) is not None:
            return renewed
        changed = () if self._opened is None else self._opened.sources.differing
        await self._unload()
        opener = self._find_hooks(self._bridge, happening, environment)
        if opener.plain:
            return self._take(await opener.open(), changed)
        await event_loop()
        # A client that goes must not leave hooks behind that are loaded and belong to no session.
        return await self._tasks.apart(self._load_hooks, opener, happening, changed)

    def _take(self, opened: Opened, changed: tuple[str, ...]) -> Opened:
        """Let newly loaded hooks answer from now on; `changed`: the files for which they were loaded."""
        self._opened = opened
        self._news = (*self._news_of(opened), *changes_of_own(changed), *self._lost_state())
        if self._kept is not None and changed:
            self._kept.record(opened.runner)
        elif opened.resident or self._kept is not None:
            self._kept = Kept(opened.place)
        return opened

    async def _reload(self, happening: Happening, environment: Mapping[str, str]) -> Opened | None:
        """Load the hooks of the session again, in the runner that they have; return `None` when that cannot be.

        That is so at the session's first event, in another place, and where no hooks were or are.
        """
        opened, cwd = self._opened, happening.cwd or self._cwd
        if opened is None or not opened.runner.hooks or (cwd is not None and not opened.covers(cwd)):
            return None
        if self._life is None or self._life.broken is not None:
            return None
        self._cwd = cwd
        changed = opened.sources.differing
        if self._kept is not None and changed:
            self._kept.record(opened.runner)
        try:
            opener = self._find_hooks(self._bridge, happening, environment)
            if opener.plain:
                return None
            return await self._tasks.apart(self._renew, opener, opened, changed)
        except AgentHooksError as exc:
            if exc.__cause__ is not None:
                # A hook raised KeyboardInterrupt, for example: the next event loads the hooks anew.
                await self._unload(emit=False)
                raise
            # Settings or trust cannot be read, or the hooks do not go together: the generation in force stays.
            self._news = (f"agent_hooks: {exc}; the former hooks and settings stay in force", *changes_of_own(changed))
            return opened

    async def _renew(self, opener: SessionOpener, opened: Opened, changed: tuple[str, ...]) -> Opened | None:
        """Load the hooks again; a client that goes meanwhile leaves the news to the next event."""
        renewed = await opener.renew(opened)
        if renewed is not None:
            self._opened = renewed
            self._news = (*self._news_of(renewed), *changes_of_own(changed))
        return renewed

    def _news_of(self, opened: Opened) -> tuple[str, ...]:
        """Return the texts of loaded hooks for the user, without the notes of the former load."""
        told, self._notes = self._notes, opened.notes
        return tuple(each for each in opened.news if each not in told)

    def _lost_state(self) -> tuple[str, ...]:
        """Return a text for the person if these hooks go on without the state of the former ones."""
        text, self._restarted = self._restarted, None
        if self._aside:
            self._aside = False
            text = "the hooks of this session were unloaded, because other sessions were busier; they lost their state"
        return () if text is None else (f"agent_hooks: {text}",)

    async def _load_hooks(self, opener: SessionOpener, happening: Happening, changed: tuple[str, ...]) -> Opened:
        """Load the hooks, in tasks of their own: a hook may leave a cancel scope open, or cancel its task."""
        # Imported here, because a server without hooks needs no event loop.
        from agent_hooks.server.life import Life

        try:
            opened = await self._tasks.apart(opener.open, limit=LOAD_TIMEOUT)
        except TimeoutError:
            text = f"the hooks did not load within {LOAD_TIMEOUT:g} s: agent-hooks check tells which"
            raise AgentHooksError(text) from None
        self._life = Life(opened.runner, self._tasks)
        await self._tasks.apart(self._life.begin)
        # If this event is no start, the agent started before these hooks or before this process.
        if not has_session_event(happening, "start"):
            start = SessionEvent(reason="start", session_file=happening.session_file)
            # The answer to the present event takes a text of the start for the model.
            opened.bridging.take(await self._tasks.apart(opened.runner.emit, start))
            assert self.calls is not None, "an event is being answered"
            self.calls.started_by_us()
        return self._take(opened, changed)

    async def _unload(self, *, emit: bool = True) -> None:
        opened, self._opened = self._opened, None
        life, self._life = self._life, None
        if life is None:
            if opened is not None:
                # This runner was not entered, because it has no hooks.
                opened.runner.end_records()
            return
        try:
            # The hooks are missing if they failed at their start.
            if emit and opened is not None and life.broken is None:
                shutdown = SessionEvent(reason="shutdown", session_file=self._file)
                await self._tasks.apart(opened.runner.emit, shutdown)
        finally:
            life.end()
