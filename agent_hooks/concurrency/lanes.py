"""Dispatches that wait for one another: first in, first out.  Above: runner, pipeline.  Below: nothing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import anyio


class Lane:
    """A lock that is handed to whoever waited longest; taking a free one costs no suspension.

    Whoever is in a hurry sets `busy` of a free lane, and clears it when nobody is `waiting`, without a call.
    """

    __slots__ = ("busy", "waiting")

    def __init__(self) -> None:
        self.busy = False
        self.waiting: deque[anyio.Event] = deque()

    async def enter(self) -> None:
        """Wait for the lane and take it."""
        if not self.busy:
            self.busy = True
            return
        import anyio  # here, for no lane is busy where no event loop runs

        turn = anyio.Event()
        self.waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:  # cancelled while waiting: pass the turn on if it had just come
            if turn.is_set():
                self.leave()
            else:
                self.waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Hand the lane to the next in line, or leave it free."""
        if self.waiting:
            self.waiting.popleft().set()
        else:
            self.busy = False
