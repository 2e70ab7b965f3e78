"""Hostile names on stdout and stderr of every command, and readers of them that go away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from running import Command
from support import PATIENCE, first_line

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
HOOK = f"""
    from agent_hooks import Block

    class Evil(Exception):
        def __str__(self):
            return {EVIL!r}

    def register(api):
        @api.on("tool_call")
        def gate(event, ctx):
            return Block("no " + {EVIL!r})
        gate.__name__ = gate.__qualname__ = "gate" + {EVIL!r}

        def broken(event, ctx):
            raise Evil
        broken.__name__ = broken.__qualname__ = "broken" + {EVIL!r}
        api.on("agent_start", broken)
        api.on("turn_start", lambda event, ctx: ctx.ui.notify({EVIL!r}))
"""


@pytest.fixture(autouse=True)
def _no_agent(no_agent_around: None) -> None:
    """The tests themselves may run inside an agent."""


def evil(text: str) -> list[str]:
    """Return the lines of a text that would control a terminal, beside the colours of our own."""
    bare = re.sub(r"\x1b\[(\?25[lh]|\d*[AK]|[\d;]*m)", "", text)
    return [line for line in bare.splitlines() if any(char in line for char in "\x1b\x07\x9b\u202e")]


@pytest.fixture
def hostile(command: Command) -> Command:
    """Give a project with hostile names of hooks, files, tools, branches, checkpoints and sections."""
    project = command.project
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git[:3], "init", "-q", "-b", "bränch\u202etxt"], check=True)
    (project / f"file{EVIL}.txt").write_text("one\n")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", f"first {EVIL}"], check=True)
    command.add_hook(HOOK, f"hook{EVIL}.py")
    command.add_hook(f"raise ValueError({EVIL!r})", f"wrong{EVIL}.py")
    (project / ".agent" / "command_intercept.yaml").write_text(
        'version: 1\ntools:\n  "bash\\e[2J": {transformers: [{name: "x\\e]0;t\\a"}]}\n'
    )
    return command


def test_no_command_passes_a_control_character_on(hostile: Command) -> None:
    """The texts of hooks, files and arguments are escapes on both streams."""
    project = hostile.project
    wrong = str(project / ".agent" / "hooks" / f"wrong{EVIL}.py")
    call = {"tool": f"ba{EVIL}sh", "input": {"command": f"rm -rf / {EVIL}"}}
    lines: list[tuple[str, ...]] = [
        ("list",),
        ("check", wrong, str(project / ".agent" / "command_intercept.yaml")),
        ("check", f"no such {EVIL}"),
        ("doctor",),
        ("trust", "--list"),
        ("run", "--no-session", f"@bash echo {EVIL}"),
        ("records",),
        ("why",),
        ("records", "show", "no such " + EVIL),
        ("guard", "explain", f"rm -rf /{EVIL}; echo {EVIL} && git push --force origin x{EVIL}"),
        ("emit", "agent_start", "--hook", str(project / ".agent" / "hooks" / f"hook{EVIL}.py")),
        ("replay", f"no such {EVIL}"),
        ("checkpoints", "list"),
        ("checkpoints", "list", "--session", EVIL),
        ("checkpoints", "restore", EVIL),
        ("checkpoints", "diff", EVIL),
        ("install", EVIL),
        (EVIL,),
        ("run", f"--{EVIL}"),
        ("untrust", f"/nowhere{EVIL}"),
    ]
    for args in lines:
        done = hostile(*(arg.replace("\0", "") for arg in args), code=None)
        # The answer of a run is data, which only a terminal gets without control characters.
        assert evil(done.stderr if args[0] == "run" else done.stdout + done.stderr) == [], args
    assert evil(hostile.on_terminal("run", "--no-session", f"@bash echo {EVIL}")) == []
    said = hostile("guard", "check", "--json", stdin=json.dumps(call))
    assert evil(said.stdout) == []
    json.loads(said.stdout)


def test_a_table_of_checkpoints_and_a_diff_at_a_terminal_are_harmless(hostile: Command) -> None:
    """A pipe gets the diff as git prints it, so that `git apply` takes it."""
    project = hostile.project
    code = (
        "import anyio\nfrom agent_hooks import checkpoints\n"
        f"anyio.run(lambda: checkpoints.create({str(project)!r}, {'s' + EVIL!r}, 1))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
    (project / "plain.txt").write_text(f"new {EVIL}\r\n")
    shown = hostile.on_terminal("checkpoints", "diff")
    assert evil(shown) == []
    assert "new \\x1b]0;owned" in shown
    assert (
        f"new {EVIL}\r"
        in subprocess.run(
            hostile.line("checkpoints", "diff"), cwd=project, capture_output=True, check=True, timeout=PATIENCE
        ).stdout.decode()
    )
    assert evil(hostile.on_terminal("checkpoints", "list")) == []


# ---- readers that go away


def head(command: Command, *args: str, code: int = 0) -> bytes:
    """Run a command whose reader of both streams goes after one line; return the line."""
    reading, writing = os.pipe()
    run = subprocess.Popen(
        command.line(*args), cwd=command.project, stdin=subprocess.DEVNULL, stdout=writing, stderr=writing
    )
    os.close(writing)
    with os.fdopen(reading, "rb") as reader:
        line = first_line(reader)
    assert run.wait(timeout=PATIENCE) == code
    return line


def test_a_run_goes_on_and_ends_well_when_the_reader_of_both_streams_goes(command: Command) -> None:
    """Hooks that print do not fail by it."""
    command.add_hook("""
        import sys
        def register(api):
            @api.on("tool_call")
            def gate(event, ctx):
                print("out " * 10000, flush=True)
                print("err " * 10000, file=sys.stderr, flush=True)
                ctx.ui.notify("hello")
    """)
    prompt = "@bash echo one\n@bash sleep 0.3\n@bash echo two; touch done"
    assert head(command, "run", "--no-session", prompt)
    assert (command.project / "done").exists()


@pytest.mark.parametrize(
    "args", [("list", "--points"), ("records", "--json"), ("records",), ("schema", "events"), ("doctor",), ("--help",)]
)
def test_other_commands_end_quietly(command: Command, args: tuple[str, ...]) -> None:
    """The exit code is that of the same command with a reader."""
    command("run", "--no-session", "@bash echo one")
    code = command(*args, code=None).returncode
    reading, writing = os.pipe()
    os.close(reading)
    line = command.line(*args)
    done = subprocess.run(
        line, stdout=writing, stderr=subprocess.PIPE, cwd=command.project, timeout=PATIENCE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")
    assert head(command, *args, code=code)


def test_a_client_of_rpc_that_goes_ends_the_session(command: Command, project: Path) -> None:
    """With both of its pipes gone, the process ends."""
    reading, writing = os.pipe()
    run = subprocess.Popen(
        command.line("run", "--mode", "rpc", "--no-session"),
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=writing,
    )
    os.close(writing)
    assert run.stdin is not None
    os.close(reading)
    run.stdin.write(b'{"type": "prompt", "id": 1, "message": "@bash echo x"}\n')
    run.stdin.flush()
    run.wait(timeout=PATIENCE)
    run.stdin.close()
