"""The mods that Claude Code loads, found in the files that name them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.installs.mods import loaded_mods

CLAUDE = open_bridge("claude-code")
SOURCE = """
import type { Register } from 'claude-code'
export const register: Register = on => {
  on('tool.call', async ($, e, next) => await next(e))
  on("classic.*", () => ({}))
}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give an empty project next to the home."""
    path = tmp_path / "project"
    path.mkdir()
    return path


def write(path: Path, content: Any) -> None:
    """Write a file and its directories.  An object is written as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def plugin(root: Path, source: str | None = SOURCE) -> Path:
    """Write a plugin, with a hooks module if it has a source."""
    write(root / ".claude-plugin" / "plugin.json", {"name": root.name})
    if source is not None:
        write(root / "hooks" / "hooks.json", {"modules": ["./register.ts"]})
        write(root / "hooks" / "register.ts", source)
    return root


def market(root: Path, *plugins: Path) -> dict[str, Any]:
    """Write a marketplace with plugins, and return what settings hold about it."""
    listed = [{"name": each.name, "source": f"./{each.relative_to(root)}"} for each in plugins]
    write(root / ".claude-plugin" / "marketplace.json", {"name": root.name, "plugins": listed})
    return {"source": {"source": "directory", "path": str(root)}}


def mods(home: Path, project: Path) -> list[str]:
    """Return the mods in words."""
    return [str(each) for each in loaded_mods(CLAUDE, str(project), {"CLAUDE_CONFIG_DIR": str(home / ".claude")})]


def test_a_plugin_of_a_directory_is_named_with_tier_and_events(home: Path, project: Path, tmp_path: Path) -> None:
    """A plugin without a hooks module is not a mod, and a plugin that is off is not loaded."""
    place = tmp_path / "lab"
    roots = [plugin(place / "seen"), plugin(place / "first"), plugin(place / "off"), plugin(place / "plain", None)]
    enabled = {"seen@lab": True, "off@lab": False, "plain@lab": True}
    settings = {"extraKnownMarketplaces": {"lab": market(place, *roots)}, "enabledPlugins": enabled}
    write(home / ".claude" / "settings.json", {**settings, "prependPlugins": ["first@lab"]})
    assert mods(home, project) == [
        "first@lab (prepend): tool.call, classic.*",
        "seen@lab (user): tool.call, classic.*",
    ]


def test_an_installed_plugin_is_found_where_the_client_notes_it(home: Path, project: Path, tmp_path: Path) -> None:
    """The settings of a project name it; `prependPlugins` has no effect there."""
    root = plugin(tmp_path / "cache" / "late")
    installed = {"version": 2, "plugins": {"late@far": [{"installPath": str(root)}]}}
    write(home / ".claude" / "plugins" / "installed_plugins.json", installed)
    settings = {"enabledPlugins": {"late@far": True}, "prependPlugins": ["late@far"]}
    write(project / ".claude" / "settings.json", settings)
    assert mods(home, project) == ["late@far (project): tool.call, classic.*"]


def test_mods_under_development_are_loaded_too(home: Path, project: Path) -> None:
    """A session writes them below a directory of its own."""
    plugin(home / ".claude" / "dev-mods" / "b3c1" / "mine", "on(`turn.start`, ($, e, next) => next(e))")
    assert mods(home, project) == ["mine (dev-mods): turn.start"]


def test_our_own_mod_is_none_of_the_others(home: Path, project: Path) -> None:
    """The settings name it after an installation."""
    write(home / ".claude" / "settings.json", CLAUDE.seated({}, str(home / ".agent" / "mods")))
    assert mods(home, project) == []


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("settings.json", "{"),
        ("settings.json", {"enabledPlugins": ["x@y"], "prependPlugins": {"x@y": 1}}),
        ("settings.json", {"enabledPlugins": {"x@y": True}, "extraKnownMarketplaces": {"y": {"source": "here"}}}),
        ("plugins/installed_plugins.json", {"plugins": {"x@y": [3]}}),
        ("plugins/known_marketplaces.json", {"y": None}),
    ],
)
def test_a_file_of_another_form_is_no_obstacle(home: Path, project: Path, file: str, content: Any) -> None:
    """A plugin whose files are not found is named all the same."""
    write(home / ".claude" / "settings.json", {"enabledPlugins": {"x@y": True}})
    write(home / ".claude" / file, content)
    unnamed = file == "settings.json" and "extraKnownMarketplaces" not in content
    assert mods(home, project) == ([] if unnamed else ["x@y (user): its files were not found"])
