"""Signs for a person who looks at another window: the title of the terminal, and its bell."""

from __future__ import annotations

from time import monotonic
from typing import Literal

from prompt_toolkit.output import Output

from agent_hooks.ui.harmless import harmless

AWAY = 10.0
"""Seconds without a key after which the bell rings: the person may look elsewhere."""
# xterm's stack of titles; a terminal without one ignores both.
_KEEP, _RESTORE = "\x1b[22;2t", "\x1b[23;2t"

State = Literal["ready", "working", "question"]


class Alerts:
    """Tells the person that the agent waits for them; `name`: of the project, for the title."""

    def __init__(self, output: Output, name: str) -> None:
        self._output = output
        self._name = harmless(name)
        self._last_key = monotonic()
        self._state: State | None = None

    def key(self) -> None:
        """Take note that the person has pressed a key."""
        self._last_key = monotonic()

    def begin(self) -> None:
        """Keep the title that the terminal has, for `end`."""
        self._output.write_raw(_KEEP)
        self.show("ready")

    def show(self, state: State) -> None:
        """Show a state in the title, and ring when it begins and waits for the person."""
        if state == self._state:
            return
        former, self._state = self._state, state
        if self._name:
            self._output.set_title(f"agent-hooks: {self._name}" if state == "ready" else f"{state}: {self._name}")
        if state != "working" and former is not None and monotonic() - self._last_key >= AWAY:
            self._output.bell()
        self._output.flush()

    def end(self) -> None:
        """Restore the title."""
        self._output.write_raw(_RESTORE)
        self._output.flush()
