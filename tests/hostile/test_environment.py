"""The environment of another agent, which a project may set, leads to no file, home or program of the project."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.errors import SettingsError
from agent_hooks.server import fixed
from agent_hooks.server.siteless import ISOLATED, isolating
from agent_hooks.server.stub import write_stub
from agent_hooks.trust.open_sessions import RECENT
from hostile.strangers import CALL, DANGEROUS, Stranger, denied
from other_agent import end_server
from running import write_shared_command
from trust.approving import age

GATE = """
import json, os
from agent_hooks import checkpoints

def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        saved = await checkpoints.create(ctx.cwd, "s", 1)
        return {"block": True, "reason": json.dumps(dict(os.environ))}
"""
USER_SITE = f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


@pytest.fixture
def armed(stranger: Stranger, home: Path) -> Iterator[Stranger]:
    """Return a project with a program for each variable that its settings could set; a gate is in the person's home."""
    (home / ".agent/hooks").mkdir(parents=True)
    (home / ".agent/hooks/gate.py").write_text(GATE)
    for name in ("git", "python", "python3", "uv", "sh", "touch", "agent-hooks"):
        stranger.shell(f"bin-{name}", f"bin/{name}")
    for directory in ("modules", USER_SITE):
        for module in ("sitecustomize", "usercustomize", "msgspec", "agent_hooks", "anyio"):
            stranger.python(f"{directory[:7]}-{module}", f"{directory}/{module}.py")
    stranger.python("startup", "startup.py")
    (stranger.top / "config").write_text(f'[core]\n\tfsmonitor = "{stranger.shell("fsmonitor")}"\n')
    stranger.program(["/usr/bin/git", "init", "-q"])
    yield stranger
    end_server(stranger.top)


def environment(stranger: Stranger) -> dict[str, str]:
    """Return the variables that a project would like to set."""
    top = str(stranger.top)
    names = ("HOME", "AGENT_HOME", "AGENT_HOOKS_CACHE", "TMPDIR", "TEMP", "TMP", "PYTHONUSERBASE", "GIT_EXEC_PATH")
    xdg = [f"XDG_{name}" for name in ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "STATE_HOME", "CONFIG_DIRS")]
    return {
        **dict.fromkeys((*names, *xdg), top),
        "PATH": f"{top}/bin:{stranger.environment['PATH']}",
        "AGENT_HOOKS_GIT": f"{top}/bin/git",
        "PYTHONPATH": f"{top}/modules",
        "PYTHONSTARTUP": f"{top}/startup.py",
        "PYTHONINSPECT": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_PYTHON_CONTEXT": "evil",
        "GIT_CONFIG_GLOBAL": f"{top}/config",
        "GIT_CONFIG_SYSTEM": f"{top}/config",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": f"{top}/programs/fsmonitor",
    }


