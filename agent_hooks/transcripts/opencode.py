"""OpenCode's sessions, in the database `~/.local/share/opencode/opencode.db`, in the format of version 1.18.33.

`databases` reads the database; each part of a message is an object with the facts of its session.  A call and its end are
in one part, which the agent changes until the call is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_hooks.transcripts.base import ForeignReader, Place, RecordedCall, RecordedEnd, Then, is_refusal, text

_ABORTED = "Tool execution aborted"
_DENIED = ("The user rejected permission", "The user has specified a rule which prevents")


class OpenCodeReader(ForeignReader):
    """Reads the parts of all sessions in one database."""

    name, title, event = "opencode", "OpenCode", "tool.execute.before"
    place = Place(".local/share/opencode", "opencode.db")

    def is_mine(self, data: Mapping[str, Any]) -> bool:
        """Tell whether an object is a part, with the facts of its session."""
        return isinstance(data.get("part"), dict) and isinstance(data.get("session"), str)

    def found(self, data: Mapping[str, Any]) -> Iterator[RecordedCall | RecordedEnd]:
        """Yield the call in a part, and its end."""
        part = data["part"]
        if part.get("type") != "tool":
            return
        state = part.get("state") or {}
        parent = text(data.get("parent"))
        self.session, self.cwd = parent or data["session"], text(data.get("directory"))
        self.agent = data["session"] if parent else "main"
        yield self.call(part.get("callID"), part.get("tool"), state.get("input"), data.get("time"))
        if state.get("status") in ("completed", "error") and text(part.get("callID")):
            yield RecordedEnd(part["callID"], _then(state))

    def payload(self, call: RecordedCall) -> Mapping[str, Any]:
        """Return the payload of the plugin."""
        is_main = call.agent_id == "main"
        session = call.session_id if is_main else call.agent_id
        event = {
            "tool": call.tool_name,
            "sessionID": session,
            "callID": call.tool_call_id,
            "args": call.input,
        }
        facts = {"session": session, "parent": None if is_main else call.session_id, "directory": call.cwd}
        return {"hook": self.event, "event": event, **facts}

    def results(self, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the result in a part."""
        part = data["part"]
        if part["type"] == "tool":
            state = part["state"]
            yield part["callID"], str(state.get("output", state.get("error")) or "")


def _then(state: Mapping[str, Any]) -> Then:
    if state["status"] == "error":
        error = str(state.get("error") or "")
        if error.startswith(_ABORTED):
            return "aborted"
        return "denied" if error.startswith(_DENIED) or is_refusal(error) else "failed"
    return "failed" if (state.get("metadata") or {}).get("exit") else "ran"
