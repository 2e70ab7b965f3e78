"""Text on stdin beside a prompt."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from model_server import ModelServer, Say
from running import Command
from support import PATIENCE


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Give a server that answers each request with "read"."""
    with ModelServer() as running:
        for name, value in running.environment("openai").items():
            monkeypatch.setenv(name, value)
        running.play(Say("read"))
        yield running


def sent(server: ModelServer) -> str:
    """Return the last message that the model got."""
    return str(server.requests[-1].body["messages"][-1]["content"])


def test_piped_text_goes_along_with_the_prompt(command: Command, server: ModelServer) -> None:
    """As in `cat FILE | agent-hooks run PROMPT`; one line on stderr says so."""
    done = command("run", "--no-session", "--model", "openai:m", "sum this up", stdin="one\ntwo\n")
    assert sent(server) == "sum this up\n\n<stdin>\none\ntwo\n</stdin>"
    assert "2 lines of stdin go along with the prompt" in done.stderr
    assert done.stdout == "read\n"


@pytest.mark.slow
def test_a_file_as_stdin_is_read_too(command: Command, server: ModelServer) -> None:
    """Without a pipe between."""
    notes = command.project / "notes.txt"
    notes.write_bytes(b"caf\xe9\n")
    with notes.open() as file:
        line = command.line("run", "--no-session", "--model", "openai:m", "sum this up")
        subprocess.run(line, cwd=command.project, stdin=file, check=True, timeout=PATIENCE)
    assert sent(server) == "sum this up\n\n<stdin>\ncaf\ufffd\n</stdin>"


def test_a_silent_open_stdin_does_not_hang_the_run(command: Command, server: ModelServer) -> None:
    """A program that starts ours may leave its pipe open for ever."""
    line = command.line(
        "run",
        "--no-session",
        "--model",
        "openai:m",
        "hello",
        first="import agent_hooks.cli.commands.run as p; p.PATIENCE = 0.1",
    )
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            line, cwd=command.project, stdin=reading, capture_output=True, text=True, timeout=PATIENCE
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.returncode, done.stdout) == (0, "read\n")
    assert "no text came on stdin within 0.1 s" in done.stderr
    assert sent(server) == "hello"


@pytest.mark.parametrize("stdin", ["", " \n"], ids=["empty", "blank"])
def test_an_empty_stdin_adds_nothing(stdin: str, command: Command, server: ModelServer) -> None:
    """Nothing is said about it either."""
    done = command("run", "--no-session", "--model", "openai:m", "hello", stdin=stdin)
    assert sent(server) == "hello"
    assert "stdin" not in done.stderr


def test_a_prompt_of_tool_calls_leaves_stdin_alone(command: Command) -> None:
    """Each line of it is a call of the puppet, so the text would be a call."""
    done = command("run", "--no-session", "@bash echo one", stdin="@bash echo two\n")
    assert "two" not in done.stdout
