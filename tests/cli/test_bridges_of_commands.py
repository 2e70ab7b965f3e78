"""Each agent whose hooks are commands: its command, run as the agent runs it, alone and with the resident server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.server.stub import write_stub
from bridge_checking import holds
from running import Command
from support import approve

NAMES = [name for name in BRIDGES if isinstance(open_bridge(name), CommandBridge) and not open_bridge(name).plugin]


@pytest.fixture(params=NAMES)
def agent(request: pytest.FixtureRequest, command: Command, monkeypatch: pytest.MonkeyPatch) -> CommandBridge:
    """One agent, in whose environment the command runs."""
    for name in [name for name in os.environ if name.startswith(("CLAUDE", "COPILOT", "CURSOR", "GEMINI", "QWEN"))]:
        monkeypatch.delenv(name)
    bridge = open_bridge(request.param)
    assert isinstance(bridge, CommandBridge)
    for name, value in bridge.facts(str(command.project), os.environ).environment.items():
        monkeypatch.setenv(name, value)
    return bridge


def call_of(bridge: CommandBridge, command: Command, line: str = "ls") -> dict[str, Any]:
    """Return the payload of a call of the agent's shell."""
    sample = dict(bridge.facts(str(command.project), os.environ).sample)
    return {**sample, bridge.fields.input: {**sample[bridge.fields.input], "command": line}}


def gate_of(bridge: CommandBridge) -> str:
    """Return the event of a call."""
    return bridge.facts("/", {}).event


def denies(bridge: CommandBridge, printed: str, *reasons: str) -> bool:
    """Return whether an answer is a denial of a call in the agent's words, for these reasons."""
    said = json.loads(printed)
    template = bridge.command_row(gate_of(bridge)).says["block"]
    # The reason is JSON in an answer, and half of a pair is no text.
    return holds(said, template, gate_of(bridge)) and all(reason in str(said) for reason in reasons)


@pytest.mark.parametrize(
    "stdin",
    ["", "nonsense", "[]", "[" * 100_000, '{"session_id": "s", "tool_name": "Bash", "tool_in', "{}", "\ufeff{}"],
    ids=["empty", "words", "a list", "deep", "half", "no field", "a mark"],
)
def test_a_payload_that_cannot_be_read_denies_a_call(stdin: str, agent: CommandBridge, command: Command) -> None:
    """Events that no hook can stop pass without a text."""
    done = command("bridge", agent.name, gate_of(agent), stdin=stdin)
    assert denies(agent, done.stdout, "agent-hooks could not read the event")
    other = next(row.name for row in agent.describe() if not row.gate and agent.command_row(row.name).kind == "result")
    assert command("bridge", agent.name, other, stdin=stdin).stdout == "{}\n"


def test_a_payload_of_50_mb_denies(agent: CommandBridge, command: Command) -> None:
    """It is read to its end, so that the agent is not cut off."""
    done = command("bridge", agent.name, gate_of(agent), stdin=json.dumps(call_of(agent, command, "x" * 50_000_000)))
    assert denies(agent, done.stdout, "the payload is larger than 32 MiB")


def test_one_hook_file_judges_the_calls_of_each_agent(agent: CommandBridge, command: Command) -> None:
    """The same file blocks, and a call without a decision gets an empty answer; a hook that fails denies."""
    path = command.add_hook("""
        def register(api):
            def gate(event, ctx):
                if "crash" in event.input["command"]:
                    1 / 0
                if "no" in event.input["command"]:
                    return {"block": True, "reason": "half \\udcff"}
            api.on("tool_call", gate, tool="bash")
    """)
    said = {
        line: command("bridge", agent.name, gate_of(agent), stdin=json.dumps(call_of(agent, command, line))).stdout
        for line in ("ls", "no", "crash", "rm -rf /")
    }
    assert said["ls"] == "{}\n"
    assert denies(agent, said["no"], "half ")
    assert denies(agent, said["crash"], path.name, "ZeroDivisionError")
    assert denies(agent, said["rm -rf /"], "rm-rf")


@pytest.mark.usefixtures("served")
def test_the_installed_line_is_answered_by_the_resident_server(agent: CommandBridge, command: Command) -> None:
    """The line is run as the agent runs it: a hook counts, so one process has answered all."""
    command.add_hook("""
        count = [0]
        def register(api):
            def gate(event, ctx):
                count[0] += 1
                return {"block": True, "reason": f"call {count[0]} of {event.tool_name}"}
            api.on("tool_call", gate, tool="bash")
    """)
    if command.trusted:
        approve(command.project)
    stub = [sys.executable, "-I", "-S", write_stub(agent)]
    [found] = agent.found(agent.install({}, stub, [gate_of(agent)]))
    entry, layout = found.entry, agent.layout
    line = entry[layout.command]
    words = [line, *entry[layout.args]] if layout.args in entry else ["sh", "-c", line]
    for number in (1, 2):
        done = subprocess.run(
            words,
            input=json.dumps(call_of(agent, command)),
            capture_output=True,
            text=True,
            timeout=60,
            cwd=command.project,
            check=True,
        )
        assert denies(agent, done.stdout, f"call {number} of bash")
    assert Path(stub[-1]).name in str(found.entry)
