"""Translate a conversation into pydantic-ai's messages, and its stream into our pieces.

pydantic-ai knows the wire format of each provider.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from msgspec import structs
from pydantic_ai import messages as wire
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from agent_hooks.host.model import ModelRequest, Piece, TextPiece, ThinkingPiece, ToolCallPiece
from agent_hooks.values.content import (
    AssistantMessage,
    Attachment,
    ContentBlock,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
)
from agent_hooks.values.frozen import thaw

INVALID_ARGUMENTS = "invalid_json"
"""The argument that holds a call's arguments when the model did not write them as a JSON object."""

# ---- from us to the wire ---------------------------------------------------------------------------------------------


def parameters_of(request: ModelRequest) -> ModelRequestParameters:
    """Return the tools and the instructions of a request; the tools' schemas go out as they are."""
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=thaw(dict(tool.input_schema)),
                # A provider's strict mode takes only some schemas, and a tool may have any.
                strict=False,
            )
            for tool in request.tools
        ],
        instruction_parts=[wire.InstructionPart(content="\n\n".join(request.system))] if request.system else [],
    )


def settings_of(request: ModelRequest) -> ModelSettings:
    """Return the settings of a request: the thinking level, one attempt, and a cache for the growing conversation."""
    level: Any = False if request.thinking_level == "off" else request.thinking_level
    settings = ModelSettings(thinking=level, max_retries=0, cache=True)
    if request.headers:
        settings["extra_headers"] = dict(request.headers)
    sampling = {name: value for name, value in structs.asdict(request.sampling).items() if value is not None}
    settings.update(sampling)  # type: ignore[typeddict-item]  # three of its keys
    return settings


def messages_of(request: ModelRequest, provider: str, model: str) -> list[wire.ModelMessage]:
    """Return the conversation for `model` of `provider`, with the thoughts of that model only.

    All messages between two responses become one: providers want the results of a turn's calls together.
    """
    found: list[wire.ModelMessage] = []
    waiting: list[wire.ModelRequestPart] = []
    for message in request.messages:
        match message:
            case UserMessage():
                waiting.append(wire.UserPromptPart(_user_content(message)))
            case ToolResultMessage():
                waiting.append(_result(message))
            case AssistantMessage():
                own = (message.provider, message.model) == (provider, model)
                # Providers refuse a message without content.
                if parts := list(_response_parts(message, own=own)):
                    found += [*_request(waiting), wire.ModelResponse(parts)]
                    waiting = []
    return [*found, *_request(waiting)]


def _request(parts: list[wire.ModelRequestPart]) -> list[wire.ModelMessage]:
    return [wire.ModelRequest(parts)] if parts else []


def _response_parts(message: AssistantMessage, *, own: bool) -> Iterator[wire.ModelResponsePart]:
    for block in message.content:
        sealed = _unseal(block.signature) if own and not isinstance(block, TextContent) else {}
        match block:
            case TextContent() if block.text.strip():
                yield wire.TextPart(block.text)
            # No provider takes a thought back without its signature.
            case ThinkingContent() if sealed:
                yield wire.ThinkingPart(block.thinking, **sealed)
            case ToolCallContent():
                arguments = thaw(dict(block.arguments)) if block.invalid is None else {INVALID_ARGUMENTS: block.invalid}
                yield wire.ToolCallPart(block.name, arguments, block.id, **sealed)


def _result(message: ToolResultMessage) -> wire.ToolReturnPart:
    content: Any = _contents(message.content)
    return wire.ToolReturnPart(
        message.tool_name,
        content if any(isinstance(block, ImageContent) for block in message.content) else "\n".join(content),
        message.tool_call_id,
        outcome="failed" if message.is_error else "success",
    )


def _user_content(message: UserMessage) -> str | list[wire.UserContent]:
    content = [*_contents(message.content), *map(_attachment, message.attachments)]
    return str(content[0]) if len(content) == 1 and isinstance(content[0], str) else content


def _contents(blocks: Any) -> list[wire.UserContent]:
    return [_content(block) for block in blocks]


def _content(block: ContentBlock) -> wire.UserContent:
    return block.text if isinstance(block, TextContent) else _binary(block.data, block.mime_type)


def _attachment(attachment: Attachment) -> wire.UserContent:
    """Return an attachment in a form that the model can read, or a line that says that it cannot read the file."""
    if attachment.extracted_text is not None:
        return f"{attachment.file_name}:\n{attachment.extracted_text}"
    if attachment.mime_type.startswith("text/"):
        return f"{attachment.file_name}:\n{base64.b64decode(attachment.content).decode('utf-8', 'replace')}"
    if attachment.kind == "image" or attachment.mime_type == "application/pdf":
        return _binary(attachment.content, attachment.mime_type)
    return f"{attachment.file_name} ({attachment.mime_type}) is attached, but you cannot see into such a file."


def _binary(data: str, mime_type: str) -> wire.BinaryContent:
    return wire.BinaryContent(base64.b64decode(data), media_type=mime_type)


# ---- from the wire to us ---------------------------------------------------------------------------------------------


def pieces_of(event: wire.ModelResponseStreamEvent) -> Iterator[Piece]:
    """Yield the pieces in one event of a stream."""
    match event:
        case wire.PartStartEvent(index=index, part=wire.TextPart(content=text)) if text:
            yield TextPiece(text)
        case wire.PartStartEvent(index=index, part=wire.ThinkingPart(content=text)):
            yield ThinkingPiece(text, index)
        case wire.PartStartEvent(index=index, part=wire.ToolCallPart() as call):
            yield ToolCallPiece(index, _arguments(call.args), call.tool_call_id, call.tool_name)
        case wire.PartDeltaEvent(index=index, delta=wire.TextPartDelta(content_delta=text)) if text:
            yield TextPiece(text)
        case wire.PartDeltaEvent(index=index, delta=wire.ThinkingPartDelta(content_delta=text)) if text:
            yield ThinkingPiece(text, index)
        case wire.PartDeltaEvent(index=index, delta=wire.ToolCallPartDelta() as delta):
            yield ToolCallPiece(index, _arguments(delta.args_delta), name=delta.tool_name_delta or "")
        case wire.PartEndEvent(index=index, part=wire.ThinkingPart() as part):
            yield ThinkingPiece("", index, _seal(part))
        case wire.PartEndEvent(index=index, part=wire.ToolCallPart() as part):
            yield ToolCallPiece(index, signature=_seal(part))


def _arguments(arguments: str | dict[str, Any] | None) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


_SEALED = ("id", "signature", "provider_name", "provider_details")


def _seal(part: wire.ThinkingPart | wire.ToolCallPart) -> str:
    """Return the fields that the provider wants back with this part, as text for `_unseal`; empty without such fields."""
    sealed = {name: value for name in _SEALED if (value := getattr(part, name, None))}
    return json.dumps(sealed) if sealed.keys() - {"provider_name"} else ""


def _unseal(signature: str | None) -> dict[str, Any]:
    """Return the fields in a text of `_seal`; none for any other text, which a session file may hold too."""
    try:
        sealed = json.loads(signature or "{}")
    except ValueError:
        return {}
    return {name: sealed[name] for name in _SEALED if name in sealed} if isinstance(sealed, dict) else {}
