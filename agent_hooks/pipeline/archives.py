"""The names of the files that an archive or a patch would write; nothing is ever extracted.

An archive may be hostile: it is read within limits of bytes, members and time, and a failure gives no list.  The
list holds at least the files that any of the usual programs would write: a tar is read to its very end, over blocks of
zeros and damaged headers, and a name that leads through a link of the same archive is listed with the link's target.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from typing import IO, Any

from agent_hooks.guards.patches import patched_names
from agent_hooks.storage.files import StorageError, open_regular

MOST_MEMBERS = 20_000
MOST_BYTES = 64 * 1024 * 1024
MOST_SECONDS = 0.5
# The links of one name that are followed.
_LINKS = 8
_UNICODE_PATH = 0x7075
_LONGEST_TARGET = 4096
_BLOCK = 512


class _TooMuchError(Exception):
    """A limit was reached."""


class _Limited:
    """A file of which only so many bytes are read, until a time."""

    def __init__(self, file: IO[bytes], deadline: float) -> None:
        self._file = file
        self._left = MOST_BYTES
        self._deadline = deadline

    def read(self, size: int = -1) -> bytes:
        """Read; raises `_TooMuchError` when a limit is reached."""
        if time.monotonic() > self._deadline:
            raise _TooMuchError
        data = self._file.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise _TooMuchError
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


class _Names:
    """The names of an archive's files, and its symbolic links."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.links: dict[str, str] = {}
        self._count = 0

    def add(self, name: str, *, directory: bool = False, target: str | None = None) -> None:
        """Add a member; raises `_TooMuchError` for one too many."""
        self._count += 1
        if self._count > MOST_MEMBERS:
            raise _TooMuchError
        if not directory:
            self.files.append(name)
        if target is not None:
            plain = os.path.normpath(name)
            self.links[plain] = os.path.normpath(os.path.join(os.path.dirname(plain), target))

    def all(self) -> tuple[str, ...]:
        """Return all names, and for those that lead through links the names at their targets too."""
        through = (self._through(name) for name in self.files) if self.links else ()
        return (*self.files, *(name for name in through if name is not None))

    def _through(self, name: str) -> str | None:
        path, found = os.path.normpath(name), False
        for _ in range(_LINKS):
            parts = path.split("/")
            heads = ("/".join(parts[:at]) for at in range(1, len(parts)))
            head = next((each for each in heads if each in self.links), None)
            if head is None:
                break
            path, found = os.path.normpath(f"{self.links[head]}{path[len(head) :]}"), True
        return path if found else None


def list_archive(path: str) -> tuple[str, ...] | None:
    """Return the names of the files in a tar (plain, gzip, bzip2, xz) or zip archive, `None` when it cannot be listed."""
    deadline = time.monotonic() + MOST_SECONDS
    names = _Names()
    try:
        with open_regular(path, path) as file:
            head = file.read(6)
            file.seek(0)
            (_read_zip if head[:2] == b"PK" else _read_tar)(file, head, deadline, names)
    except (Exception, RecursionError):
        # Modules of the standard library raise errors of many kinds about hostile archives.  No list is made then, and
        # the guard asks the person, so no archive passes for its damage.
        return None
    return names.all()


def _read_tar(file: IO[bytes], head: bytes, deadline: float, names: _Names) -> None:
    import tarfile

    outer: Any = _Limited(file, deadline)
    packed = _unpacked(outer, head)
    if (file if packed is None else packed).read(_BLOCK)[257:262] != b"ustar":
        # A file of another format, in which a piece may look like a header, or a tar from before 1988.
        raise tarfile.ReadError
    file.seek(0)
    packed = _unpacked(outer, head)
    source: Any = outer if packed is None else _Limited(packed, deadline)
    # Damaged headers and zeros are passed over, as some programs do; so the list may be longer, and never shorter.
    with tarfile.open(fileobj=source, mode="r:" if packed is None else "r|", ignore_zeros=True) as archive:
        for member in archive:
            names.add(member.name, directory=member.isdir(), target=member.linkname if member.issym() else None)


def _unpacked(file: Any, head: bytes) -> IO[bytes] | None:
    """Return the decompressed contents of a file, `None` for one that is not compressed."""
    if head[:2] == b"\x1f\x8b":
        import gzip

        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]  # has the methods that are used
    if head[:3] == b"BZh":
        import bz2

        return bz2.BZ2File(file)
    if head == b"\xfd7zXZ\0":
        import lzma

        return lzma.LZMAFile(file)
    return None


def _read_zip(file: IO[bytes], head: bytes, deadline: float, names: _Names) -> None:
    import zipfile

    source: Any = _Limited(file, deadline)
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            link = stat.S_ISLNK(member.external_attr >> 16)
            target = archive.open(member).read(_LONGEST_TARGET).decode("utf-8", "replace") if link else None
            for name in {member.filename, member.orig_filename, *_other_names(member.extra)}:
                names.add(name.replace("\\", "/"), directory=name.endswith("/"), target=target)


def _other_names(extra: bytes) -> Iterator[str]:
    """Yield the names in the extra field of a zip member, which some programs prefer."""
    while len(extra) >= 4:
        kind, size = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:4], "little")
        if kind == _UNICODE_PATH:
            yield extra[9 : 4 + size].decode("utf-8", "replace")
        extra = extra[4 + size :]


# ---- patches ---------------------------------------------------------------------------------------------------------


def list_patch(path: str) -> tuple[str, ...] | None:
    """Return the names of the files that a patch changes, as they stand there; `None` when it cannot be read."""
    text = read_patch(path)
    return None if text is None else patched_names(text)


def read_patch(path: str) -> str | None:
    """Return the text of a patch, `None` when it cannot be read."""
    try:
        with open_regular(path, path) as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, StorageError, ValueError):
        return None
    return None if len(data) > MOST_BYTES else data.decode("utf-8", "surrogateescape")
