"""Patterns that are compiled, and tables that are read, at their first use.

The guards know hundreds of programs, and a process of one event meets few of them.  A first use happens once in a
process, whatever the call is, so its time counts for no call: `Limit` takes `warmed` off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from sys import maxsize
from time import thread_time
from typing import Any, TypeVar

_Value = TypeVar("_Value")


# The processor time of first uses in this context, which no other thread shares, in seconds; whether one goes on.
_SPENT = ContextVar("_SPENT", default=0.0)
_INSIDE = ContextVar("_INSIDE", default=False)


def warmed() -> float:
    """Return the processor time that was spent on first uses in this context, in seconds."""
    return _SPENT.get()


@contextmanager
def warming() -> Iterator[None]:
    """Add the time of the block to the time of first uses; a first use inside of another one counts once."""
    if _INSIDE.get():
        yield
        return
    _INSIDE.set(True)
    began = thread_time()
    try:
        yield
    finally:
        _SPENT.set(_SPENT.get() + thread_time() - began)
        _INSIDE.set(False)


def read_once(read: Callable[[], _Value]) -> Callable[[], _Value]:
    """Return a function that calls `read` at its first use, and keeps the value.

    Two threads may both read; `read` has no effect beside its value.
    """
    kept: list[_Value] = []

    @wraps(read)
    def get() -> _Value:
        if not kept:
            with warming():
                kept.append(read())
        return kept[0]

    return get


class LazyPattern:
    """A pattern that is compiled when one of its methods is first called; the methods are those of `re.Pattern`.

    The first call puts the methods of the compiled pattern into the object, in front of these, so that later calls cost
    no more than those of a compiled pattern.  Two threads may both compile; the outcome is the same.
    """

    def __init__(self, text: str, flags: int = 0) -> None:
        self.pattern = text
        self._flags = flags

    def compile(self) -> re.Pattern[str]:
        """Return the compiled pattern.  Raises `re.error`."""
        with warming():
            found = re.compile(self.pattern, self._flags)
        self.__dict__.update(
            search=found.search,
            match=found.match,
            fullmatch=found.fullmatch,
            findall=found.findall,
            finditer=found.finditer,
            sub=found.sub,
        )
        return found

    def search(self, string: str, pos: int = 0, endpos: int = maxsize) -> re.Match[str] | None:
        return self.compile().search(string, pos, endpos)

    def match(self, string: str, pos: int = 0, endpos: int = maxsize) -> re.Match[str] | None:
        return self.compile().match(string, pos, endpos)

    def fullmatch(self, string: str, pos: int = 0, endpos: int = maxsize) -> re.Match[str] | None:
        return self.compile().fullmatch(string, pos, endpos)

    def findall(self, string: str, pos: int = 0, endpos: int = maxsize) -> list[Any]:
        return self.compile().findall(string, pos, endpos)

    def finditer(self, string: str, pos: int = 0, endpos: int = maxsize) -> Iterator[re.Match[str]]:
        return self.compile().finditer(string, pos, endpos)

    def sub(self, repl: str | Callable[[re.Match[str]], str], string: str, count: int = 0) -> str:
        return self.compile().sub(repl, string, count)


def lazy_pattern(text: str, flags: int = 0) -> LazyPattern:
    """Return a pattern that is compiled at its first use; `text`, `flags`: as for `re.compile`."""
    return LazyPattern(text, flags)
