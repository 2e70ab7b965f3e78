"""How the process begins, and how it ends.  Above: the other modules of cli.  Below: stderr."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from agent_hooks.cli.stderr import complain

END_GRACE = 10.0  # seconds that hooks get to end their tasks and to unload, after the session
_THREAD_GRACE = 1.0  # seconds a worker thread gets to end before the process ends without it


def open_standard_streams() -> None:
    """Put /dev/null where whoever started us closed a standard stream, or an event loop's file would take its number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def leave_soon(code: int, *, last_words: Callable[[], object] = lambda: None) -> None:
    """See to it that the process ends, also when a hook's background task does not let itself be cancelled.

    `last_words` is called before it ends that way.
    """

    def leave() -> None:
        last_words()
        complain(f"a hook's background task did not stop within {END_GRACE:g} s; leaving without it")
        os._exit(code)

    timer = threading.Timer(END_GRACE, leave)
    timer.daemon = True
    timer.start()


def leave(code: int) -> NoReturn:
    """End the process; a worker thread that does not end, of an abandoned search say, is not waited for."""
    main_thread = threading.main_thread()
    for thread in threading.enumerate():
        if thread is not main_thread and not thread.daemon:
            thread.join(_THREAD_GRACE)
            if thread.is_alive():
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                os._exit(code)
    sys.exit(code)
