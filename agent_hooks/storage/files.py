"""Open regular files only, and replace a file in one step.

A path may name a FIFO or a device, which would block the reader or start a machine; so the kind of the file is checked
before and after opening.  A file is replaced by a rename, so that a reader finds the old text or the new one, whole.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from msgspec import Struct

from agent_hooks.errors import AgentHooksError, os_reason

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""The errors of a file system without hard links."""
# The parts of a draft's name, around the number of the process that writes it and a random number.
_DRAFT, _DRAFT_END = ".agent-hooks-", ".tmp"


class StorageError(AgentHooksError):
    """A file cannot be read or written; the text names the file and the reason."""


@contextmanager
def refusing(action: str, path: str) -> Iterator[None]:
    """Turn an `OSError` in the block into a `StorageError`: `cannot read x: Permission denied`."""
    try:
        yield
    except OSError as exc:
        raise StorageError(f"cannot {action} {path}: {os_reason(exc)}") from None


# ---- reading ---------------------------------------------------------------------------------------------------------


class _Kind(Struct, frozen=True):
    """A kind of file that is not regular, and its name in an error."""

    test: Callable[[int], bool]
    words: str


_KINDS = (
    _Kind(stat.S_ISDIR, "a directory; use ls to list its files"),
    _Kind(stat.S_ISFIFO, "a FIFO, not a regular file"),
    _Kind(stat.S_ISSOCK, "a socket, not a regular file"),
)


def check_regular(status: os.stat_result, path: str) -> None:
    """Raise `StorageError` unless `status` is that of a regular file; `path` is its name in the error."""
    if stat.S_ISREG(status.st_mode):
        return
    words = next((kind.words for kind in _KINDS if kind.test(status.st_mode)), "a device, not a regular file")
    raise StorageError(f"{path} is {words}")


def open_regular(path: str, label: str) -> BinaryIO:
    """Open a regular file for reading without ever blocking; `label` is its name in errors.  Raises `StorageError`."""
    with refusing("read", label):
        # Checked before opening, because opening alone can start a device.
        check_regular(os.stat(path), label)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            # Checked once more, because another file may have taken the path in between.
            check_regular(os.fstat(fd), label)
        # After any failure, only this function can close the descriptor; the exception goes on to the caller.
        except BaseException:
            os.close(fd)
            raise
        return os.fdopen(fd, "rb")


def read_regular(path: str, label: str, most: int) -> bytes:
    """Return the first `most` bytes of a regular file without ever blocking.  Raises `StorageError`.

    The caller has checked the kind of the file before, because opening alone can start a device.
    """
    chunks: list[bytes] = []
    with refusing("read", label):
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            check_regular(status, label)
            # A file of the system has no size, and a file may grow.
            size = max(status.st_size, 1 << 16)
            while most and (chunk := os.read(fd, min(most, size))):
                chunks.append(chunk)
                most -= len(chunk)
        finally:
            os.close(fd)
    return b"".join(chunks)


def others_may_read(path: str) -> bool:
    """Tell whether the rights of a file let other users of the machine open it; raises `OSError`."""
    return bool(os.stat(path).st_mode & 0o077)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_atomically(
    path: str,
    data: bytes,
    label: str | None = None,
    *,
    secret: bool = False,
    like: str | None = None,
    durable: bool = False,
) -> None:
    """Put `data` in the place of a file in one step; readers see the old text or the new one, never a part.

    Makes the parent directories, follows a symlink to its target, and keeps the mode and owner of an existing file.
    `label` is the path's name in errors; `secret`: only the owner may read the file from now on; `like`: a file that
    a new one takes mode and owner from; `durable`: the file outlives a power cut as soon as this returns.  Raises
    `StorageError`.
    """
    label = label or path
    target = os.path.realpath(path)
    _make_directory(os.path.dirname(target), label)
    with refusing("write", label):
        model = _existing(target, label) or (os.stat(like) if like is not None else None)
        draft = os.path.join(os.path.dirname(target), _draft_name())
        kept = 0o700 if secret else 0o7777
        try:
            with _draft(draft, model, kept) as file:
                file.write(data)
                file.flush()
                # Writing clears the set-user-id and set-group-id bits.
                if model is not None and model.st_mode & kept & 0o7000:
                    os.fchmod(file.fileno(), stat.S_IMODE(model.st_mode) & kept)
                if durable:
                    os.fsync(file.fileno())
            os.replace(draft, target)
            if durable:
                flush(os.path.dirname(target))
        # No failure or cancellation leaves a draft behind; the exception goes on to the caller.
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise


