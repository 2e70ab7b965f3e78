"""RPC mode: another program drives the agent over pipes, and answers for the person."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from running import Command, RpcClient
from support import PATIENCE, wait_for_file

MakeClient = Callable[..., RpcClient]
GATE = """
    def register(api):
        @api.on("tool_call")
        async def gate(event, ctx):
            if not await ctx.ui.confirm("Run it?", event.input.get("command", "")):
                return {"block": True, "reason": "not confirmed"}
"""
SOON = "from agent_hooks.cli.modes import rpc; rpc.LAST_RUN = rpc.LAST_WORDS = 0.3"


@pytest.fixture
def client(command: Command, anyio_backend: str) -> MakeClient:
    """Give a function that starts the agent in RPC mode, by default without saving sessions."""
    return lambda *args, **options: command.rpc(*(args or ("--no-session",)), backend=anyio_backend, **options)


def shutdowns(client: RpcClient) -> int:
    """Return how often the session was shut down."""
    return len(client.all("session", reason="shutdown"))


# ---- a prompt --------------------------------------------------------------------------------------------------------


def test_a_prompt_is_answered_at_acceptance_and_followed_by_events(command: Command, client: MakeClient) -> None:
    """The client gets every event by its name, the words as they come, and the end of the run."""
    rpc = client()
    rpc.send("prompt", id="p1", message="@bash echo hi")
    assert rpc.response("p1") == {"type": "response", "id": "p1", "command": "prompt", "success": True}
    assert rpc.expect("run_start") == {"type": "run_start", "message": "@bash echo hi"}
    assert rpc.expect("tool_result", toolName="bash")["content"][0]["text"] == "hi"
    assert rpc.expect("run_end") == {"type": "run_end", "aborted": False}
    records = rpc.end()
    assert "".join(record["delta"] for record in rpc.all("message_update")) == "1. bash echo hi\n   hi\n"
    events = [record["type"] for record in records if record["type"] not in ("message_update", "response")]
    turn = ["turn_start", "before_tool_call", "tool_call", "tool_result", "after_tool_call", "turn_end"]
    assert events == [
        *("session", "run_start", "agent_start", *turn),
        *("turn_start", "turn_end", "agent_end", "run_end", "session"),
    ]
    assert shutdowns(rpc) == 1


def test_prompts_from_a_pipe_are_worked_on_before_the_end(client: MakeClient) -> None:
    """The end of stdin drops no prompt."""
    rpc = client()
    rpc.write(b'{"type":"prompt","message":"@bash echo one"}\r\n\n{"type":"get_state","id":7}')
    rpc.end()
    assert rpc.all("response", id=7)[0]["success"]
    assert rpc.all("tool_result")
    assert [record["aborted"] for record in rpc.all("run_end")] == [False]


def test_what_does_not_come_to_its_end_is_aborted_after_the_end_of_stdin(client: MakeClient, command: Command) -> None:
    """The client may be dead, and an agent must not go on for long without a client."""
    command.first = SOON
    rpc = client()
    rpc.send("prompt", message="@bash sleep 1000")
    rpc.expect("tool_call")
    rpc.end()
    assert [record["aborted"] for record in rpc.all("run_end")] == [True]
    assert rpc.all("after_tool_call", error="aborted")
    assert shutdowns(rpc) == 1


def test_a_prompt_during_a_run_is_delivered_to_it(client: MakeClient, command: Command) -> None:
    """It is delivered before the next model request, with its attachments."""
    command.add_hook(GATE)
    image = {"kind": "image", "fileName": "a.png", "mimeType": "image/png", "content": "aGk="}
    rpc = client("--hook", str(command.project / ".agent/hooks/hook.py"))
    rpc.send("prompt", message="@bash echo one")
    dialog = rpc.expect("hook_ui_request")
    rpc.send("get_state", id="s")
    assert rpc.response("s")["data"]["isStreaming"] is True
    rpc.send("prompt", id="p2", message="two", attachments=[image])
    assert rpc.response("p2")["success"]
    rpc.send("hook_ui_response", id=dialog["id"], confirmed=True)
    rpc.expect("message_injected", message="two")
    rpc.expect("run_end", aborted=False)
    rpc.send("get_state", id="s")
    session = rpc.response("s")["data"]["sessionFile"]
    rpc.end()
    entries = [json.loads(line) for line in Path(session).read_text().splitlines()]
    [two] = [entry["message"] for entry in entries if entry.get("message", {}).get("attachments")]
    assert two["attachments"] == [image]


def test_a_failing_model_ends_its_run_with_the_error(client: MakeClient, command: Command) -> None:
    """The session goes on."""
    (command.project / "turns.jsonl").write_text('{"text": "the only one"}\n')
    rpc = client("--no-session", "--model", "script:turns.jsonl")
    rpc.send("prompt", message="one")
    assert "error" not in rpc.expect("run_end")
    rpc.send("prompt", message="two")
    assert "turns.jsonl" in rpc.expect("run_end", aborted=False)["error"]
    rpc.send("get_state", id=1)
    assert rpc.response(1)["data"]["isStreaming"] is False
    rpc.end()


# ---- dialogs ---------------------------------------------------------------------------------------------------------


def test_a_dialog_of_the_session_start_is_answered(client: MakeClient, command: Command) -> None:
    """The reader runs before any hook; other requests are answered meanwhile."""
    command.add_hook("""
        def register(api):
            @api.on("session")
            async def ask(event, ctx):
                if event.reason == "start":
                    answer = await ctx.ui.select("Which?", ["a", "b"])
                    ctx.ui.notify(f"{answer} {ctx.has_ui} {ctx.mode}", "warning")
    """)
    rpc = client()
    dialog = rpc.expect("hook_ui_request", method="select")
    assert (dialog["title"], dialog["options"]) == ("Which?", ["a", "b"])
    rpc.send("get_state", id=1)
    assert rpc.response(1)["success"]
    rpc.send("prompt", id=2, message="hello")
    assert rpc.response(2)["success"]
    rpc.send("hook_ui_response", id=dialog["id"], value="b")
    told = rpc.expect("hook_ui_request", method="notify")
    assert (told["message"], told["notifyType"]) == ("b True rpc", "warning")
    rpc.expect("session", reason="start")
    rpc.expect("run_start", message="hello")
    rpc.end()


def test_commands_from_before_the_hooks_are_loaded_wait_for_the_session(client: MakeClient, command: Command) -> None:
    """They are answered in their order, for the resumed session."""
    first = client("--cwd", ".")
    first.send("prompt", message="hello")
    first.expect("run_end")
    first.end()
    command.add_hook("""
        from pathlib import Path
        import anyio
        async def register(api):
            Path("loading").touch()
            while not Path("go").exists():
                await anyio.sleep(0.01)
    """)
    rpc = client("--continue")
    rpc.send("get_state", id=1)
    rpc.send("prompt", id=2, message="again")
    wait_for_file(command.project / "loading", "")
    (command.project / "go").touch()
    rpc.expect("run_end", aborted=False)
    records = rpc.end()
    # The start of the session may come between these two.
    state, prompted = rpc.all("response")
    assert (state["id"], state["data"]["messageCount"]) == (1, 2)
    assert (prompted["id"], prompted["success"]) == (2, True)
    (started,), (run,) = rpc.all("session", reason="start"), rpc.all("run_start", message="again")
    assert records.index(started) < records.index(run)


ASKER = """
    import json, anyio
    def register(api):
        @api.on("turn_start")
        async def ask(event, ctx):
            got = [
                await ctx.ui.select("Which?", ["a", "b"]),
                await ctx.ui.confirm("Sure?", "really"),
                await ctx.ui.input("Name?", "Ada"),
            ]
            ctx.ui.notify(json.dumps(got))
