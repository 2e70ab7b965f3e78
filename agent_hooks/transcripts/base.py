"""The protocol of a reader of recorded sessions: lines of a file in, tool calls and their ends out.  It does no I/O.

`ForeignReader` is the common part of the readers of other agents whose lines are JSON objects.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

import msgspec
from msgspec import Struct

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base.happenings import CallAsked
from agent_hooks.bridges.base.verdicts import whole
from agent_hooks.bridges.base.words import BridgeError, ToolWords
from agent_hooks.errors import AgentHooksError, describe

Then = Literal["ran", "failed", "denied", "aborted", "invalid", "unknown"]


class TranscriptError(AgentHooksError):
    """A file is not a recorded session, or a line of it cannot be read."""


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A recorded tool call, in our vocabulary.

    Copies of a call have the same `key`, and a call without an id has none.  An agent that uses ids again may give two
    calls the same key.

    `time`: ISO 8601, as recorded; `native`: the payload for the bridge of
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


def is_streamed_copy(copy: RecordedCall, call: RecordedCall) -> bool:
    """Return whether `copy` is `call` with less text, or with the same text."""
    try:
        return copy.key == call.key is not None and copy.tool_name == call.tool_name and _begins(copy.input, call.input)
    except RecursionError:
        return False


def _begins(part: object, whole: object) -> bool:
    """Return whether JSON data begins other data: texts are cut, or fields and elements are missing."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        return all(name in whole and _begins(value, whole[name]) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(_begins, part, whole))
    return part == whole


class RecordedEnd(Struct, frozen=True):
    """The end of a call when it was recorded.

    `ran`: without an error; `failed`: it ran, with an error; `denied`: it did not run; `aborted`: the person, or the end
    of the agent, stopped it; `invalid`: there is no such tool, or its schema refuses the input, so no hook got the call.
    """

    tool_call_id: str
    then: Then


class Place(Struct, frozen=True):
    """Where an agent keeps its transcripts: files that fit `pattern` below a directory.

    `variable`: the environment variable that names the directory; `default`: the directory below the home without it.
    """

    default: str
    pattern: str
    variable: str = ""


class Reader(Protocol):
    """Reads one file, line after line, in order.

    `tools`: the vocabulary of the agent that wrote it; `title`: the agent's name; `place`: where the agent keeps such
    files, `None` where each project has its own.
    """

    name: str
    title: str
    place: Place | None
    tools: Sequence[ToolWords]

    def recognises(self, line: bytes) -> bool:
        """Tell whether such a line near the beginning of a file proves that the file has this format."""
        ...

    def read(self, line: bytes) -> Sequence[RecordedCall | RecordedEnd]:
        """Return the calls and ends in a line; raises `TranscriptError` when the line cannot be read."""
        ...

    def shown(self, line: bytes, tool_call_id: str) -> str | None:
        """Return the result of a call in a line, as the model saw it; `None` if the line has none that can be read."""
        ...


MALFORMED = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError)
"""What a decoder raises for a line that has another form."""


def decoded(line: bytes) -> Any:
    """Return the data of a line; raises `TranscriptError`."""
    try:
        return msgspec.json.decode(line)
    except MALFORMED:
        # The fast decoder takes no half of a surrogate pair, which an output that was cut may have.
        try:
            return whole(json.loads(line))
        except MALFORMED as exc:
            raise TranscriptError(f"cannot be read: {describe(exc)}") from None


