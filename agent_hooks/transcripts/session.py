"""Our own session files, `.agent/sessions/*.jsonl`.

A call is identified by its id and its entry's time: a branch begins with a copy of the other session's entries, and the
ids of some models start again in each session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.errors import describe
from agent_hooks.host.session_file import VERSION
from agent_hooks.transcripts.base import MALFORMED, Place, RecordedCall, RecordedEnd, Then, TranscriptError
from agent_hooks.values.content import AssistantMessage, Entry, MessageEntry, SessionHeader, ToolResultMessage

_entries = msgspec.json.Decoder(Entry)


class SessionReader:
    """Reads one session file."""

    name, title = "session", "agent-hooks"
    # Each project has its own.
    place: Place | None = None
    tools: Sequence[ToolWords] = ()

    def __init__(self, path: str) -> None:
        self._header: SessionHeader | None = None

    def recognises(self, line: bytes) -> bool:
        """Return whether a line is the header of a session, or a message."""
        try:
            return isinstance(_entries.decode(line), SessionHeader | MessageEntry)
        except MALFORMED:
            return False

    def read(self, line: bytes) -> Sequence[RecordedCall | RecordedEnd]:
        """Return the calls and ends in an entry; raises `TranscriptError`."""
        try:
            entry: Entry = _entries.decode(line)
        except MALFORMED as exc:
            raise TranscriptError(f"is not an entry of a session: {describe(exc)}") from None
        if isinstance(entry, SessionHeader):
            if entry.version > VERSION:
                raise TranscriptError(
                    f"a newer agent-hooks wrote it (version {entry.version}, this one reads {VERSION}); update"
                )
            self._header = entry
        if not isinstance(entry, MessageEntry):
            return ()
        if isinstance(entry.message, ToolResultMessage):
            return [RecordedEnd(entry.message.tool_call_id, _then(entry.message))]
        if isinstance(entry.message, AssistantMessage):
            header = self._header
            return [
                RecordedCall(
                    key=(entry.timestamp, call.id),
                    tool_call_id=call.id,
                    tool_name=call.name,
                    input=call.arguments,
                    cwd=header.cwd if header else None,
                    session_id=header.id if header else None,
                    time=entry.timestamp,
                    invalid=call.invalid is not None,
                )
                for call in entry.message.tool_calls
            ]
        return ()

    def shown(self, line: bytes, tool_call_id: str) -> str | None:
        """Return the result of a call in an entry, as the model saw it; `None` for an entry that has none."""
        try:
            entry: Entry = _entries.decode(line)
        except MALFORMED:
            return None
        message = entry.message if isinstance(entry, MessageEntry) else None
        if not isinstance(message, ToolResultMessage) or message.tool_call_id != tool_call_id:
            return None
        return message.text


def _then(result: ToolResultMessage) -> Then:
    """Return the end of a call by the fields of its result; its text may be any tool's."""
    if not result.is_error:
        return "ran"
    status = result.details.get("status") if isinstance(result.details, Mapping) else None
    return "denied" if status == "blocked" else "aborted" if status == "aborted" else "failed"
