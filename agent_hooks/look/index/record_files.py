"""The record files of a directory, as they are now.

A look at ten thousand files takes longer than the update of a page may.  So each time only those are looked at that are
new or were written a short time ago, and a part of the others: a process writes to its own file alone, and most of them
have ended.  All are looked at within ten seconds.
"""

from __future__ import annotations

import os
import stat
import time
from bisect import insort
from collections.abc import Callable
from math import ceil

from agent_hooks.look.index.files import Found
from agent_hooks.records.files import parse_name

KIND = "record"
"""The kind of the files."""
# Seconds within which each file is looked at.
_WHOLE = 10.0
# Seconds since its last line for which a file is looked at each time.
_RECENT = 3600.0


class RecordFiles:
    """The record files of a directory; `clock` returns seconds, which never go back."""

    def __init__(self, directory: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        # By name; the names by the start of their processes.
        self._found: dict[str, Found] = {}
        self._order: list[tuple[int, str]] = []
        # The time of the directory's last change when its names were read, and the time of that reading.
        self._changed = -1
        self._listed = -_WHOLE
        # The place in the order at which the next look at a part begins, and the time of the last one.
        self._next = 0
        self._looked = clock()

    def now(self) -> list[Found]:
        """Return the files, the oldest start first."""
        now = self._clock()
        try:
            # It changes with each file that is added, renamed or removed.
            changed = os.stat(self._directory).st_mtime_ns
            # A file that came in the moment of the last reading did not change it again.
            if changed != self._changed or now >= self._listed + _WHOLE:
                self._list()
                self._changed, self._listed = changed, now
        except OSError:
            self._found.clear()
            self._order.clear()
            self._changed = -1
        self._look_again(now)
        return [self._found[name] for _, name in self._order]

    def _list(self) -> None:
        """Read the names, and look at the files that are new."""
        names = set(os.listdir(self._directory))
        self._forget(self._found.keys() - names)
        for name in names - self._found.keys():
            parsed = parse_name(name)
            if parsed is not None and self._look(name):
                insort(self._order, (parsed[2], name))

    def _look_again(self, now: float) -> None:
        """Look at the files of late, and at a part of the others."""
        since = time.time() - _RECENT
        recent = [name for name, each in self._found.items() if each.written >= since]
        share = min((now - self._looked) / _WHOLE, 1.0)
        self._looked = now
        total = len(self._order)
        part = [self._order[at % total][1] for at in range(self._next, self._next + ceil(total * share))]
        self._next = (self._next + len(part)) % max(total, 1)
        self._forget({name for name in {*recent, *part} if not self._look(name)})

    def _forget(self, gone: set[str]) -> None:
        """Forget files that are not there any more."""
        if gone:
            self._found = {name: each for name, each in self._found.items() if name not in gone}
            self._order = [each for each in self._order if each[1] not in gone]

    def _look(self, name: str) -> bool:
        """Take the facts of a file; return whether it is there."""
        path = f"{self._directory}{os.sep}{name}"
        try:
            status = os.lstat(path)
        except OSError:
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):
            return False
        self._found[name] = Found(path, KIND, status.st_dev, status.st_ino, status.st_size, status.st_mtime)
        return True
