"""Codex's transcripts, `~/.codex/sessions/**/rollout-*.jsonl`, in the format of version 0.171.0.

Calls and results are items of the model's conversation, `response_item`.  The model's tools have other names than those
that hooks get: a command of any shell tool is `Bash` for them, and a patch is the `command` of `apply_patch`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from agent_hooks.transcripts.base import (
    MALFORMED,
    ForeignReader,
    Place,
    RecordedCall,
    RecordedEnd,
    Then,
    plain_text,
    text,
)

_SHELLS = ("exec_command", "shell_command", "shell", "local_shell", "container.exec")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
_DENIED = re.compile(r"\A[^\n]*(?:blocked by (?:a )?PreToolUse hook|rejected by user)", re.IGNORECASE)
# The person has said no to the command, or has stopped it: the text is the same.
_ABORTED = re.compile(r"\A(?:Wall time: [^\n]*\n)?aborted", re.IGNORECASE)
_BEGINNING = 400
"""The characters of a result that are matched."""
_KINDS = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
# The session's id is the end of the file's name.
_SESSION = re.compile(r"rollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl\Z")


class CodexReader(ForeignReader):
    """Reads one transcript."""

    name, title, event = "codex", "Codex", "PreToolUse"
    place = Place(".codex", "sessions/**/rollout-*.jsonl", "CODEX_HOME")

    def __init__(self, path: str) -> None:
        super().__init__(path)
        # The first line names the session too, but it may be damaged.
        named = _SESSION.search(path)
        self.session = named[1] if named is not None else None

    def is_mine(self, data: Mapping[str, Any]) -> bool:
        """Return whether an object is a line of a rollout."""
        return data.get("type") in _KINDS and isinstance(data.get("payload"), dict)

    def found(self, data: Mapping[str, Any]) -> Iterator[RecordedCall | RecordedEnd]:
        """Yield the calls and ends in an object."""
        payload = data.get("payload")
        if not isinstance(payload, dict):
            return
        match data.get("type"):
            case "session_meta":
                self._begin(payload)
            case "turn_context":
                self.cwd = text(payload.get("cwd")) or self.cwd
            case "response_item" if payload.get("type") in _CALLS:
                yield self.call(payload.get("call_id"), *_asked(payload), data.get("timestamp"))
            case "response_item" if payload.get("type") in _OUTPUTS and text(payload.get("call_id")):
                yield RecordedEnd(payload["call_id"], _then(_output(payload)))

    def results(self, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the result in an object."""
        payload = data["payload"]
        if payload["type"] in _OUTPUTS:
            yield payload["call_id"], _output(payload)

    def _begin(self, payload: Mapping[str, Any]) -> None:
        """Take the session; that of a sub-agent names the session that started it."""
        self.cwd = text(payload.get("cwd"))
        own = text(payload.get("id"))
        source = payload.get("source")
        spawned = source.get("subagent") if isinstance(source, dict) else None
        by = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
        parent = text(by.get("parent_thread_id")) if isinstance(by, dict) else None
        self.session = parent or text(payload.get("session_id")) or own
        self.agent = own if parent and own else "main"


def _asked(payload: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the tool and the input of a call, as hooks get them."""
    name = payload.get("name")
    if payload.get("type") == "local_shell_call":
        name, given = "local_shell", payload.get("action")
    elif payload.get("type") == "custom_tool_call":
        given = {"command": payload.get("input")}
    else:
        try:
            given = json.loads(payload.get("arguments") or "{}")
        except MALFORMED:
            given = None
    if name not in _SHELLS or not isinstance(given, dict):
        return name, given
    command = given.get("cmd", given.get("command"))
    return "Bash", {"command": shlex.join(map(str, command)) if isinstance(command, list) else command}


def _output(payload: Mapping[str, Any]) -> str:
    output = payload.get("output")
    return plain_text(output.get("content") if isinstance(output, dict) else output)


def _then(output: str) -> Then:
    beginning = output[:_BEGINNING]
    if _DENIED.match(beginning):
        return "denied"
    if _ABORTED.match(beginning):
        return "aborted"
    code = _CODE.search(beginning)
    return "failed" if code is not None and code[1] != "0" else "ran"
