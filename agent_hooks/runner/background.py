"""The background tasks of hooks, and the functions that hooks want called at their end."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Collection, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_hooks.concurrency.deadlines import (
    GRACE,
    INF,
    Clock,
    DidNotStopError,
    clock_type,
    drive,
)
from agent_hooks.concurrency.foreign import Outcome, attempt
from agent_hooks.concurrency.foreign_async import attempt_async
from agent_hooks.concurrency.threads import on_loop
from agent_hooks.dispatch.handlers import name_of
from agent_hooks.errors import HookError, hook_error
from agent_hooks.hooks.api import HookAPI
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.runner.group import LongGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

    import anyio

Task = Callable[[], Coroutine[Any, Any, object]]

# Seconds for all `on_unload` functions of one hook.
UNLOAD_TIMEOUT = 5.0
# Seconds for the tasks of hooks that are loaded again.
STOP_TIMEOUT = 5.0


class _Running:
    """A task that runs; `clock` can cancel it, as soon as it has suspended for the first time."""

    def __init__(self, function: Task, ended: anyio.Event) -> None:
        self.function = function
        self.ended = ended
        self.clock: Clock | None = None
        self.stopped = False

    def stop(self) -> None:
        """Cancel the task; may be repeated."""
        self.stopped = True
        if self.clock is not None:
            self.clock.shut_down()


class Background:
    """The background tasks of some hooks, from `start` to `end`; a task added before `start` waits in `queued`.

    `hooks`: the list of the runner, which changes it when hooks are loaded again; `unload`: ends the work of a hook that
    has a process of its own.
    """

    def __init__(
        self,
        hooks: Sequence[LoadedHook],
        report: Callable[[HookError], None],
        unload: Callable[[LoadedHook], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._hooks = hooks
        self._report = report
        self._unload_process = unload
        self.started = False
        self._tasks = LongGroup()
        self._running: dict[HookAPI, set[_Running]] = {}
        self.queued: list[tuple[str, Task]] = []
        self._take_queued(hooks)

    def _take_queued(self, hooks: Sequence[LoadedHook]) -> None:
        for hook in hooks:
            self.queued += [(hook.path, task) for task in hook.api.queued_tasks]
            hook.api.queued_tasks.clear()

    async def start(self) -> None:
        """Start the queued tasks."""
        self.started = True
        await self._tasks.open(needed=bool(self.queued))
        self._start_queued()

    def add(self, hook: str, task: Task) -> None:
        """Run a task of that hook; may be called from any thread."""
        if self.started:
            on_loop(self._tasks.start_soon, self._run, hook, task)
        else:
            self.queued.append((hook, task))

    def start_those_of(self, hooks: Sequence[LoadedHook]) -> None:
        """Start the queued tasks of hooks that were loaded while the others ran; they take their first step later."""
        self._take_queued(hooks)
        self._start_queued()

    def _start_queued(self) -> None:
        queued, self.queued = self.queued, []
        for hook, task in queued:
            # The runner was left meanwhile, for example; the other hooks begin all the same.
            failure = attempt(self._tasks.start_soon, self._run, hook, task).exception
            if failure is not None:
                self._failed(hook, "task", task, failure)

    async def end_those_of(self, hooks: Sequence[LoadedHook]) -> None:
        """Cancel the tasks of these hooks, wait for their end, and call their `on_unload` functions."""
        await self._stop(hooks)
        await self._unload(hooks)
        # An `on_unload` function may have started another one.
        await self._stop(hooks)

    async def _stop(self, hooks: Sequence[LoadedHook]) -> None:
        """Cancel the tasks of these hooks; one that does not stop is reported, and left behind."""
        apis = {hook.api: hook.path for hook in hooks}
        if not (left := self._running_of(apis)):
            return
        import anyio

        for each in left:
            each.stop()
        with anyio.move_on_after(STOP_TIMEOUT):
            for each in left:
                await each.ended.wait()
        for api, path in apis.items():
            for each in self._running.pop(api, ()):
                late = TimeoutError(f"did not stop within {STOP_TIMEOUT:g} s after it was cancelled; it is left behind")
                self._failed(path, "task", each.function, late)

    def _running_of(self, apis: Collection[HookAPI]) -> list[_Running]:
        return [each for api in apis for each in self._running.get(api, ())]

    async def end(self) -> None:
        """Cancel all tasks and wait for their end, then call the `on_unload` functions, the last hook's first."""
        self.started = False
        try:
            await self._tasks.end()
        finally:
            await self._unload(self._hooks)

    async def _run(self, hook: str, task: Task) -> None:
        import anyio

        api = next((each.api for each in self._hooks if each.path == hook), None)
        if api is None:
            # The hook was loaded again without this file before the task began.
            return
        running = _Running(task, anyio.Event())
        self._running.setdefault(api, set()).add(running)
        try:
            with self._adopting(api):
                outcome = await _stoppable(running, self._is_cancelled)
        finally:
            self._forget(api, running)
            running.ended.set()
        if outcome is not None and outcome.exception is not None:
            self._failed(hook, "task", task, outcome.exception)

    def _forget(self, api: HookAPI, running: _Running) -> None:
        if (all_of_it := self._running.get(api)) is not None:
            all_of_it.discard(running)
            if not all_of_it:
                del self._running[api]

    def _is_cancelled(self) -> bool:
        """Tell whether a task is cancelled by its runner or its program; a hook may also cancel its own task."""
        import anyio

        return not self.started or anyio.current_effective_deadline() == -math.inf

    @contextmanager
    def _adopting(self, api: HookAPI) -> Iterator[None]:
        """Register interceptors that the code inside adds to the process-wide registry as the hook's own."""
        with api.adopting():
            yield

    async def _unload(self, hooks: Sequence[LoadedHook]) -> None:
        """Call the `on_unload` functions, the last hook's first; each hook has a time of its own for them."""
        for hook in reversed(hooks):
            if hook.api.unload_callbacks:
                await self._unload_one(hook)
            if hook.process is not None and self._unload_process is not None:
                await self._unload_process(hook)

    async def _unload_one(self, hook: LoadedHook) -> None:
        import anyio

        def report(callback: object, failure: BaseException) -> None:
            self._failed(hook.path, "on_unload", callback, failure)

        deadline = anyio.current_time() + UNLOAD_TIMEOUT
        await hook.api.unload(report, deadline=deadline, seconds=UNLOAD_TIMEOUT)

    def _failed(self, hook: str, event: str, function: object, exc: BaseException) -> None:
        error = hook_error(exc, hook=hook, handler=name_of(function), event=event, outcome="continued")
        self._report(error)


