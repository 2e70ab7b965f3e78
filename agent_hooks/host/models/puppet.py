"""A model without a key: the prompt is its script.

Each line `@TOOL ARG` is a tool call; the lines of one block are the calls of one turn; a line `---` starts the next turn;
any other text is the text of the response.  ARG is the tool's main argument, or a JSON object.  The final response lists
the calls and their results, as far as the program does not show them beside it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextvars import ContextVar
from json import dumps
from typing import Any, Literal

from msgspec import Struct, field

from agent_hooks.errors import ModelError, count
from agent_hooks.host.exchanges import SummaryMessage
from agent_hooks.host.model import (
    EndPiece,
    ModelRequest,
    NoticePiece,
    Piece,
    TextPiece,
    ToolCallPiece,
    ToolOffer,
)
from agent_hooks.values.content import AssistantMessage, Message, ToolResultMessage, UserMessage, text_of_content
from agent_hooks.values.tool import MAIN_ARGUMENT, call_line

# The tools that need only their main argument.
BARE_ARGUMENTS = ("bash", "read", "ls", "find", "grep")
SHOWN_LINES = 20
"""The lines of each result in the final response."""
NO_MODEL = (
    "no model is chosen: a puppet answers, which only plays the calls in a prompt, such as @bash ls; for a real one: "
    '--model anthropic:NAME (or openai:, google:), or "model" in ~/.agent/settings.json'
)
"""The sentence with which a puppet that no person has chosen introduces itself."""
HINT = 'I am a puppet: a line "@bash ls" in the prompt makes me call a tool.'
_CALL = re.compile(r"@([A-Za-z_][\w.-]*)(?:[ \t]+(.*))?")


shown_beside: ContextVar[Literal["nothing", "blocks", "results"]] = ContextVar("agent_hooks shown", default="nothing")
"""The part that the program shows to the same reader itself: the reasons of blocks, or the results of all calls."""


class Turn(Struct):
    """One turn: the lines of text, and the calls as (tool, argument text)."""

    words: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)


def create(argument: str) -> Puppet:
    """Return the puppet; it takes no argument."""
    if argument:
        raise ModelError(f"the puppet takes no argument, so not {argument!r}: use --model puppet")
    return Puppet()


class Puppet:
    """A model that follows the prompt; stateless: the request's messages show which turn comes next.

    `announce`: it says that it is no model at the first prompt of a conversation that makes it call nothing.
    """

    provider = "puppet"
    id = "puppet"

    def __init__(self, *, announce: bool = False) -> None:
        self._announce = announce

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        """Play the next turn of the last prompt."""
        prompt, since = _last_prompt(request.messages)
        turns = parse(prompt)
        played = sum(isinstance(message, AssistantMessage) for message in since)
        if played < len(turns) and turns[played].calls:
            turn = turns[played]
            for line in turn.words:
                yield TextPiece(f"{line}\n")
            for index, (tool, argument) in enumerate(turn.calls):
                text = _arguments(tool, argument, request.tools)
                half = len(text) // 2
                yield ToolCallPiece(index, text[:half], id=f"call_{len(request.messages)}_{index}", name=tool)
                yield ToolCallPiece(index, text[half:])
            yield EndPiece("tool_use")
        else:
            if self._announce and not any(turn.calls for turn in turns) and _is_first(request.messages):
                yield NoticePiece(NO_MODEL)
            words = turns[-1].words if turns and not turns[-1].calls else []
            for line in [*words, *_report(since)] or [HINT]:
                yield TextPiece(f"{line}\n")
            yield EndPiece()


def parse(prompt: str) -> list[Turn]:
    """Return the turns in a prompt; text without calls belongs to the turn after it."""
    turns = [Turn()]
    for line in prompt.splitlines():
        if line.strip() == "---":
            if turns[-1].calls:
                turns.append(Turn())
        elif match := _CALL.fullmatch(line.strip()):
            turns[-1].calls.append((match[1], match[2] or ""))
        elif line.strip() or turns[-1].words:
            turns[-1].words.append(line.rstrip())
    return turns


def _last_prompt(messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
    """Return the text of the last user message, and the messages since."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage) and not message.is_context:
            # The calls that a summary quotes were made before the compaction.
            text = "" if isinstance(message, SummaryMessage) else text_of_content(message.content)
            return text, messages[index + 1 :]
    return "", messages


def _is_first(messages: tuple[Message, ...]) -> bool:
    """Return whether the conversation has one prompt, and no answer yet."""
    prompts = [each for each in messages if isinstance(each, UserMessage) and not each.is_context]
    return len(prompts) == 1 and not any(isinstance(each, AssistantMessage) for each in messages)


def _arguments(tool: str, argument: str, offers: tuple[ToolOffer, ...]) -> str:
    """Return the arguments of a call as JSON text; text that begins like a JSON object passes unchecked."""
    if not argument or argument.startswith("{"):
        return argument or "{}"
    name = MAIN_ARGUMENT[tool] if tool in BARE_ARGUMENTS else _only_text_argument(tool, offers)
    return dumps({name: argument}) if name else argument


def _only_text_argument(tool: str, offers: tuple[ToolOffer, ...]) -> str | None:
    """Return the required argument of a custom tool, if there is exactly one and it is text."""
    schemas = [offer.input_schema for offer in offers if offer.name == tool]
    # The call of an unknown tool fails with an error that names the tool.
    schema: Mapping[str, Any] = schemas[0] if schemas else {"required": ["argument"]}
    properties: Mapping[str, Any] = schema.get("properties", {})
    match list(schema.get("required", ())):
        case [name] if properties.get(name, {}).get("type", "string") == "string":
            return str(name)
    return None


def _report(since: tuple[Message, ...]) -> list[str]:
    """Return a numbered list of the calls and their results."""
    results = {message.tool_call_id: message for message in since if isinstance(message, ToolResultMessage)}
    calls = [call for message in since if isinstance(message, AssistantMessage) for call in message.tool_calls]
    beside = shown_beside.get()
    if calls and beside == "results":
        return [f"I have made {count(len(calls), 'call')}."]
    lines: list[str] = []
    for number, call in enumerate(calls, 1):
        result = results.get(call.id)
        blocked = _word_of_block(result)
        failed = blocked or ("error" if result is None or result.is_error else "")
        fate = f" ({failed})" if failed else ""
        lines.append(f"{number}. {call_line(call.name, call.invalid or call.arguments)}{fate}")
        if blocked and beside == "blocks":
            continue
        text = text_of_content(result.content).splitlines() if result is not None else ["no result"]
        lines += [f"   {line}" for line in text[:SHOWN_LINES]]
        if len(text) > SHOWN_LINES:
            lines.append(f"   … {len(text) - SHOWN_LINES} more lines")
    return lines


def _word_of_block(result: ToolResultMessage | None) -> str:
    """Return `blocked`, or `not run` for a call whose input does not fit the schema; empty for any other call."""
    if result is None or not isinstance(result.details, Mapping) or result.details.get("status") != "blocked":
        return ""
    return "not run" if result.details.get("cause") == "schema" else "blocked"
