"""The bridge to Gemini CLI, whose hook protocol is that of version 0.61.0.

It takes `decision: "deny"` for a denial, and ignores the form of Claude Code.  Its model reads a changed result as an
error.  It waits for ever for the answer to a question where no person is, so such a question is a denial.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.base.installation import OURS, PROCESS, Hindrance, Power
from agent_hooks.bridges.base.verdicts import Reply, Verdict
from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.tables import CONTEXT, MESSAGE, STOP, VALUE, Fields, Layout, Row, nested
from agent_hooks.values.content import ToolOutput

_FILE, _DIRECTORY = {"file_path": "path"}, {"dir_path": "path"}
_DENY = {"decision": "deny", "reason": VALUE}
# The dialog shows the message, and not the reason.
_ASK = {"decision": "ask", "reason": VALUE, "systemMessage": VALUE}


class GeminiCli(CommandBridge):
    """The bridge to Gemini CLI."""

    name, title, program, tested = "gemini-cli", "Gemini CLI", "gemini", "0.61.0"
    provider = "google"
    environment = ("GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID", "GEMINI_CLI_HOME", "CI", "GITHUB_ACTIONS", PROCESS)
    project_variable, process_variable, here = "GEMINI_PROJECT_DIR", PROCESS, "GEMINI_SESSION_ID"
    timeout = 60
    settings_format = "jsonc"
    headless = ("-p", "--prompt")
    returns_continue = True
    moves_on = ("clear",)
    fields = Fields(agent="", call="", duration="", said="prompt_response")
    # The events of each request and each piece of a response are left out: BeforeModel, BeforeToolSelection, AfterModel.
    rows = (
        Row(
            "BeforeTool",
            "call",
            {"block": _DENY, "ask": _ASK, "input": nested(tool_input=VALUE), "stop": STOP, **MESSAGE},
        ),
        Row("AfterTool", "result", {"output": _DENY, "stop": STOP, **CONTEXT}),
        Row("BeforeAgent", "prompt", {"block": _DENY, **CONTEXT}),
        Row("SessionStart", "start", CONTEXT),
        Row("SessionEnd", "end", MESSAGE, timeout=10),
        Row("AfterAgent", "stop", {"go_on": _DENY, **MESSAGE}),
        # It comes before each request, so it is no sign of a compaction.
        Row("PreCompress", says=MESSAGE),
        Row("Notification", says=MESSAGE),
    )
    layout = Layout(
        files={"project": ".gemini/settings.json", "user": "{home}/.gemini/settings.json"},
        home=("GEMINI_CLI_HOME", "~"),
        unit="ms",
        entry={"name": OURS, "type": "command"},
        mark="description",
        off=("hooksConfig", "enabled"),
        off_value=False,
    )
    tools = (
        ToolWords("run_shell_command", "bash"),
        ToolWords("read_file", "read", _FILE),
        ToolWords("write_file", "write", _FILE),
        ToolWords("replace", "edit", {**_FILE, "old_string": "oldText", "new_string": "newText"}),
        ToolWords("glob", "find", _DIRECTORY),
        ToolWords("grep_search", "grep", {**_DIRECTORY, "include_pattern": "glob", "total_max_matches": "limit"}),
        ToolWords("list_directory", "ls", _DIRECTORY),
    )
    # The output of a command has a first word and a last line of its own.
    wrap = re.compile(
        r"\A<untrusted_context>\n(?:Output: (?=.*\nProcess Group PGID: \d+\n</untrusted_context>\Z))?"
        r"(.*?)(?:\nProcess Group PGID: \d+)?\n</untrusted_context>\Z",
        re.DOTALL,
    )
    limits: Mapping[Power, str] = {
        "compaction": "Gemini CLI sends the event of a compaction before each request, also without a compaction",
        "cancel_compaction": "Gemini CLI lets no hook stop a compaction",
    }
    gaps: Mapping[Power, str] = {
        "context_before": "the model reads it with the next result",
        "replace": "the model reads the new result as an error",
        "redact": "the model reads the rest of the result as an error",
        "subagents": "hooks cannot tell the calls of a sub-agent from those of the main agent",
    }

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return the reply; a question holds the messages too, because both have one place."""
        if answer.ask is not None and answer.block is None:
            answer = replace(answer, ask="\n".join([answer.ask, *answer.messages]), messages=())
        return super().encode(event, answer)

    def _output(self, row: Row, payload: Mapping[str, Any]) -> ToolOutput:
        output = super()._output(row, payload)
        # A command that fails has only a line in its output, and no field.
        shell = payload.get(self.fields.tool) == "run_shell_command"
        failed = shell and re.search(r"^Exit Code: [1-9]", output.text, re.MULTILINE)
        return replace(output, is_error=True) if failed else output

    def is_attended(self, environment: Mapping[str, str]) -> bool:
        """Return whether a person may be at Gemini CLI; it asks no person in a CI."""
        return "true" not in (environment.get("CI"), environment.get("GITHUB_ACTIONS"))

    def hindrances(self, path: str, found: Mapping[str, Any], project: str, posted: Any = ()) -> Sequence[Hindrance]:
        """Return the settings that switch all hooks or ours off."""
        config = found.get("hooksConfig")
        disabled = config.get("disabled") if isinstance(config, dict) else None
        off = isinstance(disabled, list) and OURS in disabled
        ours = [Hindrance(f"hooksConfig.disabled has {OURS}", remedy=f"/hooks enable {OURS}")] if off else []
        return [*super().hindrances(path, found, project, posted), *ours]
