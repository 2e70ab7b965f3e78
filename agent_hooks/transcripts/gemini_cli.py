"""Gemini CLI's transcripts, `~/.gemini/tmp/*/chats/**/*.jsonl`, in the format of version 0.61.0.

A message of the model comes once when it begins and again with its `toolCalls` when these are over, so a call and its end
are in one line.  The first line names the session.  The working directory is in no line but the first text.

Old versions wrote one object with all messages, over many lines of a file `*.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_hooks.transcripts.base import (
    ForeignReader,
    Place,
    RecordedCall,
    RecordedEnd,
    Then,
    plain_text,
    text,
)

_ENDS: dict[object, Then] = {"success": "ran", "error": "failed", "cancelled": "aborted"}
_DIRECTORY = re.compile(r"\*\*Workspace Directories:\*\*\n\s*- ([^\n]+)")
_EXIT = re.compile(r"^Exit Code: (?!0\b)", re.MULTILINE)
# By a hook, by the person, and by a rule of the person's.
_DENIED = re.compile(
    r"\A(?:Tool execution blocked|\[Operation Cancelled\] Reason: User denied|Tool execution .*denied by policy)"
)


class GeminiCliReader(ForeignReader):
    """Reads one transcript."""

    name, title, event = "gemini-cli", "Gemini CLI", "BeforeTool"
    place = Place(".gemini", "tmp/*/chats/**/*.jsonl")

    def is_mine(self, data: Mapping[str, Any]) -> bool:
        """Return whether an object is the first line of a chat, or has messages of the model."""
        return _is_first(data) or any(each.get("type") == "gemini" for each in _messages(data))

    def found(self, data: Mapping[str, Any]) -> Iterator[RecordedCall | RecordedEnd]:
        """Yield the calls and ends in an object."""
        if _is_first(data):
            self.session = data["sessionId"]
            self.agent = "main" if data.get("kind", "main") == "main" else data["sessionId"]
        for message in _messages(data):
            if self.cwd is None and message.get("type") == "user":
                named = _DIRECTORY.search(plain_text(message.get("content")))
                self.cwd = named[1] if named is not None else None
            for call in message.get("toolCalls") or ():
                yield self.call(call.get("id"), call.get("name"), call.get("args"), call.get("timestamp"))
                if call.get("status") in _ENDS and text(call.get("id")):
                    yield RecordedEnd(call["id"], _then(call))

    def results(self, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the results in an object."""
        for message in _messages(data):
            for call in message.get("toolCalls") or ():
                yield call["id"], _result(call)


def _is_first(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("sessionId"), str) and "projectHash" in data


def _messages(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the messages of a line: the line itself, the messages that it replaces, or all in an old file."""
    more = data.get("$set", data)
    given = more.get("messages", [more]) if isinstance(more, dict) else None
    yield from (each for each in given if isinstance(each, dict)) if isinstance(given, list) else ()


def _result(call: Mapping[str, Any]) -> str:
    parts = call.get("result") or ()
    responses = (each["functionResponse"]["response"] for each in parts if "functionResponse" in each)
    return "\n".join(plain_text(each.get("output", each.get("error"))) for each in responses)


def _then(call: Mapping[str, Any]) -> Then:
    then = _ENDS[call["status"]]
    result = _result(call)
    if then != "ran" and _DENIED.match(result):
        return "denied"
    return "failed" if then == "ran" and _EXIT.search(result) else then
