"""The work that goes on, between the conversation and the prompt line, and the line below the prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from time import monotonic

from prompt_toolkit.data_structures import Size
from prompt_toolkit.utils import get_cwidth

from agent_hooks.cli.screen.results import last_lines
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


SPINNER = "|/-\\"
LIVE_LINES = 5
"""The shown output lines of a running call."""
# In fewer columns, the hint on keys is left out.
_NARROW = 40


class Live:
    """The work of the agent that goes on; `running`: the status of each running call by its id."""

    def __init__(self, running: Mapping[str, str]) -> None:
        self._running = running
        # The time at which each running call began, and the last lines of its output so far.
        self._began: dict[str, float] = {}
        self._printed: dict[str, list[str]] = {}
        self._thought = ""
        # The status without a running call, and the time at which it began.
        self._doing: str | None = None
        self._since = monotonic()
        self._spins = 0

    @property
    def goes_on(self) -> bool:
        """Whether there is a status."""
        return self._doing is not None

    def busy(self, status: str | None) -> None:
        """Take a status, `None` for none."""
        if status is None or status != self._doing:
            self._since = monotonic()
        self._doing = status

    def spin(self) -> None:
        """Turn the spinner."""
        self._spins += 1

    # ---- thoughts and calls

    def think(self, delta: str) -> None:
        """Take the next part of the model's thought."""
        self._thought += delta

    def take_thought(self) -> str:
        """Return the thought, which has ended; empty without one."""
        thought, self._thought = self._thought, ""
        return thought.strip()

    def begin(self, call_id: str) -> None:
        """Note that a call begins to run."""
        self._began[call_id] = monotonic()

    def take_output(self, call_id: str, text: str) -> None:
        """Take the output of a call so far."""
        if lines := last_lines(text, LIVE_LINES):
            self._printed[call_id] = lines

    def end(self, call_id: str) -> None:
        """Note that a call has ended."""
        self._began.pop(call_id, None)
        self._printed.pop(call_id, None)

    def clear(self) -> None:
        """Note that the run has ended."""
        self._began.clear()
        self._printed.clear()

    # ---- lines

    def output_lines(self, size: Size) -> list[Line]:
        """Return the end of the thought, or the running calls that have printed something, each with its last lines."""
        if self._thought:
            return live_lines("thinking", last_lines(self._thought, LIVE_LINES), size.columns)
        # Half of the screen stays for the conversation and the prompt line.
        most = max(1, size.rows // 2 // max(1, len(self._printed)) - 1)
        found: list[Line] = []
        for call_id, lines in self._printed.items():
            found += live_lines(self._running.get(call_id, ""), lines[-most:], size.columns)
        return found

    def status_line(self, key: str, columns: int) -> Line:
        """Return the status, with its time once that is over a second, and the key that ends the work."""
        began = min((self._began[each] for each in self._running if each in self._began), default=self._since)
        seconds = monotonic() - began
        hints = [elapsed(seconds), key] if seconds >= 1 else [key]
        # The other calls stand above their output.
        silent = [status for call_id, status in self._running.items() if call_id not in self._printed]
        return spinning_line("; ".join(silent) or self._doing or "", self._spins, hints, columns)


def spinning_line(status: str, turn: int, hints: Sequence[str], columns: int) -> Line:
    """Return the status after a spinner with its hints: the elapsed time, and the key that ends the run."""
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
