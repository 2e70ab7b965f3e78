"""`agent-hooks install` and `uninstall`, run as a person runs them; their entries are run as Claude Code runs them."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base.installation import Address
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import BACKUP, Edit, edit
from agent_hooks.installs.json_text import edited, parse
from agent_hooks.installs.places import (
    DoubledEntries,
    Installation,
    MissingEvent,
    Target,
    doubled,
    installations,
    missing,
)
from agent_hooks.installs.plan import uninstalling
from running import Command, write_shared_command
from support import examples

CLAUDE = open_bridge("claude-code")
EVENTS = [row.name for row in CLAUDE.describe()]
ALWAYS = ["PreToolUse", "PreSkillShellCommand", "UserPromptSubmit", "SessionStart", "SessionEnd", "Stop"]
REDACTED = ["PostToolUse", "PostToolUseFailure"]  # by default
RUN = ["/py", "-m", "agent_hooks", "bridge", "claude-code"]
ROOT = Path(__file__).parent.parent.parent
CALL = json.loads((ROOT / "tests" / "bridges" / "claude_code.json").read_text())["PreToolUse:Bash"]


pytestmark = pytest.mark.usefixtures("no_agent_around", "on_the_path")


def local(command: Command) -> Path:
    """Return the settings file that `install` writes by default."""
    return command.project / ".claude" / "settings.local.json"


def events(path: Path) -> list[str]:
    """Return the events that are installed in a file."""
    return [entry.event for entry in CLAUDE.installed(json.loads(path.read_text()))]


def entry(path: Path, event: str = "PreToolUse") -> Any:
    """Return our one entry for an event."""
    ((found,),) = (group["hooks"] for group in json.loads(path.read_text())["hooks"][event])
    return found


def judge(entry: Any, text: str, project: Path) -> Any:
    """Run an entry as Claude Code does, on a call of Bash: without arguments, a shell runs it."""
    line = [entry["command"], *entry["args"]] if "args" in entry else ["sh", "-c", entry["command"]]
    done = subprocess.run(
        line,
        input=json.dumps({**CALL, "tool_input": {"command": text}}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd="/",
        env={**os.environ, "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(project)},
    )
    return json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"]


# ---- the edits --------------------------------------------------------------------------------------------------------


def test_what_is_installed_runs_and_uninstall_leads_back_to_the_byte(served: Command) -> None:
    """The entry is run as the agent runs it; other settings keep their text, and a backup lies beside the file."""
    path = local(served)
    path.parent.mkdir()
    text = '{\n    "n": 1.50e3, "allow": ["é",  "\\u00e9"],\n    "hooks": {"Stop": [], "PreToolUse": [{"hooks": [1]}]}}'
    path.write_text(text)
    path.chmod(0o640)
    said = served("install", "claude-code", "--diff").stdout
    assert ".claude/settings.local.json: installed" in said
    assert '"PreToolUse": [{"hooks": [1]},\n+            {\n+                "hooks": [\n' in said
    once = path.read_text()
    assert '"n": 1.50e3' in once
    assert '"allow": ["é",  "\\u00e9"]' in once
    assert path.with_name(path.name + BACKUP).read_text() == text
    assert {oct(each.stat().st_mode & 0o777) for each in path.parent.iterdir()} == {"0o640"}
    assert "is installed already" in served("install", "claude-code", "--local").stdout
    assert path.read_text() == once
    ours = json.loads(once)["hooks"]["PreToolUse"][1]["hooks"][0]
    assert judge(ours, "rm -rf /", served.project) == "deny"
    assert (ours["onFailure"], ours["timeout"]) == ("block", 600)
    assert "uninstalled" in served("uninstall", "claude-code").stdout
    assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]
    assert "nothing of agent_hooks is there" in served("uninstall", "claude-code").stdout


def test_the_last_lines_say_what_was_done(command: Command) -> None:
    """They sum up the change in words, and `--diff` and a dry run print it above them; `-q` prints nothing."""

    def said(*args: str) -> list[str]:
        return command("install", "claude-code", *args).stdout.splitlines()

    path, remove = ".claude/settings.local.json", "to remove it: agent-hooks uninstall claude-code --local"
    mods = f"{os.environ['HOME']}/.claude/settings.json:"
    overruled = "so that no other mod overrules the entries"
    assert said("--dry-run")[-4:] == [
        "",
        f"{path}: would be installed, 8 events added, 0 removed",
        f"{mods} would be changed, {overruled}",
        remove,
    ]
    assert said() == [f"{path}: installed, 8 events added, 0 removed", f"{mods} changed, {overruled}", remove]
    assert said() == [f"{path}: is installed already", remove]
    assert said("-q") == []
    command.add_hook("def register(api):\n    api.on('turn_end', lambda event, ctx: None)")
    assert said() == [f"{path}: installed, 1 event added, 0 removed", remove]
    local(command).write_text(local(command).read_text().replace("600", "5"))
    shown = said("--diff")
    assert shown[-3:] == ["", f"{path}: installed, 0 events added, 0 removed, the entries brought up to date", remove]
    assert shown[0].startswith("--- ")


def test_a_dry_run_shows_what_would_change(command: Command) -> None:
    """It changes nothing."""
    said = command("install", "claude-code", "--dry-run").stdout
    assert said.startswith("--- /dev/null\n+++ ")
    assert "settings.local.json: would be installed" in said
    assert not local(command).parent.exists()
    command("install", "claude-code")
    once = local(command).read_text()
    assert "would be uninstalled; the file held nothing else" in command("uninstall", "claude-code", "--dry-run").stdout
    assert local(command).read_text() == once
    command("uninstall", "claude-code", "--local")
    assert not local(command).exists()


def test_events_are_installed_as_hooks_need_them(command: Command) -> None:
    """None is removed before `uninstall`; `--all-events` installs them all."""
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "settings.json").write_text('{"redaction": {"enabled": false}}')
    command("install", "claude-code")
    path = local(command)
    assert events(path) == ALWAYS
    command.add_hook("def register(api):\n    api.on('turn_end', lambda event, ctx: None)")
    command("install", "claude-code")
    assert events(path) == [*ALWAYS, "PostToolBatch"]
    (command.project / ".agent" / "settings.json").unlink()
    shutil.rmtree(command.project / ".agent" / "hooks")
    command("install", "claude-code")
    assert sorted(events(path)) == sorted([*ALWAYS, *REDACTED, "PostToolBatch"])
    command("install", "claude-code", "--all-events")
    assert sorted(events(path)) == sorted(EVENTS)


def test_what_is_shared_names_nothing_of_this_machine(
    served: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs `agent-hooks` on the PATH, and a warning says so if it is not there."""
    monkeypatch.setenv("PATH", f"{write_shared_command(tmp_path / 'bin', home)}:{os.environ['PATH']}")
    served("install", "claude-code", "--project")
    path = served.project / ".claude" / "settings.json"
    line = (
        "agent-hooks bridge claude-code --resident PreToolUse || sh -c 'echo agent-hooks failed >&2; exit 2' || exit 2"
    )
    assert {key: entry(path).get(key) for key in ("command", "args")} == {"command": line, "args": None}
    assert entry(path, "Stop")["command"] == "agent-hooks bridge claude-code --resident Stop || exit 0"
    assert str(Path(sys.executable).parent) not in path.read_text()
    assert judge(entry(path), "rm -rf /", served.project) == "deny"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "there is no agent-hooks on the PATH" in served("install", "claude-code", "--project").stderr


