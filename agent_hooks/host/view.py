"""How a host shows a person what goes on.  Above: agent, lifecycle, cli.  Below: content."""

from __future__ import annotations

from typing import Protocol

from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.values.content import ToolCallContent, ToolOutput


class View(Protocol):
    """What shows a person how the agent gets on; called on the event loop, and quick."""

    def run_started(self, text: str, source: str | None) -> None:
        """Show that the agent begins to work on a prompt; `source`: the hook that sent it, `None` for the person."""

    def run_ended(self, error: str | None, aborted: bool) -> None:
        """Show that the agent is done with a prompt; `error`: why there is no answer: the model
        failed, or the prompt was blocked.
        """

    def injected(self, text: str, source: str | None) -> None:
        """Show a message that the model is given in the middle of a run; `source` as above."""

    def text(self, delta: str) -> None:
        """Show more of the model's words."""

    def tool_judged(self, call: ToolCallContent) -> None:
        """Show that hooks begin to judge a tool call."""

    def tool_runs(self, call: ToolCallContent) -> None:
        """Show that a tool begins to run."""

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Show what a tool has printed so far."""

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Show what came of a tool call."""

    def warning(self, text: str) -> None:
        """Show that something is not as it should be."""
