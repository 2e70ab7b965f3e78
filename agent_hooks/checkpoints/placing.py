"""Put a file into the working tree, or take one out, so that nothing is lost that was saved there meanwhile.

Between the snapshot of the present files and the write, the person may save a file.  POSIX has no call that compares and
writes in one step, so a file is replaced in an order in which no step destroys anything:

1. The new content is written to a draft beside the file.
2. The present file is renamed: `notes.txt.saved-during-restore-1f09ab`.
3. The draft gets the file's name by a link, which fails if the person has saved the file again; then step 2 is repeated.
4. The renamed file is compared with the snapshot.  If the snapshot has it, it is removed; otherwise it stays.

A kill between two steps leaves the renamed file, which a later restore removes only if it restores the same bytes under
the file's own name.  Directories are opened one below the other and never through a link, so that a link which takes the
place of a directory leads no write out of the working tree.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from agent_hooks.storage.files import NO_LINKS

SAVED = ".saved-during-restore-"
"""The end of the name of a file that was saved while a restore ran, before six digits."""
EDITED = ".edited-before-undo-"
"""The end of the name of a later edit, which an undo keeps beside, before six digits."""
_KEPT = re.compile(rf"(.+)({SAVED}|{EDITED})[0-9a-f]{{6}}", re.DOTALL)
# Most file systems take names of 255 bytes.
_LONGEST = 255 - len(SAVED) - 6
# How often a file may be saved again in the moment of its restore.
_TRIES = 100
_WALK = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Leaf(NamedTuple):
    """A file or symlink of a tree: git's mode and the name of its object; an absent file has the mode `000000`."""

    mode: str
    digest: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symlink."""
        return self.mode == "120000"

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.mode in ("100644", "100755")


ABSENT = Leaf("000000", "")


def hash_of_blob(object_format: str, size: int) -> hashlib._Hash:
    """Return a hash to which the bytes of a file are still to be added.  Its digest is git's name for the file."""
    return hashlib.new(object_format, b"blob %d\0" % size, usedforsecurity=False)


def original_of(path: str) -> str | None:
    """Return the path of a file that a restore has renamed, `None` for any other path."""
    match = _KEPT.fullmatch(path)
    return match and match[1]


def beside(path: str, suffix: str = SAVED) -> str:
    """Return a path beside another one, for a version of its file that is kept."""
    directory, slash, name = path.rpartition("/")
    short = os.fsdecode(os.fsencode(name)[:_LONGEST])
    return f"{directory}{slash}{short}{suffix}{secrets.token_hex(3)}"


