"""`agent-hooks run`, as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from running import Command
from support import PATIENCE, until

GATE = """
    from agent_hooks import Block

    def register(api):
        @api.on("tool_call", tool="bash")
        async def gate(event, ctx):
            if "rm" in event.input["command"]:
                return Block("no deleting")
"""
RECORDER = """
    import json

    def register(api):
        def record(event, ctx):
            with open("events.jsonl", "a") as file:
                file.write(json.dumps([event.type, getattr(event, "reason", None)]) + "\\n")

        for name in ("session", "agent_start", "turn_start", "tool_call", "tool_result", "turn_end", "agent_end"):
            api.on(name, record)
"""


def recorded(project: Path) -> list[str]:
    """Return the lines that RECORDER wrote."""
    lines = (project / "events.jsonl").read_text().splitlines()
    return [f"{kind}:{reason}" if reason else kind for kind, reason in map(json.loads, lines)]


def test_a_hook_file_stops_a_real_tool_call_and_lets_the_next_one_through(command: Command) -> None:
    """The blocked call leaves the file alone; the answer is on stdout, the verdicts on stderr; it exits 0."""
    command.add_hook(GATE)
    precious = command.project / "precious"
    precious.write_text("x")

    done = command("run", "@bash rm precious\n---\n@bash echo hi > made\n@bash cat made")

    assert precious.exists()
    assert (command.project / "made").read_text() == "hi\n"
    assert done.stdout.splitlines()[:2] == ["1. bash rm precious (blocked)", "   no deleting (.agent/hooks/hook.py)"]
    assert "• bash rm precious → blocked: no deleting (.agent/hooks/hook.py)" in done.stderr
    assert "• bash echo hi > made → ok" in done.stderr


def test_events_come_in_their_order(command: Command) -> None:
    """The sequence that the host promises, each turn with its calls."""
    command.add_hook(RECORDER)
    command("run", "@bash true\n---\n@ls")
    assert recorded(command.project) == [
        "session:start",
        "agent_start",
        *["turn_start", "tool_call", "tool_result", "turn_end"] * 2,
        "turn_start",
        "turn_end",
        "agent_end",
        "session:shutdown",
    ]


def test_the_prompt_may_come_on_stdin_and_may_be_ten_megabytes(command: Command) -> None:
    """A prompt of any length is accepted."""
    done = command("run", "--no-session", stdin="x" * 10_000_000 + "\n@bash echo got it\n")
    assert "got it" in done.stdout
    assert command("run", "--no-session", "-", stdin="@bash echo dash").stdout.endswith("dash\n")


def test_hooks_named_on_the_command_line_are_relative_to_the_shell(command: Command) -> None:
    """`--hook` is relative to the shell's directory, also with another `--cwd`."""
    (command.project / "elsewhere").mkdir()
    command.add_hook(GATE, "gate.py").rename(command.project / "gate.py")
    done = command("run", "--hook", "gate.py", "--cwd", "elsewhere", "@bash rm x\n@bash pwd")
    assert "no deleting" in done.stdout
    assert str(command.project / "elsewhere") in done.stdout


def test_json_prints_one_event_per_line_in_wire_spelling(command: Command) -> None:
    """Programs get every event, also of blocked calls."""
    command.add_hook(GATE)
    done = command("run", "--json", "-p", "@bash rm x")
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["type"] for event in events] == [
        "session",
        "agent_start",
        "turn_start",
        "before_tool_call",
        "tool_call",
        "after_tool_call",
        "turn_end",
        "turn_start",
        "turn_end",
        "agent_end",
        "session",
    ]
    assert events[4]["toolCallId"] == events[5]["toolCallId"]
    assert events[5]["blocked"] is True
    assert events[5]["blockReason"] == "no deleting"
    assert events[-1]["reason"] == "shutdown"


