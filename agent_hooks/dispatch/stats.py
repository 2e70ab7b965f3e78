"""Statistics per handler, cheap enough to be always on."""

from __future__ import annotations

from msgspec import Struct

# Durations that are kept for the median; a power of two.
_KEPT = 64
# Of later calls, one in so many is measured, and one in so many is watched; both are powers of two.
_MEASURED = 32
_WATCHED = 1024


class Stats:
    """The calls, failures and durations of one handler.

    `count` and `failures` are exact.  Durations are those of measured calls: the calls 1, 2, 4, 8, 16 and each 32nd, or,
    once the handler has suspended, each call.  The one loop counts `left` down, and measures the call at which it gets to
    zero, so that any other call costs one number.
    """

    __slots__ = ("_all", "_kept", "_next", "_timed", "failures", "left", "max")

    def __init__(self) -> None:
        self.failures = 0
        self.max: float | None = None
        # The calls until the next measured one, and the number of that one.
        self.left = self._next = 1
        # Whether each call is measured.
        self._all = False
        self._kept: list[float] = []
        self._timed = 0

    @property
    def count(self) -> int:
        """The number of calls."""
        return self._next - self.left

    def begin_measured(self) -> bool:
        """Begin a measured call, for which `left` has become zero, and tell whether its scopes are watched."""
        number = self._next
        self.left = left = 1 if self._all else min(number, _MEASURED)
        self._next = number + left
        # Each power of two, and each multiple.
        return self._all or not number & (number - 1) or not number % _WATCHED

    def measure_all(self) -> None:
        """Measure and watch each call from now on."""
        self._next = self.count + 1
        self.left = 1
        self._all = True

    def add(self, seconds: float) -> None:
        """Note how long one call took."""
        timed = self._timed
        self._timed = timed + 1
        if timed < _KEPT:
            self._kept.append(seconds)
        else:
            self._kept[timed & (_KEPT - 1)] = seconds
        if self.max is None or seconds > self.max:
            self.max = seconds

    @property
    def p50(self) -> float | None:
        """The median of the last durations, in seconds; `None` before the first."""
        return sorted(self._kept)[len(self._kept) // 2] if self._kept else None


class HandlerStats(Struct, frozen=True, rename="camel"):
    """One row of `runner.stats()`.

    `hook`, `event`, `handler`: the function and its place; `count`, `failures`: its calls, and how many of them failed;
    `p50`, `max`: the median and the longest time in seconds, `None` when nothing was timed.
    """

    hook: str
    event: str
    handler: str
    count: int
    failures: int
    p50: float | None
    max: float | None
