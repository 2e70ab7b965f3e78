"""The model that replays recorded turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_hooks import ModelError
from agent_hooks.host.model import Model, ModelRequest, collect
from agent_hooks.host.models import open_model
from agent_hooks.values.content import AssistantMessage

pytestmark = pytest.mark.anyio
REQUEST = ModelRequest(system=(), messages=(), tools=())


async def respond(model: Model) -> AssistantMessage:
    """Ask for the next response."""
    return await collect(model, REQUEST, lambda _: None)


async def test_lines_are_played_in_order_and_then_it_says_that_it_is_over(tmp_path: Path) -> None:
    """Text, thinking and calls come back as recorded."""
    script = tmp_path / "s.jsonl"
    script.write_text(
        '{"text": "a\\nb", "thinking": "hm", "toolCalls": [{"name": "ls", "arguments": {"path": "."}, "id": "x"}]}\n'
        '\n{"text": "done"}\n'
    )
    model = open_model(f"script:{script}")

    first = await respond(model)
    assert (first.text, first.stop_reason, first.model) == ("a\nb", "tool_use", "s.jsonl")
    assert [(call.id, call.name, dict(call.arguments)) for call in first.tool_calls] == [("x", "ls", {"path": "."})]
    assert (await respond(model)).text == "done"
    with pytest.raises(ModelError, match="all 2 responses are played"):
        await respond(model)


async def test_a_session_file_is_a_script(tmp_path: Path) -> None:
    """Its assistant messages are replayed, and its other entries are skipped."""
    script = tmp_path / "session.jsonl"
    script.write_text(
        '{"type":"session","version":1,"id":"1","timestamp":"t","cwd":"/"}\n'
        '{"type":"message","timestamp":"t","message":{"role":"user","content":[],"timestamp":1}}\n'
        '{"type":"message","timestamp":"t","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},'
        '{"type":"text","text":"hello"},{"type":"toolCall","id":"1","name":"ls","arguments":{}}],'
        '"timestamp":1,"provider":"p","model":"m"}}\n'
    )
    message = await respond(open_model(f"script:{script}"))
    assert message.text == "hello"
    assert [call.name for call in message.tool_calls] == ["ls"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("{", ":1: "),
        ('{"txt": "x"}', "unknown field `txt`"),
        ("3", "Expected `object`"),
        ('{"type": "x"}', "Invalid value"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: str, error: str) -> None:
    """The error has the line and the reason."""
    script = tmp_path / "s.jsonl"
    script.write_text(line)
    with pytest.raises(ModelError) as caught:
        open_model(f"script:{script}")
    assert f"{script}:1: " in str(caught.value)
    assert error in str(caught.value)


def test_a_script_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The file is missing, is not text, or is not given."""
    (tmp_path / "latin.jsonl").write_bytes(b"\xff")
    for name, error in (
        ("script:nope.jsonl", "No such file"),
        (f"script:{tmp_path}/latin.jsonl", "not UTF-8"),
        ("script", "which file"),
    ):
        with pytest.raises(ModelError, match=error):
            open_model(name)