"""


@pytest.mark.parametrize(
    ("responses", "got"),
    [
        ([{"value": "a"}, {"confirmed": True}, {"value": "Bob"}], ["a", True, "Bob"]),
        ([{"cancelled": True}] * 3, [None, False, None]),
        ([{"value": "c"}, {"confirmed": "yes"}, {"confirmed": True}], [None, False, None]),
        ([{"value": ["a"]}, {"confirmed": 1}, {"value": 5}], [None, False, None]),
        ([{}, {"confirmed": True, "cancelled": True}, {"value": "x", "extra": 1}], [None, False, None]),
    ],
)
def test_a_wrong_response_is_no_and_an_error_that_names_the_dialog(
    client: MakeClient, command: Command, responses: list[dict[str, Any]], got: list[Any]
) -> None:
    """Each dialog gets its own error; a right answer gets no response record, and a second answer does not count."""
    command.add_hook(ASKER)
    rpc = client()
    rpc.send("prompt", message="hello")
    wrong = 0
    for response in responses:
        dialog = rpc.expect("hook_ui_request")
        if response.get("value") != "Bob" and None in got and response != {"cancelled": True}:
            wrong += 1
        rpc.send("hook_ui_response", id=dialog["id"], **response)
        rpc.send("hook_ui_response", id=dialog["id"], value="a", confirmed=True)  # once more
    told = rpc.expect("hook_ui_request", method="notify")
    assert json.loads(told["message"]) == got
    rpc.send("hook_ui_response", id=told["id"], cancelled=True)
    rpc.send("hook_ui_response", id="nobody", confirmed=True)
    rpc.end()
    errors = rpc.all("response", command="hook_ui_response")
    dialogs = [record["id"] for record in rpc.all("hook_ui_request")]
    assert [error["success"] for error in errors] == [False] * (wrong + 3 + 2)
    assert errors[-1]["id"] == "nobody"
    for dialog in dialogs[:3]:
        assert sum(error["id"] == dialog for error in errors) == (2 if wrong else 1)


def test_a_thousand_dialogs_at_once_with_other_commands_between_them(client: MakeClient, command: Command) -> None:
    """The answers come in any order: none is lost, and each reaches its own dialog."""
    command.add_hook("""
        import anyio, json
        def register(api):
            @api.on("turn_start")
            async def ask(event, ctx):
                got = {}
                async def one(number):
                    got[number] = await ctx.ui.input(str(number))
                async with anyio.create_task_group() as tasks:
                    for number in range(1000):
                        tasks.start_soon(one, number)
                ctx.ui.notify(json.dumps([got[number] for number in range(1000)]))
    """)
    rpc = client()
    rpc.send("prompt", message="hello")
    dialogs = [rpc.expect("hook_ui_request", method="input") for _ in range(1000)]
    order = random.Random(8)
    order.shuffle(dialogs)
    for number, dialog in enumerate(dialogs):
        rpc.send("get_state", id=number)
        rpc.send("hook_ui_response", id=dialog["id"], value=f"answer {dialog['title']}")
    told = rpc.expect("hook_ui_request", method="notify")
    assert json.loads(told["message"]) == [f"answer {number}" for number in range(1000)]
    rpc.end()
    assert [record["id"] for record in rpc.all("response", command="get_state")] == list(range(1000))
    assert rpc.all("response", success=False) == []


def test_an_aborted_dialog_is_cancelled_for_the_client_too(client: MakeClient, command: Command) -> None:
    """The tool does not run, and an answer comes too late."""
    command.add_hook(GATE)
    rpc = client()
    rpc.send("prompt", message="@bash touch ran")
    dialog = rpc.expect("hook_ui_request", method="confirm", title="Run it?", message="touch ran")
    rpc.send("abort", id="a")
    assert rpc.expect("hook_ui_cancel") == {"type": "hook_ui_cancel", "id": dialog["id"], "reason": "aborted"}
    rpc.send("hook_ui_response", id=dialog["id"], confirmed=True)
    rpc.expect("response", id=dialog["id"], success=False)
    rpc.end()
    assert rpc.all("run_end") == [{"type": "run_end", "aborted": True}]
    assert [record["success"] for record in rpc.all("response", id="a")] == [True]
    assert not (command.project / "ran").exists()


def test_a_dialog_that_its_handler_gives_up_is_cancelled_for_the_client(client: MakeClient, command: Command) -> None:
    """The cancellation has the reason `timeout`."""
    command.add_hook("""
        import anyio
        def register(api):
            @api.on("turn_start")
            async def ask(event, ctx):
                with anyio.move_on_after(0.01):
                    await ctx.ui.confirm("Quick?")
    """)
    rpc = client()
    rpc.send("prompt", message="hello")
    dialog = rpc.expect("hook_ui_request")
    rpc.expect("hook_ui_cancel", id=dialog["id"], reason="timeout")
    rpc.expect("run_end", aborted=False)
    rpc.end()


@pytest.mark.parametrize("how", ["end", "shutdown", "signal"])
def test_the_end_settles_every_open_dialog(client: MakeClient, command: Command, how: str) -> None:
    """A start handler and handlers of tool calls get their defaults; exactly one session shutdown follows."""
    command.add_hook("""
        import anyio
        from pathlib import Path
        def register(api):
            @api.on("tool_call")
            async def ask(event, ctx):
                got = []
                async def one(ask):
                    got.append(str(await ask))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(one, ctx.ui.select("Which?", ["a"]))
                    tasks.start_soon(one, ctx.ui.confirm("Sure?"))
                    tasks.start_soon(one, ctx.ui.input("Name?"))
                Path("got").write_text(" ".join(sorted(got)))
                return {"block": True}
            @api.on("session")
            async def late(event, ctx):
                if event.reason == "shutdown":
                    Path("late").write_text(str(await ctx.ui.confirm("Still there?")))
    """)
    rpc = client()
    rpc.send("prompt", message="@bash touch ran")
    dialogs = {rpc.expect("hook_ui_request")["id"] for _ in range(3)}
    if how == "end":
        rpc.end()
        assert (command.project / "got").read_text() == "False None None"
    elif how == "shutdown":
        rpc.write(b'{"type":"shutdown","id":"bye"}\n{"type":"get_state","id":"late"}\n')
        rpc.end()
        assert [record["success"] for record in rpc.all("response", id="bye")] == [True]
        assert rpc.all("response", id="late")[0]["error"] == "the session is ending"
    else:
        os.kill(rpc.pid, signal.SIGTERM)
        rpc.expect("session", reason="shutdown")
        rpc.end(code=130)
        assert "interrupted" in rpc.log
    assert {record["id"] for record in rpc.all("hook_ui_cancel", reason="shutdown")} == dialogs
    assert (command.project / "late").read_text() == "False"
    assert not (command.project / "ran").exists()
    assert shutdowns(rpc) == 1
    assert rpc.all("session")[-1]["reason"] == "shutdown"


@pytest.mark.parametrize("how", ["end", "shutdown"])
def test_the_end_settles_a_dialog_of_the_session_start(client: MakeClient, command: Command, how: str) -> None:
    """It is settled before any prompt."""
    command.add_hook("""
        def register(api):
            @api.on("session")
            async def ask(event, ctx):
                ctx.ui.notify(f"{event.reason} {await ctx.ui.confirm('Go?')}")
    """)
    rpc = client()
    rpc.expect("hook_ui_request", method="confirm")
    if how == "shutdown":
        rpc.send("shutdown")
        rpc.expect("response", command="shutdown", success=True)
    rpc.end()
    told = [record["message"] for record in rpc.all("hook_ui_request", method="notify")]
    assert told == ["start False", "shutdown False"]
    assert shutdowns(rpc) == 1


@pytest.mark.parametrize("how", ["end", "shutdown"])
def test_a_session_that_does_not_get_started_can_be_ended(client: MakeClient, command: Command, how: str) -> None:
    """Its hook waits for ever at the start, and has no deadline."""
    (command.project / ".agent").mkdir(exist_ok=True)
    (command.project / ".agent/settings.json").write_text('{"hookTimeout": null}')
    command.add_waiting_hook("start")
    command.first = SOON
    rpc = client()
    rpc.expect("hook_ui_request", message="waiting")
    if how == "shutdown":
        rpc.send("prompt", id="p", message="never begun")
        rpc.send("shutdown", id="s")
        assert rpc.response("s")["success"]
    rpc.end()
    assert [record["reason"] for record in rpc.all("session")] == ["shutdown"]


def test_a_signal_while_the_session_starts_ends_it_in_order(client: MakeClient, command: Command) -> None:
    """The dialog is taken back, and there is one shutdown."""
    command.add_hook("""
        def register(api):
            @api.on("session")
            async def ask(event, ctx):
                if event.reason == "start":
                    await ctx.ui.confirm("Go?")
    """)
    rpc = client()
    dialog = rpc.expect("hook_ui_request")
    os.kill(rpc.pid, signal.SIGTERM)
    rpc.expect("hook_ui_cancel", id=dialog["id"], reason="shutdown")
    rpc.expect("session", reason="shutdown")
    rpc.end(code=130)
    assert shutdowns(rpc) == 1


# ---- the wire --------------------------------------------------------------------------------------------------------


def test_what_hooks_print_goes_to_the_log_and_their_stdin_is_empty(client: MakeClient, command: Command) -> None:
    """The same holds for the programs that hooks start."""
    command.add_hook("""
        import os, subprocess, sys
        print("printed while loading")
        def register(api):
            @api.on("turn_start")
            def noise(event, ctx):
                print("printed")
                os.write(1, b"written\\n")
                sys.stdout.buffer.write(b"buffered\\n")
                subprocess.run(["sh", "-c", "echo echoed; cat"])
                print("read", repr(sys.stdin.read()))
    """)
    rpc = client()
    rpc.send("prompt", message="hello")
    rpc.expect("run_end", aborted=False)
    rpc.send("get_state", id=1)
    assert rpc.response(1)["success"]
    rpc.end()
    for text in ("printed while loading", "printed", "written", "buffered", "echoed", "read ''"):
        assert text in rpc.log.splitlines()


def test_a_failing_handler_is_one_record(client: MakeClient, command: Command) -> None:
    """A hook that cannot be loaded is one record too."""
    hook = command.add_hook("""
        def register(api):
            @api.on("turn_start")
            async def broken(event, ctx):
                raise ValueError("no good")
    """)
    bad = command.add_hook("def register(api):\n    oops\n", name="bad.py")
    rpc = client()
    rpc.send("prompt", message="hello")
    rpc.expect("run_end")
    rpc.end()
    loading, failing = rpc.all("hook_error")
    assert failing == {
        "type": "hook_error",
        "hookPath": str(hook),
        "event": "turn_start",
        "error": "ValueError: no good",
        "handler": "broken",
        "outcome": "continued",
        "line": 5,
    }
    assert (loading["hookPath"], loading["event"], loading["outcome"]) == (str(bad), "load", "blocked")
    assert "oops" in loading["error"]


def test_no_line_from_the_client_is_fatal(client: MakeClient) -> None:
    """Each is an error record that says which line it was, and the next line counts again."""
    bad = {
        b"nonsense": "line 1: invalid JSON",
        b'{"type": "prompt", "mess': "line 2: invalid JSON",
        b'{"type": "prompt", "message": "\xff\xfe"}': "line 3: invalid UTF-8",
        b"[" * 100_000: "line 4: invalid JSON: maximum recursion depth",
        b'"prompt"': "line 5: a command is a JSON object, not 'prompt'",
        b"{}": 'line 6: the command has no "type"',
        b'{"type": "promt"}': "line 7: there is no command 'promt'; did you mean 'prompt'?",
        b'{"type": "prompt"}': "line 8: prompt: Object missing required field `message`",
        b'{"type": "prompt", "message": "x", "attachment": []}': "line 9: prompt: Object contains unknown field `attac",
        b'{"type": "get_state", "id": {}}': "line 10: get_state: Expected `int | str | null`, got `object`",
        b'{"type": "prompt", "message": " "}': "the message is empty",
        b"\x00\x01\x02": "line 12: invalid JSON",
    }
    rpc = client()
    rpc.write(b"\n".join(bad) + b"\n")
    for error in bad.values():
        assert rpc.expect("response", success=False)["error"].startswith(error)
    rpc.send("prompt", id="last", message="still there")
    assert rpc.response("last")["success"]
    rpc.expect("run_end", aborted=False)
    rpc.end()


def test_a_line_of_50_mb_is_one_error_and_separators_in_strings_are_text(client: MakeClient) -> None:
    """Reading goes on after its end; records for the client have no separators either."""
    rpc = client()
    rpc.write(b'{"type": "prompt", "message": "' + b"x" * 50_000_000 + b'"}\n')
    assert rpc.expect("response", command="parse")["error"].startswith("line 1: it is longer than 32 MiB")
    text = "a\u2028b\u2029c\x85d\U0001f600"
    rpc.write(json.dumps({"type": "prompt", "message": text}, ensure_ascii=False).encode() + b"\n")
    assert rpc.expect("run_start")["message"] == text
    rpc.expect("run_end", aborted=False)
    # The last line has no end.
    rpc.write(b'{"type": "get_st')
    rpc.end()
    assert rpc.all("response")[-1]["error"].startswith("line 3: invalid JSON")


def test_a_client_that_is_gone_ends_the_session(client: MakeClient, command: Command) -> None:
    """It ends even if stdin stays open, and hooks finish their work at the end."""
    command.add_hook("""
        from pathlib import Path
        def register(api):
            @api.on("session")
            def end(event, ctx):
                with Path("seen").open("a") as file:
                    file.write(event.reason + "\\n")
    """)
    ours, theirs = os.pipe()
    source = subprocess.PIPE
    command_line = [sys.executable, "-m", "agent_hooks", "run", "--mode", "rpc", "--no-session"]
    run = subprocess.Popen(command_line, cwd=command.project, stdin=source, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    assert b'"reason":"start"' in os.read(ours, 65536)
    os.close(ours)
    assert run.stdin
    assert run.stderr
    run.stdin.write(b'{"type": "prompt", "message": "@bash sleep 1000"}\n')
    run.stdin.flush()
    assert run.wait(timeout=PATIENCE) == 0
    assert run.stderr.read() == b"agent-hooks: the client did not read all records\n"
    run.stdin.close()
    run.stderr.close()
    assert (command.project / "seen").read_text() == "start\nshutdown\n"


def test_a_client_that_never_reads_holds_up_nobody(command: Command) -> None:
    """The process ends even while more than a pipe holds waits for the client."""
    command.first = SOON
    command_line = command.line("run", "--mode", "rpc", "--no-session")
    pipe = subprocess.PIPE
    with subprocess.Popen(command_line, cwd=command.project, stdin=pipe, stdout=pipe, stderr=pipe) as run:
        assert run.stdin
        assert run.stdout
        assert run.stderr
        run.stdin.write(json.dumps({"type": "prompt", "message": "x" * 500_000}).encode() + b"\n")
        run.stdin.close()
        assert run.wait(timeout=PATIENCE) == 0
        assert run.stderr.read() == b"agent-hooks: the client did not read all records\n"
        assert run.stdout.read().startswith(b'{"type":"session","reason":"start"')


def test_a_closed_stdin_is_the_end(command: Command) -> None:
    """The session ends in order, at once."""
    line = f"{sys.executable} -m agent_hooks run --mode rpc --no-session <&-"
    done = subprocess.run(["bash", "-c", line], cwd=command.project, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    reasons = [json.loads(line)["reason"] for line in done.stdout.splitlines()]
    assert reasons == ["start", "shutdown"]


def test_a_full_disk_under_stdout_is_told(command: Command) -> None:
    """Records may go to a file, whose disk can be full."""
    line = f"{sys.executable} -m agent_hooks run --mode rpc --no-session < /dev/null > /dev/full"
    done = subprocess.run(["bash", "-c", line], cwd=command.project, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert done.stderr == "agent-hooks: stdout could not be written: No space left on device\n"


def test_wrong_usage_is_told_in_words(command: Command) -> None:
    """The error is on stderr, and nothing is on the wire."""
    done = command("run", "--mode", "rpc", "hello", code=2)
    assert "prompts on stdin" in done.stderr
    done = command("run", "--mode", "rpc", "--resume", "missing.jsonl", code=1)
    assert "missing.jsonl" in done.stderr
    assert done.stdout == ""


# ---- the session -----------------------------------------------------------------------------------------------------


def test_the_session_is_changed_and_every_change_has_its_response(client: MakeClient, command: Command) -> None:
    """After new, switch, branch and clear, the state names the session."""
    rpc = client("--model", "puppet")

    def state() -> dict[str, Any]:
        rpc.send("get_state", id="state")
        data: dict[str, Any] = rpc.response("state")["data"]
        return data

    rpc.send("prompt", message="first")
    rpc.expect("run_end")
    first = state()
    assert first["messageCount"] == 2
    assert (first["model"], first["thinkingLevel"]) == ({"provider": "puppet", "id": "puppet"}, "off")
    rpc.send("new_session", id=1)
    rpc.expect("session", reason="switch", previousSessionFile=first["sessionFile"])
    assert rpc.response(1)["data"] == {"cancelled": False}
    assert state()["messageCount"] == 0
    rpc.send("switch_session", id=2, sessionFile=first["sessionFile"])
    assert rpc.response(2)["data"] == {"cancelled": False}
    assert state() == first
    [index] = [
        index
        for index, entry in enumerate(rpc.all("session", reason="switch")[-1]["entries"])
        if entry["type"] == "message" and entry["message"]["role"] == "user"
    ]
    rpc.send("branch", id=3, entryIndex=index)
    assert rpc.response(3)["data"] == {"cancelled": False, "text": "first"}
    assert state()["sessionId"] != first["sessionId"]
    rpc.send("clear", id=4)
    rpc.expect("session", reason="clear")
    assert rpc.response(4)["data"] == {"cancelled": False}
    rpc.end()


def test_what_cannot_be_done_changes_nothing_and_says_why(client: MakeClient, command: Command) -> None:
    """The session is missing, the entry is no message, or the agent works."""
    command.add_hook(GATE)
    rpc = client()
    rpc.send("switch_session", id=1, sessionFile="missing.jsonl")
    assert "missing.jsonl" in rpc.expect("response", id=1, success=False)["error"]
    rpc.send("switch_session", id=1, sessionFile="a\0b")
    assert "null" in rpc.expect("response", id=1, success=False)["error"]
    rpc.send("branch", id=2, entryIndex=99)
    assert "99" in rpc.expect("response", id=2, success=False)["error"]
    rpc.send("prompt", message="@bash echo hi")
    rpc.expect("hook_ui_request")
    rpc.send("new_session", id=3)
    assert "abort" in rpc.expect("response", id=3, success=False)["error"]
    rpc.send("abort")
    rpc.expect("run_end", aborted=True)
    rpc.end()


CAREFUL = """
    def register(api):
        @api.on("session")
        async def careful(event, ctx):
            if event.reason == "before_clear" and not await ctx.ui.confirm("Really clear?"):
                return {"cancel": True, "reason": "the person said no"}
