"""Progress of a command that takes longer than a second: a spinner on stderr, with its time, at a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Timer
from typing import Any

from agent_hooks.cli import streams

AFTER = 1.0
"""Seconds before it is shown."""


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Show the work of the block and its time, from `AFTER` seconds on and until something is printed."""
    stderr = sys.stderr
    if stderr is None or not stderr.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        yield
        return
    progress = _Progress(doing)
    timer = Timer(AFTER, progress.start)
    timer.daemon = True
    former, streams.before_writing = streams.before_writing, progress.stop
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        progress.stop()
        streams.before_writing = former


class _Progress:
    """The spinner; after `stop` it never starts."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._lock = Lock()
        self._stopped = False
        self._shown: Any = None

    def start(self) -> None:
        """Show the spinner; called in the thread of the timer."""
        # Imported here, because most commands end before.
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        from agent_hooks.cli.screen.paper import Paper

        with self._lock:
            if self._stopped:
                return
            columns = (SpinnerColumn("line"), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
            paper = Paper(stderr=True, highlight=False)
            shown = Progress(*columns, console=paper, transient=True, redirect_stdout=False, redirect_stderr=False)
            shown.add_task(self._doing, total=None)
            # The terminal may be gone.
            with suppress(OSError):
                shown.start()
            self._shown = shown

    def stop(self) -> None:
        """Take the spinner away."""
        with self._lock:
            self._stopped = True
            shown, self._shown = self._shown, None
        if shown is not None:
            with suppress(OSError):
                shown.stop()
