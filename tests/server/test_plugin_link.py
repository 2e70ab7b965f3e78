"""The plugins, in a real Node, against a real server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import __version__
from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.plugin import PluginBridge
from agent_hooks.installs.generated import heartbeat_path, last_heartbeat, plugin_path, stub_path
from agent_hooks.server import client
from agent_hooks.server.control import servers
from agent_hooks.server.files import server_key
from agent_hooks.server.plugin_file import refresh_plugins, write_plugin
from agent_hooks.server.stub import HELLO, PROTOCOL, config_of
from plugged import Plugged
from running import Command
from support import PATIENCE, until

pytestmark = pytest.mark.node
GATE = """
from agent_hooks import Ask, Block, Rewrite

def register(api):
    @api.on("before_tool_call")
    def rewrite(event, ctx):
        if "rewrite" in str(event.params.get("command")):
            return Rewrite({"command": "echo rewritten"})
        if "content" in event.params:
            return Rewrite({"path": "b.txt", "content": event.params["content"] + " rewritten"})

    @api.on("tool_call")
    def judge(event, ctx):
        command = str(event.input.get("command"))
        if "danger" in command:
            return Block("too dangerous")
        if "ship" in command:
            return Ask("Ship?", "It cannot be undone.")
        ctx.ui.notify(f"input {sorted(event.input)}")
"""
WAITING = """
import pathlib, time

def register(api):
    @api.on("tool_call")
    def wait(event, ctx):
        if event.input["command"] == "wait":
            pathlib.Path({mark!r}).touch()
            time.sleep(60)
"""
PLUGINS = [name for name in BRIDGES if isinstance(open_bridge(name), PluginBridge)]


@pytest.fixture
def agent(command: Command) -> Plugged:
    command.add_hook(GATE)
    return Plugged(command)


def reason_of(outcome: dict[str, Any]) -> str:
    """Return the reason of a denial of pi."""
    assert outcome["value"]["block"] is True, outcome
    return str(outcome["value"]["reason"])


def server_of(agent: Plugged) -> Any:
    """Return the status of the project's server, or `None`."""
    return next((each for each in servers() if each["project"] == str(agent.command.project)), None)


def call_of(name: str, command: str) -> tuple[str, dict[str, Any], Any]:
    """Return a call of an agent's shell: the hook, its event and its second object."""
    given = {"command": command}
    match name:
        case "pi":
            return "tool_call", {"toolName": "bash", "toolCallId": "1", "input": given}, None
        case "opencode":
            return "tool.execute.before", {"tool": "bash", "sessionID": "main", "callID": "1"}, {"args": given}
    return "before_tool_call", {"toolName": "exec", "toolCallId": "1", "params": given}, {}


# ---- answers


def test_the_plugin_starts_the_server_and_a_gate_blocks_a_call(agent: Plugged) -> None:
    """The first event starts the server; the others use it."""
    with agent:
        assert reason_of(agent.bash("danger")).startswith("too dangerous")
        assert "value" not in agent.bash("ls")
    assert server_of(agent)["events"] == 2


def test_a_rewrite_changes_the_object_of_the_event(agent: Plugged) -> None:
    """The same object has the new input and nothing of the old one; half of a surrogate pair stays."""
    given = {"path": "a.txt", "content": "half \ud800", "mode": 3}
    with agent:
        outcome = agent.call("tool_call", {"toolName": "write", "toolCallId": "1", "input": given})
    assert "value" not in outcome, outcome
    assert outcome["event"]["input"] == {"path": "b.txt", "content": "half \ud800 rewritten"}


@pytest.mark.parametrize(
    ("says", "runs"), [(True, True), (False, False), ("throw", False), ("yes", False), (None, False)]
)
def test_only_a_yes_of_the_person_lets_a_call_run(agent: Plugged, says: object, runs: bool) -> None:
    """A no, a screen that fails, an odd answer and a missing person block."""
    with agent:
        outcome = agent.bash("ship it", says=says)
    risk = "risk: runs code that is not known: ship it"
    asked = [] if says is None else [["Ship?", f"bash ship it\n{risk}\n.agent/hooks/hook.py: It cannot be undone."]]
    assert outcome["asked"] == asked
    assert ("value" not in outcome) == runs
    assert runs or "Ship?" in reason_of(outcome)


