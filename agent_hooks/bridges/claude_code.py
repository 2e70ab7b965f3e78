"""The bridge to Claude Code, whose hook protocol is that of version 2.1.329.

A denial is `permissionDecision: "deny"` with exit code 0 and nothing else, because some versions run the tool after any
other form.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent_hooks.bridges.base import (
    NOTHING,
    SILENCE,
    BridgeError,
    CallAsked,
    CallEnded,
    EventRow,
    EventsReported,
    Happening,
    PermissionAsked,
    PromptGiven,
    Reply,
    ToolWords,
    Verdict,
    to_ours,
    to_theirs,
)
from agent_hooks.bridges.claude_code_results import native_result, our_result
from agent_hooks.bridges.claude_code_settings import CONFIG, ClaudeCodeSettings
from agent_hooks.bridges.fields import object_field, text_field
from agent_hooks.errors import shown
from agent_hooks.values.content import (
    AssistantBlock,
    AssistantMessage,
    CompactionEntry,
    TextContent,
    ToolCallContent,
    ToolOutput,
    ToolResultMessage,
)
from agent_hooks.values.events import AgentEnd, Event, SessionEvent, TurnEnd, TurnStart
from agent_hooks.values.tool import NO_SCHEMA

_FILE = {"file_path": "path"}
# Arguments that a transformer may add to a call although the tool has none of that name.  `glob` of Grep can express it.
_EXCLUDES = {"Grep": {"properties": {"exclude": {"type": "array", "items": {"type": "string"}}}}}

_RESULT = ("tool_result", "tool.after", "after_tool_call", "redaction")
_PROMPT = ("message.before", "agent_start", "turn_start")
_STOPS = ("Stop", "SubagentStop")

# MessageDisplay is left out, because it comes with each piece of a text.  The events of worktrees are left out, because
# their hooks replace the commands that make and remove a worktree.
_OBSERVED = (
    "StopFailure",
    "UserPromptExpansion",
    "PermissionDenied",
    "PreModelSwitch",
    "PostModelSwitch",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
)
EVENTS = (
    EventRow(
        "PreToolUse",
        gate=True,
        takes_context=True,
        timeout=600,
        feeds=("tool.before", "before_tool_call", "tool_call"),
    ),
    EventRow("PostToolUse", takes_context=True, feeds=(*_RESULT, "filter_output")),
    EventRow("PostToolUseFailure", takes_context=True, feeds=_RESULT),
    EventRow("UserPromptSubmit", gate=True, takes_context=True, timeout=600, feeds=_PROMPT),
    EventRow("SessionStart", takes_context=True, always=True, feeds=("session",)),
    EventRow("SessionEnd", timeout=10, always=True, feeds=("session",)),
    EventRow("PostToolBatch", takes_context=True, decides_nothing=True, feeds=("turn_end", "turn_start")),
    # Stop is always installed, because any hook may call `api.send`.  `decode` knows whether one takes context.
    EventRow("Stop", always=True, feeds=("agent_end",)),
    EventRow("SubagentStop", feeds=("agent_end",)),
    EventRow("PreCompact", feeds=("session",)),
    EventRow("PostCompact", decides_nothing=True, feeds=("session",)),
    EventRow("PermissionRequest", feeds=("permission.ask",)),
    EventRow("Notification", takes_context=True, decides_nothing=True),
    EventRow("SubagentStart", takes_context=True, decides_nothing=True),
    EventRow("Setup", takes_context=True),
    *(EventRow(name, decides_nothing=True) for name in _OBSERVED),
)

# The project is the directory where the agent was started; `cwd` of a payload is where it has gone since.
_STARTED_IN, _PROCESS = "CLAUDE_PROJECT_DIR", "CLAUDE_PID"
_ATTENDED, _ENTRYPOINT, _CLAUDE = "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_ENTRYPOINT", "CLAUDECODE"
# Variables of agents that read Claude Code's settings, or may do so.
_OTHERS = ("COPILOT_CLI", "CURSOR_VERSION", "GEMINI_SESSION_ID")


class ClaudeCode(ClaudeCodeSettings):
    """The bridge to Claude Code."""

    name = "claude-code"
    events = EVENTS
    environment = (_STARTED_IN, _PROCESS, _ATTENDED, _ENTRYPOINT, _CLAUDE, CONFIG, *_OTHERS)
    project_variable = _STARTED_IN
    process_variable = _PROCESS
    tools = (
        ToolWords("Bash", "bash", milliseconds=("timeout",)),
        ToolWords("PowerShell", "bash", milliseconds=("timeout",)),
        ToolWords("Monitor", "bash", {"timeout_ms": "timeout"}, ("timeout_ms",), needs="command"),
        ToolWords("Read", "read", _FILE),
        # Artifact publishes the file that it is given.
        ToolWords("Artifact", "read", _FILE),
        ToolWords("Write", "write", _FILE),
        ToolWords("Edit", "edit", {**_FILE, "old_string": "oldText", "new_string": "newText"}),
        ToolWords("NotebookEdit", "edit", {"notebook_path": "path", "new_source": "newText"}),
        ToolWords("Glob", "find"),
        ToolWords("Grep", "grep", {"-i": "ignoreCase", "head_limit": "limit"}),
        # The last three are tools of older versions, whose transcripts can be replayed.
        ToolWords("MultiEdit", "edit", _FILE),
        ToolWords("NotebookRead", "read", {"notebook_path": "path"}),
        ToolWords("LS", "ls"),
    )

    # ---- in

    def decode(self, payload: object) -> Happening:
        """Return the happening of a payload.  Raises `BridgeError`, which names the wrong field."""
        if not isinstance(payload, dict):
            raise BridgeError(f"the payload must be a JSON object, not {shown(payload)}")
        name = text_field(payload, "hook_event_name")
        # A text for the model after a first stop makes the agent go on.
        goes_on = name in _STOPS and not _was_continued(payload)
        common: dict[str, Any] = {
            "name": name,
            "native": payload,
            "session_id": text_field(payload, "session_id", None),
            "session_file": text_field(payload, "transcript_path", None),
            "cwd": text_field(payload, "cwd", None),
            "agent_id": text_field(payload, "agent_id", "main"),
            "takes_context": goes_on or self.row(name).takes_context,
            "leaves": name == "SessionEnd",
        }
        match name:
            case "PreToolUse":
                call = self._call(payload)
                return CallAsked(**common, **call, input_schema=_EXCLUDES.get(call["native_name"], NO_SCHEMA))
            case "PermissionRequest":
                return PermissionAsked(**common, **self._call(payload))
            case "PostToolUse":
                output = our_result(payload.get("tool_response"))
                return CallEnded(**common, **self._call(payload), output=output, duration_ms=_number(payload))
            case "PostToolUseFailure":
                output = ToolOutput(text_field(payload, "error", ""), is_error=True)
                return CallEnded(**common, **self._call(payload), output=output, duration_ms=_number(payload))
            case "UserPromptSubmit":
                return PromptGiven(**common, prompt=text_field(payload, "prompt"))
        events = self._events(name, payload)
        if not events:
            return Happening(**common)
        return EventsReported(**common, events=events)

    def _call(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        given = object_field(payload, "tool_input")
        native_name = text_field(payload, "tool_name")
        name, arguments = to_ours(self.tools, native_name, given)
        identity = text_field(payload, "tool_use_id", "")
        return {"tool_name": name, "tool_call_id": identity, "input": arguments, "native_name": native_name}

    def _events(self, name: str, payload: Mapping[str, Any]) -> tuple[Event[Any], ...]:
        now = int(time.time() * 1000)
        file = text_field(payload, "transcript_path", None)
        match name, payload.get("source"), payload.get("reason"):
            case "SessionStart", "clear", _:
                return (SessionEvent(reason="clear", session_file=file),)
            # PostCompact reports the start after a compaction.
            case "SessionStart", source, _ if source != "compact":
                return (SessionEvent(reason="start", session_file=file),)
            # After a clear or a resume, the agent continues in another session.
            case "SessionEnd", _, reason if reason not in ("clear", "resume"):
                return (SessionEvent(reason="shutdown", session_file=file),)
            case "PreCompact", _, _:
                custom = text_field(payload, "custom_instructions", None)
                return (SessionEvent(reason="before_compact", session_file=file, custom_instructions=custom),)
            case "PostCompact", _, _:
                entry = CompactionEntry(
                    timestamp=datetime.now(UTC).isoformat(),
                    summary=text_field(payload, "compact_summary", ""),
                    first_kept_entry_index=0,
                    tokens_before=0,
                )
                return (SessionEvent(reason="compact", session_file=file, compaction_entry=entry, from_hook=False),)
            case "PostToolBatch", _, _:
                # `entry_index` is the time, because the agent does not report how many entries there are.  Checkpoints
                # need only a number that grows.
                return self._turn_end(payload, now), TurnStart(turn_index=0, timestamp=now, entry_index=now)
            case "Stop" | "SubagentStop", _, _:
                words = text_field(payload, "last_assistant_message", "")
                last = _assistant_message((TextContent(words),), now)
                return (AgentEnd(messages=(last,), continued=int(_was_continued(payload))),)
        return ()

    def _turn_end(self, payload: Mapping[str, Any], now: int) -> TurnEnd:
        calls = [call for call in payload.get("tool_calls") or () if isinstance(call, dict)]
        asked: list[ToolCallContent] = []
        results: list[ToolResultMessage] = []
        for call in calls:
            name, arguments = to_ours(self.tools, text_field(call, "tool_name"), call.get("tool_input") or {})
            asked.append(ToolCallContent(text_field(call, "tool_use_id", ""), name, arguments))
            content = our_result(call.get("tool_response")).content
            results.append(ToolResultMessage(tool_call_id=asked[-1].id, tool_name=name, content=content, timestamp=now))
        return TurnEnd(turn_index=0, message=_assistant_message(tuple(asked), now), tool_results=tuple(results))

    # ---- out

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return the reply, which is exactly one JSON object."""
        if answer == NOTHING:
            return SILENCE
        reply: dict[str, Any] = {}
        specific: dict[str, Any] = {}
        context, messages = list(answer.context), list(answer.messages)
        match event:
            case CallAsked():
                specific = self._decision(event, answer)
            case PermissionAsked() if answer.block is not None:
                specific["decision"] = {"behavior": "deny", "message": answer.block}
            case PermissionAsked() if answer.allow:
                specific["decision"] = {"behavior": "allow"}
            case CallEnded() if answer.output is not None:
                self._replace(event, answer.output, specific, context)
            case _ if answer.block is not None:
                reply = {"decision": "block", "reason": answer.block}
            case EventsReported(name="Stop" | "SubagentStop") if answer.go_on is not None:
                reply = {"decision": "block", "reason": answer.go_on}
        if context and (event.takes_context or answer.go_on is not None):
            specific["additionalContext"] = "\n\n".join(context)
        else:
            messages += [f"not given to the model, because {event.name} takes no text now: {text}" for text in context]
        if messages:
            reply["systemMessage"] = "\n".join(messages)
        if specific:
            reply["hookSpecificOutput"] = {"hookEventName": event.name, **specific}
        return Reply.of(reply)

    def _decision(self, event: CallAsked, answer: Verdict) -> dict[str, Any]:
        if answer.block is not None:
            return {"permissionDecision": "deny", "permissionDecisionReason": answer.block}
        specific: dict[str, Any] = {}
        if answer.ask is not None:
            specific = {"permissionDecision": "ask", "permissionDecisionReason": answer.ask}
        elif answer.allow:
            specific = {"permissionDecision": "allow"}
        if answer.input is not None:
            arguments = to_theirs(self.tools, event.native_name, answer.input)
            specific["updatedInput"] = _as_globs(arguments) if event.input_schema is not NO_SCHEMA else arguments
        return specific

    def _replace(self, event: CallEnded, output: ToolOutput, specific: dict[str, Any], context: list[str]) -> None:
        """Put a changed result in the shape of its tool; a text that has no place there becomes context."""
        if event.name == "PostToolUseFailure":
            context.append(output.text)
            return
        native, rest = native_result(event.native.get("tool_response"), event.output, output)
        if native is not None:
            specific["updatedToolOutput"] = native
        context += rest

    def refuse(self, event_name: str | None, reason: str) -> Reply:
        """Return a denial for a gate and for an unknown event; SessionStart shows the reason to the person."""
        if event_name in (None, "PreToolUse"):
            decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
            return Reply.of({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}})
        if self.row(event_name).gate:
            return Reply.of({"decision": "block", "reason": reason})
        return Reply.of({"systemMessage": reason} if event_name == "SessionStart" else {})

    # ---- the agent

    def runs_here(self, environment: Mapping[str, str]) -> bool:
        """Return whether Claude Code runs us, and not another agent that reads its settings."""
        return bool(environment.get(_CLAUDE)) or not any(environment.get(name) for name in _OTHERS)

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Return whether a person is at Claude Code; `claude -p` runs without one."""
        attended = environment.get(_ATTENDED)
        return attended != "0" if attended else environment.get(_ENTRYPOINT) != "sdk-cli"


def _number(payload: Mapping[str, Any]) -> float | None:
    value = payload.get("duration_ms")
    return value if isinstance(value, int | float) else None


def _assistant_message(content: Sequence[AssistantBlock], now: int) -> AssistantMessage:
    return AssistantMessage(content=tuple(content), timestamp=now, provider="anthropic", model="")


def _as_globs(arguments: dict[str, Any]) -> dict[str, Any]:
    """Move the excluded globs to `glob`, which takes several, with blanks or commas between them."""
    left_out = ["!" + re.sub(r"[\s,]", "?", each) for each in arguments.pop("exclude", ())]
    if left_out:
        given = arguments.get("glob")
        arguments["glob"] = " ".join([given, *left_out] if given else left_out)
    return arguments


def _was_continued(payload: Mapping[str, Any]) -> bool:
    """Return whether a hook has kept the agent going; the payload does not hold how many times in a row."""
    return payload.get("stop_hook_active") is not False
