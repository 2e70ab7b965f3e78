"""The values that the export of records sends: spans, events and logs of OpenTelemetry, and their attributes.

Without inputs, they hold only the fields that `PUBLIC` names: no text of a model, a tool, a person or a hook.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks.records.lines import AnyLine
from agent_hooks.storage.digests import sha256

INFO, WARN = 9, 13
"""Severities of logs, as OpenTelemetry numbers them."""
PREFIX = "agent_hooks."
# fmt: off
PUBLIC = frozenset((
    "v", "prev", "n", "time", "clock", "id", "kind", "session", "agent", "parent", "turn", "turnId", "client",
    "clientVersion", "version", "mode", "clientSession", "clientCall", "transcript", "cwd", "project", "pid",
    "trust", "trustedSet", "settings", "tool", "nativeTool", "verdict", "by", "cause", "rule", "inputSize",
    "inputCut", "mayChange", "digest", "rewrittenBy", "steps", "ms", "status", "size", "redacted", "reference",
    "checkpoint", "marked",
    "about", "number", "to", "reply", "who", "user", "event", "hooks", "failed", "guards", "cut", "calls", "offset",
    "bytes", "lines", "why", "path", "what", "before", "after", "unlocked", "until", "edits", "head", "at", "stage",
    "handler", "file", "sha256", "line", "priority", "answer", "outcome", "changed", "op",
    "scope", "hook", "countsIn", "tree", "more",
))
# fmt: on
"""The keys of a line, and of the steps in it, that hold no input, output or free text."""
ALSO = {"note": {"reason"}, "tombstone": {"files"}}
# Only in the log itself; the other keys of a line are attributes of its span or event.
_CHAIN = {"v", "prev", "n", "time", "clock", "kind", "steps", "pid"}
_CONSTANT = (
    *("session", "agent", "client", "client_version", "client_session", "version", "mode", "transcript", "cwd"),
    *("project", "trust", "trusted_set", "settings"),
)
_START = datetime.fromtimestamp(0, UTC)
Attributes = dict[str, Any]


class SpanEvent(Struct, frozen=True):
    """An event of a span; `time`: nanoseconds since 1970."""

    name: str
    time: int
    attributes: Attributes


class Span(Struct, frozen=True, kw_only=True):
    """A span; `start`, `end`: nanoseconds since 1970; `error`: why it failed, empty when it did not."""

    trace: int
    id: int
    parent: int | None
    name: str
    start: int
    end: int
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    error: str = ""


class Log(Struct, frozen=True, kw_only=True):
    """A log; `trace` and `span`: the span that it belongs to; `body`: the line as JSON."""

    trace: int
    span: int
    time: int
    name: str
    body: str
    severity: int
    attributes: Attributes


def trace_id(session: str) -> int:
    """Return the id of a session's trace."""
    return _number("trace", session, digits=32)


def call_span_id(session: str, call: str) -> int:
    """Return the id of the span of a tool call; `call`: the `id` of its lines."""
    return _number("call", session, call)


def agent_span_id(session: str, agent: str) -> int:
    """Return the id of the span of an agent in a session."""
    return _number("agent", session, agent)


def _number(*parts: str, digits: int = 16) -> int:
    # A zero is no valid id.
    return int(sha256("\0".join(parts).encode("utf-8", "surrogatepass"))[:digits], 16) or 1


def constant(line: AnyLine) -> Attributes:
    """Return the facts about the agent and its trust, which most lines of a session share."""
    return {name: getattr(line, name) for name in _CONSTANT}


def gen_ai(line: AnyLine) -> Attributes:
    """Return the attributes of the GenAI conventions that a line has."""
    found: Attributes = {
        "gen_ai.conversation.id": line.client_session or line.session,
        "gen_ai.agent.name": line.client or "agent-hooks",
        "gen_ai.agent.id": line.agent,
    }
    tool = getattr(line, "tool", "")
    if tool:
        found |= {"gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
        found["gen_ai.tool.call.id"] = line.client_call or line.id
    return found


def public(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the values of the public keys, of the steps below them too."""
    found = {key: value for key, value in values.items() if key in names}
    if "steps" in found:
        found["steps"] = [{key: value for key, value in step.items() if key in PUBLIC} for step in found["steps"]]
    return found


def attributes_of(values: Mapping[str, Any]) -> Attributes:
    """Return the values as attributes: snake-case names, texts, numbers and lists of texts; others as JSON."""
    return {_snake(key): _value(value) for key, value in values.items() if key not in _CHAIN and value is not None}


def _value(value: Any) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return json_text(value)


def json_text(value: Any) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def prefixed(attributes: Attributes) -> Attributes:
    """Return attributes with the names of this package: `agent_hooks.verdict`."""
    return {PREFIX + key: value for key, value in attributes.items()}


def is_warning(values: Mapping[str, Any]) -> bool:
    """Tell whether a line is about a call or an action that was stopped or failed, or about damage."""
    return (
        values.get("verdict") in ("block", "cancelled", "aborted")
        or values.get("status") in ("error", "blocked", "aborted")
        or values["kind"] in ("note", "edit", "tombstone")
    )


def time_of(line: AnyLine) -> int:
    """Return the time of a line in nanoseconds since 1970."""
    past = line.time - _START
    return ((past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds) * 1000


def milliseconds(number: float) -> int:
    """Return milliseconds as nanoseconds."""
    return round(number * 1_000_000)
