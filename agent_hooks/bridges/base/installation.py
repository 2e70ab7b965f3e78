"""An installation in another agent: its events, our entries for them, and the facts by which `doctor` checks them.

The powers are the things that hooks can do in the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

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


OURS = "agent_hooks"
"""The word that marks our entries in another agent's settings."""
PROCESS = "AGENT_HOOKS_PID"
"""The variable by which an entry passes on the agent's process id, where the agent sets none and a shell runs it."""
LOOPBACK = "127.0.0.1"
"""The only address at which the resident server accepts HTTP."""


class EventRow(Struct, frozen=True):
    """One event of the other agent.

    `gate`: hooks can stop it, so that a failure of ours stops it too.
    `takes_context`: the agent shows its model a text from the answer.
    `decides_nothing`: no answer stops, changes or hides anything, so the event may be posted by HTTP, and be lost.  An
    answer may end the run; where the agent does not get it, the next call is denied.
    `always`: install the event also when no hook listens to it; gates are installed always.
    `timeout`: seconds to set in the entry, because the agent's own timeout is too short.
    `feeds`: the names of our events and points that it reaches, and the other words that `driver.listened_to` returns.
    `lacks`: the powers that hooks do not have at this event, so such an answer is a denial.
    """

    name: str
    gate: bool = False
    takes_context: bool = False
    decides_nothing: bool = False
    always: bool = False
    timeout: int | None = None
    feeds: tuple[str, ...] = ()
    lacks: tuple[Power, ...] = ()


class Address(Struct, frozen=True):
    """The place where the resident server accepts events by HTTP: a port of `LOOPBACK`, and the token of each request."""

    port: int
    token: str

    def url(self, agent: str, event: str) -> str:
        """Return the URL to which an event of an agent is posted."""
        return f"http://{LOOPBACK}:{self.port}/agent-hooks/{agent}/{event}"


class Installed(Struct, frozen=True):
    """One entry of ours in the other agent's settings.

    `command`: the words of the command line; the URL, for an entry that posts.
    `fails_closed`: the agent takes a failure of the command for a denial.
    `timeout`: seconds.
    `limits`: the settings, by key, that keep the entry from running at each such event.
    `address`: the address of an entry that posts.
    """

    event: str
    command: tuple[str, ...]
    fails_closed: bool = False
    timeout: float | None = None
    limits: Mapping[str, Any] = {}
    address: Address | None = None


class Facts(Struct, frozen=True):
    """The facts that `agent-hooks doctor` needs about an agent that works on a project; `~` stands for the home.

    `program`: the agent's command.
    `tested`: the version that this bridge was tested with.
    `files`: files other than the settings that can keep hooks from running.
    `environment`: the variables that the agent sets for a hook's command.
    `sample`: the payload of a tool call that does nothing.  It is no prompt, because hooks save a checkpoint at a prompt.
    `event`: the name of the event that the sample is a payload of; `session_field`: its field with the session's id.
    `hookless`: the options with which the program runs no hook.
    """

    program: str
    tested: str
    files: tuple[str, ...]
    environment: Mapping[str, str]
    sample: Mapping[str, Any]
    event: str = ""
    session_field: str = "session_id"
    hookless: tuple[str, ...] = ()


class Mod(Struct, frozen=True):
    """A plugin whose code runs in the agent itself, where it can answer and change the events of a call.

    `tier`: its place in the agent's order, such as `prepend`, `user` or `project`.
    `events`: the events that it handles; `None` if its files were not found.
    """

    name: str
    tier: str
    events: tuple[str, ...] | None = ()

    def __str__(self) -> str:
        """Return the mod in a few words, for the user and for records."""
        events = "its files were not found" if self.events is None else ", ".join(self.events) or "no events"
        return f"{self.name} ({self.tier}): {events}"


class Hindrance(Struct, frozen=True):
    """A setting of the agent that keeps hooks from running.  `remedy`: the action that removes it.

    `always`: it does so always, and not only until the person answers a question.
    """

    text: str
    always: bool = True
    remedy: str = ""
