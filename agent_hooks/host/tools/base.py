"""The common parts of the built-in tools: error results and limits of the output.

The model reads the output of a tool, so a failure is a text with the next step, and every output has a limit.
"""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from agent_hooks.errors import count
from agent_hooks.storage.files import StorageError
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import OnUpdate, ToolDetails, Truncation

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor

MAX_LINES = 2000
"""The most lines of one output."""
MAX_BYTES = 50 * 1024
"""The most bytes of one output, in UTF-8 and without the notes."""
SEARCH_SECONDS = 30.0
"""The time limit of find and grep."""
BINARY_PROBE = 8192
"""A file with a NUL in so many bytes at its start is binary."""


class Refused(Exception):  # noqa: N818  # not an error of ours: it carries the text of an error result
    """Ends a tool's run with an error result, whose text the model reads."""


class BuiltinTool(ABC):
    """A built-in tool; it works in `cwd`, and keeps the full text of cut output in the folder `output_directory()`.

    `redactor`: hides the secrets in that text.

    A subclass defines `run`, which raises `Refused` for a mistake that the model can correct.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]

    def __init__(self, cwd: str, output_directory: Callable[[], Path], redactor: Redactor | None = None) -> None:
        self.cwd = cwd
        self.redactor = redactor
        self._output_directory = output_directory

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Run the tool and return its output; a mistake that the model can correct is an output with `is_error`."""
        try:
            return await self.run(input, on_update)
        except (Refused, StorageError) as exc:
            return ToolOutput(clean(str(exc)), is_error=True)

    @abstractmethod
    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        """Do the tool's work; raises `Refused` to end with an error result."""

    def resolve(self, path: str) -> str:
        """Return the absolute path: `~` is the home directory, a relative path begins at `cwd`."""
        check_text(path, "the path")
        return os.path.abspath(os.path.join(self.cwd, os.path.expanduser(path)))

    def output_file(self) -> BinaryIO:
        """Open a new file for the full text of an output; the caller closes it.  Raises `OSError`."""
        directory = self._output_directory()
        directory.mkdir(parents=True, exist_ok=True)
        fd, path = tempfile.mkstemp(prefix=f"{self.name}-", suffix=".txt", dir=directory)
        # Unlike `os.fdopen`, this gives the file its path as its name.
        return open(path, "wb", opener=lambda *_: fd)

    def keep(self, text: str) -> str | None:
        """Write the full text of a cut output to a file and return its path, `None` when it cannot be written."""
        try:
            with self.output_file() as file:
                file.write((text if self.redactor is None else self.redactor.redact(text)[0]).encode())
        # The shown part of the output is still useful; its note says that the full text is lost.
        except OSError:
            return None
        return file.name


