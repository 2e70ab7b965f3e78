"""The bridge to Claude Code, with the hook protocol of version 2.1.332.

A denial is `permissionDecision: "deny"` with exit code 0 and nothing else, because some versions run the tool after any
other form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base.happenings import CallAsked, CallEnded
from agent_hooks.bridges.base.installation import Power
from agent_hooks.bridges.base.words import BridgeError, ToolWords, object_field, text_field, to_ours
from agent_hooks.bridges.claude_code_settings import CONFIG, ClaudeCodeSettings
from agent_hooks.bridges.tables import (
    ASK_CALL,
    BLOCK,
    CONTEXT,
    DENY_CALL,
    MESSAGE,
    PERMISSION,
    STOP,
    VALUE,
    Row,
    as_json,
    nested,
)
from agent_hooks.errors import shown
from agent_hooks.values.content import (
    ContentBlock,
    ImageContent,
    TextContent,
    ToolCallContent,
    ToolOutput,
    ToolResultMessage,
)
from agent_hooks.values.events import Event, TurnEnd
from agent_hooks.values.frozen import thaw
from agent_hooks.values.tool import NO_SCHEMA

# A changed result must have the shape of its tool's results, because Claude Code drops any other result silently.

_CUT = "[Only the beginning of this result is shown, because a hook changed it; the rest is not kept.]"
# The keys of a shell's result that lead to its whole output.
_PERSISTED = ("persistedOutputPath", "persistedOutputSize", "rawOutputPath", "structuredContent")


def our_result(response: Any) -> ToolOutput:
    """Return a tool's response as hooks get it: its text if the shape is known, else its JSON."""
    match response:
        case str():
            return ToolOutput(response)
        # An MCP server and a sub-agent return blocks.
        case list() | {"content": list()}:
            blocks = response if isinstance(response, list) else response["content"]
            return ToolOutput([_block(each) for each in blocks])
        case {"stdout": str(stdout), "stderr": str(stderr)}:
            return ToolOutput("\n".join(text for text in (stdout, stderr) if text))
        case {"type": "text", "file": {"content": str(text)}}:
            return ToolOutput(text)
        case {"type": "image", "file": {"base64": str(data), "type": str(kind)}}:
            return ToolOutput([ImageContent(data, kind)])
        # Grep and WebFetch.
        case {"mode": "content" | "count", "content": str(text)} | {"url": str(), "result": str(text)}:
            return ToolOutput(text)
        # Glob and Grep.
        case {"filenames": list(names)} if all(isinstance(name, str) for name in names):
            return ToolOutput("\n".join(names))
    return ToolOutput(as_json(response))


def native_result(response: Any, before: ToolOutput, after: ToolOutput) -> tuple[Any, list[str]]:
    """Return a changed result in the shape of `response`, or `None`, and the texts that have no place in this shape."""
    response = thaw(response)
    body = [block for block in after.content if block in before.content] or list(after.content[:1])
    rest = [block.text for block in after.content if block not in body and isinstance(block, TextContent)]
    first = "\n".join(block.text for block in body if isinstance(block, TextContent))
    match response:
        case str():
            return after.text, []
        case list():
            return _native_blocks(response, before, after), []
        case {"content": list(blocks)}:
            return {**response, "content": _native_blocks(blocks, before, after)}, []
        case {"stdout": str(), "stderr": str()}:
            kept = {key: value for key, value in response.items() if key not in _PERSISTED}
            # The file at that path still has the text that hooks removed, so the model is not sent to it.
            texts = [_CUT] if "persistedOutputPath" in response else []
            return {**kept, "stdout": after.text, "stderr": "", "isImage": False}, texts
        case {"mode": "content" | "count", "content": str()}:
            return _lines(response, first.splitlines()), rest
        case {"url": str(), "result": str()}:
            return {**response, "result": after.text}, []
        case {"filenames": list(names)}:
            return _listing(response, names, first.splitlines()), rest
    if before.text == as_json(response) and (parsed := _same_shape(first, response)) is not None:
        return parsed, rest
    # Read accepts each of its shapes for any file.
    if isinstance(response, dict) and isinstance(file := response.get("file"), dict):
        return _file(response.get("type"), file, after, rest)
    return None, [after.text]


def _file(kind: Any, file: dict[str, Any], after: ToolOutput, rest: list[str]) -> tuple[Any, list[str]]:
    image = after.content[0] if after.content else None
    if isinstance(image, ImageContent):
        if kind == "image" and image.data == file.get("base64"):
            return None, rest
        size = len(image.data) * 3 // 4
        return {"type": "image", "file": {"base64": image.data, "type": image.mime_type, "originalSize": size}}, rest
    text = after.text
    lines = text.count("\n") + 1
    if kind != "text":
        file = {"filePath": file.get("filePath", ""), "startLine": 1, "totalLines": lines}
    return {"type": "text", "file": {**file, "content": text, "numLines": lines}}, []


def _listing(response: dict[str, Any], before: list[str], names: list[str]) -> dict[str, Any]:
    fewer = len(before) - len(names)
    totals = {
        key: response[key] - fewer for key in ("totalFiles", "totalMatches") if isinstance(response.get(key), int)
    }
    return {**response, "filenames": names, "numFiles": len(names), **totals}


def _lines(response: dict[str, Any], lines: list[str]) -> dict[str, Any]:
    changed = {**response, "content": "\n".join(lines)}
    if response["mode"] == "count":
        # The lines have the form `path:number`.
        numbers = [int(found[1]) for line in lines if (found := re.search(r"(?:^|:)([0-9]{1,18})$", line))]
        return {**changed, "numFiles": len(numbers), "numMatches": sum(numbers)}
    fewer = len(response["content"].splitlines()) - len(lines)
    totals = {"totalLines": response["totalLines"] - fewer} if isinstance(response.get("totalLines"), int) else {}
    return {**changed, "numLines": len(lines), **totals}


def _same_shape(text: str, response: Any) -> Any:
    """Return the text as a JSON object, if it is one with the keys of the response, else `None`."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    same = isinstance(parsed, dict) and isinstance(response, Mapping) and parsed.keys() == response.keys()
    return parsed if same else None


def _block(block: Any) -> ContentBlock:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextContent(text)
        case {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str(kind)}}:
            return ImageContent(data, kind)
    return TextContent(as_json(block))


def _native_blocks(blocks: list[Any], before: ToolOutput, after: ToolOutput) -> list[Any]:
    """Return the blocks of a result.  An unchanged block is the original, which may have fields that ours lack."""
    return [
        blocks[before.content.index(block)] if block in before.content else _native_block(block)
        for block in after.content
    ]


def _native_block(block: ContentBlock) -> dict[str, Any]:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    return {"type": "image", "source": {"type": "base64", "media_type": block.mime_type, "data": block.data}}


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
    # A command in the text of a skill.  Claude Code 2.1.332 takes a question and a rewrite there for a denial.
    Row(
        "PreSkillShellCommand",
        "call",
        {"block": DENY_CALL, "stop": STOP, **MESSAGE},
        timeout=600,
        lacks=("ask", "rewrite"),
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
        "context_before": "before a command in the text of a skill, the model gets none",
    }
    environment = (_STARTED_IN, _PROCESS, _ATTENDED, _ENTRYPOINT, _CLAUDE, CONFIG, *_OTHERS, *_PLACES)
    seat: Mapping[str, str] = {_CLAUDE: "1"}
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

    def origin_of(self, payload: Mapping[str, Any]) -> str:
        """Return the skill, or the slash command, whose text has the command of a call."""
        name = payload.get("command_name")
        return f"skill {name}" if isinstance(name, str) and name else ""

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
