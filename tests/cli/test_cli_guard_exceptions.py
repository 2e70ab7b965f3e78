"""`agent-hooks guard exceptions`, and the other commands that show the person's answers for always."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.remembering import FILE
from agent_hooks.remembering.kept import About, project_of
from agent_hooks.remembering.store import Store
from agent_hooks.settings import agent_home
from agent_hooks.storage.digests import sha256
from agent_hooks.trust.ancestors import _MARKS
from running import Command

PUSH = ("git", "push", "--force", "origin", "me/x")


@pytest.fixture(autouse=True)
def _no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _MARKS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def agent(command: Command) -> Path:
    """The agent home, with one answer for always in the project, which is a repository."""
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    about = About(tool="bash", by="builtin:command-safety-guard", rule="git-remote", words=PUSH)
    Store(agent_home()).add(about, project_of(str(command.project)))
    return Path(agent_home())


def answers(command: Command, *words: str, code: int = 0) -> Any:
    return json.loads(command("guard", "exceptions", "--json", *words, code=code).stdout)


def test_the_answers_are_listed_and_revoked(command: Command, agent: Path) -> None:
    """A revoked one has a record and blocks again; the exceptions of settings are listed with their file."""
    settings = agent / "settings.json"
    settings.write_text(json.dumps({"guards": {"exceptions": [{"id": "rm-rf", "pattern": "rm x", "reason": "y"}]}}))
    found = answers(command)
    assert [each["number"] for each in found["answers"]] == [1]
    assert found["answers"][0]["words"] == list(PUSH)
    assert found["settings"][0] | {"file": ""} == {"file": "", "id": "rm-rf", "pattern": "rm x", "reason": "y"}
    shown = command("guard", "exceptions").stdout
    assert "git push --force origin me/x (git-remote)" in shown
    assert "rm-rf: rm x; to end it: remove it from the file" in shown
    ended = command("guard", "exceptions", "--revoke", "1").stdout
    assert ended == "ended: answer 1: git push --force origin me/x (git-remote)\n"
    assert answers(command)["answers"] == []
    assert "git-remote" in command("run", "--no-session", "@bash git push --force origin me/x", code=None).stdout
    assert "there is no answer 1" in command("guard", "exceptions", "--revoke", "1", code=1).stderr
    lines = [line for file in (agent / "records").glob("*.jsonl") for line in file.read_text().splitlines()]
    (revoked,) = [each for each in map(json.loads, lines) if each["kind"] == "remembered"]
    assert (revoked["event"], revoked["number"], revoked["program"]) == ("revoked", 1, " ".join(PUSH))
    assert "revoked answer 1" in command("records").stdout


def test_list_and_doctor_show_the_answers_of_the_project(command: Command, agent: Path, tmp_path: Path) -> None:
    """Those of other projects are in `guard exceptions` only."""
    (tmp_path / "other").mkdir()
    about = About(tool="bash", by="builtin:command-safety-guard", rule="rm-rf", words=("rm", "-rf", "x"))
    Store(str(agent)).add(about, project_of(str(tmp_path / "other")))
    shown = command("list").stdout
    assert "1 remembered answer; to list and end them: agent-hooks guard exceptions" in shown
    assert "git push --force origin me/x" in shown
    assert "rm -rf x" not in shown
    assert [each["number"] for each in json.loads(command("list", "--json").stdout)["answers"]] == [1]
    assert "1 remembered answer" in command("doctor", code=None).stdout
    assert [each["number"] for each in answers(command)["answers"]] == [1, 2]


def test_an_edited_answer_has_a_message_in_each_command(command: Command, agent: Path) -> None:
    """It allows nothing, and the message says how to end it."""
    raw = json.loads((agent / FILE).read_text())
    raw["answers"][0]["words"] = ["git", "push", "--force"]
    (agent / FILE).write_text(json.dumps(raw))
    remedy = "was changed by hand, so it does not count; end it: agent-hooks guard exceptions --revoke 1"
    assert remedy in " ".join(command("guard", "exceptions", code=1).stderr.split())
    assert remedy in command("list").stderr
    assert "changed by hand" in " ".join(command("doctor", code=None).stdout.split())
    ran = command("run", "--no-session", "@bash git push --force", code=None)
    assert "git-remote" in ran.stdout
    assert remedy in ran.stderr
    assert command("guard", "exceptions", "--revoke", "1").stdout == "ended: answer 1\n"
    assert answers(command) == {"answers": [], "problems": [], "settings": []}


def test_an_answer_of_a_project_that_moved_is_named(command: Command, agent: Path) -> None:
    """It stays in the list, with the reason why it does not count."""
    os.rename(command.project / ".git", command.project / "git.old")
    (found,) = answers(command)["answers"]
    assert found["idle"] == "its project was moved or removed"
    assert "its project was moved or removed" in command("guard", "exceptions").stdout


def test_an_answer_from_before_a_project_was_moved_is_named_in_each_command(command: Command, agent: Path) -> None:
    """The commands find it in the new place too, and say how to end it."""
    Store(str(agent)).add(About(tool="bash", by="x", rule="rm-rf", words=("rm",)), project_of(str(command.project)))
    (command.project / "app").mkdir()
    os.rename(command.project / ".git", command.project / "app/.git")
    reason, place = "its project was moved or removed", ("--cwd", str(command.project / "app"))
    ended = f"answer 1 does not count: {reason}; end it: agent-hooks guard exceptions --revoke 1"
    ran = command("run", "--no-session", *place, "@bash git push --force origin me/x", code=None)
    assert "git-remote" in ran.stdout
    assert ended in ran.stderr
    assert "0 remembered answers; 2 more that no longer count" in command("list", *place).stdout
    assert reason in " ".join(command("doctor", *place, code=None).stdout.split())


def test_an_answer_that_has_expired_is_named_when_an_agent_starts(command: Command, agent: Path) -> None:
    """An answer that lies in the future does not count either."""
    about = About(tool="bash", by="builtin:command-safety-guard", rule="rm-rf", words=("rm", "-rf", "x"))
    for today in (date(2020, 1, 1), date.max - timedelta(days=400)):
        Store(str(agent), lambda today=today: today).add(about, project_of(str(command.project)))  # type: ignore[misc]
    ran = command("run", "--no-session", "@bash echo hi").stderr
    assert "answer 2 does not count: it expired on 2020-12-31" in ran
    assert "answer 3 does not count: it was written on " in ran
    assert "answer 1" not in ran


def test_below_an_agent_no_answer_is_ended(command: Command, agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is shown there too."""
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "for a person" in command("guard", "exceptions", "--revoke", "1", code=1).stderr
    assert len(answers(command)["answers"]) == 1


