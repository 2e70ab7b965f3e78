"""Calls with odd names and odd arguments, as another version of an agent may send them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import CallAsked
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.bridges.command import CommandBridge


def call(bridge: Bridge, name: str | None = None, input: Mapping[str, Any] | None = None) -> CallAsked:
    """Decode the agent's sample call of its shell, with another name or another input."""
    assert isinstance(bridge, CommandBridge)
    facts = bridge.facts("/", {})
    payload: dict[str, Any] = copy.deepcopy(dict(facts.sample))
    fields: dict[str, Any] = payload["event"] if bridge.plugin else payload
    if name is not None:
        fields[bridge.fields.tool] = name
    if input is not None:
        fields[bridge.fields.input] = input
    decoded = bridge.decode(payload, facts.event)
    assert isinstance(decoded, CallAsked)
    return decoded


@pytest.mark.parametrize("name", BRIDGES)
@pytest.mark.parametrize("odd", ["BASH", "bash ", " Bash", "bash"])
def test_our_own_name_in_other_letters_is_the_shell_in_each_agent(name: str, odd: str) -> None:
    """A gate of `bash` judges such a call, also where the agent's own shell has another name."""
    assert call(open_bridge(name), odd, {"command": "rm -rf build"}).tool_name == "bash"


@pytest.mark.parametrize("name", BRIDGES)
def test_a_tool_of_a_server_is_not_the_shell(name: str) -> None:
    """Its arguments are its own."""
    assert call(open_bridge(name), "mcp__x__bash", {"command": ["a"]}).tool_name == "mcp__x__bash"


@pytest.mark.parametrize("name", BRIDGES)
@pytest.mark.parametrize("command", [["bash", "-lc", "rm -rf build"], {"line": "rm -rf build"}, 3, True])
def test_a_command_that_is_no_text_is_not_judged(name: str, command: object) -> None:
    """A gate that looks for a word in the text would find none in a list; the error names the version that is known."""
    bridge = open_bridge(name)
    with pytest.raises(BridgeError, match=r"command must be a text.*knows the events of"):
        call(bridge, input={"command": command})


@pytest.mark.parametrize("name", BRIDGES)
def test_a_path_that_is_no_text_is_not_judged(name: str) -> None:
    """A gate of paths would not see it.  A missing one, or none, stays as it is."""
    bridge = open_bridge(name)
    for words in [words for words in bridge.tools if words.ours in ("write", "edit", "read")]:
        theirs = next((theirs for theirs, ours in words.arguments.items() if ours == "path"), "path")
        with pytest.raises(BridgeError, match="must be a text, not \\["):
            call(bridge, words.theirs, {theirs: ["a"]})
        assert call(bridge, words.theirs, {theirs: None}).input == {"path": None}
        assert call(bridge, words.theirs, {}).input == {}
