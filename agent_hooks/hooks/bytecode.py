"""Compile hook files, and keep the bytecode for the next time.  Above: imports.  Below: nothing.

What is kept counts only for the very same source: Python's own `.pyc` files are keyed on whole seconds and can be stale.
It lies in the person's own cache directory, not beside the hook: a project that somebody else wrote could bring bytecode
along that is not what its source says.  Without a directory that only this person can write, there is no cache.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
from _blake2 import blake2b  # `hashlib` would load OpenSSL
from collections.abc import Callable
from functools import cache
from types import CodeType

_DIGEST = 16  # bytes
_RUNNING = f"{sys.version} {sys.implementation.cache_tag} {sys.flags.optimize}".encode()  # whose bytecode it is


def compiled(source: bytes, path: str, compile: Callable[[], CodeType]) -> CodeType:
    """Return the code of `source`, the contents of the file at `path`; what is not kept yet is made by `compile`.

    A cache that cannot be read or written, or that holds something else, makes this slower and is no error.  Raises what
    `compile` raises.
    """
    directory = cache_directory()
    if directory is None:
        return compile()
    name = os.fsencode(path)
    entry = f"{directory}/{blake2b(_RUNNING + name, digest_size=_DIGEST).hexdigest()}"
    try:
        kept = contents(entry)
        data = kept[_DIGEST:]
        if kept[:_DIGEST] == _digest(name, source, data):
            code: CodeType = marshal.loads(data)  # noqa: S302  # nobody else can write there
            return code
    except (OSError, ValueError, EOFError, TypeError):
        pass
    code = compile()
    if not sys.dont_write_bytecode:
        _keep(entry, name, source, code)
    return code


def contents(path: str) -> bytes:
    """Return the bytes of a file, as `Path.read_bytes` does at three times the cost; raises `OSError`."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(file, 1 << 16):
            parts.append(part)
    finally:
        os.close(file)
    return b"".join(parts)


def _keep(entry: str, name: bytes, source: bytes, code: CodeType) -> None:
    draft = f"{entry}.{os.getpid()}"  # two processes may write at once
    try:
        data = marshal.dumps(code)
        with open(draft, "wb") as file:
            file.write(_digest(name, source, data) + data)
        os.replace(draft, entry)
    except (OSError, ValueError):
        pass


def _digest(name: bytes, source: bytes, data: bytes) -> bytes:
    """Return what proves that `data` is whole, and the bytecode of this source and no other."""
    lengths = b"%d %d " % (len(name), len(source))
    return blake2b(b"".join((_RUNNING, lengths, name, source, data)), digest_size=_DIGEST).digest()


@cache
def cache_directory() -> str | None:
    """Return where bytecode is kept, made if need be, or `None` when there is no place that only this person can write.

    `$XDG_CACHE_HOME/agent-hooks/bytecode`, or that below `~/.cache`; looked up once in the life of a process.  Where
    another agent runs us, a project's settings may say where XDG_CACHE_HOME is: then AGENT_HOOKS_CACHE counts.
    """
    above = os.environ.get("AGENT_HOOKS_CACHE") or os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(above):  # no home; or one that means another place in each working directory
        return None
    directory = os.path.join(above, "agent-hooks", "bytecode")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        found = os.stat(directory)
    except OSError:
        return None
    private = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return directory if private else None
