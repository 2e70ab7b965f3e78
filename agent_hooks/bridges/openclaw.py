"""The bridge to OpenClaw, whose plugin hooks are those of version 2026.9.6; `server/plugins/openclaw.js` sends them.

OpenClaw asks about a prompt twice: a text for the model is the answer to the first question, and a block that to the
second.  The plugin puts both together.  The text of an error does not reach the model, so a denial is an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base.words import BridgeError, ToolWords
from agent_hooks.bridges.plugin import LATER, NOTES, PluginBridge, PluginFields
from agent_hooks.bridges.tables import VALUE, Layout, Row, our_result
from agent_hooks.errors import shown
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import Event, TurnEnd

_BLOCK_PROMPT = {"return": {"outcome": "block", "reason": VALUE, "message": VALUE}}
_FILE = {"file_path": "path"}
_ID = "agent-hooks-openclaw"
# The characters that OpenClaw shows of a question's title and of its text.
_TITLE, _TEXT = 80, 512
# Milliseconds in which the person can answer; OpenClaw takes no more.
_ANSWER = 600_000
_NO_TEXT = "OpenClaw gives its model a text from a hook with the next prompt only"


class OpenClaw(PluginBridge):
    """The bridge to OpenClaw."""

    name = "openclaw"
    title = "OpenClaw"
    program = "openclaw"
    tested = "2026.9.6"
    settings_format = "json5"
    plugin = "openclaw.js"
    rows = (
        Row(
            "before_tool_call",
            "call",
            {
                "block": {"return": {"block": True, "blockReason": VALUE}},
                "ask": {"return": {"requireApproval": VALUE}},
                "input": {"return": {"params": VALUE}},
                **NOTES,
            },
        ),
        Row("after_tool_call", "result", NOTES),
        Row(
            "before_prompt_build",
            "prompt",
            {"block": _BLOCK_PROMPT, "context": {"return": {"prependContext": VALUE}}, **NOTES},
        ),
        Row("before_agent_run", "prompt", {"block": _BLOCK_PROMPT, **NOTES}),
        Row("session_start", "start", {**LATER, **NOTES}),
        Row("session_end", "end", NOTES),
        Row("model_call_started", says=NOTES, feeds=("turn_end", "turn_start")),
        Row("before_agent_finalize", "stop", {"go_on": {"return": {"action": "revise", "reason": VALUE}}, **NOTES}),
        Row("before_compaction", "before_compact", NOTES),
        Row("after_compaction", "compact", NOTES),
    )
    fields = PluginFields(
        tool="toolName",
        input="params",
        call="toolCallId",
        result="result",
        error="",
        duration="durationMs",
        prompt="prompt",
        said="lastAssistantMessage",
        continued="stopHookActive",
        reason="reason",
    )
    layout = Layout(files={"user": "{home}/openclaw.json"}, home=("OPENCLAW_STATE_DIR", "~/.openclaw"))
    listed = ("plugins", "load", "paths")
    # After these the same conversation goes on in another session.
    moves_on = ("new", "reset", "idle", "daily", "compaction")
    stop_limit = 3
    tools = (
        ToolWords("exec", "bash", needs="command"),
        ToolWords("read", "read", _FILE),
        ToolWords("write", "write", _FILE),
        ToolWords("edit", "edit", _FILE),
        ToolWords("grep", "grep"),
        ToolWords("find", "find"),
        ToolWords("ls", "ls"),
    )
    limits = {  # noqa: RUF012  # a table, like the other attributes
        "replace": "OpenClaw shows a result to plugins and takes none back",
        "redact": "OpenClaw shows a result to plugins and takes none back",
        "context_before": _NO_TEXT,
        "context_after": _NO_TEXT,
        "stop": "OpenClaw lets no plugin end a run; each later call is denied instead",
        "cancel_compaction": "OpenClaw lets plugins only see a compaction",
    }
    gaps = {  # noqa: RUF012  # a table, like the other attributes
        "message": "the screen of `openclaw chat` shows no message, and `openclaw agent` prints it",
        "continue": "OpenClaw ends a run all the same in which a tool may have changed something",
    }

    def settings_files(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the path of the settings file, which a variable of its own can name."""
        path = environment.get("OPENCLAW_CONFIG_PATH")
        return {"user": path} if path else super().settings_files(environment)

    def _takes_context(self, row: Row, payload: Mapping[str, Any]) -> bool:
        # A text at a stop would be refused, and lost.
        return row.kind != "stop" and super()._takes_context(row, payload)

    def events_of(self, row: Row, payload: Mapping[str, Any]) -> tuple[Event[Any], ...]:
        """Return our events for an event of OpenClaw; the next question to the model ends a turn and begins another."""
        ended = TurnEnd(turn_index=0, message=self.assistant_message([]), tool_results=())
        if row.name == "model_call_started":
            return ended, self.next_turn()
        events = super().events_of(row, payload)
        return (ended, *events) if row.kind == "stop" else events

    def _output(self, row: Row, payload: Mapping[str, Any]) -> ToolOutput:
        result = payload.get("result")
        details = result.get("details") if isinstance(result, dict) else None
        code = details.get("exitCode") if isinstance(details, dict) else None
        failed = payload.get("error") is not None or (isinstance(code, int) and code != 0)
        return ToolOutput(our_result(result).content, details, failed)

    def their_question(self, row: Row, question: str) -> Any:
        """Return a question as OpenClaw takes it, without the answer that allows all calls from now on."""
        title, _, text = question.partition("\n")
        return {
            "title": _shortened(title, _TITLE),
            "description": _shortened(text or title, _TEXT),
            "allowedDecisions": ["allow-once", "deny"],
            "timeoutMs": _ANSWER,
        }

    def with_more(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings with leave for the plugin to run, and to see prompts."""
        plugins = dict(settings["plugins"])
        entries = dict(_object(plugins, "entries", "plugins"))
        own = _object(entries, _ID, "plugins.entries")
        entries[_ID] = {**own, "enabled": True, "hooks": {"allowConversationAccess": True}}
        allowed = plugins.get("allow")
        if isinstance(allowed, list) and _ID not in allowed:
            plugins["allow"] = [*allowed, _ID]
        return {**settings, "plugins": {**plugins, "entries": entries}}

    def without_more(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without the leave for the plugin."""
        plugins = settings.get("plugins")
        if not isinstance(plugins, Mapping):
            return dict(settings)
        left = dict(plugins)
        if isinstance(entries := plugins.get("entries"), Mapping) and _ID in entries:
            left["entries"] = {key: value for key, value in entries.items() if key != _ID}
            if not left["entries"]:
                del left["entries"]
        if isinstance(allowed := plugins.get("allow"), list) and _ID in allowed:
            left["allow"] = [each for each in allowed if each != _ID]
        return {**settings, "plugins": left}


def _object(settings: Mapping[str, Any], key: str, place: str) -> Mapping[str, Any]:
    """Return the object at a key, which may be missing or `null`.  Raises `BridgeError`."""
    value = settings.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BridgeError(f"{place}.{key} must be an object, not {shown(value)}")
    return value


def _shortened(text: str, size: int) -> str:
    """Return a text of at most `size` characters, which says that it is cut."""
    return text if len(text) <= size else f"{text[: size - 20]}… ({len(text):,} characters)"[:size]
