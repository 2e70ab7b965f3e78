"""`agent-hooks guard check --json` answers each line, whatever happens to another one.  It runs in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agent_hooks.cli.commands import guard as module
from agent_hooks.cli.main import cli
from agent_hooks.cli.reports.guards import effect_data
from agent_hooks.guards.base import GuardedCall
from agent_hooks.values.answers import Block
from agent_hooks.values.effects import Effects

BAD = "echo bad"


def line(command: str) -> bytes:
    """Return the line for a bash call."""
    return json.dumps({"tool": "bash", "input": {"command": command}}).encode()


@pytest.fixture(autouse=True)
def _in_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def check(*lines: bytes) -> tuple[list[dict[str, Any]], Result]:
    """Return the answers to lines, and the result of the command."""
    done = CliRunner().invoke(cli, ["guard", "check", "--json"], input=b"\n".join(lines))
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return [json.loads(each) for each in done.stdout.splitlines()], done


class FailingGuard:
    """A guard that raises at one command."""

    name = "failing"

    def __init__(self, failure: BaseException) -> None:
        self.failure = failure

    def judge(self, call: GuardedCall) -> Block | None:
        if call.input["command"] == BAD:
            raise self.failure
        return None


FAILURES = [ValueError("broken"), MemoryError("broken"), RecursionError("broken"), SystemExit("broken")]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_a_guard_that_fails_blocks_its_line_only(failure: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason has the cause, and the exit code is 1."""
    monkeypatch.setattr(module, "guards_of", lambda *_: [FailingGuard(failure)])
    answers, done = check(line("ls"), line(BAD), line("ls"))
    assert [each["verdict"] for each in answers] == ["pass", "block", "pass"]
    assert "broken" in answers[1]["reason"]
    assert done.exit_code == 1


@pytest.mark.parametrize("part", ["effects_of", "guarded_call"])
@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_a_part_that_fails_blocks_its_line_only(
    part: str, failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The effects, or the facts for the guards, cannot be found."""
    real = getattr(module, part)

    def failing(tool: str, input: dict[str, Any], *args: Any, **options: Any) -> Any:
        if input["command"] == BAD:
            raise failure
        return real(tool, input, *args, **options)

    monkeypatch.setattr(module, part, failing)
    answers, done = check(line("ls"), line(BAD), line("rm -rf /"))
    assert [each["verdict"] for each in answers] == ["pass", "block", "block"]
    assert answers[1]["rule"] == "not-judged"
    assert "broken" in answers[1]["reason"]
    assert answers[1]["effects"] is None
    assert answers[2]["rule"] == "rm-rf"
    assert done.exit_code == 1


def test_an_answer_that_cannot_be_encoded_blocks_its_line_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its effects hold a value that JSON does not have."""

    def odd(effects: Effects) -> dict[str, Any]:
        return {"paths": object()} if "bad" in effects.programs[0].argv else effect_data(effects)

    monkeypatch.setattr(module, "effect_data", odd)
    answers, done = check(line("ls"), line(BAD), line("ls"))
    assert [each["verdict"] for each in answers] == ["pass", "block", "pass"]
    assert "object is not JSON serializable" in answers[1]["reason"]
    assert done.exit_code == 1


ODD_LINES = [
    b"{",
    b"[1]",
    b"null",
    b"\xff\xfe",
    b'{"tool": "bash"}',
    b'{"tool": 1, "input": {}}',
    b'{"tool": "bash", "input": "ls"}',
    b'{"tool": "bash", "input": {"command": "\xed\xa0\xbd"}}',
    b'{"tool": "bash", "input": {"command": "\\ud83d"}}' + b"x",
    b'{"tool": "bash", "input": ' + b'{"a": ' * 100_000 + b"1" + b"}" * 100_001,
    b'{"tool": "bash", "input": {"n": 1e999}}' + b"\0",
]


@pytest.mark.parametrize("odd", ODD_LINES, ids=lambda odd: repr(odd[:60]))
def test_a_line_that_cannot_be_read_is_blocked_and_the_next_one_is_judged(odd: bytes) -> None:
    """Such a line is a fault of the caller: the exit code stays 0."""
    answers, done = check(line("ls"), odd, line("rm -rf /"), line("ls"))
    assert [each["verdict"] for each in answers] == ["pass", "block", "block", "pass"]
    assert answers[1]["rule"] == "bad-input"
    assert answers[2]["rule"] == "rm-rf"
    assert done.exit_code == 0


ODD_CALLS = [
    {"tool": "", "input": {}},
    {"tool": "bash", "input": {}},
    {"tool": "bash", "input": {"command": None}},
    {"tool": "bash", "input": {"command": ["ls", 1, None, {"a": []}]}},
    {"tool": "bash", "input": {"command": "ls \ud83d"}},
    {"tool": "bash", "input": {"command": "ls \0"}},
    {"tool": "bash\ud83d", "input": {"command": "ls"}},
    {"tool": "read", "input": {"path": "\0"}},
    {"tool": "read", "input": {"path": "~" * 100_000}},
    {"tool": "bash", "input": {"command": "x" * 300_000}},
    {"tool": "odd", "input": {"": {"": [[], {}, 1e308, -0.0]}}},
]


@pytest.mark.parametrize("odd", ODD_CALLS, ids=lambda odd: repr(odd)[:60])
def test_an_odd_call_has_an_answer_and_so_has_the_next_one(odd: dict[str, Any]) -> None:
    """Its values are of any kind."""
    answers, done = check(json.dumps(odd).encode(), line("rm -rf /"))
    assert {"verdict", "rule", "reason", "effects"} == set(answers[0])
    assert answers[1]["rule"] == "rm-rf"
    assert done.exit_code == 0
