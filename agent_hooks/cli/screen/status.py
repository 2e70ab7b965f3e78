"""The lines between the conversation and the prompt line: running calls, the status, and the waiting messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_hooks.ui.fitting import Line, cut
from agent_hooks.ui.harmless import harmless

SPINNER = "|/-\\"
LIVE_LINES = 5
"""The lines of the output of a running call that are shown."""
# In fewer columns, the hint on keys is left out.
_NARROW = 40


def spinning_line(status: str, turn: int, hints: Sequence[str], columns: int) -> Line:
    """Return the status behind a spinner, and the hints: how long it goes on, and the key that ends it."""
    shown = hints if columns >= _NARROW else hints[:-1]
    hint = "".join(f" · {each}" for each in shown)
    spinner = SPINNER[turn % len(SPINNER)]
    return "class:hint", cut(f"{spinner} {harmless(status)}", max(columns - len(hint), 3)) + hint


def live_lines(call: str, printed: Sequence[str], columns: int) -> list[Line]:
    """Return a running call, and below it the last lines that it has printed."""
    lines = [f"• {harmless(call)}", *(f"  {harmless(line)}" for line in printed)]
    return [("class:hint" if at else "class:title", cut(line, columns)) for at, line in enumerate(lines)]


def waiting_lines(label: str, messages: Sequence[str], notes: Iterable[str], columns: int) -> list[Line]:
    """Return the last two messages that wait, each with a label, and notes below them."""
    shown = [*(f"{label}: {' '.join(text.split())}" for text in messages[-2:]), *notes]
    return [("class:hint", cut(harmless(text), columns)) for text in shown]
