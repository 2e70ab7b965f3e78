"""Dispatches that wait for one another: first in, first out.  Above: runner, pipeline.  Below: anyio."""

from __future__ import annotations

from collections import deque

import anyio


class Lane:
    """A lock that is handed to whoever waited longest; taking a free one costs no suspension."""

    __slots__ = ("_waiting", "busy")

    def __init__(self) -> None:
        self.busy = False
        self._waiting: deque[anyio.Event] = deque()

    async def enter(self) -> None:
        """Wait for the lane and take it."""
        if not self.busy:
            self.busy = True
            return
        turn = anyio.Event()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:  # cancelled while waiting: pass the turn on if it had just come
            if turn.is_set():
                self.leave()
            else:
                self._waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Hand the lane to the next in line, or leave it free."""
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self.busy = False
