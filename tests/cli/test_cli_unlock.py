"""`agent-hooks unlock`, and the changes that an agent can make meanwhile."""

from __future__ import annotations

import hashlib
import json
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.trust.ancestors import _MARKS
from agent_hooks.trust.unlocked import state_path
from running import Command, read_all, start_at


@pytest.fixture(autouse=True)
def _no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _MARKS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hook(command: Command) -> Path:
    path = command.project / ".agent" / "hooks" / "gate.py"
    path.parent.mkdir(parents=True)
    path.write_text("def register(api): pass\n")
    return path


def typed(command: Command, *words: str, code: int = 0, shell: list[str] | None = None) -> str:
    """Run a command in a terminal, as a person does, and return the screen."""
    ours, theirs = pty.openpty()
    line = command.line(*words)
    if shell is not None:
        # With a second command, the shell stays, instead of becoming the first.
        line = [*shell, f"{' '.join(line)}; exit $?"]
    process = start_at(theirs, line, command.project)
    seen = read_all(ours)
    assert process.wait(timeout=60) == code, seen
    return " ".join(seen.split())


def test_a_person_lets_the_agent_change_hooks_for_a_while(command: Command, hook: Path) -> None:
    """The edit passes meanwhile, doctor tells of it, and the end shows the diff."""
    edit = f"@write {json.dumps({'path': str(hook), 'content': 'def register(api): ...' + chr(10)})}"
    assert "guard-settings" in command("run", "--no-session", edit).stdout
    assert "until" in typed(command, "unlock", "15m")
    assert "guard-settings" not in command("run", "--no-session", edit).stdout
    assert hook.read_text() == "def register(api): ...\n"
    assert "1 file changed while unlocked: .agent/hooks/gate.py" in " ".join(
        command("doctor", code=None).stdout.split()
    )
    stopped = command("run", "--no-session", f"@bash echo > {state_path()}\n@bash agent-hooks trust").stdout
    assert stopped.count("(builtin:command-safety-guard (write-guard-settings))") == 2
    seen = typed(command, "unlock", "--end")
    assert "-def register(api): pass +def register(api): ..." in seen
    assert "agent-hooks trust" in seen
    assert "guard-settings" in command("run", "--no-session", edit).stdout


def lines_of(home: Path, *kinds: str) -> list[dict[str, Any]]:
    """Return the lines of these kinds in all record files of the person, by time."""
    files = (home / ".agent" / "records").rglob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted((line for line in lines if line["kind"] in kinds), key=lambda line: line["clock"])


def test_edits_while_hooks_are_unlocked_are_recorded(command: Command, hook: Path, home: Path) -> None:
    """In the session that makes them and by the command that ends the time: with digests and a diff without secrets."""
    token = "ghp_" + "a1B2" * 9
    typed(command, "unlock", "15m")
    content = f"def register(api): ...\n# {token}\n" + "# long\n" * 9000
    command("run", f"@write {json.dumps({'path': str(hook), 'content': content})}")
    (edit,) = lines_of(home, "edit")
    assert (edit["path"], edit["what"], edit["unlocked"], edit["mode"]) == (str(hook), "hook", True, "print")
    assert edit["after"] == hashlib.sha256(content.encode()).hexdigest() != edit["before"]
    assert "-def register(api): pass" in edit["diff"]
    assert token not in edit["diff"]
    assert len(edit["diff"]) < 20_000
    typed(command, "unlock", "--end")
    begin, end = lines_of(home, "unlock")
    assert (begin["event"], begin["until"], begin["user"]) == ("begin", end["until"], end["user"])
    assert (end["event"], end["edits"]) == ("end", [{"path": str(hook), "sha256": edit["after"]}])
    assert [each["diff"] for each in lines_of(home, "edit")] == [edit["diff"]] * 2
    assert command("records", "verify").stdout


def test_an_unlock_is_not_recorded_where_the_person_wants_no_records(command: Command, hook: Path, home: Path) -> None:
    """The setting of the person counts, and not that of a project."""
    (hook.parent.parent / "settings.json").write_text('{"records": {"enabled": false}}')
    typed(command, "unlock", "15m")
    assert len(lines_of(home, "unlock")) == 1
    (home / ".agent" / "settings.json").write_text('{"records": {"enabled": false}}')
    typed(command, "unlock", "--end")
    assert len(lines_of(home, "unlock")) == 1