def test_a_session_is_saved_unless_it_is_not_wanted(command: Command) -> None:
    """Hooks see the file's path, or None."""
    command.add_hook("def register(api):\n    api.on('session', lambda event, ctx: print('file', ctx.session_file))\n")
    assert "file None" in command("run", "--no-session", "hi").stderr
    assert not (command.project / ".agent" / "sessions").exists()

    stderr = command("run", "hi").stderr
    [file] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    assert stderr.count(f"file {file}") == 2
    roles = [json.loads(line).get("message", {}).get("role") for line in file.read_text().splitlines()]
    assert roles == [None, None, "user", "assistant"]


def test_a_session_directory_that_cannot_be_written_is_told_and_the_run_goes_on(command: Command) -> None:
    """The agent works; nothing is saved."""
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "sessions").write_text("in the way")
    done = command("run", "@bash echo works")
    assert "works" in done.stdout
    assert "cannot be saved" in done.stderr
    assert "going on without saving" in done.stderr


# ---- bad hooks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def register(api:\n", "bad.py:1: SyntaxError"),
        ("x = 1\n", "there is no register"),
        ("def register(api):\n    raise ValueError('oh')\n", "bad.py:2: ValueError: oh"),
        ("import sys\nsys.exit(0)\n", "bad.py:2: called sys.exit(0)"),
        ("def register(api):\n    api.on('tool_cal', print)\n", "did you mean 'tool_call'"),
    ],
)
def test_a_hook_that_cannot_be_loaded_blocks_every_call(command: Command, source: str, says: str) -> None:
    """It may have been meant to stop any of them; the run goes on and names file, line and remedy."""
    command.add_hook(source, "bad.py")
    done = command("run", "@bash touch done")
    assert not (command.project / "done").exists()
    assert says in done.stderr
    assert "mend or remove it" in done.stdout


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise ValueError('oh')", "ValueError: oh"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("return True", "return Block"),
        ("return {'blok': True}", "unknown field `blok`"),
        ("event.input['command'] = 'true'", "Rewrite"),
        ("raise BaseException()", "BaseException"),
    ],
)
@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_gate_that_fails_blocks(command: Command, kind: str, body: str, says: str) -> None:
    """A failing gate never lets the call pass, and its failure is reported with file and handler."""
    command.add_hook(f"def register(api):\n    @api.on('tool_call')\n    {kind} gate(event, ctx):\n        {body}\n")
    done = command("run", "@bash touch done")
    assert not (command.project / "done").exists()
    assert "hook error: .agent/hooks/hook.py" in done.stderr
    assert ": gate on tool_call: " in done.stderr
    assert says in done.stderr
    assert "(blocked)" in done.stderr


def test_a_hook_that_prints_does_not_disturb_the_answer(command: Command) -> None:
    """Output of the hook and of its programs goes to stderr."""
    command.add_hook(
        """
        import subprocess
        print("at import")

        def register(api):
            @api.on("tool_call")
            def chatty(event, ctx):
                print("in handler")
                subprocess.run(["echo", "from a program"])
        """
    )
    done = command("run", "@bash echo hi")
    assert done.stdout == "1. bash echo hi\n   hi\n"
    for text in ("at import", "in handler", "from a program"):
        assert text in done.stderr


def test_a_matcher_that_matches_no_tool_is_told(command: Command) -> None:
    """A misspelt tool would be a gate that never closes."""
    command.add_hook("def register(api):\n    api.on('tool_call', lambda e, c: None, tool='bahs')\n")
    assert "can match no known tool" in command("run", "hi").stderr


def test_a_hooks_tools_are_offered_and_a_second_one_of_a_name_is_left_out(command: Command) -> None:
    """A hook's tool may replace a built-in one, but not another hook's."""
    tool = """
        from agent_hooks import ToolOutput

        class Tool:
            name = "ls"
            description = "mine"
            input_schema = {{"type": "object"}}

            async def execute(self, tool_call_id, input, *, on_update=None):
                return ToolOutput("from {name}")

        def register(api):
            api.register_tool(Tool())
    """
    command.add_hook(tool.format(name="a"), "a.py")
    command.add_hook(tool.format(name="b"), "b.py")
    done = command("run", "@ls")
    assert done.stdout == "1. ls\n   from a\n"
    assert "b.py: tool 'ls' is left out; .agent/hooks/a.py has one too" in done.stderr


