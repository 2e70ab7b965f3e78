"""What the built-in tools share: how they refuse and how they cut long output.

The model reads what a tool returns, so a failure is text that says what to do next, and every output has a size it
cannot exceed.  Above: the tools, listing.  Below: tool, content, errors, anyio.
"""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

from agent_hooks.storage.files import StorageError
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import OnUpdate, ToolDetails, Truncation

MAX_LINES = 2000  # lines of one output
MAX_BYTES = 50 * 1024  # bytes of UTF-8 of one output, without the notes
SEARCH_SECONDS = 30.0  # how long find and grep may look
BINARY_PROBE = 8192  # bytes at the start of a file in which a NUL makes it binary


class Refused(Exception):  # noqa: N818  # not an error of ours: it carries the text of an error result
    """Ends a tool's run with an error result; its text is what the model reads."""


class BuiltinTool(ABC):
    """One built-in tool: works in `cwd`, keeps the full text of cut output in the folder `output_directory()` names.

    A subclass writes `run` and raises `Refused` for whatever the model can put right.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]

    def __init__(self, cwd: str, output_directory: Callable[[], Path]) -> None:
        self.cwd = cwd
        self._output_directory = output_directory

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Run the tool and return its output; what the model can put right comes back with `is_error`."""
        try:
            return await self.run(input, on_update)
        except (Refused, StorageError) as exc:
            return ToolOutput(clean(str(exc)), is_error=True)

    @abstractmethod
    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        """Do the work; raise `Refused` to end with an error result."""

    def resolve(self, path: str) -> str:
        """Return `path` made absolute: `~` is the home directory, a relative path starts at `cwd`."""
        check_text(path, "the path")
        return os.path.abspath(os.path.join(self.cwd, os.path.expanduser(path)))

    def output_file(self) -> BinaryIO:
        """Open a new file for the full text of an output; the caller closes it.  Raises `OSError`."""
        directory = self._output_directory()
        directory.mkdir(parents=True, exist_ok=True)
        fd, path = tempfile.mkstemp(prefix=f"{self.name}-", suffix=".txt", dir=directory)
        return open(path, "wb", opener=lambda *_: fd)  # not fdopen: the file's name is its path

    def keep(self, text: str) -> str | None:
        """Write the full text of a cut output to a file and return its path, `None` when there is no room for it."""
        try:
            with self.output_file() as file:
                file.write(text.encode())
        except OSError:  # the shown part is still of use; the note then names no file
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
    """Return the JSON Schema of the globs that find and grep leave out."""
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


def check_text(text: str, what: str) -> None:
    """Refuse a text no system call takes: one with a NUL or with half a surrogate pair."""
    if "\0" in text:
        raise Refused(f"{what} contains a NUL character; leave it out")
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise Refused(f"{what} contains half a surrogate pair; write the whole character") from None


def clean(text: str) -> str:
    """Return `text` with `?` for what is no character in UTF-8, so that it can be sent as JSON."""
    return text.encode("utf-8", "replace").decode()


def printable(name: str) -> str:
    r"""Return a file's name on one line, with escapes (`\n`, `\udcff`) for what cannot be printed."""
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def with_line(text: str, line: str) -> str:
    """Return `text` with `line` below it."""
    return text + line if not text or text.endswith("\n") else f"{text}\n{line}"


def count(number: int, thing: str) -> str:
    """Return `1 line`, `2 lines`, `2 matches`, `2 entries`."""
    plural = {"match": "matches", "entry": "entries"}.get(thing, f"{thing}s")
    return f"{number} {thing if number == 1 else plural}"


def lines_of(text: str | bytes) -> int:
    """Return how many lines `text` has; the last one needs no newline."""
    newline: Any = "\n" if isinstance(text, str) else b"\n"
    return text.count(newline) + (1 if text and not text.endswith(newline) else 0)


# ---- cutting ---------------------------------------------------------------------------------------------------------


def cut_head(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> tuple[str, Truncation | None]:
    """Return the first whole lines of `text` that fit, and how it was cut, `None` if it was not.

    A first line that alone is too long is cut inside, between two characters.
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
    """Return the last whole lines of `text` that fit, and how it was cut, `None` if it was not.

    A last line that alone is too long is cut inside, between two characters.
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
        # the newline before the first byte that fits counts too: then that byte begins a line
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
    """Return the output of a tool that lists: the lines `shown`, cut to the limits, of all the lines in `full`.

    When lines are missing, all of them are kept in a file, and a note below says so; `of` is the note's words for what
    there is, for example `700 files`.
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
