"""The time at which a file or directory was made; Python has no call for it on Linux."""

from __future__ import annotations

import os
import struct

# AT_FDCWD, AT_SYMLINK_NOFOLLOW and STATX_BTIME of Linux.
_HERE, _NO_LINK, _BORN = -100, 0x100, 0x800
# `struct statx` has 256 bytes on every machine: the mask of the fields that are filled in is at 0, the time at 80.
_SIZE, _MASK_AT, _TIME_AT = 256, 0, 80


def born(path: str) -> float | None:
    """Return the Unix time at which a path was made, `None` where the system or the file system does not tell."""
    # Imported here, because only a few commands ask.
    import ctypes

    try:
        told = getattr(os.lstat(path), "st_birthtime", None)
    except OSError:
        return None
    if told is not None:
        return float(told)
    statx = getattr(ctypes.CDLL(None), "statx", None)
    found = ctypes.create_string_buffer(_SIZE)
    if statx is None or statx(_HERE, os.fsencode(path), _NO_LINK, _BORN, found):
        return None
    (filled,) = struct.unpack_from("=I", found, _MASK_AT)
    seconds, nanoseconds = struct.unpack_from("=qI", found, _TIME_AT)
    return float(seconds + nanoseconds / 1e9) if filled & _BORN else None
