"""Compile hook files, and keep their bytecode for the next load.

An entry of the cache holds the source that its bytecode was made from, and counts only for that very source.  Python's
own `.pyc` files are keyed on whole seconds, so they can be stale.  Comparing the sources costs less than a digest.

The cache is in the person's own cache directory, not beside the hook: a project from elsewhere could bring bytecode along
that differs from its source.  Without a directory that only this person can write, there is no cache.
"""

from __future__ import annotations

import _imp
import marshal
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import CodeType

# Bytes of the hash that finds damage.  Python's `.pyc` files use the same hash; it needs no module from a file.
_HASH = 8
# Bytecode is only good for the Python that made it.
_RUNNING = f"{sys.version} {sys.implementation.cache_tag} {sys.flags.optimize}".encode()


def compiled(source: bytes, path: str, compile: Callable[[], CodeType]) -> CodeType:
    """Return the code of `source`, the contents of the file at `path`; call `compile` if the cache does not have it.

    A cache that is damaged, or that cannot be read or written, makes this slower and is no error.  An exception of
    `compile` goes through.
    """
    directory = cache_directory()
    if directory is None:
        return compile()
    name = os.fsencode(path)
    entry = f"{directory}/{_hash(name + _RUNNING).hex()}"
    head = b"%b %d %d %b%b" % (_RUNNING, len(name), len(source), name, source)
    try:
        kept = contents(entry)
        if kept.startswith(head, _HASH):
            data = kept[_HASH + len(head) :]
            if kept.startswith(_hash(data)):
                # Only this person can write in the cache.
                code: CodeType = marshal.loads(data)  # noqa: S302  # see above
                return code
    except (OSError, ValueError, EOFError, TypeError):
        pass
    code = compile()
    if not sys.dont_write_bytecode:
        _keep(entry, head, code)
    return code


def contents(path: str) -> bytes:
    """Return the bytes of a file, in a third of the time of `Path.read_bytes`; raises `OSError`."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(file, 1 << 16):
            parts.append(part)
    finally:
        os.close(file)
    return b"".join(parts)


def _keep(entry: str, head: bytes, code: CodeType) -> None:
    # Two processes may write the same entry at once, so each has a draft of its own.
    draft = f"{entry}.{os.getpid()}"
    try:
        data = marshal.dumps(code)
        with open(draft, "wb") as file:
            file.write(_hash(data) + head + data)
        os.replace(draft, entry)
    except (OSError, ValueError):
        # On a full disk, no draft stays behind.
        with suppress(OSError):
            os.unlink(draft)


def _hash(data: bytes) -> bytes:
    """Return a hash against damage and for names; against an attacker it is too short."""
    return _imp.source_hash(0, data)


@cache
def cache_directory() -> str | None:
    """Return the directory of the cache, or `None` if there is no place that only this person can write.

    It is `$XDG_CACHE_HOME/agent-hooks/bytecode`, or the same below `~/.cache`, and is made when it is missing.  A
    process looks it up once.  Where another agent runs us, a project's settings may set XDG_CACHE_HOME, so
    AGENT_HOOKS_CACHE comes first.
    """
    above = os.environ.get("AGENT_HOOKS_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # There is no home directory, or the path means another place in each working directory.
    if not os.path.isabs(above):
        return None
    directory = os.path.join(above, "agent-hooks", "bytecode")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.stat(directory)
    except OSError:
        return None
    private = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return directory if private else None
