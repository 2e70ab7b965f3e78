"""The tables of an agent whose hooks are commands: its events, the fields of its payloads, the layout of its settings.

The templates of a reply are JSON data with places for the values of a verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from agent_hooks.bridges.base.installation import EventRow, Power
from agent_hooks.values.content import ContentBlock, ImageContent, TextContent, ToolOutput

# An agent of the family has one of a few shapes: a text, content blocks, the output and the errors of a shell, a text
# for the model beside other fields. A result of any other shape is its JSON.

NO_WRAP = re.compile(r"\A(.*)\Z", re.DOTALL)
"""The pattern for an agent that puts nothing around a result's text."""


def our_result(response: Any, wrap: re.Pattern[str] = NO_WRAP) -> ToolOutput:
    """Return a tool's response as hooks get it.

    `wrap`: the pattern of a text with all that the agent puts around it; its first group is the text itself.
    """
    parts, is_error = _parts_of(response)
    return ToolOutput([_block(part, wrap) for part in parts], is_error=is_error)


def _parts_of(response: Any) -> tuple[list[Any], bool]:
    """Return the parts of a response, and whether the tool failed."""
    match response:
        case None:
            return [""], False
        case list():
            return response, False
        case {"content": list(blocks)}:
            return blocks, response.get("isError") is True
        case {"llmContent": content}:
            return content if isinstance(content, list) else [content], response.get("error") is not None
        case {"textResultForLlm": str(text)}:
            return [text], response.get("resultType") not in ("success", None)
        case {"text_result_for_llm": str(text)}:
            return [text], response.get("result_type") not in ("success", None)
        case {"stdout": str(stdout), "stderr": str(stderr)}:
            return ["\n".join(text for text in (stdout, stderr) if text)], False
    return [response], False


def _block(part: Any, wrap: re.Pattern[str]) -> ContentBlock:
    match part:
        case str(text) | {"type": "text", "text": str(text)}:
            found = wrap.match(text)
            return TextContent(found[1] if found else text)
        case (
            {"type": "image", "data": str(data), "mimeType": str(kind)}
            | {"inlineData": {"data": str(data), "mimeType": str(kind)}}
            | {"type": "image", "source": {"type": "base64", "data": str(data), "media_type": str(kind)}}
        ):
            return ImageContent(data, kind)
        case {"text": str(text)} if len(part) == 1:
            return _block(text, wrap)
    return TextContent(as_json(part))


def as_json(value: Any) -> str:
    """Return the JSON of a value that has no text, and nothing for no value."""
    return "" if value is None else json.dumps(value, ensure_ascii=False)


# A reply is made of templates only. So a word of a verdict for which an event has no template cannot be printed, and
# an agent that refuses an answer with an unknown key never gets one.

Word = Literal["block", "ask", "allow", "input", "output", "prompt", "context", "go_on", "stop", "message"]
"""The words of a verdict; `message` stands for all its messages to the person."""
Template = Mapping[str, Any]
Templates = Mapping[Word, Template]


class _Place(Struct, frozen=True):
    """A place in a template.  `of`: the kind of value for it."""

    of: str


VALUE = _Place("value")
"""The place of the value: the reason, question, input, result or text."""
EVENT = _Place("event")
"""The place of the event's name."""
NO_REASON = "a hook gave no reason"
"""The reason of a denial without one, because some agents drop such a denial and run the tool."""
_NEED_TEXT = ("block", "ask", "go_on", "stop")


def nested(**values: Any) -> dict[str, Any]:
    """Return the template of an answer that stands in `hookSpecificOutput`, beside the event's name."""
    return {"hookSpecificOutput": {"hookEventName": EVENT, **values}}