@pytest.mark.parametrize("target", ["--project", "--local"])
def test_another_agent_that_reads_the_file_is_judged_in_its_own_words(
    served: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """Copilot runs an entry as one line, without `args`; it gets its own answers."""
    path = f"{write_shared_command(tmp_path / 'bin', home)}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    served("install", "claude-code", target)
    file = "settings.json" if target == "--project" else "settings.local.json"
    for command, decision in (("rm -rf /", "deny"), ("ls", None)):
        payload = {"hook_event_name": "PreToolUse", "session_id": "s", "timestamp": "2026-11-20", "cwd": "/"}
        call = {"tool_name": "Bash", "tool_input": {"command": command, "description": "d"}}
        done = subprocess.run(
            ["bash", "-c", entry(served.project / ".claude" / file)["command"]],
            input=json.dumps(payload | call),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            cwd=served.project,
            env={"PATH": path, "HOME": str(home), "COPILOT_CLI": "1", "CLAUDE_PROJECT_DIR": str(served.project)},
        )
        assert json.loads(done.stdout).get("permissionDecision") == decision


def test_install_for_the_user(command: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is in the home directory, or in Claude Code's own configuration directory."""
    command("install", "claude-code", "--user")
    assert "PreToolUse" in (home / ".claude" / "settings.json").read_text()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "other"))
    command("install", "claude-code", "--user")
    assert "PreToolUse" in (home / "other" / "settings.json").read_text()
    assert not (command.project / ".claude").exists()


