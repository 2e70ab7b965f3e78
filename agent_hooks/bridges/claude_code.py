"""Claude Code: its hook protocol, as version 2.1.329 speaks it.  Above: nothing imports it by name.  Below: base.

A denial is `permissionDecision: "deny"` with exit code 0 and nothing else: other forms run the tool in some versions.
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
    Happening,
    PermissionAsked,
    PromptGiven,
    Reply,
    Told,
    ToolWords,
    Verdict,
    to_ours,
    to_theirs,
)
from agent_hooks.bridges.claude_code_results import native_result, our_result
from agent_hooks.bridges.claude_code_settings import CONFIG, ClaudeCodeSettings
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
# what a transformer may add to a call; Grep has no such argument, but its `glob` can say it
_EXCLUDES = {"Grep": {"properties": {"exclude": {"type": "array", "items": {"type": "string"}}}}}
_NO_HISTORY = "`entries` and `messages` are empty"

_RESULT = ("tool_result", "tool.after", "after_tool_call", "redaction")

EVENTS = (
    EventRow(
        "PreToolUse",
        "a tool call, up to `tool_call`",
        "deny, ask, rewrite, add context",
        gate=True,
        timeout=600,
        feeds=("tool.before", "before_tool_call", "tool_call"),
    ),
    EventRow(
        "PostToolUse",
        "`tool_result`, `tool.after`, redaction, `after_tool_call`",
        "replace the result, add context",
        feeds=(*_RESULT, "filter_output"),
    ),
    EventRow(
        "PostToolUseFailure",
        "the same, with `is_error`",
        "add context",
        "replace the error's text",
        feeds=_RESULT,
    ),
    EventRow(
        "UserPromptSubmit",
        "`message.before`, `agent_start`, `turn_start`",
        "block, add context",
        "rewrite the prompt: the rewritten one is added as context",
        gate=True,
        timeout=600,
        feeds=("message.before", "agent_start", "turn_start"),
    ),
    EventRow(
        "SessionStart",
        "`session` start; `clear` after /clear",
        "add context",
        _NO_HISTORY,
        always=True,
        feeds=("session",),
    ),
    EventRow("SessionEnd", "`session` shutdown", "-", _NO_HISTORY, timeout=10, always=True, feeds=("session",)),
    EventRow(
        "PostToolBatch",
        "`turn_end`, then `turn_start`",
        "add context",
        decides_nothing=True,
        feeds=("turn_end", "turn_start"),
    ),
    EventRow(
        "Stop",
        "`agent_end`",
        "`Continue` and, once, `api.send` keep the agent going",
        "all `messages` but the last",
        always=True,  # any hook may call `api.send`
        feeds=("agent_end",),
    ),
    EventRow("SubagentStop", "`agent_end` of that `agent_id`", "as Stop", "as Stop", feeds=("agent_end",)),
    EventRow("PreCompact", "`session` before_compact", "`Cancel`", f"`Compaction`; {_NO_HISTORY}", feeds=("session",)),
    EventRow(
        "PostCompact",
        "`session` compact",
        "-",
        f"{_NO_HISTORY}; of the entry only `summary` is known",
        decides_nothing=True,
        feeds=("session",),
    ),
    EventRow("PermissionRequest", "`permission.ask`", "allow, deny", feeds=("permission.ask",)),
    EventRow("Notification", "the point `event`", "add context", decides_nothing=True),
    EventRow("SubagentStart", "the point `event`", "add context", decides_nothing=True),
    EventRow("Setup", "the point `event`", "add context"),
    # not among them: MessageDisplay, for it comes with each piece of a text, and those of worktrees, whose hooks replace
    # what makes and removes them
    *(
        EventRow(name, "the point `event`", decides_nothing=True)
        for name in (
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
    ),
)
# where `additionalContext` is read; a text for any other event goes to the person
_STOPS = ("Stop", "SubagentStop")
_TAKES_CONTEXT = frozenset(row.name for row in EVENTS if "context" in row.can)
_GATES = frozenset(row.name for row in EVENTS if row.gate)
_STARTED_IN, _PROCESS = "CLAUDE_PROJECT_DIR", "CLAUDE_PID"  # `cwd` of a payload is where the agent went since
_ATTENDED, _ENTRYPOINT, _CLAUDE = "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_ENTRYPOINT", "CLAUDECODE"
_OTHERS = ("COPILOT_CLI", "CURSOR_VERSION", "GEMINI_SESSION_ID")  # agents that read Claude Code's settings, or could


class ClaudeCode(ClaudeCodeSettings):
    """The bridge to Claude Code."""

    name = "claude-code"
    environment: Sequence[str] = (_STARTED_IN, _PROCESS, _ATTENDED, _ENTRYPOINT, _CLAUDE, CONFIG, *_OTHERS)
    project_variable = _STARTED_IN
    process_variable = _PROCESS
    tools: Sequence[ToolWords] = (
        ToolWords("Bash", "bash", milliseconds=("timeout",)),
        ToolWords("PowerShell", "bash", milliseconds=("timeout",)),
        ToolWords("Monitor", "bash", {"timeout_ms": "timeout"}, ("timeout_ms",), needs="command"),
        ToolWords("Read", "read", _FILE),
        ToolWords("Artifact", "read", _FILE),  # publishes the file
        ToolWords("Write", "write", _FILE),
        ToolWords("Edit", "edit", {**_FILE, "old_string": "oldText", "new_string": "newText"}),
        ToolWords("NotebookEdit", "edit", {"notebook_path": "path", "new_source": "newText"}),
        ToolWords("Glob", "find"),
        ToolWords("Grep", "grep", {"-i": "ignoreCase", "head_limit": "limit"}),
        # of older versions, whose transcripts can be replayed
        ToolWords("MultiEdit", "edit", _FILE),
        ToolWords("NotebookRead", "read", {"notebook_path": "path"}),
        ToolWords("LS", "ls"),
    )

    # ---- in

    def decode(self, payload: object) -> Happening:
        """Return what a payload says; raises `BridgeError` that names the field."""
        if not isinstance(payload, dict):
            raise BridgeError(f"the payload must be a JSON object, not {shown(payload)}")
        name = _text(payload, "hook_event_name")
        goes_on = name in _STOPS and not _was_continued(payload)  # a text after it does that
        common: dict[str, Any] = {
            "name": name,
            "native": payload,
            "session_id": _text(payload, "session_id", None),
            "session_file": _text(payload, "transcript_path", None),
            "cwd": _text(payload, "cwd", None),
            "agent_id": _text(payload, "agent_id", "main"),
            "takes_context": goes_on or name in _TAKES_CONTEXT,
            "leaves": name == "SessionEnd",
        }
        match name:
            case "PreToolUse":
                call = self._call(payload)
                return CallAsked(**common, **call, input_schema=_EXCLUDES.get(payload["tool_name"], NO_SCHEMA))
            case "PermissionRequest":
                return PermissionAsked(**common, **self._call(payload))
            case "PostToolUse":
                output = our_result(payload.get("tool_response"))
                return CallEnded(**common, **self._call(payload), output=output, duration_ms=_number(payload))
            case "PostToolUseFailure":
                output = ToolOutput(_text(payload, "error", ""), is_error=True)
                return CallEnded(**common, **self._call(payload), output=output, duration_ms=_number(payload))
            case "UserPromptSubmit":
                return PromptGiven(**common, prompt=_text(payload, "prompt"))
        events = self._events(name, payload)
        if not events:
            return Happening(**common)
        return Told(**common, events=events)

    def _call(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        given = payload.get("tool_input")
        if not isinstance(given, dict):
            raise BridgeError(f"tool_input must be a JSON object, not {shown(given)}")
        name, arguments = to_ours(self.tools, _text(payload, "tool_name"), given)
        return {"tool_name": name, "tool_call_id": _text(payload, "tool_use_id", ""), "input": arguments}

    def _events(self, name: str, payload: Mapping[str, Any]) -> tuple[Event[Any], ...]:
        now = int(time.time() * 1000)
        file = _text(payload, "transcript_path", None)
        match name, payload.get("source"), payload.get("reason"):
            case "SessionStart", "clear", _:
                return (SessionEvent(reason="clear", session_file=file),)
            case "SessionStart", source, _ if source != "compact":  # PostCompact tells of that one
                return (SessionEvent(reason="start", session_file=file),)
            case "SessionEnd", _, reason if reason not in ("clear", "resume"):  # the agent goes on after these
                return (SessionEvent(reason="shutdown", session_file=file),)
            case "PreCompact", _, _:
                custom = _text(payload, "custom_instructions", None)
                return (SessionEvent(reason="before_compact", session_file=file, custom_instructions=custom),)
            case "PostCompact", _, _:
                entry = CompactionEntry(
                    timestamp=datetime.now(UTC).isoformat(),
                    summary=_text(payload, "compact_summary", ""),
                    first_kept_entry_index=0,
                    tokens_before=0,
                )
                return (SessionEvent(reason="compact", session_file=file, compaction_entry=entry, from_hook=False),)
            case "PostToolBatch", _, _:
                # nobody tells how many entries there are; time grows as they do, and checkpoints go by it
                return self._turn_end(payload, now), TurnStart(turn_index=0, timestamp=now, entry_index=now)
            case "Stop" | "SubagentStop", _, _:
                words = _text(payload, "last_assistant_message", "")
                said = _said((TextContent(words),), now)
                return (AgentEnd(messages=(said,), continued=int(_was_continued(payload))),)
        return ()

    def _turn_end(self, payload: Mapping[str, Any], now: int) -> TurnEnd:
        calls = [call for call in payload.get("tool_calls") or () if isinstance(call, dict)]
        asked: list[ToolCallContent] = []
        results: list[ToolResultMessage] = []
        for call in calls:
            name, arguments = to_ours(self.tools, _text(call, "tool_name"), call.get("tool_input") or {})
            asked.append(ToolCallContent(_text(call, "tool_use_id", ""), name, arguments))
            content = our_result(call.get("tool_response")).content
            results.append(ToolResultMessage(tool_call_id=asked[-1].id, tool_name=name, content=content, timestamp=now))
        return TurnEnd(turn_index=0, message=_said(tuple(asked), now), tool_results=tuple(results))

    # ---- out

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return what to print: exactly one JSON object."""
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
            case Told(name="Stop" | "SubagentStop") if answer.go_on is not None:
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
            arguments = to_theirs(self.tools, event.native["tool_name"], answer.input)
            specific["updatedInput"] = _as_globs(arguments) if event.input_schema is not NO_SCHEMA else arguments
        return specific

    def _replace(self, event: CallEnded, output: ToolOutput, specific: dict[str, Any], context: list[str]) -> None:
        """Put a changed result where it can go; what the tool's shape has no place for becomes context."""
        if event.name == "PostToolUseFailure":
            context.append(output.text)
            return
        native, rest = native_result(event.native.get("tool_response"), event.output, output)
        if native is not None:
            specific["updatedToolOutput"] = native
        context += rest

    def refuse(self, event_name: str | None, reason: str) -> Reply:
        """Return a denial for a gate and for an event that nobody knows, else silence."""
        if event_name in (None, "PreToolUse"):
            decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
            return Reply.of({"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}})
        if event_name in _GATES:
            return Reply.of({"decision": "block", "reason": reason})
        return Reply.of({"systemMessage": reason} if event_name == "SessionStart" else {})

    def describe(self) -> Sequence[EventRow]:
        """Return the events, in the order they are installed."""
        return EVENTS

    # ---- where it runs

    def runs_here(self, environment: Mapping[str, str]) -> bool:
        """Tell whether Claude Code runs us, and not another agent that reads its settings."""
        return bool(environment.get(_CLAUDE)) or not any(environment.get(name) for name in _OTHERS)

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Tell whether a person sits at it, or `claude -p` runs."""
        attended = environment.get(_ATTENDED)
        return attended != "0" if attended else environment.get(_ENTRYPOINT) != "sdk-cli"


def _text(payload: Mapping[str, Any], key: str, default: Any = ...) -> Any:
    value = payload.get(key)
    if isinstance(value, str):
        return value
    if value is None and default is not ...:
        return default
    raise BridgeError(f"{key} must be a text, not {shown(value)}")


def _number(payload: Mapping[str, Any]) -> float | None:
    value = payload.get("duration_ms")
    return value if isinstance(value, int | float) else None


def _said(content: Sequence[AssistantBlock], now: int) -> AssistantMessage:
    return AssistantMessage(content=tuple(content), timestamp=now, provider="anthropic", model="")


def _as_globs(arguments: dict[str, Any]) -> dict[str, Any]:
    """Say in `glob` what Grep is to leave out; it takes several, with blanks or commas between them."""
    left_out = ["!" + re.sub(r"[\s,]", "?", each) for each in arguments.pop("exclude", ())]
    if left_out:
        given = arguments.get("glob")
        arguments["glob"] = " ".join([given, *left_out] if given else left_out)
    return arguments


def _was_continued(payload: Mapping[str, Any]) -> bool:
    """Tell whether a hook keeps the agent going already; the payload does not say how many times in a row."""
    return payload.get("stop_hook_active") is not False
