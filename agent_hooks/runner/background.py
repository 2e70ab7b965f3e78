"""The background tasks of hooks, and the functions that hooks want called at their end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_hooks.concurrency.deadlines import in_trio_task
from agent_hooks.concurrency.foreign_async import attempt_async
from agent_hooks.concurrency.threads import on_loop
from agent_hooks.dispatch.handlers import name_of
from agent_hooks.errors import HookError, hook_error
from agent_hooks.hooks.loader import LoadedHook

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from anyio.abc import TaskGroup

Task = Callable[[], Coroutine[Any, Any, object]]

# Seconds for all `on_unload` functions of a runner.
UNLOAD_TIMEOUT = 5.0


class Background:
    """The background tasks of some hooks, from `start` to `end`; a task added before `start` waits in `queued`."""

    def __init__(self, hooks: Sequence[LoadedHook], report: Callable[[HookError], None]) -> None:
        self._hooks = hooks
        self._report = report
        self._started = False
        self._tasks: TaskGroup | None = None
        # Holds the task group open, if the first task was added after `start`.
        self._keeper: asyncio.Task[None] | None = None
        self._late: list[tuple[str, Task]] = []
        self.queued: list[tuple[str, Task]] = []
        for hook in hooks:
            self.queued += [(hook.path, task) for task in hook.api.queued_tasks]
            hook.api.queued_tasks.clear()

    async def start(self) -> None:
        """Start the queued tasks."""
        self._started = True
        if not self.queued and not in_trio_task():
            # A task group loads most of anyio, and few hooks have tasks.
            return
        import anyio

        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        queued, self.queued = self.queued, []
        for hook, task in queued:
            self._tasks.start_soon(self._run, hook, task)

    def add(self, hook: str, task: Task) -> None:
        """Run a task of that hook; may be called from any thread."""
        if self._started:
            on_loop(self._start, hook, task)
        else:
            self.queued.append((hook, task))

    async def end(self) -> None:
        """Cancel all tasks and wait for their end, then call the `on_unload` functions, the last hook's first."""
        self._started = False
        tasks, self._tasks = self._tasks, None
        keeper, self._keeper = self._keeper, None
        try:
            if keeper is not None:
                await _ended(keeper)
            elif tasks is not None:
                tasks.cancel_scope.cancel()
                # The task group does not get the program's exception, which it would wrap in a group.
                await tasks.__aexit__(None, None, None)
        finally:
            await self._unload()

    def _start(self, hook: str, task: Task) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._run, hook, task)
            return
        self._late.append((hook, task))
        if self._keeper is None:
            # This is asyncio: on trio, `start` has opened the task group already.
            import asyncio

            self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self) -> None:
        """Hold a task group open until cancelled."""
        import anyio

        async with anyio.create_task_group() as self._tasks:
            late, self._late = self._late, []
            for hook, task in late:
                self._tasks.start_soon(self._run, hook, task)
            await anyio.sleep_forever()

    async def _run(self, hook: str, task: Task) -> None:
        with self._adopting(hook):
            failure = (await attempt_async(task)).exception
        if failure is not None:
            self._failed(hook, "task", task, failure)

    @contextmanager
    def _adopting(self, hook: str) -> Iterator[None]:
        """Register interceptors that the code inside adds to the process-wide registry as the hook's own."""
        api = next(each.api for each in self._hooks if each.path == hook)
        with api.adopting():
            yield

    async def _unload(self) -> None:
        if not any(hook.api.unload_callbacks for hook in self._hooks):
            return
        import anyio

        deadline = anyio.current_time() + UNLOAD_TIMEOUT
        for hook in reversed(self._hooks):

            def report(callback: object, failure: BaseException, path: str = hook.path) -> None:
                self._failed(path, "on_unload", callback, failure)

            await hook.api.unload(report, deadline=deadline, seconds=UNLOAD_TIMEOUT)

    def _failed(self, hook: str, event: str, function: object, exc: BaseException) -> None:
        error = hook_error(exc, hook=hook, handler=name_of(function), event=event, outcome="continued")
        self._report(error)


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
