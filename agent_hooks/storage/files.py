"""Open regular files only, and replace a file in one step.

A path may name a FIFO or a device, which would block the reader or start a machine; so the kind of the file is checked
before and after opening.  A file is replaced by a rename, so that a reader finds the old text or the new one, whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from msgspec import Struct

from agent_hooks.errors import AgentHooksError, os_reason


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
    _Kind(stat.S_ISDIR, "a directory; use ls to see what is in it"),
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
        except BaseException:
            # After any failure, only this function can close the descriptor.
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
    path: str, data: bytes, label: str | None = None, *, secret: bool = False, like: str | None = None
) -> None:
    """Put `data` in the place of a file in one step; readers see the old text or the new one, never a part.

    Makes the parent directories, follows a symlink to its target, and keeps the mode and owner of an existing file.
    `label` is the path's name in errors; `secret`: only the owner may read the file from now on; `like`: a file that
    a new one takes mode and owner from.  Raises `StorageError`.
    """
    label = label or path
    target = os.path.realpath(path)
    _make_directory(os.path.dirname(target), label)
    with refusing("write", label):
        model = _existing(target, label) or (os.stat(like) if like is not None else None)
        draft = os.path.join(os.path.dirname(target), f".agent-hooks-{os.urandom(8).hex()}.tmp")
        kept = 0o700 if secret else 0o7777
        try:
            with _draft(draft, model, kept) as file:
                file.write(data)
                file.flush()
                # Writing clears the set-user-id and set-group-id bits.
                if model is not None and model.st_mode & kept & 0o7000:
                    os.fchmod(file.fileno(), stat.S_IMODE(model.st_mode) & kept)
            os.replace(draft, target)
        except BaseException:
            # No failure leaves a draft behind.
            with suppress(OSError):
                os.unlink(draft)
            raise


def _draft(path: str, model: os.stat_result | None, kept: int) -> BinaryIO:
    """Create a file that has its final owner and rights before the first byte is written."""
    # 0o666 lets the umask decide about a new file, as for any program.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, (0o666 if model is None else 0o600) & kept)
    file = os.fdopen(fd, "wb")
    if model is not None:
        # Only root may give files away.
        with suppress(PermissionError):
            os.fchown(fd, model.st_uid, model.st_gid)
        os.fchmod(fd, stat.S_IMODE(model.st_mode) & kept)
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