"""


def test_a_hook_cancels_an_action_and_the_rest_waits_for_it(client: MakeClient, command: Command) -> None:
    """The rest is answered in the order in which it came; `get_state` is answered meanwhile."""
    command.add_hook(CAREFUL)
    rpc = client()
    rpc.send("clear", id="clear")
    dialog = rpc.expect("hook_ui_request")
    rpc.send("prompt", id="prompt", message="after it")
    rpc.send("get_state", id="state")
    assert rpc.response("state")["data"]["isStreaming"] is False
    rpc.send("hook_ui_response", id=dialog["id"], confirmed=False)
    data = rpc.response("clear")["data"]
    assert data["cancelled"] is True
    assert "the person said no" in data["reason"]
    assert rpc.response("prompt")["success"]
    rpc.expect("run_end", aborted=False)
    rpc.end()
    assert rpc.all("session", reason="clear") == []


def test_an_abort_stops_an_action_and_drops_what_waits_for_it(client: MakeClient, command: Command) -> None:
    """A dropped request never begins, and the client gets an error for it."""
    command.add_hook(CAREFUL)
    rpc = client()
    rpc.send("clear", id="clear")
    dialog = rpc.expect("hook_ui_request")
    rpc.send("prompt", id="prompt", message="@bash touch ran")
    rpc.send("abort", id="abort")
    rpc.expect("hook_ui_cancel", id=dialog["id"], reason="aborted")
    rpc.end()
    assert rpc.all("response", id="clear")[0]["data"] == {"cancelled": True, "reason": "aborted"}
    assert rpc.all("response", id="prompt")[0]["error"] == "aborted before it began"
    assert rpc.all("response", id="abort")[0]["success"] is True
    assert rpc.all("run_start") == []


def test_an_abort_right_after_an_action_finds_it(client: MakeClient) -> None:
    """Both come in one write: the session is not cleared a moment later, and the next request works."""
    rpc = client()
    rpc.expect("session", reason="start")
    rpc.write(b'{"type":"clear","id":1}\n{"type":"abort","id":2}\n{"type":"prompt","id":3,"message":"hello"}\n')
    assert rpc.response(1)["error"] == "aborted before it began"
    assert rpc.response(2)["success"]
    assert rpc.response(3)["success"]
    rpc.expect("run_end", aborted=False)
    rpc.end()
    assert rpc.all("session", reason="clear") == []


def test_an_action_is_ended_with_the_session(client: MakeClient, command: Command) -> None:
    """It has a response all the same; the dialog's default comes first where there is one."""
    command.add_waiting_hook("before_clear")
    rpc = client()
    rpc.send("clear", id="clear")
    rpc.expect("hook_ui_request", message="waiting")
    rpc.send("clear", id="next")
    rpc.send("shutdown")
    rpc.end()
    for each in ("clear", "next"):
        assert rpc.all("response", id=each)[0]["error"] == "the session is ending"
    assert shutdowns(rpc) == 1


