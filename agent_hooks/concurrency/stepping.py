"""Coroutines that run without an event loop as far as that goes, and as tasks from there on.

What concerns no hook is judged without a suspension: it needs neither a loop nor the time and memory of one.
Above: loader, server, cli.  Below: deadlines.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from agent_hooks.concurrency.deadlines import in_asyncio_task, in_trio_task

T = TypeVar("T")


class _LoopWanted:
    """What a coroutine that is driven by hand yields when it cannot go on without an event loop."""


@types.coroutine
def event_loop() -> Generator[Any, Any, None]:
    """Go on only in a task; whoever drives the coroutine by hand has to make one of it, as `run` does."""
    if not (in_asyncio_task() or in_trio_task()):
        yield _LoopWanted


def first_step(coroutine: Coroutine[Any, Any, T]) -> tuple[T] | None:
    """Run a coroutine up to its end or to `event_loop()`.

    Returns what it returned, or `None`: then await `rest_of` it in a task.  Raises what it raised.
    """
    try:
        wanted = coroutine.send(None)
    except StopIteration as done:
        return (done.value,)
    assert wanted is _LoopWanted, f"{wanted!r}: it waits for something that no event loop runs for"
    return None


@types.coroutine
def rest_of(coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine after its `first_step`; `await` alone takes none that has begun."""
    result: T = yield from coroutine
    return result


def run(coroutine: Coroutine[Any, Any, T], *, ready: Callable[[], object] = lambda: None) -> T:
    """Run a coroutine, by hand until it wants an event loop, if it ever does; from there on in asyncio's.

    `ready` is called just before it goes on there.
    """
    done = first_step(coroutine)
    if done is not None:
        return done[0]
    import asyncio  # here, because it is what takes the time

    ready()

    async def rest() -> T:
        return await rest_of(coroutine)

    return asyncio.run(rest())
