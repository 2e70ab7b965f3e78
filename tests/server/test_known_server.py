"""A client believes no program but its server: each answer has a signature for this one request."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import anyio.to_thread
import pytest

from agent_hooks.server import client
from agent_hooks.server.control import place_of
from agent_hooks.server.files import is_server, server_key
from agent_hooks.server.stub import HELLO
from other_agent import OtherAgent
from plugged import Plugged
from server.test_plugin_link import reason_of
from server.test_server_protocol import CALL, answer_of, request, serving, stdout_of

GATE = """
def register(api):
    @api.on("tool_call")
    def judge(event, ctx):
        if event.input["command"] == "forbidden":
            return {"block": True, "reason": "not this one"}
"""
FORBIDDEN: dict[str, Any] = {"tool_input": {"command": "forbidden"}}


@pytest.fixture
def gated(agent: OtherAgent) -> OtherAgent:
    """Return an agent with a gate and a server."""
    agent.command.add_hook(GATE)
    assert agent() == {}
    return agent


def socket_of(project: Path) -> Path:
    """Return the path of the socket that a project's server has."""
    return Path(f"{place_of(str(project))}.socket")


@contextmanager
def impostor(path: Path, answer: Callable[[bytes], bytes]) -> Iterator[None]:
    """Replace a socket by a listener, which greets as a server does, and answers each line with `answer`."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.z")
        listener.listen()
        Path(f"{path}.z").rename(path)
        thread = threading.Thread(target=_serve, args=(listener, answer), daemon=True)
        thread.start()
        yield
        path.unlink(missing_ok=True)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _serve(listener: socket.socket, answer: Callable[[bytes], bytes]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, connection.makefile("rwb") as lines:
            lines.write(HELLO.encode())
            lines.flush()
            if line := lines.readline():
                lines.write(answer(line))
                lines.flush()


def reason(answer: Any) -> str:
    """Return the reason of a denial."""
    found = answer["hookSpecificOutput"]
    assert found["permissionDecision"] == "deny", found
    return str(found["permissionDecisionReason"])


def test_a_listener_without_the_key_is_not_believed(gated: OtherAgent) -> None:
    """It greets as the server does, and lets all calls through."""
    path = socket_of(gated.command.project)
    for lie in (b"[0, {}]\n", b"0" * 64 + b" [0, {}]\n", b'{"error": "no"}\n', b" [0, {}]\n"):
        with impostor(path, lambda line, lie=lie: lie):  # type: ignore[misc]  # callers give one argument
            said = reason(gated(**FORBIDDEN))
            assert "another program answers" in said
            assert f"remove {path}" in said


def test_a_listener_that_relays_changes_neither_request_nor_answer(gated: OtherAgent) -> None:
    """The real server signs for the request that it got, and for the answer that it gave."""
    path = socket_of(gated.command.project)
    real = path.with_suffix(".real")
    path.rename(real)

    def relayed(line: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(real))
            server.sendall(line)
            with server.makefile("rb") as lines:
                assert lines.readline() == HELLO.encode()
                return lines.readline()

    with impostor(path, relayed):
        assert gated() == {}
        assert reason(gated(**FORBIDDEN)).startswith("not this one")
    with impostor(path, lambda line: relayed(line.replace(b"forbidden", b"ls"))):
        assert "another program" in reason(gated(**FORBIDDEN))
    with impostor(path, lambda line: relayed(line).partition(b" ")[0] + b" [0, {}]\n"):
        assert "another program" in reason(gated(**FORBIDDEN))
    kept: list[bytes] = []
    with impostor(path, lambda line: kept.append(relayed(line)) or kept[0]):  # type: ignore[func-returns-value]
        assert gated() == {}
        # The answer to the same request, some moments ago.
        assert "another program" in reason(gated())
    real.rename(path)


@pytest.mark.parametrize("damage", ["missing", "readable", "short", "link", "fifo", "directory"])
def test_without_a_good_key_no_server_is_asked(damage: str, gated: OtherAgent, home: Path) -> None:
    """A process of its own judges the call.  Only the next server makes another key."""
    key = home / ".agent" / client.KEY
    text = key.read_bytes()
    assert len(text) == client.KEY_SIZE
    assert key.stat().st_mode & 0o777 == 0o600
    if damage == "readable":
        key.chmod(0o644)
    elif damage == "short":
        key.write_bytes(text[1:])
    else:
        key.unlink()
    if damage == "link":
        (home / "theirs").write_bytes(text)
        (home / "theirs").chmod(0o600)
        key.symlink_to(home / "theirs")
    elif damage == "fifo":
        os.mkfifo(key, 0o600)
    elif damage == "directory":
        key.mkdir()
    assert reason(gated(**FORBIDDEN)).startswith("not this one")
    server = gated.server()
    assert server is not None
    # Only the first event, from the fixture, reached it.
    assert server["events"] == 1


def test_servers_that_start_at_once_have_one_key(home: Path) -> None:
    """The first one makes it."""
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(server_key())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(set(found)) == 1
    assert len(found) == 8


def test_a_plugin_believes_its_server_only(command: Any) -> None:
    """pi, OpenCode and OpenClaw have the same link."""
    command.add_hook(GATE)
    with Plugged(command) as plugged:
        assert "value" not in plugged.bash("ls")
        path = socket_of(command.project)
        with impostor(path, lambda line: b"[0, {}]\n"):
            assert "another program answers" in reason_of(plugged.bash("forbidden"))


def test_no_agent_reads_or_replaces_the_key(command: Any, home: Path) -> None:
    """Neither by a file tool nor by a command."""
    key = home / ".agent" / client.KEY
    for line in (f"cat {key}", f"cp {key} /tmp/a", f"mv {key} a", f"echo x > {key}", f"rm {key}"):
        done = command("guard", "explain", line, code=None)
        verdict = done.stdout.partition("verdict at level")[2]
        assert "block by read-records" in verdict or "block by write-guard-settings" in verdict, (line, done.stdout)


async def test_a_server_whose_socket_was_replaced_raises_the_alarm_and_stays(tmp_path: Path, home: Path) -> None:
    """It serves under the name of its socket again, and its sessions are stopped until the user lifts the alarm."""
    path = tmp_path / "s.socket"
    call = request({**CALL, "session_id": "s"})
    async with serving(tmp_path) as server:
        start = {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"}
        await answer_of(server, request(start, "SessionStart"))
        assert stdout_of(await answer_of(server, call)) == {}
        assert await anyio.to_thread.run_sync(is_server, str(path), server_key())
        with impostor(path, lambda line: b"0 {}\n"):
            server._maintain_all(monotonic())
            said = reason(stdout_of(await answer_of(server, call)))
        assert f"another program took the place of {path}" in said


def test_a_listener_that_never_ends_its_answer_is_no_server(tmp_path: Path) -> None:
    """The server gives it about a second."""
    path = tmp_path / "s.socket"
    with impostor(path, lambda line: b"no end"):
        assert not is_server(str(path), b"k" * client.KEY_SIZE)