class Place:
    """A path in the working tree: a name in an open directory."""

    def __init__(self, directory: int, path: str, object_format: str, suffix: str = SAVED) -> None:
        self._directory = directory
        self._name = os.path.basename(path)
        self._parent = os.path.dirname(path)
        self._format = object_format
        self._suffix = suffix
        # The paths to which files were renamed that were saved meanwhile.
        self.kept: list[str] = []

    def draft(self, *, executable: bool, former: int | None = None) -> tuple[int, str]:
        """Make an empty file beside, with its final rights; return its descriptor and its name.  Raises `OSError`.

        git keeps only whether a file can be executed; the other rights are those of the file that is replaced.
        `former`: the rights that the file had, which it never exceeds, `None` if it was open to all readers.
        """
        name = f".agent-hooks-{secrets.token_hex(8)}.tmp"
        model = self._present()
        rights = (0o777 if executable else 0o666) if model is None and former is None else 0o600
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, rights, dir_fd=self._directory)
        if model is not None or former is not None:
            try:
                _take_over(file, model, 0o666 if former is None else former, executable=executable)
            except OSError:
                os.close(file)
                self.drop(name)
                raise
        return file, name

    def _present(self) -> os.stat_result | None:
        """Return the status of the present file, `None` if there is no regular file."""
        try:
            status = os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return status if stat.S_ISREG(status.st_mode) else None

    def drop(self, draft: str) -> None:
        """Remove a draft."""
        with suppress(OSError):
            os.unlink(draft, dir_fd=self._directory)

    def put(self, draft: str, now: Leaf, *, link: bool) -> None:
        """Give a draft its name; the snapshot has `now` there.  Raises `OSError`.

        `link`: make a symlink with the draft's content as its target.
        """
        target = self._read(draft) if link else None
        asides = []
        try:
            for _ in range(_TRIES):
                try:
                    self._name_it(draft, target)
                    break
                except FileExistsError:
                    asides += self._move_aside()
            else:
                raise OSError(errno.EBUSY, "it is saved again and again")
        except OSError:
            self._put_back(asides)
            raise
        finally:
            self._settle(asides, now)

    def remove(self, now: Leaf) -> bool:
        """Remove the file, of which the snapshot has `now`; return `False` if there is none.  Raises `OSError`."""
        asides = self._move_aside()
        self._settle(asides, now)
        return bool(asides)

    def _name_it(self, draft: str, target: bytes | None) -> None:
        """Give a draft its name, if that is free; raises `FileExistsError`."""
        here = self._directory
        if target is not None:
            os.symlink(target, os.fsencode(self._name), dir_fd=here)
            return
        try:
            os.link(draft, self._name, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
        except OSError as exc:
            if exc.errno not in NO_LINKS:
                raise
            # On a file system without links, the check and the renaming are two steps.
            if self._exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            os.rename(draft, self._name, src_dir_fd=here, dst_dir_fd=here)

    def _put_back(self, asides: list[str]) -> None:
        """Give the file that was renamed last its name back, if that is free."""
        with suppress(OSError, IndexError):
            self._name_it(asides[-1], None)
            self.drop(asides.pop())

    def _exists(self) -> bool:
        try:
            os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _move_aside(self) -> list[str]:
        """Rename the present file, and return its new name in a list, which is empty if there is no file."""
        here = self._directory
        try:
            if stat.S_ISDIR(os.stat(self._name, dir_fd=here, follow_symlinks=False).st_mode):
                raise IsADirectoryError(errno.EISDIR, "a directory has taken its place")
            aside = beside(self._name, self._suffix)
            os.rename(self._name, aside, src_dir_fd=here, dst_dir_fd=here)
        except FileNotFoundError:
            return []
        return [aside]

    def _settle(self, asides: list[str], now: Leaf) -> None:
        """Remove the renamed files that the snapshot has, and note the others."""
        for aside in asides:
            try:
                if self._is(aside, now):
                    os.unlink(aside, dir_fd=self._directory)
                    continue
            except OSError:
                # A file that cannot be compared or removed stays, and is named.
                pass
            self.kept.append(os.path.join(self._parent, aside))

    def _is(self, name: str, leaf: Leaf) -> bool:
        """Tell whether a file here has the content of a leaf; raises `OSError`."""
        status = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(os.fsencode(name), dir_fd=self._directory)
            return leaf.is_link and self._hash(len(target), iter([target])) == leaf.digest
        if not stat.S_ISREG(status.st_mode) or not leaf.is_file:
            return False
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory)
        with os.fdopen(file, "rb") as opened:
            chunks = iter(lambda: opened.read(1 << 20), b"")
            return self._hash(os.fstat(file).st_size, chunks) == leaf.digest

    def _hash(self, size: int, chunks: Iterator[bytes]) -> str:
        digest = hash_of_blob(self._format, size)
        for chunk in chunks:
            digest.update(chunk)
        return digest.hexdigest()

    def _read(self, draft: str) -> bytes:
        with os.fdopen(os.open(draft, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory), "rb") as file:
            # A longer target is refused by the system.
            return file.read(1 << 16)


def _take_over(file: int, model: os.stat_result | None, former: int, *, executable: bool) -> None:
    """Give a new file owner and rights of the file that it replaces, if there is one; raises `OSError`."""
    rights = former & 0o666
    if model is not None:
        rights &= model.st_mode
        # Only root may give files away, and only to a user whom its namespace knows.
        with suppress(OSError):
            os.fchown(file, model.st_uid, model.st_gid)
    os.fchmod(file, rights | (rights & 0o444) >> 2 if executable else rights)


@contextmanager
def place_of(top: str, path: str, object_format: str, *, make: bool = False, suffix: str = SAVED) -> Iterator[Place]:
    """Open the directory of a path (relative to `top`); `make`: make the missing ones.  Raises `OSError`.

    `suffix`: of the name to which a file is renamed that is no version of the snapshot.
    """
    here = os.open(top, _WALK & ~os.O_NOFOLLOW)
    try:
        for name in os.path.dirname(path).split("/") if "/" in path else ():
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
            below = os.open(name, _WALK, dir_fd=here)
            os.close(here)
            here = below
        yield Place(here, path, object_format, suffix)
    finally:
        os.close(here)
