"""Real models over real HTTP: requests and responses in each of the four wire formats."""

from __future__ import annotations

import base64
import json
from typing import Any

import anyio
import pytest

from agent_hooks.host.model import Model, ModelRequest, ThinkingLevel, ToolOffer, collect
from agent_hooks.host.models import open_model
from agent_hooks.values.content import (
    AssistantMessage,
    Attachment,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from model_server import KEY, ModelServer, Say
from support import PATIENCE

pytestmark = pytest.mark.anyio
NAMES = {
    "anthropic": "claude-test",
    "openai": "gpt-5.1",
    "openai-responses": "gpt-5.1",
    "google": "gemini-2.5-flash",
}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
PIXEL = base64.b64encode(b"not really a picture").decode()


@pytest.fixture
def model(kind: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Give a model of that kind, on the server."""
    for name, value in server.environment(kind).items():
        monkeypatch.setenv(name, value)
    return open_model(f"{kind}:{NAMES[kind]}")


def request_of(*messages: Message, thinking: ThinkingLevel = "off") -> ModelRequest:
    """Return a request with one tool."""
    return ModelRequest(
        system=("You are terse.", "You are kind."),
        messages=messages or (user("hello"),),
        tools=(ToolOffer("ls", "List a directory.", SCHEMA),),
        thinking_level=thinking,
    )


def user(text: str) -> UserMessage:
    """Return a message of the person."""
    return UserMessage(content=text, timestamp=1)


def result(call: ToolCallContent, text: str, *, is_error: bool = False) -> ToolResultMessage:
    """Return the result of a call."""
    return ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=text, timestamp=1, is_error=is_error)


async def test_text_thinking_and_parallel_calls_come_in_pieces_and_end_whole(model: Model, server: ModelServer) -> None:
    """The text comes piece by piece; blocks keep their order; usage and stop reason are there."""
    calls = [("ls", {"path": "src/ünï"}), ("ls", {"path": "/etc", "deep": [1, {"a": None}]})]
    server.play(Say("Let me look at both.", thinking="Two places, so two calls.", calls=calls))
    heard: list[str] = []

    message = await collect(model, request_of(), heard.append)

    assert "".join(heard) == message.text == "Let me look at both."
    assert len(heard) > 2
    kinds = [type(block) for block in message.content]
    assert kinds == [ThinkingContent, TextContent, ToolCallContent, ToolCallContent]
    assert isinstance(message.content[0], ThinkingContent)
    assert message.content[0].thinking == "Two places, so two calls."
    assert [(call.name, dict(call.arguments)) for call in message.tool_calls] == calls
    assert len({call.id for call in message.tool_calls}) == 2
    assert (message.provider, message.model, message.stop_reason) == (model.provider, model.id, "tool_use")
    assert message.usage == Usage(input_tokens=11, output_tokens=22)


async def test_the_key_goes_out_in_the_header_of_its_provider_only(
    model: Model, kind: str, server: ModelServer
) -> None:
    """It is not in the address, which servers log, and not in the body."""
    server.play(Say("hi"))
    await collect(model, request_of(), lambda _: None)
    (sent,) = server.requests
    (header,) = [name for name, value in sent.headers.items() if KEY in value]
    assert header == "x-goog-api-key" if kind == "google" else header in ("authorization", "x-api-key")
    assert KEY not in sent.path
    assert KEY not in json.dumps(sent.body)


async def test_a_conversation_goes_out_with_its_calls_results_and_signatures(
    model: Model, kind: str, server: ModelServer
) -> None:
    """The results of one turn go out together, each beside its call; signatures go back unchanged."""
    server.play(Say("Two.", thinking="Hm.", calls=[("ls", {"path": "a"}), ("ls", {"path": "b"})]), Say("done"))
    first = await collect(model, request_of(thinking="low"), lambda _: None)
    one, two = first.tool_calls
    history = (user("hello"), first, result(one, "a.txt"), result(two, "no such", is_error=True))

    message = await collect(model, request_of(*history, thinking="low"), lambda _: None)

    assert (message.text, message.stop_reason) == ("done", "stop")
    body = server.requests[1].body
    check_conversation(kind, body, one.id, two.id)


def check_conversation(kind: str, body: dict[str, Any], one: str, two: str) -> None:
    """Check the conversation in the format of each provider."""
    text = json.dumps(body)
    if kind == "anthropic":
        roles = [message["role"] for message in body["messages"]]
        assistant = body["messages"][1]["content"]
        assert assistant[0] == {"type": "thinking", "thinking": "Hm.", "signature": "signed-by-claude"}
        assert [block["input"] for block in assistant[2:]] == [{"path": "a"}, {"path": "b"}]
        results = [block for message in body["messages"][2:] for block in message["content"]]
        assert roles == ["user", "assistant", "user"]
        assert [(block["tool_use_id"], block["is_error"]) for block in results] == [(one, False), (two, True)]
        assert [block["text"] for block in body["system"]] == ["You are terse.\n\nYou are kind."]
        assert body["tools"][0]["input_schema"] == SCHEMA
    elif kind == "openai":
        assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "tool"]
        assert [call["id"] for call in body["messages"][2]["tool_calls"]] == [one, two]
        assert [message["tool_call_id"] for message in body["messages"][3:]] == [one, two]
        assert body["tools"][0]["function"]["parameters"] == SCHEMA
    elif kind == "openai-responses":
        kinds = [item.get("type", item.get("role")) for item in body["input"]]
        expected = ["reasoning", "assistant", *["function_call"] * 2, *["function_call_output"] * 2]
        assert kinds == ["user", *expected]
        assert body["input"][1]["encrypted_content"] == "sealed-by-openai"
        assert body["store"] is False
        assert "reasoning.encrypted_content" in body["include"]
        assert body["tools"][0]["parameters"] == SCHEMA
    else:
        assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]
        assert text.count('"thoughtSignature": "c2lnbmVkLWJ5LWdlbWluaQ=="') == 2
        responses = [part["functionResponse"]["response"] for part in body["contents"][2]["parts"]]
        assert [list(response.values()) for response in responses] == [["a.txt"], ["no such"]]


async def test_another_models_thoughts_and_signatures_stay_home(model: Model, server: ModelServer) -> None:
    """After a change of the model, its calls and texts go out, without its thoughts and signatures."""
    call = ToolCallContent(
        "call_x", "ls", {"path": "."}, signature='{"provider_details": {"thought_signature": "AAAA"}}'
    )
    thought = ThinkingContent("my secret thought", '{"signature": "foreign", "provider_name": "anthropic"}')
    other = AssistantMessage(content=(thought, TextContent("Looking."), call), timestamp=1, provider="other", model="m")
    server.play(Say("ok"))
    await collect(model, request_of(user("hi"), other, result(call, "x")), lambda _: None)
    text = json.dumps(server.requests[0].body)
    assert "Looking." in text
    assert not [word for word in ("secret thought", "foreign", "AAAA") if word in text]


async def test_a_damaged_signature_is_no_signature(model: Model, server: ModelServer) -> None:
    """A session file may hold any text."""
    thoughts = (ThinkingContent("a", "not json"), ThinkingContent("b", "[]"), TextContent("hi"))
    damaged = AssistantMessage(content=thoughts, timestamp=1, provider=model.provider, model=model.id)
    server.play(Say("ok"))
    assert (await collect(model, request_of(user("hi"), damaged, user("and?")), lambda _: None)).text == "ok"


@pytest.mark.parametrize("kind", ["anthropic", "openai", "openai-responses"], indirect=True)
async def test_arguments_that_are_no_json_are_kept_and_shown_to_the_model_again(
    model: Model, server: ModelServer
) -> None:
    """The call has its text in `invalid`; the next request carries it in a form that no provider refuses."""
    server.play(Say(calls=[("ls", '{"path": "unfin')]), Say("sorry"))
    first = await collect(model, request_of(), lambda _: None)
    (call,) = first.tool_calls
    assert (dict(call.arguments), call.invalid) == ({}, '{"path": "unfin')

    await collect(model, request_of(user("hi"), first, result(call, "invalid", is_error=True)), lambda _: None)
    assert "invalid_json" in json.dumps(server.requests[1].body)


async def test_images_and_attachments_go_out_as_the_provider_takes_them(model: Model, server: ModelServer) -> None:
    """Images as images, also from a tool; documents as text if they have text; other files by name."""
    attachments = (
        Attachment(kind="document", file_name="a.txt", mime_type="text/plain", content=PIXEL),
        Attachment(kind="document", file_name="b.docx", mime_type="application/x", content="", extracted_text="Dear B"),
        Attachment(kind="document", file_name="c.bin", mime_type="application/x-c", content=PIXEL),
        Attachment(kind="image", file_name="d.png", mime_type="image/png", content=PIXEL),
    )
    asked = UserMessage(content="see", timestamp=1, attachments=attachments)
    call = ToolCallContent("call_1", "ls", {"path": "x.png"})
    looked = AssistantMessage(content=(call,), timestamp=1, provider="p", model="m")
    picture = ToolResultMessage(
        tool_call_id="call_1",
        tool_name="ls",
        content=[TextContent("a picture"), ImageContent(PIXEL, "image/png")],
        timestamp=1,
    )
    server.play(Say("ok"))
    await collect(model, request_of(asked, looked, picture), lambda _: None)
    text = json.dumps(server.requests[0].body)
    assert text.count(PIXEL) == 2
    for shown in ("a.txt:\\nnot really a picture", "b.docx:\\nDear B", "c.bin (application/x-c) is attached"):
        assert shown in text


async def test_the_thinking_level_reaches_the_provider(model: Model, kind: str, server: ModelServer) -> None:
    """`off` is off, and the levels differ."""
    server.play(Say("1"), Say("2"), Say("3"))
    levels: tuple[ThinkingLevel, ...] = ("off", "low", "high")
    for level in levels:
        await collect(model, request_of(thinking=level), lambda _: None)
    sent = [thinking_of(kind, request.body) for request in server.requests]
    expected = {
        "anthropic": [None, ("enabled", 2048), ("enabled", 16384)],
        "google": [0, 2048, 24576],
    }.get(kind, ["none", "low", "high"])
    assert sent == expected


def thinking_of(kind: str, body: dict[str, Any]) -> Any:
    """Return the thinking level in a request of this kind."""
    if kind == "anthropic":
        thinking = body.get("thinking")
        return thinking and (thinking["type"], thinking["budget_tokens"])
    if kind == "google":
        return body["generationConfig"]["thinkingConfig"].get("thinking_budget")
    return body["reasoning_effort"] if kind == "openai" else body["reasoning"]["effort"]


async def test_an_answer_that_hits_the_limit_says_so(model: Model, kind: str, server: ModelServer) -> None:
    """The person gets a notice that the answer is cut off."""
    stops = {"anthropic": "max_tokens", "openai": "length", "openai-responses": "max_output_tokens"}
    server.play(Say("Once upon a", stop=stops.get(kind, "MAX_TOKENS")))
    notices: list[str] = []
    message = await collect(model, request_of(), lambda _: None, notices.append)
    assert (message.text, message.stop_reason) == ("Once upon a", "length")
    assert "cut off" in notices[0]


async def test_cancelling_a_request_closes_the_connection(model: Model, server: ModelServer) -> None:
    """The server notices that the connection is closed, and can stop."""
    server.play(Say("Once upon a time there was a server that nobody listened to", hang_after=6))
    heard = anyio.Event()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, model, request_of(), lambda _: heard.set())
            await heard.wait()
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(server.gone.wait, 10)
