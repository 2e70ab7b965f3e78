"""All corpora of the guards go through each command that prints verdicts or effects: every call has an answer.

The commands run in this process, so that thousands of calls take seconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result

from agent_hooks import HookRunner, SessionEvent
from agent_hooks.cli.main import cli
from agent_hooks.guards import builtin_guards
from agent_hooks.records import Records
from agent_hooks.settings import agent_home
from agent_hooks.testing import call_tool
from guard_corpus import CORPORA, calls_of

# A command gets one of so many calls.  In the group `slow`, `guard check` and `guard test` get every call.  Commands that
# take one call a run, or take each call through all steps, get one of 12 there.
_ONE_OF = 120
_SLOW = range(1, 10)
FIRST = [0, *(pytest.param(each, marks=pytest.mark.slow) for each in _SLOW)]
FORMS = [("", 0), ("--json", 0), *(pytest.param("--json", each, marks=pytest.mark.slow) for each in _SLOW)]
EACH = [_ONE_OF, pytest.param(1, marks=pytest.mark.slow)]
CALLS = [call for corpus in CORPORA for call in calls_of(corpus)]
COMMANDS = [given["command"] for _, given in CALLS if isinstance(given.get("command"), str)]
# Encodes and pickles its effects, as a hook does that sends them to another program.
SENDING = """
    import pickle
    from msgspec import json
    from agent_hooks import Block

    def register(api):
        @api.on("tool_call")
        def send(event, ctx):
            assert pickle.loads(pickle.dumps(event.effects)) == event.effects
            return Block(json.encode(event.effects).decode())
"""


@pytest.fixture(autouse=True)
def _in_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def run(*args: str, stdin: str = "") -> Result:
    """Run a command in this process. A crash is a failure of the test."""
    done = CliRunner().invoke(cli, args, input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), (args, done.exception)
    return done


@pytest.mark.parametrize("one_of", EACH)
def test_guard_check_answers_each_call(one_of: int) -> None:
    """Each line is JSON with a verdict and the effects."""
    calls = CALLS[::one_of]
    done = run("guard", "check", "--json", stdin="\n".join(json.dumps({"tool": t, "input": i}) for t, i in calls))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert (len(answers), done.exit_code) == (len(calls), 0)
    assert {answer["verdict"] for answer in answers} <= {"pass", "ask", "block"}
    assert {answer["rule"] for answer in answers}.isdisjoint({"bad-input", "not-judged"})
    assert all(set(answer["effects"]) >= {"paths", "programs", "unknown"} for answer in answers)


@pytest.mark.parametrize(
    ("form", "one_of"), [("", _ONE_OF), ("--json", _ONE_OF), pytest.param("--json", 1, marks=pytest.mark.slow)]
)
def test_guard_test_judges_each_command(form: str, one_of: int, project: Path) -> None:
    """All corpora are joined into one file, and the total includes every row."""
    commands = COMMANDS[::one_of]
    rows = [f"deny\tall\t{json.dumps(command)}" for command in commands]
    (project / "all.tsv").write_text("\n".join(["expected\tclass\tcommand", *rows]) + "\n")
    done = run("guard", "test", *form.split(), "all.tsv")
    if form:
        told = json.loads(done.stdout)
        assert told["classes"]["all"]["harmful"] == len(commands)
    else:
        assert f"of {len(commands)} harmful" in done.stdout


@pytest.mark.parametrize("first", FIRST)
def test_guard_explain_answers_each_command(first: int) -> None:
    """It prints the effects and the verdict."""
    for command in COMMANDS[first::_ONE_OF]:
        done = run("guard", "explain", "--", command)
        assert done.exit_code == 0
        assert "effects:" in done.stdout
        assert "verdict at level project: " in done.stdout


@pytest.mark.parametrize(("form", "first"), FORMS)
def test_emit_shows_the_effects_that_a_hook_sends(form: str, first: int, project: Path) -> None:
    """The hook sends the effects of each call as JSON."""
    (project / "sending.py").write_text(dedent(SENDING))
    for tool, given in CALLS[first::_ONE_OF]:
        done = run(
            "emit", "tool_call", "--hook", "sending.py", "--tool", tool, "--input", json.dumps(given), *form.split()
        )
        assert done.exit_code == 0, (given, done.output)
        if form:
            told = json.loads(done.stdout)
            assert json.loads(told["outcome"]["reason"])["place"]["root"] == str(project)
        else:
            assert "outcome: " in done.stdout


async def _record(calls: list[tuple[str, dict[str, Any]]], cwd: Path) -> None:
    """Take calls through all steps with the guards, and record them."""
    runner = HookRunner([], cwd=str(cwd), guards=builtin_guards(), records=Records(home=agent_home()), session_id="s1")
    await runner.emit(SessionEvent(reason="start"))
    for number, (tool, given) in enumerate(calls):
        await call_tool(runner, tool, given, tool_call_id=f"c{number}")
    runner.end_records()


@pytest.mark.parametrize("first", FIRST)
def test_recorded_calls_are_shown_by_each_command_about_records(first: int, project: Path) -> None:
    """`records`, `records show`, `why`, `stats` and the saved page, as text and as JSON."""
    calls = CALLS[first::_ONE_OF]
    anyio.run(_record, calls, project)
    rows = [json.loads(line) for line in run("records", "--json").stdout.splitlines()]
    judged = [row for row in rows if row["type"] == "call"]
    assert len(judged) == len(calls)
    assert all(step["stage"] for row in judged for step in row["steps"])
    assert run("records").exit_code == 0
    stopped = [row["id"] for row in judged if row["verdict"] != "pass"]
    assert stopped
    for name in stopped[:: max(len(stopped) // 5, 1)]:
        assert json.loads(run("records", "show", "--json", name).stdout)["id"] == name
        assert run("records", "show", name).exit_code == run("why", name).exit_code == 0
    assert run("why").exit_code == 0
    assert run("stats").exit_code == 0
    assert all(json.loads(line)["hook"] for line in run("stats", "--json").stdout.splitlines())
    done = run("look", "--save", "page.html")
    assert f"command of {len(calls):,} calls" in done.stdout
    assert run("records", "verify").exit_code == 0


@pytest.mark.parametrize(("form", "first"), FORMS)
def test_replay_judges_each_command_of_a_transcript(form: str, first: int, project: Path) -> None:
    """The transcript of another agent has all commands."""
    commands = COMMANDS[first::_ONE_OF]
    with (project / "t.jsonl").open("w") as file:
        for number, command in enumerate(commands):
            block = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": command}}
            line = {"type": "assistant", "sessionId": "s", "cwd": "/w", "message": {"content": [block]}}
            file.write(json.dumps(line) + "\n")
    done = run("replay", *form.split(), "t.jsonl")
    assert done.exit_code == 0, done.output
