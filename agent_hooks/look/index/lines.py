"""Reads single lines of record files and transcripts again, at the places that the index knows."""

from __future__ import annotations

from agent_hooks.storage.files import StorageError, open_regular
from agent_hooks.transcripts import LONGEST, open_reader
from agent_hooks.transcripts.base import RecordedCall, TranscriptError
from agent_hooks.transcripts.databases import part

DATABASE = "opencode"
"""The reader whose files are databases."""


def line_at(path: str, at: int) -> bytes:
    """Return the line at an offset; empty if the file cannot be read any more."""
    try:
        with open_regular(path, path) as file:
            file.seek(at)
            return file.readline(LONGEST)
    except (StorageError, OSError):
        return b""


def transcript_line(kind: str, path: str, at: int) -> bytes:
    """Return a line of a transcript, or a part of a database; empty if it cannot be read any more."""
    if kind != DATABASE:
        return line_at(path, at)
    try:
        return part(path, at) or b""
    except TranscriptError:
        return b""


def shown_text(kind: str, path: str, line: bytes, call: str) -> str | None:
    """Return the result of a call in a line of a transcript, as the model saw it, or `None` if it is not there."""
    try:
        return open_reader(kind, path).shown(line, call) if line.strip() else None
    except TranscriptError:
        return None


def recorded_call(kind: str, path: str, line: bytes, call: str) -> RecordedCall | None:
    """Return the call with an id in a line of a transcript."""
    try:
        found = open_reader(kind, path).read(line) if line.strip() else ()
    except TranscriptError:
        return None
    calls = (each for each in found if isinstance(each, RecordedCall))
    return next((each for each in calls if each.tool_call_id == call), None)
