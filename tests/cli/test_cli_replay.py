"""`agent-hooks replay`, run as a person runs it to try a policy out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from running import TRIO, Command

RECORDED = Path(__file__).parent.parent / "transcripts"
FIRST = RECORDED / "-home-dev-app" / "11111111-0000-4000-8000-000000000001.jsonl"
EXAMPLES = Path(__file__).parents[2] / "examples"
PERMISSION = EXAMPLES / "hooks" / "permission_gate.py"
LOG = EXAMPLES / "transformers" / "short_git_log.py"
SESSION = {"type": "assistant", "sessionId": "s", "cwd": "/w"}

GATE = """
    from agent_hooks import Ask, Block, Rewrite

    def register(api):
        @api.on("before_tool_call", tool="bash")
        async def quieter(event, ctx):
            return Rewrite({"command": "ls"}) if event.params.get("command") == "ls -la" else None

        @api.on("tool_call")
        async def gate(event, ctx):
            print("a hook prints")
            if event.tool_name == "write" and not await ctx.ui.confirm("Write?", event.input["path"]):
                return Block("no")
            return Block("no curl") if "curl" in event.input.get("command", "") else None
"""


def line(command: str, id: str = "1", **fields: Any) -> str:
    """Return a line of a transcript with a call of Bash."""
    block = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
    return json.dumps({**SESSION, "message": {"content": [block]}, **fields}) + "\n"


def answers(stdout: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the records of `--json`, and the last: the summary."""
    *rows, summary = [json.loads(each) for each in stdout.splitlines()]
    assert {row["type"] for row in rows} <= {"answer"}
    assert summary.pop("type") == "summary"
    return rows, summary


def test_a_person_sees_who_would_have_done_what(command: Command) -> None:
    """A row for each different call, the worst first; a row for each hook and guard; the sums."""
    hook = command.add_hook(GATE)
    done = command("replay", str(RECORDED))
    rows = [row.split() for row in done.stdout.splitlines()]
    assert [row[0] for row in rows[1:] if row and row[0] in ("block", "ask", "rewrite")] == [
        *("block", "block", "block", "ask", "rewrite")
    ]
    shown = " ".join(done.stdout.split())
    assert "block 1 denied bash curl http://127.0.0.1:1/x no curl (.agent/hooks/hook.py)" in shown
    assert 'ask 1 ran write /home/dev/app/notes.txt {"content":"one\\ntwo\\n"} Write? (.agent/hooks/hook.py)' in shown
    assert "rewrite 1 ran bash ls -la rewritten by .agent/hooks/hook.py" in shown
    assert "→ bash ls" in done.stdout
    assert ".agent/hooks/hook.py 1 1 1" in shown
    assert "19 calls in 4 files: 3 blocked, 1 asked, 1 rewritten, 12 passed" in done.stdout
    assert "of the blocked, 1 had not been stopped when they were recorded" in done.stdout
    assert "2 calls had an input that no tool takes" in done.stdout
    assert "3 more were copies" in done.stdout
    assert "a hook prints" in done.stderr
    assert str(hook) not in done.stdout


def test_a_program_gets_a_line_for_each_answer_and_a_summary(command: Command) -> None:
    """The line has every known field of the call."""
    command.add_hook(GATE)
    rows, summary = answers(command("replay", "--json", str(RECORDED)).stdout)
    assert [(row["verdict"], row["then"]) for row in rows] == [
        *(("rewrite", "ran"), ("ask", "ran"), ("block", "failed"), ("block", "denied"), ("block", "denied"))
    ]
    hook = ".agent/hooks/hook.py"
    assert rows[0] == {
        "type": "answer",
        "verdict": "rewrite",
        "by": hook,
        "why": f"rewritten by {hook}",
        "tool": "bash",
        "input": {"command": "ls -la"},
        "rewritten": {"command": "ls"},
        "rewrittenBy": [hook],
        "then": "ran",
        "file": str(FIRST),
        "line": 6,
        "time": "2026-11-22T01:49:46.679Z",
        "sessionId": FIRST.stem,
        "agentId": "main",
        "toolCallId": "toolu_b1a3369b9bbb4031bcf5eaaa",
        "cwd": "/home/dev/app",
    }
    assert rows[-1]["agentId"] == "a9a91937ccdfc1918"
    assert summary["by"][hook] == {"block": 1, "ask": 1, "rewrite": 1}
    sums = (
        "files",
        "calls",
        "blocked",
        "asked",
        "rewritten",
        "passed",
        "invalid",
        "repeated",
        "unread",
        "skipped",
        "ran",
    )
    assert [summary[name] for name in sums] == [4, 19, 3, 1, 1, 12, 2, 3, 0, 0, 1]