# ---- several files ---------------------------------------------------------------------------------------------------


def test_no_event_fires_twice_without_a_word(command: Command, home: Path) -> None:
    """An installation that does the same replaces the local one; for two others, a warning has the remedy."""
    shared, own = command.project / ".claude" / "settings.json", home / ".claude" / "settings.json"
    command("install", "claude-code", "--all-events")
    done = command("install", "claude-code", "--project")
    assert ".claude/settings.local.json: taken out" in done.stdout
    assert (local(command).exists(), sorted(events(shared))) == (False, sorted(EVENTS))
    assert "nothing was changed" in command("install", "claude-code").stdout
    assert not local(command).exists()
    done = command("install", "claude-code", "--user")
    assert f"{own} and .claude/settings.json run your hooks by different commands" in done.stderr
    assert "take one out: agent-hooks uninstall claude-code --user\n" in done.stderr
    gone = command("uninstall", "claude-code").stdout
    assert ".claude/settings.json: uninstalled" in gone
    assert f"{own}: uninstalled" in gone
    assert (own.exists(), shared.exists()) == (False, False)


def test_one_command_in_two_files_runs_once(command: Command, home: Path) -> None:
    """Claude Code ensures that.  An older command gets a warning, and its remedy works."""
    command("install", "claude-code", "--user")
    assert command("install", "claude-code", "--local").stderr == ""
    path = local(command)
    path.write_text(path.read_text().replace(" -I -S ", " -S "))
    assert "fire twice" in command("install", "claude-code", "--user", "--dry-run").stderr
    done = command("install", "claude-code", "--user")
    assert (done.stderr, path.exists()) == ("", False)


@pytest.mark.parametrize("below", [".", "be low"])
def test_a_file_that_git_would_take_along_is_told(below: str, command: Command) -> None:
    """A personal file must not get into a commit; the remedy works."""
    exclude = ".git/info/exclude" if below == "." else f"{command.project}/.git/info/exclude"
    subprocess.run(["git", "init", "--quiet"], cwd=command.project, check=True)
    command.project /= below
    command.project.mkdir(exist_ok=True)
    warned = command("install", "claude-code").stderr
    remedy = warned.partition("warning: git does not ignore .claude/settings.local.json; to make it ignore the file: ")[
        2
    ]
    assert remedy == f"echo 'settings.local.json*' >> {exclude}\n"
    subprocess.run(remedy, shell=True, cwd=command.project, check=True)
    assert command("install", "claude-code").stderr == ""