# The answers of Claude Code's protocol, which other agents have copied.  An agent that differs has a template of its own.
MESSAGE: Templates = {"message": {"systemMessage": VALUE}}
"""A message to the person."""
CONTEXT: Templates = {"context": nested(additionalContext=VALUE), **MESSAGE}
"""A text for the model, and a message to the person."""
BLOCK: Template = {"decision": "block", "reason": VALUE}
"""A block of anything but a call; at a stop, the text with which the agent goes on."""
DENY_CALL: Template = nested(permissionDecision="deny", permissionDecisionReason=VALUE)
"""A denial of a call."""
ASK_CALL: Template = nested(permissionDecision="ask", permissionDecisionReason=VALUE)
"""A question to the person about a call."""
STOP: Template = {"continue": False, "stopReason": VALUE}
"""The end of the run."""
PERMISSION: Templates = {
    "block": nested(decision={"behavior": "deny", "message": VALUE}),
    "allow": nested(decision={"behavior": "allow"}),
    **MESSAGE,
}
"""The answers where the agent is about to ask the person whether a tool may run."""


def filled(templates: Templates, event: str, words: Mapping[Word, Any]) -> dict[str, Any]:
    """Return the answer to an event: the templates of `words`, with their values, merged in this order.

    A word without a template is left out.
    """
    answer: dict[str, Any] = {}
    for word, value in words.items():
        if word in templates:
            text = NO_REASON if word in _NEED_TEXT and isinstance(value, str) and not value.strip() else value
            _merge(answer, _fill(templates[word], event, text))
    return answer


def _fill(template: Any, event: str, value: Any) -> Any:
    if isinstance(template, _Place):
        return event if template is EVENT else value
    if isinstance(template, Mapping):
        return {key: _fill(each, event, value) for key, each in template.items()}
    if isinstance(template, list):
        return [_fill(each, event, value) for each in template]
    return template


