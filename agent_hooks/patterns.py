"""Regular expressions that users wrote: searched with a time limit, because `re` can hold the process for ever.

Above: handlers, interceptors, settings, redaction, guards.  Below: regex, imported at the first pattern.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from agent_hooks.errors import HookUsageError, shown

LIMIT = 0.1  # seconds for one call; a name or a command takes microseconds with any pattern that does not run away
_SAME_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE  # these have the same bits in both packages


def compile_pattern(pattern: object) -> Any:
    """Return `pattern`, a text or a compiled one, as something to search with.

    Raises `HookUsageError` that says what is wrong with it.
    """
    if isinstance(pattern, str):
        return _compiled(pattern, 0, False)
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        return _compiled(pattern.pattern, pattern.flags & _SAME_FLAGS, bool(pattern.flags & re.ASCII))
    raise HookUsageError(f"expected a regular expression, as a text or compiled, not {shown(pattern)}")


def found_in(pattern: str | re.Pattern[str], text: str) -> bool:
    """Tell whether `pattern` is found in `text`; raises `HookUsageError` when that takes longer than the limit."""
    try:
        return compile_pattern(pattern).search(text, timeout=LIMIT) is not None
    except TimeoutError:
        raise HookUsageError(f"the pattern {shown(pattern)} took more than {LIMIT:g} s on {shown(text)}") from None


@cache
def _compiled(text: str, flags: int, ascii_only: bool) -> Any:
    import regex

    try:
        return regex.compile(text, flags | (regex.ASCII if ascii_only else 0))
    except regex.error as exc:
        raise HookUsageError(f"the regular expression {shown(text)} cannot be used: {exc}") from None