# ---- files as they are -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"hooks": 3}', b'{"hooks": {"Stop": {}}}', b'{"a": NaN}', b"\xff\xfe"])
def test_settings_that_are_no_settings_stay_as_they_are(text: bytes, command: Command) -> None:
    """The error names the file."""
    path = local(command)
    path.parent.mkdir()
    path.write_bytes(text)
    done = command("install", "claude-code", code=1)
    assert str(path) in done.stderr
    assert "nothing was changed" in done.stderr
    assert path.read_bytes() == text
    assert list(path.parent.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_told(command: Command) -> None:
    """The error names a file in the place of the directory.  An unreadable settings file elsewhere stops nothing."""
    command.project.joinpath(".claude").write_text("no directory")
    assert ".claude" in command("install", "claude-code", code=1).stderr
    command.project.joinpath(".claude").unlink()
    (command.project / ".claude").mkdir()
    (command.project / ".claude" / "settings.json").write_text("{")
    assert "settings.json: is not JSON" in command("install", "claude-code").stderr
    done = command("uninstall", "claude-code", code=1)
    assert "settings.json: is not JSON" in done.stderr
    assert not local(command).exists()


def test_a_generated_file_that_cannot_be_written_is_told(command: Command, home: Path) -> None:
    """It is written before the settings name it."""
    (home / ".agent").write_text("no directory")
    done = command("install", "claude-code", code=1)
    assert f"cannot write {home}/.agent/bridges/agent-hooks-claude-code.py: Not a directory" in done.stderr
    assert not local(command).exists()


def test_what_was_changed_since_stays_and_so_does_the_backup(command: Command) -> None:
    """The person can choose between the two files."""
    path = local(command)
    path.parent.mkdir()
    path.write_text('{"a": 1}')
    command("install", "claude-code")
    path.write_text(json.dumps({**json.loads(path.read_text()), "b": 2}))
    said = command("uninstall", "claude-code").stdout
    assert "its text from before the installation is in .claude/settings.local.json.before-agent-hooks" in said
    assert f"if you do not need that: rm {path}.before-agent-hooks" in said
    assert json.loads(path.read_text()) == {"a": 1, "b": 2}


@pytest.mark.parametrize("target", ["--local", "--user"])
def test_a_backup_is_named_only_if_more_than_our_own_keys_has_changed(
    target: str, command: Command, home: Path
) -> None:
    """The keys that lead to the mod are agent_hooks' too."""
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(before := '{"model": "opus", "enabledPlugins": {"x@y": true}}\n')
    command("install", "claude-code", target)
    assert "prependPlugins" in path.read_text()
    assert "changed since" not in command("uninstall", "claude-code", target).stdout
    assert path.read_text() == before
    assert not Path(f"{path}.before-agent-hooks").exists()
    command("install", "claude-code", target)
    path.write_text(json.dumps({**json.loads(path.read_text()), "b": 2}))
    said = command("uninstall", "claude-code", target).stdout
    assert said.count("changed since") == 1
    assert f"rm {path}.before-agent-hooks" in said
    assert json.loads(path.read_text()) == {**json.loads(before), "b": 2}


def test_the_mod_stays_for_the_entries_of_another_file(command: Command, home: Path) -> None:
    """It goes with the last installation."""
    for target in ("--user", "--local"):
        command("install", "claude-code", target)
    command("uninstall", "claude-code", "--user")
    assert "prependPlugins" in (home / ".claude/settings.json").read_text()
    command("uninstall", "claude-code", "--local")
    assert not (home / ".claude/settings.json").exists()
    assert not (home / ".agent/mods").exists()


def test_a_symlinked_file_stays_a_symlink(command: Command) -> None:
    """Its target in the project is changed, and the backup is next to the link."""
    real = command.project / "dotfiles.json"
    real.write_text("{}")
    path = local(command)
    path.parent.mkdir()
    path.symlink_to(real)
    command("install", "claude-code")
    assert path.is_symlink()
    assert "PreToolUse" in real.read_text()
    assert path.with_name(path.name + BACKUP).read_text() == "{}"
    command("uninstall", "claude-code")
    assert (path.is_symlink(), real.read_text()) == (True, "{}")


def test_an_edit_does_not_write_over_what_another_program_wrote(tmp_path: Path) -> None:
    """Claude Code writes its settings too."""
    path = tmp_path / "settings.json"
    path.write_text("{}")
    planned = edit(str(path), lambda found: {**found, "ours": 1}, keep=True)
    path.write_text('{"theirs": 1}')
    with pytest.raises(SettingsError, match="changed by another program"):
        planned.make()
    assert path.read_text() == '{"theirs": 1}'
    assert list(tmp_path.iterdir()) == [path]


def test_the_first_backup_stays(tmp_path: Path) -> None:
    """The backup is the file before our first change; after other changes, uninstall leaves both."""
    path = tmp_path / "settings.json"
    path.write_text('{"a": 1}')
    install(path).make()
    path.write_text(edited(path.read_text(), {**parse(path.read_text()), "b": 2}))
    assert not install(path).changes
    [removed] = uninstalling(CLAUDE, place(path))
    removed.make()
    assert parse(path.read_text()) == {"a": 1, "b": 2}
    install(path).make()
    assert path.with_name(path.name + BACKUP).read_text() == '{"a": 1}'


# ---- any settings ----------------------------------------------------------------------------------------------------


def install(path: Path, names: list[str] = EVENTS) -> Edit:
    """Return the edit that installs."""
    return edit(str(path), lambda found: CLAUDE.install(found, RUN, names), keep=True)


def place(path: Path) -> Installation:
    """Return the file as a place where we are installed."""
    found = tuple(CLAUDE.installed(json.loads(path.read_bytes())))
    return Installation(Target("local", str(path)), found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
GROUP = st.fixed_dictionaries(
    {"hooks": st.lists(st.fixed_dictionaries({"type": st.just("command"), "command": st.text()}) | JSON, max_size=3)},
    optional={"matcher": st.text(max_size=3)},
)
HOOKS = st.dictionaries(st.sampled_from([*EVENTS, "Mine"]), st.lists(GROUP | JSON, max_size=3), max_size=4)
SETTINGS = st.tuples(st.dictionaries(st.text(max_size=5), JSON, max_size=3), st.none() | HOOKS, st.booleans()).map(
    lambda drawn: (
        drawn[0]
        if drawn[1] is None
        else {"hooks": drawn[1], **drawn[0]}
        if drawn[2]
        else {**drawn[0], "hooks": drawn[1]}
    )
)
LAYOUT = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 2, 4, "\t"]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([None, (" ,", " : "), (",", ":")]),
    }
)