@pytest.mark.parametrize(
    ("recorded", "codes"),
    [
        ("rm -rf /", {"block": 1, "ask": 1, "rewrite": 1}),
        ("sudo ls", {"block": 0, "ask": 1, "rewrite": 1}),
        ("git log", {"block": 0, "ask": 0, "rewrite": 1}),
        ("ls", {"block": 0, "ask": 0, "rewrite": 0}),
    ],
)
def test_it_fails_on_a_verdict_or_a_worse_one(recorded: str, codes: dict[str, int], command: Command) -> None:
    """A check of each change of the policy needs this; `command_intercept.yaml` may name tools as either agent does."""
    (command.project / "t.jsonl").write_text(line(recorded))
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "command_intercept.yaml").write_text(
        "version: 1\ntools:\n  Bash:\n    transformers:\n      - name: short_git_log\n"
    )
    (command.project / ".agent" / "transformers").mkdir()
    (command.project / ".agent" / "transformers" / LOG.name).write_text(LOG.read_text())
    for fail_on, code in codes.items():
        command("replay", "t.jsonl", "--hook", str(PERMISSION), "--fail-on", fail_on, code=code)
    command("replay", "t.jsonl", "--hook", str(PERMISSION))


def test_nothing_is_run_and_no_file_is_touched(command: Command) -> None:
    """This holds for calls that pass and for stopped ones; observers of results get nothing."""
    command.add_hook(
        """
        def register(api):
            @api.on("after_tool_call")
            async def seen(event, ctx):
                print("OBSERVED")

            @api.on("session")
            async def started(event, ctx):
                print("STARTED")
        """
    )
    (command.project / "keep").write_text("me")
    marks = [f"touch {command.project}/made", f"rm {command.project}/keep", f"rm -rf {command.project}"]
    (command.project / "t.jsonl").write_text(
        "".join(line(text, str(number), cwd=str(command.project)) for number, text in enumerate(marks))
    )
    before = {path: path.stat().st_mtime_ns for path in command.project.rglob("*")}
    done = command("replay", "t.jsonl")
    assert "3 calls in 1 file: 1 blocked" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in command.project.rglob("*")} == before
    assert "OBSERVED" not in done.stderr
    assert "STARTED" not in done.stderr


def test_a_session_of_ours_is_replayed(command: Command) -> None:
    """The column `then` shows earlier blocks; a call that broke its tool's schema is not judged."""
    (command.project / "src").mkdir()
    command("run", '@bash rm -rf src\n@bash sudo ls\n@bash {"comand": "ls"}')
    rows, summary = answers(command("replay", "--json", ".agent/sessions", "--hook", str(PERMISSION)).stdout)
    assert [(row["verdict"], row["input"]["command"]) for row in rows] == [("block", "rm -rf src"), ("ask", "sudo ls")]
    assert rows[0]["then"] == "denied"
    assert rows[0]["cwd"] == str(command.project)
    assert (summary["calls"], summary["invalid"]) == (3, 1)


def test_a_hook_that_cannot_be_loaded_is_an_error_and_no_verdict(command: Command) -> None:
    """Otherwise every call would seem to be blocked."""
    command.add_hook("def register(api:\n")
    done = command("replay", "--json", str(FIRST), code=1)
    assert done.stdout == ""
    assert "not loaded: " in done.stderr
    assert "hook.py:" in done.stderr
    assert "nothing was replayed" in done.stderr


def test_broken_settings_are_an_error(command: Command) -> None:
    """The settings of guards and transformers count too."""
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "settings.json").write_text('{"guards": {"level": "lax"}}')
    assert "level" in command("replay", str(FIRST), code=1).stderr
    (command.project / ".agent" / "settings.json").write_text("{}")
    (command.project / ".agent" / "command_intercept.yaml").write_text("version: 1\ntools: 7\n")
    assert "command_intercept.yaml" in command("replay", str(FIRST), code=1).stderr


def test_broken_lines_are_said_and_the_rest_goes_on(command: Command) -> None:
    """The first twenty are printed with file and line."""
    broken = '{"type": "assist\n'
    (command.project / "t.jsonl").write_text(line("ls") + broken * 25 + line("rm -rf /", "2"))
    done = command("replay", "t.jsonl")
    assert "t.jsonl:2: cannot be read: " in done.stderr
    assert "t.jsonl:21: " in done.stderr
    assert "t.jsonl:22: " not in done.stderr
    assert "5 more lines not read" in done.stderr
    assert "2 calls in 1 file: 1 blocked" in done.stdout
    assert "not read: 25 lines, 0 files" in done.stdout


