"""The resident server and the generated file, which is run as another agent runs it: in a process for each event."""

from __future__ import annotations

import concurrent.futures
import json
import marshal
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import Any

import msgspec
import pytest

from agent_hooks.bridges.base.verdicts import UNJUDGED
from agent_hooks.installs.generated import stub_path
from agent_hooks.server import client, starter
from agent_hooks.server.stub import config_of, stub_text, write_stub
from other_agent import BRIDGE, CALL, OtherAgent
from running import write_shared_command
from support import PATIENCE, approve, until

COUNTING = """
n = 0

def register(api):
    @api.on("tool_call")
    def count(event, ctx):
        global n
        n += 1
        ctx.ui.notify(f"call {n} of {ctx.session_id}")
"""


def calls_end_after(seconds: float) -> dict[str, tuple[float, str]]:
    """Return the time limits of all events, with this one for calls."""
    events = config_of(BRIDGE)["events"]
    return {**events, "PreToolUse": (seconds, events["PreToolUse"][1])}


def reason_of(said: Any) -> str:
    """Return the reason of a denial."""
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny", said
    return str(said["hookSpecificOutput"]["permissionDecisionReason"])


def test_hooks_keep_their_state_between_events_and_each_session_has_its_own(agent: OtherAgent) -> None:
    """A counter of each session continues."""
    agent.command.add_hook(COUNTING)
    said = [agent(session_id=session)["systemMessage"] for session in ("a", "a", "b", "a")]
    assert said == ["call 1 of a", "call 2 of a", "call 1 of b", "call 3 of a"]
    server = agent.server()
    assert server is not None
    assert (server["sessions"], server["events"]) == (2, 4)


