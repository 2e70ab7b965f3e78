"""`agent-hooks doctor`, run as a person runs it, with and without problems."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.cli.doctor import base, entries, trial
from agent_hooks.cli.doctor.base import AgentCase, Case, Diagnosis
from agent_hooks.installs.places import installations
from running import Command

pytestmark = pytest.mark.usefixtures("no_agent_around", "on_the_path", "unhurried")
UNHURRIED = "from agent_hooks.cli.doctor import base, trial; trial.SLOW, base.PATIENCE = float('inf'), 600"
CLAUDE = open_bridge("claude-code")
SETTINGS = Path(".claude") / "settings.local.json"


def findings(command: Command, *args: str, code: int | None = 0) -> list[Diagnosis]:
    """Return the diagnoses."""
    said = json.loads(command("doctor", "--json", *args, code=code).stdout)
    return [Diagnosis(**each) for each in said["findings"]]


def wrong(found: Iterable[Diagnosis]) -> list[tuple[str, str]]:
    """Return the text and the remedy of each warning and problem."""
    return [(finding.text, finding.remedy) for finding in found if finding.status != "ok"]


def case(project: Path) -> AgentCase:
    """Return Claude Code in a project, as the doctor sees it."""
    return AgentCase(
        Case(str(project), None),
        CLAUDE,
        False,
        installations(CLAUDE, str(project)),
        CLAUDE.facts(str(project), os.environ),
    )


def changed(path: Path, **fields: Any) -> None:
    """Change fields of each entry in a settings file."""
    found = json.loads(path.read_text())
    for groups in found["hooks"].values():
        groups[0]["hooks"][0].update(fields)
    path.write_text(json.dumps(found))


def shared_entry(project: Path) -> None:
    """Install one event as `--project` does."""
    entry = {"type": "command", "command": "agent-hooks", "args": ["bridge", "claude-code", "--resident", "PreToolUse"]}
    (project / ".claude").mkdir()
    (project / SETTINGS).write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [entry]}]}}))


def program(directory: Path, name: str, text: str) -> None:
    """Put a shell script on the PATH."""
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)
    os.environ["PATH"] = f"{directory}:{os.environ['PATH']}"


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, no event counts as slow."""
    monkeypatch.setattr(Command, "first", UNHURRIED)
    monkeypatch.setattr(trial, "SLOW", float("inf"))
    monkeypatch.setattr(base, "PATIENCE", 600)


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program on the PATH that says it is the version of Claude Code that was tested."""
    monkeypatch.setenv("PATH", os.environ["PATH"])  # put back after the test
    program(tmp_path / "bin", "claude", "echo '2.1.332 (Claude Code)'")


@pytest.mark.usefixtures("claude")
def test_an_installation_that_is_well(served: Command) -> None:
    """It is tried out by its own command; hooks get the call, and the doctor shows their answer."""
    served("install", "claude-code")
    found = findings(served, "claude-code")
    assert wrong(found) == []
    texts = [finding.text for finding in found]
    assert "version 2.1.332, which this was tested with" in texts
    assert any(text.startswith("PreToolUse: answered in") for text in texts)
    served.add_hook(
        "def register(api):\n    api.on('tool_call', lambda event, ctx: {'block': True, 'reason': 'so there'})"
    )
    done = served("doctor")
    assert "by hooks: deny; so there" in done.stdout


@pytest.mark.usefixtures("claude")
def test_the_trial_is_a_call_and_no_turn(served: Command) -> None:
    """Hooks of turns do not run: a checkpoint of the trial would be the next one to be restored."""
    served.add_hook(
        """
        def register(api):
            def write(event, ctx):
                with open("heard", "a") as file:
                    file.write(f"{event.type} {getattr(event, 'reason', '')}\\n")
            for name in ("session", "agent_start", "turn_start", "tool_call", "turn_end", "agent_end"):
                api.on(name, write)
        """
    )
    example = Path(__file__).parent.parent.parent / "examples" / "hooks" / "git_checkpoint.py"
    (served.project / ".agent" / "hooks" / "git_checkpoint.py").write_text(example.read_text())
    subprocess.run(["git", "init", "--quiet"], cwd=served.project, check=True)
    served("install", "claude-code")
    assert wrong(findings(served)) == []
    heard = (served.project / "heard").read_text().splitlines()
    assert [each for each in heard if each != "session shutdown"] == ["session start", "tool_call "]
    assert served("checkpoints", "list").stdout.startswith("no checkpoints")


@pytest.fixture
def posting(claude: None, served: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Install a hook whose event is posted."""
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    served.add_hook("def register(api):\n    api.on('turn_end', lambda event, ctx: open('heard', 'w').close())")
    served("install", "claude-code", "--http")
    return served


