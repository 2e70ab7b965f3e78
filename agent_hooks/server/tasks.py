"""The server's tasks: each is on its own, and none of them can end another one or the server.

The tasks are plain tasks of asyncio, without a task group.  Hooks run in them, and a hook may cancel the task that it
runs in, or leave a cancel scope open there.  In a task group either would end all tasks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agent_hooks.dispatch.loop import running
from agent_hooks.errors import AgentHooksError, describe, log

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
# Hooks are loaded after this module.
_RECURSION_LIMIT = sys.getrecursionlimit()
Function = Callable[..., Coroutine[Any, Any, T]]
Failed = Callable[[BaseException], object]


class Tasks:
    """Tasks that wait in `waiting` until `start` is called in an event loop, and that then run in it."""

    def __init__(self) -> None:
        # Called before each step of a task with `False`, and after it with `True`; `None` for no such call.
        self.edge: Callable[[bool], object] | None = None
        self.waiting: list[tuple[Function[object], tuple[Any, ...], Failed | None]] = []
        self._context = Context()
        # Set when the tasks that are left are cancelled.
        self.ended = False
        # The tasks that run; `None` without an event loop.
        self._running: set[asyncio.Task[Any]] | None = None

    def later(self, function: Function[object], *args: Any, failed: Failed | None = None) -> None:
        """Call an async function as a task; `failed` is called with its exception, which is logged too."""
        if self._running is None:
            self.waiting.append((function, args, failed))
        else:
            self._create(function, *args).add_done_callback(partial(_take_failure, failed))

    def start(self) -> None:
        """Start the waiting tasks, and from now on each task at once, in the event loop that calls this."""
        self._running = set()
        self._context = copy_context()
        waiting, self.waiting = self.waiting, []
        for function, args, failed in waiting:
            self.later(function, *args, failed=failed)

    async def apart(self, function: Function[T], *args: Any, limit: float | None = None) -> T:
        """Await an async function that runs code of hooks, in a task of its own.

        A cancellation of the caller does not reach the function, because hooks must not be left half loaded.  Raises
        `AgentHooksError` for any failure of the function, and `TimeoutError` after `limit` seconds.
        """
        import asyncio

        task = self._create(_named, function, *args)
        cancelled: asyncio.CancelledError | None = None
        end = None if limit is None else asyncio.get_running_loop().time() + limit
        while not task.done():
            left = None if end is None else end - asyncio.get_running_loop().time()
            if left is not None and left <= 0:
                task.cancel()
                raise TimeoutError
            try:
                await asyncio.wait([task], timeout=left)
            except asyncio.CancelledError as exc:
                cancelled = exc
        if cancelled is not None:
            raise cancelled
        result: T = task.result()
        return result

    async def end(self, seconds: float) -> None:
        """Wait so many seconds at most for the tasks to end, then cancel those that are left."""
        import asyncio

        running = (self._running or set()) - {asyncio.current_task()}
        if running:
            _, left = await asyncio.wait(running, timeout=seconds)
            self.ended = True
            for task in left:
                task.cancel()
            # The tasks get one turn of the loop to end.
            await asyncio.sleep(0)

    def _create(self, function: Function[T], *args: Any) -> asyncio.Task[T]:
        import asyncio

        assert self._running is not None, "tasks run in an event loop"
        coroutine: Any = function(*args)
        if self.edge is not None:
            coroutine = _edged(coroutine, self.edge)
        # A copy of this context would know the dispatch of a session, and timers keep their context long after its end.
        context = self._context.copy()
        task: asyncio.Task[T] = asyncio.get_running_loop().create_task(coroutine, context=context)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(_forget_scopes)
        return task


def _forget_scopes(task: asyncio.Task[Any]) -> None:
    """Forget the scopes that a hook has left open in a task that has ended.

    anyio keeps the state of each task by a weak reference to the task.  The state of such a task refers to the open
    scope, and the scope to the task, so neither would ever be freed.  anyio has no public name for that.
    """
    states = getattr(sys.modules.get("anyio._backends._asyncio"), "_task_states", None)
    if states is not None:
        states.pop(task, None)


async def _edged(coroutine: Coroutine[Any, Any, T], edge: Callable[[bool], object]) -> T:
    # Imported here, because a server without hooks needs no event loop.
    from agent_hooks.concurrency.process_state import restoring

    return await restoring(coroutine, edge)


async def _named(function: Function[T], *args: Any) -> T:
    try:
        return await function(*args)
    except AgentHooksError:
        raise
    # Code of a hook failed in a way that no dispatch can take.  The caller refuses its event with this text.
    except BaseException as exc:
        text = failure_text(exc)
        log().exception("failed while hooks were called")
        raise AgentHooksError(text) from exc


def failure_text(exc: BaseException) -> str:
    """Return the text of a failure, with the handler that this task has called last."""
    # The handler may have lowered the limit, and the refusal of its event needs some depth.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION_LIMIT))
    text = "the task that judged this was cancelled from inside" if is_cancellation(exc) else describe(exc)
    dispatch = running.get()
    handler = getattr(dispatch, "handler", None)
    return text if handler is None else f"{text}; the handler that was called last is {handler.name} of {handler.label}"


def is_cancellation(exc: BaseException) -> bool:
    """Return whether an exception is the cancellation of a task."""
    # If asyncio is not loaded, no task exists that could be cancelled.
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(exc, asyncio.CancelledError)


def _take_failure(failed: Failed | None, task: asyncio.Task[Any]) -> None:
    exc: BaseException | None
    try:
        exc = task.exception()
    # The task was cancelled.
    except BaseException as cancelled:
        exc = cancelled
    else:
        if exc is not None:
            log().error("a task of the server failed: %s", describe(exc), exc_info=exc)
    if exc is not None and failed is not None:
        failed(exc)
