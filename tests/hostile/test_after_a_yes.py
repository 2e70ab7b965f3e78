"""After a yes, the approved bytes run and nothing else: the files may change at any moment."""

from __future__ import annotations

import asyncio
import importlib.machinery
import json
import os
import py_compile
import shutil
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import LoadResult, ToolCall, discover_and_load_hooks, load_settings
from agent_hooks.hooks import loader
from agent_hooks.hooks.finding import find_hooks
from agent_hooks.host.session import Session
from agent_hooks.server.sources import Sources
from agent_hooks.transformers.command_intercept import load_transformers
from agent_hooks.trust.facts import set_facts
from agent_hooks.trust.manifest import read_set
from agent_hooks.trust.policy import Trust
from hostile.strangers import CLIENT, Stranger, denied
from support import runner_of
from trust.approving import agent_file, approve, git, judged_names, state

EXTENSION = importlib.machinery.EXTENSION_SUFFIXES[-1]
LAZY = """
def register(api):
    @api.on("tool_call")
    def gate(event, ctx):
        {line}
        return {{"block": True, "reason": helper.TEXT}}
"""
NEVER = "is no source file of the approved set, and is never imported"


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the entries that hooks add to `sys.path` out of the other tests."""
    monkeypatch.setattr(sys, "path", list(sys.path))


def load(project: Path) -> LoadResult:
    """Load the hooks of a project as a command does."""

    async def loading() -> LoadResult:
        settings = load_settings(cwd=project, trust=Trust())
        return await discover_and_load_hooks(settings.hooks, cwd=project, trust=Trust())

    return asyncio.run(loading())


def reason(loaded: LoadResult) -> str:
    """Return the reason for which the hooks block a call of bash."""
    runner, errors = runner_of(*loaded.fail_closed())

    async def judge() -> Any:
        async with runner:
            return await runner.emit(ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"}))

    outcome = asyncio.run(judge())
    return str(outcome.reason) + "".join(map(str, errors))


@pytest.mark.parametrize(
    "line",
    [
        "import helper",
        "from . import helper",
        "helper = __import__('helper')",
        "import importlib; helper = importlib.import_module('.helper', __package__)",
        (
            "import sys; sys.path.insert(0, __file__.rpartition('/')[0]); import importlib; "
            "helper = importlib.import_module('helper'); sys.path.pop(0); sys.modules.pop('helper')"
        ),
    ],
    ids=["by name", "relatively", "by __import__", "by importlib", "by sys.path"],
)
def test_an_import_inside_a_handler_gets_the_approved_bytes(stranger: Stranger, line: str) -> None:
    """The file was exchanged after the hook was loaded."""
    agent_file(stranger.top, "hooks/gate.py", LAZY.format(line=line))
    helper = agent_file(stranger.top, "hooks/helper.py", "TEXT = 'as approved'\n")
    approve(stranger.top)
    loaded = load(stranger.top)
    helper.write_text(f"{stranger.python('swapped')}TEXT = 'swapped'\n")
    assert "as approved" in reason(loaded)
    assert stranger.ran == []


@pytest.mark.parametrize(
    "line", ["import late", "from . import late", "from .late import x", "import sys; {path}; import late"]
)
def test_a_file_that_came_after_the_yes_is_not_imported(stranger: Stranger, line: str) -> None:
    """A hook that imports an optional module does not get one that the agent has written meanwhile."""
    path = "sys.path.insert(0, __file__.rpartition('/')[0])"
    agent_file(stranger.top, "hooks/gate.py", LAZY.format(line=line.format(path=path)))
    approve(stranger.top)
    loaded = load(stranger.top)
    stranger.python("late", ".agent/hooks/late.py")
    assert NEVER in reason(loaded)
    assert stranger.ran == []


@pytest.mark.parametrize("line", ["import helper", "from . import helper", "import sys; {path}; import helper"])
@pytest.mark.parametrize(
    "name",
    [
        "helper.pyc",
        f"helper{EXTENSION}",
        "helper.zip",
        "helper/inner.py",
        "helper/__init__.pyc",
        f"helper/__init__{EXTENSION}",
    ],
)
def test_only_source_files_of_the_set_are_imported(stranger: Stranger, name: str, line: str) -> None:
    """Extension modules, bytecode, zip files and bare directories would run other code than a person reads."""
    path = "sys.path.insert(0, __file__.rpartition('/')[0])"
    agent_file(stranger.top, "hooks/gate.py", f"{line.format(path=path)}\ndef register(api): ...\n")
    file = agent_file(stranger.top, f"hooks/{name}", b"PK\x03\x04")
    if name.endswith(".pyc"):
        stranger.python("bytecode", "source.py")
        py_compile.compile(str(stranger.top / "source.py"), cfile=str(file), doraise=True)
    elif name.endswith(".py"):
        file.write_text(stranger.python("bare"))
    approve(stranger.top)
    [error] = load(stranger.top).errors
    assert NEVER in str(error)
    assert stranger.ran == []


@pytest.mark.parametrize(
    "head",
    [
        b"# coding: utf-7\n",
        b"\xef\xbb\xbf# coding: utf-7\n",
        b"\x0c# coding: utf-7\n",
        b"# harmless\r# coding: utf-7\n",
        b"#!/usr/bin/python\n# vim: set fileencoding=utf-7 :\n",
        b"\n# coding=rot13\n",
        b"# coding: latin-1\n",
    ],
)
def test_another_encoding_cookie_is_refused(stranger: Stranger, head: bytes) -> None:
    """The code that runs would not be the code that was shown, wherever the cookie hides."""
    hidden = stranger.python("hidden").encode("utf-7").replace(b"\n", b"+AAo-")
    agent_file(stranger.top, "hooks/gate.py", head + b"# +AAo-" + hidden + b"\ndef register(api): ...\n")
    found = read_set(str(stranger.top))
    [facts] = set_facts(found)
    assert "declare the encoding" in facts.of("refused")[0].text
    approve(stranger.top)
    [error] = load(stranger.top).errors
    assert "declares the encoding" in str(error)
    assert stranger.ran == []


def test_a_swap_between_the_check_and_the_import_changes_nothing(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes that were hashed are the bytes that run; a link in the place of a gate drops none."""
    gate = agent_file(stranger.top, "hooks/gate.py", LAZY.format(line="class helper: TEXT = 'as approved'"))
    other = agent_file(stranger.top, "hooks/a_first.py", "def register(api): ...\n")
    approve(stranger.top)
    find = find_hooks

    def swapping(*args: Any) -> Any:
        found = find(*args)
        gate.unlink()
        gate.symlink_to(other)
        other.write_text(stranger.python("swapped"))
        return found

    monkeypatch.setattr(loader, "find_hooks", swapping)
    loaded = load(stranger.top)
    assert [hook.name for hook in loaded.hooks] == ["a_first", "gate"]
    assert "as approved" in reason(loaded)
    assert stranger.ran == []


