"""What waits for an event loop to be started, and goes on in it.  Above: sessions, server.  Below: nothing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyio.abc import TaskGroup


class Tasks:
    """Tasks of `group`; as long as there is none, they are in `waiting`, and somebody has to start an event loop."""

    def __init__(self) -> None:
        self.group: TaskGroup | None = None
        self.waiting: list[tuple[Callable[..., Coroutine[Any, Any, object]], tuple[Any, ...]]] = []

    def later(self, function: Callable[..., Coroutine[Any, Any, object]], *args: Any) -> None:
        """Call an async function as a task."""
        if self.group is None:
            self.waiting.append((function, args))
        else:
            self.group.start_soon(function, *args)

    def use(self, group: TaskGroup) -> None:
        """Let what waits go on."""
        self.group = group
        for function, args in self.waiting:
            group.start_soon(function, *args)
        self.waiting.clear()