LATE = """
    ISOLATION = {mode!r}

    class Late:
        name, description, input_schema = "late", "registered at the start", {{"type": "object"}}
        async def execute(self, tool_call_id, input, *, on_update=None):
            return ToolOutput("from {name}")

    from agent_hooks import ToolOutput

    def register(api):
        @api.on("session")
        async def start(event, ctx):
            if event.reason == "start":
                api.register_tool(Late())
"""


@pytest.mark.parametrize("mode", ["inline", "process"])
def test_a_tool_that_is_registered_at_the_start_of_the_session_is_offered(command: Command, mode: str) -> None:
    """A gate may name it, and a second one of that name is left out, with one warning."""
    command.add_hook(LATE.format(mode=mode, name="a"), "a.py")
    command.add_hook(LATE.format(mode=mode, name="b"), "b.py")
    command.add_hook("def register(api):\n    api.on('tool_call', lambda e, c: None, tool='late')\n", "gate.py")
    done = command("run", "@late")
    assert done.stdout == "1. late\n   from a\n"
    assert done.stderr.count("b.py: tool 'late' is left out; .agent/hooks/a.py has one too") == 1
    assert "can match no known tool" not in done.stderr


@pytest.mark.parametrize("mode", ["inline", "process"])
def test_such_a_tool_is_offered_after_a_reload_too(command: Command, mode: str) -> None:
    """The new generation hears a start of its own."""
    path = command.add_hook(LATE.format(mode=mode, name="a"))
    rpc = command.rpc("--no-session")
    for name in ("a", "b"):
        path.write_text(dedent(LATE.format(mode=mode, name=name)))
        rpc.send("prompt", message="@late")
        assert f"from {name}" in str(rpc.expect("tool_result"))
        # A prompt during a run belongs to the run, which keeps its hooks.
        rpc.expect("run_end")
    rpc.end()


# ---- wrong input -----------------------------------------------------------------------------------------------------