def test_a_text_sent_at_a_call_reaches_the_model_with_its_result(agent: Plugged) -> None:
    """pi takes no text at a call, so the plugin keeps it for the result."""
    agent.command.add_hook(
        'def register(api):\n    api.on("tool_call", lambda event, ctx: api.send("remember"))\n', "send.py"
    )
    event = {"toolName": "bash", "toolCallId": "1", "input": {"command": "ls"}, "content": [], "isError": False}
    with agent:
        agent.bash()
        outcome = agent.call("tool_result", {**event, "content": [{"type": "text", "text": "a.txt"}]})
        again = agent.call("tool_result", {**event, "content": [{"type": "text", "text": "a.txt"}]})
    assert [block["text"] for block in outcome["value"]["content"]] == ["a.txt", "remember"]
    assert "value" not in again


@pytest.mark.parametrize("name", PLUGINS)
def test_each_plugin_blocks_rewrites_and_runs(command: Command, name: str) -> None:
    """The three agents take a denial, a rewrite and silence each in its own form."""
    command.add_hook(GATE)
    with Plugged(command, name) as agent:
        blocked, rewritten, silent = (agent.call(*call_of(name, text)) for text in ("danger", "rewrite", "ls"))
    assert "too dangerous" in json.dumps(blocked.get("value") or blocked["error"])
    assert "echo rewritten" in json.dumps([rewritten.get("value"), rewritten["event"], rewritten["output"]])
    assert "value" not in silent
    assert "error" not in silent


OBSERVING = """
from agent_hooks import Continue

def register(api):
    @api.on("session")
    def session(event, ctx):
        ctx.ui.notify(f"session {event.reason}")

    @api.intercept("message.before")
    def prompt(input, output):
        if "secret" in output.message:
            output.block, output.block_reason = True, "no secrets"
        output.context.append(f"seen {output.message}")

    @api.on("tool_result")
    def result(event, ctx):
        ctx.ui.notify(f"result {event.tool_call_id} of {ctx.agent_id}: {event.is_error}")

    @api.on("agent_end")
    def stop(event, ctx):
        return Continue("more")
"""


@pytest.fixture
def observing(command: Command) -> Command:
    command.add_hook(GATE)
    command.add_hook(OBSERVING, "observing.py")
    return command


def test_openclaw_reports_only_the_ends_of_calls_that_began(observing: Command) -> None:
    """A call that a hook has blocked, and one of a missing tool, have no result."""
    ended = {"toolName": "exec", "params": {"command": "ls"}, "result": {"content": [{"type": "text", "text": "x"}]}}
    with Plugged(observing, "openclaw") as agent:
        for number, command in (("1", "danger"), ("2", "ls")):
            agent.call(
                "before_tool_call", {"toolName": "exec", "toolCallId": number, "params": {"command": command}}, {}
            )
        notes = [
            agent.call("after_tool_call", {**ended, "toolCallId": number, **error}, {})["notes"]
            for number, error in (("1", {"error": "no"}), ("2", {"error": "it failed"}), ("3", {"error": "not found"}))
        ]
        again = agent.call("after_tool_call", {**ended, "toolCallId": "2"}, {})["notes"]
    assert notes == [[], ["agent_hooks: result 2 of main: True"], []]
    # OpenClaw reports the end of `sessions_spawn` twice.
    assert again == []


def test_the_prompt_of_openclaw_is_judged_once_for_both_of_its_hooks(observing: Command) -> None:
    """The first hook takes the text, the second the block; our own hooks count the prompts."""
    prompts = observing.project / "prompts"
    count = f"""
        def register(api):
            @api.intercept("message.before")
            def count(input, output):
                with open({str(prompts)!r}, "a") as file:
                    file.write(output.message[0])
    """
    observing.add_hook(count, "counting.py")
    with Plugged(observing, "openclaw") as agent:
        first = agent.call("before_prompt_build", {"prompt": "hello"}, {"runId": "a"})
        assert first["value"] == {"prependContext": "seen hello"}
        assert "value" not in agent.call("before_agent_run", {"prompt": "hello"}, {"runId": "a"})
        assert "value" not in agent.call("before_prompt_build", {"prompt": "a secret"}, {"runId": "b"})
        blocked = agent.call("before_agent_run", {"prompt": "a secret"}, {"runId": "b"})["value"]
        # OpenClaw takes a block with another key for a broken one, and leaves its reason out.
        assert {*blocked} == {"outcome", "reason", "message"}
        assert blocked["outcome"] == "block"
        assert "no secrets" in blocked["message"]
        # OpenClaw calls only the second one where the plugin may not add to prompts.
        alone = agent.call("before_agent_run", {"prompt": "a secret"}, {"runId": "c"})["value"]
        assert alone["outcome"] == "block"
    assert prompts.read_text() == "haa"


