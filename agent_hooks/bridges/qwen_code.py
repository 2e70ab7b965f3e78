"""The bridge to Qwen Code, whose hook protocol is that of version 0.24.4.

Its events are those of Claude Code, and its tools those of Gemini CLI.  It takes no rewrite.  The words for stopping
replace a result: its model reads the new text as the error of the call, and goes on.  The person reads that the tool was
not run, although it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from agent_hooks.bridges.base.happenings import CallEnded, Happening
from agent_hooks.bridges.base.installation import OURS, PROCESS, Power
from agent_hooks.bridges.base.verdicts import Reply, Verdict
from agent_hooks.bridges.base.words import ToolWords
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.tables import ASK_CALL, BLOCK, CONTEXT, DENY_CALL, MESSAGE, PERMISSION, VALUE, Layout, Row
from agent_hooks.values.content import ToolOutput

_FILE = {"file_path": "path"}
# MessageDisplay is left out, because it comes with each piece of a text.
_OBSERVED = (
    "PostToolBatch",
    "Notification",
    "StopFailure",
    "UserPromptExpansion",
    "PermissionDenied",
    "TodoCreated",
    "TodoCompleted",
    "InstructionsLoaded",
    "SessionDelete",
)
_NO_TEXT = "(no output)"


class QwenCode(CommandBridge):
    """The bridge to Qwen Code."""

    name, title, program, tested, provider = "qwen-code", "Qwen Code", "qwen", "0.24.4", "qwen"
    environment = ("QWEN_PROJECT_DIR", "QWEN_HOME", PROCESS)
    project_variable, process_variable, here = "QWEN_PROJECT_DIR", PROCESS, "QWEN_PROJECT_DIR"
    timeout = 60
    stop_limit = 7
    returns_continue = True
    rows = (
        # Qwen Code asks the person for a permission before this event, so no answer here allows a call.
        Row("PreToolUse", "call", {"block": DENY_CALL, "ask": ASK_CALL, **MESSAGE}),
        Row("PostToolUse", "result", {"output": {"continue": False, "stopReason": VALUE}, **CONTEXT}),
        Row("PostToolUseFailure", "failure", CONTEXT),
        Row("UserPromptSubmit", "prompt", {"block": BLOCK, **CONTEXT}),
        Row("SessionStart", "start", CONTEXT),
        Row("SessionEnd", "end", MESSAGE, timeout=10),
        Row("Stop", "stop", {"go_on": BLOCK, **MESSAGE}),
        Row("SubagentStop", "stop", {"go_on": BLOCK, **MESSAGE}, always=False),
        Row("PreCompact", "before_compact", MESSAGE),
        Row("PostCompact", "compact", MESSAGE),
        Row("PermissionRequest", "permission", PERMISSION),
        Row("SubagentStart", says=MESSAGE),
        *(Row(name, says=MESSAGE) for name in _OBSERVED),
    )
    settings_format = "jsonc"
    layout = Layout(
        files={"project": ".qwen/settings.json", "user": "{home}/settings.json"},
        home=("QWEN_HOME", "~/.qwen"),
        entry={"name": OURS, "type": "command"},
        mark="description",
        off=("disableAllHooks",),
    )
    tools = (
        ToolWords("run_shell_command", "bash", milliseconds=("timeout",)),
        ToolWords("monitor", "bash"),
        ToolWords("read_file", "read", _FILE),
        ToolWords("write_file", "write", _FILE),
        ToolWords("edit", "edit", {**_FILE, "old_string": "oldText", "new_string": "newText"}),
        ToolWords("notebook_edit", "edit", {"notebook_path": "path", "new_source": "newText"}),
        ToolWords("glob", "find"),
        ToolWords("grep_search", "grep"),
        ToolWords("list_directory", "ls"),
    )
    # The output of a command stands between lines about the command.
    wrap = re.compile(
        r"\A(?:Command: .*?\nDirectory: [^\n]*\nOutput: (?=.*\nProcess Group PGID: [^\n]*\Z))?"
        r"(.*?)(?:\nError: [^\n]*\nExit Code: [^\n]*\nSignal: [^\n]*\nProcess Group PGID: [^\n]*)?\Z",
        re.DOTALL,
    )
    limits: Mapping[Power, str] = {
        "rewrite": "Qwen Code runs a tool with its old input after any answer",
        "cancel_compaction": "Qwen Code lets no hook stop a compaction",
        "stop": "Qwen Code goes on after an answer that ends the run; each later call is denied instead",
        "message": "Qwen Code shows the person a text of a hook at a stop only",
    }
    gaps: Mapping[Power, str] = {
        "context_before": "the model reads it with the next result",
        "block_prompt": "`qwen -p` prints nothing, and only the screen of Qwen Code has the reason",
        "replace": "the model gets the text of a tool that failed as it is",
        "redact": "the model gets the text of a tool that failed, and the output of the tool monitor, as they are",
    }

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        """Return the reply; a new result holds the texts for the model too, because Qwen Code takes one of the two."""
        if isinstance(event, CallEnded) and answer.output is not None and "output" in self.command_row(event.name).says:
            text = "\n\n".join([answer.output.text if answer.output.text.strip() else _NO_TEXT, *answer.context])
            answer = replace(answer, output=ToolOutput(text), context=())
        return super().encode(event, answer)
