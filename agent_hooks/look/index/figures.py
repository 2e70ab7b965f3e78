"""The figures of each hook: its number of steps and of each answer, and the times of its steps, for each hour.

Times are counted in buckets, each 5 % wider than the one before, so that a percentile of millions of steps costs little
memory.  It differs from the exact one by 2.5 % at most.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

HOUR = 3_600_000.0
"""Milliseconds of an hour."""
COUNTS = ("judged", "stopped", "asked", "rewrote", "failed", "timedOut")
_RATIO = math.log(1.05)
_LEAST = 0.001
"""Milliseconds of the first bucket."""
_BUCKETS = 420
_SIZE = len(COUNTS) + _BUCKETS
_ANSWERS = {
    "block": 1,
    "cancel": 1,
    "deny": 1,
    "ask": 2,
    "rewrite": 3,
    "replace": 3,
    "changed": 3,
    "failed": 4,
    "stopped": 4,
    "timeout": 5,
}
"""The place of the count that an answer adds to, beside that of all steps."""


class Figures:
    """The figures that a refresh adds to the index, by hook, path and hour."""

    def __init__(self) -> None:
        self._added: dict[tuple[str, str, int], array[int]] = {}

    def add(self, steps: Sequence[Any], time: float) -> None:
        """Count the steps of a call, at a time in milliseconds since 1970."""
        hour = int(time // HOUR)
        for step in steps:
            by = step.by
            # The pipeline's own question is no hook.
            if not by or step.stage == "ask":
                continue
            key = (by, step.file, hour)
            counts = self._added.get(key)
            if counts is None:
                counts = self._added[key] = empty()
            counts[0] += 1
            if step.answer != "silent" and (place := _ANSWERS.get(step.answer)) is not None:
                counts[place] += 1
            counts[_place(step.ms)] += 1

    def take(self) -> dict[tuple[str, str, int], array[int]]:
        """Return what was added, and begin again."""
        added, self._added = self._added, {}
        return added


def empty() -> array[int]:
    """Return the counts of no step."""
    return array("I", bytes(4 * _SIZE))


def from_bytes(data: bytes) -> array[int]:
    """Return counts that `to_bytes` wrote."""
    counts = array("I")
    counts.frombytes(data)
    return counts


def total(parts: Iterable[Sequence[int]]) -> array[int]:
    """Return the sums of several counts."""
    sums = empty()
    for part in parts:
        for place, number in enumerate(part):
            if number:
                sums[place] += number
    return sums


def percentile(counts: Sequence[int], share: float) -> float:
    """Return the time in milliseconds that this share of the steps did not exceed; 0 without steps."""
    buckets = counts[len(COUNTS) :]
    left = math.ceil(sum(buckets) * share)
    for place, number in enumerate(buckets):
        left -= number
        if number and left <= 0:
            # The middle of the bucket.
            return float(f"{_LEAST * math.exp(_RATIO * (place + 0.5)):.3g}")
    return 0.0


def _place(ms: float) -> int:
    if ms <= _LEAST:
        return len(COUNTS)
    return len(COUNTS) + min(int(math.log(ms / _LEAST) / _RATIO), _BUCKETS - 1)
