"""The powers: the things that hooks can do in an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Power = Literal[
    "observe",
    "block",
    "ask",
    "rewrite",
    "replace",
    "redact",
    "failure",
    "context_before",
    "context_after",
    "block_prompt",
    "prompt_context",
    "session_context",
    "continue",
    "stop",
    "compaction",
    "cancel_compaction",
    "message",
    "subagents",
    "mcp",
    "patch",
]
POWERS: Mapping[Power, str] = {
    "observe": "see each event once, in order",
    "block": "block a tool call",
    "ask": "ask the person about a tool call",
    "rewrite": "rewrite the input of a tool call",
    "replace": "replace the result of a tool",
    "redact": "redact the result of a tool",
    "failure": "see that a tool failed",
    "context_before": "add context to a tool call",
    "context_after": "add context to a result",
    "block_prompt": "block a prompt",
    "prompt_context": "add context to a prompt",
    "session_context": "add context at the start of a session",
    "continue": "keep the agent going",
    "stop": "end the run",
    "compaction": "see a compaction",
    "cancel_compaction": "cancel a compaction",
    "message": "show the person a message",
    "subagents": "gate the calls of sub-agents",
    "mcp": "gate the calls of MCP tools",
    "patch": "gate a patch of several files",
}
"""The things that hooks can do in an agent, each as the end of the sentence "hooks can …".

`Bridge.limits` names those that an agent does not let hooks do.  `check_bridge`, `agent-hooks doctor` and the matrix in
docs/agents.md read both.
"""
