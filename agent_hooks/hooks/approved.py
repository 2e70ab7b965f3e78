"""The modules of an approved set: they are found among the files of the set, and never on the disk.

Only UTF-8 source files are modules.  An extension module, bytecode, a zip file or a directory without an `__init__.py`
would run code that the person was not shown, and so would another encoding.  If only the disk has a module of that name,
its import is refused, because the module may be newer than the approval.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES

Files = Mapping[str, bytes]
"""The approved bytes by absolute path."""
_INIT = "__init__.py"
_CODE = (".py", *EXTENSION_SUFFIXES, *BYTECODE_SUFFIXES)
_HARD = (*_CODE, *(f"{os.sep}__init__{suffix}" for suffix in _CODE))
# Python imports from these in some places only, so a module of that name elsewhere comes first.
_SOFT = (".zip", os.sep)
# The directories of a project that a set covers as a whole.
_COVERED = re.compile(r".*/\.agent/(?:hooks|transformers)/", re.DOTALL)
# PEP 263: the encoding cookie of the first two lines.
_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BOM = b"\xef\xbb\xbf"


def source_file(directory: str, name: str, files: Files) -> str | None:
    """Return the path of a module in a directory of a set, `None` if the set has no such module."""
    package, module = os.path.join(directory, name, _INIT), os.path.join(directory, f"{name}.py")
    return package if package in files else module if module in files else None


def refuse_unapproved(directory: str, name: str, *, soft: bool) -> None:
    """Raise `ImportError` when the disk has a module that is not one of the set.

    `soft`: also for a zip file and for a directory without an `__init__.py`.
    """
    beside = os.path.join(directory, name)
    for suffix in (*_HARD, *_SOFT) if soft else _HARD:
        if os.path.lexists(beside + suffix):
            raise ImportError(
                f"{beside}{suffix} is no source file of the approved set, and is never imported; a hook of a project "
                "imports .py files of its .agent/hooks, and packages with an __init__.py",
                name=name,
            )


def covered_directories(files: Iterable[str]) -> tuple[str, ...]:
    """Return the directories of hooks and transformers that the files of a set lie in, each with a slash at its end."""
    return tuple({found[0] for path in files if (found := _COVERED.match(path))})


def source_text(source: bytes, path: str) -> str:
    """Return the text of a source file as it was shown; raises `ImportError` for one in another encoding than UTF-8."""
    for line in source.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n", 2)[:2]:
        cookie = _COOKIE.match(line)
        if cookie is not None and cookie[1].lower().replace(b"_", b"-") not in (b"utf-8", b"utf-8-sig", b"utf8"):
            raise ImportError(
                f"{path} declares the encoding {cookie[1].decode()}; a hook of a project is UTF-8", path=path
            )
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise ImportError(f"{path} is not UTF-8 ({exc.reason}, byte {exc.start})", path=path) from None
