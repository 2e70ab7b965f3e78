"""Entries that a person has limited to some tools, where one agent runs the entries of another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.installs.places import reading
from agent_hooks.server.guests import judging_bridge


def settings_of(name: str, matcher: str | None) -> dict[str, Any]:
    """Return the settings with our entry of the gate, limited to some tools."""
    bridge = open_bridge(name)
    gate = bridge.facts("/", {}).event
    settings = bridge.install({}, ["agent-hooks", "bridge", name], [gate])
    if matcher is not None:
        settings["hooks"][gate][0]["matcher"] = matcher
    return settings


def written(path: Path, settings: dict[str, Any]) -> None:
    """Write a settings file."""
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(settings))


@pytest.mark.parametrize("matcher", [None, "bash"])
def test_an_own_entry_with_a_matcher_does_not_silence_the_other_one(matcher: str | None, tmp_path: Path) -> None:
    """A call that it does not match would have no judge; without a matcher, the own entry judges alone."""
    written(tmp_path / "hooks" / "agent-hooks.json", settings_of("copilot-cli", matcher))
    environment = {"COPILOT_CLI": "1", "COPILOT_HOME": str(tmp_path), "COPILOT_PROJECT_DIR": str(tmp_path)}
    found = judging_bridge("claude-code", environment, {"hook_event_name": "PreToolUse", "timestamp": 1})
    assert (found is None) == (matcher is None)
    assert found is None or found.name == "copilot-cli"


@pytest.mark.parametrize("matcher", [None, "Bash"])
def test_a_matcher_of_the_other_agents_entry_is_named(matcher: str | None, tmp_path: Path) -> None:
    """Calls of other tools are not judged there."""
    written(tmp_path / ".claude" / "settings.json", settings_of("claude-code", matcher))
    [text] = reading(open_bridge("copilot-cli"), str(tmp_path), environment={"COPILOT_HOME": str(tmp_path / "none")})
    assert text.endswith("; they do not run each time at PreToolUse") == (matcher is not None)
