"""What a reader of recorded sessions is: lines of a file in, tool calls and their ends out.  It does no I/O.

Above: the readers, replaying, cli.  Below: bridges.base, errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from agent_hooks.bridges.base import ToolWords
from agent_hooks.errors import AgentHooksError

Then = Literal["ran", "failed", "denied", "aborted", "invalid", "unknown"]


class TranscriptError(AgentHooksError):
    """A file is no recorded session, or a line of one cannot be read."""


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A tool call as it was recorded, in our vocabulary.

    `key`: the same for every copy of this call; `time`: ISO 8601, as recorded; `native`: what hooks were sent of it, for
    an agent with a bridge; `invalid`: its input was no JSON object, so no hook saw it; `refused`: why the bridge denies
    it without asking a hook.  What the record lacks is `None`.
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
    """What a call came to when it was recorded.

    `ran`; `failed`: with an error; `denied`: it did not run; `aborted`: the person, or the end of the agent, stopped it;
    `invalid`: there was no such tool, or it does not take such an input, so no hook saw the call.
    """

    tool_call_id: str
    then: Then


class Reader(Protocol):
    """Reads one file, line after line, in order.  `tools`: the vocabulary of the agent that wrote it."""

    name: str
    tools: Sequence[ToolWords]

    def recognises(self, line: bytes) -> bool:
        """Tell whether only a file of this format has such a line near its beginning."""
        ...

    def read(self, line: bytes) -> Sequence[RecordedCall | RecordedEnd]:
        """Return what a line tells of tool calls; raises `TranscriptError` for one that cannot be read."""
        ...
