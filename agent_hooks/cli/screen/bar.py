"""The line below the prompt: the model, its tokens and price, the hooks and the checkpoints that are in force."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from prompt_toolkit.utils import get_cwidth

from agent_hooks.ui.fitting import Line, cut
from agent_hooks.ui.harmless import harmless

SEPARATOR = " · "


def bar_line(parts: Sequence[str], columns: int) -> Line:
    """Return as many of the parts as fit, the first one in any case."""
    shown = ""
    for part in parts:
        longer = f"{shown}{SEPARATOR}{harmless(part)}" if shown else cut(harmless(part), columns)
        if get_cwidth(longer) > columns:
            break
        shown = longer
    return "class:hint", shown


def tokens(count: int) -> str:
    """Return a number of tokens in few letters: `950 tokens`, `12.3k tokens`, `1.2M tokens`."""
    if count < 1_000:
        return f"{count} token{'' if count == 1 else 's'}"
    thousands = count / 1_000
    if thousands < 999.95:
        return f"{thousands:.1f}k tokens"
    return f"{count / 1_000_000:.1f}M tokens"


def money(amount: Decimal) -> str:
    """Return US dollars: cents, and four digits of an amount below one cent."""
    if Decimal() < amount < Decimal("0.01"):
        return f"${amount:.4f}"
    return f"${amount:,.2f}"


def elapsed(seconds: float) -> str:
    """Return a length of time: `3 s`, `2 min 5 s`, `1 h 2 min`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
