"""The `read` tool: lines of a text file, or an image.

A file is streamed, never loaded: memory holds the output and one chunk.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from anyio import from_thread, to_thread

from agent_hooks.errors import count
from agent_hooks.host.tools.base import (
    BINARY_PROBE,
    MAX_BYTES,
    MAX_LINES,
    BuiltinTool,
    Refused,
    cut_head,
    lines_of,
    number_schema,
    object_schema,
    text_schema,
    with_line,
)
from agent_hooks.storage.files import open_regular, refusing
from agent_hooks.values.content import ImageContent, ToolOutput
from agent_hooks.values.tool import OnUpdate, ReadToolDetails, Truncation

IMAGE_LIMIT = 5 * 1024 * 1024
"""The most bytes of an image."""
# The bytes that are read at once.
_CHUNK = 1024 * 1024


class ReadTool(BuiltinTool):
    """Reads a text file or an image."""

    name = "read"
    description = (
        f"Read a text file, at most {MAX_LINES} lines or {MAX_BYTES // 1024} KiB at once (go on with offset), or an "
        "image (png, jpeg, gif, webp)."
    )
    input_schema = object_schema(
        ["path"],
        path=text_schema("The file, absolute or relative to the working directory"),
        offset=number_schema("First line to read, from 1"),
        limit=number_schema("Number of lines to read"),
    )

    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        path = input["path"]
        # In JSON Schema, 3.0 is an integer.
        first = int(input.get("offset", 1))
        limit = min(int(input.get("limit", MAX_LINES)), MAX_LINES)
        return await to_thread.run_sync(_read, self.resolve(path), path, first, limit)


def _read(path: str, label: str, first: int, limit: int) -> ToolOutput:
    with open_regular(path, label) as file, refusing("read", label):
        start = file.read(BINARY_PROBE)
        if mime_type := _image_type(start):
            return _image(start, file, mime_type, label)
        if b"\0" in start:
            raise Refused(f"{label} is a binary file, {len(start) + sum(map(len, _chunks(file)))} bytes")
        file.seek(0)
        counted = _Count()
        _skip(file, first - 1, counted)
        part = _take(file, limit)
        taken_to = counted.bytes + len(part)
        for chunk in chain([part], _chunks(file)):
            counted.add(chunk)
    if not part and first > 1:
        raise Refused(f"offset {first} is past the end: {label} has {count(counted.lines, 'line')}")
    text, cut = cut_head(part.decode("utf-8", "replace"), limit)
    if cut is None and taken_to == counted.bytes:
        return ToolOutput(text or "(empty)")
    truncation = Truncation(
        truncated=True,
        truncated_by="lines" if cut is None else cut.truncated_by,
        total_lines=counted.lines,
        total_bytes=counted.bytes,
        output_lines=lines_of(text),
        output_bytes=len(text.encode()),
    )
    return ToolOutput(with_line(text, _note(text, first, truncation)), _details(truncation, path))


def _note(text: str, first: int, truncation: Truncation) -> str:
    last = first + truncation.output_lines - 1
    of = f"of {count(truncation.total_lines, 'line')}, {truncation.total_bytes} bytes"
    if not text.endswith("\n"):
        return (
            f"[cut: the first {truncation.output_bytes} bytes of line {last} {of}; use offset={last + 1} for the next]"
        )
    return f"[cut: lines {first} to {last} {of}; use offset={last + 1} to go on]"


def _details(truncation: Truncation, path: str) -> ReadToolDetails:
    return ReadToolDetails(truncation=truncation, full_output_path=path)


def _image_type(start: bytes) -> str | None:
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return None


def _image(start: bytes, file: BinaryIO, mime_type: str, label: str) -> ToolOutput:
    data = start + file.read(IMAGE_LIMIT + 1 - len(start))
    if len(data) > IMAGE_LIMIT:
        raise Refused(f"{label} is an image of more than {IMAGE_LIMIT // 1024 // 1024} MiB; make it smaller first")
    return ToolOutput([ImageContent(b64encode(data).decode(), mime_type)])


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        # Gigabytes take seconds, and the call may have been aborted.
        from_thread.check_cancelled()
        yield chunk


class _Count:
    """Counts the bytes and lines of a text that comes in pieces."""

    def __init__(self) -> None:
        self.bytes = 0
        self.newlines = 0
        self._open = False

    def add(self, data: bytes) -> None:
        """Count one more piece."""
        if data:
            self.bytes += len(data)
            self.newlines += data.count(b"\n")
            self._open = not data.endswith(b"\n")

    @property
    def lines(self) -> int:
        """The lines so far; the last line needs no newline."""
        return self.newlines + self._open


def _skip(file: BinaryIO, lines: int, counted: _Count) -> None:
    """Move to the start of the line after the first `lines`, or to the end."""
    while (missing := lines - counted.newlines) > 0:
        # n bytes end at most n lines, so a big step never skips too many.
        chunk = file.read(min(_CHUNK, missing)) if missing > 1000 else file.readline(_CHUNK)
        if not chunk:
            return
        from_thread.check_cancelled()
        counted.add(chunk)


def _take(file: BinaryIO, limit: int) -> bytes:
    """Return up to `limit` lines, and at most one byte more than the output's limit, which then shows that it is cut."""
    part = bytearray()
    lines = 0
    while lines < limit and len(part) <= MAX_BYTES:
        line = file.readline(MAX_BYTES + 1 - len(part))
        if not line:
            break
        part += line
        lines += 1
    return bytes(part)