def test_what_is_posted_is_tried_and_reaches_no_hook(posting: Command) -> None:
    """The server listens, and knows the token."""
    found = findings(posting)
    assert wrong(found) == []
    [text] = [finding.text for finding in found if "by HTTP" in finding.text]
    assert text.startswith("PostToolBatch: heard by HTTP at port ")
    assert not (posting.project / "heard").exists()


def test_what_is_posted_and_not_heard(posting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy gets the post, git would commit the token, another program has the port, or Claude Code may not post
    there.
    """
    without = "agent-hooks install claude-code --local --no-http"
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    [(text, remedy)] = wrong(findings(posting, code=1))
    assert text == "HTTP_PROXY is set: posted events go there, with the token, and not to the server"
    assert remedy == f"NO_PROXY=127.0.0.1 in the environment of the agent, or {without}"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert wrong(findings(posting)) == []
    settings = json.loads((posting.project / SETTINGS).read_text())
    (posting.project / SETTINGS).write_text(json.dumps({**settings, "allowedHttpHookUrls": []}))
    [(text, remedy)] = wrong(findings(posting, code=1))
    assert "allowedHttpHookUrls leaves out 127.0.0.1" in text
    (posting.project / SETTINGS).write_text(json.dumps(settings))
    subprocess.run(["git", "init", "--quiet"], cwd=posting.project, check=True)
    [(text, remedy)] = wrong(findings(posting, code=1))
    assert text == f"{SETTINGS}: git would commit the port and the token"
    assert remedy.startswith("echo ")
    shutil.rmtree(posting.project / ".git")
    (posting.project / SETTINGS).chmod(0o640)
    [found] = wrong(findings(posting, code=1))
    assert found == (f"{SETTINGS}: others can read the port and the token", f"chmod go= {SETTINGS}")
    (posting.project / SETTINGS).chmod(0o600)
    posting("serve", "--stop")
    [address] = {entry.address for entry in CLAUDE.installed(settings)} - {None}
    assert address is not None
    with socket.create_server(("127.0.0.1", address.port)) as other:
        threading.Thread(
            target=answer_once, args=[other, b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"]
        ).start()
        [(text, remedy)] = wrong(findings(posting, code=1))
        told = f"PostToolBatch: the program at port {address.port} is not this project's server: HTTP status 403"
        assert (text, remedy) == (told, f"to do without HTTP: {without}")
        threading.Thread(target=answer_once, args=[other, b""]).start()
        [(text, remedy)] = wrong(findings(posting, code=1))
        assert text.startswith(f"PostToolBatch: no server answers at port {address.port}: RemoteDisconnected")
        assert remedy == f"agent-hooks serve --log shows the reason; to do without HTTP: {without}"
    assert f"port {address.port}: Address already in use" in posting("serve", "--log").stdout


def test_a_copied_project_posts_to_the_server_of_the_first(posting: Command, tmp_path: Path) -> None:
    """Port and token are the same, so an answer does not prove that the server is the right one."""
    assert wrong(findings(posting)) == []
    copy = Command(tmp_path / "copy")
    shutil.copytree(posting.project, copy.project)
    try:
        [(text, remedy)] = wrong(findings(copy, code=1))
        assert "the server at port " in text
        assert remedy == "a copy of the settings has the port of the first; choose another: " + " && ".join(
            f"agent-hooks install claude-code --local {option}" for option in ("--no-http", "--http")
        )
        for each in remedy.partition(": ")[2].split(" && "):
            copy(*each.split()[1:])
        assert wrong(findings(copy)) == []
    finally:
        copy("serve", "--stop")


def answer_once(server: socket.socket, data: bytes) -> None:
    """Answer one request as a program does that knows nothing of it."""
    client, _ = server.accept()
    with client:
        while b"tool_use_id" not in client.recv(1 << 16):
            pass
        client.sendall(data)


@pytest.mark.usefixtures("claude")
def test_the_remedies_of_doctor_work_from_a_directory_below_the_project(served: Command) -> None:
    """The command in the warning works there, and so does each remedy."""
    served.add_hook("def register(api):\n    api.on('turn_end', lambda event, ctx: open('ran', 'w'))")
    below = Command(served.project / "below" / "it's")
    below.project.mkdir(parents=True)
    assert any(each.text.startswith("1 hook,") for each in findings(below))
    assert wrong(findings(below, "--cwd", "../..", "claude-code", code=1)) == [
        ("not installed", "cd ../.. && agent-hooks install claude-code --local")
    ]
    served("install", "claude-code")
    found = findings(below, "--cwd", "../..", "claude-code")
    assert wrong(found) == []
    assert any(each.text.startswith("PreToolUse: answered in") for each in found)
    assert f"{served.project}: process" in served("serve", "--status").stdout
    below("uninstall", "claude-code")
    (missing,) = [each for each in findings(served, "--cwd", "below/it's") if each.text == "not installed"]
    subprocess.run(missing.remedy, shell=True, cwd=served.project, check=True)
    assert (below.project / SETTINGS).exists()


def test_without_an_installation_hooks_and_settings_are_checked(command: Command, tmp_path: Path) -> None:
    """A missing installation is a problem only if the person names the agent."""
    path = command.add_hook("def register(api):\n    api.on('tool_cal', print)")
    found = findings(command, code=1)
    ((text, remedy),) = wrong(found)
    assert text.startswith(f"{path}:2: ")
    assert "mend or remove it" in remedy
    path.unlink()
    Path("~/.claude").expanduser().mkdir()
    assert ("not installed", "agent-hooks install claude-code --local") in [
        (each.text, each.remedy) for each in findings(command)
    ]
    assert ("not installed", "agent-hooks install claude-code --local") in wrong(
        findings(command, "claude-code", code=1)
    )
    (command.project / ".agent" / "settings.json").write_text('{"guards": {"shel": {}}}')
    assert "shel" in wrong(findings(command, code=1))[0][0]
    (command.project / ".agent" / "settings.json").write_text("{")
    assert "settings.json:1: is not JSON" in wrong(findings(command, code=1))[0][0]


@pytest.mark.usefixtures("claude")
def test_a_gate_that_fails_open_and_a_deadline_that_is_too_short(command: Command) -> None:
    """Both come from an edit by hand."""
    command("install", "claude-code")
    assert list(entries.failures_and_timeouts(case(command.project))) == []
    changed(command.project / SETTINGS, onFailure="continue", timeout=5)
    found = wrong(entries.failures_and_timeouts(case(command.project)))
    mend = "agent-hooks install claude-code --local"
    where = ".claude/settings.local.json"
    assert [(text.partition(where)[2], remedy) for text, remedy in found] == [
        (": PreToolUse: a failure of the command lets the call pass", mend),
        (": PreToolUse has a timeout of 5 s, which ends before ours: 600 s", mend),
        (": PreSkillShellCommand: a failure of the command lets the call pass", mend),
        (": PreSkillShellCommand has a timeout of 5 s, which ends before ours: 600 s", mend),
        (": UserPromptSubmit: a failure of the command lets the call pass", mend),
        (": UserPromptSubmit has a timeout of 5 s, which ends before ours: 600 s", mend),
        (": SessionEnd has a timeout of 5 s, which ends before ours: 10 s", mend),
    ]
    command("install", "claude-code")
    assert list(entries.failures_and_timeouts(case(command.project))) == []


def test_what_an_entry_runs_is_gone_or_old(served: Command, home: Path) -> None:
    """The person learns it before the agent denies every call, and the trial shows it too."""
    served("install", "claude-code")
    stub = home / ".agent" / "bridges" / "agent-hooks-claude-code.py"
    stub.write_text(stub.read_text() + "#")
    ((text, _),) = wrong(entries.commands(case(served.project)))
    assert text == f"{stub} is of another version, or of another Python"
    stub.unlink()
    found = wrong(findings(served, "claude-code", code=1))
    assert (f"{stub} is not there", "agent-hooks install claude-code --local") in found
    assert any("PreToolUse: no answer: exit code 2" in text for text, _ in found)
    changed(served.project / SETTINGS, command="/nowhere/python")
    found = wrong(entries.commands(case(served.project)))
    assert "/nowhere/python is not there" in found[0][0]
    assert "was not tried" in wrong(trial.call(case(served.project)))[0][0]
    served("install", "claude-code")
    assert wrong(entries.commands(case(served.project))) == []


def test_another_program_of_our_name_on_the_path(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared entry runs the first program of that name."""
    monkeypatch.setenv("PATH", os.environ["PATH"])  # put back after the test
    Command(project)("install", "claude-code", "--project")
    assert wrong(entries.commands(case(project))) == []
    program(tmp_path / "bin", "agent-hooks", "echo agent-hooks, version 0.0.1")
    ((text, _),) = wrong(entries.commands(case(project)))
    assert text == f"{tmp_path}/bin/agent-hooks on the PATH is another version: 'agent-hooks, version 0.0.1'"
    program(tmp_path / "bin", "agent-hooks", "exec sleep 1000")
    monkeypatch.setattr(base, "PATIENCE", 0.1)
    ((text, _),) = wrong(entries.commands(case(project)))
    assert text == f"{tmp_path}/bin/agent-hooks on the PATH did not end within 0.1 s"
    monkeypatch.setenv("PATH", "/nowhere")
    assert "agent-hooks is not on the PATH" in wrong(entries.commands(case(project)))[0][0]


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo '{}'; exit 1", "PreToolUse: no answer: exit code 1, printed '{}"),
        ("echo oops; echo '{}'", "PreToolUse: no answer: exit code 0, printed 'oops"),
        ("echo '[]'", "PreToolUse: no answer: exit code 0, printed '[]"),
        (
            """echo '{"reason": "agent-hooks could not judge this: x"}'""",
            "PreToolUse: agent-hooks could not judge this: x",
        ),
    ],
)
def test_an_answer_that_would_let_calls_pass(
    script: str, text: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal after a failure of this package is a problem too."""
    monkeypatch.setenv("PATH", os.environ["PATH"])  # put back after the test
    program(tmp_path / "bin", "agent-hooks", script)
    shared_entry(project)
    ((said, _),) = wrong(trial.call(case(project)))
    assert said.startswith(text)


def test_what_answers_late_or_never(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow answer is a warning; a command that does not end is a problem."""
    monkeypatch.setenv("PATH", os.environ["PATH"])  # put back after the test
    program(tmp_path / "bin", "agent-hooks", "echo '{}'")
    shared_entry(project)
    monkeypatch.setattr(trial, "SLOW", 0.0)
    (found,) = trial.call(case(project))
    assert (found.status, found.remedy) == ("warning", "agent-hooks serve --log")
    program(tmp_path / "bin", "agent-hooks", "exec sleep 1000")
    monkeypatch.setattr(base, "PATIENCE", 0.1)
    ((text, _),) = wrong(trial.call(case(project)))
    assert text == "PreToolUse: did not end within 0.1 s"


def test_settings_that_cannot_be_read(project: Path) -> None:
    """The doctor cannot tell whether entries are in them."""
    (project / ".claude").mkdir()
    (project / SETTINGS).write_text("{")
    found = wrong(entries.settings_files(case(project)))
    assert f"{project / SETTINGS}: is not JSON" in found[0][0]
    assert list(entries.hindrances(case(project))) == []


@pytest.mark.usefixtures("claude")
def test_what_hooks_wait_for_in_vain(served: Command) -> None:
    """Hooks may wait for an event that is not installed or that the agent lacks, or name a tool in the agent's words."""
    served("install", "claude-code")
    served.add_hook(
        """
        def register(api):
            api.on("turn_end", lambda event, ctx: None)
            api.on("tool_call", lambda event, ctx: None, tool="Bash")
            api.intercept("chat.headers", lambda input, output: None)
        """
    )
    found = wrong(findings(served, code=1))
    mend = "agent-hooks install claude-code --local"
    assert ("PostToolBatch, which turn_end needs, is not installed", mend) in found
    listens = ".agent/hooks/hook.py listens to chat.headers, and claude-code has no such event"
    assert (listens, "it works in agent-hooks run") in found
    assert any("never runs: the tool 'Bash' is 'bash' here" in text for text, _ in found)


@pytest.mark.usefixtures("claude")
def test_each_fact_is_told_once(served: Command) -> None:
    """The answers of hooks repeat earlier diagnoses, which the trial leaves out."""
    served("install", "claude-code")
    served.add_hook("1 / 0", "broken.py")
    served.add_hook(
        """
        def register(api):
            api.on("turn_end", lambda event, ctx: None)
            api.on("tool_call", lambda event, ctx: None, tool="Bash")
            api.on("tool_call", lambda event, ctx: ctx.ui.notify("news"))
        """
    )
    said = served("doctor", "--json", code=1).stdout
    assert [said.count(each) for each in ("ZeroDivisionError", "turn_end needs", "is 'bash' here")] == [1, 1, 1]
    assert re.search(r"by hooks: ([^;]*: )?news; deny; see above", said)
    served.add_hook("", "broken.py").unlink()
    (served.project / ".agent" / "settings.json").write_text("{")
    done = served("doctor", code=1).stdout
    assert done.count("is not JSON") == 1
    assert "PROBLEM  claude-code  PreToolUse: deny; see above\n" in re.sub(" +\n", "\n", done)


@pytest.mark.usefixtures("claude")
def test_what_fires_twice_and_what_switches_hooks_off(command: Command, home: Path) -> None:
    """Two settings files run our hooks by different commands."""
    command("install", "claude-code", "--project")
    command("install", "claude-code", "--user")
    found = wrong(entries.doubled_entries(case(command.project)))
    assert [remedy for _, remedy in found] == ["agent-hooks uninstall claude-code --user"]
    state = home / ".claude.json"
    assert wrong(entries.hindrances(case(command.project))) == []
    state.write_text('{"projects": {"/": {"hasTrustDialogAccepted": false}}}')
    ((text, remedy),) = wrong(entries.hindrances(case(command.project)))
    assert "you were not asked yet whether you trust this directory; until you say yes" in text
    assert remedy == "start `claude` here once, and say yes"
    state.write_text(json.dumps({"projects": {str(command.project.parent): {"hasTrustDialogAccepted": True}}}))
    (command.project / SETTINGS).write_text('{"disableAllHooks": true, "allowManagedHooksOnly": true}')
    ((text, _),) = wrong(entries.hindrances(case(command.project)))
    assert "disableAllHooks is on: Claude Code runs no hook" in text
    managed = CLAUDE.hindrances("/etc/claude-code/managed-settings.json", {"allowManagedHooksOnly": True}, "/p")
    assert [each.text.partition(" ")[0] for each in managed] == ["allowManagedHooksOnly"]


@pytest.mark.usefixtures("claude")
def test_nothing_is_run_but_what_install_writes(command: Command) -> None:
    """A project that somebody else wrote may have entries that pass for ours."""
    entry = {"type": "command", "command": "sh", "args": ["-c", "touch ran", "bridge", "claude-code"]}
    (command.project / ".claude").mkdir()
    (command.project / SETTINGS).write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [entry]}]}}))
    found = wrong(trial.call(case(command.project)))
    assert found[0][0].startswith("PreToolUse: was not tried, because the entry runs another command: 'sh -c touch ran")
    assert not (command.project / "ran").exists()


