"""Run a plain function in a daemon thread, on either backend.

anyio's own worker threads keep the interpreter from ending on asyncio; a hook that sleeps for ever must not.
A thread that has ended its call waits a while for the next one, of any event loop, because to start one costs most of a
call; one whose call was given up is busy until that call ends.
Above: context, dispatch, runner.  Below: anyio.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from threading import Thread, local
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import anyio
    from anyio.lowlevel import EventLoopToken

T = TypeVar("T")


IDLE_TIME = 10.0  # seconds that a thread waits for another call
MOST_IDLE = 8  # threads that wait; what is beyond ends with its call


class ThreadCall:
    """One call in a thread; `running` also after the caller gave up on it."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        import anyio  # here and below: not every program has a handler for a thread
        from anyio.lowlevel import current_token

        self._function = function
        self._args = args
        self._outcome: tuple[Any, BaseException | None] | None = None
        self._begun = False
        self._done = anyio.Event()
        self._token = current_token()
        self._context = copy_context()  # makes a nested emit from the thread known as nested
        self.given_up = False
        self.waits: set[anyio.CancelScope] = set()  # around what the event loop does for the thread

    @property
    def running(self) -> bool:
        """Whether the function has begun and not ended yet."""
        return self._begun and self._outcome is None

    async def result(self) -> Any:
        """Hand the call to a thread, wait for it, return or raise what the function did; cancelling abandons it."""
        _hand_over(self)
        self._begun = True
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

    def work(self) -> None:
        """Call the function; in the thread."""
        self._outcome = self._context.run(self._call)

    def _call(self) -> tuple[Any, BaseException | None]:
        try:  # a pair, so that no StopIteration or GeneratorExit travels through a future
            _become_worker(self, self._token)
            return self._function(*self._args), None
        except KeyboardInterrupt as exc:  # Ctrl-C reaches the main thread only: this one is the function's own
            failure = RuntimeError("raised KeyboardInterrupt in a thread")
            failure.__cause__ = exc
            return None, failure
        except BaseException as exc:  # told to the dispatch, which knows the policy
            return None, exc

    def tell(self) -> None:
        """Wake the caller; in the thread, which does not wait for that."""
        loop: Any = self._token.native_token
        call_soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
        try:
            call_soon(self._done.set)
        except RuntimeError:  # trio's RunFinishedError is one: the event loop ended first, nobody waits
            pass


class _HandlerThread(Thread):
    """A thread that works for one call after another."""

    def __init__(self, call: ThreadCall) -> None:
        super().__init__(name="agent_hooks handler", daemon=True)
        from queue import SimpleQueue  # here and below, as above

        self.calls: SimpleQueue[ThreadCall] = SimpleQueue()
        self.calls.put(call)

    def run(self) -> None:
        while (call := self._next()) is not None:
            call.work()
            _be_no_worker()
            _idle.append(self)
            call.tell()  # afterwards, so that the caller's next call finds this thread
            del call  # what the function returned is not kept while this waits
            if len(_idle) > MOST_IDLE and self._leave():
                return

    def _next(self) -> ThreadCall | None:
        from queue import Empty

        try:
            return self.calls.get(timeout=IDLE_TIME)
        except Empty:
            return None if self._leave() else self.calls.get()

    def _leave(self) -> bool:
        """Wait no longer; return `False` when this thread is taken already, and a call is on its way."""
        try:
            _idle.remove(self)
        except ValueError:
            return False
        return True


_idle: list[_HandlerThread] = []  # the last one goes on first, so that those not needed end
os.register_at_fork(after_in_child=_idle.clear)  # a forked process has none of these threads


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
    """Tell whether a handler's thread asked for what runs here."""
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

    anyio and trio have no public way to say this of a thread they did not start; `test_threads` guards the private ones.
    """
    from anyio._core._eventloop import set_current_async_library, threadlocals

    _here.token = token
    _here.others = [vars(threadlocals)]
    _thread_call.set(call)
    set_current_async_library(None)  # the copied context says otherwise, but no event loop runs in this thread
    threadlocals.current_token = token
    if "trio" in sys.modules:
        from trio._threads import PARENT_TASK_DATA
        from trio.lowlevel import TrioToken

        _here.others.append(vars(PARENT_TASK_DATA))
        if isinstance(token.native_token, TrioToken):
            PARENT_TASK_DATA.token = token.native_token
            PARENT_TASK_DATA.abandon_on_cancel = True


def _be_no_worker() -> None:
    """Let go of the event loop, which may end while this thread waits for a call of another one."""
    for names in (*vars(_here).pop("others", ()), vars(_here)):
        names.clear()
