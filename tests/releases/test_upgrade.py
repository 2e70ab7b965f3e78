"""Settings, records, approvals, sessions, checkpoints and installed entries of the last release go on working.

The last release is the newest tag `v…`, or without one the commit in `last.txt`.  Its wheel is built and installed, and
writes its files as a person and an agent would have it do; then the wheel of today takes its place.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.trust.open_sessions import RECENT
from support import ROOT
from trust.approving import age

pytestmark = pytest.mark.slow

# Building a wheel fetches its build backend.
PATIENCE = 300.0
GATE = """\
from agent_hooks import Block, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    @api.on("tool_call", tool="bash")
    async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        return Block("the gate of before") if "forbidden" in event.input["command"] else None
"""
SETTINGS = {
    "hookTimeout": 20000,
    "knownTools": ["Glob"],
    "guards": {
        "rules": [{"id": "no-deploy", "tool": "bash", "pattern": "deploy", "reason": "a rule of before"}],
        "exceptions": [{"id": "git-history", "pattern": "git reset --hard HEAD", "reason": "of before"}],
    },
}
OWN_SETTINGS = {"records": {"days": 30}, "hookTimeout": 25000}


def run(*line: str, cwd: Path = ROOT, code: int | None = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    done = subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False, **options)
    assert code is None or done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


def last_release() -> str:
    """Return the commit of the last release; without it, the clone is too shallow, and the test fails."""
    tags = run("git", "tag", "--list", "v*", "--sort=-version:refname", "--merged", "HEAD").stdout.split()
    commit = tags[0] if tags else (ROOT / "tests" / "releases" / "last.txt").read_text().strip()
    found = run("git", "cat-file", "-e", f"{commit}^{{commit}}", code=None)
    assert found.returncode == 0, f"the last release, {commit}, is not in this clone: git fetch --unshallow --tags"
    return commit


class Installation:
    """A Python of its own, in which one version after the other is installed; the libraries are those of the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run(sys.executable, "-m", "venv", "--without-pip", str(folder / "venv"))
        self.python = folder / "venv" / "bin" / "python"
        [self.packages] = (folder / "venv" / "lib").glob("*/site-packages")
        # The libraries come behind the packages here; the `.pth` file of the editable installation there is not read.
        (self.packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
        self.home, self.project = folder / "home", folder / "project"
        for path in (self.home, self.project):
            path.mkdir()
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ},
            "HOME": str(self.home),
        }

    def install(self, source: Path) -> None:
        """Build the wheel of a source tree, and put it in the place of the version before."""
        wheels = self.folder / f"wheel of {source.name}"
        quiet = ("--quiet", "--disable-pip-version-check", "--no-deps")
        run(sys.executable, "-m", "pip", "wheel", *quiet, "--wheel-dir", str(wheels), str(source))
        [wheel] = wheels.iterdir()
        for path in self.packages.glob("agent_hooks*"):
            shutil.rmtree(path)
        run(sys.executable, "-m", "pip", "install", *quiet, "--target", str(self.packages), str(wheel))

    def __call__(self, *args: str, code: int | None = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the command line of the installed version in the project."""
        line = (str(self.python), "-m", "agent_hooks", *args)
        return run(*line, cwd=self.project, code=code, env=self.environment, input=stdin)

    def entry(self, text: str) -> Any:
        """Run the installed entry of Claude Code on a call of the shell, and return its decision with the reason."""
        settings = json.loads((self.project / ".claude" / "settings.local.json").read_text())
        [[entry]] = [group["hooks"] for group in settings["hooks"]["PreToolUse"]]
        payload = {
            "hook_event_name": "PreToolUse",
            "session_id": "of before",
            "transcript_path": "",
            "cwd": str(self.project),
            "permission_mode": "default",
            "tool_name": "Bash",
            "tool_input": {"command": text, "description": "x"},
            "tool_use_id": text,
        }
        own = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(self.project)}
        line = [entry["command"], *entry["args"]] if "args" in entry else ["sh", "-c", entry["command"]]
        done = run(*line, cwd=self.project, env={**self.environment, **own}, input=json.dumps(payload))
        return json.loads(done.stdout).get("hookSpecificOutput", {})


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Give today's version in a home and a project that the last release has worked in."""
    folder = tmp_path_factory.mktemp("upgrade")
    made = Installation(folder)
    before = folder / "before"
    before.mkdir()
    archive = subprocess.run(["git", "archive", last_release()], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(before)], input=archive, check=True)
    made.install(before)
    _work(made)
    made.install(ROOT)
    yield made
    made("serve", "--stop", "--all", code=None)