def test_an_abort_right_after_a_prompt_finds_it(client: MakeClient, command: Command) -> None:
    """It counts even if the run has not begun: an aborted prompt does not start a moment later."""
    rpc = client()
    rpc.write(b'{"type":"prompt","message":"@bash touch ran"}\n{"type":"abort","id":1}\n')
    assert rpc.expect("run_end")["aborted"] is True
    rpc.end()
    assert not (command.project / "ran").exists()
    assert rpc.all("agent_end") == [] or rpc.all("tool_result") == []


def test_a_compaction_is_a_command_and_its_entry_the_response(client: MakeClient, command: Command) -> None:
    """Records leave out the fields that only a handler may read."""
    (command.project / ".agent").mkdir(exist_ok=True)
    settings = {"compaction": {"keepRecentTokens": 1}}
    (command.project / ".agent" / "settings.json").write_text(json.dumps(settings))
    rpc = client()
    rpc.send("compact", id="early")
    assert rpc.response("early")["success"] is False
    for number in range(3):
        rpc.send("prompt", message=f"words {number} " * 50)
        rpc.expect("run_end", aborted=False)
    rpc.send("compact", id="c", customInstructions="numbers only")
    before = rpc.expect("session", reason="before_compact")
    assert before["customInstructions"] == "numbers only"
    assert not [name for name in before if "key" in name.lower()]
    after = rpc.expect("session", reason="compact")
    data = rpc.response("c")["data"]
    assert data == {"cancelled": False, "compactionEntry": after["compactionEntry"]}
    assert data["compactionEntry"]["type"] == "compaction"
    rpc.end()