@given(
    found=SETTINGS,
    layout=LAYOUT,
    around=st.sampled_from(["", "\n", " \r\n"]),
    bom=st.booleans(),
    names=st.sets(st.sampled_from(EVENTS), min_size=1),
)
@examples(60)
def test_install_and_uninstall_give_any_settings_back(
    found: dict[str, Any], layout: dict[str, Any], around: str, bom: bool, names: set[str]
) -> None:
    """The file is the same to the byte; nothing foreign is lost in between, and installing twice changes nothing more."""
    before = (codecs.BOM_UTF8 if bom else b"") + (around + json.dumps(found, **layout) + around).encode()
    with TemporaryDirectory() as directory:
        path = Path(directory, "settings.json")
        path.write_bytes(before)
        install(path, sorted(names)).make()
        text = path.read_bytes().removeprefix(codecs.BOM_UTF8).decode()
        assert path.read_bytes().startswith(codecs.BOM_UTF8) == bom
        assert {entry.event for entry in CLAUDE.installed(json.loads(text))} == names
        without = CLAUDE.uninstall(json.loads(text))
        assert {**without, "hooks": None} == {**found, "hooks": None}
        assert [key for key in json.loads(text) if key in found] == list(found)
        hooks, old = without.get("hooks", {}), found.get("hooks", {})
        assert {event: groups for event, groups in old.items() if groups} == {
            event: groups for event, groups in hooks.items() if groups
        }
        assert not install(path, sorted(names)).changes
        [removed] = uninstalling(CLAUDE, place(path))
        removed.make()
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]


