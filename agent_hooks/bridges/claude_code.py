"""The bridge to Claude Code, whose hook protocol is that of version 2.1.329.

A denial is `permissionDecision: "deny"` with exit code 0 and nothing else, because some versions run the tool after any
other form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base.happenings import CallAsked, CallEnded
from agent_hooks.bridges.base.payloads import BridgeError, object_field, text_field
from agent_hooks.bridges.base.powers import Power
from agent_hooks.bridges.base.words import ToolWords, to_ours
from agent_hooks.bridges.claude_code_results import native_result, our_result
from agent_hooks.bridges.claude_code_settings import CONFIG, ClaudeCodeSettings
from agent_hooks.bridges.tables import Row
from agent_hooks.bridges.templates import ASK_CALL, BLOCK, CONTEXT, DENY_CALL, MESSAGE, PERMISSION, STOP, VALUE, nested
from agent_hooks.errors import shown
from agent_hooks.values.content import ToolCallContent, ToolOutput, ToolResultMessage
from agent_hooks.values.events import Event, TurnEnd
from agent_hooks.values.tool import NO_SCHEMA

_FILE = {"file_path": "path"}
# Arguments that a transformer may add to a call although the tool has none of that name.  `glob` of Grep can express it.
_EXCLUDES = {"Grep": {"properties": {"exclude": {"type": "array", "items": {"type": "string"}}}}}

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
_ROWS = (
    Row(
        "PreToolUse",
        "call",
        {
            "block": DENY_CALL,
            "ask": ASK_CALL,
            "allow": nested(permissionDecision="allow"),
            "input": nested(updatedInput=VALUE),
            "stop": STOP,
            **CONTEXT,
        },
        timeout=600,
    ),
    Row("PostToolUse", "result", {"output": nested(updatedToolOutput=VALUE), "stop": STOP, **CONTEXT}),
    Row("PostToolUseFailure", "failure", CONTEXT),
    Row("UserPromptSubmit", "prompt", {"block": BLOCK, **CONTEXT}, timeout=600),
    Row("SessionStart", "start", CONTEXT),
    Row("SessionEnd", "end", MESSAGE, timeout=10),
    Row("PostToolBatch", says={"stop": STOP, **CONTEXT}, decides_nothing=True, feeds=("turn_end", "turn_start")),
    Row("Stop", "stop", {"go_on": BLOCK, **CONTEXT}),
    Row("SubagentStop", "stop", {"go_on": BLOCK, **CONTEXT}, always=False),
    Row("PreCompact", "before_compact", {"block": BLOCK, **MESSAGE}),
    Row("PostCompact", "compact", MESSAGE, decides_nothing=True),
    Row("PermissionRequest", "permission", PERMISSION),
    Row("Notification", says=CONTEXT, decides_nothing=True),
    Row("SubagentStart", says=CONTEXT, decides_nothing=True),
    Row("Setup", says=CONTEXT),
    *(Row(name, says=MESSAGE, decides_nothing=True) for name in _OBSERVED),
)

# The project is the directory where the agent was started; `cwd` of a payload is where it has gone since.
_STARTED_IN, _PROCESS = "CLAUDE_PROJECT_DIR", "CLAUDE_PID"
_ATTENDED, _ENTRYPOINT, _CLAUDE = "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_ENTRYPOINT", "CLAUDECODE"
# Variables of agents that read Claude Code's settings, or may do so.
_OTHERS = ("COPILOT_CLI", "CURSOR_VERSION", "GEMINI_SESSION_ID")
# The variables that tell where those agents keep their own entries.
_PLACES = ("COPILOT_PROJECT_DIR", "COPILOT_HOME", "CURSOR_PROJECT_DIR")


class ClaudeCode(ClaudeCodeSettings):
    """The bridge to Claude Code."""

    name, provider = "claude-code", "anthropic"
    rows = _ROWS
    unlisted = MESSAGE
    stop_limit = 8
    gaps: Mapping[Power, str] = {
        "stop": "after a tool that failed, the run ends at the next call",
    }
    environment = (_STARTED_IN, _PROCESS, _ATTENDED, _ENTRYPOINT, _CLAUDE, CONFIG, *_OTHERS, *_PLACES)
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

    def schema_of(self, native_name: str) -> Mapping[str, Any]:
        """Return the schema of a tool that a transformer may give an argument it lacks."""
        return _EXCLUDES.get(native_name, NO_SCHEMA)

    def our_result(self, response: Any) -> ToolOutput:
        """Return a tool's response as hooks get it."""
        return our_result(response)

    def events_of(self, row: Row, payload: Mapping[str, Any]) -> tuple[Event[Any], ...]:
        """Return our events; after a batch of calls, a turn ends and the next one starts."""
        if row.name != "PostToolBatch":
            return super().events_of(row, payload)
        following = self.next_turn()
        return self._turn_end(payload, following.timestamp), following

    def _turn_end(self, payload: Mapping[str, Any], now: int) -> TurnEnd:
        given = payload.get("tool_calls") or []
        if not isinstance(given, list):
            raise BridgeError(f"tool_calls must be a list, not {shown(given)}")
        calls = [call for call in given if isinstance(call, dict)]
        asked: list[ToolCallContent] = []
        results: list[ToolResultMessage] = []
        for call in calls:
            theirs = {} if call.get("tool_input") is None else object_field(call, "tool_input")
            name, arguments = to_ours(self.tools, text_field(call, "tool_name"), theirs)
            asked.append(ToolCallContent(text_field(call, "tool_use_id", ""), name, arguments))
            content = our_result(call.get("tool_response")).content
            results.append(ToolResultMessage(tool_call_id=asked[-1].id, tool_name=name, content=content, timestamp=now))
        return TurnEnd(turn_index=0, message=self.assistant_message(asked), tool_results=tuple(results))

    def their_input(self, event: CallAsked, input: Mapping[str, Any]) -> Any:
        """Return an input of ours as the agent takes it."""
        arguments = super().their_input(event, input)
        return _as_globs(arguments) if event.input_schema is not NO_SCHEMA else arguments

    def native_result(self, event: CallEnded, output: ToolOutput) -> tuple[Any, list[str]]:
        """Return a changed result in the shape of its tool, and the texts that have no place there."""
        return native_result(event.native.get("tool_response"), event.output, output)

    # ---- the agent

    def runs_here(self, environment: Mapping[str, str]) -> bool:
        """Return whether Claude Code runs us, and not another agent that reads its settings."""
        return bool(environment.get(_CLAUDE)) or not any(environment.get(name) for name in _OTHERS)

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Return whether a person is at Claude Code; `claude -p` runs without one."""
        attended = environment.get(_ATTENDED)
        return attended != "0" if attended else environment.get(_ENTRYPOINT) != "sdk-cli"


def _as_globs(arguments: dict[str, Any]) -> dict[str, Any]:
    """Move the excluded globs to `glob`, which takes several, with blanks or commas between them."""
    left_out = ["!" + re.sub(r"[\s,]", "?", each) for each in arguments.pop("exclude", ())]
    if left_out:
        given = arguments.get("glob")
        arguments["glob"] = " ".join([given, *left_out] if given else left_out)
    return arguments
