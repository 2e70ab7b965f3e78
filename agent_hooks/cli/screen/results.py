"""The result of a tool call as lines below it: the diff of a change, or the first lines of its output.

The model reads the whole output; these lines are for the person, who can see all of them in the pager.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from agent_hooks.cli.screen.paper import Paper
from agent_hooks.errors import count
from agent_hooks.host.agent import is_aborted
from agent_hooks.pipeline.edits import diff_of
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.ui.dialogs import line_style
from agent_hooks.ui.fitting import wrap
from agent_hooks.ui.harmless import coloured, harmless, overwritten, uncoloured
from agent_hooks.values.content import ToolCallContent, ToolOutput, ToolResultMessage

OWN = "!"
"""The name of a command of the person, in the place of a tool's."""
OWN_NOTE = "The person ran this command, and has seen its output:\n"
"""The beginning of the text with which the model learns of it."""


class Limits(NamedTuple):
    """The most lines of each kind that are shown, and the most characters of a line.

    `output`: of a call, or of a thought; `own`: of a command of the person, who has asked for them; `sent`: of a message.
    """

    output: int
    own: int
    diff: int
    sent: int
    characters: int


FOLDED = Limits(output=5, own=30, diff=40, sent=12, characters=400)
"""The limits of the conversation."""
WHOLE = Limits(*[sys.maxsize] * 5)
"""The limits of the pager."""
# No call of these is worth more than a line: the model reads a file, and `write` says that it has written.
_SILENT = ("read", "write")
_STYLES = {"class:added": "green", "class:removed": "red"}


class Ended(NamedTuple):
    """A tool call that has ended, live or in a session that is gone on with.

    `name`: of the tool; `input`: as the tool got it; `is_blocked`: it did not run; `refusal`: the person's No, which
    stands above the call with its question, empty for any other block.
    """

    name: str
    input: object
    output: ToolOutput
    is_blocked: bool
    refusal: str = ""

    @classmethod
    def of(cls, judged: JudgedCall, output: ToolOutput) -> Ended:
        """Return a call that has just ended."""
        block = judged.block
        refusal = f"you said no{f': {block.said}' if block.said else ''}" if block and block.cause == "user" else ""
        return cls(judged.tool.name, judged.input, output, block is not None, judged.engine.hide(refusal))

    @classmethod
    def from_result(cls, call: ToolCallContent, result: ToolResultMessage) -> Ended:
        """Return a call of a session."""
        output = ToolOutput(result.content, result.details, result.is_error)
        return cls(call.name, call.invalid or call.arguments, output, _status(output) == "blocked")

    def detail(self, name: str) -> str:
        """Return a field of the details, empty where there is none."""
        details = self.output.details
        return str(details.get(name, "")) if isinstance(details, Mapping) else ""


def own_command(line: str) -> str | None:
    """Return the command of a line of the person that is one; `None` for a message, an image of Markdown for example."""
    if not line.startswith(OWN) or line.startswith(f"{OWN}[") or "\n" in line.strip():
        return None
    return line.removeprefix(OWN).strip() or None


def _status(output: ToolOutput) -> object:
    return output.details.get("status") if isinstance(output.details, Mapping) else None


def planned_diff(judged: JudgedCall) -> str:
    """Return the diff of a `write` that is about to run; it is empty for every other call.

    The secrets in it are hidden as in a result.  `edit` returns its own diff.
    """
    if judged.block is not None or judged.tool.name != "write":
        return ""
    return judged.engine.hide(diff_of("write", judged.input, judged.surroundings.cwd))


def shown_diff(call: Ended, planned: str = "") -> str:
    """Return the diff of a call that has ended, without the names of the file; `planned`: of `planned_diff`."""
    if call.is_blocked or call.output.is_error:
        return ""
    diff = call.output.text if call.name == "edit" else planned
    lines = diff.split("\n")
    named = len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")
    return "\n".join(lines[2:] if named else lines)