class ForeignReader(ABC):
    """The common part of readers of other agents: JSON objects in, calls in our words out, by the agent's bridge.

    A subclass says which objects belong to its format, and which calls, ends and results are in one.  `path`: the
    session's file, for the payload that hooks get.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    place: ClassVar[Place]
    # The event before a tool, as the agent names it.
    event: ClassVar[str]

    def __init__(self, path: str) -> None:
        self._path = path
        self._bridge = open_bridge(self.name)
        self.tools = self._bridge.tools
        self.session: str | None = None
        self.cwd: str | None = None
        self.agent = "main"

    @abstractmethod
    def is_mine(self, data: Mapping[str, Any]) -> bool:
        """Tell whether such an object near the beginning of a file proves the format."""

    @abstractmethod
    def found(self, data: Mapping[str, Any]) -> Iterator[RecordedCall | RecordedEnd]:
        """Yield the calls and ends in an object."""

    @abstractmethod
    def results(self, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the ids of the calls whose results are in an object, with their texts."""

    def recognises(self, line: bytes) -> bool:
        """Tell whether such a line near the beginning of a file proves that the file has this format."""
        try:
            data = decoded(line)
        except TranscriptError:
            return False
        return isinstance(data, dict) and self.is_mine(data)

    def read(self, line: bytes) -> Sequence[RecordedCall | RecordedEnd]:
        """Return the calls and ends in a line; raises `TranscriptError` when the line cannot be read."""
        data = decoded(line)
        if not isinstance(data, dict):
            raise TranscriptError("cannot be read: it is no object")
        try:
            return list(self.found(data))
        except (AttributeError, KeyError, IndexError, *MALFORMED) as exc:
            raise TranscriptError(f"cannot be read: it has another form ({describe(exc)})") from None

    def shown(self, line: bytes, tool_call_id: str) -> str | None:
        """Return the result of a call in a line, as the model saw it; `None` if the line has none that can be read."""
        try:
            return next((shown for call, shown in self.results(decoded(line)) if call == tool_call_id), None)
        except (TranscriptError, AttributeError, KeyError, IndexError, *MALFORMED):
            return None

    def payload(self, call: RecordedCall) -> Mapping[str, Any]:
        """Return the payload that the agent's hooks get before such a call, whose tool and input are the agent's own."""
        return {
            "session_id": call.session_id,
            "transcript_path": self._path,
            "cwd": call.cwd,
            **({"agent_id": call.agent_id} if call.agent_id != "main" else {}),
            "hook_event_name": self.event,
            "tool_name": call.tool_name,
            "tool_input": call.input,
            "tool_use_id": call.tool_call_id,
        }

    def call(self, call_id: Any, name: Any, given: Any, time: Any = None) -> RecordedCall:
        """Return a call in our words, from the agent's own tool and input; raises `TranscriptError` without a tool."""
        if not isinstance(name, str):
            raise TranscriptError("cannot be read: a call has no tool")
        asked = RecordedCall(
            # A branch begins with a copy of the other session's lines, with their ids and times.
            key=(self.name, text(call_id), text(time) or self.session) if text(call_id) else None,
            tool_call_id=text(call_id) or "",
            tool_name=name,
            input=given if isinstance(given, dict) else {},
            cwd=self.cwd,
            session_id=self.session,
            agent_id=self.agent,
            time=text(time),
            invalid=not isinstance(given, dict),
        )
        if asked.invalid:
            return asked
        native = self.payload(asked)
        try:
            happening = self._bridge.decode(native, self.event)
        except (BridgeError, RecursionError) as exc:
            return msgspec.structs.replace(asked, refused=describe(exc))
        assert isinstance(happening, CallAsked)
        return msgspec.structs.replace(
            asked, tool_name=happening.tool_name, input=happening.input, native=happening.native
        )


def text(value: object) -> str | None:
    """Return a text that is not empty; `None` for any other value."""
    return value if isinstance(value, str) and value else None


_REFUSAL = re.compile(
    # The words about a hook that failed, an event that was not judged, and a person's no.
    r"\A(?:not run, because (?:hook|transformer) |agent-hooks could not |the person did not allow it: )"
    # Or the origin of a block at the end: hooks and guards, with their rules.
    r"|\((?:asked by )?(?:[^()\n]*\.py|builtin:[\w-]+)(?: \([\w.:-]+\))?(?:, [^\n]*)?\)\Z"
)


def is_refusal(error: str) -> bool:
    """Tell whether the text of a failure is a block of ours, which some agents record like any other failure."""
    return _REFUSAL.search(error) is not None


def plain_text(content: object) -> str:
    """Return the text of a result: a text, or the texts of a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (each.get("text") if isinstance(each, dict) else each for each in content)
        return "\n".join(part for part in parts if isinstance(part, str))
    return "" if content is None else json.dumps(content, ensure_ascii=False)