def test_a_file_that_the_settings_name_is_shown_as_the_hook_that_it_is(stranger: Stranger) -> None:
    """A file with any suffix is loaded."""
    agent_file(stranger.top, "hooks/policy.txt", "import subprocess\ndef register(api): subprocess.run(['true'])\n")
    agent_file(stranger.top, "settings.json", '{"hooks": ["hooks/policy.txt"]}')
    facts = {each.name: each for each in set_facts(read_set(str(stranger.top)))}
    assert facts[".agent/hooks/policy.txt"].role == "hook"
    assert facts[".agent/hooks/policy.txt"].of("programs")


def test_a_directory_with_the_name_of_a_transformer_is_a_clear_mistake(stranger: Stranger) -> None:
    """Its name ends in `.py`, and no file of the set has that name."""
    agent_file(stranger.top, "transformers/x.py/__init__.py")
    text = "version: 1\ntools:\n  bash:\n    transformers:\n      - name: x\n"
    agent_file(stranger.top, "command_intercept.yaml", text)
    approve(stranger.top)
    [error] = load_transformers(cwd=stranger.top, trees=Trust().trees(stranger.top)).errors
    assert "unknown transformer 'x'" in str(error)


# ---- data, gates and archives ----------------------------------------------------------------------------------------

POLICY = """
from pathlib import Path
def register(api):
    @api.on("tool_call")
    def gate(event, ctx):
        names = [each.name for each in Path(__file__).parent.glob("*.txt")]
        text = Path(__file__).with_name("deny.txt").read_text()
        return {"block": True, "reason": text + str(names)} if event.input["command"] in text else None
"""


@pytest.mark.parametrize("server", [True, False], ids=["server", "process"])
def test_data_beside_a_hook_counts_as_it_was_approved(stranger: Stranger, server: bool) -> None:
    """A change or a new file of any suffix waits, also where a server has loaded the hook."""
    agent_file(stranger.top, "hooks/gate.py", POLICY)
    deny = agent_file(stranger.top, "hooks/deny.txt", "true")
    approve(stranger.top)
    entry = stranger.entry()
    if not server:
        generated = Path(entry[3])
        generated.write_text(generated.read_text().replace("'start': 10.0", "'start': 0.0"))
    assert denied(stranger.send(entry))
    deny.write_text("nothing")
    agent_file(stranger.top, "hooks/more.txt", "x")
    answer = stranger.send(entry)
    assert denied(answer)
    assert "true['deny.txt']" in str(answer)


