"""The beginning and the end of the process: its standard streams, its exit codes, and its last seconds."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from agent_hooks.cli.streams import complain

# Exit codes.  2 also is click's, for wrong usage.
OK, FAILED, DENIED, INTERRUPTED = 0, 1, 2, 130
# Seconds for hooks to end their tasks and unload.
END_GRACE = 10.0
# Seconds for a worker thread to end.
_THREAD_GRACE = 1.0


def open_standard_streams() -> None:
    """Open /dev/null for each closed standard stream; otherwise the event loop's own files would get their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The system takes the lowest free number, which is that of the closed stream.
            os.open(os.devnull, os.O_RDWR)


def leave_soon(code: int, *, last_words: Callable[[], object] = lambda: None) -> None:
    """End the process within `END_GRACE` seconds, even if a background task of a hook ignores its cancellation.

    `last_words` is called before such an end.
    """

    def leave() -> None:
        last_words()
        complain(f"a hook's background task did not stop within {END_GRACE:g} s; leaving without it")
        os._exit(code)

    timer = threading.Timer(END_GRACE, leave)
    timer.daemon = True
    timer.start()


def leave(code: int) -> NoReturn:
    """End the process with an exit code; do not wait for a worker thread that hangs."""
    main_thread = threading.main_thread()
    for thread in threading.enumerate():
        if thread is not main_thread and not thread.daemon:
            thread.join(_THREAD_GRACE)
            if thread.is_alive():
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                os._exit(code)
    sys.exit(code)
