"""The points of the host, seen in the request that a real model's server gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import UserMessage
from agent_hooks.host.model import Model
from agent_hooks.host.models import open_model
from host.hosting import stage
from host.test_steering import intercepting, put, said_in
from model_server import ModelServer, Say

pytestmark = pytest.mark.anyio


@pytest.fixture
def model(kind: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Give a model of that kind, on the server."""
    for name, value in server.environment(kind).items():
        monkeypatch.setenv(name, value)
    return open_model(f"{kind}:some-model")


async def test_what_is_set_before_a_run_is_in_the_request(model: Model, server: ModelServer, project: Path) -> None:
    """`params.before` has the metadata of `message.before`, and the request has the model, thinking and sampling."""
    found: list[Any] = []

    def note(given: Any, output: Any) -> None:
        output.message = output.message.replace("secret", "***")
        output.metadata["tone"] = "calm"
        output.context.append("It is Monday.")

    def params(given: Any, output: Any) -> None:
        found.append((given.message, dict(given.metadata), output.provider, output.model, output.think_level))
        output.model = "another-model"
        output.temperature, output.top_p = 0.25, 0.5

    on = stage(project, intercepting(("message.before", note), ("params.before", params)), model=model)
    server.play(Say("one"), Say("two"))
    async with on.host as host:
        assert (await host.prompt("my secret")).model == "another-model"
        assert host.state().model.id == "some-model"
        await host.prompt("again")
    assert found[0] == ("my ***", {"tone": "calm"}, model.provider, "some-model", "off")
    asked = json.dumps(server.requests[0].body) + server.requests[0].path
    assert "my ***" in asked
    assert "secret" not in asked
    assert "It is Monday." in asked
    assert "another-model" in asked
    assert _sampling(server.requests[0].body) == {"temperature": 0.25, "topp": 0.5}
    assert said_in(on)[0] == ["my ***", "It is Monday."]
    assert [entry.type for entry in host.entries].count("model_change") == 1


def _sampling(body: dict[str, Any]) -> dict[str, Any]:
    """Return the sampling in a request of any provider, under one spelling."""
    spelled = body.get("generationConfig", body)
    return {
        name.lower().replace("_", ""): spelled[name] for name in ("temperature", "top_p", "topP") if name in spelled
    }


async def test_headers_system_and_messages_are_what_the_server_gets(
    model: Model, server: ModelServer, project: Path
) -> None:
    """Every request is changed, and the session keeps the original messages."""

    def shorten(given: Any, output: Any) -> None:
        output.messages = [*output.messages[-1:], UserMessage(content="and be brief", timestamp=0)]

    hook = intercepting(
        ("chat.headers", put(headers={"X-Team": "blue"})),
        ("chat.system.transform", lambda given, output: output.system.append(f"You are {given.model}.")),
        ("chat.messages.transform", shorten),
    )
    on = stage(project, hook, model=model)
    server.play(Say("one"), Say("two"))
    async with on.host as host:
        await host.prompt("first")
        await host.prompt("second")
    last = server.requests[-1]
    body = json.dumps(last.body)
    assert last.headers["x-team"] == "blue"
    assert "You are some-model." in body
    assert "and be brief" in body
    assert "second" in body
    assert "first" not in body
    assert said_in(on) == [["first"], ["second"]]
