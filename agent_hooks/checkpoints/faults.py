"""The faults of a store, in words: each text names the store, the reason and the remedy.

A store belongs to this user alone.  It holds the contents of private files, and an undo writes its files into the working
tree.  So a store that other users can read or change is not used until its rights are mended.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import stat

from agent_hooks.storage.rights import belongs_to, check_owner
from agent_hooks.turn_notes import stores_directory

_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_DENIED = (errno.EACCES, errno.EPERM)
# git reports an error of the system in the system's words, with one exception.
_WORDS = {
    **{number: os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, *_DENIED)},
    errno.EACCES: "insufficient permission",
}


def reason_against(store: str) -> str | None:
    """Return the reason why a store must not be used, with the remedy; `None` if it is sound or missing."""
    try:
        if (reason := check_owner(stores_directory())) is not None:
            return reason
        status = os.lstat(store)
    except OSError:
        # The first use of the store reports the error.
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return belongs_to(store, status.st_uid)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & _OTHERS:
        verb = "change" if status.st_mode & _OTHERS_WRITE else "read"
        return f"other users can {verb} the checkpoints in {store}; to mend it: chmod -R go-rwx {shlex.quote(store)}"
    return None


def failure(store: str, number: int | None, detail: str) -> str:
    """Return the text for a store that cannot be used.

    `number`: the system's number of the error, `None` if it is not known; `detail`: the error in words.
    """
    return f"{store}: the checkpoints cannot be used: {detail}; {_remedy(store, number)}"


def number_in(store: str, code: int, err: str) -> int | None:
    """Return the system's number of the error with which git failed on a store, `None` if it is not known.

    `code`: the exit code of git; `err`: its messages.
    """
    # A shell, or git itself, reports a child that a signal ended as 128 and the signal.
    if code in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ):
        return errno.EFBIG
    for number, words in _WORDS.items():
        # A file of the working tree that cannot be read is no fault of the store.
        if any(words in line and (number not in _DENIED or store in line) for line in err.splitlines()):
            return number
    return (
        errno.EACCES if any(os.strerror(errno.EACCES) in line and store in line for line in err.splitlines()) else None
    )


def _remedy(store: str, number: int | None) -> str:
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full: free some space there"
    if number == errno.EROFS:
        return "mount that file system writable, or set AGENT_HOME to a directory that can be written"
    if number == errno.EFBIG:
        return "raise the limit on the size of a file (ulimit -f)"
    place = _nearest(store)
    if number == errno.ENOTDIR:
        return f"move {place} away, in whose place a directory has to be"
    if number in _DENIED:
        owner = os.lstat(place).st_uid
        if owner != os.geteuid():
            return belongs_to(place, owner)
        return f"to mend it: chmod {'-R u+rwX' if place == store else 'u+rwx'} {shlex.quote(place)}"
    quoted = shlex.quote(store)
    return f"if it stays so, begin a new store, which does not know the turns so far: mv {quoted} {quoted}.damaged"


def _nearest(store: str) -> str:
    """Return the store, or the nearest path above it that this user can see."""
    place = store
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    return place
