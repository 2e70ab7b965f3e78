"""`agent-hooks doctor NAME` after an installation, where the installation and the doctor differ."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from agent_hooks.installs.places import same_command
from running import Command

pytestmark = pytest.mark.usefixtures("no_agent_around", "on_the_path")


def of_agent(name: str, command: Command) -> list[tuple[str, str]]:
    """Return the status and the text of each finding about an agent."""
    said = json.loads(command("doctor", name, "--json", code=None).stdout)
    return [(each["status"], each["text"]) for each in said["findings"] if each["what"] == name]


def another_name() -> str:
    """Return another name of this Python, in the same directory."""
    here = Path(sys.executable)
    names = (each for each in here.parent.glob("python*") if each != here)
    return str(next(each for each in names if each.resolve() == here.resolve()))


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi"])
def test_another_name_of_the_same_python_is_no_other_command(
    name: str, served: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m agent_hooks` installs, and the script of pip, which names `python3`, examines the installation."""
    served.may_fork = False
    served("install", name, "--user")
    before = of_agent(name, served)
    assert not [text for status, text in before if status == "problem"]
    monkeypatch.setattr(sys, "executable", another_name())
    assert [without_seconds(text) for _, text in of_agent(name, served)] == [
        without_seconds(text) for _, text in before
    ]


def without_seconds(text: str) -> str:
    """Return a text without the time that an answer took."""
    return re.sub(r"in [\d.]+ s", "in time", text)


def test_a_link_elsewhere_to_the_same_python_is_another_command(tmp_path: Path) -> None:
    """Python takes its packages from the directory in which it was started, and a project may have such a link."""
    arguments = ["-I", "-S", "/agent-home/bridges/agent-hooks-codex.py"]
    ours = [sys.executable, *arguments]
    link = tmp_path / "python"
    link.symlink_to(os.path.realpath(sys.executable))
    assert same_command(ours, [another_name(), *arguments])
    assert not same_command(ours, [str(link), *arguments])
    assert not same_command(ours, [another_name(), *arguments, "more"])
    assert not same_command(ours, [another_name()])
    assert not same_command(ours, [])
    assert not same_command(ours, [str(Path(sys.executable).with_name("sh")), *arguments])
    assert not same_command(["agent-hooks"], ["./agent-hooks"])


BLOCK = "def register(api):\n    api.on('tool_call', lambda event, ctx: {'block': True, 'reason': 'so there'})"


@pytest.mark.parametrize("name", ["claude-code", "gemini-cli", "pi"])
def test_the_sample_call_is_recorded_as_one_of_doctor(name: str, served: Command) -> None:
    """No person takes it for a call of the agent: `why` and `records show` without an id pass it over."""
    served.trusted = True
    served.add_hook(BLOCK)
    served("install", name, "--user")
    served("doctor", name, code=None)
    served("serve", "--stop", code=None)
    [row] = [json.loads(line) for line in served("records", "--json").stdout.splitlines()]
    assert (row["client"], row["tool"], row["trial"]) == (name, "bash", True)
    said = " ".join(served("records").stdout.split())
    assert "(trial of doctor) bash" in said
    assert "1 call in 1 session: 1 blocked; 1 of them a trial of doctor" in said
    assert "no recorded call was stopped" in served("why", code=1).stderr
    assert "no call is recorded yet" in served("records", "show", code=1).stderr
    assert "(trial of doctor)" in served("why", row["id"]).stdout
    assert "(trial of doctor)" in served("records", "show", row["id"]).stdout


def test_doctor_says_which_variable_it_has_set_itself(served: Command) -> None:
    """Without this variable an entry is silent, and only the agent shows whether it sets the variable."""
    served("install", "gemini-cli", "codex", "--user")
    own = [text for _, text in of_agent("gemini-cli", served) if "GEMINI_SESSION_ID" in text]
    assert own == [
        "entries are silent unless gemini-cli sets GEMINI_SESSION_ID: version 0.61.0 does, and this trial set it itself"
    ]
    assert not [text for _, text in of_agent("codex", served) if "entries are silent" in text]