def create_atomically(path: str, data: bytes, *, secret: bool = False, durable: bool = False) -> None:
    """Make a file in one step: it is there with all its bytes, or not at all.

    No file that exists is replaced, and no link in its place is followed.  The directory must exist.  Raises
    `FileExistsError`, and `StorageError`.
    """
    draft = os.path.join(os.path.dirname(path), _draft_name())
    try:
        with _draft(draft, None, 0o700 if secret else 0o7777) as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        _link(draft, path)
        if durable:
            flush(os.path.dirname(path))
    except FileExistsError:
        raise
    except OSError as exc:
        raise StorageError(f"cannot write {path}: {os_reason(exc)}") from None
    finally:
        with suppress(OSError):
            os.unlink(draft)


def remove_drafts(directory: str) -> None:
    """Remove the drafts in a directory whose processes were killed before they could rename or remove them."""
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        pid = name.removeprefix(_DRAFT).partition("-")[0] if name.endswith(_DRAFT_END) else ""
        if name.startswith(_DRAFT) and pid.isdecimal() and not _is_alive(int(pid)):
            with suppress(OSError):
                os.unlink(os.path.join(directory, name))


def _draft_name() -> str:
    return f"{_DRAFT}{os.getpid()}-{os.urandom(8).hex()}{_DRAFT_END}"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _link(draft: str, path: str) -> None:
    """Give a draft its name; unlike a renaming, a link never replaces a file."""
    try:
        os.link(draft, path)
    except OSError as exc:
        if exc.errno not in NO_LINKS:
            raise
        # On a file system without links, the check and the renaming are two steps.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        os.rename(draft, path)


def flush(path: str) -> None:
    """Wait until a file, or the names in a directory, are on the disk; raises `OSError`."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def flush_tree(directory: str) -> None:
    """Wait until a directory and all that is in it are on the disk; raises `OSError`."""
    for where, _, names in os.walk(directory):
        for name in names:
            flush(os.path.join(where, name))
        flush(where)


def _draft(path: str, model: os.stat_result | None, kept: int) -> BinaryIO:
    """Create a file that has its final owner and rights before the first byte is written."""
    # 0o666 lets the umask decide about a new file, as for any program.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, (0o666 if model is None else 0o600) & kept)
    file = os.fdopen(fd, "wb")
    if model is not None:
        try:
            # Only root may give files away, and only to a user whom its namespace knows.
            with suppress(OSError):
                os.fchown(fd, model.st_uid, model.st_gid)
            os.fchmod(fd, stat.S_IMODE(model.st_mode) & kept)
        except OSError:
            file.close()
            raise
    return file


def _make_directory(directory: str, label: str) -> None:
    with refusing("write", label):
        try:
            os.makedirs(directory, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            culprit = directory
            while not os.path.lexists(culprit):
                culprit = os.path.dirname(culprit)
            raise StorageError(f"cannot write {label}: {culprit} is not a directory") from None


def _existing(target: str, label: str) -> os.stat_result | None:
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    check_regular(status, label)
    # Replacing a file needs no permission on the file itself; writing to it does.
    if not os.access(target, os.W_OK):
        raise StorageError(f"cannot write {label}: the file is write-protected")
    return status
