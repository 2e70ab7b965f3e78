"""The witness: a session's transcript shows the calls that ran, also calls that no hook was asked about.

The tripwire needs a result that arrives.  If something in the agent keeps a call and its result from the hooks, its
transcript still has them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Call, CallAsked, CallEnded
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.storage.files import StorageError, open_regular
from agent_hooks.values.content import ToolOutput

if TYPE_CHECKING:
    from agent_hooks.transcripts.base import RecordedCall

# Bytes of new lines that are read at once, and calls that wait for their result.
_MOST, _MOST_CALLS = 8 << 20, 1000


class Witness:
    """The transcript of one session: `for call in witness.ran(path)` yields each new call that ran.

    A sub-agent has a transcript of its own, which is not read.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._path = ""
        self._offset = 0
        self._calls: dict[str, RecordedCall] = {}
        # A fork of a session begins with a copy of older calls.
        self._begin = datetime.now(UTC)

    def follow(self, path: str) -> None:
        """Begin at the end of a transcript, unless it is read already.  It may be missing."""
        if path != self._path:
            try:
                size = os.stat(path).st_size
            except OSError:
                size = 0
            self._path, self._offset, self._begin = path, size, datetime.now(UTC)

    def ran(self, path: str) -> Iterator[CallEnded]:
        """Yield the calls of tools in our vocabulary that ran since the last time, without their results."""
        # Imported here, because a process of one event reads no transcript.
        from agent_hooks.transcripts import open_reader
        from agent_hooks.transcripts.base import RecordedCall, TranscriptError

        self.follow(path)
        reader, known = open_reader(self._bridge.name, path), {each.theirs for each in self._bridge.tools}
        for line in self._lines():
            try:
                found = reader.read(line)
            except TranscriptError:
                continue
            for each in found:
                if isinstance(each, RecordedCall):
                    self._calls[each.tool_call_id] = each
                    continue
                call = self._calls.pop(each.tool_call_id, None)
                if each.then == "ran" and call is not None and _since(call.time, self._begin):
                    ended = self._ended(call.native)
                    if ended is not None and ended.native_name in known:
                        yield ended
        while len(self._calls) > _MOST_CALLS:
            del self._calls[next(iter(self._calls))]

    def _lines(self) -> list[bytes]:
        """Return the new lines."""
        try:
            with open_regular(self._path, "the transcript") as file:
                file.seek(self._offset)
                data = file.read(_MOST)
        except StorageError:
            return []
        # The client may be writing the last line.  A line that is too long is passed over.
        end = data.rfind(b"\n") + 1 or (len(data) if len(data) == _MOST else 0)
        self._offset += end
        return data[:end].splitlines()

    def _ended(self, native: Mapping[str, Any] | None) -> CallEnded | None:
        try:
            asked = self._bridge.decode(native or {})
        except BridgeError:
            return None
        if not isinstance(asked, CallAsked):
            return None
        return CallEnded(**{name: getattr(asked, name) for name in Call.__struct_fields__}, output=ToolOutput(""))


def _since(time: str | None, begin: datetime) -> bool:
    """Return whether a recorded time is not before another one."""
    try:
        return time is not None and datetime.fromisoformat(time) >= begin
    except (ValueError, TypeError):
        return False