@given(hooks=JSON | HOOKS, entry=st.dictionaries(st.sampled_from(["command", "args", "timeout", "if", "async"]), JSON))
@examples(60)
def test_nothing_in_a_settings_file_breaks_the_search_for_entries(hooks: Any, entry: dict[str, Any]) -> None:
    """The search runs at the start of each session, on any JSON that a person may have written."""
    CLAUDE.installed({"hooks": hooks})
    ours = {"statusMessage": "agent_hooks: x", **entry}
    (found,) = CLAUDE.installed({"hooks": {"Stop": [{"hooks": [entry, ours]}], "Mine": hooks}})[:1]
    assert found.event == "Stop"
    CLAUDE.hindrances("x", {"projects": hooks, "disableAllHooks": hooks}, "/p")


@given(old=st.dictionaries(st.text(max_size=3), JSON), new=st.dictionaries(st.text(max_size=3), JSON), layout=LAYOUT)
def test_an_edited_text_says_what_it_was_edited_to(
    old: dict[str, Any], new: dict[str, Any], layout: dict[str, Any]
) -> None:
    """This holds for any two objects; equal values keep their text."""
    text = json.dumps(old, **layout)
    for changed in (new, {**old, **new}):
        written = edited(text, changed)
        assert json.dumps(parse(written)) == json.dumps(changed)
        assert parse(written.encode().decode()) == changed
    assert edited(text, old) == text


# ---- missing entries -------------------------------------------------------------------------------------------------


def start(command: Command) -> str:
    """Return the message to the person at the start of a session."""
    payload = {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(command.project), "session_id": "1"}
    done = command("bridge", "claude-code", stdin=json.dumps(payload))
    return str(json.loads(done.stdout).get("systemMessage", ""))


def test_a_hook_that_waits_for_an_event_that_is_not_installed_is_named_at_the_start(command: Command) -> None:
    """The message names the hook, and has the command that mends it.  Another session does not repeat it."""
    command("install", "claude-code")
    assert start(command) == ""
    hook = os.path.relpath(command.add_hook("def register(api):\n    api.on('agent_end', lambda event, ctx: None)"))
    lacks = "SubagentStop, which agent_end needs, is not installed: agent-hooks install claude-code --local"
    assert start(command).splitlines() == [f"agent_hooks: .agent/hooks/{os.path.basename(hook)}: {lacks}"]
    assert start(command) == ""
    command("install", "claude-code", "--local")
    assert start(command) == ""


LIMITS = """
    def roll(sides: int) -> int:
        'Roll a die.'
        return sides

    def register(api):
        api.intercept("chat.headers", lambda input, output: None)
        api.register_tool(roll)
"""


def test_what_an_agent_cannot_do_for_a_hook_is_said_once(command: Command) -> None:
    """At the installation, else at the first start with the hook, by the file and the event or the tool."""
    command.add_hook(LIMITS, "first.py")
    event = "listens to chat.headers, and claude-code has no such event"
    tool = "offers the tool roll, and claude-code takes no tools from hooks"
    said = command("install", "claude-code").stderr
    for text in (event, tool):
        assert f"warning: .agent/hooks/first.py {text}; it works in agent-hooks run" in said
    assert "first.py" not in start(command)
    command.add_hook(LIMITS, "second.py")
    said = start(command)
    assert f"agent_hooks: .agent/hooks/second.py {event}" in said
    assert f"agent_hooks: .agent/hooks/second.py {tool}" in said
    assert "first.py" not in said
    assert "second.py" not in start(command)
    command("uninstall", "claude-code")
    assert "first.py" in command("install", "claude-code").stderr


def test_a_dry_run_says_it_and_a_later_start_too(command: Command) -> None:
    """It has installed nothing."""
    command.add_hook(LIMITS)
    assert "offers the tool roll" in command("install", "claude-code", "--dry-run").stderr
    assert "offers the tool roll" in start(command)


