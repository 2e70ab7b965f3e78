"""The spellings of other agents' hooks, each with ours: for error texts, and for the page about coming here.

This is the one module outside of the bridges that has names of other agents.  A row is `(agents, theirs, ours)`.  The
beginning of `theirs` says where the name is met: `event.`, `input.`, `output.`, `ctx.`, `ctx.ui.`, `api.`, `result.` (of
`ctx.exec`), `api.on("…")`, `api.on(…, …=)`, `return {"…": …}` or `from agent_hooks import …`.  `ours` comes after "write"
in an error.  camelCase needs no row: `values.near` knows the names of our fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

PI = "pi"
CLAUDE = "Claude Code"
OPENCODE = "OpenCode"

_NO_SESSION_MANAGER = 'ctx.session_file, and event.entries on "session"'
_DETAILS = "output.result.details"

SPELLINGS: tuple[tuple[str, str, str], ...] = (
    # ---- pi
    (PI, "event.toolName", "event.tool_name"),
    (PI, "event.toolCallId", "event.tool_call_id"),
    (PI, "event.isError", "event.is_error"),
    (PI, "event.turnIndex", "event.turn_index"),
    (PI, "event.toolResults", "event.tool_results"),
    (PI, "event.targetTurnIndex", "event.target_turn_index"),
    (PI, "event.previousSessionFile", "event.previous_session_file"),
    (PI, "event.tokensBefore", "event.tokens_before"),
    (PI, "event.firstKeptEntryIndex", "event.cut_point.first_kept_entry_index"),
    (PI, "event.preparation", "event.cut_point, event.messages_to_summarize and event.tokens_before"),
    (PI, "event.branchEntries", "event.entries"),
    (PI, "event.systemPrompt", 'output.system in api.intercept("chat.system.transform")'),
    (PI, "event.args", "event.input"),
    (PI, "event.params", "event.input"),
    (PI, "event.arguments", "event.input"),
    (PI, "event.ui", "ctx.ui"),
    (PI, "ctx.hasUI", "ctx.has_ui"),
    (PI, "ctx.sessionFile", "ctx.session_file"),
    (PI, "ctx.sessionManager", _NO_SESSION_MANAGER),
    (PI, "ctx.modelRegistry", 'await event.resolve_api_key(model) on "session" with the reason "before_compact"'),
    (PI, "ctx.model", 'event.model on "session" with the reason "before_compact"'),
    (PI, "ctx.abort", "return Stop(reason)"),
    (PI, "ctx.shutdown", "return Stop(reason)"),
    (PI, "ctx.signal", "no line for it: a handler is cancelled when the call is aborted"),
    (PI, "ctx.send", "api.send(text)"),
    (PI, "ctx.ui.setStatus", "ctx.ui.notify(message)"),
    (PI, "ctx.ui.setWidget", "ctx.ui.notify(message)"),
    (PI, "ctx.ui.custom", "ctx.ui.select(title, options)"),
    (PI, "ctx.ui.editor", "ctx.ui.input(title)"),
    (PI, "result.exitCode", "result.code"),
    (PI, "result.returncode", "result.code"),
    (PI, "api.exec", "await ctx.exec(command, args) in a handler"),
    (PI, "api.sendMessage", "api.send(text)"),
    (PI, "api.sendUserMessage", "api.send(text)"),
    (PI, "api.registerTool", "api.register_tool(tool)"),
    (PI, "api.registerCommand", 'api.intercept("command.execute.before", handler)'),
    (PI, "api.registerShortcut", 'api.intercept("command.execute.before", handler)'),
    (PI, "api.appendEntry", "api.state"),
    (PI, "api.events", 'api.intercept("event", handler)'),
    (PI, "api.off", "undo(), which api.on(event, handler) returns"),
    (PI, "api.ui", "ctx.ui in a handler"),
    (PI, 'api.on("session_start")', 'api.on("session"), with event.reason == "start"'),
    (PI, 'api.on("session_shutdown")', 'api.on("session"), with event.reason == "shutdown"'),
    (PI, 'api.on("session_before_switch")', 'api.on("session"), with event.reason == "before_switch"'),
    (PI, 'api.on("session_switch")', 'api.on("session"), with event.reason == "switch"'),
    (PI, 'api.on("session_before_new")', 'api.on("session"), with event.reason == "before_clear"'),
    (PI, 'api.on("session_new")', 'api.on("session"), with event.reason == "clear"'),
    (PI, 'api.on("session_before_branch")', 'api.on("session"), with event.reason == "before_branch"'),
    (PI, 'api.on("session_branch")', 'api.on("session"), with event.reason == "branch"'),
    (PI, 'api.on("session_before_fork")', 'api.on("session"), with event.reason == "before_branch"'),
    (PI, 'api.on("session_fork")', 'api.on("session"), with event.reason == "branch"'),
    (PI, 'api.on("session_before_compact")', 'api.on("session"), with event.reason == "before_compact"'),
    (PI, 'api.on("session_compact")', 'api.on("session"), with event.reason == "compact"'),
    (PI, 'api.on("before_agent_start")', 'api.on("agent_start")'),
    (PI, 'api.on("input")', 'api.intercept("message.before", handler)'),
    (PI, 'api.on("context")', 'api.intercept("chat.messages.transform", handler)'),
    (PI, 'api.on("tool_execution_start")', 'api.on("tool_call")'),
    (PI, 'api.on("tool_execution_end")', 'api.on("after_tool_call")'),
    (PI, 'api.on("message_end")', 'api.on("turn_end")'),
    (PI, 'return {"compaction": …}', "return Compaction(summary, first_kept_entry_index, tokens_before)"),
    (PI, 'return {"message": …}', "return AddContext(text)"),
    (PI, 'return {"systemPrompt": …}', 'output.system in api.intercept("chat.system.transform")'),
    (PI, 'return {"summary": …}', "return Compaction(summary, first_kept_entry_index, tokens_before)"),
    (PI, 'return {"result": …}', "return Replace(content=…)"),
    (PI, 'return {"output": …}', "return Replace(content=…)"),
    (PI, 'return {"input": …}', "return Rewrite(input) from a before_tool_call handler"),
    (PI, 'return {"args": …}', "return Rewrite(input) from a before_tool_call handler"),
    (PI, 'return {"action": …}', "return Block(reason)"),
    (PI, "from agent_hooks import ExtensionAPI", "HookAPI"),
    (PI, "from agent_hooks import ExtensionContext", "HookContext"),
    (PI, "from agent_hooks import HookEventContext", "HookContext"),
    (PI, "from agent_hooks import HookUIContext", "HookUI"),
    (PI, "from agent_hooks import HookFactory", "HookAPI"),
    (PI, "from agent_hooks import ToolCallEvent", "ToolCall"),
    (PI, "from agent_hooks import ToolResultEvent", "ToolResult"),
    (PI, "from agent_hooks import AgentStartEvent", "AgentStart"),
    (PI, "from agent_hooks import AgentEndEvent", "AgentEnd"),
    (PI, "from agent_hooks import TurnStartEvent", "TurnStart"),
    (PI, "from agent_hooks import TurnEndEvent", "TurnEnd"),
    (PI, "from agent_hooks import BashToolResultEvent", "is_bash_tool_result"),
    (PI, "from agent_hooks import isBashToolResult", "is_bash_tool_result"),
    (PI, "from agent_hooks import wrapToolsWithHooks", "wrap_tools"),
    # ---- Claude Code
    (CLAUDE, "event.tool_input", "event.input"),
    (CLAUDE, "event.tool_response", "event.content"),
    (CLAUDE, "event.tool_output", "event.content"),
    (CLAUDE, "event.tool_use_id", "event.tool_call_id"),
    (CLAUDE, "event.hook_event_name", "event.type"),
    (CLAUDE, "event.session_id", "ctx.session_id"),
    (CLAUDE, "event.transcript_path", "ctx.session_file"),
    (CLAUDE, "event.cwd", "ctx.cwd"),
    (CLAUDE, "event.permission_mode", "ctx.mode"),
    (CLAUDE, "event.stop_hook_active", "event.continued"),
    (CLAUDE, "event.source", "event.reason"),
    (CLAUDE, "event.trigger", "event.reason"),
    (CLAUDE, "event.agent_id", "ctx.agent_id"),
    (CLAUDE, 'api.on("PreToolUse")', 'api.on("tool_call")'),
    (CLAUDE, 'api.on("PostToolUse")', 'api.on("tool_result")'),
    (CLAUDE, 'api.on("PostToolUseFailure")', 'api.on("tool_result"), with event.is_error'),
    (CLAUDE, 'api.on("PermissionRequest")', 'api.intercept("permission.ask", handler)'),
    (CLAUDE, 'api.on("UserPromptSubmit")', 'api.on("agent_start")'),
    (CLAUDE, 'api.on("Stop")', 'api.on("agent_end")'),
    (CLAUDE, 'api.on("SubagentStop")', 'api.on("agent_end"), with ctx.agent_id'),
    (CLAUDE, 'api.on("SessionStart")', 'api.on("session"), with event.reason == "start"'),
    (CLAUDE, 'api.on("SessionEnd")', 'api.on("session"), with event.reason == "shutdown"'),
    (CLAUDE, 'api.on("PreCompact")', 'api.on("session"), with event.reason == "before_compact"'),
    (CLAUDE, 'api.on("PostCompact")', 'api.on("session"), with event.reason == "compact"'),
    (CLAUDE, 'api.on("Notification")', 'api.intercept("permission.ask", handler)'),
    (CLAUDE, "api.on(…, matcher=)", "tool=, a name, a compiled pattern or a list of those"),
    (CLAUDE, "api.on(…, timeout=)", "hookTimeout in the settings, in milliseconds"),
    (CLAUDE, "api.on(…, command=)", "a function as the handler"),
    (CLAUDE, 'return {"decision": …}', "return Block(reason), or None"),
    (CLAUDE, 'return {"permissionDecision": …}', "return Block(reason), Ask(title), or None"),
    (CLAUDE, 'return {"permissionDecisionReason": …}', "return Block(reason)"),
    (CLAUDE, 'return {"hookSpecificOutput": …}', "return Block(reason), Ask(title), or None"),
    (CLAUDE, 'return {"updatedInput": …}', "return Rewrite(input) from a before_tool_call handler"),
    (CLAUDE, 'return {"additionalContext": …}', "return AddContext(text)"),
    (CLAUDE, 'return {"stopReason": …}', "return Stop(reason)"),
    (CLAUDE, 'return {"systemMessage": …}', "ctx.ui.notify(message)"),
    (CLAUDE, 'return {"suppressOutput": …}', "no key for it: what a hook prints goes to stderr"),
    (CLAUDE, "from agent_hooks import HookMatcher", 'HookAPI, and @api.on("tool_call", tool="bash")'),
    # ---- OpenCode
    (OPENCODE, "input.tool", "input.tool_name"),
    (OPENCODE, "input.callID", "input.tool_call_id"),
    (OPENCODE, "input.sessionID", "ctx.session_key, with ctx as the third parameter"),
    (OPENCODE, "input.agent", "ctx.agent_id, with ctx as the third parameter"),
    (OPENCODE, "input.directory", "ctx.cwd, with ctx as the third parameter"),
    (OPENCODE, "input.metadata", "output.metadata at message.before"),
    (OPENCODE, "output.blockReason", "output.block_reason"),
    (OPENCODE, "output.reason", "output.block_reason"),
    (OPENCODE, "output.input", "output.args"),
    (OPENCODE, "output.params", "output.args"),
    (OPENCODE, "output.title", _DETAILS),
    (OPENCODE, "output.output", "output.result.content"),
    (OPENCODE, "output.content", "output.result.content"),
    (OPENCODE, "output.details", _DETAILS),
    (OPENCODE, "output.parts", "output.message, which is the text"),
    (OPENCODE, "output.topP", "output.top_p"),
    (OPENCODE, "output.maxTokens", "think_level, temperature, top_p or top_k"),
    (OPENCODE, "api.client", "api.send(text), and ctx in a handler"),
    (OPENCODE, "api.directory", "ctx.cwd in a handler"),
    (OPENCODE, "api.worktree", "ctx.cwd in a handler"),
    (OPENCODE, "api.project", "ctx.cwd in a handler"),
    (OPENCODE, "api.tool", "api.register_tool(tool)"),
    (OPENCODE, 'api.on("session.created")', 'api.on("session"), with event.reason == "start"'),
    (OPENCODE, 'api.on("session.deleted")', 'api.on("session"), with event.reason == "shutdown"'),
    (OPENCODE, 'api.on("session.compacted")', 'api.on("session"), with event.reason == "compact"'),
    (OPENCODE, 'api.on("session.idle")', 'api.on("agent_end")'),
    (OPENCODE, 'api.on("session.error")', 'api.on("agent_end")'),
    (OPENCODE, 'api.on("message.updated")', 'api.on("turn_end")'),
    (OPENCODE, 'api.on("file.edited")', 'api.on("tool_result", tool=["edit", "write"])'),
    (OPENCODE, 'api.on("permission.updated")', 'api.intercept("permission.ask", handler)'),
    (OPENCODE, 'api.on("permission.asked")', 'api.intercept("permission.ask", handler)'),
    (OPENCODE, 'api.on("command.executed")', 'api.intercept("command.execute.before", handler)'),
)

_BEGINNINGS = {
    'api.on("': '")',
    "api.on(…, ": "=)",
    'return {"': '": …}',
    "from agent_hooks import ": "",
    "ctx.ui.": "",
    "event.": "",
    "input.": "",
    "output.": "",
    "ctx.": "",
    "result.": "",
    "api.": "",
}


def parted(theirs: str) -> tuple[str, str]:
    """Return the place of a spelling, its beginning in the table, and the bare name."""
    for begin, end in _BEGINNINGS.items():
        if theirs.startswith(begin):
            return begin, theirs[len(begin) : len(theirs) - len(end)]
    raise ValueError(f"{theirs!r} begins as no place does")


@cache
def spelled(place: str) -> Mapping[str, str]:
    """Return the names that are met at a place, each with ours."""
    rows = ((*parted(theirs), ours) for _, theirs, ours in SPELLINGS if theirs.startswith(place))
    return {name: ours for begin, name, ours in rows if begin == place}


def remedy(place: str, name: object) -> str:
    """Return `; write …` for the name of another agent at a place, or an empty text for any other name."""
    ours = spelled(place).get(name) if isinstance(name, str) else None
    return f"; write {ours}" if ours else ""
