"""Progress of a command that takes longer than a second: a spinner on stderr, with its time, at a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

from agent_hooks.cli import streams

AFTER = 1.0
"""Seconds before it is shown."""
AGAIN = 1.0
"""Seconds without a message after which it is shown again."""


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Show the work of the block and its time, from `AFTER` seconds on; each message hides it for a while."""
    stderr = sys.stderr
    if stderr is None or not stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        yield
        return
    progress = _Progress(doing)
    former, streams.before_writing = streams.before_writing, progress.hide
    thread = Thread(target=progress.watch, name="agent_hooks progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        progress.end()
        streams.before_writing = former


class _Progress:
    """The spinner; a thread watches for the time at which it is shown, and after `end` it never is."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._lock = Lock()
        self._ended = Event()
        self._shown: Any = None
        self._began = monotonic()
        # The time from which on it may be shown.
        self._due = self._began + AFTER

    def watch(self) -> None:
        """Show the spinner whenever it is due, until the end."""
        while True:
            left = max(self._due - monotonic(), 0)
            if self._ended.wait(left if left or self._shown is None else AGAIN):
                return
            with self._lock:
                if not self._ended.is_set() and self._shown is None and monotonic() >= self._due:
                    self._shown = self._start()

    def _start(self) -> object:
        # Imported here, because most commands end before.
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        from agent_hooks.cli.screen.paper import Paper

        columns = (SpinnerColumn("line"), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        paper = Paper(stderr=True, highlight=False)
        shown = Progress(*columns, console=paper, transient=True, redirect_stdout=False, redirect_stderr=False)
        task = shown.add_task(self._doing, total=None)
        shown.tasks[task].start_time = shown.get_time() - (monotonic() - self._began)
        # The terminal may be gone.
        with suppress(OSError):
            shown.start()
        return shown

    def hide(self) -> None:
        """Take the spinner away for a while."""
        with self._lock:
            self._due = monotonic() + AGAIN
            shown, self._shown = self._shown, None
            # Under the lock, because the spinner must not come back in the middle of the message.
            if shown is not None:
                with suppress(OSError):
                    shown.stop()

    def end(self) -> None:
        """Take the spinner away for good."""
        self._ended.set()
        self.hide()
