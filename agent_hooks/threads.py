"""Run a plain function in a daemon thread of its own, on either backend.

anyio's own worker threads keep the interpreter from ending on asyncio; a hook that sleeps for ever must not.
Above: runner.  Below: anyio.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Thread
from typing import Any

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token


class ThreadCall:
    """One call in a thread; `running` also after the caller gave up on it."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._function = function
        self._args = args
        self._outcome: tuple[Any, BaseException | None] | None = None
        self._done = anyio.Event()
        # the copied context makes a nested emit from the thread known as nested
        self._thread = Thread(
            target=copy_context().run, args=(self._work, current_token()), name="agent_hooks handler", daemon=True
        )

    @property
    def running(self) -> bool:
        """Whether the function has not ended yet."""
        return self._outcome is None

    async def result(self) -> Any:
        """Start the thread, wait for it, return or raise what the function did; cancelling abandons the thread."""
        self._thread.start()
        await self._done.wait()
        assert self._outcome is not None
        value, exc = self._outcome
        if exc is not None:
            raise exc
        return value

    def _work(self, token: EventLoopToken) -> None:
        _become_worker(token)
        try:  # a pair, so that no StopIteration or GeneratorExit travels through a future
            self._outcome = self._function(*self._args), None
        except BaseException as exc:  # told to the dispatch, which knows the policy
            self._outcome = None, exc
        try:
            from_thread.run_sync(self._done.set, token=token)
        except (anyio.RunFinishedError, RuntimeError):
            pass  # the event loop ended first: nobody waits


def _become_worker(token: EventLoopToken) -> None:
    """Let `anyio.from_thread.run(...)` work in this thread without a token, as in anyio's own worker threads.

    anyio has no public way to say this of a thread it did not start; `test_threads` guards the private one.
    """
    from anyio._core._eventloop import threadlocals

    threadlocals.current_token = token
