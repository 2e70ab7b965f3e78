"""The plugin that the marketplace file of the repository offers, in the real Claude Code."""

from __future__ import annotations

import json

import pytest

from clients.claude_seat import ClaudeSeat, bash
from clients.test_real_claude_code_mods import MODS, SECRET, add_mod, verdicts
from model_server import Say
from support import ROOT

pytestmark = pytest.mark.client
PLUGIN = "agent-hooks@agent-hooks-source"
REMEDY = "agent-hooks install claude-code --local"


def plugin(claude: ClaudeSeat, *args: str) -> str:
    """Run `claude plugin` as a user does, and return its output."""
    output, code = claude.client.execute([str(claude.client.program), "plugin", *args])
    assert code == 0, output
    return output


def add_plugin(claude: ClaudeSeat) -> None:
    """Add the repository as a marketplace, and install the plugin from it."""
    plugin(claude, "marketplace", "add", str(ROOT))
    plugin(claude, "install", PLUGIN)


def findings(claude: ClaudeSeat) -> dict[str, str]:
    """Return the text and the remedy of `doctor`'s warnings and problems."""
    said = json.loads(claude.client.hooks("doctor", "--json", code=None).stdout)
    return {each["text"]: each["remedy"] for each in said["findings"] if each["status"] != "ok"}


def test_the_client_accepts_the_repository_and_the_installed_mod(claude: ClaudeSeat) -> None:
    """The client reads both marketplace files, and the module of the mod."""
    assert "Validation passed" in plugin(claude, "validate", str(ROOT))
    claude.install()
    found = plugin(claude, "validate", str(claude.client.home / ".agent/mods"))
    assert "Validation passed" in found
    assert "register.ts gating hook with .catch: tool.call" in found


def test_the_plugin_alone_denies_nothing_and_says_what_to_do(claude: ClaudeSeat) -> None:
    """It says so at the start of each session, and so does `doctor`."""
    add_plugin(claude)
    run = claude.play(Say(calls=[bash("echo one")]), Say("done"))
    assert run.results[0].text == "one"
    started = [str(each.get("stdout")) for each in run.messages if each.get("hook_event") == "SessionStart"]
    assert any("this plugin alone judges no call" in each and "agent-hooks install" in each for each in started)
    told = {text: remedy for text, remedy in findings(claude).items() if PLUGIN in text}
    assert list(told.values()) == [REMEDY]


def test_the_plugin_next_to_an_installation_judges_nothing_twice(claude: ClaudeSeat) -> None:
    """The installed mod holds against a mod that allows all, and the plugin is silent."""
    (claude.project / ".env").write_text(f"PASSWORD={SECRET}\n")
    add_plugin(claude)
    claude.install()
    add_mod(claude, MODS["allows"][0], first=True)
    run = claude.play(Say(calls=[bash("cat .env")]), Say(calls=[bash("echo second")]), Say("done"))
    assert "reads a file with secrets" in run.results[0].text
    assert run.results[1].text == "second"
    assert verdicts(claude) == [("cat .env", "block"), ("echo second", "pass")]
    assert "judges no call" not in json.dumps(run.messages)
    assert not any("mod" in text or PLUGIN in text for text in findings(claude))


def test_uninstalling_leaves_the_plugin_of_the_user(claude: ClaudeSeat) -> None:
    """What `claude plugin` has written is the user's own."""
    add_plugin(claude)
    path = claude.client.home / ".claude/settings.json"
    before = path.read_bytes()
    claude.install()
    claude.client.hooks("uninstall", "claude-code")
    assert path.read_bytes() == before