def test_too_much_at_once_is_refused(client: MakeClient, command: Command) -> None:
    """The rest is worked on."""
    command.add_hook(GATE)
    rpc = client()
    rpc.send("prompt", message="@bash true")
    dialog = rpc.expect("hook_ui_request")
    for number in range(101):
        rpc.send("prompt", id=number, message=str(number))
    assert [rpc.response(number)["success"] for number in range(101)] == [True] * 100 + [False]
    assert "wait for the agent already" in rpc.records[-1]["error"]
    rpc.send("hook_ui_response", id=dialog["id"], confirmed=True)
    rpc.expect("message_injected", message="99")
    rpc.end()


def test_a_hook_sends_messages_that_name_it(client: MakeClient, command: Command) -> None:
    """When the agent is idle, a message begins a run."""
    hook = command.add_hook("""
        def register(api):
            @api.on("session")
            def remind(event, ctx):
                if event.reason == "start":
                    api.send("from a hook")
    """)
    rpc = client()
    assert rpc.expect("run_start") == {"type": "run_start", "message": "from a hook", "source": str(hook)}
    rpc.expect("run_end", aborted=False)
    rpc.end()


def test_a_hook_that_keeps_the_agent_going_is_named(client: MakeClient, command: Command) -> None:
    """All of it is one run; the event has the count, and the client gets a warning at the limit."""
    hook = command.add_hook("""
        def register(api):
            api.on("agent_end", lambda event, ctx: {"continue": f"more {event.continued}"})
    """)
    rpc = client()
    rpc.send("prompt", id="p", message="go")
    rpc.expect("run_end", aborted=False)
    rpc.end()
    injected = [{"type": "message_injected", "message": f"more {n}", "source": str(hook)} for n in range(8)]
    assert rpc.all("message_injected") == injected
    assert [end["continued"] for end in rpc.all("agent_end")] == [*range(9)]
    assert len(rpc.all("run_start")) == 1
    told = next(each for each in rpc.all("hook_ui_request", method="notify") if "no model is" not in each["message"])
    assert "continued the run 8 times in a row" in told["message"]