@pytest.mark.parametrize("server", [True, False], ids=["server", "process"])
def test_the_environment_of_the_client_leads_nowhere(armed: Stranger, home: Path, server: bool) -> None:
    """The person's gate judges, with the home, the directories and the git of the moment of the installation."""
    entry = armed.entry()
    # The directory of an environment has several names of its Python.
    assert (os.path.dirname(entry[0]), *entry[1:3]) == (os.path.dirname(sys.executable), "-I", "-S")
    if not server:
        generated = Path(entry[3])
        generated.write_text(generated.read_text().replace("'start': 10.0", "'start': 0.0"))
    theirs = environment(armed)
    answer = armed.send(entry, env=theirs)
    assert denied(answer), answer
    reason = answer["hookSpecificOutput"]["permissionDecisionReason"]
    found = json.loads(reason[reason.index("{") : reason.rindex("}") + 1])
    assert (found["HOME"], found["AGENT_HOME"]) == (str(home), f"{home}/.agent")
    assert os.path.basename(found["AGENT_HOOKS_GIT"]) == "git"
    assert not found["AGENT_HOOKS_GIT"].startswith(str(armed.top))
    leading = {name for name, value in found.items() if str(armed.top) in value and name in theirs}
    # The programs that hooks start have the PATH of the agent, and the variables of Python and of single git calls.
    assert leading <= {"PATH", "GIT_CONFIG_VALUE_0", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE"}
    assert not any(name.startswith("OTEL_") for name in found)
    assert armed.ran == []


def test_a_shared_entry_takes_the_home_from_the_password_database(armed: Stranger, home: Path, tmp_path: Path) -> None:
    """It holds no path; the generated file that it runs is that of the person's own home."""
    write_shared_command(tmp_path / "bin", home)
    own = {"PATH": f"{tmp_path}/bin:{armed.environment['PATH']}"}
    entry = armed.entry("project")
    assert entry == ["agent-hooks", "bridge", "claude-code", "--resident", "PreToolUse"]
    theirs = {**environment(armed), "PYTHONPATH": "", **own}
    assert denied(armed.send(entry, env=theirs))
    assert (home / ".agent/bridges/agent-hooks-claude-code.py").is_file()
    assert not (armed.top / "bridges").exists()
    assert armed.ran == []


def test_a_shared_entry_keeps_the_variables_of_an_installation(
    armed: Stranger, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A generated file is not written anew with the environment of another agent."""
    monkeypatch.setitem(armed.environment, "XDG_CONFIG_HOME", str(tmp_path / "mine"))
    generated = Path(armed.entry()[3])
    text = generated.read_text()
    assert f"'XDG_CONFIG_HOME': '{tmp_path}/mine'" in text
    write_shared_command(tmp_path / "bin", home)
    monkeypatch.setitem(armed.environment, "PATH", f"{tmp_path}/bin:{armed.environment['PATH']}")
    shared = ["agent-hooks", "bridge", "claude-code", "--resident", "PreToolUse"]
    assert denied(armed.send(shared, env={"XDG_CONFIG_HOME": str(armed.top)}))
    assert generated.read_text() == text
    # `install` by the person writes them anew.
    monkeypatch.setitem(armed.environment, "XDG_CONFIG_HOME", str(tmp_path / "other"))
    age(home, 2 * RECENT)
    armed.entry()
    assert f"'XDG_CONFIG_HOME': '{tmp_path}/other'" in generated.read_text()


def test_a_user_without_an_entry_in_the_password_database_is_denied(stranger: Stranger, tmp_path: Path) -> None:
    """HOME could be the project's, so a shared entry has no home to go to."""
    program = write_shared_command(tmp_path / "bin", tmp_path) / "agent-hooks"
    text = program.with_suffix(".py")
    text.write_text(
        "import pwd\ndef missing(uid):\n    raise KeyError(uid)\npwd.getpwuid = missing\n" + text.read_text()
    )
    text.write_text(
        text.read_text()
        .replace("found = pwd.getpwuid(os.getuid())\n", "")
        .replace("pwd.getpwuid = lambda", "unused = lambda")
    )
    answer = stranger.send([str(program), "bridge", "claude-code", "--resident", "PreToolUse"])
    assert denied(answer)
    assert "is not in the password database" in json.dumps(answer)
    assert "install with --user" in json.dumps(answer)


def test_the_guards_judge_whatever_the_environment_says(stranger: Stranger) -> None:
    """The built-in guards need no hook file."""
    entry = stranger.entry()
    try:
        assert denied(stranger.send(entry, DANGEROUS, env=environment(stranger)))
        assert stranger.send(entry, CALL, env=environment(stranger)) == {}
    finally:
        end_server(stranger.top)


def test_python_is_isolated_where_this_package_is_not_one_of_the_persons_own() -> None:
    """The person's own packages are found by HOME."""
    assert isolating() == ISOLATED


def test_a_generated_file_of_an_older_version_has_no_fixed_variables(home: Path) -> None:
    """They are taken from the process that writes it then."""
    path = write_stub(open_bridge("claude-code"))
    assert fixed.fixed_in(path) == fixed.fixed_here()
    text = Path(path).read_text()
    for broken in ("", text.replace("'HOME'", "'HOUSE'"), text.replace("#|    'fixed': {", "#|    'fixed': {{")):
        Path(path).write_text(broken)
        assert fixed.fixed_in(path) is None
    write_stub(open_bridge("claude-code"))
    assert Path(path).read_text() == text


def test_the_home_of_the_account_is_the_one_of_the_password_database(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment has no part in it, and a user who is not in the database gets an error with the remedy."""
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    found = fixed.fixed_for_account()
    assert found["HOME"] != str(home)
    assert found["AGENT_HOME"] == f"{found['HOME']}/.agent"
    assert found["XDG_CONFIG_HOME"] == ""
    monkeypatch.setattr("os.getuid", lambda: 3_000_000_000)
    with pytest.raises(SettingsError, match=r"not in the password database, .*; install with --user"):
        fixed.fixed_for_account()


def test_doctor_says_the_power_that_a_project_keeps(stranger: Stranger, home: Path, tmp_path: Path) -> None:
    """It names the variables that lead an entry elsewhere, and the power that a shared entry leaves to the project."""
    write_shared_command(tmp_path / "bin", home)
    stranger.environment["PATH"] = f"{tmp_path}/bin:{stranger.environment['PATH']}"
    stranger.entry("project")
    settings = stranger.top / ".claude/settings.json"
    theirs = {"PATH": "./bin", "LD_PRELOAD": "./x.so", "PYTHONPATH": ".", "CLAUDECODE": "", "LANG": "C"}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "env": theirs}))
    try:
        found = json.loads(stranger.run("doctor", "--json").stdout)["findings"]
    finally:
        end_server(stranger.top)
    texts = {each["text"]: each["status"] for each in found}
    (warning,) = [text for text in texts if "`env` sets" in text]
    assert "`env` sets LD_PRELOAD, CLAUDECODE, PATH, PYTHONPATH, by which" in warning
    assert texts[warning] == "warning"
    (shared,) = [text for text in texts if "names no path of this machine" in text]
    assert "`disableAllHooks` switches all hooks off" in shared
    assert texts[shared] == "ok"