def test_a_foreign_package_of_our_name(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run in the place of this one; it is named with its version and place."""
    assert wrong(trial.distributions(case(project))) == []
    foreign = tmp_path / "site"
    (foreign / "agent_hooks").mkdir(parents=True)
    (foreign / "agent_hooks" / "__init__.py").write_text("")
    (foreign / "agent_hooks-9.9.dist-info").mkdir()
    (foreign / "agent_hooks-9.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: agent_hooks\nVersion: 9.9\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(foreign))
    found = wrong(trial.distributions(case(project)))
    assert found[0][0].startswith(f"{sys.executable} has agent_hooks from {foreign}/agent_hooks/__init__.py, not from ")
    assert found[1] == (
        f"agent-hooks 9.9 in {foreign} is another package, and contains an agent_hooks as well",
        f"{sys.executable} -m pip uninstall agent-hooks",
    )


def test_the_version_of_the_agent(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version is no problem; a missing program is a warning if the person names the agent."""
    monkeypatch.setenv("PATH", "/nowhere")
    examined = case(project)
    assert list(entries.agent_version(examined)) == []
    assert wrong(entries.agent_version(examined._replace(asked=True))) == [
        (
            "there is no `claude` on the PATH, so its version is unknown; entries in its settings count all the same",
            "put it there, unless you start it in another way",
        )
    ]
    program(tmp_path / "bin", "claude", "echo 3.0")
    (found,) = entries.agent_version(examined)
    assert (found.status, found.text) == ("ok", "version 3.0; tested with 2.1.332")
    program(tmp_path / "bin", "claude", "echo no >&2; exit 1")
    assert "prints no version" in wrong(entries.agent_version(examined))[0][0]


def test_a_directory_of_servers_that_is_somebody_elses(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then hooks keep no state, and only the doctor shows it."""
    shared_entry(project)
    monkeypatch.setattr("agent_hooks.server.client.directory", lambda: str(tmp_path / "servers"))
    assert list(trial.server_directory(case(project))) == []
    (tmp_path / "servers").chmod(0o755)
    (found,) = trial.server_directory(case(project))
    assert (found.status, "not yours alone" in found.text) == ("warning", True)


def test_mods_and_sessions_without_hooks_are_listed(command: Command, tmp_path: Path) -> None:
    """A mod may overrule hooks, and a session with `--bare` runs none."""
    command("install", "claude-code")
    settings = Path(os.environ["HOME"], ".claude", "settings.json")
    found = json.loads(settings.read_text())
    found["enabledPlugins"]["sly@far"] = True
    settings.write_text(json.dumps(found))
    program = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(["claude", *program[1:], "--bare"], executable=program[0], stdin=subprocess.PIPE) as bare:
        told = {each.text: each for each in findings(command, "claude-code")}
        bare.communicate()
    assert told["mod sly@far (user): its files were not found"].status == "ok"
    session = told[f"process {bare.pid} was started with --bare, so it runs no hook"]
    assert (session.status, session.remedy) == ("warning", "end it, and start claude without --bare")


USER = Path(".claude") / "settings.json"
FIRST = "the mod of agent_hooks does not come first"
PLUGIN = "agent-hooks@agent-hooks-source"


def told(command: Command, words: str) -> list[tuple[str, str]]:
    """Return the text and the remedy of each warning and problem with these words."""
    return [each for each in wrong(findings(command, code=None)) if words in each[0]]


def test_what_our_mod_lacks_is_named_with_the_command_that_mends_it(command: Command, home: Path) -> None:
    """The place in the user's settings, and the files."""
    command("install", "claude-code")
    assert told(command, "mod") == []
    settings, again = home / USER, "agent-hooks install claude-code --local"
    seated = json.loads(settings.read_text())
    settings.write_text(json.dumps({**seated, "prependPlugins": []}))
    [(text, remedy)] = told(command, FIRST)
    assert text.endswith("your hooks: prependPlugins")
    assert remedy == again
    settings.write_text(json.dumps({**seated, "enabledPlugins": "odd"}))
    assert [remedy for _, remedy in told(command, "enabledPlugins must be an object")] == ["mend the file"]
    settings.write_text(json.dumps(seated))
    (home / ".agent/mods/key").unlink()
    [(text, remedy)] = told(command, "cannot work as installed")
    assert "mods/key" in text
    assert remedy == again
    command("install", "claude-code")
    assert told(command, "mod") == []


def test_the_plugin_of_the_repository_is_a_problem_until_hooks_are_installed(command: Command, home: Path) -> None:
    """Its user may believe that it guards."""
    (home / ".claude").mkdir()
    (home / USER).write_text(json.dumps({"enabledPlugins": {PLUGIN: True}}))
    [(text, remedy)] = told(command, PLUGIN)
    assert "judges no call without an installation" in text
    assert remedy == "agent-hooks install claude-code --local"
    command("install", "claude-code")
    assert told(command, PLUGIN) == []
    [done] = [each for each in findings(command, code=None) if f"the plugin {PLUGIN} has done its work" in each.text]
    assert done.remedy == f"to remove it: claude plugin uninstall {PLUGIN}"
