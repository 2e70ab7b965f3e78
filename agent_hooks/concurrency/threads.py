"""Run a plain function in a daemon thread, on either backend.

A hook that sleeps for ever must not keep the interpreter from ending, as anyio's own worker threads do on asyncio.  A
thread that has ended its call waits for the next one, of any event loop, because starting a thread costs most of a call.
A thread whose call was given up is busy until that call ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from threading import Thread, local
from typing import TYPE_CHECKING, Any, TypeVar

from agent_hooks.concurrency.forks import end_child_of, forks, function_name
from agent_hooks.errors import honest

if TYPE_CHECKING:
    import anyio
    from anyio.lowlevel import EventLoopToken

T = TypeVar("T")


# Seconds that a thread waits for another call.
IDLE_TIME = 10.0
# Threads that wait for a call at most; each further thread ends with its call.
MOST_IDLE = 8


class ThreadCall:
    """One call in a thread; `running` also after the caller gave up on it."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        # Imported here and below, because not every program has a handler that runs in a thread.
        import anyio
        from anyio.lowlevel import current_token

        self._function = function
        self._args = args
        self._outcome: tuple[Any, BaseException | None] | None = None
        self._begun = False
        self._done = anyio.Event()
        self._token = current_token()
        # By this context an emit from the thread is known as nested.
        self._context = copy_context()
        self.given_up = False
        # Whether the function has outlived its own deadline.
        self.overdue = False
        # The scopes around the work that the event loop does for the thread.
        self.waits: set[anyio.CancelScope] = set()

    @property
    def running(self) -> bool:
        """Whether the function has begun and not ended yet."""
        return self._begun and self._outcome is None

    async def result(self) -> Any:
        """Hand the call to a thread, wait for it, and return the function's result or raise its exception.

        A cancellation abandons the thread.
        """
        _hand_over(self)
        self._begun = True
        try:
            await self._done.wait()
        # The task was cancelled, or its coroutine was closed.  The exception goes on to the caller.
        except BaseException:
            self._give_up()
            raise
        assert self._outcome is not None
        value, exc = self._outcome
        if exc is not None:
            raise exc
        return value

    async def end(self) -> None:
        """Wait for the end of the function, also when the call was given up."""
        await self._done.wait()

    def _give_up(self) -> None:
        self.given_up = True
        for scope in tuple(self.waits):
            scope.cancel()

    def work(self) -> None:
        """Call the function; in the thread."""
        self._outcome = self._context.run(self._call)

    def _call(self) -> tuple[Any, BaseException | None]:
        before = forks()
        outcome = self._attempt()
        end_child_of(self._name, before, outcome[1])
        return outcome

    def _name(self) -> str:
        return function_name(self._function)

    def _attempt(self) -> tuple[Any, BaseException | None]:
        # The outcome is a pair, so that no StopIteration or GeneratorExit travels through a future.
        try:
            _become_worker(self, self._token)
            return self._function(*self._args), None
        except KeyboardInterrupt as exc:
            # Ctrl-C reaches the main thread only, so the function raised this itself.
            failure = RuntimeError("raised KeyboardInterrupt in a thread")
            failure.__cause__ = exc
            return None, failure
        # The dispatch gets the exception: it reports it and applies the policy of the event.
        except BaseException as exc:
            return None, honest(exc)

    def wake_caller(self) -> None:
        """Wake the caller; in the thread, which does not wait for that."""
        loop: Any = self._token.native_token
        call_soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
        try:
            call_soon(self._done.set)
        except RuntimeError:
            # The event loop ended first, and no task waits; trio's RunFinishedError is a RuntimeError too.
            pass


class _HandlerThread(Thread):
    """A thread that works for one call after another."""

    def __init__(self, call: ThreadCall) -> None:
        super().__init__(name="agent_hooks handler", daemon=True)
        # Imported here and below, as above.
        from queue import SimpleQueue

        self.calls: SimpleQueue[ThreadCall] = SimpleQueue()
        self.calls.put(call)

    def run(self) -> None:
        while (call := self._next()) is not None:
            call.work()
            _be_no_worker()
            _idle.append(self)
            # The thread is idle before the caller wakes, so that the caller's next call finds it.
            call.wake_caller()
            # An idle thread must not keep the function's result alive.
            del call
            if len(_idle) > MOST_IDLE and self._leave():
                return

    def _next(self) -> ThreadCall | None:
        from queue import Empty

        try:
            return self.calls.get(timeout=IDLE_TIME)
        except Empty:
            return None if self._leave() else self.calls.get()

    def _leave(self) -> bool:
        """Stop waiting for calls; return `False` when this thread is taken already and a call is on its way."""
        try:
            _idle.remove(self)
        except ValueError:
            return False
        return True


# The thread that became idle last is used first, so that superfluous threads end.
_idle: list[_HandlerThread] = []
# A forked process has none of these threads.
os.register_at_fork(after_in_child=_idle.clear)


def _hand_over(call: ThreadCall) -> None:
    try:
        thread = _idle.pop()
    except IndexError:
        _HandlerThread(call).start()
    else:
        thread.calls.put(call)


_thread_call: ContextVar[ThreadCall | None] = ContextVar("agent_hooks thread call", default=None)
_here = local()


def in_handler_thread() -> bool:
    """Tell whether this code runs for a handler's thread."""
    return _thread_call.get() is not None


async def while_wanted(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await `start()`; if a handler's thread asked for it, end it as soon as that thread is given up."""
    call = _thread_call.get()
    if call is None:
        return await start()
    import anyio

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
    token = getattr(_here, "token", None)
    if token is None:
        function(*args)
    else:
        from anyio import from_thread

        from_thread.run_sync(function, *args, token=token)


def _become_worker(call: ThreadCall, token: EventLoopToken) -> None:
    """Let `anyio.from_thread.run(...)` work in this thread without a token, as in anyio's own worker threads.

    anyio and trio have no public way to say this of a thread that they did not start.  Their private names save no time
    here: without them a handler's thread could not use `anyio.from_thread`.  `test_threads` guards them.
    """
    from anyio._core._eventloop import set_current_async_library, threadlocals

    _here.token = token
    _here.others = [vars(threadlocals)]
    _thread_call.set(call)
    # The copied context names an async library, but no event loop runs in this thread.
    set_current_async_library(None)
    threadlocals.current_token = token
    if "trio" in sys.modules:
        from trio._threads import PARENT_TASK_DATA
        from trio.lowlevel import TrioToken

        _here.others.append(vars(PARENT_TASK_DATA))
        if isinstance(token.native_token, TrioToken):
            PARENT_TASK_DATA.token = token.native_token
            PARENT_TASK_DATA.abandon_on_cancel = True


def _be_no_worker() -> None:
    """Drop the references to the event loop, which may end while this thread waits for a call of another one."""
    for names in (*vars(_here).pop("others", ()), vars(_here)):
        names.clear()
