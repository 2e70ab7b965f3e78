"""`agent-hooks install`, `doctor` and `uninstall` for each agent, run as a person runs them, beside other entries."""

from __future__ import annotations

import codecs
import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from agent_hooks import __version__
from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import BACKUP, edit, parse
from agent_hooks.installs.generated import Heartbeat, heartbeat_path, plugin_path, stub_path
from running import Command

pytestmark = pytest.mark.usefixtures("no_agent_around", "on_the_path")

NESTED = """{
  "mine": ["é",  "\\u00e9"],   "n": 1.50e3,
  "hooks": {
    "%s": [
      { "matcher": "Bash", "hooks": [{"type": "command", "command": "echo mine"}] }
    ]
  }
}
"""
NESTED_JSONC = """{
  // the theme that I like
  "theme": "dark", /* not "light" */
  "hooks": {
    // my own
    "%s": [
      { "matcher": "Bash", "hooks": [{"type": "command", "command": "echo mine",}] }, // stays
    ],
  },
}
"""


class Sample(NamedTuple):
    """The person's settings of one agent: its path in the home, and its text with an entry of another program."""

    path: str
    text: str


SAMPLES = {
    "claude-code": Sample(".claude/settings.json", NESTED % "PreToolUse"),
    "codex": Sample(".codex/hooks.json", NESTED % "PreToolUse"),
    "gemini-cli": Sample(".gemini/settings.json", NESTED_JSONC % "BeforeTool"),
    "qwen-code": Sample(".qwen/settings.json", NESTED_JSONC % "PreToolUse"),
    "copilot-cli": Sample(".copilot/hooks/agent-hooks.json", ""),
    "opencode": Sample(
        ".config/opencode/opencode.jsonc",
        '{\n\t// mine\n\t"$schema": "https://opencode.ai/config.json",\n\t"plugin": [\n\t\t"other",\n\t],\n}\n',
    ),
    "pi": Sample(".pi/agent/settings.json", '{"theme": "dark", "extensions": ["/home/you/mine.ts"]}'),
    "openclaw": Sample(
        ".openclaw/openclaw.json",
        "// my claws\n{\n  gateway: { mode: 'local', port: +18789 },\n  plugins: {\n    allow: ['mine'],\n"
        "    load: { paths: ['/home/you/mine'] }, // stays\n  },\n}\n",
    ),
    "cursor": Sample(
        ".cursor/hooks.json",
        '{\r\n    "version": 1,\r\n    "hooks": {\r\n        "preToolUse": [\r\n            {"command": "echo mine"}\r\n'
        "        ]\r\n    }\r\n}\r\n",
    ),
}
"""By agent; an agent without a text has a file that is ours alone."""
TRUSTED = """# my Codex
model = "gpt-5"

[mcp_servers.mine.env]
GITHUB_TOKEN = "ghp_0123456789abcdefghij0123456789abcdef"

[hooks.state."{path}:pre_tool_use:0:0"]
trusted_hash = "sha256:0123"

[projects."/home/you/work"]
trust_level = "trusted"
"""
AGENTS = [name for name in SAMPLES if name in BRIDGES]


def test_each_agent_has_a_sample() -> None:
    """A new bridge gets its settings here."""
    assert set(BRIDGES) <= set(SAMPLES)


def tree(*directories: Path) -> dict[str, bytes | str | None]:
    """Return the content of each file below the directories, the target of each link, and `None` for each directory."""
    found: dict[str, bytes | str | None] = {}
    for directory in directories:
        for path in directory.rglob("*"):
            found[str(path)] = (
                str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
            )
    return found


def prepare(name: str, home: Path, *, bom: bool = False) -> Path:
    """Write the person's settings of an agent, and return their path."""
    sample = SAMPLES[name]
    path = home / sample.path
    path.parent.mkdir(parents=True)
    if sample.text:
        path.write_bytes(codecs.BOM_UTF8 * bom + sample.text.encode())
    if name == "codex":
        (path.parent / "config.toml").write_text(TRUSTED.format(path=os.path.realpath(path)))
    return path


def installed(name: str, path: Path) -> list[Any]:
    """Return our entries in a settings file."""
    bridge = open_bridge(name)
    text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    return list(bridge.installed(parse(text, bridge.settings_format)))


def first_gate(bridge: Bridge) -> str:
    """Return the name of the agent's event before a tool."""
    return bridge.facts("/", {}).event


