"""The lines between the conversation and the prompt line: the unfinished answer, the status, waiting messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prompt_toolkit.data_structures import Size

from agent_hooks.ui.fitting import Line, cut, wrap
from agent_hooks.ui.harmless import harmless

SPINNER = "|/-\\"
# In fewer columns, the hint is left out.
_NARROW = 40


def unfinished_lines(text: str, size: Size) -> list[Line]:
    """Return the end of the line that the model is writing, as much as fits on the screen."""
    if not text:
        return []
    lines = wrap(text[-size.columns * size.rows :], size.columns)
    return [("", line) for line in lines[-max(1, size.rows - 4) :]]


def spinning_line(status: str, turn: int, hint: str, columns: int) -> Line:
    """Return the status behind a spinner, and a hint on keys."""
    hint = "" if columns < _NARROW else f" · {hint}"
    return "class:hint", cut(f"{SPINNER[turn % len(SPINNER)]} {harmless(status)}", columns - len(hint)) + hint


def waiting_lines(label: str, messages: Sequence[str], notes: Iterable[str], columns: int) -> list[Line]:
    """Return the last two messages that wait, each with a label, and notes below them."""
    shown = [*(f"{label}: {' '.join(text.split())}" for text in messages[-2:]), *notes]
    return [("class:hint", cut(harmless(text), columns)) for text in shown]
