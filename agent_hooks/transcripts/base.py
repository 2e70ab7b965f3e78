"""The protocol of a reader of recorded sessions: lines of a file in, tool calls and their ends out.  It does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.errors import AgentHooksError

Then = Literal["ran", "failed", "denied", "aborted", "invalid", "unknown"]


class TranscriptError(AgentHooksError):
    """A file is not a recorded session, or a line of it cannot be read."""


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A recorded tool call, in our vocabulary.

    `key`: the same for every copy of this call; `time`: ISO 8601, as recorded; `native`: the payload for the bridge of
    the agent that recorded the call; `invalid`: its input was not a JSON object, so no hook got the call; `refused`: the
    reason why the bridge denies the call without asking a hook.  A field that the record lacks is `None`.
    """

    key: object
    tool_call_id: str
    tool_name: str
    input: Mapping[str, Any]
    cwd: str | None = None
    session_id: str | None = None
    agent_id: str = "main"
    time: str | None = None
    native: Mapping[str, Any] | None = None
    invalid: bool = False
    refused: str | None = None


class RecordedEnd(Struct, frozen=True):
    """The end of a call when it was recorded.

    `ran`: without an error; `failed`: it ran, with an error; `denied`: it did not run; `aborted`: the person, or the end
    of the agent, stopped it; `invalid`: there is no such tool, or its schema refuses the input, so no hook got the call.
    """

    tool_call_id: str
    then: Then


class Reader(Protocol):
    """Reads one file, line after line, in order.  `tools`: the vocabulary of the agent that wrote it."""

    name: str
    tools: Sequence[ToolWords]

    def recognises(self, line: bytes) -> bool:
        """Tell whether such a line near the beginning of a file proves that the file has this format."""
        ...

    def read(self, line: bytes) -> Sequence[RecordedCall | RecordedEnd]:
        """Return the calls and ends in a line; raises `TranscriptError` when the line cannot be read."""
        ...
