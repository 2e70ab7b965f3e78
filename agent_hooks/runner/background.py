"""What lives as long as the hooks: their background tasks, and what they want called at the end.

Above: runner.  Below: loader, threads.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from agent_hooks.concurrency.deadlines import cancellation_in, cancelled_class, in_trio_task
from agent_hooks.concurrency.threads import on_loop
from agent_hooks.dispatch.handlers import name_of
from agent_hooks.errors import HookError, describe, place_of, traceback_text
from agent_hooks.hooks.loader import LoadedHook

if TYPE_CHECKING:
    import asyncio

    import anyio
    from anyio.abc import TaskGroup

Task = Callable[[], Coroutine[Any, Any, object]]

UNLOAD_TIMEOUT = 5.0  # seconds for all on_unload functions of a runner


class Background:
    """The background tasks of some hooks, from `start` to `end`; what is added before `start` waits for it."""

    def __init__(self, hooks: Sequence[LoadedHook], report: Callable[[HookError], None]) -> None:
        self._hooks = hooks
        self._report = report
        self._entered = False
        self._tasks: TaskGroup | None = None
        self._keeper: asyncio.Task[None] | None = None  # of the task group, where it was opened late
        self._late: list[tuple[str, Task]] = []
        self.queued: list[tuple[str, Task]] = []
        for hook in hooks:
            self.queued += [(hook.path, task) for task in hook.api.queued_tasks]
            hook.api.queued_tasks.clear()

    async def start(self) -> None:
        """Start what waits."""
        self._entered = True
        if not self.queued and not in_trio_task():
            return  # a task group loads most of anyio, and few hooks have tasks
        import anyio

        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        queued, self.queued = self.queued, []
        for hook, task in queued:
            self._tasks.start_soon(self._run, hook, task)

    def add(self, hook: str, task: Task) -> None:
        """Run a task of that hook; from any thread."""
        if self._entered:
            on_loop(self._start, hook, task)
        else:
            self.queued.append((hook, task))

    async def end(self) -> None:
        """End all tasks, then call the `on_unload` functions, the last hook's first; a failure of one is reported."""
        self._entered = False
        tasks, self._tasks = self._tasks, None
        keeper, self._keeper = self._keeper, None
        try:
            if keeper is not None:
                await _ended(keeper)
            elif tasks is not None:
                tasks.cancel_scope.cancel()
                # as if nothing had been raised: a task group would wrap the program's own exception in a group
                await tasks.__aexit__(None, None, None)
        finally:
            await self._unload()

    def _start(self, hook: str, task: Task) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._run, hook, task)
            return
        self._late.append((hook, task))
        if self._keeper is None:
            import asyncio  # here, for on trio the task group is there

            self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self) -> None:
        """Hold a task group open until cancelled, for the first task came when `start` was over."""
        import anyio

        async with anyio.create_task_group() as self._tasks:
            late, self._late = self._late, []
            for hook, task in late:
                self._tasks.start_soon(self._run, hook, task)
            await anyio.sleep_forever()

    async def _run(self, hook: str, task: Task) -> None:
        try:
            await task()
        except KeyboardInterrupt:
            raise
        except BaseException as exc:  # a background task's failure is the hook's, not the agent's
            if (cancelled := cancellation_in(exc, cancelled_class())) is not None:
                raise cancelled from None
            self._failed(hook, task, "task", exc)

    async def _unload(self) -> None:
        if not any(hook.api.unload_callbacks for hook in self._hooks):
            return
        import anyio

        deadline = anyio.current_time() + UNLOAD_TIMEOUT
        for hook in reversed(self._hooks):
            callbacks, hook.api.unload_callbacks[:] = hook.api.unload_callbacks[::-1], []
            for callback in callbacks:
                with anyio.CancelScope(deadline=deadline, shield=True) as scope:
                    await self._call(hook.path, callback, scope)
                if scope.cancelled_caught:
                    text = f"did not end within {UNLOAD_TIMEOUT:g} s, the time for all on_unload functions"
                    self._failed(hook.path, callback, "on_unload", TimeoutError(text))

    async def _call(self, hook: str, callback: Callable[[], object], scope: anyio.CancelScope) -> None:
        try:
            result = callback()
            if inspect.isawaitable(result):
                await result
        except KeyboardInterrupt:
            raise
        except BaseException as exc:  # the hook's own failure: reported, the other callbacks run
            cancelled = cancellation_in(exc, cancelled_class())
            if cancelled is not None and scope.cancel_called:
                raise cancelled from None
            self._failed(hook, callback, "on_unload", exc)

    def _failed(self, hook: str, function: object, event: str, exc: BaseException) -> None:
        file, line = place_of(exc)
        self._report(
            HookError(
                hook_path=hook,
                handler=name_of(function),
                event=event,
                error=describe(exc),
                outcome="continued",
                exception=exc,
                traceback=traceback_text(exc),
                file=file,
                line=line,
            )
        )


async def _ended(task: asyncio.Task[None]) -> None:
    """End a task of asyncio and wait for it, also when this one is cancelled meanwhile; that is raised afterwards."""
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