def object_schema(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text_schema(description: str) -> dict[str, Any]:
    """Return the JSON Schema of a text that is not empty."""
    return {"type": "string", "minLength": 1, "description": description}


def exclude_schema() -> dict[str, Any]:
    """Return the JSON Schema of the input `exclude` of find and grep."""
    return {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "description": "Leave out files and directories that fit one of these globs, for example dist/ or *.min.js; one "
        "that ends with / is for directories",
    }


def number_schema(description: str, minimum: int = 1) -> dict[str, Any]:
    """Return the JSON Schema of a whole number from `minimum`."""
    return {"type": "integer", "minimum": minimum, "description": description}


# ---- text ------------------------------------------------------------------------------------------------------------


def check_text(text: str, subject: str) -> None:
    """Raise `Refused` for a text that no system call takes: with a NUL or with half a surrogate pair."""
    if "\0" in text:
        raise Refused(f"{subject} contains a NUL character; leave it out")
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise Refused(f"{subject} contains half a surrogate pair; write the whole character") from None


def clean(text: str) -> str:
    """Return `text` with `?` for each half of a surrogate pair, so that it can be sent as JSON."""
    return text.encode("utf-8", "replace").decode()


def with_line(text: str, line: str) -> str:
    """Return `text` with `line` below it."""
    return text + line if not text or text.endswith("\n") else f"{text}\n{line}"


def lines_of(text: str | bytes) -> int:
    """Return the number of lines in `text`; the last line needs no newline."""
    newline: Any = "\n" if isinstance(text, str) else b"\n"
    return text.count(newline) + (1 if text and not text.endswith(newline) else 0)


# ---- cutting ---------------------------------------------------------------------------------------------------------


def cut_head(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> tuple[str, Truncation | None]:
    """Return the first whole lines of `text` that fit, and the truncation, `None` when all lines fit.

    A first line that is too long by itself is cut between two characters.
    """
    by: Literal["lines", "bytes"] | None = None
    kept = text.encode()
    if lines_of(kept) > max_lines:
        by, kept = "lines", b"".join(line + b"\n" for line in kept.split(b"\n", max_lines)[:max_lines])
    if len(kept) > max_bytes:
        by = "bytes"
        end = kept.rfind(b"\n", 0, max_bytes) + 1
        kept = kept[: end or _boundary(kept, max_bytes, -1)]
    return _cut(text, kept, by)


def cut_tail(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> tuple[str, Truncation | None]:
    """Return the last whole lines of `text` that fit, and the truncation, `None` when all lines fit.

    A last line that is too long by itself is cut between two characters.
    """
    by: Literal["lines", "bytes"] | None = None
    kept = text.encode()
    if lines_of(kept) > max_lines:
        ended = kept.endswith(b"\n")
        lines = kept[:-1].rsplit(b"\n", max_lines) if ended else kept.rsplit(b"\n", max_lines)
        by, kept = "lines", b"\n".join(lines[-max_lines:]) + (b"\n" if ended else b"")
    if len(kept) > max_bytes:
        by = "bytes"
        first = len(kept) - max_bytes
        # When the byte before the first one that fits is a newline, the first one begins a line.
        start = kept.find(b"\n", first - 1, len(kept) - 1) + 1
        kept = kept[start or _boundary(kept, first, 1) :]
    return _cut(text, kept, by)


def _boundary(data: bytes, index: int, step: int) -> int:
    """Return the nearest index in the direction of `step` at which a UTF-8 character starts."""
    while 0 < index < len(data) and data[index] & 0xC0 == 0x80:
        index += step
    return index


def _cut(text: str, kept: bytes, by: Literal["lines", "bytes"] | None) -> tuple[str, Truncation | None]:
    if by is None:
        return text, None
    return kept.decode(), Truncation(
        truncated=True,
        truncated_by=by,
        total_lines=lines_of(text),
        total_bytes=len(text.encode()),
        output_lines=lines_of(kept),
        output_bytes=len(kept),
    )


def listing_output(
    tool: BuiltinTool, shown: Sequence[str], full: Sequence[str], details: type[ToolDetails], *, of: str
) -> ToolOutput:
    """Return the output of a tool that lists: the lines `shown`, cut to the limits.

    `full`: all lines that there are.  When the output lacks some, all lines are kept in a file, and a note below names
    it; `of`: the total in the note, for example `700 files`.
    """
    text, truncation = cut_head("\n".join(shown))
    if truncation is None and len(shown) == len(full):
        return ToolOutput(text)
    whole = "\n".join(full)
    kept = Truncation(
        truncated=True,
        truncated_by="lines" if truncation is None else truncation.truncated_by,
        total_lines=len(full),
        total_bytes=len(whole.encode()),
        output_lines=lines_of(text),
        output_bytes=len(text.encode()),
    )
    path = tool.keep(whole)
    where = f"the full text is in {path}" if path else "the full text could not be kept; ask for less"
    note = f"[cut: the first {count(kept.output_lines, 'line')} of {kept.total_lines} ({of}); {where}]"
    return ToolOutput(with_line(text, note), details(truncation=kept, full_output_path=path))
