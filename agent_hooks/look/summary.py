"""The numbers of the summary: how many calls of the last days were stopped, asked about, rewritten, …

A chunk of calls that lies in these days as a whole is counted as bytes, which takes a hundredth of the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent_hooks.look.index.columns import (
    ASKED,
    BLOCK,
    CHANGED_FILES,
    CHUNK,
    FAILED,
    GONE,
    REDACTED,
    REWRITTEN,
    Columns,
)

_FLAGS = {"asked": ASKED, "failed": FAILED, "rewritten": REWRITTEN, "redacted": REDACTED, "files": CHANGED_FILES}
# Milliseconds after which the numbers are counted again even without a change, as the days go on.
_FRESH = 60_000.0


class Sums:
    """The numbers, which are counted again only after a change."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._version = -1
        self._since = 0.0

    def of(self, columns: Columns, since: float, version: int) -> dict[str, int]:
        """Return the numbers of the calls since a time in milliseconds."""
        if version != self._version or since - self._since > _FRESH:
            self._known = _counted(columns, since)
            self._version, self._since = version, since
        return self._known


def _counted(columns: Columns, since: float) -> dict[str, int]:
    verdicts, flags = Counter[int](), Counter[int]()
    for begin in range(0, len(columns), CHUNK):
        part = slice(begin, begin + CHUNK)
        times, kinds, bits = columns.time[part], columns.verdict[part].tobytes(), columns.flags[part].tobytes()
        if min(times) < since or GONE in kinds:
            chosen = [at for at, time in enumerate(times) if time >= since and kinds[at] != GONE]
            kinds, bits = bytes(kinds[at] for at in chosen), bytes(bits[at] for at in chosen)
        _count(kinds, verdicts)
        _count(bits, flags)
    with_flag = {name: sum(number for bits, number in flags.items() if bits & bit) for name, bit in _FLAGS.items()}
    return {"calls": sum(verdicts.values()), "stopped": verdicts[BLOCK], **with_flag}


def _count(data: bytes, counts: Counter[int]) -> None:
    for value in _values(data):
        counts[value] += data.count(value)


def _values(data: bytes) -> Iterable[int]:
    return set(data)