def test_no_secret_of_a_command_is_shown(command: Command, agent: Path) -> None:
    """The file has the exact words, which only the person may read."""
    words = ("curl", "-u", "me:ghp_" + "a1B2" * 9, "https://x.example")
    about = About(tool="bash", by="settings:guards.rules", rule="no-curl", words=words)
    Store(str(agent)).add(about, project_of(str(command.project)))
    for shown in (command("guard", "exceptions"), command("list"), command("guard", "exceptions", "--json")):
        assert "a1B2a1B2" not in shown.stdout
    assert "a1B2a1B2" not in command("guard", "exceptions", "--revoke", "2").stdout


@pytest.mark.parametrize("as_json", [True, False])
def test_an_answer_to_a_hook_that_has_changed_is_named(command: Command, agent: Path, *, as_json: bool) -> None:
    """The list says so as `list` and `doctor` do; what the hook prints while it is loaded does not spoil it."""
    hook = agent / "hooks" / "deploy.py"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("print('loaded')\ndef register(api):\n    pass\n")
    source, path = hook.read_bytes(), os.fsencode(hook)
    same = sha256(b"%d:%b%d:%b" % (len(path), path, len(source), source))
    place = project_of(str(command.project))
    for digest in (same, "0" * 64):
        about = About(tool="bash", by="deploy.py", hook=str(hook), sha256=digest, title="Deploy?", input="0" * 64)
        Store(str(agent)).add(about, place)
    if as_json:
        assert [each["idle"] for each in answers(command)["answers"]] == [None, None, "its hook has changed"]
    else:
        shown = " ".join(command("guard", "exceptions").stdout.split())
        assert shown.count("its hook has changed") == 1
        assert "loaded" not in shown


def test_no_hook_is_loaded_where_no_answer_is_about_one(command: Command, agent: Path) -> None:
    """A list of answers about programs runs no code of hooks."""
    (agent / "hooks").mkdir(exist_ok=True)
    (agent / "hooks" / "marks.py").write_text(f"open({str(agent / 'loaded')!r}, 'w')\ndef register(api):\n    pass\n")
    assert len(answers(command)["answers"]) == 1
    assert not (agent / "loaded").exists()
