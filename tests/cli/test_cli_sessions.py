"""Sessions over several runs of the command: go on, resume, two at once, a full disk, signals."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.test_cli_run import RECORDER, recorded, wait_for
from running import Command
from support import PATIENCE


def files(command: Command) -> list[Path]:
    """Return the session files of the project."""
    return sorted((command.project / ".agent" / "sessions").glob("*.jsonl"))


def prompts(path: Path) -> list[str]:
    """Return the person's messages in a session."""
    messages = [
        entry["message"] for entry in map(json.loads, path.read_text().splitlines()) if entry["type"] == "message"
    ]
    return [message["content"][0]["text"] for message in messages if message["role"] == "user"]


def test_a_session_goes_on_with_the_latest_or_with_a_named_one(command: Command) -> None:
    """`--continue` takes the one last written, `--resume` any; turns count on."""
    command("run", "first")
    [first] = files(command)
    command("run", "second")
    [second] = set(files(command)) - {first}
    command("run", "--continue", "second, continued")
    assert (prompts(first), prompts(second)) == (["first"], ["second", "second, continued"])
    command("run", "--resume", os.path.relpath(first, command.project), "first, resumed")
    done = command("run", "--continue", "--json", "first, continued")
    assert prompts(first) == ["first", "first, resumed", "first, continued"]
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["turnIndex"] for event in events if event["type"] == "turn_start"] == [2]
    assert len(events[0]["entries"]) == 6
    assert events[0]["sessionFile"] == str(first)
    assert len(files(command)) == 2


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["--continue"], 1, "there is no session to go on with; leave out --continue"),
        (["--resume", "nope.jsonl"], 1, "nope.jsonl: the session cannot be opened: No such file or directory"),
        (["--resume", "foreign.jsonl"], 1, "foreign.jsonl:2: is not an entry of a session"),
        (["--resume", "x", "--continue"], 2, "exclude one another"),
        (["--no-session", "--continue"], 2, "exclude one another"),
        (["--mode", "print", "--resume", "."], 1, "is not a regular file"),
        (["--mode", "other"], 2, "'other' is not one of"),
    ],
)
def test_what_cannot_be_gone_on_with_is_told_and_nothing_runs(
    command: Command, args: list[str], code: int, says: str
) -> None:
    """One line, no traceback, no hook and no tool runs, the file is as it was."""
    command.add_hook(RECORDER)
    text = '{"type":"session","version":1,"id":"x","timestamp":"t","cwd":"/"}\n{"oops": 1}\n'
    (command.project / "foreign.jsonl").write_text(text)
    done = command("run", *args, "@bash touch done", code=code)
    assert says in done.stderr
    assert not (command.project / "done").exists()
    assert not (command.project / "events.jsonl").exists()
    assert (command.project / "foreign.jsonl").read_text() == text


def test_a_second_process_on_one_session_is_told(command: Command) -> None:
    """It writes nothing; the first goes on, and then the session can be resumed."""
    run = command.start("run", "@bash touch begun; while [ ! -e go-on ]; do sleep 0.05; done")
    wait_for_file(command.project / "begun")
    [path] = files(command)
    before = path.read_bytes()
    for args in (["--continue"], ["--resume", str(path)]):
        done = command("run", *args, "me too", code=1)
        assert f"{path}: another process works on this session; end that one first" in done.stderr
    assert path.read_bytes() == before
    (command.project / "go-on").touch()
    run.communicate(timeout=PATIENCE)
    assert run.returncode == 0
    command("run", "--continue", "now")
    assert prompts(path)[1:] == ["now"]


def test_a_killed_run_can_be_gone_on_with(command: Command) -> None:
    """After SIGKILL in the middle of a call, the model reads that the end of the call is unknown."""
    run = command.start("run", "@bash touch begun; sleep 1000")
    wait_for_file(command.project / "begun")
    run.kill()
    run.communicate(timeout=PATIENCE)
    [path] = files(command)
    with path.open("a") as file:
        file.write('{"type":"mess')
    done = command("run", "--continue", "what happened?")
    assert f"warning: {path}:5: the last line was not finished, and is dropped" in done.stderr
    assert prompts(path) == ["@bash touch begun; sleep 1000", "what happened?"]


def test_a_full_disk_is_told_and_the_run_goes_on(command: Command) -> None:
    """No file of the process may grow beyond 600 bytes; the answer comes, and the file that is left opens."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))

    done = subprocess.run(
        [sys.executable, "-m", "agent_hooks", "run", f"{'x' * 500}\n@bash echo one\n---\n@bash echo two"],
        cwd=command.project,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},  # writes a file too
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=limit,
    )
    assert done.returncode == 0
    assert "   two" in done.stdout
    [path] = files(command)
    assert done.stderr.count(f"warning: {path}: cannot be written: File too large; going on, and trying again") == 1
    assert f"{path}: 6 entries could not be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes().endswith(b"}\n")
    command("run", "--resume", str(path), "@bash echo three")
    assert prompts(path) == ["@bash echo three"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_session_starts_still_shuts_it_down_once(command: Command, number: signal.Signals) -> None:
    """A `start` handler that waits is cancelled."""
    command.add_hook(RECORDER)
    command.add_hook(
        """
        import anyio

        def register(api):
            @api.on("session")
            async def slow(event, ctx):
                if event.reason == "start":
                    open("begun", "w").write("x")
                    await anyio.sleep_forever()
        """,
        "slow.py",
    )
    run = command.start("run", "@bash touch done")
    wait_for(command.project / "begun")
    run.send_signal(number)
    _, stderr = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130
    assert "interrupted" in stderr
    assert recorded(command.project) == ["session:start", "session:shutdown"]
    assert not (command.project / "done").exists()


def test_the_thinking_level_of_a_session_comes_back(command: Command) -> None:
    """A notice names the model that it was last used with."""
    (command.project / "s.jsonl").write_text('{"text": "fine"}\n')
    command("run", "--model", "script:s.jsonl", "--thinking", "high", "one")
    [path] = files(command)
    done = command("run", "--continue", "two")
    assert "this session was last used with script:s.jsonl; it goes on with puppet:puppet" in done.stderr
    kinds = [json.loads(line)["type"] for line in path.read_text().splitlines()]
    assert kinds.count("thinking_level_change") == 1


def test_a_conversation_is_compacted_by_the_settings(command: Command) -> None:
    """Print mode compacts as the other modes do."""
    settings = command.project / ".agent" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"compaction": {"thresholdTokens": 100, "keepRecentTokens": 50}}')
    command("run", "x" * 500)
    command("run", "--continue", "@bash echo on")
    [path] = files(command)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert [entry["type"] for entry in entries].count("compaction") == 1
    assert "echo on" in str(entries[-1])


def wait_for_file(path: Path) -> None:
    """Wait until a file is there."""
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was not made"
        time.sleep(0.02)


def test_the_options_of_a_session_need_no_word_of_their_own(command: Command) -> None:
    """`agent-hooks` alone is `agent-hooks run`, so `-c` goes on with the session too."""
    command("run", "good morning")
    command("-c", "good evening")
    [path] = files(command)
    assert prompts(path) == ["good morning", "good evening"]
