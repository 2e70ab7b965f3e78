"""The screen of print mode with `-q`: the answer, warnings and errors, without a line for each call."""

from __future__ import annotations

from agent_hooks.cli.screen.output import Screen
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.values.content import ToolCallContent, ToolOutput


class QuietScreen(Screen):
    """Prints the answer on stdout, and only warnings and errors on stderr."""

    def tool_judged(self, call: ToolCallContent) -> None:
        """Print nothing."""

    @property
    def one_reader(self) -> bool:
        """`False`: the reasons of blocks are in the answer only."""
        return False

    def tool_runs(self, call: ToolCallContent, judged: JudgedCall) -> None:
        """Print nothing."""

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Print nothing."""

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Print nothing; the answer says which calls were blocked."""

    def injected(self, text: str, source: str | None) -> None:
        """Print nothing."""