async def _stoppable(running: _Running, is_cancelled: Callable[[], bool]) -> Outcome | None:
    """Run a task under a clock without a deadline; return `None` when `stop` has ended it.

    The clock tells our cancellation from that of the program, and gives up a task that swallows every cancellation.
    """
    clock = clock_type()(INF, set())
    if clock.closed:
        clock.open()
    failure: BaseException | None = None
    try:
        steps = attempt_async(running.function, cancelled=lambda: running.stopped or is_cancelled())
        outcome = await _driven(steps, clock, running)
    # The program's own cancellation, Ctrl-C, or our cancellation.
    except BaseException as exc:
        failure = exc
    try:
        stopped = clock.settle(failure)
    finally:
        clock.close()
    if isinstance(failure, DidNotStopError):
        return Outcome(exception=TimeoutError(f"swallowed its cancellation for {GRACE:g} s, and was given up"))
    if stopped:
        return None
    if failure is not None:
        raise failure
    return outcome


@types.coroutine
def _driven(coro: Coroutine[Any, Any, Outcome], clock: Clock, running: _Running) -> Generator[Any, Any, Outcome]:
    steps: Any = coro.__await__()
    if running.stopped:
        steps.close()
        return Outcome()
    running.clock = clock
    try:
        waiting = next(steps)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # an `Outcome`
    return (yield from drive(steps, waiting, clock))  # type: ignore[no-any-return]  # as above