def test_many_first_events_at_once_start_one_server(agent: OtherAgent) -> None:
    """One client starts the server, and the others wait for it."""
    agent.command.add_hook(COUNTING)
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(agent()["systemMessage"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(said) == [f"call {number} of s" for number in range(1, 9)]
    log = Path("/".join(client.place(config_of(BRIDGE), str(agent.command.project))) + ".log")
    assert "another process serves" not in log.read_text()


def test_an_agent_that_ignores_how_its_children_end_is_answered_too(agent: OtherAgent) -> None:
    """By a server that has to be started, and by a process for one event."""
    agent.command.add_hook("def register(api):\n    api.on('tool_call', lambda event, ctx: {'block': True})")
    for start in (60.0, 0.0):
        agent.write_stub(start=start)
        ask = f"trap '' CHLD; exec {sys.executable} -I -S {agent.stub} PreToolUse"
        done = subprocess.run(
            ["sh", "-c", ask],
            input=json.dumps({**CALL, "cwd": str(agent.command.project)}),
            capture_output=True,
            text=True,
            env=agent.environment,
            cwd=agent.command.project,
            check=True,
            timeout=PATIENCE,
        )
        assert "hook.py" in reason_of(json.loads(done.stdout))
        agent.command("serve", "--stop")


def test_a_changed_new_or_deleted_hook_file_counts_from_the_next_event(agent: OtherAgent) -> None:
    """No restart is needed, and the hooks get their shutdown and start."""
    path = agent.command.add_hook(
        """
        def register(api):
            api.on("session", lambda event, ctx: ctx.ui.notify(event.reason))
        """
    )
    assert agent()["systemMessage"] == "start"
    assert agent() == {}
    path.write_text("def register(api):\n    api.on('tool_call', lambda event, ctx: {'block': True, 'reason': 'no'})")
    assert reason_of(agent()).startswith("no")
    path.write_text("def register(api:")
    answer = agent()
    assert "hook.py:1" in answer["systemMessage"]
    assert reason_of(answer).startswith("no")
    path.unlink()
    assert agent() == {}
    agent.command.add_hook(COUNTING, "later.py")
    assert agent()["systemMessage"] == "call 1 of s"
    (agent.command.project / ".agent" / "settings.json").write_text("{")
    assert "settings.json" in agent()["systemMessage"]


def test_a_change_of_the_persons_own_hooks_is_told_while_the_session_runs(agent: OtherAgent, home: Path) -> None:
    """The sentence names the files once; a change in the project is a matter of its approval."""
    own = home / ".agent" / "hooks" / "own.py"
    own.parent.mkdir(parents=True)
    own.write_text("def register(api): pass\n")
    assert agent() == {}
    own.write_text("def register(api): return None\n")
    assert f"your own hooks or settings changed while the session runs: {own}" in agent()["systemMessage"]
    assert agent() == {}
    (home / ".agent" / "settings.json").write_text("{}")
    assert "settings.json" in agent()["systemMessage"]
    own.unlink()
    assert "own.py" in agent()["systemMessage"]
    agent.command.add_hook("def register(api): pass")
    assert "your own hooks" not in json.dumps(agent())
    files = (home / ".agent" / "records").rglob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    edits = sorted((line for line in lines if line["kind"] == "edit"), key=lambda line: int(line["clock"]))
    assert [os.path.basename(line["path"]) for line in edits[:3]] == ["own.py", "settings.json", "own.py"]
    assert "+def register(api): return None" in edits[0]["diff"]


def test_a_server_that_dies_while_it_judges_denies_and_the_next_event_starts_another(agent: OtherAgent) -> None:
    """Also if a hook ends the process, which without a server would print nothing and let the call through."""
    agent.command.add_hook(
        """
        import os
        def register(api):
            @api.on("tool_call")
            def judge(event, ctx):
                if event.input["command"] == "die":
                    os._exit(0)
            api.on("agent_end", lambda event, ctx: os._exit(0))
        """
    )
    assert agent() == {}
    assert "the server ended" in reason_of(agent(tool_input={"command": "die"}))
    assert agent("Stop") == {}
    assert agent() == {}


def test_a_process_of_the_events_own_that_dies_without_an_answer_denies(agent: OtherAgent) -> None:
    """There is no server in this test."""
    agent.write_stub(start=0.0)
    agent.command.add_hook("import os\ndef register(api):\n    api.on('tool_call', lambda event, ctx: os._exit(0))")
    assert "exit code 0 and without an answer" in reason_of(agent())


def test_a_refusal_of_the_client_names_a_path_that_is_no_text(agent: OtherAgent) -> None:
    """An agent that reads strictly would drop the answer, and run the tool."""
    agent.write_stub(start=0.0, run=["/nowhere"], remedy="see /home/a\udcff/file")
    done = agent.run("PreToolUse", json.dumps(CALL))
    denial = msgspec.json.decode(done.stdout)["hookSpecificOutput"]
    assert denial["permissionDecision"] == "deny"
    assert "/home/a?/file" in denial["permissionDecisionReason"]


def test_a_server_that_is_stuck_denies_a_call_and_nothing_else(agent: OtherAgent) -> None:
    """A stuck server differs from a busy one in that it sends no first line."""
    agent()
    server = agent.server()
    assert server is not None
    os.kill(server["pid"], signal.SIGSTOP)
    agent.write_stub(patience=0.3)
    assert reason_of(agent()).startswith(f"{UNJUDGED}: the server does not answer: ")
    assert agent("Stop") == {}
    assert "does not answer" in agent("UserPromptSubmit", prompt="x")["reason"]
    os.kill(server["pid"], signal.SIGCONT)
    agent.write_stub()
    assert agent() == {}
    os.kill(server["pid"], signal.SIGSTOP)
    agent.command.first = "from agent_hooks.server import control; control.PATIENCE = 0.3"
    stopped = agent.command("serve", "--stop").stdout
    assert "does not answer" in stopped
    assert "ended by force" in stopped
    assert agent() == {}


def test_a_hook_that_hangs_denies_and_the_next_call_is_judged(agent: OtherAgent) -> None:
    """The denial comes before the agent's own deadline, which would let the call through; the server cancels the call."""
    begun, marks = (agent.command.project / name for name in ("begun", "marks"))
    agent.command.add_hook(
        f"""
        import anyio
        from pathlib import Path
        def register(api):
            @api.on("tool_call")
            async def judge(event, ctx):
                if event.input["command"] == "hang":
                    try:
                        Path({str(begun)!r}).touch()
                        await anyio.sleep_forever()
                    finally:
                        Path({str(marks)!r}).write_text("given up")
        """
    )
    agent()
    # Longer each time, until the hook was reached in time.
    for seconds in (0.5, 5.0, 50.0):
        agent.write_stub(events=calls_end_after(seconds))
        assert "in time" in reason_of(agent(tool_input={"command": "hang"}))
        if begun.exists():
            break
    until(marks.exists)
    agent.write_stub()
    assert agent() == {}


def test_a_hook_that_hangs_in_a_process_of_its_own_denies(agent: OtherAgent) -> None:
    """The client kills the process."""
    agent.write_stub(start=0.0, events=calls_end_after(1.0))
    agent.command.add_hook("import time\ndef register(api):\n    time.sleep(1000)")
    assert "in time" in reason_of(agent())


def test_a_hook_that_closes_everything_and_hangs_in_a_process_of_its_own_denies(agent: OtherAgent) -> None:
    """A daemon does so: the end of its output is not its end."""
    agent.write_stub(start=0.0, events=calls_end_after(2.0))
    agent.command.add_hook("import os, time\ndef register(api):\n    os.closerange(0, 100)\n    time.sleep(30)")
    assert "in time" in reason_of(agent())


def test_what_a_hook_starts_in_a_process_of_its_own_is_not_waited_for(agent: OtherAgent) -> None:
    """The program that the hook starts has the same stdin."""
    agent.write_stub(start=0.0, events=calls_end_after(20.0))
    agent.command.add_hook(
        "import subprocess\ndef register(api):\n    subprocess.Popen(['sleep', '30'], stdout=-3, stderr=-3)"
    )
    assert agent() == {}


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ("PreToolUse", ""),
        ("PreToolUse", "nonsense"),
        ("PreToolUse", b"\xff\xfe"),
        ("PreToolUse", "[]"),
        ("PreToolUse", json.dumps(CALL).replace("ls", "ls #\nrm x")),
        ("", '{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_in'),
        ("PreToolUse", "[" * 100_000),
        ("PreToolUse", json.dumps({**CALL, "tool_input": {"command": "x" * 50_000_000}})),
    ],
    ids=["empty", "words", "no UTF-8", "a list", "a line break in a text", "half", "deep", "50 MB"],
)
def test_what_cannot_be_read_denies_a_call_only(event: str, text: str | bytes, agent: OtherAgent) -> None:
    """Other events pass silently, and the server continues."""
    done = agent.run(event, text)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 1)
    reason_of(json.loads(done.stdout))
    assert json.loads(agent.run("Stop", text).stdout if event else b"{}") == {}
    assert agent() == {}


