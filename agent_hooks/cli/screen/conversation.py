"""The conversation above the prompt line: messages, answers, thoughts, and calls with their results."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from rich.text import Text

from agent_hooks.cli.screen.live import Live
from agent_hooks.cli.screen.markdown import Block, MarkdownBlocks, Rendered
from agent_hooks.cli.screen.output import TurnPrinter, outcome_line, sent
from agent_hooks.cli.screen.paper import Paper
from agent_hooks.cli.screen.results import (
    FOLDED,
    OWN,
    OWN_NOTE,
    WHOLE,
    Ended,
    Limits,
    diff_lines,
    hanging,
    indented,
    planned_diff,
    result_lines,
    sent_lines,
    shown_diff,
    thought_lines,
)
from agent_hooks.guards.base import at_prompt
from agent_hooks.host.exchanges import summary_of
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.trust.policy import REMEDY
from agent_hooks.ui.base import NotifyType
from agent_hooks.ui.harmless import harmless, uncoloured
from agent_hooks.values.content import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolOutput,
    ToolResultMessage,
    UserMessage,
)

STYLES = {"info": "cyan", "warning": "yellow", "error": "bold red", "answer": "magenta"}
# The printed pieces that are kept: a day's work has some thousands.
_MOST_PIECES = 10_000
MARKS = {"info": "i", "warning": "!", "error": "!", "answer": "?"}


class Conversation(TurnPrinter):
    """Prints the conversation; a subclass owns the terminal.

    `print` and `print_line` may be called from any thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._live = Live(self._running)
        self._answer = MarkdownBlocks()
        # Every printed piece with whole texts in place of folded ones, for a pager, as functions that draw it.
        self._transcript: deque[Callable[[], str]] = deque(maxlen=_MOST_PIECES)
        # Whether pieces are printed, and not in the transcript alone.
        self._seen = True
        # The kind of the last thing that was printed: a blank line is between the answer and everything else.
        self._last = ""
        # Id of a running call → the diff of its change.
        self._diffs: dict[str, str] = {}
        self._paper = Paper(
            force_terminal=True, color_system="auto", highlight=False, markup=False, file=io.StringIO(), width=80
        )

    # ---- the terminal

    @property
    @abstractmethod
    def columns(self) -> int:
        """The columns of the terminal."""

    @abstractmethod
    def refresh(self) -> None:
        """Draw the lines below the conversation anew."""

    @abstractmethod
    def busy(self, status: str | None) -> None:
        """Show a status with a spinner, `None` for none."""

    @abstractmethod
    def delivered(self, text: str) -> None:
        """Take note that a message of the person has reached the agent."""

    @abstractmethod
    def _write(self, text: str) -> None:
        """Write a text above the prompt line; from any thread."""

    @abstractmethod
    def _on_loop(self, function: Callable[..., None], *args: str) -> None:
        """Call a function in the screen's thread: at once if this is it, else soon."""

    # ---- View

    def run_started(self, text: str, source: str | None) -> None:
        """Print the prompt that the agent begins to work on."""
        self.busy("working")
        self.injected(text, source)

    def run_ended(self, error: str | None, aborted: bool) -> None:
        """Print the error, or that the run was aborted."""
        self.busy(None)
        self._running.clear()
        self._diffs.clear()
        self._live.clear()
        self._end_answer()
        if error is not None:
            self.error(error)
        elif aborted:
            self.error("aborted")
        self.refresh()

    def injected(self, text: str, source: str | None) -> None:
        """Print a message to the agent, and the hook that sent it."""
        if source is None:
            self.delivered(text)
        self._end_answer()
        self._last = ""
        self._unfold(lambda limits: [Text(), *self._wrapped(sent(sent_lines(text, limits), source))])

    def earlier(self, messages: Sequence[Message], *, seen: bool = True) -> None:
        """Print the messages of a session that is gone on with, as they were shown when they came.

        Without `seen`, they are in the transcript alone.
        """
        self._seen = seen
        try:
            self._earlier(messages)
        finally:
            self._seen = True

    def _earlier(self, messages: Sequence[Message]) -> None:
        results = {each.tool_call_id: each for each in reversed(messages) if isinstance(each, ToolResultMessage)}
        for message in messages:
            if isinstance(message, UserMessage):
                if (summary := summary_of(message)) is not None:
                    self.rule("summed up")
                    self.text(summary)
                elif message.is_context and message.source is None:
                    # The other notes tell the model of an act whose line is not in the session.
                    if message.sent.startswith(OWN_NOTE):
                        self._end_answer()
                        self._note(message.sent)
                else:
                    self.injected(message.sent, message.source)
            elif isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, ThinkingContent):
                        self.thinking(block.thinking)
                    elif isinstance(block, TextContent):
                        self.text(block.text)
                self._end_answer()
                for call in message.tool_calls:
                    if call.id in results:
                        self._print_call(Ended.from_result(call, results[call.id]))
        self._end_answer()
        self._last = ""

    def warning(self, text: str) -> None:
        """Print a warning; `/trust` is at hand here."""
        super().warning(f"{text.removesuffix(REMEDY)}/trust" if text.endswith(REMEDY) else text)

    def _note(self, text: str) -> None:
        """Print a text about an act of the person, in grey."""

        def lines(limits: Limits) -> Iterator[Text]:
            yield Text()
            for line in sent_lines(text.removeprefix(OWN_NOTE), limits).split("\n"):
                yield from self._wrapped(_stray(line))

        self._unfold(lines)

    def folded(self, text: str) -> None:
        """Print the first lines of a text, in grey."""
        self._unfold(lambda limits: indented(thought_lines(text, self.columns, limits), self.columns))

    def diff(self, text: str) -> None:
        """Print the first lines of a diff, and the number of the others."""
        self._unfold(lambda limits: indented(diff_lines(text, limits), self.columns, later=6))

    def echo(self, command: str) -> None:
        """Print a slash command that is carried out."""
        self.print(*self._wrapped(Text(f"> {harmless(command)}", "bold")))

    def rule(self, text: str) -> None:
        """Print a line between two parts of the conversation."""
        self.print(ruled(text))

    def stray(self, line: str) -> None:
        """Print a line that a hook or a program of its has printed; from any thread."""
        self._print(_stray(line))

    def text(self, delta: str) -> None:
        """Show the model's words as they come; finished blocks move up into the conversation."""
        self._end_thought()
        self._write_blocks(self._answer.feed(delta))
        self.refresh()

    def thinking(self, delta: str) -> None:
        """Show the end of the model's thought; once it has ended, its first lines are in the conversation."""
        self._write_blocks(self._answer.end())
        self._live.think(delta)
        self.refresh()

    def _end_thought(self) -> None:
        if thought := self._live.take_thought():
            if self._last:
                self.print(Text())
            self._last = "answer"
            self.folded(thought)

    def tool_runs(self, call: ToolCallContent, judged: JudgedCall) -> None:
        """Show that a tool runs, and keep the diff of its change: afterwards, the former text is gone."""
        self._live.begin(call.id)
        self._diffs[call.id] = planned_diff(judged)
        super().tool_runs(call, judged)

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Show the last lines that a tool has printed, below its call."""
        self._live.take_output(call.id, partial.text)
        self.refresh()

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Print the call and its outcome, with its diff or the first lines of its output."""
        self._end_answer()
        self._live.end(call.id)
        self._running.pop(call.id, None)
        self._print_call(Ended.of(judged, output), seconds, self._diffs.pop(call.id, ""))

    def own_runs(self, command: str) -> None:
        """Show that a command of the person runs."""
        self._live.begin(OWN)
        self._wait(OWN, f"{OWN} {command}")

    def own_progress(self, partial: ToolOutput) -> None:
        """Show the last lines that it has printed."""
        self._live.take_output(OWN, partial.text)
        self.refresh()

    def own_ended(self, command: str, output: ToolOutput, seconds: float) -> None:
        """Print it and its output, as those of a call."""
        self._running.pop(OWN, None)
        self._live.end(OWN)
        self._end_answer()
        self._print_call(Ended(OWN, command, output, is_blocked=False), seconds)

    def _print_call(self, call: Ended, seconds: float | None = None, planned: str = "") -> None:
        """Print a call and its outcome, with its diff or the first lines of its output."""
        diff = shown_diff(call, planned)
        if self._last == "answer":
            self.print(Text())
        self._last = "call"
        # The diff has all that the input has.
        self._print(outcome_line(call, seconds, short=bool(diff), remedy=at_prompt))
        # The rest of a line of a diff must not pass for another line.
        later = 6 if diff else 2
        self._unfold(lambda limits: indented(result_lines(call, diff, limits), self.columns, later))

    def _wait(self, call_id: str, status: str) -> None:
        self._running[call_id] = status
        self._end_answer()
        self.refresh()

    def _end_answer(self) -> None:
        self._end_thought()
        self._write_blocks(self._answer.end())

    def _pause_answer(self) -> None:
        self._write_blocks(self._answer.pause())

    def _write_blocks(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            gap = "\n" if self._last in ("answer", "call") and not block.joined else ""
            self._last = "answer"
            self._put(gap + self._rendered(block))

    def _rendered(self, block: Block) -> str:
        """Return a block as it is printed; a line that is too long for Markdown is left to the terminal to wrap."""
        if block.verbatim:
            return uncoloured(block.text)
        return self._captured(Rendered(block.text))

    # ---- printing

    def print_line(self, text: str, type: NotifyType | Literal["answer"]) -> None:
        """Print a notice on a line of its own; from any thread."""
        self._print(Text(f"{MARKS[type]} {harmless(text)}", STYLES[type]))

    def print(self, *lines: object) -> None:
        """Print renderables of rich above the prompt line; from any thread.  Text must be harmless already."""
        self._put(self._captured(*lines))

    def transcript(self) -> str:
        """Return the whole conversation as it was printed, with the escapes of its colours."""
        return "".join(draw() for draw in list(self._transcript))

    def _put(self, text: str) -> None:
        self._transcript.append(lambda: text)
        if self._seen:
            self._write(text)

    def _unfold(self, lines: Callable[[Limits], Iterable[object]]) -> None:
        """Print lines as far as the limits of the conversation allow; the transcript has all of them."""
        self._transcript.append(lambda: self._captured(*lines(WHOLE)))
        if self._seen:
            self._write(self._captured(*lines(FOLDED)))

    def _captured(self, *lines: object) -> str:
        self._paper.width = self.columns
        with self._paper.capture() as captured:
            for line in lines:
                self._paper.print(line, end="" if isinstance(line, Rendered) else "\n")
        return captured.get()

    def _wrapped(self, line: Text) -> Iterator[Text]:
        """Yield the lines of a text, wrapped at words; all but the first have an indent."""
        return hanging(line, self.columns, "", "  ")

    def _print(self, line: Text) -> None:
        self._on_loop(self._pause_answer)
        self.print(*self._wrapped(line))


def _stray(line: str) -> Text:
    return Text(f"  {uncoloured(line.rstrip())}", "bright_black")


def ruled(text: str) -> Text:
    """Return the line between two parts of the conversation."""
    return Text(f"── {harmless(text)} ──", "bright_black")
