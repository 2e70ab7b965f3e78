"""The answer to a happening: the verdict of our hooks, and the reply that the bridge makes of it for the agent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agent_hooks.values.content import ToolOutput

UNREADABLE = "agent-hooks could not read the event"
"""The beginning of the reason for denying an event whose payload cannot be read."""
UNJUDGED = "agent-hooks could not judge this"
"""The beginning of the reason for denying an event for another failure of ours."""


class Verdict(Struct, frozen=True, kw_only=True):
    """The combined answer of all hooks to a happening.  The default is no opinion.

    `block`: stop the happening, for this reason.
    `ask`: ask the person this question.
    `allow`: run the tool without asking for permission; only `permission.ask` and `auto_allow` set it.
    `input`: the complete input with which the tool is to be called.
    `output`: the result that the agent is to use.
    `prompt`: the prompt that the agent is to use; only for one that is `PromptGiven.rewritable`.
    `stop`: end the run, for this reason; a call is blocked besides.
    `go_on`: keep the agent going with this text, although it wants to stop.
    `context`: texts for the model.
    `messages`: texts for the person.
    """

    block: str | None = None
    ask: str | None = None
    allow: bool = False
    input: Mapping[str, Any] | None = None
    output: ToolOutput | None = None
    prompt: str | None = None
    stop: str | None = None
    go_on: str | None = None
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


class Reply(Struct, frozen=True):
    """The output and the exit code of a hook command."""

    stdout: str
    stderr: str = ""
    exit_code: int = 0

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Reply:
        """Return the reply that prints one JSON object, in ASCII.

        Half of a surrogate pair becomes U+FFFD: some agents cannot read an answer with such a half, and run the tool.
        Raises `ValueError` or `TypeError` for a value that JSON cannot express.
        """
        text = json.dumps(value, allow_nan=False)
        # Also a whole pair is written so.
        if "\\ud" in text:
            text = json.dumps(whole(value), allow_nan=False)
        return cls(f"{text}\n")


def whole(value: Any) -> Any:
    """Return JSON data with U+FFFD in the place of each half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {whole(key): whole(each) for key, each in value.items()}
    return [whole(each) for each in value] if isinstance(value, list | tuple) else value


NOTHING = Verdict()
SILENCE = Reply.of({})