def result_lines(call: Ended, diff: str, limits: Limits = FOLDED) -> Iterator[Text]:
    """Yield the lines below a call that has ended; `diff`: of `shown_diff`."""
    output = call.output

    def shown(lines: Iterable[str]) -> Iterator[Text]:
        return (_output_line(line, limits.characters) for line in lines)

    if call.is_blocked:
        return
    if diff:
        yield from diff_lines(diff, limits)
    elif is_aborted(output):
        # The marker says no more than the call above it, and the last lines show how far it came.
        lines = _lines(output.text.partition("\n")[2])
        if left := len(lines) - limits.output if len(lines) > limits.output + 1 else 0:
            yield Text(f"… {count(left, 'line')} before (Ctrl-O)", "bright_black")
        yield from shown(lines[left:])
    elif output.is_error or call.name not in _SILENT or limits is WHOLE:
        lines = _lines(output.text)
        # The reason of a failure is in the last line: an exit code, the error of a traceback.
        reason = lines[-1:] if output.is_error else []
        most = limits.own if call.name == OWN else limits.output
        yield from first(lines[: len(lines) - len(reason)], most, lambda line: _output_line(line, limits.characters))
        yield from shown(reason)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def first(lines: Sequence[str], most: int, show: Callable[[str], Text]) -> Iterator[Text]:
    """Yield the first lines, and the number of the others with the key that shows them."""
    # One line in the place of the note that one line is left out.
    shown = lines if len(lines) <= most + 1 else lines[:most]
    yield from map(show, shown)
    if left := len(lines) - len(shown):
        yield Text(f"… {count(left, 'more line')} (Ctrl-O)", "bright_black")


def diff_lines(diff: str, limits: Limits = FOLDED) -> Iterator[Text]:
    """Yield the first lines of a diff, and the number of the others."""
    return first(diff.split("\n"), limits.diff, lambda line: _diff_line(line, limits.characters))


def _diff_line(line: str, longest: int) -> Text:
    line = harmless(line)
    shown = line if len(line) <= longest else line[:longest] + _more_characters(len(line) - longest)
    return Text(shown, _STYLES.get(line_style(line), "bright_black"))


def _output_line(line: str, longest: int) -> Text:
    line = overwritten(line)
    shown = coloured(line[:longest])
    text = Text.from_ansi(f"{shown}\x1b[0m") if "\x1b" in shown else Text(shown)
    if len(line) > longest:
        text.append(_more_characters(len(line) - longest), "bright_black")
    return text


def _more_characters(left: int) -> str:
    return f"… {left:,} more characters"


def thought_lines(thought: str, columns: int, limits: Limits = FOLDED) -> list[Text]:
    """Return the first lines of a thought of the model, and the number of the others."""
    parts = (part for line in thought.split("\n") if line.strip() for part in wrap(harmless(line.strip()), columns - 2))
    return [*first(list(parts), limits.output, lambda line: Text(line, "italic bright_black"))]


def sent_lines(text: str, limits: Limits = FOLDED) -> str:
    """Return the first lines of a message, and the number of the others."""
    return "\n".join(line.plain for line in first(text.split("\n"), limits.sent, Text))


def last_lines(text: str, most: int = 1) -> list[str]:
    """Return the last lines of a tool's output so far, without colours."""
    lines = text[-FOLDED.characters * (most + 4) :].rstrip().splitlines()
    return [uncoloured(overwritten(line)) for line in lines[-most:]]


def last_line(text: str) -> str:
    """Return the last line of a tool's output so far, without colours."""
    return "".join(last_lines(text))


def indented(lines: Iterable[Text], columns: int, later: int = 2) -> Iterator[Text]:
    """Yield lines behind an indent, wrapped at words; `later`: the columns of the indent of the rest of a line."""
    for line in lines:
        yield from hanging(line, columns, "  ", " " * later)


def hanging(line: Text, columns: int, first: str | Text, later: str) -> Iterator[Text]:
    """Yield a line in parts that fit into the columns, each behind an indent."""
    line.expand_tabs(8)
    parts = line.wrap(Paper(width=columns), max(columns - len(later), 1), overflow="fold")
    for index, part in enumerate(parts):
        part.rstrip()
        yield Text.assemble(later if index else first, part)
