"""`agent-hooks run` with real models, over real HTTP, with real tools and hooks."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_server import KEY, KINDS, Fail, ModelServer, Say
from running import Command
from support import PATIENCE

GATE = """
    from agent_hooks import Block

    def register(api):
        @api.on("tool_call", tool="bash")
        async def gate(event, ctx):
            if "rm" in event.input["command"]:
                return Block("no deleting")
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Give a model server."""
    with ModelServer() as running:
        yield running


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give each kind of real model, its variables set for the programs that the test starts."""
    for name, value in server.environment(str(request.param)).items():
        monkeypatch.setenv(name, value)
    return str(request.param)


def session_of(project: Path) -> str:
    """Return the text of the one session file."""
    (file,) = (project / ".agent" / "sessions").glob("*.jsonl")
    return file.read_text()


def test_a_conversation_with_tools_on_real_files_and_a_hook_that_blocks_one(
    command: Command, kind: str, server: ModelServer
) -> None:
    """The calls run in parallel, the model gets the block, an overloaded server is tried again, and an answer comes."""
    command.add_hook(GATE)
    (command.project / "notes.txt").write_text("buy milk\n")
    server.play(
        Say("Reading.", thinking="First look.", calls=[("read", {"path": "notes.txt"}), ("ls", {"path": "."})]),
        Fail(429, "slow down", {"retry-after": "0"}),
        Say(calls=[("bash", {"command": "rm notes.txt"}), ("write", {"path": "done.txt", "content": "milk bought\n"})]),
        Say("I could not delete it."),
    )

    done = command("run", "--model", f"{kind}:some-model", "--thinking", "low", "Tidy up.")

    assert done.stdout == "I could not delete it.\n"
    for line in (
        "• read notes.txt → ok",
        f"warning: {kind}:some-model: HTTP 429: slow down; trying again in 0 s (1 of 3)",
        "• bash rm notes.txt → blocked: no deleting (.agent/hooks/hook.py)",
        '• write done.txt {"content":"milk bought\\n"} → ok',
    ):
        assert line in done.stderr
    assert (command.project / "notes.txt").exists()
    assert (command.project / "done.txt").read_text() == "milk bought\n"

    shown = [json.dumps(request.body) for request in server.requests]
    assert ["buy milk" in text for text in shown] == [False, True, True, True]
    assert ["no deleting" in text for text in shown] == [False, False, False, True]
    saved = session_of(command.project)
    entries = [json.loads(line) for line in saved.splitlines()]
    assert [entry["type"] for entry in entries[:4]] == ["session", "model_change", "thinking_level_change", "message"]
    assert (entries[1]["provider"], entries[1]["modelId"], entries[2]["thinkingLevel"]) == (kind, "some-model", "low")
    assert KEY not in saved + done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["anthropic", "openai", "google"], indirect=True)  # a kind of errors each
def test_a_failure_ends_the_run_with_one_clear_line_and_no_key(
    command: Command, kind: str, server: ModelServer
) -> None:
    """The key is neither on the screen nor in the JSON nor in the session; the exit code is 1."""
    server.play(Fail(401, f"invalid key: {KEY}"))
    done = command("run", "--json", "--model", f"{kind}:some-model", "hello", code=1)
    assert f"the model failed: {kind}:some-model: HTTP 401: invalid key: ***; check the key in " in done.stderr
    assert '"agent_end"' in done.stdout
    assert KEY not in session_of(command.project) + done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["anthropic"], indirect=True)
def test_an_interrupt_closes_the_connection_to_the_model(command: Command, kind: str, server: ModelServer) -> None:
    """The server sees it, and the run ends as interrupted."""
    server.play(Say("A long story, of which nobody hears the end", hang_after=6))
    running = command.start("run", "--model", f"{kind}:some-model", "tell me")
    try:
        assert server.hanging.wait(PATIENCE)
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=PATIENCE)
    finally:
        if running.poll() is None:
            running.kill()
            running.communicate()
    assert (running.returncode, "interrupted" in stderr) == (130, True)
    assert server.gone.wait(PATIENCE)


def test_a_missing_key_is_wrong_usage(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """It exits 2 before any hook has run."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    done = command("run", "--model", "anthropic:some-model", "hello", code=2)
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_a_thinking_level_that_is_none_is_wrong_usage(command: Command) -> None:
    """The four levels are named."""
    done: subprocess.CompletedProcess[str] = command("run", "--thinking", "hard", "hello", code=2)
    assert "'off', 'low', 'medium', 'high'" in done.stderr
