"""Statistics per handler, cheap enough to be always on."""

from __future__ import annotations

from msgspec import Struct

# Durations that are kept for the median; a power of two.
_KEPT = 64


class Stats:
    """`count` and `failures` are exact; durations come from every suspended handler and one dispatch in 16."""

    __slots__ = ("_kept", "_timed", "count", "failures", "max")

    def __init__(self) -> None:
        self.count = 0
        self.failures = 0
        self.max: float | None = None
        self._kept: list[float] = []
        self._timed = 0

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
    """One row of `runner.stats()`; `p50` and `max` in seconds, `None` when nothing was timed."""

    hook: str
    event: str
    handler: str
    count: int
    failures: int
    p50: float | None
    max: float | None
