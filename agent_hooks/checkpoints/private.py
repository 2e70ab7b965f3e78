"""Prepare the private git directory, `agent-hooks/` in the git directory of the person's repository.

A repository from elsewhere may bring such a directory along: with a configuration that names programs, with a `commondir`
that leads git to another configuration, with links to files of the person.  So each file that has an effect is compared
before each use, and everything that this module does not know is removed.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress

_ATTRIBUTES = "* -text -eol -crlf -filter -ident -working-tree-encoding\n"
_DATA = {"index", "index.lock", "lock"}
_DIRECTORIES = {"info", "refs"}


def prepare(private: str, exclude: str, object_format: str) -> None:
    """Make the private directory, and put its files right; raises `OSError`.

    `exclude`: the repository's own file of ignored paths, which counts here too.
    """
    known = {**_texts(object_format), **dict.fromkeys(_DATA), **dict.fromkeys(_DIRECTORIES)}
    _directory(private)
    _remove_unknown(private, known)
    for each in sorted(_DIRECTORIES):
        _directory(os.path.join(private, each))
    _remove_unknown(os.path.join(private, "info"), {"attributes": None, "exclude": None})
    for name, text in _texts(object_format).items():
        _put(os.path.join(private, name), text)
    for name in _DATA:
        # A file of git's own is no link, which would lead its writing elsewhere.
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(os.path.join(private, name)).st_mode):
                _remove(os.path.join(private, name))
    link = os.path.join(private, "info", "exclude")
    if not os.path.islink(link) or os.readlink(link) != exclude:
        with suppress(FileNotFoundError):
            _remove(link)
        os.symlink(exclude, link)


def open_lock(private: str) -> int:
    """Open the file that is locked for a checkpoint, and make it when it is missing; raises `OSError`."""
    _directory(private)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(os.path.join(private, "lock"), flags, 0o600)


def _texts(object_format: str) -> dict[str, str]:
    version = "0" if object_format == "sha1" else "1"
    extension = "" if object_format == "sha1" else f"[extensions]\n\tobjectFormat = {object_format}\n"
    return {
        "HEAD": "ref: refs/heads/none\n",
        "config": f"[core]\n\trepositoryFormatVersion = {version}\n{extension}",
        "info/attributes": _ATTRIBUTES,
    }


def _directory(path: str) -> None:
    """Make a directory; a link to one, or another file in its place, raises `OSError`."""
    with suppress(FileExistsError):
        os.mkdir(path)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, f"{path} is not a directory of its own; remove it")


def _remove_unknown(directory: str, known: Mapping[str, object]) -> None:
    for name in os.listdir(directory):
        if name not in known and not any(each.startswith(f"{name}/") for each in known):
            _remove(os.path.join(directory, name))


def _remove(path: str) -> None:
    """Remove a file, a link, or a directory with everything in it."""
    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _put(path: str, text: str) -> None:
    """Give a file this text, unless it has it; a link is replaced, and its target stays."""
    with suppress(FileNotFoundError):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size == len(text):
            with open(path, encoding="utf-8", errors="replace") as file:
                if file.read() == text:
                    return
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(path)
    draft = os.path.join(os.path.dirname(path), f"{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
    except BaseException:
        # A full disk leaves no draft behind; the next checkpoint would remove one.
        with suppress(OSError):
            os.unlink(draft)
        raise