@pytest.mark.parametrize(
    ("mode", "runs", "starts"), [("discovery", False, 1), ("discovery", True, 0), ("full", False, 0)]
)
def test_the_hook_runner_of_openclaw_is_started_where_openclaw_starts_none(
    observing: Command, tmp_path: Path, mode: str, runs: bool, starts: int
) -> None:
    """`openclaw chat` loads plugins to discover what they offer, and would call no hook of theirs."""
    package = tmp_path / "openclaw"
    package.mkdir()
    (package / "package.json").write_text(
        json.dumps({"name": "openclaw", "type": "module", "exports": {"./plugin-sdk/hook-runtime": "./hooks.mjs"}})
    )
    (package / "hooks.mjs").write_text(
        "import { appendFileSync } from 'node:fs';\n"
        "export const initializeGlobalHookRunner = (registry) =>\n"
        "  appendFileSync('started', JSON.stringify(registry.typedHooks) + '\\n');\n"
    )
    (package / "openclaw.mjs").write_text(
        f"if ({json.dumps(runs)}) "
        "globalThis[Symbol.for('openclaw.plugins.hook-runner-global-state')] = { hookRunner: {} };\n"
        "const { default: plugin } = await import(process.argv[2]);\n"
        "const hooks = [];\n"
        f"plugin.register({{ registrationMode: {json.dumps(mode)}, on: (name) => hooks.push(name) }});\n"
        "console.log(hooks.includes('before_tool_call'));\n"
    )
    plugin = Path(write_plugin(open_bridge("openclaw")))
    line = ["node", str(package / "openclaw.mjs"), plugin.as_uri()]
    done = subprocess.run(line, cwd=observing.project, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "true\n"
    started = observing.project / "started"
    assert (started.read_text() if started.exists() else "") == "[]\n" * starts


def test_a_plugin_that_cannot_start_the_hook_runner_of_openclaw_says_so(observing: Command, tmp_path: Path) -> None:
    """Another version of OpenClaw may lack the function, and `agent-hooks doctor` reads the sign of life."""
    plugin = Path(write_plugin(open_bridge("openclaw")))
    program = tmp_path / "other.mjs"
    program.write_text(
        "const { default: plugin } = await import(process.argv[2]);\n"
        "plugin.register({ registrationMode: 'discovery', on: () => {} });\n"
    )
    line = ["node", str(program), plugin.as_uri()]
    done = subprocess.run(line, cwd=observing.project, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0
    life = last_heartbeat(open_bridge("openclaw"))
    assert life is not None
    assert life.error is not None
    assert "openclaw chat" in life.error
    assert "openclaw agent" in life.error


def test_sub_agents_belong_to_the_session_of_the_person(observing: Command) -> None:
    """A sub-agent's calls are judged with its id, and its prompt is no prompt of the person."""
    with Plugged(observing, "opencode") as agent:
        call = {"tool": "bash", "sessionID": "sub-1", "callID": "7"}
        assert agent.call("chat.message", {"sessionID": "sub-1"}, {"parts": []})["notes"] == []
        blocked = agent.call("tool.execute.before", call, {"args": {"command": "danger"}})
        assert "too dangerous" in blocked["error"]
        agent.call("tool.execute.before", call, {"args": {"command": "ls"}})
        outcome = agent.call("tool.execute.after", {**call, "args": {"command": "ls"}}, {"output": "", "metadata": {}})
    assert outcome["notes"] == ["result 7 of sub-1: False"]
    with Plugged(observing, "openclaw") as agent:
        agent.call("subagent_spawned", {"childSessionKey": "child"}, {"requesterSessionKey": "main"})
        context = {"sessionKey": "child", "sessionId": "sub-2"}
        begun = {"toolName": "exec", "toolCallId": "8", "params": {"command": "ls"}}
        agent.call("before_tool_call", begun, context)
        assert agent.call("after_tool_call", begun, context)["notes"] == ["agent_hooks: result 8 of sub-2: False"]


def test_a_tool_of_opencode_that_throws_is_a_failed_call(observing: Command) -> None:
    """The bus reports it; a call that a hook has blocked is no failed one."""
    with Plugged(observing, "opencode") as agent:
        outcomes = []
        for number, command in (("1", "danger"), ("2", "ls")):
            call = {"tool": "bash", "sessionID": "main", "callID": number}
            agent.call("tool.execute.before", call, {"args": {"command": command}})
            state = {"status": "error", "input": {"command": command}, "error": "it threw"}
            part = {"type": "tool", "tool": "bash", "callID": number, "sessionID": "main", "state": state}
            event = {"type": "message.part.updated", "properties": {"part": part}}
            outcomes.append(agent.call("event", {"event": event})["notes"])
    assert outcomes == [[], ["result 2 of main: True"]]


def test_a_stop_goes_on_unless_the_person_has_stopped_the_agent(observing: Command) -> None:
    """OpenCode gets another prompt, and pi an entry; an agent that was stopped stays so."""
    with Plugged(observing, "opencode") as agent:
        idle = {"event": {"type": "session.idle", "properties": {"sessionID": "main"}}}
        assert agent.call("event", idle)["prompts"] == ["more"]
        aborted = {"sessionID": "main", "error": {"name": "MessageAbortedError"}}
        agent.call("event", {"event": {"type": "session.error", "properties": aborted}})
        outcome = agent.call("event", idle)
        assert outcome["prompts"] == []
        assert "the person has stopped it" in outcome["notes"][0]
    with Plugged(observing) as agent:
        outcome = agent.call("agent_before_settle", {"outcome": "completed", "context": {}})
        assert outcome["value"]["continue"] is True
        assert outcome["value"]["entries"][0]["content"] == "more"
        outcome = agent.call("agent_before_settle", {"outcome": "aborted", "context": {}})
        assert "value" not in outcome


def test_a_person_who_stops_pi_stops_its_calls_and_not_the_redaction_of_results(observing: Command) -> None:
    """A call that waits for its answer is denied, and a result is passed to the hooks."""
    event = {"toolName": "bash", "toolCallId": "1", "input": {"command": "ls"}, "content": [], "isError": True}
    with Plugged(observing) as agent:
        agent.bash("ls")
        assert "the agent has cancelled it" in reason_of(agent.bash("ls", stopped=True))
        assert agent.call("tool_result", event, stopped=True)["notes"] == ["result 1 of main: True"]


SLEEPING = """
import asyncio
from pathlib import Path

def register(api):
    @api.on("tool_call")
    async def wait(event, ctx):
        Path("waiting").touch()
        await asyncio.sleep(50)
"""


def test_a_person_who_stops_pi_while_a_hook_judges_denies_the_call(command: Command) -> None:
    """pi does not wait for the answer of the hook."""
    command.add_hook(SLEEPING)
    with Plugged(command) as agent:
        assert "the agent has cancelled it" in reason_of(agent.bash("ls", stopped=str(command.project / "waiting")))


# ---- payloads


def test_functions_and_circles_are_left_out_of_a_payload(agent: Plugged) -> None:
    """The rest of the input is judged as it is."""
    with agent:
        outcome = agent.bash("ls", odd=["cycle", "function", "bigint", "shared"])
    assert outcome["notes"] == ["input ['big', 'command', 'one', 'other']"]


def test_a_payload_of_50_mb_is_refused_with_a_reason(agent: Plugged) -> None:
    """The gate denies, and the next call is judged."""
    with agent:
        assert "the payload is larger than 32 MiB" in reason_of(agent.bash("ls", odd=["large"]))
        assert "value" not in agent.bash("ls")


def test_an_event_that_cannot_be_read_is_refused(agent: Plugged) -> None:
    """A call without an input is no call."""
    with agent:
        assert "input must be a JSON object" in reason_of(
            agent.call("tool_call", {"toolName": "bash", "toolCallId": "1"})
        )


def test_a_prompt_that_cannot_be_judged_does_not_reach_the_model(agent: Plugged) -> None:
    """pi lets a prompt pass when its handler throws, so the refusal is an answer."""
    agent.change(f'"{stub_path(agent.bridge)}"', '"/nowhere.py"')
    with agent:
        outcome = agent.call("input", {"text": "hello", "source": "interactive"})
    assert outcome["value"] == {"action": "handled"}
    assert "agent-hooks install pi" in outcome["notes"][0]


# ---- the server


def test_the_plugin_finds_the_server_without_python(agent: Plugged) -> None:
    """Node computes the same name of the socket."""
    agent.command("serve", "--status")
    with agent:
        agent.bash()
    agent.change('client: ["', 'client: ["/nowhere", "')
    with agent:
        assert "too dangerous" in reason_of(agent.bash("danger"))


def test_a_server_that_has_ended_is_started_again(agent: Plugged) -> None:
    """An idle server, and one that was killed, are no outage."""
    with agent:
        agent.bash()
        os.kill(server_of(agent)["pid"], signal.SIGKILL)
        assert "too dangerous" in reason_of(agent.bash("danger"))
        agent.command("serve", "--stop")
        assert "too dangerous" in reason_of(agent.bash("danger"))


def test_a_server_killed_while_it_judges_denies_the_call(agent: Plugged, tmp_path: Path) -> None:
    """The hooks may have run, so they are not asked again; the next call is judged."""
    mark = tmp_path / "judging"
    agent.command.add_hook(WAITING.format(mark=str(mark)), "wait.py")
    with agent:
        agent.bash()
        agent.start("tool_call", {"toolName": "bash", "toolCallId": "1", "input": {"command": "wait"}})
        until(mark.exists)
        os.kill(server_of(agent)["pid"], signal.SIGKILL)
        assert "the server ended while it judged this" in reason_of(agent.outcome())
        assert "value" not in agent.bash()


def test_a_call_is_denied_with_the_remedy_when_no_server_can_be_started(agent: Plugged) -> None:
    """A Python that is gone is named, with the command that mends it."""
    agent.change('client: ["', 'client: ["/nowhere/python", "')
    with agent:
        reason = reason_of(agent.bash())
    assert "/nowhere/python cannot be started" in reason
    assert "agent-hooks install pi" in reason
    assert str(agent.plugin) in reason


def test_an_agent_ends_at_once_when_no_server_could_be_started(agent: Plugged) -> None:
    """The clock of a start that failed would hold Node for 20 s."""
    agent.change('client: ["', 'client: ["/nowhere/python", "')
    done = subprocess.run(
        ["node", str(agent.plugin), "tool_call"],
        input=json.dumps({"hook": "tool_call", "event": {}, "session": "main", "parent": None}),
        cwd=agent.command.project,
        capture_output=True,
        text=True,
        timeout=15,
    )
    assert "/nowhere/python cannot be started" in done.stdout


@contextmanager
def false_server(agent: Plugged, hello: bytes, answer: bytes) -> Iterator[None]:
    """Listen in the server's place, answer each connection with a signed answer, and then close it."""
    directory, name = client.place(config_of(agent.bridge), str(agent.command.project))
    key = server_key()
    assert client.is_private(directory)
    path = f"{directory}/{name}.socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                # The plugin may close the connection at the first line.
                with connection, suppress(OSError):
                    connection.sendall(hello)
                    request = client.digest_of(connection.recv(1 << 20))
                    connection.sendall(client.signature(key, request, answer) + b" " + answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)
            Path(path).unlink()


@pytest.mark.parametrize(
    ("hello", "answer", "reason"),
    [
        (HELLO, '[0, {"return": {', "the server ended while it judged this"),
        (HELLO, '[0, {"return": {\n', "the server's answer is no JSON"),
        (HELLO, "[0, 7]\n", "the server's answer has another form"),
        (HELLO, '{"error": "too busy"}\n', "too busy"),
        (HELLO, '[0, {"run": "rm"}]\n', "the server's answer has a run"),
        ('{"agent_hooks": "9.9.9", "protocol": 9}\n', "[0, {}]\n", "another version serves here"),
    ],
)
def test_an_answer_that_is_cut_off_or_of_another_version_denies(
    agent: Plugged, hello: str, answer: str, reason: str
) -> None:
    """An answer counts only if it is whole, and of this version; the reason has the install line."""
    with false_server(agent, hello.encode(), answer.encode()), agent:
        found = reason_of(agent.bash())
    assert reason in found
    assert "agent-hooks install pi" in found


def test_a_request_of_another_version_is_refused_by_the_server(agent: Plugged) -> None:
    """The plugin of an earlier version denies, and names the command that brings it up to date."""
    agent.change(f'\\"protocol\\": {PROTOCOL}, \\"do\\"', '\\"protocol\\": 1, \\"do\\"')
    with agent:
        reason = reason_of(agent.bash())
    assert f"this is agent_hooks {__version__}" in reason
    assert "agent-hooks install pi" in reason


def test_the_plugin_does_not_speak_to_a_server_in_a_directory_of_others(agent: Plugged, tmp_path: Path) -> None:
    """A directory that others can enter is not used."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    agent.change("`/tmp/agent-hooks-${process.getuid()}`", json.dumps(str(shared)))
    agent.change('client: ["', 'client: ["/nowhere/python", "')
    with agent:
        assert "/nowhere/python cannot be started" in reason_of(agent.bash())


# ---- the file


def test_a_plugin_leaves_a_sign_of_life_when_its_agent_loads_it(agent: Plugged) -> None:
    """It has the version, the time and the process; before the first load there is none."""
    assert last_heartbeat(agent.bridge) is None
    began = time.time()
    with agent:
        agent.bash()
    found = last_heartbeat(agent.bridge)
    assert found is not None
    assert (found.version, found.file, found.error) == (__version__, str(agent.plugin), None)
    assert began - 1 <= found.time <= time.time() + 1


def test_a_plugin_that_cannot_connect_leaves_the_error(agent: Plugged) -> None:
    """The agent's own error stays as it was."""
    code = f"import({json.dumps(agent.plugin.as_uri())}).then((module) => module.default({{}}))"
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode
    assert "pi.on is not a function" in done.stderr
    found = last_heartbeat(agent.bridge)
    assert found is not None
    assert "pi.on is not a function" in str(found.error)


def test_a_sign_of_life_that_cannot_be_read_is_none(agent: Plugged) -> None:
    """A file that is cut off is no sign of life."""
    heartbeat_path(agent.bridge).write_text('{"version": ')
    assert last_heartbeat(agent.bridge) is None


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_answers_an_event_by_hand(command: Command, name: str) -> None:
    """`node FILE EVENT` judges a payload by the same way as in the agent."""
    command.add_hook(GATE)
    bridge = open_bridge(name)
    facts = bridge.facts(str(command.project), {})
    payload = json.loads(json.dumps(facts.sample).replace('"true"', '"danger"'))
    done = subprocess.run(
        ["node", write_plugin(bridge), facts.event],
        input=json.dumps(payload),
        capture_output=True,
        text=True,
        cwd=command.project,
        timeout=60,
        check=True,
    )
    assert "too dangerous" in done.stdout
    assert not done.stderr


def test_a_plugin_is_written_once_and_brought_up_to_date(home: Path) -> None:
    """A plugin of another version is replaced; one that is up to date stays the same file."""
    bridge = open_bridge("pi")
    refresh_plugins()
    assert not plugin_path(bridge).exists()
    path = Path(write_plugin(bridge))
    first = path.stat()
    refresh_plugins()
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (first.st_mtime_ns, first.st_ino)
    text = path.read_text()
    path.write_text("// an older one\n")
    refresh_plugins()
    assert path.read_text() == text


@pytest.mark.parametrize("name", PLUGINS)
def test_each_plugin_is_a_module_that_node_can_read(home: Path, name: str) -> None:
    """`node --check` finds no error of syntax."""
    subprocess.run(["node", "--check", write_plugin(open_bridge(name))], check=True, timeout=60)