def test_what_the_agent_warns_of_is_a_notification(client: MakeClient, command: Command) -> None:
    """Hooks that no person has approved are an example."""
    command.trusted = False
    command.add_hook(GATE)
    rpc = client("--no-session")
    warning = rpc.expect("hook_ui_request", method="notify", notifyType="warning")
    assert warning["message"].endswith("read and approve: agent-hooks trust")
    rpc.end()


# ---- questions about a tool call -------------------------------------------------------------------------------------

ASK = """
    from agent_hooks import Ask
    def register(api):
        @api.on("tool_call")
        def gate(event, ctx):
            return Ask("Sure?", "says the gate")
"""


def test_a_client_answers_a_question_of_a_guard_for_the_person(command: Command, client: MakeClient) -> None:
    """No with a reason reaches the model; true is Yes once."""
    rpc = client()
    rpc.send("prompt", message="@bash rm -rf dist2")
    dialog = rpc.expect("hook_ui_request", method="confirm")
    assert (dialog["call"], dialog["risk"]) == ("bash rm -rf dist2", "deletes everything in dist2")
    assert dialog["answers"][:2] == ["no", "once"]
    assert "diff" not in dialog
    rpc.send("hook_ui_response", id=dialog["id"], answer="no", text="use a branch")
    result = rpc.expect("after_tool_call", toolName="bash")
    assert "the user said no: use a branch (asked by" in result["error"]
    rpc.expect("run_end")
    (command.project / "dist2").mkdir()
    rpc.send("prompt", message="@bash rm -rf dist2")
    rpc.send("hook_ui_response", id=rpc.expect("hook_ui_request", method="confirm")["id"], confirmed=True)
    rpc.expect("run_end")
    assert not (command.project / "dist2").exists()
    rpc.end()


def test_a_question_about_an_edit_has_a_diff_for_the_client(command: Command, client: MakeClient) -> None:
    """An answer for always is refused without the option, and the call is blocked."""
    command.add_hook(ASK)
    rpc = client()
    rpc.send("prompt", message='@write {"path": "a.txt", "content": "hello"}')
    dialog = rpc.expect("hook_ui_request", method="confirm", title="Sure?")
    assert dialog["diff"].endswith("+hello")
    rpc.send("hook_ui_response", id=dialog["id"], answer="always")
    refused = rpc.expect("response", command="hook_ui_response")
    assert "start the host with --allow-remember" in refused["error"]
    rpc.expect("run_end")
    assert not (command.project / "a.txt").exists()
    rpc.end()


def test_only_rpc_mode_lets_a_client_remember(command: Command) -> None:
    """In the other modes the option is a mistake."""
    done = command("run", "--allow-remember", "-p", "@bash ls", code=2)
    assert "--allow-remember is for --mode rpc" in done.stderr
