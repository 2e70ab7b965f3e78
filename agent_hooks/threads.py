"""Run a plain function in a daemon thread of its own, on either backend.

anyio's own worker threads keep the interpreter from ending on asyncio; a hook that sleeps for ever must not.
Above: context, dispatch, runner.  Below: anyio.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from threading import Thread, local
from typing import Any, TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

T = TypeVar("T")


class ThreadCall:
    """One call in a thread; `running` also after the caller gave up on it."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._function = function
        self._args = args
        self._outcome: tuple[Any, BaseException | None] | None = None
        self._done = anyio.Event()
        self.given_up = False
        self.waits: set[anyio.CancelScope] = set()  # around what the event loop does for the thread
        # the copied context makes a nested emit from the thread known as nested
        self._thread = Thread(
            target=copy_context().run, args=(self._work, current_token()), name="agent_hooks handler", daemon=True
        )

    @property
    def running(self) -> bool:
        """Whether the function has begun and not ended yet."""
        return self._outcome is None and self._thread.is_alive()

    async def result(self) -> Any:
        """Start the thread, wait for it, return or raise what the function did; cancelling abandons the thread."""
        self._thread.start()
        try:
            await self._done.wait()
        except BaseException:  # a cancellation, which goes on its way
            self._give_up()
            raise
        assert self._outcome is not None
        value, exc = self._outcome
        if exc is not None:
            raise exc
        return value

    def _give_up(self) -> None:
        self.given_up = True
        for scope in tuple(self.waits):
            scope.cancel()

    def _work(self, token: EventLoopToken) -> None:
        try:  # a pair, so that no StopIteration or GeneratorExit travels through a future
            _become_worker(self, token)
            self._outcome = self._function(*self._args), None
        except KeyboardInterrupt as exc:  # Ctrl-C reaches the main thread only: this one is the function's own
            failure = RuntimeError("raised KeyboardInterrupt in a thread")
            failure.__cause__ = exc
            self._outcome = None, failure
        except BaseException as exc:  # told to the dispatch, which knows the policy
            self._outcome = None, exc
        try:
            from_thread.run_sync(self._done.set, token=token)
        except (anyio.RunFinishedError, RuntimeError):
            pass  # the event loop ended first: nobody waits


_thread_call: ContextVar[ThreadCall | None] = ContextVar("agent_hooks thread call", default=None)
_worker = local()


def in_handler_thread() -> bool:
    """Tell whether a handler's thread asked for what runs here."""
    return _thread_call.get() is not None


async def while_wanted(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await `start()`; if a handler's thread asked for it, end it as soon as that thread is given up."""
    call = _thread_call.get()
    if call is None:
        return await start()
    with anyio.CancelScope() as scope:
        call.waits.add(scope)
        try:
            if call.given_up:
                scope.cancel()
            return await start()
        finally:
            call.waits.discard(scope)
    raise RuntimeError("the handler was stopped while it waited")


def on_loop(function: Callable[..., object], *args: Any) -> None:
    """Call `function` on the event loop, also from a handler's thread."""
    token = getattr(_worker, "token", None)
    if token is None:
        function(*args)
    else:
        from_thread.run_sync(function, *args, token=token)


def _become_worker(call: ThreadCall, token: EventLoopToken) -> None:
    """Let `anyio.from_thread.run(...)` work in this thread without a token, as in anyio's own worker threads.

    anyio and trio have no public way to say this of a thread they did not start; `test_threads` guards the private ones.
    """
    from anyio._core._eventloop import set_current_async_library, threadlocals

    _worker.token = token
    _thread_call.set(call)
    set_current_async_library(None)  # the copied context says otherwise, but no event loop runs in this thread
    threadlocals.current_token = token
    if "trio" in sys.modules:
        from trio._threads import PARENT_TASK_DATA
        from trio.lowlevel import TrioToken

        if isinstance(token.native_token, TrioToken):
            PARENT_TASK_DATA.token = token.native_token
            PARENT_TASK_DATA.abandon_on_cancel = True