def test_settings_that_are_wrong_stop_the_run_before_it_begins(command: Command) -> None:
    """A gate named there must not be forgotten."""
    (command.project / ".agent").mkdir()
    (command.project / ".agent" / "settings.json").write_text('{\n"hooks": [,]}')
    done = command("run", "@bash touch done", code=1)
    assert "settings.json:2: is not JSON" in done.stderr
    assert not (command.project / "done").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["run"], "give a prompt"),
        (["run", "hi", "--hook", "nope.py"], "nope.py"),
        (["run", "hi", "--cwd", "nope"], "nope"),
        (["run", "hi", "--model", "gpt"], "no model 'gpt'"),
        (["run", "hi", "--model", "script:nope"], "No such file"),
        (["frob"], "No such command 'frob'; known are: bridge, check, checkpoints, completion, "),
        (["runn"], "No such command 'runn'; did you mean 'run'?\n"),
        (["fix the tests"], "a prompt comes after `run`: agent-hooks run 'fix the tests'"),
        (["--no-session"], "No such option '--no-session'; it comes after `run`: agent-hooks run --no-session"),
        (["--model", "puppet", "hi"], "; it comes after `run`: agent-hooks run --model puppet hi"),
        (["--frob"], "--frob"),
        (["emit", "tool_cal", "--hook", "x.py"], "x.py"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_is_wrong(command: Command, args: list[str], says: str) -> None:
    """No traceback, one line that names the mistake."""
    assert says in command(*args, code=2).stderr


def test_tool_input_that_breaks_its_schema_does_not_run(command: Command) -> None:
    """Input that is not JSON, not an object or lacks a field is not run, nor is an unknown tool."""
    done = command("run", '@write {"path": "x"}\n@write {oops\n@read {"path": 3}\n@nope')
    # Nothing blocked them, so the list does not say so.
    assert done.stdout.count("(not run)") + done.stdout.count("(error)") == 4
    assert "(blocked)" not in done.stdout
    for text in (
        '"content" is a required property',
        "must be a JSON object",
        '3 is not of type "string"',
        "no tool 'nope'",
    ):
        assert text in done.stdout


def test_a_model_that_fails_ends_the_run_with_one_shutdown(command: Command) -> None:
    """The run failed: exit 1, and the events still end in order."""
    command.add_hook(RECORDER)
    (command.project / "script.jsonl").write_text('{"toolCalls": [{"name": "ls"}]}\n')
    done = command("run", "--model", "script:script.jsonl", "go", code=1)
    assert "the model failed: script script.jsonl: all 1 responses are played" in done.stderr
    assert recorded(command.project)[-2:] == ["agent_end", "session:shutdown"]
    assert recorded(command.project).count("session:shutdown") == 1


# ---- interruption ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_in_order(command: Command, number: signal.Signals) -> None:
    """The tool is killed, observers get the end, the session file has it, shutdown comes once, and the exit code is
    130.
    """
    command.add_hook(RECORDER)
    command.add_hook(
        """
        def register(api):
            api.on("after_tool_call", lambda event, ctx: open("after", "w").write(event.error))
        """,
        "after.py",
    )
    run = command.start("run", "@bash echo $$ > pid; sleep 1000")
    pid = int(wait_for(command.project / "pid"))
    run.send_signal(number)
    _, stderr = run.communicate(timeout=PATIENCE)

    assert run.returncode == 130
    assert "interrupted" in stderr
    assert (command.project / "after").read_text() == "aborted"
    assert recorded(command.project)[-1] == "session:shutdown"
    assert recorded(command.project).count("session:shutdown") == 1
    [file] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    last = json.loads(file.read_text().splitlines()[-1])["message"]
    assert (last["role"], last["content"][0]["text"], last["isError"]) == ("toolResult", "aborted", True)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_shutdown_handler_that_hangs_does_not_hold_the_run(command: Command) -> None:
    """Shutdown has so many seconds in all; a thread that sleeps on does not keep the process."""
    name = "session:shutdown"
    command.first = (
        f"from agent_hooks.dispatch.table import SPECS; from msgspec.structs import replace\n"
        f"SPECS[{name!r}] = replace(SPECS[{name!r}], total=0.5)"
    )
    command.add_hook(
        """
        import time, anyio

        def register(api):
            @api.on("session")
            async def slow(event, ctx):
                if event.reason == "shutdown":
                    await anyio.sleep_forever()

            @api.on("session")
            def asleep(event, ctx):
                if event.reason == "start":
                    return
                time.sleep(1000)
        """
    )
    done = command("run", "hi")  # which ends
    assert done.stderr.count("timed out after") == 2


def wait_for(path: Path) -> str:
    """Return the text of a file as soon as there is some."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def test_a_reader_that_goes_away_does_not_break_the_run(command: Command) -> None:
    """`agent-hooks run … | head -1`."""
    line = f"{sys.executable} -m agent_hooks run --json '@bash touch done' | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=command.project, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines()[-1] == "0"
    assert "Traceback" not in done.stderr
    assert (command.project / "done").exists()


def test_on_a_terminal_the_words_are_streamed_and_a_spinner_turns(command: Command) -> None:
    """The words appear as they come, each call has a line, and the answer is not repeated."""
    text = command.on_terminal("run", "--no-session", "Let me see.\n@bash echo one; sleep 0.3; echo two")
    assert text.count("Let me see.") == 1
    assert text.count("1. bash echo one; sleep 0.3; echo two") == 1
    assert "\x1b[" in text
    assert "ok (" in text


def test_no_color_is_respected(command: Command) -> None:
    """Piped output is plain; so is a terminal's with NO_COLOR, but for the spinner."""
    assert "\x1b" not in command("run", "@ls").stderr


def test_the_gate_of_the_project_holds_in_its_directories(command: Command) -> None:
    """The project is found from anywhere inside of it, in a nested repository too."""
    command.add_hook(GATE)
    below = command.project / "build" / "src"
    below.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", command.project], check=True)
    subprocess.run(["git", "init", "-q", below], check=True)
    Command(below)("run", "@bash rm -rf ../../build")
    assert below.is_dir()
    sessions = command.project / ".agent" / "sessions"
    assert list(sessions.glob("*.jsonl"))
    assert not (below / ".agent").exists()


@pytest.mark.parametrize("args", ["--json", "--no-session"])
def test_an_answer_that_cannot_be_written_is_told(command: Command, args: str) -> None:
    """A full disk: exit 1 and one line, no traceback."""
    line = f"{sys.executable} -m agent_hooks run {args} hi > /dev/full"
    done = subprocess.run(["bash", "-c", line], cwd=command.project, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "the answer could not be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_stdout_is_no_reason_to_fail(command: Command) -> None:
    """The tools still run; the answer is dropped."""
    line = f"{sys.executable} -m agent_hooks run '@bash touch done' >&-"
    done = subprocess.run(["bash", "-c", line], cwd=command.project, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (command.project / "done").exists()


def test_a_directory_that_is_gone_is_named(command: Command) -> None:
    """The remedy is to go elsewhere."""
    line = f"mkdir gone; cd gone; rmdir ../gone; {sys.executable} -P -m agent_hooks run hi"
    done = subprocess.run(["bash", "-c", line], cwd=command.project, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "the current directory does not exist any more" in done.stderr


def test_names_with_brackets_are_shown_as_they_are(command: Command) -> None:
    """Brackets are not markup."""
    command.add_hook("def register(api):\n    api.on('tool_call', print)\n", "x [bold].py")
    assert ".agent/hooks/x [bold].py" in command("list").stdout


def test_a_handler_that_raises_keyboard_interrupt_interrupts(command: Command) -> None:
    """A handler and a tool end the run as Ctrl-C does: in order, without a traceback, with exit code 130."""
    command.add_hook(RECORDER)
    command.add_hook(
        """
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                raise KeyboardInterrupt
        """,
        "stop.py",
    )
    done = command("run", "@bash touch done", code=130)
    assert "interrupted" in done.stderr
    assert not (command.project / "done").exists()
    assert recorded(command.project).count("session:shutdown") == 1


def test_a_secret_in_the_reason_of_a_block_is_not_shown(command: Command) -> None:
    """It is neither in the answer nor in the line about the call."""
    command.add_hook("""\
        from agent_hooks import Block

        def register(api):
            api.on("tool_call", lambda event, ctx: Block("not with ghp_0123456789abcdefghij0123456789abcdef"))
    """)
    done = command("run", "@ls")
    assert "blocked: not with [redacted github-token] (.agent/hooks/hook.py)" in done.stderr
    [session] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    assert "ghp_" not in done.stdout + done.stderr + session.read_text()


def test_control_characters_of_tools_do_not_drive_the_terminal(command: Command) -> None:
    """An escape sequence in a command or its output is shown, not obeyed."""
    seen = command.on_terminal("run", "--no-session", "@bash printf '\\033]0;title\\007' # \x1b[31m")
    assert "\x1b]0;title" not in seen
    assert "\\x1b]0;title\\x07" in seen


@pytest.mark.parametrize(
    ("prompt", "shows"),
    [
        ("hello \udcff", "hello ?"),
        ('@bash {"command": "echo \\ud800"}', "surrogate"),
        ('@bash {"command":' + "[" * 50000 + "]" * 50000 + "}", "must be a JSON object"),
        ('@bash {"command": "true", "timeout": NaN}', "must be a JSON object"),
    ],
)
def test_odd_prompts_and_arguments_end_in_a_result(command: Command, prompt: str, shows: str) -> None:
    """No traceback, and the session file has all of it."""
    assert shows in command("run", prompt).stdout
    [file] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    assert json.loads(file.read_text().splitlines()[-1])["message"]["role"] == "assistant"


def test_a_task_that_calls_sys_exit_does_not_end_the_run_as_if_all_were_well(command: Command) -> None:
    """The exit code is 1, and stderr names the cause."""
    command.add_hook(
        """
        import asyncio, sys

        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                async def child():
                    sys.exit(0)
                await asyncio.create_task(child())
        """
    )
    done = command("run", "@bash touch done", code=1)
    assert "sys.exit(0)" in done.stderr
    assert not (command.project / "done").exists()


def test_a_background_task_that_does_not_stop_does_not_hold_the_run(command: Command) -> None:
    """The answer is there, and the process ends."""
    command.add_hook(
        """
        import anyio

        def register(api):
            async def poll():
                while True:
                    try:
                        await anyio.sleep(0.2)
                    except:
                        pass
            api.start_task(poll)
        """
    )
    command.first = "from agent_hooks.cli import lifetime; lifetime.END_GRACE = 0.5"
    done = command("run", "@bash echo hi")
    assert "hi" in done.stdout
    assert "a hook's background task did not stop within 0.5 s; leaving without it" in done.stderr


def test_a_second_signal_ends_a_run_that_does_not_stop(command: Command) -> None:
    """A tool that swallows its cancellation cannot keep the person from leaving."""
    command.add_hook(
        """
        import anyio
        from agent_hooks import ToolOutput

        class Stuck:
            name = "stuck"
            description = ""
            input_schema = {}

            async def execute(self, tool_call_id, input, *, on_update=None):
                open("begun", "w").write("x")
                while True:
                    try:
                        await anyio.sleep(0.05)
                    except BaseException:
                        open("cancelled", "w").write("x")

        def register(api):
            api.register_tool(Stuck())
        """
    )
    run = command.start("run", "@stuck")
    wait_for(command.project / "begun")
    run.send_signal(signal.SIGINT)
    wait_for(command.project / "cancelled")
    run.send_signal(signal.SIGINT)
    _, stderr = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130
    assert "interrupted again; leaving at once" in stderr


def test_interactive_mode_without_a_terminal_says_what_to_use_instead(command: Command) -> None:
    """Interactive mode needs a terminal, and a pipe is none."""
    done = command("run", "--mode", "interactive", code=2)
    assert "interactive mode needs a terminal" in done.stderr
    assert "-p PROMPT" in done.stderr


def test_untrust_ends_the_hooks_of_a_run(command: Command) -> None:
    """They end at once, in the middle of a turn, and the agent goes on without them."""
    command.trusted = False
    command.add_hook(f"{GATE}        api.on_unload(lambda: open('unloaded', 'w').close())\n")
    command("trust", "--yes")
    run = command.start("run", "--no-session", "@bash touch began; while ! [ -e unloaded ]; do sleep 0.1; done")
    until(lambda: (command.project / "began").exists())
    command("untrust")
    _, stderr = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0
    assert f"the approval of {command.project} was taken back, so its hooks end" in stderr


def test_the_reason_of_a_block_is_read_once(command: Command) -> None:
    """On one terminal or pipe for stdout and stderr, with the call only; a reader of stdout alone gets it there."""
    command.add_hook(GATE)
    (command.project / "precious").write_text("x")
    assert command.on_terminal("run", "@bash rm precious").count("no deleting") == 1
    line = command.line("run", "@bash rm precious")
    merged = subprocess.run(
        line, cwd=command.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert merged.stdout.count("no deleting") == 1
    alone = command("run", "@bash rm precious")
    assert (alone.stdout.count("no deleting"), alone.stderr.count("no deleting")) == (1, 1)


def test_print_mode_shows_markdown_at_a_terminal_and_the_source_elsewhere(command: Command) -> None:
    """The answer of a model is wrapped at words there; a program gets the text as it is."""
    text = "# One\n\n" + " ".join(f"**word{number}**" for number in range(40)) + "\n\n```\nnever closed\n"
    (command.project / "s.jsonl").write_text(json.dumps({"text": text}) + "\n" + json.dumps({"text": text}))
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", command.on_terminal("run", "--model", "script:s.jsonl", "hi"))
    # The line that is being written is beside the spinner, whose frames are of braille dots.
    lines = [line for line in re.split(r"[\r\n]+", shown) if not "\u2800" <= line[:1] <= "\u28ff"]
    assert not [line for line in lines if "**" in line or "```" in line]
    assert re.findall(r"word\d+", " ".join(lines)) == [f"word{number}" for number in range(40)]
    assert command("run", "--model", "script:s.jsonl", "hi").stdout == text