def test_a_change_of_the_persons_own_hooks_is_told_and_recorded_in_the_host(command: Command, home: Path) -> None:
    """They count from the next turn, and the person reads of it."""
    own = home / ".agent" / "hooks" / "own.py"
    own.parent.mkdir(parents=True)
    own.write_text("def register(api): pass\n")
    (command.project / "make.py").write_text(f"open({str(own)!r}, 'a').write('# more')\n")
    done = command("run", "@bash python3 make.py\n---\n@bash true")
    text = " ".join(done.stderr.split())
    assert text.count(f"changed while the session runs: {own}") == 1, text
    (edit,) = lines_of(home, "edit")
    assert (edit["path"], edit.get("unlocked", False)) == (str(own), False)
    assert "+# more" in edit["diff"]


def test_the_next_command_after_the_time_shows_the_changes(command: Command, hook: Path) -> None:
    """The person need not be there at the end."""
    typed(command, "unlock", "1h")
    hook.write_text("def register(api): ...\n")
    state = json.loads(Path(state_path()).read_text())
    Path(state_path()).write_text(json.dumps({**state, "until": state["started"]}))
    assert "the time is over" in " ".join(command("doctor", code=None).stdout.split())
    seen = typed(command, "unlock", "10m")
    assert "locked again: 1 file changed" in seen
    assert "until" in seen


def test_unlock_needs_a_terminal(command: Command, hook: Path) -> None:
    """A program that runs it for the person is refused."""
    assert "terminal" in command("unlock", "15m", code=1).stderr
    assert not Path(state_path()).exists()


@pytest.mark.parametrize("line", ["unlock 15m", "doctor --clear-alarm"])
@pytest.mark.parametrize("closed", ["<&-", "2>&-"])
def test_a_closed_stream_is_no_terminal(command: Command, line: str, closed: str) -> None:
    """A command for a person at a terminal refuses, and does not fail, when a program has closed stdin or stderr."""
    shell = f"{sys.executable} -m agent_hooks {line} {closed}"
    done = subprocess.run(["sh", "-c", shell], cwd=command.project, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "internal error" not in done.stderr
    assert closed == "2>&-" or "is for a person at a terminal" in done.stderr
    assert not Path(state_path()).exists()


def test_unlock_refuses_below_an_agent(command: Command, hook: Path, tmp_path: Path) -> None:
    """A terminal that an agent has opened is not a person's."""
    claude = tmp_path / "claude"
    shutil.copy("/bin/bash", claude)
    seen = typed(command, "unlock", "15m", code=1, shell=[str(claude), "-c"])
    assert "claude (process" in seen
    seen = typed(command, "unlock", "15m", code=1, shell=["/usr/bin/env", "CLAUDECODE=1", "bash", "-c"])
    assert "claude (by $CLAUDECODE) has started this process" in seen
    assert not Path(state_path()).exists()


def test_a_shell_of_our_host_is_below_an_agent(command: Command) -> None:
    """The check finds the host among the ancestors of a command that it runs."""
    command.may_fork = False
    ask = "from agent_hooks.trust.ancestors import agent_ancestor; print(agent_ancestor())"
    (command.project / "ask.sh").write_text(f"{sys.executable} -c '{ask}'; true\n")
    assert "agent-hooks (process" in command("run", "--no-session", "@bash bash ask.sh; true").stdout


@pytest.mark.parametrize("words", [["15"], ["soon"], ["9h"], ["0m"], ["1h x"], []])
def test_wrong_durations_are_refused(command: Command, words: list[str]) -> None:
    """The error names the right form."""
    code = 1 if words in (["9h"], ["0m"]) else 2
    assert "15m" in typed(command, "unlock", *words, code=code)
    assert not Path(state_path()).exists()


def test_ending_what_is_not_unlocked_is_no_error(command: Command) -> None:
    """It also removes a state that cannot be read."""
    Path(state_path()).parent.mkdir(exist_ok=True)
    Path(state_path()).write_text("{")
    assert "all hooks are locked" in " ".join(command("doctor", code=None).stdout.split())
    assert "nothing is unlocked" in typed(command, "unlock", "--end")
    assert not Path(state_path()).exists()
