"""A request to the model in one normal form, whatever the wire format: the tools that it offers, and what was said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from model_server import Recorded

# The keys of a text.  Codex hands a sub-agent its prompt in the last one, as it is if the provider encrypts none.
TEXTS = ("text", "content", "output", "result", "error", "encrypted_content")
Role = Literal["system", "user", "assistant", "call", "result"]


@dataclass(frozen=True)
class Offered:
    """A tool that a client offers.  `custom`: it takes text instead of JSON; `namespace`: see `InNamespace`."""

    name: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    custom: bool = False
    namespace: str = ""


@dataclass(frozen=True)
class Item:
    """A piece of a conversation: a text, a call, or the result of a call."""

    role: Role
    text: str


@dataclass(frozen=True)
class Conversation:
    """The content of one request."""

    tools: tuple[Offered, ...]
    items: tuple[Item, ...]

    @property
    def results(self) -> list[str]:
        """The texts of the results, in order."""
        return [item.text for item in self.items if item.role == "result"]

    def texts(self, *roles: Role) -> str:
        """Return the texts of these roles."""
        return "\n".join(item.text for item in self.items if item.role in roles)


def read(request: Recorded) -> Conversation:
    """Return a request in the normal form."""
    body, path = request.body, request.path
    if "/messages" in path:
        return Conversation(tuple(_anthropic_tools(body)), tuple(_anthropic(body)))
    if path.endswith("/chat/completions"):
        return Conversation(tuple(_chat_tools(body)), tuple(_chat(body)))
    if path.endswith("/responses"):
        return Conversation(tuple(_responses_tools(body)), tuple(_responses(body)))
    return Conversation(tuple(_gemini_tools(body)), tuple(_gemini(body)))


def text_of(value: Any) -> str:
    """Return all text in a content of any form."""
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return "\n".join(text_of(each) for each in value)
        case dict():
            found = [text_of(value[key]) for key in TEXTS if key in value]
            return "\n".join(found) if found else json.dumps(value)
    return str(value)


def wants_json(request: Recorded) -> bool:
    """Return whether the client asks for an answer in JSON, which no prompt of a person does."""
    body = request.body
    options = body.get("generationConfig") or {}
    wanted = (body.get("text") or {}).get("format") or body.get("response_format") or {}
    return "responseJsonSchema" in options or str(wanted.get("type")).startswith("json")


def _role(message: Mapping[str, Any]) -> Role:
    roles: dict[str, Role] = {"user": "user", "assistant": "assistant"}
    return roles.get(message["role"], "system")


def _anthropic_tools(body: dict[str, Any]) -> Iterator[Offered]:
    for tool in body.get("tools") or ():
        yield Offered(tool["name"], tool.get("input_schema") or {})


def _anthropic(body: dict[str, Any]) -> Iterator[Item]:
    yield Item("system", text_of(body.get("system")))
    for message in body.get("messages", ()):
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_result":
                yield Item("result", text_of(block.get("content")))
            elif block["type"] == "tool_use":
                yield Item("call", json.dumps(block["input"]))
            else:
                yield Item(_role(message), text_of(block))


def _chat_tools(body: dict[str, Any]) -> Iterator[Offered]:
    for tool in body.get("tools") or ():
        if tool.get("type") == "function":
            yield Offered(tool["function"]["name"], tool["function"].get("parameters") or {})
        elif "custom" in tool:
            yield Offered(tool["custom"]["name"], custom=True)


def _chat(body: dict[str, Any]) -> Iterator[Item]:
    for message in body.get("messages", ()):
        if message["role"] == "tool":
            yield Item("result", text_of(message.get("content")))
            continue
        for call in message.get("tool_calls") or ():
            yield Item("call", text_of(call.get("function", {}).get("arguments")))
        yield Item(_role(message), text_of(message.get("content")))


def _responses_tools(body: dict[str, Any]) -> Iterator[Offered]:
    given = body.get("input") or ()
    # With some models, Codex offers its tools in the conversation.
    added = [tool for item in given if isinstance(item, dict) for tool in item.get("tools") or ()]
    for tool in [*(body.get("tools") or ()), *added]:
        if tool.get("type") == "namespace":
            for each in tool.get("tools") or ():
                custom = each.get("type") == "custom"
                yield Offered(each["name"], each.get("parameters") or {}, custom, tool["name"])
        elif "name" in tool:
            yield Offered(tool["name"], tool.get("parameters") or {}, custom=tool.get("type") == "custom")


def _responses(body: dict[str, Any]) -> Iterator[Item]:
    yield Item("system", text_of(body.get("instructions")))
    given = body.get("input") or ()
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            yield Item("result", text_of(item.get("output")))
        elif kind.endswith("_call"):
            yield Item("call", text_of(item.get("arguments") or item.get("input")))
        elif kind == "agent_message":
            yield Item("user", text_of(item.get("content")))
        elif kind == "message":
            yield Item(_role(item), text_of(item.get("content")))


def _gemini_tools(body: dict[str, Any]) -> Iterator[Offered]:
    for tool in body.get("tools") or ():
        for each in tool.get("functionDeclarations") or ():
            yield Offered(each["name"], each.get("parametersJsonSchema") or each.get("parameters") or {})


def _gemini(body: dict[str, Any]) -> Iterator[Item]:
    yield Item("system", text_of((body.get("systemInstruction") or {}).get("parts")))
    for content in body.get("contents", ()):
        for part in content.get("parts", ()):
            if "functionResponse" in part:
                yield Item("result", text_of(part["functionResponse"].get("response")))
            elif "functionCall" in part:
                yield Item("call", json.dumps(part["functionCall"].get("args")))
            else:
                yield Item("assistant" if content.get("role") == "model" else "user", text_of(part))
