"""What `agent-hooks run` shows: the answer on stdout, everything else on stderr."""

from __future__ import annotations

import os
import sys
from typing import Any, Self

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.status import Status
from rich.text import Text

from agent_hooks.cli.common import short
from agent_hooks.content import ToolCallContent, ToolOutput
from agent_hooks.errors import HookError
from agent_hooks.events import Event
from agent_hooks.pipeline import JudgedCall

_ARGUMENT_WIDTH = 100


class ReservedStdout:
    """The real stdout, kept for the answer: `with ReservedStdout() as stdout: stdout.write(…)`.

    What hooks and the programs they start print goes to stderr meanwhile.  When the reader of stdout is gone, what is
    written is dropped.
    """

    def __enter__(self) -> Self:
        sys.stdout.flush()
        self._real = os.dup(1)
        self._file = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
        self.is_terminal = self._file.isatty()
        os.dup2(2, 1)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()
        os.dup2(self._real, 1)
        os.close(self._real)
        self._file.close()

    def write(self, text: str) -> None:
        """Write and flush."""
        try:
            self._file.write(text)
            self._file.flush()
        except BrokenPipeError:
            self._file = open(os.devnull, "w")  # noqa: SIM115  # replaces stdout until the process ends


class Screen:
    """Shows a run to a person: streamed text on a terminal, plain lines elsewhere."""

    def __init__(self, stdout: ReservedStdout) -> None:
        self._stdout = stdout
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._status: Status | None = None
        self._at_line_start = True

    # ---- View

    def text(self, delta: str) -> None:
        """Stream the model's words, if somebody watches."""
        self.rest()
        if self._stdout.is_terminal:
            self._stdout.write(delta)
            self._at_line_start = delta.endswith("\n")

    def tool_begins(self, call: ToolCallContent) -> None:
        """Start to wait for a tool."""
        self.wait(f"{call.name} {_argument(call.arguments)}")

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Show the last line a tool has printed."""
        lines = partial.text.splitlines()
        if lines:
            self.wait(f"{call.name}: {lines[-1][:_ARGUMENT_WIDTH]}")

    def tool_ended(self, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Print one line: the call, and what came of it."""
        self.rest()
        line = Text.assemble(("• ", "bold"), (judged.tool.name, "bold"), f" {_argument(judged.input)}".rstrip(), " → ")
        if judged.block is not None:
            line.append(f"blocked: {judged.block}", "bold red")
        elif output.is_error:
            line.append(f"error ({seconds:.1f} s)", "red")
        else:
            line.append(f"ok ({seconds:.1f} s)", "green")
        self._print(line)

    def warning(self, text: str) -> None:
        """Print a warning."""
        self._print(Text(f"warning: {text}", "yellow"))

    # ---- the command's own

    def answer(self, text: str) -> None:
        """Print the answer, unless it has been streamed."""
        self.rest()
        if not self._stdout.is_terminal:
            self._stdout.write(text if text.endswith("\n") else f"{text}\n")

    def hook_error(self, error: HookError) -> None:
        """Print a hook's failure."""
        shown = replace(error, hook_path=short(error.hook_path))
        self._print(Text(f"hook error: {shown} ({error.outcome})", "red"))

    def error(self, text: str) -> None:
        """Print an error."""
        self._print(Text(text, "bold red"))

    def wait(self, what: str) -> None:
        """Turn the spinner, on a terminal."""
        if not self._console.is_terminal:
            return
        self._end_line()
        if self._status is None:
            self._status = self._console.status(Text(what))
            self._status.start()
        else:
            self._status.update(Text(what))

    def rest(self) -> None:
        """Stop the spinner."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _print(self, line: Text) -> None:
        self.rest()
        self._end_line()
        self._console.print(line)

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._stdout.write("\n")
            self._at_line_start = True


class JsonScreen(Screen):
    """The same for programs: one JSON event per line on stdout, and no answer there."""

    def text(self, delta: str) -> None:
        """Print nothing: the words come with their message."""

    def answer(self, text: str) -> None:
        """Print nothing: the words come with their message."""

    def event(self, event: Event[Any]) -> None:
        """Print an event in its wire form."""
        self._stdout.write(msgspec.json.encode(event, enc_hook=str).decode() + "\n")


def _argument(input: Any) -> str:
    """Return the arguments of a call in one short line."""
    text = " ".join(str(value) for value in input.values()) if isinstance(input, dict) else str(input)
    line = " ".join(text.split())
    return line if len(line) <= _ARGUMENT_WIDTH else f"{line[: _ARGUMENT_WIDTH - 1]}…"
