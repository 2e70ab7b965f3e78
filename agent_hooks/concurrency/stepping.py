"""Coroutines that run without an event loop until they need one, and as tasks from there on.

A call that concerns no hook is judged without a suspension, and so without the time and memory of an event loop.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from agent_hooks.concurrency.deadlines import in_asyncio_task, in_trio_task

T = TypeVar("T")


class _LoopWanted:
    """Yielded by a coroutine that is driven by hand, when it cannot go on without an event loop."""


@types.coroutine
def event_loop() -> Generator[Any, Any, None]:
    """Suspend a coroutine that is driven by hand; it goes on when its driver makes a task of it, as `run` does."""
    if not (in_asyncio_task() or in_trio_task()):
        yield _LoopWanted


def first_step(coroutine: Coroutine[Any, Any, T]) -> tuple[T] | None:
    """Run a coroutine up to its end or to `event_loop()`.

    Returns its result in a tuple, or `None`: then await `rest_of` it in a task.  An exception of the coroutine is raised.
    """
    try:
        wanted = coroutine.send(None)
    except StopIteration as done:
        return (done.value,)
    assert wanted is _LoopWanted, f"{wanted!r}: a coroutine waits, and no event loop runs here"
    return None


@types.coroutine
def rest_of(coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine after its `first_step`; `await` alone takes none that has begun."""
    result: T = yield from coroutine
    return result


@types.coroutine
def resume(steps: Generator[Any, Any, None], waiting: Any) -> Generator[Any, Any, None]:
    """Await the rest of a generator that has suspended on `waiting`."""
    try:
        while True:
            try:
                value = yield waiting
            except GeneratorExit:
                # The awaiting coroutine is closed.
                steps.close()
                raise
            # The exception is thrown into the generator, which decides.
            except BaseException as exc:
                waiting = steps.throw(exc)
            else:
                if value is None:
                    # asyncio sends `None` only, and `yield from` can go on with that.
                    yield from steps
                    return
                waiting = steps.send(value)
    except StopIteration:
        pass


def run(coroutine: Coroutine[Any, Any, T], *, ready: Callable[[], object] = lambda: None) -> T:
    """Run a coroutine, by hand until it wants an event loop, if it ever does; from there on in asyncio's.

    `ready` is called just before it goes on there.
    """
    done = first_step(coroutine)
    if done is not None:
        return done[0]
    # Imported here, because the import takes most of the time.
    import asyncio

    ready()

    async def rest() -> T:
        return await rest_of(coroutine)

    return asyncio.run(rest())
