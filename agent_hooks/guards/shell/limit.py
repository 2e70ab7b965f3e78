"""The time that one call may take to be read, followed and looked up, all together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import TypeVar

from agent_hooks.guards.lazy import warmed
from agent_hooks.guards.shell.script import Unreadable

_Found = TypeVar("_Found")

MAX_SECONDS = 0.2
"""Only a call that was made to be slow takes this long."""
TOO_MUCH = "there is too much to judge"
# A look-up that takes no longer is counted as it is.
_QUICK = 0.001

if sys.platform == "linux":
    from resource import RUSAGE_THREAD, getrusage

    def _waits() -> int | None:
        """Return how many times this thread has given up the processor to wait."""
        return getrusage(RUSAGE_THREAD).ru_nvcsw

else:

    def _waits() -> int | None:
        """Return `None`: the waits of a thread are not counted here."""
        return None


class Limit:
    """The time of one call.

    1. Its own work is measured in time of the processor, so that a busy machine makes no call undecidable.
    2. The first use of a pattern or a table is not its own work: `lazy.warmed` has that time.
    3. Look-ups on the disk are measured by the clock, because they wait.  A thread that did not wait in a look-up, but
       only stood behind other programs, has lost no time.

    `seconds`: by default `MAX_SECONDS`; `processor`, `clock`: return the time of the processor and of the clock in
    seconds; `waits`: returns the number of the thread's waits, `None` where they are not counted.
    """

    __slots__ = ("_clock", "_earliest", "_end", "_processor", "_waited", "_waits", "_warmed")

    def __init__(
        self,
        seconds: float | None = None,
        *,
        processor: Callable[[], float] = thread_time,
        clock: Callable[[], float] = perf_counter,
        waits: Callable[[], int | None] = _waits,
    ) -> None:
        left = MAX_SECONDS if seconds is None else seconds
        self._processor, self._clock, self._waits = processor, clock, waits
        self._warmed = warmed()
        self._waited = waits()
        self._end = processor() + left
        # The clock costs less to read, and no time of the processor passes faster.
        self._earliest = clock() + left

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self._clock() > self._earliest and self._processor() > self._end + (warmed() - self._warmed)

    def check(self) -> None:
        """Raise `Unreadable` when no time is left."""
        if self._clock() > self._earliest and self.passed:
            raise Unreadable(TOO_MUCH)

    def look_up(self, ask: Callable[[str], _Found], path: str) -> _Found:
        """Return the answer of `ask` about a path, and take its time into account.

        Raises `Unreadable` when no time is left.
        """
        self.check()
        began = self._clock()
        found = ask(path)
        took = self._clock() - began
        if took <= _QUICK or self._has_waited():
            self._end -= took
        return found

    def _has_waited(self) -> bool:
        before, self._waited = self._waited, self._waits()
        return before is None or before != self._waited
