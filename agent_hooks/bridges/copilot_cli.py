"""The bridge to GitHub Copilot CLI, whose hook protocol is that of version 1.0.102.

A payload names no event and no id of a call.  Any exit code but 0 denies a call.  Copilot CLI also runs the entries of
Claude Code in a project, with payloads of another form, and takes the same answers there: see `CopilotAsClaude`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import CallAsked
from agent_hooks.bridges.base.installation import PROCESS, Power
from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.tables import BLOCK, VALUE, Fields, Layout, Row, Templates
from agent_hooks.values.content import ToolOutput

_CONTEXT: Templates = {"context": {"additionalContext": VALUE}}
_CALL: Templates = {
    "block": {"permissionDecision": "deny", "permissionDecisionReason": VALUE},
    "ask": {"permissionDecision": "ask", "permissionDecisionReason": VALUE},
    "allow": {"permissionDecision": "allow"},
    "input": {"modifiedArgs": VALUE},
    **_CONTEXT,
}
_RESULT: Templates = {
    "output": {"modifiedResult": {"resultType": "success", "textResultForLlm": VALUE}},
    **_CONTEXT,
}
_PROMPT: Templates = {"block": BLOCK, "prompt": {"modifiedPrompt": VALUE}, **_CONTEXT}
_PERMISSION: Templates = {"block": {"behavior": "deny", "message": VALUE}, "allow": {"behavior": "allow"}}
_STOP: Templates = {"go_on": BLOCK}
_SEARCH = {"-i": "ignoreCase", "head_limit": "limit"}
# The argument of a tool whose input is one text.
_TEXT = "input"


class CopilotCli(CommandBridge):
    """The bridge to GitHub Copilot CLI."""

    name, title, program, tested = "copilot-cli", "Copilot CLI", "copilot", "1.0.102"
    environment: tuple[str, ...] = ("COPILOT_PROJECT_DIR", "COPILOT_CLI", "COPILOT_HOME", PROCESS)
    project_variable, process_variable, here = "COPILOT_PROJECT_DIR", PROCESS, "COPILOT_CLI"
    timeout = 30
    stop_limit = 8
    returns_continue = True
    reads = {"claude-code": ("project",)}  # noqa: RUF012  # a table, like the other attributes
    fields = Fields(
        event="",
        session="sessionId",
        file="transcriptPath",
        agent="agentId",
        parent="parentAgentId",
        tool="toolName",
        input="toolArgs",
        asked_input="toolInput",
        call="",
        result="toolResult",
        duration="",
        said="response",
        summary="",
        instructions="customInstructions",
    )
    rows: tuple[Row, ...] = (
        Row("preToolUse", "call", _CALL),
        Row("postToolUse", "result", _RESULT),
        Row("postToolUseFailure", "failure", _CONTEXT),
        Row("userPromptSubmitted", "prompt", _PROMPT),
        Row("sessionStart", "start", _CONTEXT),
        Row("sessionEnd", "end", timeout=10),
        # It also comes for a sub-agent, so subagentStop would be the same end a second time.
        Row("agentStop", "stop", _STOP),
        Row("preCompact", "before_compact"),
        Row("permissionRequest", "permission", _PERMISSION),
        *(
            Row(name)
            for name in ("userPromptTransformed", "subagentStart", "subagentStop", "errorOccurred", "notification")
        ),
    )
    layout = Layout(
        # The hooks of a repository run in the maker's cloud too, where no agent-hooks is.
        files={"user": "{home}/hooks/agent-hooks.json"},
        home=("COPILOT_HOME", "~/.copilot"),
        flat=True,
        command="bash",
        timeout="timeoutSec",
        # In such an entry, "" and "*" match no tool.
        every_tool=(None,),
        top={"version": 1},
    )
    tools: tuple[ToolWords, ...] = (
        ToolWords("bash", "bash"),
        ToolWords("view", "read"),
        ToolWords("create", "write", {"file_text": "content"}),
        ToolWords("edit", "edit", {"old_str": "oldText", "new_str": "newText"}),
        ToolWords("glob", "find"),
        ToolWords("grep", "grep", _SEARCH),
        ToolWords("rg", "grep", _SEARCH),
    )
    # The last line of a command's output tells its exit code.
    wrap = re.compile(r"\A(.*?)\n?(?:<shellId: \S+ completed with exit code -?\d+>)?\Z", re.DOTALL)
    limits: Mapping[Power, str] = {
        "cancel_compaction": "Copilot CLI lets no hook stop a compaction",
        "stop": "Copilot CLI goes on after an answer that ends the run; each later call is denied instead",
        "message": "Copilot CLI shows the person no text of a hook",
    }
    gaps: Mapping[Power, str] = {
        "replace": "the model gets the text of a tool that failed as it is",
        "redact": "the model gets the text of a tool that failed as it is, and Copilot CLI keeps each result in its own "
        "session file as it was",
        "failure": "Copilot CLI calls no hook after a tool whose arguments it refuses",
    }

    def directory(self, environment: Mapping[str, str]) -> str:
        """Return Copilot CLI's own directory, which is there before it holds any hooks."""
        return super().directory(environment).rpartition("/")[0]

    def input_of(self, payload: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return the input of a call; that of `apply_patch` is one text, which becomes an argument."""
        value = payload.get(key)
        return {_TEXT: value} if isinstance(value, str) else super().input_of(payload, key)

    def their_input(self, event: CallAsked, input: Mapping[str, Any]) -> Any:
        """Return an input of ours as Copilot CLI takes it: one text where it sent one."""
        arguments = super().their_input(event, input)
        return arguments[_TEXT] if self._is_text(event) else arguments

    def refused_rewrite(self, row: Row, event: CallAsked, wanted: Mapping[str, Any]) -> str | None:
        """Return the reason for which Copilot CLI would not take a rewrite whole; `None` if it would."""
        if self._is_text(event) and not (wanted.keys() == {_TEXT} and isinstance(wanted[_TEXT], str)):
            return f"a hook changed this call, and {event.native_name} takes one text only"
        return super().refused_rewrite(row, event, wanted)

    def _is_text(self, event: CallAsked) -> bool:
        return isinstance(event.native.get(self.fields.input), str)

    def _output(self, row: Row, payload: Mapping[str, Any]) -> ToolOutput:
        output = super()._output(row, payload)
        # Copilot CLI reports a command that fails as a success; only the last line of its output tells.
        return replace(output, is_error=True) if _failed(payload.get(self.fields.result)) else output


class CopilotAsClaude(CopilotCli):
    """The same bridge for the entries of Claude Code, which Copilot CLI runs too: other names, the same answers."""

    fields = Fields(
        parent="parent_agent_id",
        call="",
        result="tool_result",
        duration="",
        said="response",
        summary="",
    )
    rows = (
        Row("PreToolUse", "call", _CALL),
        Row("PostToolUse", "result", _RESULT),
        Row("PostToolUseFailure", "failure", _CONTEXT),
        Row("UserPromptSubmit", "prompt", _PROMPT),
        Row("SessionStart", "start", _CONTEXT),
        Row("SessionEnd", "end"),
        Row("Stop", "stop", _STOP),
        Row("PreCompact", "before_compact"),
        Row("PermissionRequest", "permission", _PERMISSION),
        *(Row(name) for name in ("SubagentStart", "SubagentStop", "Notification")),
    )
    tools = (ToolWords("Bash", "bash"), *CopilotCli.tools)

    def knows(self, payload: object) -> bool:
        """Return whether a payload is from Copilot CLI; those of Claude Code hold no time."""
        return isinstance(payload, dict) and "timestamp" in payload

    def decode(self, payload: object, event_name: str | None = None) -> Any:
        """Return the happening of a payload; the event of a permission has the names of the other form."""
        if isinstance(payload, dict) and payload.get("hookName") == "permissionRequest":
            return replace(_NATIVE.decode(payload, "permissionRequest"), name="PermissionRequest")
        return super().decode(payload, event_name)


_NATIVE = CopilotCli()


def _failed(result: object) -> bool:
    """Return whether the last line of a result tells an exit code that is not 0."""
    match result:
        case {"textResultForLlm": str(text)} | {"text_result_for_llm": str(text)}:
            return re.search(r"\n<shellId: \S+ completed with exit code (?!0>)-?\d+>\Z", f"\n{text}") is not None
    return False
