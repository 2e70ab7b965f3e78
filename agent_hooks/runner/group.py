"""A task group that is open as long as a runner is entered, also for tasks that begin late.

A task group has to be left by the task that has entered it.  If there is something to run when a runner is entered, the
task that enters the runner opens the group.  Otherwise the group is opened with its first task, because it loads most of
anyio, and few hooks need one.  On asyncio a task of its own, the keeper, opens and leaves it then.  trio has no such
tasks, so there the group is opened with the runner in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from agent_hooks.concurrency.deadlines import in_trio_task
from agent_hooks.errors import HookUsageError

if TYPE_CHECKING:
    import asyncio

    import anyio
    from anyio.abc import TaskGroup

Function = Callable[..., Coroutine[Any, Any, object]]


class LongGroup:
    """A task group from `open` to `end`."""

    def __init__(self) -> None:
        self._tasks: TaskGroup | None = None
        self._keeper: asyncio.Task[None] | None = None
        # The functions that begin with the keeper, and the events of `start` that are not set yet.
        self._late: list[tuple[Function, tuple[Any, ...]]] = []
        self._starting: set[anyio.Event] = set()
        self._ended = False

    async def open(self, *, needed: bool) -> None:
        """Open the group in this task; if nothing is `needed` now, do so only where no later task could."""
        if not needed and not in_trio_task():
            return
        import anyio

        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()

    def start_soon(self, function: Function, *args: Any) -> None:
        """Run an async function as a task.  Raises an exception when no more tasks can begin."""
        if self._ended:
            raise HookUsageError("the runner was left, so no task begins any more")
        if self._keeper is not None and self._keeper.done():
            # A hook has cancelled all tasks, this one too.
            self._keeper = self._tasks = None
        if self._tasks is not None:
            self._tasks.start_soon(function, *args)
            return
        self._late.append((function, args))
        if self._keeper is None:
            # This is asyncio: on trio, `open` has opened the group.
            import asyncio

            self._keeper = asyncio.get_running_loop().create_task(self._keep())
            self._keeper.add_done_callback(self._wake)

    async def start(self, function: Function, *args: Any) -> None:
        """Run `function(*args, started)` as a task until it sets `started`, or until the group ends."""
        import anyio

        started = anyio.Event()
        self._starting.add(started)
        try:
            self.start_soon(function, *args, started)
            await started.wait()
        finally:
            self._starting.discard(started)

    async def end(self) -> None:
        """Cancel all tasks and wait for their end."""
        self._ended = True
        tasks, self._tasks = self._tasks, None
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await _ended(keeper)
        elif tasks is not None:
            tasks.cancel_scope.cancel()
            # The task group does not get the program's exception, which it would wrap in a group.
            await tasks.__aexit__(None, None, None)

    async def _keep(self) -> None:
        """Hold the group open until cancelled."""
        import anyio

        async with anyio.create_task_group() as self._tasks:
            late, self._late = self._late, []
            for function, args in late:
                self._tasks.start_soon(function, *args)
            await anyio.sleep_forever()

    def _wake(self, keeper: asyncio.Task[None]) -> None:
        # Another keeper may have taken its place, and begins the late functions.
        if self._keeper is keeper or self._keeper is None:
            self._late.clear()
            for each in self._starting:
                each.set()


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel a task of asyncio and wait for its end; a cancellation of this task is raised after that."""
    import asyncio

    cancelled: asyncio.CancelledError | None = None
    task.cancel()
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled
    if not task.cancelled():
        task.result()
