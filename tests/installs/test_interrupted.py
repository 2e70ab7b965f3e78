"""`agent-hooks install` and `uninstall` that end between two writes: the next command finishes what was begun."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import BACKUP, Edit, edit
from agent_hooks.installs.plan import finish, make_all
from installs.test_agents import prepare, tree
from running import Command

pytestmark = pytest.mark.usefixtures("no_agent_around", "on_the_path")

# Kill the process before its write of this number.
KILLED = """
import os, signal

def counted(name, done=[]):
    real = getattr(os, name)
    def call(*args, **options):
        if name != "open" or args[1] & (os.O_WRONLY | os.O_RDWR):
            done.append(name)
            if len(done) == {number}:
                os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)
    setattr(os, name, call)

for name in ("open", "replace", "unlink", "mkdir", "rmdir"):
    counted(name)
"""
# More writes than one command makes.
MOST = 60
# The kills that are tried: before the first write, and before each third one after it.
STEP = 3


def with_two_strangers(home: Path) -> Path:
    """Write Codex's settings with two entries of another program at one event, both trusted; return their path."""
    path = prepare("codex", home)
    groups = [{"hooks": [{"type": "command", "command": f"echo {number}"}]} for number in (1, 2)]
    path.write_text(str({"hooks": {"PreToolUse": groups}}).replace("'", '"') + "\n")
    # The keys stand for hashes of the entries.
    keys = "".join(
        f'\n[hooks.state."{os.path.realpath(path)}:pre_tool_use:{number}:0"]\ntrusted_hash = "sha256:{number}"\n'
        for number in (0, 1)
    )
    path.with_name("config.toml").write_text(f'model = "gpt-5"\n{keys}')
    return path


def without_register(files: dict[str, bytes | str | None]) -> dict[str, bytes | str | None]:
    """Leave the register out, which may not know any more that a killed command made its directory."""
    return {path: data for path, data in files.items() if not path.endswith("/bridges/installed.json")}


def prepared(command: Command, ends: str) -> None:
    """Bring the files into the state in which the command has something to do."""
    command("uninstall" if ends == "install" else "install", "codex")


def killed(command: Command, number: int, ends: str) -> bool:
    """Run a command that is killed before one of its writes, and return whether it was."""
    command.first = KILLED.format(number=number)
    try:
        return command(ends, "codex", code=None).returncode != 0
    finally:
        command.first = ""


@pytest.mark.parametrize("ends", ["install", "uninstall"])
def test_a_command_that_is_killed_between_two_writes_is_finished_by_the_next(
    ends: str, command: Command, home: Path
) -> None:
    """After a kill before every third write, `install` and `uninstall` lead to the same files as ever."""
    with_two_strangers(home)
    (home / ".agent").mkdir()
    before = tree(home, command.project)
    command("install", "codex")
    whole = tree(home, command.project)
    for number in range(1, MOST, STEP):
        prepared(command, ends)
        is_whole = not killed(command, number, ends)
        command("install", "codex")
        assert without_register(tree(home, command.project)) == without_register(whole), number
        prepared(command, ends)
        killed(command, number, ends)
        command("uninstall", "codex")
        assert tree(home, command.project) == before, number
        if is_whole:
            break
    assert 5 < number < MOST - STEP


def test_an_edit_that_fails_takes_the_edits_before_it_back(home: Path) -> None:
    """The settings of Codex and its trust change together or not at all; the backup goes too."""
    path = with_two_strangers(home)
    before = tree(home / ".codex")
    first = edit(str(path), lambda found: {**found, "ours": 1}, keep=True)
    second = Edit(str(path.with_name("config.toml")), b"another text", b"", format="toml")
    with pytest.raises(SettingsError, match="was changed by another program just now"):
        make_all(open_bridge("codex"), [first, second])
    assert tree(home / ".codex") == before
    assert tree(home / ".agent" / "bridges") == {}


def test_a_plan_of_which_nothing_was_done_is_dropped(home: Path) -> None:
    """The next command has a plan of its own."""
    path = with_two_strangers(home)
    before = tree(home / ".codex")
    planned = edit(str(path), lambda found: {**found, "ours": 1}, keep=True)
    plan = home / ".agent/bridges/agent-hooks-codex.unfinished"
    plan.parent.mkdir(parents=True)
    plan.write_bytes(msgspec.json.encode([planned]))
    path.with_name(path.name + BACKUP).write_bytes(path.read_bytes())
    assert finish(open_bridge("codex")) == []
    assert tree(home / ".codex") == before
    assert not plan.exists()


def test_a_plan_of_wrong_bytes_is_no_plan(command: Command, home: Path) -> None:
    """A command goes on without it."""
    prepare("pi", home)
    plan = home / ".agent/bridges/agent-hooks-pi.unfinished"
    plan.parent.mkdir(parents=True)
    plan.write_bytes(b"[{")
    command("install", "pi")
    assert not plan.exists()