def test_what_is_no_transcript_is_refused_by_name_and_skipped_in_a_directory(command: Command) -> None:
    """A named file is refused before any call is judged."""
    (command.project / "all").mkdir()
    (command.project / "all" / "a.jsonl").write_text('{"some": "log"}\n')
    (command.project / "all" / "b.jsonl").write_text(line("rm -rf /"))
    done = command("replay", "--json", "all/b.jsonl", "all/a.jsonl", code=2)
    assert done.stdout == ""
    assert "all/a.jsonl: is neither a transcript of an agent that is known nor a session of agent-hooks" in done.stderr
    done = command("replay", "all")
    assert "skipped: all/a.jsonl: is neither" in done.stderr
    assert "not read: 0 lines, 1 file" in done.stdout
    (command.project / "empty").mkdir()
    assert "there is no *.jsonl below empty" in command("replay", "empty", code=2).stderr
    assert "does not exist" in command("replay", "nowhere", code=2).stderr
    command("replay", code=2)


def test_hooks_of_the_directories_above_judge_too(command: Command) -> None:
    """A replay in a directory of the project is judged by the project's hooks."""
    command.add_hook(GATE)
    (command.project / "src").mkdir()
    here, below = (answers(command("replay", "--json", str(FIRST), "--cwd", each).stdout) for each in (".", "src"))
    assert [row["verdict"] for row in below[0]] == [row["verdict"] for row in here[0]]
    assert ".agent/hooks/hook.py" in here[1]["by"]


def test_a_pipe_can_be_replayed(command: Command) -> None:
    """`<(zcat old.jsonl.gz)` is such a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "agent_hooks", "replay", "/dev/stdin"],
        input=line("rm -rf /"),
        cwd=command.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "1 call in 1 file: 1 blocked" in done.stdout


def test_failures_and_hooks_that_never_run_are_told_once(command: Command) -> None:
    """They are not repeated for each of a hundred calls."""
    command.add_hook(
        """
        def register(api):
            @api.on("tool_call", tool="Bash")
            async def never(event, ctx):
                pass

            @api.on("tool_call", tool="bash")
            async def fails(event, ctx):
                raise ValueError(event.tool_call_id)
        """
    )
    (command.project / "t.jsonl").write_text("".join(line("ls", str(number)) for number in range(100)))
    done = command("replay", "t.jsonl")
    assert done.stderr.count("hook error at t.jsonl:1, shown once: .agent/hooks/hook.py:9: fails on tool_call: ") == 1
    assert done.stderr.count("never runs: the tool 'Bash' is 'bash' here") == 1
    assert "100 calls in 1 file: 100 blocked" in done.stdout


def test_many_answers_make_a_short_table(command: Command) -> None:
    """The same call in one row; different ones up to a hundred."""
    calls = [line("rm -rf /", str(number)) for number in range(50)]
    calls += [line(f"rm -rf /x{number}", f"x{number}") for number in range(150)]
    (command.project / "t.jsonl").write_text("".join(calls))
    lines = command("replay", "t.jsonl").stdout.splitlines()
    assert lines[1].split()[:3] == ["block", "50", "unknown"]
    assert sum(each.startswith("block ") for each in lines) == 100
    assert "and 51 more rows; --json prints every call" in lines


def test_secrets_and_control_characters_do_not_reach_the_screen(command: Command) -> None:
    """A report is kept and passed on."""
    token = "ghp_" + "a1B2" * 9
    (command.project / "t.jsonl").write_text(line(f"rm -rf / {token} \x1b[2J"))
    for args in ((), ("--json",)):
        done = command("replay", "t.jsonl", *args)
        assert token not in done.stdout
        assert "\x1b" not in done.stdout
        assert "redacted" in done.stdout


def test_a_replay_runs_on_trio(command: Command) -> None:
    """Sessions end and begin there too."""
    done = subprocess.run(
        command.line("replay", str(RECORDED), first=TRIO),
        cwd=command.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "19 calls in 4 files: 2 blocked" in done.stdout


def test_a_full_disk_is_told(command: Command) -> None:
    """Half a report must not pass for one."""
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "agent_hooks", "replay", "--json", str(FIRST)],
            cwd=command.project,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert "could not be written: No space left on device" in done.stderr
