"""Prepare a store: the git directory of the checkpoints of one working tree, below the agent home.

A file of it that was half written or damaged is put right before each use.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from contextlib import suppress

from agent_hooks.settings import agent_home

_ATTRIBUTES = "* -text -eol -crlf -filter -ident -working-tree-encoding\n"
_DATA = ("index", "index.lock", "lock")
_DIRECTORIES = ("info", "objects", "refs")
# Where the agent home lies in a working tree, git must not list the stores.
_IGNORED = "*\n"


def prepare(store: str, top: str, exclude: str | None, object_format: str) -> None:
    """Make the store of the working tree `top`, and put its files right; raises `OSError`.

    `exclude`: the text of the repository's own file of ignored paths; `None` keeps the text that the store has.
    """
    _directory(store)
    _put(os.path.join(os.path.dirname(store), ".gitignore"), _IGNORED)
    for each in _DIRECTORIES:
        _directory(os.path.join(store, each))
    for name, text in _texts(top, object_format).items():
        _put(os.path.join(store, name), text)
    for name in _DATA:
        # git writes to these files.  A link in the place of one would lead the write elsewhere, so it is removed.
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(os.path.join(store, name)).st_mode):
                _remove(os.path.join(store, name))
    if exclude is not None:
        _put(os.path.join(store, "info", "exclude"), exclude)


def format_of(store: str, default: str = "sha1") -> str:
    """Return a store's object format, `sha1` or `sha256`, or the default without a store."""
    with suppress(OSError), open(os.path.join(store, "config"), encoding="utf-8", errors="replace") as file:
        return "sha256" if "objectFormat = sha256" in file.read(4096) else "sha1"
    return default


def open_lock(store: str) -> int:
    """Open the file that is locked for a checkpoint, and make it when it is missing; raises `OSError`."""
    os.makedirs(agent_home(), exist_ok=True)
    _directory(os.path.dirname(store))
    _directory(store)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(os.path.join(store, "lock"), flags, 0o600)


def _texts(top: str, object_format: str) -> dict[str, str]:
    version = "0" if object_format == "sha1" else "1"
    extension = "" if object_format == "sha1" else f"[extensions]\n\tobjectFormat = {object_format}\n"
    # Speed counts for more than size here, and refs are files that this package writes and removes.
    ours = "\tcompression = 1\n[gc]\n\tpackRefs = false\n"
    return {
        "HEAD": "ref: refs/heads/none\n",
        "config": f"[core]\n\trepositoryFormatVersion = {version}\n{ours}{extension}",
        "info/attributes": _ATTRIBUTES,
        "top": os.path.realpath(top),
    }


def _directory(path: str) -> None:
    """Make a directory of this user alone; a link to one, or another file in its place, raises `OSError`."""
    with suppress(FileExistsError):
        os.mkdir(path, mode=0o700)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, f"{path} is not a directory of its own")


def _remove(path: str) -> None:
    """Remove a file, a link, or a directory with everything in it."""
    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _put(path: str, text: str) -> None:
    """Give a file this text, unless it has it; a link is replaced, and its target stays."""
    data = text.encode("utf-8", "surrogateescape")
    with suppress(FileNotFoundError):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size == len(data):
            with open(path, "rb") as file:
                if file.read() == data:
                    return
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(path)
    draft = os.path.join(os.path.dirname(path), f"{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb") as file:
            file.write(data)
        os.replace(draft, path)
    # Any failure, Ctrl-C too: the draft is removed, and the exception goes on to the caller, which names the store.
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
