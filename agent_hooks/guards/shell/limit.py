"""The time that one call may take to be read, followed and looked up, all together."""

from __future__ import annotations

from time import perf_counter, thread_time

from agent_hooks.guards.shell.script import Unreadable

MAX_SECONDS = 0.2
"""Only a call that was made to be slow takes this long."""
TOO_MUCH = "there is too much to judge"


class Limit:
    """The time of one call.

    Its own work is measured in time of the processor, so that a busy machine makes no call undecidable; look-ups on the
    disk are measured by the clock, because they wait.
    """

    __slots__ = ("_earliest", "_end")

    def __init__(self, seconds: float | None = None) -> None:
        left = MAX_SECONDS if seconds is None else seconds
        self._end = thread_time() + left
        # The clock costs less to read, and no time of the processor passes faster.
        self._earliest = perf_counter() + left

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return perf_counter() > self._earliest and thread_time() > self._end

    def check(self) -> None:
        """Raise `Unreadable` when no time is left."""
        if perf_counter() > self._earliest and self.passed:
            raise Unreadable(TOO_MUCH)

    def waited(self, since: float) -> None:
        """Take the time of a look-up into account; `since`: the time by `perf_counter` at its beginning."""
        self._end -= perf_counter() - since
