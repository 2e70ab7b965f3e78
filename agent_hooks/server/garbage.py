"""Free the memory of ended sessions soon.

The modules of a hook refer to each other in cycles, which only a full run of Python's collector frees.  Python makes a
full run when the number of objects has grown by a quarter.  With 256 loaded sessions, a quarter is the objects of some 80
ended ones, so that 10 MB would come and go.
"""

from __future__ import annotations

import gc

MOST = 32
"""The number of ended sessions after which their memory is freed.  A run takes about 40 ms with 256 loaded sessions."""

# The number of sessions that have ended since the last run.
_ended = [0]


def session_ended() -> None:
    """Count a session whose hooks have ended, and free the memory of many."""
    _ended[0] += 1
    if _ended[0] >= MOST:
        free_ended()


def free_ended() -> None:
    """Free the memory of the sessions that have ended since the last time, if there are any."""
    if _ended[0]:
        _ended[0] = 0
        gc.collect()
    _give_back()


def _give_back() -> None:
    """Give freed memory back to the system, where the C library has a function for that, as glibc does.

    It keeps the pages between blocks that are in use: 8.6 MB more after 5,000 sessions, with the same objects.
    """
    try:
        # Imported here, because a server whose sessions have no hooks does not need it; some builds of Python lack it.
        import ctypes
    except ImportError:  # pragma: no cover
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # pragma: no branch  # other C libraries
        trim(0)