def test_a_gate_that_was_taken_out_or_narrowed_is_named_and_mended(command: Command) -> None:
    """Gates are needed even without a hook that listens."""
    command("install", "claude-code")
    path = local(command)
    found = json.loads(path.read_text())
    found["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    del found["hooks"]["UserPromptSubmit"]
    path.write_text(json.dumps(found))
    said = start(command)
    assert "PreToolUse, which redaction needs, is installed with matcher 'Bash' only" in said
    assert "UserPromptSubmit, which undo needs, is not installed: agent-hooks install claude-code --local" in said
    command("install", "claude-code")
    assert start(command) == ""
    path.write_text("{")
    # With settings that cannot be read, the hint is left out.
    assert start(command) == ""


def test_a_missing_event_is_a_value_and_its_text_is_made_where_it_is_shown() -> None:
    """Event, listeners, limits and remedy are fields, and so are the two files that run the hooks twice."""
    gate = ["agent-hooks", "bridge", "claude-code"]
    settings = CLAUDE.install({}, gate, ["PreToolUse", "UserPromptSubmit"])
    settings["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    shared = Installation(Target("project", "/p/settings.json"), tuple(CLAUDE.installed(settings)))
    remedy = "agent-hooks install claude-code --project"
    found = {each.event: each for each in missing(CLAUDE, [shared], {"agent_end"})}
    assert found["PreToolUse"] == MissingEvent("PreToolUse", (), {"matcher": "Bash"}, remedy)
    assert found["Stop"] == MissingEvent("Stop", ("agent_end",), {}, remedy)
    assert str(found["Stop"]) == "Stop, which agent_end needs, is not installed"
    assert "UserPromptSubmit" not in found
    own = Installation(
        Target("user", "/h/settings.json"), tuple(CLAUDE.installed(CLAUDE.install({}, ["/py"], ["UserPromptSubmit"])))
    )
    assert doubled(CLAUDE, [shared, own]) == [
        DoubledEntries("/h/settings.json", "/p/settings.json", "agent-hooks uninstall claude-code --user")
    ]


def test_places_are_found_once(home: Path) -> None:
    """In the home directory, the project's file and the person's are the same."""
    path = home / ".claude" / "settings.json"
    command = Command(home)
    command("install", "claude-code", "--user", "--all-events")
    assert [found.target.path for found in installations(CLAUDE, str(home), {})] == [str(path)]
    command("install", "claude-code", "--user")
    assert sorted(events(path)) == sorted(EVENTS)
    assert list(path.parent.iterdir()) == [path]


def test_a_hook_that_cannot_be_loaded_is_told_at_once(command: Command) -> None:
    """It makes every call a denial."""
    path = command.add_hook("1 / 0")
    assert f"warning: {path}:1: " in command("install", "claude-code").stderr


# ---- by HTTP ---------------------------------------------------------------------------------------------------------


TURNS = "def register(api):\n    api.on('turn_end', lambda event, ctx: None)"


def posted(path: Path) -> dict[str, Address]:
    """Return the events that are posted, and where to."""
    entries = CLAUDE.installed(json.loads(path.read_text()))
    return {entry.event: entry.address for entry in entries if entry.address is not None}


def test_with_http_what_decides_nothing_is_posted_until_something_else_is_asked_for(command: Command) -> None:
    """Other users cannot read the file from then on, the token is never printed, and port and token stay the same."""
    path = local(command)
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o644)
    command.add_hook(TURNS)
    said = command("install", "claude-code", "--http").stdout
    [(event, address)] = posted(path).items()
    assert event == "PostToolBatch"
    assert f"by HTTP, to port {address.port} of this machine: PostToolBatch\n" in said
    assert address.token not in said
    assert path.stat().st_mode & 0o777 == 0o600
    assert set(ALWAYS) <= set(events(path)) - {event}
    for args in ((), ("--http",), ("--dry-run",)):
        assert "is installed already" in command("install", "claude-code", *args).stdout
    assert posted(path) == {event: address}
    assert "by HTTP" not in command("install", "claude-code", "--no-http").stdout
    assert entry(path, event)["command"].endswith(f" {event} || exit 0")
    assert "by HTTP" not in command("install", "claude-code").stdout
    command("install", "claude-code", "--http")
    assert posted(path)[event] not in (None, address)
    command("uninstall", "claude-code")
    assert path.read_text() == "{}"


def test_http_where_nothing_is_posted_so_far_says_so(command: Command) -> None:
    """No address is kept, so `--http` has to be given again."""
    said = command("install", "claude-code", "--http").stdout
    again = "agent-hooks install claude-code --http"
    assert f"by HTTP: no event so far; once hooks listen to one that may be posted, again: {again}\n" in said
    command.add_hook(TURNS)
    command(*again.split()[1:])
    assert list(posted(local(command))) == ["PostToolBatch"]


def test_a_new_file_with_a_token_is_for_nobody_else(command: Command) -> None:
    """It has its rights from the first byte."""
    command.add_hook(TURNS)
    command("install", "claude-code", "--http")
    assert local(command).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("target", ["--project", "--user"])
def test_http_is_for_one_project_and_one_person(target: str, command: Command) -> None:
    """A file that is committed holds no port and no token."""
    command.add_hook(TURNS)
    assert "--http goes with --local" in command("install", "claude-code", target, "--http", code=2).stderr
    # Codex has no settings file of that kind.
    assert "--http goes with --local" in command("install", "codex", "--http", code=2).stderr
    assert not list(command.project.glob(".claude/*"))
    command("install", "claude-code", "--http")
    command("install", "claude-code", target)
    assert not local(command).exists()
    path = CLAUDE.settings_files(os.environ)[target.removeprefix("--")]
    assert posted(command.project / os.path.expanduser(path)) == {}


@pytest.mark.parametrize(
    "line",
    [
        "uninstall claude-code --dry-run",
        "install claude-code --no-http --dry-run",
        "install claude-code --user --dry-run",
        "install claude-code --user --diff",
    ],
)
def test_a_token_is_not_printed_when_it_goes(line: str, command: Command) -> None:
    """It may stay: nothing was changed yet, or the server still listens."""
    command.add_hook(TURNS)
    command("install", "claude-code", "--http")
    [address] = posted(local(command)).values()
    done = command(*line.split())
    assert '"Authorization": "Bearer …"' in done.stdout
    assert address.token not in done.stdout + done.stderr


def test_a_token_goes_into_no_file_that_git_would_take_along_from_elsewhere(command: Command) -> None:
    """Settings may be a link to a file of a repository inside, where the token would be."""
    command.add_hook(TURNS)
    other = command.project / "it's elsewhere"
    other.mkdir()
    file = other / "mine.json"
    file.write_text("{}")
    git = partial(subprocess.run, check=True, shell=True)
    git("git init --quiet; git add .", cwd=other)
    local(command).parent.mkdir()
    local(command).symlink_to(file)
    refused = command("install", "claude-code", "--http", code=1).stderr
    assert "git would commit the port and the token; first run: " in refused
    assert file.read_text() == "{}"
    git(refused.strip().rpartition("first run: ")[2], cwd=command.project)
    command("install", "claude-code", "--http")
    assert list(posted(file)) == ["PostToolBatch"]
    assert subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=other) == b""


@pytest.mark.parametrize("tracked", [False, True])
def test_a_token_goes_into_no_file_that_git_would_take_along(tracked: bool, command: Command) -> None:
    """Neither a file that git would add nor one that it tracks gets a token; the remedy works."""
    git = partial(subprocess.run, cwd=command.project, check=True, shell=True)
    git("git init --quiet")
    if tracked:
        git("mkdir .claude; echo {} > .claude/settings.local.json; git add .")
    refused = command("install", "claude-code", "--http", code=1).stderr
    assert "git would commit the port and the token; first run: " in refused
    assert not tracked or local(command).read_text() == "{}\n"
    git(refused.strip().rpartition("first run: ")[2])
    command("install", "claude-code", "--http")
    assert subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=command.project) == b""
