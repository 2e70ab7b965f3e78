"""Settings of agents with values of a wrong form at the places of our entries: an error for the person, and no other."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.words import BridgeError
from running import Command

ODD: Sequence[Any] = (None, 3, "x", [], {}, [3], {"a": 3}, True, [[]], [{}], [None])
LINE = "python /home/you/.agent/bridges/agent-hooks-codex.py"
GROUPS: Sequence[Any] = (
    *({"hooks": each} for each in ODD),
    *({"hooks": [{"command": each}]} for each in ODD),
    *({"hooks": [{"type": "command", "command": LINE, "timeout": each}]} for each in ODD),
    *({"hooks": [{"type": "command", "command": LINE}], "matcher": each} for each in ODD),
    *({"command": each} for each in ODD),
    *({"bash": each} for each in ODD),
)


def places(bridge: Bridge) -> list[tuple[str, ...]]:
    """Return the places in the settings of an agent that hold entries of ours."""
    own = {
        "openclaw": ["plugins", "plugins.load", "plugins.load.paths", "plugins.entries", "plugins.allow"]
        + [f"plugins.entries.agent-hooks-openclaw{more}" for more in ("", ".hooks")],
        "opencode": ["plugin"],
        "pi": ["extensions"],
    }
    gate = next(row.name for row in bridge.describe() if row.gate)
    return [tuple(each.split(".")) for each in own.get(bridge.name, ["hooks", f"hooks.{gate}"])]


def settings(place: Sequence[str], value: Any) -> dict[str, Any]:
    """Return settings that have only this value."""
    for key in reversed(place):
        value = {key: value}
    found: dict[str, Any] = value
    return found


@pytest.mark.parametrize("name", BRIDGES)
def test_a_value_of_a_wrong_form_is_an_error_for_the_person(name: str) -> None:
    """No other exception leaves the bridge, in an installation, an uninstallation and a check."""
    bridge = open_bridge(name)
    command = [f"/home/you/.agent/bridges/agent-hooks-{name}.mjs"]
    events = [row.name for row in bridge.describe() if row.gate]
    for place in places(bridge):
        for odd in [*ODD, *([each] for each in GROUPS)]:
            found = settings(place, odd)
            with suppress(BridgeError):
                changed = bridge.install(found, command, events)
                bridge.uninstall(changed)
                bridge.moved_trust("/settings", found, changed)
                bridge.trust("/settings", changed)
            with suppress(BridgeError):
                bridge.uninstall(found)
            bridge.installed(found)
            bridge.hindrances("/settings", found, "/project")
            bridge.trust("/settings", found)


@pytest.mark.parametrize("place", ["plugins.entries", "plugins.entries.agent-hooks-openclaw"])
def test_the_error_names_the_place_in_the_settings_of_openclaw(place: str) -> None:
    """Nothing of the person is replaced by a value of ours."""
    bridge = open_bridge("openclaw")
    with pytest.raises(BridgeError, match=f"{place} must be an object, not 3"):
        bridge.install(settings(place.split("."), 3), ["/home/you/agent-hooks-openclaw.mjs"], [])


@pytest.mark.usefixtures("no_agent_around", "on_the_path")
def test_entries_in_a_directory_that_is_a_link_are_trusted_by_both_paths(
    command: Command, home: Path, tmp_path: Path
) -> None:
    """Codex knows them by the link in `~/.codex`, and by its target in `CODEX_HOME`."""
    real = tmp_path / "dotfiles"
    real.mkdir()
    (home / ".codex").symlink_to(real)
    command("install", "codex")
    state = tomllib.loads((real / "config.toml").read_text())["hooks"]["state"]
    keys = {
        directory: {key.rpartition("hooks.json:")[2] for key in state if key.startswith(f"{directory}/")}
        for directory in (real, home / ".codex")
    }
    assert "pre_tool_use:0:0" in keys[real]
    assert keys[real] == keys[home / ".codex"]
    command("uninstall", "codex")
    assert list(real.iterdir()) == []