@pytest.mark.parametrize("bom", [False, True])
@pytest.mark.parametrize("name", AGENTS)
def test_install_keeps_all_that_is_there_and_uninstall_leads_back_to_the_byte(
    name: str, bom: bool, served: Command, home: Path
) -> None:
    """Installing twice changes nothing more; no file and no directory is left, and none of the person's text goes."""
    path = prepare(name, home, bom=bom)
    before = tree(home, served.project)
    served("install", name, "--user")
    gates = {row.name for row in open_bridge(name).describe() if row.gate}
    assert gates <= {entry.event for entry in installed(name, path)}
    text = path.read_bytes().decode()
    assert text.startswith("\ufeff") == (bom and bool(SAMPLES[name].text) and open_bridge(name).reads_mark)
    # Each character of the person's text is there, in its order.
    rest = iter(text)
    assert all(each in rest for each in SAMPLES[name].text)
    once = tree(home, served.project)
    assert "is installed already" in served("install", name, "--user").stdout
    assert tree(home, served.project) == once
    served("uninstall", name)
    assert tree(home, served.project) == before
    assert "nothing of agent_hooks is there" in served("uninstall", name).stdout
    assert tree(home, served.project) == before


@pytest.mark.parametrize("name", AGENTS)
def test_other_changes_since_stay(name: str, served: Command, home: Path) -> None:
    """Another program has written its settings meanwhile: only our entries go."""
    path = prepare(name, home)
    served("install", name, "--user")
    bridge = open_bridge(name)
    edit(str(path), lambda found: {**found, "later": [1]}, format=bridge.settings_format).make()
    served("uninstall", name)
    left = parse(path.read_text(), bridge.settings_format)
    assert left.pop("later") == [1]
    old = parse(SAMPLES[name].text, bridge.settings_format)
    assert {key: each for key, each in left.items() if key in old} == old
    assert not installed(name, path)


@pytest.mark.parametrize("name", AGENTS)
def test_a_dry_run_prints_the_change_and_writes_nothing(name: str, served: Command, home: Path) -> None:
    """The same holds for the uninstallation."""
    path = prepare(name, home)
    before = tree(home, served.project)
    said = served("install", name, "--user", "--dry-run").stdout
    assert f"{path}: would be installed" in said
    assert first_gate(open_bridge(name)) in said or open_bridge(name).plugin
    assert tree(home, served.project) == before
    served("install", name, "--user")
    once = tree(home, served.project)
    said = served("uninstall", name, "--dry-run").stdout
    assert "would be uninstalled" in said
    assert f"{stub_path(open_bridge(name))}: would be removed" in said
    assert tree(home, served.project) == once


@pytest.mark.parametrize("name", AGENTS)
def test_settings_in_dotfiles_stay_a_link(name: str, served: Command, home: Path, tmp_path: Path) -> None:
    """The target is edited, and the link stays."""
    path = prepare(name, home)
    real = tmp_path / "dotfiles" / path.name
    real.parent.mkdir()
    real.write_text(SAMPLES[name].text or "{}")
    path.unlink(missing_ok=True)
    path.symlink_to(real)
    before = tree(home, tmp_path / "dotfiles")
    served("install", name, "--user")
    assert path.is_symlink()
    assert installed(name, real)
    served("uninstall", name)
    assert tree(home, tmp_path / "dotfiles") == before