def test_new_files_of_any_suffix_are_noticed_where_all_count(tmp_path: Path) -> None:
    """Dotfiles do not belong to a set."""
    (tmp_path / "hooks").mkdir()
    sources = Sources([], [], [str(tmp_path / "hooks")])
    (tmp_path / "hooks" / ".swap").touch()
    assert not sources.changed()
    (tmp_path / "hooks" / "deny").touch()
    assert sources.changed()


def test_a_removed_gate_still_judges_and_a_new_file_waits(stranger: Stranger) -> None:
    """A mixture of two approved sets is none of them."""
    first = agent_file(stranger.top, "hooks/one.py", LAZY.format(line="class helper: TEXT = 'one'"))
    second = agent_file(stranger.top, "hooks/two.py", "def register(api): ...\n")
    approve(stranger.top)
    text = first.read_text()
    first.write_text("def register(api): ...\n")
    second.write_text(text.replace("'one'", "'two'"))
    approve(stranger.top)
    second.write_text("def register(api): ...\n")
    assert state(stranger.top).state == "changed"
    assert "two" in reason(load(stranger.top))
    shutil.rmtree(stranger.top / ".agent/hooks")
    stranger.python("new", ".agent/hooks/new.py")
    assert "two" in reason(load(stranger.top))
    assert stranger.ran == []


def test_untrust_ends_what_a_server_runs(stranger: Stranger, no_agent_around: None) -> None:
    """The next event is judged without the project's hooks."""
    agent_file(stranger.top, "hooks/gate.py", LAZY.format(line="class helper: TEXT = 'gate'"))
    approve(stranger.top)
    entry = stranger.entry()
    assert denied(stranger.send(entry))
    # As if the last session had ended long ago.
    shutil.rmtree(Path.home() / ".agent" / "trust" / "open")
    assert stranger.run("untrust").returncode == 0
    assert not denied(stranger.send(entry))


def test_an_archive_that_names_an_approved_repository_gets_nothing(stranger: Stranger, tmp_path: Path) -> None:
    """Worktrees of the repository share an approval; a directory that only says so does not."""
    friend = tmp_path / "friend"
    agent_file(friend)
    git("init", "-q", cwd=friend)
    git("add", "-A", cwd=friend)
    git("commit", "-qm", "x", cwd=friend)
    approve(friend)
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=friend)
    assert state(tmp_path / "tree").state == "approved"
    for text in (f"gitdir: {friend}/.git", f"gitdir: {friend}/.git/worktrees/tree"):
        (stranger.top / ".git").write_text(f"{text}\n")
        shutil.rmtree(stranger.top / ".agent", ignore_errors=True)
        shutil.copytree(friend / ".agent", stranger.top / ".agent")
        assert state(stranger.top).state == "new"


def test_a_submodule_needs_a_yes_of_its_own_and_loses_no_outer_gate(stranger: Stranger) -> None:
    """The outer project's gate judges inside of it as well."""
    agent_file(stranger.top, "hooks/gate.py", LAZY.format(line="class helper: TEXT = 'outer'"))
    (stranger.top / ".git").mkdir()
    approve(stranger.top)
    inner = stranger.top / "vendor" / "x"
    stranger.python("inner", "vendor/x/.agent/hooks/inner.py")
    (inner / ".git").write_text("gitdir: ../../.git/modules/x\n")
    assert state(inner, inner).state == "new"
    assert "outer" in reason(load(inner))
    assert stranger.ran == []


def test_a_link_out_of_the_project_is_shown_with_its_target_and_its_bytes_count(
    stranger: Stranger, tmp_path: Path
) -> None:
    """A change of the target waits as well."""
    outside = tmp_path / "outside.py"
    outside.write_text(LAZY.format(line="class helper: TEXT = 'shown'"))
    (stranger.top / ".agent/hooks").mkdir(parents=True)
    (stranger.top / ".agent/hooks/gate.py").symlink_to(outside)
    [facts] = set_facts(read_set(str(stranger.top)))
    assert facts.target == str(outside)
    approve(stranger.top)
    outside.write_text(stranger.python("outside"))
    assert state(stranger.top).state == "changed"
    assert judged_names(state(stranger.top)) == {".agent/hooks/gate.py"}
    assert "shown" in reason(load(stranger.top))
    assert stranger.ran == []


