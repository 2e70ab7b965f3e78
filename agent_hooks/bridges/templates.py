"""The templates of a reply: JSON data with places for the values of a verdict.

A reply is made of templates only.  So a word of a verdict for which an event has no template cannot be printed, and an
agent that refuses an answer with an unknown key never gets one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

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
