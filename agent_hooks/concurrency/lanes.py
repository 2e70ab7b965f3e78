"""Dispatches that wait for one another: first in, first out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import anyio


class Lane:
    """A lock that goes to the task that has waited longest; taking a free lane suspends no task.

    The hot path makes no call: it sets `busy` of a free lane, and clears `busy` at the end when no task is `waiting`.
    """

    __slots__ = ("busy", "waiting")

    def __init__(self) -> None:
        self.busy = False
        # An empty deque would take 600 bytes, and a list of a thousand tasks is short enough.
        self.waiting: list[anyio.Event] = []

    async def enter(self) -> None:
        """Wait for the lane and take it."""
        if not self.busy:
            self.busy = True
            return
        # Imported here, because no lane is busy where no event loop runs.
        import anyio

        turn = anyio.Event()
        self.waiting.append(turn)
        try:
            await turn.wait()
        # The task was cancelled while it waited, or its coroutine was closed.  If its turn had just come, the next task
        # gets it.  The exception goes on to the caller.
        except BaseException:
            if turn.is_set():
                self.leave()
            else:
                self.waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Hand the lane to the next in line, or leave it free."""
        if self.waiting:
            self.waiting.pop(0).set()
        else:
            self.busy = False
