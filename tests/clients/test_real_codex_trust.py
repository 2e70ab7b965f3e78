"""Codex itself lists the entries of its settings, and whether it trusts each of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from clients.installing import PINNED
from running import Command

pytestmark = [pytest.mark.client, pytest.mark.usefixtures("no_agent_around")]

CODEX = PINNED / "codex" / "node_modules" / ".bin" / "codex"
MINE = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo mine"}]}


def listed(home: Path, project: Path) -> dict[str, tuple[str, str]]:
    """Return the state of trust and the hash of each entry that Codex knows, by event and position."""
    node = PINNED / "node" / "node_modules" / ".bin"
    with subprocess.Popen(
        [CODEX, "app-server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={"PATH": f"{node}:{os.environ['PATH']}", "HOME": str(home)},
        cwd=project,
    ) as server:
        assert server.stdin
        assert server.stdout
        asked = (
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
            {"method": "initialized"},
            {"id": 2, "method": "hooks/list", "params": {"cwds": [str(project)]}},
        )
        server.stdin.writelines(json.dumps(each) + "\n" for each in asked)
        server.stdin.flush()
        answer = next(each for each in map(json.loads, server.stdout) if each.get("id") == 2)
        server.kill()
    hooks = [hook for each in answer["result"]["data"] for hook in each["hooks"]]
    return {hook["key"].partition("hooks.json:")[2]: (hook["trustStatus"], hook["currentHash"]) for hook in hooks}


def test_codex_trusts_what_install_has_written_and_the_entries_of_others_as_before(
    command: Command, home: Path
) -> None:
    """Our group is the first one; the person's own entry is trusted at its new place, and at its old one afterwards."""
    own = home / ".codex"
    own.mkdir()
    (own / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [MINE]}}))
    place = "pre_tool_use:0:0"
    before = listed(home, command.project)
    assert before[place][0] == "untrusted"
    key = f"{os.path.realpath(own)}/hooks.json:{place}"
    (own / "config.toml").write_text(f'[hooks.state."{key}"]\ntrusted_hash = "{before[place][1]}"\n')
    before = listed(home, command.project)
    assert before[place][0] == "trusted"
    command("install", "codex")
    after = listed(home, command.project)
    assert {state for state, _ in after.values()} == {"trusted"}
    assert len(after) > len(before)
    assert after["pre_tool_use:1:0"] == before[place]
    assert after[place] != before[place]
    command("uninstall", "codex")
    assert listed(home, command.project) == before


def test_codex_trusts_our_entries_in_a_directory_that_is_a_link_into_dotfiles(
    command: Command, home: Path, tmp_path: Path
) -> None:
    """Codex knows the entries by the link, and not by its target."""
    (tmp_path / "dotfiles").mkdir()
    (home / ".codex").symlink_to(tmp_path / "dotfiles")
    command("install", "codex")
    assert {state for state, _ in listed(home, command.project).values()} == {"trusted"}
    command("uninstall", "codex")
    assert not {"hooks.json", "config.toml"} & {each.name for each in (tmp_path / "dotfiles").iterdir()}