def test_an_answer_that_cannot_be_written_denies_by_the_exit_code(agent: OtherAgent) -> None:
    """The disk behind stdout is full.  An event that is no gate passes silently."""
    with open("/dev/full", "w") as full:
        done = agent.run("PreToolUse", json.dumps(CALL), stdout=full, stderr=subprocess.PIPE)
        assert (done.returncode, b"could not be written" in done.stderr) == (2, True)
        assert agent.run("Stop", '{"hook_event_name": "Stop"}', stdout=full).returncode == 0


def test_where_nothing_can_be_written_a_call_is_still_judged(agent: OtherAgent) -> None:
    """No log, bytecode or lock can be written, but the hooks can be read."""
    agent.command.add_hook(
        "def register(api):\n    api.on('tool_call', lambda event, ctx: {'block': True, 'reason': 'no'})"
    )
    run = f"ulimit -f 0; exec {sys.executable} -I -S {agent.stub} PreToolUse"
    done = subprocess.run(
        ["/bin/sh", "-c", run],
        input=json.dumps(CALL).encode(),
        capture_output=True,
        env=agent.environment,
        timeout=PATIENCE,
        check=False,
    )
    assert "hook.py" in reason_of(json.loads(done.stdout))


@pytest.mark.parametrize("start", [10.0, 0.0], ids=["by the server", "by a process"])
def test_what_the_generated_file_asks_can_be_asked_from_python(
    start: float, agent: OtherAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is a module of the package too."""
    for name in ("HOME", "CLAUDE_PROJECT_DIR", "CLAUDECODE"):
        monkeypatch.setenv(name, agent.environment[name])
    agent.command.add_hook("def register(api):\n    api.on('tool_call', lambda event, ctx: {'block': True})")
    config = config_of(BRIDGE, start=start)
    payload = json.dumps({**CALL, "cwd": str(agent.command.project)}).encode()
    for event, denied in (("PreToolUse", True), ("Stop", False)):
        text = payload if denied else b'{"hook_event_name": "Stop"}'
        answer, code = client.ask(config, event, text, time.monotonic() + 60)
        assert (code, b"hook.py" in answer) == (0, denied)


def test_a_server_of_another_version_is_not_asked(agent: OtherAgent) -> None:
    """A process of its own judges the event: the hooks keep no state, but the event is judged."""
    agent.command.add_hook(COUNTING)
    assert agent()["systemMessage"] == "call 1 of s"
    server = agent.server()
    assert server is not None
    text = Path(agent.stub).read_text()
    old = Path(agent.stub).with_name("old.py")
    # The file of the older version finds the newer server at its place.
    old.write_text(
        text.replace("'request': '[{\"agent_hooks\": \"", "'request': '[{\"agent_hooks\": \"0.0").replace(
            'if hello + newline != config["hello"].encode()', "if hello"
        )
    )
    agent.stub = str(old)
    assert [agent()["systemMessage"] for _ in range(2)] == ["call 1 of s"] * 2


def test_a_server_that_starts_brings_the_installed_file_up_to_date(agent: OtherAgent) -> None:
    """An update of the package leaves the file of the older version behind."""
    agent.write_stub(remedy="old")
    agent()
    assert stub_path(BRIDGE).read_text() == stub_text(config_of(BRIDGE))


def test_bytecode_beside_the_installed_file_runs_only_if_it_is_whole_and_of_that_text(agent: OtherAgent) -> None:
    """Otherwise the text is compiled, also if the bytecode is garbage that would end the interpreter."""
    kept = Path(agent.stub).with_suffix(".pyc")
    other = marshal.dumps(compile("import posix; posix._exit(7)", "", "exec"))
    kept.write_bytes(starter.digest(Path(agent.stub).read_bytes(), other) + other)
    assert agent.run("PreToolUse", json.dumps(CALL)).returncode == 7
    for wrong in (starter.digest(b"another text", other) + other, kept.read_bytes()[:-1], b"\xf3" * 99, b""):
        kept.write_bytes(wrong)
        assert agent() == {}
    kept.unlink()
    assert agent() == {}


def test_what_is_not_there_any_more_denies_and_says_what_to_do(agent: OtherAgent) -> None:
    """The package was removed from the Python that it was installed with."""
    gone = ["-I", "-S", "-m", "agent_hooks"]
    agent.write_stub(run=gone, serve=gone)
    reason = reason_of(agent())
    assert "exit code 1" in reason
    assert "agent-hooks uninstall claude-code" in reason
    assert agent.stub in reason


def test_the_end_of_a_session_unloads_its_hooks_and_clear_does_not(agent: OtherAgent) -> None:
    """After /clear the agent continues in a session with another id, with the same hooks."""
    marks = agent.command.project / "marks"
    agent.environment["CLAUDE_PID"] = str(os.getpid())
    agent.command.add_hook(
        COUNTING
        + f"""
    from pathlib import Path
    api.on("session", lambda event, ctx: ctx.ui.notify(event.reason))
    api.on_unload(lambda: Path({str(marks)!r}).write_text("unloaded"))
"""
    )
    assert agent("SessionStart", source="startup")["systemMessage"] == "start"
    assert agent()["systemMessage"] == "call 1 of s"
    agent("SessionEnd", reason="clear")
    assert agent("SessionStart", source="clear", session_id="t")["systemMessage"] == "clear"
    assert agent(session_id="t")["systemMessage"] == "call 2 of t"
    assert not marks.exists()
    assert agent("SessionEnd", reason="other", session_id="t")["systemMessage"] == "shutdown"
    until(marks.exists)


def test_a_message_waits_for_an_event_that_can_carry_it_and_turns_are_counted(agent: OtherAgent) -> None:
    """A text of `api.send` at the end of a turn waits for the next event whose answer the model reads."""
    agent.command.add_hook(
        """
        def register(api):
            api.on("session", lambda event, ctx: api.send("remember") if event.reason == "before_compact" else None)
            for name in ("turn_start", "turn_end"):
                api.on(name, lambda event, ctx: ctx.ui.notify(f"{event.type} {event.turn_index}"))
        """
    )
    assert agent("UserPromptSubmit", prompt="x")["systemMessage"] == "turn_start 0"
    assert agent("PreCompact", trigger="auto") == {}
    assert agent("PreCompact", trigger="auto") == {}
    said = agent("PostToolBatch", tool_calls=[])
    assert said["systemMessage"] == "turn_end 0\nturn_start 1"
    assert said["hookSpecificOutput"]["additionalContext"] == "remember\n\nremember"
    assert agent("PostToolBatch", tool_calls=[])["systemMessage"] == "turn_end 1\nturn_start 2"


def test_a_failure_of_an_observer_is_told_to_the_person(agent: OtherAgent) -> None:
    """The log holds the traceback."""
    agent.command.add_hook("def register(api):\n    api.on('after_tool_call', lambda event, ctx: 1 / 0)")
    said = agent("PostToolUse", **{**CALL, "hook_event_name": "PostToolUse", "tool_response": "done"})
    assert "ZeroDivisionError" in said["systemMessage"]
    assert "hook.py:2" in said["systemMessage"]
    log = Path("/".join(client.place(config_of(BRIDGE), str(agent.command.project))) + ".log").read_text()
    assert "hook.py" in log
    assert "Traceback (most recent call last):" in log


@pytest.mark.parametrize("hook", ["", COUNTING], ids=["without a loop", "in a loop"])
def test_a_log_that_grows_long_keeps_its_end_while_the_server_runs(hook: str, agent: OtherAgent) -> None:
    """The file is shortened in place, and the server appends to it."""
    if hook:
        agent.command.add_hook(hook)
    quick = "from agent_hooks.server import server; server._MAINTENANCE = 0.05"
    agent.write_stub(serve=["-I", "-c", f"{quick}; from agent_hooks.cli.main import main; main()"])
    agent()
    server = agent.server()
    assert server is not None
    log = Path(f"{server['path']}.log")
    # Stopped, so that the server does not read the log while the test writes it.
    os.kill(server["pid"], signal.SIGSTOP)
    with log.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(200_000))
    assert log.stat().st_size > 2_000_000
    os.kill(server["pid"], signal.SIGCONT)
    until(lambda: log.stat().st_size <= 1 << 20)
    (agent.command.project / ".agent").mkdir(exist_ok=True)
    (agent.command.project / ".agent" / "settings.json").write_text("{")
    assert "settings.json" in reason_of(agent(session_id="another"))
    kept, _, said = log.read_text().partition("line 199999\n")
    assert 500_000 < len(kept) < 1 << 20
    assert kept.startswith("line 1")  # a whole line
    assert "Traceback (most recent call last):" in said
    assert "\0" not in said


def test_a_server_ends_when_it_is_idle_and_its_agents_are_gone(agent: OtherAgent) -> None:
    """It does not end while an agent is alive."""
    path = "/".join(client.place(config_of(BRIDGE), str(agent.command.project)))
    other = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    agent.environment["CLAUDE_PID"] = str(other.pid)
    with agent.command.start("serve", "--idle", "0.2") as serving:
        until(lambda: Path(f"{path}.socket").exists())
        assert agent() == {}
        with pytest.raises(subprocess.TimeoutExpired):
            serving.wait(1)
        other.communicate(timeout=PATIENCE)
        assert serving.wait(timeout=PATIENCE) == 0
    assert agent.server() is None
    assert not Path(f"{path}.socket").exists()


def test_serve_tells_what_runs_stops_it_and_serves_once(agent: OtherAgent) -> None:
    """The command works from any directory, and a second server does not disturb the first."""
    assert "no server runs" in agent.command("serve", "--stop").stdout
    agent()
    status = agent.command("serve", "--status").stdout
    assert f"{agent.command.project}: process " in status
    assert "1 session, 1 event, for " in status
    assert "serves" in agent.command("serve").stderr
    assert "stopped" in agent.command("serve", "--stop").stdout
    until(lambda: agent.server() is None)
    assert "there is no log" in agent.command("serve", "--log").stdout
    agent()
    assert str(agent.command.project) in agent.command("serve", "--stop", "--all").stdout


def test_all_servers_are_those_of_this_home(agent: OtherAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial with another agent home ends no sessions of this one."""
    agent.command.add_hook(COUNTING)
    with monkeypatch.context() as patch:
        patch.setenv("AGENT_HOME", str(tmp_path / "elsewhere"))
        approve(agent.command.project)
        agent.stub = write_stub(BRIDGE)
        agent.environment["AGENT_HOME"] = str(tmp_path / "elsewhere")
    assert agent()["systemMessage"] == "call 1 of s"
    for option in (["--status"], ["--stop", "--all"]):
        assert "no server runs" in agent.command("serve", *option).stdout
    assert agent()["systemMessage"] == "call 2 of s"
    monkeypatch.setenv("AGENT_HOME", str(tmp_path / "elsewhere"))
    assert agent.command("serve", "--stop", "--all").stdout == f"{agent.command.project}: stopped\n"


def test_no_plain_connection_ends_the_server(agent: OtherAgent) -> None:
    """Any program can connect.  `serve --stop` signals the process, for which a user has to be there."""
    agent()
    server = agent.server()
    assert server is not None
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(f"{server['path']}.socket")
        connection.sendall(b'[{"do":"stop"},null]\n')
        answers = connection.makefile("rb")
        answers.readline()
        assert b"no such request: stop" in answers.readline()
    later = agent.server()
    assert later is not None
    assert later["pid"] == server["pid"]
    assert "stopped" in agent.command("serve", "--stop").stdout
    assert agent.server() is None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what a process has loaded")
def test_a_server_starts_an_event_loop_with_the_first_hook(agent: OtherAgent) -> None:
    """The guards need none, and a later hook runs in the same process."""

    def has_loop() -> bool:
        server = agent.server()
        assert server is not None
        pids.add(server["pid"])
        return "_asyncio" in Path(f"/proc/{server['pid']}/maps").read_text()

    pids: set[int] = set()
    assert agent() == {}
    assert "rm-rf" in reason_of(agent(tool_input={"command": "rm -rf /"}))
    assert not has_loop()
    hook = agent.command.add_hook(COUNTING)
    assert [agent()["systemMessage"] for _ in range(2)] == ["call 1 of s", "call 2 of s"]
    assert has_loop()
    hook.unlink()
    assert agent() == {}
    assert len(pids) == 1


def test_a_server_without_a_port_needs_no_cryptography() -> None:
    """The module would take a sixth of the server's memory."""
    modules = "server.server, agent_hooks.cli.commands.serve, agent_hooks.cli.opening, agent_hooks.installs.places"
    code = f"import sys, agent_hooks.{modules}; sys.exit('_hashlib' in sys.modules)"
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    subprocess.run([sys.executable, "-c", code], env=unmeasured, timeout=PATIENCE, check=True)


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_a_server_without_hooks_ends_too(how: str, agent: OtherAgent) -> None:
    """It leaves no socket behind."""
    agent()
    server = agent.server()
    assert server is not None
    if how == "stop":
        agent.command("serve", "--stop")
    else:
        os.kill(server["pid"], signal.SIGTERM)
    until(lambda: not Path(f"{server['path']}.socket").exists())
    assert agent() == {}


@pytest.mark.parametrize("how", ["stop", "signal"])
def test_a_server_that_is_ended_ends_its_hooks_also_when_one_hangs(how: str, agent: OtherAgent) -> None:
    """They get their shutdown and are unloaded, and the event that is being judged is denied."""
    marks = agent.command.project / "marks"
    agent.command.add_hook(
        f"""
        import anyio
        from pathlib import Path
        def register(api):
            @api.on("tool_call")
            async def judge(event, ctx):
                if event.input["command"] == "hang":
                    Path({str(marks)!r}).write_text("judging ")
                    await anyio.sleep_forever()
            @api.on("session")
            def tell(event, ctx):
                Path({str(marks)!r} + ctx.session_id).write_text(event.reason)
        """
    )
    agent(session_id="a")
    said: list[Any] = []
    hanging = threading.Thread(target=lambda: said.append(agent(tool_input={"command": "hang"}, session_id="b")))
    hanging.start()
    until(marks.exists)
    server = agent.server()
    assert server is not None
    if how == "stop":
        agent.command("serve", "--stop")
    else:
        os.kill(server["pid"], signal.SIGTERM)
    hanging.join(PATIENCE)
    assert "the server ended" in reason_of(said[0])
    assert Path(f"{marks}a").read_text() == "shutdown"
    assert agent() == {}


def test_a_directory_that_others_can_open_is_not_used(tmp_path: Path) -> None:
    """A symlink or a file in its place is not used either."""
    assert client.is_private(str(tmp_path / "new"))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    (tmp_path / "file").touch(0o700)
    assert not any(client.is_private(str(tmp_path / name)) for name in ("open", "link", "file"))
    if os.getuid() == 0:
        os.chown(tmp_path / "new", 12345, -1)
        assert not client.is_private(str(tmp_path / "new"))


def test_a_client_that_goes_does_not_break_off_the_start_of_hooks(agent: OtherAgent) -> None:
    """Otherwise the hooks would judge the rest of the session without the state that they prepare at the start."""
    marks = agent.command.project / "marks"
    agent.command.add_hook(
        f"""
        from pathlib import Path
        import anyio
        from agent_hooks import Block

        bad = []
        marks = Path({str(marks)!r})

        def register(api):
            @api.on("session")
            async def start(event, ctx):
                marks.with_suffix(".begun").touch()
                while not marks.exists():
                    await anyio.sleep(0.01)
                bad.append("ls")

            @api.on("tool_call")
            def gate(event, ctx):
                if event.input["command"] in bad:
                    return Block("known to be bad")
        """
    )
    line = [sys.executable, "-I", "-S", agent.stub, "PreToolUse"]
    with subprocess.Popen(line, stdin=subprocess.PIPE, env=agent.environment, cwd=agent.command.project) as going:
        assert going.stdin is not None
        going.stdin.write(json.dumps({**CALL, "session_id": "s"}).encode())
        going.stdin.close()
        until(marks.with_suffix(".begun").exists)
        going.kill()
    # The server notices at once that the client has gone.  If it took longer, this test would prove nothing.
    time.sleep(0.1)
    marks.touch()
    assert "known to be bad" in reason_of(agent())


def test_a_session_that_another_process_resumes_is_not_ended_with_the_first(agent: OtherAgent) -> None:
    """Claude Code was killed, so that the session had no end."""
    agent.command.add_hook(COUNTING)
    other = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    agent.environment["CLAUDE_PID"] = str(other.pid)
    path = "/".join(client.place(config_of(BRIDGE), str(agent.command.project)))
    with agent.command.start("serve", "--idle", "0.5") as serving:  # looks round as often
        until(lambda: Path(f"{path}.socket").exists())
        assert agent()["systemMessage"] == "call 1 of s"
        other.communicate(timeout=PATIENCE)
        agent.environment["CLAUDE_PID"] = str(os.getpid())
        assert agent()["systemMessage"] == "call 2 of s"
        time.sleep(1.2)
        assert agent()["systemMessage"] == "call 3 of s"
        serving.terminate()


_JUDGED_BY = """
from agent_hooks import Block
{more}

def register(api):
    @api.on("tool_call")
    def gate(event, ctx):
        if event.input["command"] in {bad}:
            return Block("known to be bad")
"""


@pytest.mark.parametrize("where", ["package", "symlink", "times"])
def test_what_a_hook_consists_of_counts_wherever_it_lies(
    where: str, agent: OtherAgent, tmp_path: Path, home: Path
) -> None:
    """The files of a package in the settings, the imports of a symlinked hook, and a file with old times all count."""
    project, elsewhere = agent.command.project, tmp_path / "elsewhere"
    elsewhere.mkdir()
    rules, old, new = elsewhere / "rules.py", "BAD = ['..']", "BAD = ['ls']"
    if where == "package":
        (elsewhere / "__init__.py").write_text(_JUDGED_BY.format(more="from . import rules", bad="rules.BAD"))
        (project / ".agent").mkdir()
        (project / ".agent/settings.json").write_text(json.dumps({"hooks": [str(elsewhere)]}))
    elif where == "symlink":
        (elsewhere / "gate.py").write_text(_JUDGED_BY.format(more="import rules", bad="rules.BAD"))
        (home / ".agent/hooks").mkdir(parents=True)
        (home / ".agent/hooks/gate.py").symlink_to(elsewhere / "gate.py")
    else:
        rules = agent.command.add_hook(_JUDGED_BY.format(more=old, bad="BAD"))
        old, new = (rules.read_text().replace(old, each) for each in (old, new))
    rules.write_text(old)
    assert agent() == {}
    times = rules.stat()
    rules.write_text(new)
    os.utime(rules, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "known to be bad" in reason_of(agent())


def test_a_file_that_changes_while_it_is_loaded_is_loaded_again(agent: OtherAgent) -> None:
    """The old text counts for one event."""
    project = agent.command.project
    hook = agent.command.add_hook(_JUDGED_BY.format(more="", bad="()"), "a.py")
    agent.command.add_hook(
        f"""
        from pathlib import Path
        import anyio

        async def register(api):
            Path({str(project / "begun")!r}).touch()
            while not Path({str(project / "go_on")!r}).exists():
                await anyio.sleep(0.01)
        """,
        "b.py",
    )
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(agent)
        until((project / "begun").exists)
        hook.write_text(_JUDGED_BY.format(more="", bad="('ls',)"))
        (project / "go_on").touch()
        first.result()
    assert "known to be bad" in reason_of(agent())


def test_a_projects_settings_lead_to_no_other_home_and_to_no_other_package(agent: OtherAgent, home: Path) -> None:
    """Claude Code sets the variables in `env` of the project's settings for hooks."""
    gate = home / ".agent/hooks/gate.py"
    gate.parent.mkdir()
    gate.write_text(_JUDGED_BY.format(more="", bad="('ls',)"))
    impostor = agent.command.project / "src/agent_hooks"
    impostor.mkdir(parents=True)
    (impostor / "__init__.py").touch()
    (impostor / "__main__.py").write_text("print('{}')")
    agent.environment |= {"AGENT_HOME": str(agent.command.project / "other"), "PYTHONPATH": str(impostor.parent)}
    assert "known to be bad" in reason_of(agent())
    assert agent.server() is not None
    agent.write_stub(start=0.0, home=str(home / ".agent"))  # and without a server
    agent.command("serve", "--stop")
    assert "known to be bad" in reason_of(agent())


def test_the_agent_neither_loses_the_entries_that_run_us_nor_the_files_of_the_server(
    agent: OtherAgent, tmp_path: Path
) -> None:
    """This holds for any directory with Claude Code's settings."""
    own = tmp_path / "claude"
    agent.environment["CLAUDE_CONFIG_DIR"] = str(own)
    folder = client.directory()
    for command in ("mv .claude x", "rm -r .claude", f"rm -rf {folder}", f"rm {folder}/*.socket", f"mv {own} x"):
        assert "write-guard-settings" in reason_of(agent(tool_input={"command": command})), command
    given = {"file_path": f"{own}/settings.json", "content": '{"disableAllHooks": true}'}
    assert "guard-settings" in reason_of(agent(tool_name="Write", tool_input=given))
    assert agent(tool_input={"command": "ls .claude; rm -rf /tmp/somewhere/else"}) == {}


def test_a_server_that_is_stuck_lets_no_secret_through(agent: OtherAgent) -> None:
    """The command whose output is redacted may itself stop the server, and the queue of the server may be full too."""
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    ended = {**CALL, "hook_event_name": "PostToolUse", "tool_response": secret}
    agent()
    server = agent.server()
    assert server is not None
    os.kill(server["pid"], signal.SIGSTOP)
    agent.write_stub(patience=0.3)
    assert secret not in agent("PostToolUse", **ended)["hookSpecificOutput"]["updatedToolOutput"]
    waiting = []
    for _ in range(200):
        waiting.append(socket.socket(socket.AF_UNIX))
        waiting[-1].setblocking(False)
        with suppress(BlockingIOError):
            waiting[-1].connect(f"{server['path']}.socket")
    assert "does not answer" in reason_of(agent())
    assert secret not in agent("PostToolUse", **ended)["hookSpecificOutput"]["updatedToolOutput"]
    for each in waiting:
        each.close()
    os.kill(server["pid"], signal.SIGCONT)


def test_a_server_whose_files_were_tidied_away_ends_and_leaves_its_follower_alone(agent: OtherAgent) -> None:
    """Some programs empty /tmp."""
    path = Path("/".join(client.place(config_of(BRIDGE), str(agent.command.project))))
    socket_of, lock = path.with_name(f"{path.name}.socket"), path.with_name(f"{path.name}.lock")
    with agent.command.start("serve", "--idle", "1") as first:
        until(socket_of.exists)
        lock.unlink()
        socket_of.unlink()
        agent.environment["CLAUDE_PID"] = str(os.getpid())
        assert agent() == {}
        assert first.wait(timeout=PATIENCE) == 0
    server = agent.server()
    assert server is not None
    assert server["events"] == 1
    assert agent() == {}
    assert agent.server() == {**server, "events": 2, "seconds": pytest.approx(server["seconds"], abs=20)}


def test_a_shared_entry_judges_where_the_home_cannot_be_written(agent: OtherAgent, tmp_path: Path) -> None:
    """An exit code of 1 would not be a denial."""
    (tmp_path / "file").touch()
    program = write_shared_command(tmp_path / "bin", tmp_path / "file/home") / "agent-hooks"
    line = [str(program), "bridge", "claude-code", "--resident", "PreToolUse"]
    call = json.dumps({**CALL, "tool_input": {"command": "rm -rf /"}})
    project = agent.command.project
    done = subprocess.run(line, input=call, capture_output=True, text=True, cwd=project, timeout=PATIENCE, check=True)
    assert "rm-rf" in reason_of(json.loads(done.stdout))


def test_a_server_that_ends_before_it_hears_of_an_event_is_no_reason_to_deny(agent: OtherAgent) -> None:
    """The event was not judged, so it cannot be judged twice."""
    agent()
    server = agent.server()
    assert server is not None
    os.kill(server["pid"], signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(agent)
        path = Path("/proc/net/unix")
        until(lambda: path.read_text().count(f"{server['path']}.new") > 1)  # it was bound as that
        os.kill(server["pid"], signal.SIGKILL)
        assert waiting.result() == {}


def test_bytecode_that_a_project_brings_along_does_not_stand_in_for_a_gate(agent: OtherAgent, home: Path) -> None:
    """A project's settings can set the cache directory, and bytecode can be forged from a known text of a hook."""
    gate = home / ".agent/hooks/gate.py"
    gate.parent.mkdir()
    gate.write_text(_JUDGED_BY.format(more="", bad="('ls',)"))
    forge = f"""
from agent_hooks.hooks import bytecode, imports
keep = bytecode._keep
bytecode._keep = lambda entry, head, code: keep(
    entry, head, compile("def register(api): pass", "x", "exec"))
imports.import_hook({str(gate)!r})
"""
    agent.environment["XDG_CACHE_HOME"] = str(agent.command.project / "cache")
    environment = {**agent.environment, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", forge], env=environment, timeout=PATIENCE, check=True)
    assert list((agent.command.project / "cache").rglob("bytecode/*"))
    assert "known to be bad" in reason_of(agent())


def test_what_a_hook_forks_keeps_nobody_from_starting_another_server(agent: OtherAgent) -> None:
    """A pool of processes outlives a server that is killed.  The call that was being judged is denied at once."""
    agent.command.add_hook(
        """
        import multiprocessing, os, time

        def register(api):
            @api.on("tool_call")
            def judge(event, ctx):
                if event.input["command"] == "die":
                    multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)).start()
                    os._exit(0)
        """
    )
    assert agent() == {}
    assert "the server ended" in reason_of(agent(tool_input={"command": "die"}))
    began = time.monotonic()
    assert agent() == {}
    assert agent.server() is not None
    assert time.monotonic() - began < PATIENCE / 2


def test_a_log_that_was_left_behind_is_used_again(agent: OtherAgent) -> None:
    """A server removes files that are older than a day, but not the log to which it writes."""
    path = Path("/".join(client.place(config_of(BRIDGE), str(agent.command.project))))
    for suffix in ("log", "lock"):
        path.with_name(f"{path.name}.{suffix}").touch()
        os.utime(path.with_name(f"{path.name}.{suffix}"), (1, 1))
    other = path.with_name("0-0.log")
    other.with_suffix(".lock").touch()
    other.touch()
    for each in (other, other.with_suffix(".lock")):
        os.utime(each, (1, 1))
    assert agent() == {}
    assert path.with_name(f"{path.name}.log").exists()
    assert not other.exists()


def test_a_call_whose_payload_says_that_it_is_another_event_is_denied(agent: OtherAgent) -> None:
    """The agent waits for an answer about a call; the answer to any other event would let the call run."""
    agent.command.add_hook(COUNTING)
    for name in ("Stop", "PostToolUse", "SessionStart", "UserPromptSubmit", "Unheard"):
        payload = {**CALL, "hook_event_name": name, "session_id": "s", "prompt": "x", "tool_response": "x"}
        done = agent.run("PreToolUse", json.dumps(payload))
        assert f"the agent asks about PreToolUse, but the payload is that of '{name}'" in reason_of(
            json.loads(done.stdout)
        )
    prompt = agent.run("UserPromptSubmit", json.dumps({**CALL, "session_id": "s"}))
    assert json.loads(prompt.stdout)["decision"] == "block"
    # The other way round, the payload is judged as the call that it is.
    assert json.loads(agent.run("Stop", json.dumps({**CALL, "session_id": "s"})).stdout) == {
        "systemMessage": "call 1 of s"
    }


@pytest.mark.parametrize("first", ["UserPromptSubmit", "SessionStart"])
def test_a_text_that_a_hook_adds_at_the_start_reaches_the_model_if_the_prompt_comes_first(
    agent: OtherAgent, first: str
) -> None:
    """Some agents report a prompt before the start of its session, and a new server knows of no start."""
    hook = """
        from agent_hooks import AddContext

        def register(api):
            api.on("session", lambda event, ctx: AddContext("called greenhouse") if event.reason == "start" else None)
    """
    path = agent.command.project / ".agent/hooks/adds.py"
    path.parent.mkdir(parents=True)
    path.write_text(dedent(hook))
    fields = {"prompt": "hello"} if first == "UserPromptSubmit" else {"source": "startup"}
    assert "called greenhouse" in json.dumps(agent(first, **fields))
    assert "called greenhouse" not in json.dumps(agent("UserPromptSubmit", prompt="again"))
