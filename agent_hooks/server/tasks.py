"""Tasks that wait until an event loop is started, and then run in it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyio.abc import TaskGroup


class Tasks:
    """The tasks of a task group.  They are in `waiting` until `use` gets the group, from a server that starts a loop."""

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
        """Run all tasks in this group, the waiting ones now."""
        self.group = group
        for function, args in self.waiting:
            group.start_soon(function, *args)
        self.waiting.clear()
