"""The figures of each hook: its number of steps and of each answer, and the times of its steps, for each hour.

Times are counted in buckets, each 5 % wider than the one before, so that a percentile of millions of steps costs little
memory.  It differs from the exact one by 2.5 % at most.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from agent_hooks.look.index.columns import FAILED, REWRITTEN

HOUR = 3_600_000.0
"""Milliseconds of an hour."""
COUNTS = ("judged", "stopped", "asked", "rewrote", "failed", "timedOut")
_RATIO = math.log(1.05)
_LEAST = 0.001
"""Milliseconds of the first bucket."""
_BUCKETS = 420
_FIRST = len(COUNTS)
_SIZE = _FIRST + _BUCKETS
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
_FLAGS = {3: REWRITTEN, 4: FAILED, 5: FAILED}
# Times whose buckets are kept; most are short, and have few digits.
_MOST_TIMES = 50_000


class Figures:
    """The figures that a refresh adds to the index, by hour, and by hook and path."""

    def __init__(self) -> None:
        # Lists, in which counting takes less time than in arrays.
        self._added: dict[int, dict[tuple[str, str], list[int]]] = {}
        self._buckets: dict[float, int] = {}

    def add(self, steps: Sequence[Any], time: float) -> int:
        """Count the steps of a call, at a time in milliseconds since 1970; return the flags that they give the call."""
        hour = int(time // HOUR)
        added = self._added.get(hour)
        if added is None:
            added = self._added[hour] = {}
        flags = 0
        buckets = self._buckets
        for step in steps:
            answer, ms = step.answer, step.ms
            key = (step.by, step.file)
            counts = added.get(key)
            if counts is None:
                counts = added[key] = [0] * _SIZE
            counts[0] += 1
            if answer != "silent" and (place := _ANSWERS.get(answer)) is not None:
                counts[place] += 1
                flags |= _FLAGS.get(place, 0)
            bucket = buckets.get(ms)
            counts[self._bucket(ms) if bucket is None else bucket] += 1
        return flags

    def _bucket(self, ms: float) -> int:
        """Return the place of the count of a time."""
        bucket = min(_FIRST + int(math.log(ms / _LEAST) / _RATIO), _SIZE - 1) if ms > _LEAST else _FIRST
        if len(self._buckets) < _MOST_TIMES:
            self._buckets[ms] = bucket
        return bucket

    def take(self) -> dict[tuple[str, str, int], array[int]]:
        """Return what was added, by hook, path and hour, and begin again."""
        added, self._added = self._added, {}
        # The steps of the pipeline itself have no name.
        return {
            (*key, hour): array("I", counts)
            for hour, of_hour in added.items()
            for key, counts in of_hour.items()
            if key[0]
        }


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
