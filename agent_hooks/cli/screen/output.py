"""The screens of print mode: the answer goes to stdout, all other lines to stderr."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from rich.console import RenderableType
from rich.status import Status
from rich.text import Text

from agent_hooks.cli.screen.markdown import Block, MarkdownBlocks, Rendered
from agent_hooks.cli.screen.paper import Paper
from agent_hooks.cli.screen.results import Ended, hanging, last_line
from agent_hooks.cli.screen.wording import hook_error_text, short
from agent_hooks.cli.streams import ReservedStdout
from agent_hooks.errors import HookError
from agent_hooks.host.agent import is_aborted
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.ui.harmless import harmless, uncoloured
from agent_hooks.values.content import ToolCallContent, ToolOutput
from agent_hooks.values.events import Event
from agent_hooks.values.tool import MAIN_ARGUMENT, call_line
from agent_hooks.values.wire import to_json


class TurnPrinter(ABC):
    """Makes lines of the tool calls and failures of a turn; a subclass prints them."""

    def __init__(self) -> None:
        # Id of a running call → its status.
        self._running: dict[str, str] = {}

    def tool_judged(self, call: ToolCallContent) -> None:
        """Show that hooks judge a call."""
        self._wait(call.id, f"hooks judge {_line(call)}")

    def tool_runs(self, call: ToolCallContent, judged: JudgedCall) -> None:
        """Show that a tool runs."""
        self._wait(call.id, _line(call))

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Show the last line that a tool has printed."""
        if line := last_line(partial.text):
            self._wait(call.id, f"{call.name}: {line[:100]}")

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Print a line with the call and its outcome."""
        self._running.pop(call.id, None)
        self._print(outcome_line(Ended.of(judged, output), seconds))

    def warning(self, text: str) -> None:
        """Print a warning."""
        self._print(Text(harmless(f"warning: {text}"), "yellow"))

    def hook_error(self, error: HookError) -> None:
        """Print the failure of a hook."""
        self._print(Text(f"hook error: {hook_error_text(error)}", "red"))

    def error(self, text: str) -> None:
        """Print an error."""
        self._print(Text(harmless(text), "bold red"))

    @abstractmethod
    def _wait(self, call_id: str, status: str) -> None:
        """Show the status of a running call."""

    @abstractmethod
    def _print(self, line: Text) -> None:
        """Print a line."""


class Screen(TurnPrinter):
    """Shows a run to a person: streamed text on a terminal, plain lines elsewhere.

    `markdown`: the model writes Markdown, which a terminal shows.  Failures to print are ignored: when the terminal is
    gone, the run still ends in order.
    """

    def __init__(self, stdout: ReservedStdout, *, markdown: bool = True) -> None:
        super().__init__()
        self._stdout = stdout
        self._console = Paper(stderr=True, highlight=False, soft_wrap=True)
        self._status: Status | None = None
        # The answer on a terminal that can show Markdown.
        self._answer: MarkdownBlocks | None = None
        if markdown and stdout.is_terminal and not self._console.is_dumb_terminal:
            self._answer = MarkdownBlocks()
        self._answered = False
        self._at_line_start = True

    @property
    def one_reader(self) -> bool:
        """Whether stdout and stderr lead to one place, so that a reason on both would be read twice."""
        return self._stdout.same_as_stderr

    # ---- View

    def run_started(self, text: str, source: str | None) -> None:
        """Print nothing: the prompt is in the command line."""

    def run_ended(self, error: str | None, aborted: bool) -> None:
        """Stop the spinner; the mode prints the error."""
        self.rest()

    def injected(self, text: str, source: str | None) -> None:
        """Print a message of a hook; print mode has no others."""
        self._print(sent(text, source))

    def text(self, delta: str) -> None:
        """Stream the model's words to a terminal: a block of Markdown as soon as it is finished."""
        if self._answer is not None:
            self._write_blocks(self._answer.feed(delta))
            if (unfinished := self._answer.unfinished) is not None:
                self._turn(Text(last_line(unfinished.text)))
            return
        self.rest()
        if self._stdout.is_terminal:
            self._stdout.write(delta)
            self._at_line_start = delta.endswith("\n")

    def thinking(self, delta: str) -> None:
        """Print nothing: print mode shows the answer."""

    def _write_blocks(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self.rest()
            if self._answered and not block.joined:
                self._stdout.write("\n")
            self._answered = True
            if block.verbatim:
                self._stdout.write(uncoloured(block.text))
            else:
                self._stdout.write_shown(drawn(Rendered(block.text), self._console.width))

    def _end_answer(self) -> None:
        if self._answer is not None:
            self._write_blocks(self._answer.end())

    # ---- the command's own

    def answer(self, text: str) -> None:
        """Print the answer, unless it has been streamed."""
        self._end_answer()
        self.rest()
        if not self._stdout.is_terminal:
            self._stdout.write(text if text.endswith("\n") else f"{text}\n")

    def rest(self) -> None:
        """Stop the spinner."""
        if self._status is not None:
            with suppress(OSError):
                self._status.stop()
            self._status = None

    def _wait(self, call_id: str, status: str) -> None:
        """Turn the spinner, on a terminal."""
        self._running[call_id] = status
        self._end_answer()
        self._turn(Text(harmless("; ".join(self._running.values()))))

    def _turn(self, text: Text) -> None:
        """Turn the spinner beside a text of one line."""
        if not self._console.is_terminal:
            return
        with suppress(OSError):
            self._end_line()
            # A longer line would be wrapped, and its first part stay on the screen.
            text.truncate(max(self._console.width - 4, 1), overflow="ellipsis")
            if self._status is None:
                self._status = self._console.status(text)
                self._status.start()
            else:
                self._status.update(text)

    def _print(self, line: Text) -> None:
        self._end_answer()
        self.rest()
        with suppress(OSError):
            self._end_line()
            # Elsewhere, a program reads lines.
            lines = hanging(line, self._console.width, "", "  ") if self._console.is_terminal else [line]
            for each in lines:
                self._console.print(each)
        for call_id, status in list(self._running.items())[-1:]:  # other calls still run
            self._wait(call_id, status)

    def _end_line(self) -> None:
        if not self._at_line_start:
            self._stdout.write("\n")
            self._at_line_start = True


class JsonScreen(Screen):
    """Shows a run to a program: one JSON event per line on stdout, and no answer there."""

    def text(self, delta: str) -> None:
        """Print nothing: the words are in the event of their message."""

    def answer(self, text: str) -> None:
        """Print nothing: the words are in the event of their message."""

    @property
    def one_reader(self) -> bool:
        """`False`: the reader of the events is a program."""
        return False

    def event(self, event: Event[Any]) -> None:
        """Print an event in its wire form."""
        self._stdout.write(to_json(event).decode() + "\n")


class QuietScreen(Screen):
    """The screen of `-q`: prints the answer on stdout, and only warnings and errors on stderr."""

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
        """Print nothing, because the answer names the blocked calls."""

    def injected(self, text: str, source: str | None) -> None:
        """Print nothing."""


def outcome_line(
    call: Ended, seconds: float | None = None, *, short: bool = False, remedy: Callable[[str], str] = str
) -> Text:
    """Return the line with a call and its outcome.

    `seconds`: `None` where they are not known; `short`: with its main argument only; `remedy`: returns the way to allow a
    blocked call in the words of the place.
    """
    shown = _main(call) if short else call.input
    line = Text(f"• {harmless(call_line(call.name, _with_breaks(call.name, shown)))}")
    line.stylize("bold", 0, len(f"• {harmless(call.name)}"))
    line.append(" → ")
    took = "" if seconds is None else f" ({seconds:.1f} s)"
    if call.is_blocked:
        word = "not run" if call.detail("cause") == "schema" else "blocked"
        # The reason comes from the output, where redaction has hidden the secrets.
        reason, way = call.refusal or call.detail("reason"), remedy(call.detail("remedy"))
        line.append(harmless(f"{word}: {reason}{f'; {way}' if way else ''}"), "bold red")
    elif is_aborted(call.output):
        line.append(f"stopped{took}", "yellow")
    elif call.output.is_error:
        line.append(f"error{took}", "red")
    else:
        line.append(f"ok{took}", "green")
    return line


def drawn(renderable: RenderableType, columns: int) -> str:
    """Return a renderable as it is written to a terminal; texts in it are harmless."""
    file = io.StringIO()
    Paper(force_terminal=True, highlight=False, width=columns, file=file).print(renderable, end="")
    return file.getvalue()


def sent(text: str, source: str | None) -> Text:
    """Return the line for a message to the agent, with the hook that sent it."""
    sender = Text() if source is None else Text(f"[{harmless(short(source))}] ", "magenta")
    return Text.assemble(("> ", "bold"), sender, (harmless(text), "bold"))


def _main(call: Ended) -> object:
    name = MAIN_ARGUMENT.get(call.name, "")
    return {name: call.input[name]} if isinstance(call.input, Mapping) and name in call.input else call.input


def _with_breaks(name: str, input: object) -> object:
    """Return an input with a sign for each line break of its main argument, which would be another command without."""
    key = MAIN_ARGUMENT.get(name, "")
    main = input.get(key) if isinstance(input, Mapping) else None
    if not isinstance(input, Mapping) or not isinstance(main, str) or "\n" not in main.strip():
        return input
    return {**input, key: " ⏎ ".join(line.strip() for line in main.strip().split("\n"))}


def _line(call: ToolCallContent) -> str:
    return call_line(call.name, call.invalid or _with_breaks(call.name, call.arguments))
