"""The beginning and the end of the process: its standard streams, its exit codes, and its last seconds."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from agent_hooks.cli.streams import complain, flushed, silence_gone

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
        leave_at_once(code)

    timer = threading.Timer(END_GRACE, leave)
    timer.daemon = True
    timer.start()


def leave_at_once(code: int) -> NoReturn:
    """End the process without waiting for anything; the programs that it runs end as well."""
    # A process that has run none has not loaded this.
    if (programs := sys.modules.get("agent_hooks.concurrency.process")) is not None:
        programs.kill_left()
    os._exit(code)


def leave(code: int) -> NoReturn:
    """End the process with an exit code; do not wait for a worker thread that hangs, or for a lock that a hook keeps."""
    silence_gone()
    main_thread = threading.main_thread()
    for thread in threading.enumerate():
        if thread is not main_thread and not thread.daemon:
            thread.join(_THREAD_GRACE)
            if thread.is_alive():
                _leave_flushed(code)
    if _logging_is_held():
        _leave_flushed(code)
    for name in ("stdout", "stderr"):
        # A stream that a hook has broken would change the exit code.
        if not flushed(getattr(sys, name)):
            setattr(sys, name, None)
    sys.exit(code)


def _leave_flushed(code: int) -> NoReturn:
    flushed(sys.stdout)
    flushed(sys.stderr)
    leave_at_once(code)


def _logging_is_held() -> bool:
    """Tell whether a thread of a hook keeps a lock of `logging`: Python takes all of them when it ends.

    `logging` has no public name for its own lock, nor for the list of its handlers.
    """
    module: Any = sys.modules.get("logging")
    if module is None:
        return False
    locks = [getattr(module, "_lock", None)]
    locks += [getattr(each(), "lock", None) for each in getattr(module, "_handlerList", ())]
    for lock in locks:
        if lock is not None:
            if not lock.acquire(timeout=_THREAD_GRACE):
                return True
            lock.release()
    return False