BAD = {
    "cut off": b'{"hooks": {',
    "a list": b"[]",
    "not UTF-8": b'{"a": "\xff"}',
    "another form": b'{"hooks": 3, "plugin": 3, "extensions": 3, "plugins": 3}',
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", AGENTS)
def test_settings_that_cannot_be_read_stay_as_they_are(name: str, text: bytes, command: Command, home: Path) -> None:
    """The error names the file; no generated file is written."""
    path = prepare(name, home)
    path.write_bytes(text)
    before = tree(home, command.project)
    done = command("install", name, "--user", code=1)
    assert str(path) in done.stderr
    assert "nothing was changed" in done.stderr
    assert tree(home, command.project) == before


@pytest.mark.parametrize("name", AGENTS)
def test_an_empty_file_and_a_directory(name: str, command: Command, home: Path) -> None:
    """An empty file counts as empty settings, and is empty again afterwards; a directory is an error."""
    path = prepare(name, home)
    path.write_bytes(b"")
    before = tree(home)
    command("install", name, "--user")
    assert installed(name, path)
    command("uninstall", name)
    assert tree(home) == before
    path.unlink()
    path.mkdir()
    assert f"{path}: is not a regular file" in command("install", name, "--user", code=1).stderr


@pytest.mark.parametrize("name", AGENTS)
def test_a_file_that_changes_at_the_same_time_is_not_written_over(name: str, home: Path) -> None:
    """The edit was planned on another text."""
    path = prepare(name, home)
    bridge = open_bridge(name)
    planned = edit(str(path), lambda found: {**found, "ours": 1}, format=bridge.settings_format, keep=True)
    path.write_text("{}")
    with pytest.raises(SettingsError, match="was changed by another program just now"):
        planned.make()
    assert path.read_text() == "{}"
    assert not path.with_name(path.name + BACKUP).exists()


def test_a_file_that_may_not_be_written_stays_as_it_is() -> None:
    """The error says so; root may write any file, so another user tries it."""
    nobody = 65534
    with TemporaryDirectory() as name:
        directory, path = Path(name), Path(name, "settings.json")
        path.write_text("{ }")
        path.chmod(0o444)
        if os.geteuid() == 0:
            os.chown(directory, nobody, nobody)
            os.chown(path, nobody, nobody)
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            if os.geteuid() == 0:
                os.setuid(nobody)
            try:
                edit(str(path), lambda found: {**found, "ours": 1}).make()
            except SettingsError as exc:
                os.write(write, str(exc).encode())
            os._exit(0)
        os.close(write)
        said = os.read(read, 1000).decode()
        os.close(read)
        os.waitpid(child, 0)
        assert said == f"cannot write {path}: the file is write-protected; nothing was changed"
        assert path.read_text() == "{ }"
        assert list(directory.iterdir()) == [path]


# ---- the entries work ------------------------------------------------------------------------------------------------

GATE = """
def register(api):
    @api.on("tool_call")
    def stop(event, ctx):
        if event.tool_name == "bash" and "true" in event.input["command"]:
            return {"block": True, "reason": "not here"}
"""


def judged(name: str, path: Path, project: Path) -> str:
    """Send the agent's sample call through our entry as the agent does, or as its plugin reaches the server."""
    bridge, environment = open_bridge(name), {**os.environ}
    facts = bridge.facts(str(project), {})
    entry = next(each for each in installed(name, path) if each.event == facts.event)
    line = shlex.join(entry.command)
    if bridge.plugin:
        stub = Path(entry.command[0]).with_suffix(".py")
        line = f"{shlex.quote(sys.executable)} -I -S {shlex.quote(str(stub))} {facts.event}"
    done = subprocess.run(
        ["sh", "-c", line],
        input=json.dumps(facts.sample),
        env={**environment, **facts.environment},
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", AGENTS)
def test_the_installed_entry_runs_the_hooks_and_doctor_says_so(name: str, served: Command, home: Path) -> None:
    """The sample call goes through the path of each agent, by the names that its bridge gives it."""
    path = prepare(name, home)
    served("install", name, "--user")
    served.trusted = True
    served.add_hook(GATE)
    assert "not here" in judged(name, path, served.project)
    found = served("doctor", name, "--json", code=None).stdout
    texts = [each["text"] for each in json.loads(found)["findings"] if each["what"] == name]
    assert any(text.startswith(f"{first_gate(open_bridge(name))}: answered in") for text in texts), texts
    for reason in open_bridge(name).limits.values():
        assert any(text.startswith("hooks cannot ") and text.endswith(reason) for text in texts)
    assert not [each for each in json.loads(found)["findings"] if each["status"] == "problem"]


@pytest.mark.parametrize("name", AGENTS)
def test_doctor_names_the_version_beside_the_one_that_was_tested(
    name: str, served: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bridge that no real agent has tried says so, at the installation too."""
    bridge = open_bridge(name)
    facts = bridge.facts("/", {})
    program = tmp_path / "bin" / facts.program
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho the version is v0.0.7\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert ("no real" in served("install", name, "--user").stderr) == bridge.is_untried
    said = " ".join(served("doctor", name, code=None).stdout.split())
    assert ("never tried with a real one" in said) == bridge.is_untried
    known = "known from the documents is" if bridge.is_untried else "tested with"
    assert f"version 0.0.7; {known} {facts.tested}" in said


def test_all_installs_in_each_agent_that_is_here_and_uninstall_all_leaves_no_file(served: Command, home: Path) -> None:
    """Events and doctor come in between; the person's own files stay, and are named."""
    paths = {name: prepare(name, home) for name in AGENTS}
    served.trusted = True
    served.add_hook(GATE)
    (home / ".agent" / "hooks").mkdir(parents=True)
    before = tree(home, served.project)
    said = served("install", "all").stdout
    assert "is not here" not in said
    for name, path in paths.items():
        assert installed(name, path), name
        assert "not here" in judged(name, path, served.project)
    served("doctor", "all", code=None)
    served("serve", "--stop", code=None)
    said = served("uninstall", "all").stdout
    kept = said.splitlines()[-1]
    assert kept.startswith("your own files stay: ")
    after = tree(home, served.project)
    own = tuple(kept.removeprefix("your own files stay: ").split(", "))
    assert {path: each for path, each in after.items() if not path.startswith(own)} == {
        path: each for path, each in before.items() if not path.startswith(own)
    }
    assert {Path(each).name for each in own} <= {"hooks", "records", "server.key", "trust", "trust.json"}


def test_all_names_the_agents_that_are_not_here(served: Command, home: Path) -> None:
    """Without any agent, this is an error; a failure of one agent keeps none of the others from being installed."""
    assert "none of these agents is on this machine" in served("install", "all", code=1).stderr
    good, bad = prepare("claude-code", home), prepare("gemini-cli", home)
    bad.write_text("{")
    done = served("install", "all", code=1)
    assert "opencode is not here: no program opencode on the PATH, and no ~/.config/opencode" in done.stdout
    assert f"gemini-cli: {bad}: is not JSON with comments" in done.stderr
    assert installed("claude-code", good)
    assert bad.read_text() == "{"
    assert "not here: no program opencode on the PATH" in served("doctor", "all", code=1).stdout


def test_one_agent_can_be_installed_although_it_is_not_here(command: Command, home: Path) -> None:
    """The directories that are made for it go again."""
    before = tree(home, command.project)
    for name in AGENTS:
        command("install", name, "--user")
        assert tree(home, command.project) != before
    for name in reversed(AGENTS):
        command("uninstall", name)
    assert tree(home, command.project) == before


def test_a_target_that_an_agent_has_not_is_told(command: Command) -> None:
    """For one agent this is an error; for several, the others are installed."""
    done = command("install", "pi", "--project", code=2)
    assert "pi has no settings file that the people of a project share: use --user" in done.stderr
    done = command("install", "pi", "gemini-cli", "--project")
    assert "pi has no settings file that the people of a project share, so it was left out" in done.stdout
    assert (command.project / ".gemini" / "settings.json").exists()


def test_the_generated_file_stays_as_long_as_another_project_needs_it(
    command: Command, home: Path, tmp_path: Path
) -> None:
    """Otherwise each call there would be denied.  The last uninstallation removes it."""
    stub = home / ".agent" / "bridges" / "agent-hooks-claude-code.py"
    other = Command(tmp_path / "other")
    other.project.mkdir()
    command("install", "claude-code")
    other("install", "claude-code")
    said = command("uninstall", "claude-code").stdout
    assert f"{other.project}/.claude/settings.local.json: is installed too; the generated file stays for it" in said
    assert stub.exists()
    other("uninstall", "claude-code")
    assert not stub.exists()


# ---- Codex -----------------------------------------------------------------------------------------------------------


def test_codex_trusts_our_entries_and_those_of_others_keep_their_trust(served: Command, home: Path) -> None:
    """Our group comes first, which moves the others; no key of the person is printed."""
    path = prepare("codex", home)
    file = path.parent / "config.toml"
    said = served("install", "codex", "--user").stdout
    state = tomllib.loads(file.read_text())["hooks"]["state"]
    ours = open_bridge("codex").trust(os.path.realpath(path), json.loads(path.read_text()))
    assert f"{os.path.realpath(path)}:pre_tool_use:0:0" in ours
    for key, digest in ours.items():
        assert state[key] == {"trusted_hash": digest}
        assert digest in said
    assert state[f"{os.path.realpath(path)}:pre_tool_use:1:0"] == {"trusted_hash": "sha256:0123"}
    assert "ghp_0123456789" not in said
    served("uninstall", "codex")
    assert file.read_text() == TRUSTED.format(path=os.path.realpath(path))


def test_doctor_finds_entries_that_codex_does_not_run(served: Command, home: Path) -> None:
    """A group that was put before ours, or a changed command, switches the gate off without a word; the remedy works."""
    path = prepare("codex", home)
    served("install", "codex", "--user")

    def problems() -> list[str]:
        found = json.loads(served("doctor", "codex", "--json", code=None).stdout)["findings"]
        return [each["text"] for each in found if each["status"] == "problem"]

    assert problems() == []
    settings = json.loads(path.read_text())
    groups = settings["hooks"]["PreToolUse"]
    settings["hooks"]["PreToolUse"] = [groups[1], groups[0]]
    path.write_text(json.dumps(settings))
    assert any(
        "codex does not trust these entries of ours" in text and "pre_tool_use:1:0" in text for text in problems()
    )
    served("install", "codex", "--user")
    assert problems() == []


# ---- OpenCode --------------------------------------------------------------------------------------------------------


def test_the_file_that_counts_gets_the_entry(command: Command, home: Path) -> None:
    """OpenCode lets opencode.jsonc replace opencode.json; our entry in a file that no longer counts goes all the same."""
    directory = home / ".config" / "opencode"
    directory.mkdir(parents=True)
    (directory / "opencode.json").write_text("{}")
    before = tree(home)
    command("install", "opencode")
    assert installed("opencode", directory / "opencode.json")
    (directory / "opencode.jsonc").write_text("{}")
    command("install", "opencode")
    assert installed("opencode", directory / "opencode.jsonc")
    command("uninstall", "opencode")
    (directory / "opencode.jsonc").unlink()
    assert tree(home) == before


# ---- plugins ---------------------------------------------------------------------------------------------------------

PLUGINS = [name for name in AGENTS if open_bridge(name).plugin]


@pytest.mark.parametrize("name", PLUGINS)
def test_doctor_tells_whether_the_agent_has_loaded_the_plugin(name: str, served: Command, home: Path) -> None:
    """An agent goes on without a plugin that it cannot load."""
    prepare(name, home)
    served("install", name, "--user")
    bridge = open_bridge(name)
    beat = Heartbeat(version=__version__, time=time.time() + 1, pid=1, file=str(plugin_path(bridge)))

    def found(beat: Heartbeat | None) -> dict[str, str]:
        if beat is not None:
            heartbeat_path(bridge).write_bytes(msgspec.json.encode(beat))
        findings = json.loads(served("doctor", name, "--json", code=None).stdout)["findings"]
        return {each["text"]: each["status"] for each in findings if "the plugin" in each["text"]}

    assert found(None) == {f"the plugin has not been loaded yet, so no call of {name} is judged before that": "warning"}
    [(text, status)] = found(replace(beat, error="Traceback\nTypeError: no such hook")).items()
    assert status == "problem"
    assert text.endswith("so no call is judged: TypeError: no such hook")
    [(text, status)] = found(replace(beat, version="0.0.1")).items()
    assert (status, "of agent-hooks 0.0.1" in text) == ("warning", True)
    assert found(replace(beat, time=1.0)) == {"the plugin was loaded before the last installation": "warning"}
    [(text, status)] = found(beat).items()
    assert (status, text.startswith("the plugin was loaded on ")) == ("ok", True)


@pytest.mark.parametrize("name", PLUGINS)
def test_doctor_tells_that_a_plugin_is_gone_or_changed(name: str, served: Command, home: Path) -> None:
    """The remedy mends it."""
    prepare(name, home)
    served("install", name, "--user")
    path = plugin_path(open_bridge(name))

    def remedies(text: str) -> list[str]:
        findings = json.loads(served("doctor", name, "--json", code=None).stdout)["findings"]
        return [each["remedy"] for each in findings if each["text"] == text]

    path.write_text("// another\n")
    [remedy] = remedies(f"{path} is of another version, or of another Python")
    path.unlink()
    assert remedies(f"{path} is not there") == [remedy]
    served(*remedy.split()[1:])
    assert path.exists()
    assert not remedies(f"{path} is not there")


# ---- agents that read the settings of others -------------------------------------------------------------------------


def test_entries_that_another_agent_runs_too_are_named(command: Command, home: Path) -> None:
    """Copilot CLI runs the entries of Claude Code in a project; its own judge each event once they are there."""
    (home / ".copilot").mkdir()
    shared = ".claude/settings.json"
    command("install", "claude-code", "--project")
    said = command("install", "copilot-cli", "--dry-run").stdout
    assert f"copilot-cli runs the entries in {shared} too: they judge as its own" in said
    said = command("install", "copilot-cli").stdout
    own = f"copilot-cli runs the entries in {shared} too: its own entries judge each event"
    assert own in said
    assert own in command("doctor", "copilot-cli", code=None).stdout
    command("uninstall", "claude-code")
    assert shared not in command("doctor", "copilot-cli", code=None).stdout
