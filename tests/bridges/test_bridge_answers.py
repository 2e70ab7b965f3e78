"""Any verdict at any event of an agent whose hooks are commands: the answer has only words that the agent knows."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import ToolOutput
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base.happenings import CallAsked, Happening, PromptGiven
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.base.words import BridgeError, parse_payload
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.copilot_cli import CopilotAsClaude
from agent_hooks.bridges.cursor import CursorAsClaude
from support import examples

texts = st.text(st.characters(), max_size=12) | st.sampled_from(["", " ", "\ud800", "plain"])
maybe = st.none() | texts
values = texts | st.integers() | st.none() | st.lists(texts, max_size=2)
verdicts = st.builds(
    Verdict,
    block=maybe,
    ask=maybe,
    allow=st.booleans(),
    input=st.none() | st.dictionaries(st.sampled_from(["command", "path", "input"]) | texts, values, max_size=3),
    output=st.none() | st.builds(ToolOutput, texts),
    prompt=maybe,
    go_on=maybe,
    context=st.lists(texts, max_size=2).map(tuple),
    messages=st.lists(texts, max_size=2).map(tuple),
)
NAMES = ("codex", "qwen-code", "copilot-cli", "cursor")


@cache
def payloads(name: str) -> dict[str, Any]:
    """Return the payloads of an agent, by the event's name and a word."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / f"{name.replace('-', '_')}.json").read_text())
    return found


def bridge_of(name: str) -> CommandBridge:
    """Return the bridge of that name."""
    bridge = open_bridge(name)
    assert isinstance(bridge, CommandBridge)
    return bridge


def keys_of(value: Any) -> set[str]:
    """Return the keys of a template or an answer, at all levels; the value in a place of a template has none."""
    if not isinstance(value, dict):
        return set()
    return {*value, *(key for each in value.values() for key in keys_of(each))}


def happenings(name: str) -> list[Happening]:
    """Return the happenings of all payloads of an agent."""
    bridge = bridge_of(name)
    return [bridge.decode(payload, key.partition(":")[0]) for key, payload in payloads(name).items()]


@pytest.mark.parametrize("name", NAMES)
@given(st.data(), verdicts)
@examples(100)
def test_an_answer_has_no_other_words(name: str, data: st.DataObject, verdict: Verdict) -> None:
    """It is one JSON object in UTF-8, of the keys that the event's row has; a block and a question deny."""
    bridge = bridge_of(name)
    event = data.draw(st.sampled_from(happenings(name)))
    reply = bridge.encode(event, verdict)
    answer = json.loads(reply.stdout.encode())
    row = bridge.command_row(event.name)
    known = {key for template in row.says.values() for key in keys_of(template)}
    free = keys_of(answer.get("hookSpecificOutput", {}).get("updatedInput"))
    free |= keys_of(answer.get("modifiedArgs")) | keys_of(answer.get("updated_input"))
    assert keys_of(answer) - free <= known
    assert reply.exit_code == 0
    asked = verdict.ask is not None and "ask" in bridge.limits and isinstance(event, CallAsked)
    if (verdict.block is not None or asked) and isinstance(event, CallAsked | PromptGiven):
        said = json.dumps(answer)
        assert any(word in said for word in ('"deny"', '"block"', '"continue": false')), answer
        assert not free


@pytest.mark.parametrize(
    "bridge", [*map(bridge_of, NAMES), CopilotAsClaude(), CursorAsClaude()], ids=lambda each: each.title
)
def test_a_failure_at_a_gate_is_a_denial(bridge: CommandBridge) -> None:
    """Also at an event that is not known, and with a reason that is blank or cannot be written as UTF-8."""
    gates = [row.name for row in bridge.rows if row.kind in ("call", "prompt")]
    for event in (None, *gates):
        for reason in ("broken", "", " ", "\ud800"):
            said = bridge.refuse(event, reason).stdout
            assert any(word in said for word in ('"deny"', '"block"', '"continue": false'))
            said.encode()


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
@examples(100)
def test_a_payload_that_is_cut_off_is_an_error(name: str, data: st.DataObject) -> None:
    """No part of a payload is taken for a whole one."""
    key = data.draw(st.sampled_from(sorted(payloads(name))))
    raw = json.dumps(payloads(name)[key]).encode()
    end = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(BridgeError):
        open_bridge(name).decode_as(key.partition(":")[0], parse_payload(raw[:end]))


@pytest.mark.parametrize("name", NAMES)
def test_a_large_payload_is_read(name: str) -> None:
    """A command of 50 MB is no reason to let it run."""
    bridge = bridge_of(name)
    facts = bridge.facts("/project", {})
    payload = {**facts.sample, bridge.fields.input: {"command": "echo " + "x" * 50_000_000}}
    call = bridge.decode_as(facts.event, parse_payload(json.dumps(payload).encode()))
    assert isinstance(call, CallAsked)
    assert len(call.input["command"]) == 50_000_005
