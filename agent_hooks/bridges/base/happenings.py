"""A happening: one event of another agent, decoded.

Each kind of event has a class.  The bridge makes it of a payload, and `driver` takes it through our hooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import Event
from agent_hooks.values.tool import NO_SCHEMA


class Happening(Struct, frozen=True, kw_only=True):
    """One event of the other agent, in our words.  This class itself stands for an event that we have no word for.

    `name`: the event's own name.
    `native`: the whole payload; hooks get a copy of it.
    `cwd`: the directory where the agent works now.
    `agent_id`: `"main"`, or the id of a sub-agent.
    `parent_session`: the session whose sub-agent this one is, for an agent that gives each sub-agent a session.
    `takes_context`: the agent shows its model a text from the answer to this event.
    `starts`: a session starts, so the person gets the messages about the hooks.
    `leaves`: the session ends, or the agent continues in another session.

    A field that the payload lacks is `None`.
    """

    name: str
    native: Mapping[str, Any]
    session_id: str | None = None
    session_file: str | None = None
    cwd: str | None = None
    agent_id: str = "main"
    parent_session: str | None = None
    takes_context: bool = False
    starts: bool = False
    leaves: bool = False


class EventsReported(Happening, frozen=True):
    """A happening that is one or more of our events, to be emitted in this order; `before_compact` can be cancelled."""

    events: tuple[Event[Any], ...]


class PromptGiven(Happening, frozen=True):
    """The person submitted a prompt; hooks can keep it from the agent.

    `rewritable`: the agent takes another prompt in its place.
    """

    prompt: str
    rewritable: bool = False


class Part(Struct, frozen=True):
    """One call of a tool of ours, as a part of a call of the other agent: a patch writes several files.

    `unread`: the reason for which the input cannot be known before the call runs, as the sentence after "because"; the
    input lacks its arguments then.  Such a part is undecidable where a handler listens to calls of the tool.
    `file`: the file that tells the input of an unread part, as a path relative to the agent's directory, or empty.
    """

    tool_name: str
    input: Mapping[str, Any]
    unread: str = ""
    file: str = ""


class Call(Happening, frozen=True, kw_only=True):
    """A tool call.  `tool_name` and `input` are in our vocabulary if it has the tool, else as the agent sent them.

    `native_name`: the agent's own name of the tool.
    `parts`: the calls of our tools that the call amounts to, beside itself, as `Bridge.parts` returns them.  Each part is
    judged too, and the strictest verdict counts; no part is rewritten.
    `stays_open`: see `ToolWords`.
    `origin`: the text that has the call, `skill NAME` for example; empty for a call of the model.
    """

    tool_name: str
    tool_call_id: str
    input: Mapping[str, Any]
    native_name: str
    parts: tuple[Part, ...] = ()
    stays_open: bool = False
    origin: str = ""


class CallAsked(Call, frozen=True, kw_only=True):
    """A tool is about to run: the gate.  `input_schema`: the schema of the tool's arguments, as far as it is known."""

    input_schema: Mapping[str, Any] = NO_SCHEMA


class CallEnded(Call, frozen=True, kw_only=True):
    """A tool ran or failed.  `duration_ms`: the time that the tool took, if the payload has it.

    `overruled_by`: if the call was blocked, the mods that the agent loads.
    """

    output: ToolOutput
    overruled_by: tuple[str, ...] = ()
    duration_ms: float | None = None


class PermissionAsked(Call, frozen=True):
    """The other agent is about to ask the person whether a tool may run."""
