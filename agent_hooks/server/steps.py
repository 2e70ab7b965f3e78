"""Coroutines that run without an event loop as far as that goes, and as tasks from there on.

The events of a project without hooks of its own are judged without a suspension: they need neither a loop nor its
memory.  Above: sessions, server.  Below: nothing.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

T = TypeVar("T")


class Steps:
    """What goes on in `tasks`; as long as there are none, it is in `waiting`, and somebody has to start a loop."""

    def __init__(self) -> None:
        self.tasks: TaskGroup | None = None
        self.waiting: list[tuple[Callable[..., Coroutine[Any, Any, object]], tuple[Any, ...]]] = []

    def later(self, function: Callable[..., Coroutine[Any, Any, object]], *args: Any) -> None:
        """Call an async function as a task."""
        if self.tasks is None:
            self.waiting.append((function, args))
        else:
            self.tasks.start_soon(function, *args)

    def use(self, tasks: TaskGroup) -> None:
        """Let what waits go on."""
        self.tasks = tasks
        for function, args in self.waiting:
            tasks.start_soon(function, *args)
        self.waiting.clear()


def first_step(coroutine: Coroutine[Any, Any, T]) -> tuple[T] | None:
    """Run a coroutine up to its end or to `in_task()`; return what it returned, or `None`: then await `rest_of` it."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return (done.value,)
    return None


@types.coroutine
def in_task() -> Generator[None]:
    """Go on as a task; whatever needs an event loop comes after this.  In a task of asyncio, others get their turn."""
    yield


@types.coroutine
def rest_of(coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine after its `first_step`; `await` alone takes none that has begun."""
    result: T = yield from coroutine
    return result
