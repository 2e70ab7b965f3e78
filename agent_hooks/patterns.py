"""Regular expressions that users wrote.

They are searched with the package `regex` and a time limit, because `re` can hold the process for ever.  `regex` is
imported at the first pattern.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from agent_hooks.errors import HookUsageError, shown

LIMIT = 0.1
"""Seconds for one search.  A name or a command takes microseconds, unless the pattern backtracks without end."""
# These flags have the same bits in `re` and `regex`.
_SAME_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE


def compile_pattern(pattern: object) -> Any:
    """Return `pattern`, a text or a pattern of `re`, as a pattern of `regex`.

    Raises `HookUsageError` with the reason why it cannot be used.
    """
    if isinstance(pattern, str):
        return _compiled(pattern, 0, False)
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        return _compiled(pattern.pattern, pattern.flags & _SAME_FLAGS, bool(pattern.flags & re.ASCII))
    raise HookUsageError(f"expected a regular expression, as a text or compiled, not {shown(pattern)}")


def found_in(pattern: str | re.Pattern[str], text: str) -> bool:
    """Return whether `pattern` matches anywhere in `text`; raises `HookUsageError` when that takes too long."""
    try:
        return compile_pattern(pattern).search(text, timeout=LIMIT) is not None
    except TimeoutError:
        raise HookUsageError(f"the pattern {shown(pattern)} took more than {LIMIT:g} s on {shown(text)}") from None


def pattern_problem(name: str, pattern: str) -> str | None:
    """Return why a pattern of the person's own for redaction, or its name, cannot be used; `None` when it can."""
    if not re.fullmatch(r"[\w.:-]+", name):
        return f"the name {name!r} may have letters, digits, '_', '-', '.' and ':' only"
    try:
        compile_pattern(pattern)
    except HookUsageError as exc:
        return f"{name}: {exc}"
    return None


@cache
def _compiled(text: str, flags: int, ascii_only: bool) -> Any:
    import regex

    try:
        return regex.compile(text, flags | (regex.ASCII if ascii_only else 0))
    except regex.error as exc:
        raise HookUsageError(f"the regular expression {shown(text)} cannot be used: {exc}") from None
