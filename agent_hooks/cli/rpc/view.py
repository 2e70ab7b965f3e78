"""The progress of the agent as records for the client, as far as events do not show it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET

from agent_hooks.cli.rpc.protocol import MessageInjected, MessageUpdate, RunEnd, RunStart
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.values.content import ToolCallContent, ToolOutput


class RpcView:
    """Sends a record for each run, message and piece of the model's words."""

    def __init__(self, send: Callable[[object], None], warn: Callable[[str], object]) -> None:
        self._send = send
        self._warn = warn

    def run_started(self, text: str, source: str | None) -> None:
        """Send `run_start`."""
        self._send(RunStart(message=text, source=source or UNSET))

    def run_ended(self, error: str | None, aborted: bool) -> None:
        """Send `run_end`."""
        self._send(RunEnd(aborted=aborted, error=error or UNSET))

    def injected(self, text: str, source: str | None) -> None:
        """Send `message_injected`."""
        self._send(MessageInjected(message=text, source=source or UNSET))

    def text(self, delta: str) -> None:
        """Send `message_update`."""
        self._send(MessageUpdate(delta=delta))

    def thinking(self, delta: str) -> None:
        """Send nothing: the thoughts are in the event of their message."""

    def warning(self, text: str) -> None:
        """Send a notice."""
        self._warn(text)

    def tool_judged(self, call: ToolCallContent) -> None:
        """Send nothing: events show it."""

    def tool_runs(self, call: ToolCallContent, judged: JudgedCall) -> None:
        """Send nothing: events show it."""

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Send nothing: hooks have not seen this output yet, one that hides secrets for example."""

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Send nothing: events show it."""