def _work(old: Installation) -> None:
    """Let the last release write everything that it keeps."""
    hook = old.project / ".agent" / "hooks" / "gate.py"
    hook.parent.mkdir(parents=True)
    hook.write_text(GATE)
    (old.project / ".agent" / "settings.json").write_text(json.dumps(SETTINGS))
    (old.home / ".agent").mkdir()
    (old.home / ".agent" / "settings.json").write_text(json.dumps(OWN_SETTINGS))
    (old.project / "notes.txt").write_text("three days of work\n")
    run("git", "init", "--quiet", cwd=old.project)
    old("trust", "--yes")
    old("run", "--no-session", "@bash echo forbidden")
    old("run", "@bash rm notes.txt")
    old("install", "claude-code")
    assert old.entry("echo forbidden")["permissionDecision"] == "deny"
    # The server of before ends, as it does with the session of the agent.
    old("serve", "--stop", "--all")


def test_settings_and_the_approval_go_on_counting(upgraded: Installation) -> None:
    """No question is asked again, no key is unknown, and the approved hook and rule judge."""
    listed = upgraded("list", "--json")
    found = json.loads(listed.stdout)
    assert (found["untrusted"], found["errors"]) == ([], [])
    assert "warning" not in listed.stderr
    [project] = json.loads(upgraded("trust", "--list", "--json").stdout)["projects"]
    assert project["state"] == "approved"
    said = upgraded("run", "--no-session", "@bash echo forbidden\n@bash echo deploy").stdout
    assert "the gate of before (.agent/hooks/gate.py)" in said
    assert "a rule of before" in said
    assert upgraded("guard", "exceptions").stdout.count("git-history") == 1


def test_records_sessions_and_checkpoints_are_read(upgraded: Installation) -> None:
    """`why` and `records` tell the calls of before, the chain is whole, a session goes on, and `undo` takes back."""
    blocked = [json.loads(line) for line in upgraded("records", "--json", "--verdict", "block").stdout.splitlines()]
    assert any(each["input"] == {"command": "echo forbidden"} and each["client"] == "agent-hooks" for each in blocked)
    assert any(each["client"] == "claude-code" for each in blocked)
    assert "was blocked" in upgraded("why", blocked[0]["id"]).stdout
    upgraded("records", "verify")
    assert "1. bash echo again" in upgraded("run", "--continue", "@bash echo again").stdout
    assert not (upgraded.project / "notes.txt").exists()
    upgraded("undo", "--yes")
    assert (upgraded.project / "notes.txt").read_text() == "three days of work\n"


def test_an_installed_entry_goes_on_judging_and_is_taken_out(upgraded: Installation) -> None:
    """The file of before judges by today's version, also at its first event, and today's `uninstall` leaves nothing."""
    for text, decision in (("echo forbidden", "deny"), ("echo forbidden", "deny")):
        said = upgraded.entry(text)
        assert said["permissionDecision"] == decision
        assert "the gate of before" in said["permissionDecisionReason"]
    assert upgraded.entry("echo fine").get("permissionDecision") != "deny"
    findings = json.loads(upgraded("doctor", "claude-code", "--json", code=None).stdout)["findings"]
    assert [each for each in findings if each["status"] == "problem" and each["what"] == "claude-code"] == []
    upgraded("install", "claude-code")
    assert upgraded.entry("echo forbidden")["permissionDecision"] == "deny"
    age(upgraded.home, 2 * RECENT)
    upgraded("uninstall", "claude-code")
    assert not (upgraded.project / ".claude").exists()
    assert list((upgraded.home / ".agent" / "bridges").glob("*.py")) == []
