"""The view: the host's display of the agent's work."""

from __future__ import annotations

from typing import Protocol

from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.values.content import ToolCallContent, ToolOutput


class View(Protocol):
    """Shows the person the agent's work; the methods are called on the event loop and must return at once."""

    def run_started(self, text: str, source: str | None) -> None:
        """Show that a run begins; `source`: the hook that sent the prompt, `None` for the person."""

    def run_ended(self, error: str | None, aborted: bool) -> None:
        """Show that a run has ended; `error`: the failure of the model, or the block of the prompt."""

    def injected(self, text: str, source: str | None) -> None:
        """Show a message that goes to the model in the middle of a run; `source` as above."""

    def text(self, delta: str) -> None:
        """Show the next part of the model's text."""

    def thinking(self, delta: str) -> None:
        """Show the next part of the model's thoughts, which are no part of its answer."""

    def tool_judged(self, call: ToolCallContent) -> None:
        """Show that hooks begin to judge a tool call."""

    def tool_runs(self, call: ToolCallContent, judged: JudgedCall) -> None:
        """Show that a tool begins to run; `judged` has the input that it gets."""

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Show the output of a tool so far."""

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Show the result of a tool call, and the seconds that it took."""

    def warning(self, text: str) -> None:
        """Show a warning."""
