"""What `agent-hooks run` shows: the answer on stdout, everything else on stderr."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from rich.console import Console
from rich.status import Status
from rich.text import Text

from agent_hooks.cli.setup import short
from agent_hooks.cli.stdout import ReservedStdout
from agent_hooks.errors import HookError
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.ui.harmless import harmless
from agent_hooks.values.content import ToolCallContent, ToolOutput
from agent_hooks.values.events import Event
from agent_hooks.values.tool import call_line
from agent_hooks.values.wire import to_json


class Lines:
    """What a run shows as lines, wherever they are printed."""

    def __init__(self) -> None:
        self._running: dict[str, str] = {}  # the calls under way, and what is said of each

    def tool_judged(self, call: ToolCallContent) -> None:
        """Start to wait for the hooks that judge a call."""
        self._wait(call.id, f"hooks judge {_line(call)}")

    def tool_runs(self, call: ToolCallContent) -> None:
        """Start to wait for a tool."""
        self._wait(call.id, _line(call))

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Show the last line a tool has printed."""
        if lines := partial.text.splitlines():
            self._wait(call.id, f"{call.name}: {lines[-1][:100]}")

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Print one line: the call, and what came of it."""
        self._running.pop(call.id, None)
        name, _, rest = harmless(call_line(call.name, judged.input)).partition(" ")
        line = Text.assemble(("• ", "bold"), (name, "bold"), f" {rest}".rstrip(), " → ")
        if judged.block is not None:
            word = "not run" if judged.block.cause == "schema" else "blocked"
            line.append(harmless(f"{word}: {output.details['reason']}"), "bold red")  # without secrets
        elif output.is_error:
            line.append(f"error ({seconds:.1f} s)", "red")
        else:
            line.append(f"ok ({seconds:.1f} s)", "green")
        self._print(line)

    def warning(self, text: str) -> None:
        """Print a warning."""
        self._print(Text(harmless(f"warning: {text}"), "yellow"))

    def hook_error(self, error: HookError) -> None:
        """Print a hook's failure."""
        shown = replace(error, hook_path=short(error.hook_path), file=error.file and short(error.file))
        self._print(Text(harmless(f"hook error: {shown} ({error.outcome})"), "red"))

    def error(self, text: str) -> None:
        """Print an error."""
        self._print(Text(harmless(text), "bold red"))

    def _wait(self, call_id: str, what: str) -> None:
        """Show that a call is under way."""
        raise NotImplementedError

    def _print(self, line: Text) -> None:
        """Show a line that stays."""
        raise NotImplementedError


class Screen(Lines):
    """Shows a run to a person: streamed text on a terminal, plain lines elsewhere.

    Showing never fails: when the terminal is gone, the run still ends in order.
    """

    def __init__(self, stdout: ReservedStdout) -> None:
        super().__init__()
        self._stdout = stdout
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._status: Status | None = None
        self._at_line_start = True

    # ---- View

    def run_started(self, text: str, source: str | None) -> None:
        """Show nothing: who started it knows."""

    def run_ended(self, error: str | None, aborted: bool) -> None:
        """Stop the spinner; the mode says the rest."""
        self.rest()

    def injected(self, text: str, source: str | None) -> None:
        """Print what a hook has the agent go on with; print mode takes no other messages."""
        self._print(said(text, source))

    def text(self, delta: str) -> None:
        """Stream the model's words, if somebody watches."""
        self.rest()
        if self._stdout.is_terminal:
            self._stdout.write(delta)
            self._at_line_start = delta.endswith("\n")

    # ---- the command's own

    def answer(self, text: str) -> None:
        """Print the answer, unless it has been streamed."""
        self.rest()
        if not self._stdout.is_terminal:
            self._stdout.write(text if text.endswith("\n") else f"{text}\n")

    def rest(self) -> None:
        """Stop the spinner."""
        if self._status is not None:
            with suppress(OSError):
                self._status.stop()
            self._status = None

    def _wait(self, call_id: str, what: str) -> None:
        """Turn the spinner, on a terminal."""
        self._running[call_id] = what
        if not self._console.is_terminal:
            return
        with suppress(OSError):
            self._end_line()
            text = Text(harmless("; ".join(self._running.values())))
            if self._status is None:
                self._status = self._console.status(text)
                self._status.start()
            else:
                self._status.update(text)

    def _print(self, line: Text) -> None:
        self.rest()
        with suppress(OSError):
            self._end_line()
            self._console.print(line)
        for call_id, what in list(self._running.items())[-1:]:  # other calls still run
            self._wait(call_id, what)

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
        self._stdout.write(to_json(event).decode() + "\n")


def said(text: str, source: str | None) -> Text:
    """Return a message to the agent as it is shown, with the hook that sent it."""
    whose = Text() if source is None else Text(f"[{harmless(short(source))}] ", "magenta")
    return Text.assemble(("> ", "bold"), whose, (harmless(text), "bold"))


def _line(call: ToolCallContent) -> str:
    return call_line(call.name, call.invalid or call.arguments)