def _merge(answer: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        there = answer.get(key)
        if isinstance(there, dict) and isinstance(value, Mapping):
            _merge(there, value)
        else:
            answer[key] = value


Kind = Literal[
    "call",
    "result",
    "failure",
    "prompt",
    "permission",
    "start",
    "end",
    "stop",
    "before_compact",
    "compact",
    "other",
]
"""The kinds of events: the things that an event of another agent can be for us."""
_RESULT = ("tool_result", "tool.after", "after_tool_call", "redaction")


class _KindRow(Struct, frozen=True):
    """One kind of events.  `feeds`, `gate`, `always`: as in `EventRow`.

    `waits`: hooks get all the time that the agent gives, because it goes on without their answer when that is over.
    """

    feeds: tuple[str, ...] = ()
    gate: bool = False
    always: bool = False
    waits: bool = False


_KINDS: Mapping[Kind, _KindRow] = {
    "call": _KindRow(("tool.before", "before_tool_call", "tool_call", "redaction"), gate=True, waits=True),
    "result": _KindRow((*_RESULT, "filter_output"), waits=True),
    "failure": _KindRow(_RESULT, waits=True),
    "prompt": _KindRow(("message.before", "agent_start", "turn_start", "undo"), gate=True, waits=True),
    "permission": _KindRow(("permission.ask",)),
    "start": _KindRow(("session",), always=True),
    "end": _KindRow(("session",), always=True),
    # A stop is always installed, because any hook may call `api.send`.
    "stop": _KindRow(("agent_end",), always=True),
    "before_compact": _KindRow(("session",)),
    "compact": _KindRow(("session",)),
    "other": _KindRow(),
}


class Row(Struct, frozen=True):
    """One event of the agent.

    `says`: a template for each word of a verdict that the agent takes there.
    `timeout`: seconds; without it, an entry of a tool call, a result or a prompt gets the longest, any other none.
    `decides_nothing`, `always`, `feeds`, `lacks`: as in `EventRow`; without `always` and `feeds`, as the kind has them.
    """

    name: str
    kind: Kind = "other"
    says: Templates = {}
    timeout: int | None = None
    decides_nothing: bool = False
    always: bool | None = None
    feeds: tuple[str, ...] | None = None
    lacks: tuple[Power, ...] = ()

    def event(self, longest: int, usual: int) -> EventRow:
        """Return the row for the other rooms.

        `longest`, `usual`: the seconds that the agent waits at most, and without a timeout in the entry.
        """
        kind = _KINDS[self.kind]
        given = self.timeout
        if given is None and kind.waits and longest != usual:
            given = longest
        return EventRow(
            self.name,
            gate=kind.gate and "block" in self.says,
            # At a stop, a text keeps the agent going, so this depends on the payload.
            takes_context="context" in self.says and self.kind != "stop",
            decides_nothing=self.decides_nothing,
            always=kind.always if self.always is None else self.always,
            timeout=None if given is None else min(given, longest),
            feeds=kind.feeds if self.feeds is None else self.feeds,
            lacks=self.lacks,
        )


class Fields(Struct, frozen=True, kw_only=True):
    """The names of a payload's fields.  An empty name stands for a fact that payloads do not hold.

    `file`: the transcript's path; `agent`: the id of a sub-agent; `call`: the id of a tool call.
    `parent`: the session whose sub-agent this session is.
    `asked_input`: the input in the event of kind `permission`.
    `error`: the text of a failure; `duration`: the milliseconds that the tool took.
    `said`: the last words of the model at a stop.
    `continued`: whether hooks have kept the agent going before this stop, or how often.
    `source`, `reason`: the cause of a session's start and of its end.
    `summary`, `instructions`: the text of a compaction, and the person's wish for it.
    """

    event: str = "hook_event_name"
    session: str = "session_id"
    file: str = "transcript_path"
    cwd: str = "cwd"
    agent: str = "agent_id"
    parent: str = ""
    tool: str = "tool_name"
    input: str = "tool_input"
    asked_input: str = "tool_input"
    call: str = "tool_use_id"
    result: str = "tool_response"
    error: str = "error"
    duration: str = "duration_ms"
    prompt: str = "prompt"
    said: str = "last_assistant_message"
    continued: str = "stop_hook_active"
    source: str = "source"
    reason: str = "reason"
    summary: str = "compact_summary"
    instructions: str = "custom_instructions"


class Layout(Struct, frozen=True, kw_only=True):
    """The form of the agent's settings.

    `files`: the path of each settings file, by the names that `Bridge.settings_files` returns; `{home}` stands for the
    agent's own directory.
    `home`: the variable that holds this directory, and its path without the variable.
    `flat`: the entries of an event stand in one list; otherwise they stand in groups, under `hooks`.
    `command`: the key of the command; `args`: the key that held its arguments in
    entries of earlier versions; now each command is one line for the shell, as some agents ignore that key.
    `timeout`: the key of the timeout; `unit`: its unit; `longest`: the most seconds that the agent takes.
    `entry`: the other keys of each entry; `gate`: keys that only the entry of a gate has, and that make a failure deny.
    `mark`: the key of a text for persons, by which an entry of ours is known.
    `every_tool`: the matchers that match each tool; `None` stands for no matcher.
    `top`: the keys that the file must have.
    `first`: our group comes before all others, because the agent knows entries by their position.
    `exits`: the agent takes an exit code of 2 for a denial.
    `off`: the path of the setting that switches hooks off; `off_value`: its value then.
    """

    files: Mapping[str, str]
    home: tuple[str, str] = ("", "~")
    flat: bool = False
    command: str = "command"
    args: str = ""
    timeout: str = "timeout"
    unit: Literal["s", "ms"] = "s"
    longest: int = 600
    entry: Mapping[str, Any] = field(default_factory=lambda: {"type": "command"})
    gate: Mapping[str, Any] = {}
    mark: str = ""
    every_tool: tuple[str | None, ...] = (None, "", "*")
    top: Mapping[str, Any] = {}
    first: bool = False
    exits: bool = True
    off: tuple[str, ...] = ()
    off_value: Any = True