# ---- files elsewhere -------------------------------------------------------------------------------------------------


def linked_directory(stranger: Stranger, outside: Path) -> None:
    """Make the directory of the sessions a link."""
    (stranger.top / ".agent").mkdir()
    (stranger.top / ".agent/sessions").symlink_to(outside)


def linked_ignore_file(stranger: Stranger, outside: Path) -> None:
    """Make the file that keeps sessions out of git a link to a missing file."""
    (stranger.top / ".agent/sessions").mkdir(parents=True)
    (stranger.top / ".agent/sessions/.gitignore").symlink_to(outside / "profile")


@pytest.mark.parametrize("prepare", [linked_directory, linked_ignore_file])
def test_no_session_is_written_through_a_link_of_the_project(
    stranger: Stranger, tmp_path: Path, prepare: Callable[[Stranger, Path], None]
) -> None:
    """The run goes on, and nothing outside of the project appears."""
    outside = tmp_path / "outside"
    outside.mkdir()
    prepare(stranger, outside)
    assert stranger.run("run", "@bash true").returncode == 0
    assert os.listdir(outside) == []


def test_a_session_of_a_project_that_is_named_by_a_link_is_saved(stranger: Stranger, tmp_path: Path) -> None:
    """Only the links inside of the project lead out of it."""
    (tmp_path / "link").symlink_to(stranger.top)
    session = Session.create(str(tmp_path / "link"))
    session.close()
    assert session.path is not None
    assert session.path.exists()


@pytest.mark.parametrize("target", ["local", "project"])
def test_an_installation_does_not_change_the_persons_own_settings_by_a_link_of_the_project(
    stranger: Stranger, home: Path, target: str
) -> None:
    """The entries would hold in all projects, and a removal would take them out of all."""
    (home / ".claude").mkdir()
    for name in ("settings.json", "settings.local.json"):
        (home / ".claude" / name).write_text("{}")
    (stranger.top / ".claude").symlink_to(home / ".claude")
    done = stranger.run("install", CLIENT, f"--{target}")
    assert done.returncode == 1
    assert "nothing was changed" in done.stderr
    assert {each.read_text() for each in (home / ".claude").iterdir()} == {"{}"}


LOOKALIKES = {
    "another command": {"type": "command", "command": "true", "statusMessage": "agent_hooks: your hooks"},
    "a condition": {
        "type": "command",
        "command": "agent-hooks",
        "args": ["bridge", CLIENT, "--resident", "PreToolUse"],
        "if": "Bash(never)",
    },
    "a post": {"type": "http", "url": "http://127.0.0.1:1/agent-hooks/claude-code/PreToolUse"},
}


@pytest.mark.parametrize("entry", LOOKALIKES.values(), ids=[*LOOKALIKES])
def test_entries_that_look_like_ours_do_not_count_as_an_installation(
    stranger: Stranger, home: Path, entry: dict[str, Any]
) -> None:
    """Otherwise the person would believe that gates hold."""
    (stranger.top / ".claude").mkdir()
    settings = json.dumps({"hooks": {"PreToolUse": [{"hooks": [entry]}]}})
    (stranger.top / ".claude" / "settings.json").write_text(settings)
    done = stranger.run("install", CLIENT)
    assert done.returncode == 0
    assert "already has entries" not in done.stdout
    assert str(home / ".agent/bridges") in (stranger.top / ".claude" / "settings.local.json").read_text()
    assert (stranger.top / ".claude" / "settings.json").read_text() == settings


def test_doctor_posts_only_to_the_path_of_our_server(stranger: Stranger) -> None:
    """A stranger's entry must not send requests to other programs of this machine."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/containers/create?x=/agent-hooks/{CLIENT}/"
        entry = {"type": "http", "url": url, "headers": {"Authorization": "Bearer x"}}
        (stranger.top / ".claude").mkdir()
        settings = json.dumps({"hooks": {"PostToolUse": [{"hooks": [entry]}]}})
        (stranger.top / ".claude" / "settings.local.json").write_text(settings)
        stranger.run("doctor", CLIENT)
        with suppress(TimeoutError):
            heard.append(server.accept()[0].recv(100))
    assert heard == []


def test_a_lone_carriage_return_is_said_among_the_facts(stranger: Stranger) -> None:
    """Python ends a line there, and the screen shows a mark; so the numbers of the lines differ."""
    agent_file(stranger.top, "hooks/gate.py", "def register(api): ...\r# more\n")
    [facts] = set_facts(read_set(str(stranger.top)))
    assert any("carriage return" in fact.text for fact in facts.of("unknown"))
