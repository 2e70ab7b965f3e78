"""The server of lines: lines in pieces, many at once, slow clients, and too many clients."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.server.lines import Connection, LineServer

GREETING = b"hello\n"


@contextmanager
def listening(take: object = None, *, longest: int = 1 << 24) -> Iterator[tuple[LineServer, str]]:
    """Yield a server that echoes lines, and its path."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = str(Path(folder, "socket"))
        server.bind(path)
        server.listen(100)
        lines = LineServer(server, take or echo, greeting=GREETING, longest=longest)  # type: ignore[arg-type]  # each test knows
        try:
            yield lines, path
        finally:
            lines.stop_listening()
            lines.close()


def echo(connection: Connection, line: bytes) -> bytes:
    """Answer a line with itself."""
    return line.rstrip(b"\n") + b"\n"


def connect(path: str) -> socket.socket:
    """Return a client that does not block."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.setblocking(False)
    return client


def received(client: socket.socket) -> bytes:
    """Return the data that has arrived."""
    try:
        return client.recv(1 << 22)
    except BlockingIOError:
        return b""


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"")), min_size=1), st.integers(1, 50))
def test_each_line_is_answered_once_and_in_order_however_it_arrives(said: list[bytes], size: int) -> None:
    """The greeting comes first, and only after a line of the client."""
    text = b"".join(line + b"\n" for line in said)
    with listening() as (lines, path), connect(path) as client:
        answers = b""
        lines.poll(0)
        assert received(client) == b""
        for at in range(0, len(text), size):
            client.sendall(text[at : at + size])
            lines.poll(0)
            answers += received(client)
        assert answers == GREETING + text


def test_an_answer_larger_than_what_the_client_reads_at_once_arrives_whole() -> None:
    """Other clients get their answers meanwhile."""
    big = b"x" * 3_000_000 + b"\n"

    def take(connection: Connection, line: bytes) -> bytes:
        return big if line == b"big\n" else b"small\n"

    with listening(take) as (lines, path), connect(path) as slow, connect(path) as other:
        slow.sendall(b"big\n")
        lines.poll(0)
        lines.poll(0)
        # The answer to this line follows the one to the first.
        slow.sendall(b"more\n")
        other.sendall(b"small\n")
        while not (said := received(other)):
            lines.poll(0)
        assert said == GREETING + b"small\n"
        answer = b""
        while not answer.endswith(b"small\n"):
            answer += received(slow)
            lines.poll(0)
        assert answer == GREETING + big + b"small\n"


def test_an_answer_that_takes_longer_comes_after_the_greeting_and_is_given_up_with_its_client() -> None:
    """The client's next line waits for that answer."""
    taken: list[tuple[Connection, bytes]] = []
    ended: list[bytes] = []

    def take(connection: Connection, line: bytes) -> None:
        taken.append((connection, line))
        connection.on_close = lambda: ended.append(line)

    with listening(take) as (lines, path), connect(path) as client:
        client.sendall(b"1\n2\n")
        lines.poll(0)
        assert received(client) == GREETING
        assert [line for _, line in taken] == [b"1"]
        taken[0][0].answer(b"one\n")
        assert received(client) == b"one\n"
        assert [line for _, line in taken] == [b"1", b"2"]
        client.close()
        lines.poll(0)
        assert ended == [b"2"]
        assert taken[1][0].closed
        # The client has gone, so this answer is discarded.
        taken[1][0].answer(b"two\n")


def test_a_line_without_an_end_is_cut_off() -> None:
    """Memory is bounded."""
    with listening(longest=100_000) as (lines, path), connect(path) as client:
        sent = 0
        try:
            while sent < 10_000_000:
                sent += client.send(b"x" * 10_000)
                lines.poll(0)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert 100_000 <= sent < 1_000_000


def test_who_finds_no_room_is_answered_when_somebody_has_gone() -> None:
    """A server without a free descriptor neither ends nor runs in circles."""
    script = """
import resource
from test_server_lines import GREETING, connect, listening, received

with listening() as (lines, path):
    clients = [connect(path) for _ in range(30)]
    for client in clients:
        client.sendall(b"hello?\\n")
    used = max(client.fileno() for client in clients) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 10, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for _ in range(100):
        lines.poll(0)
    answered = [client for client in clients if received(client)]
    assert 0 < len(answered) < 30, len(answered)
    waiting = [client for client in clients if client not in answered]
    assert not lines.selector.select(0)
    for client in answered:
        client.close()
    for _ in range(100):
        lines.poll(0)
    assert sum(bool(received(client)) for client in waiting) >= len(answered)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=Path(__file__).parent)


def test_who_finds_no_room_is_answered_when_there_is_some_again() -> None:
    """Hooks use descriptors too, so this happens also without another connection."""
    script = """
import resource
from test_server_lines import GREETING, connect, listening, received

with listening() as (lines, path), connect(path) as client:
    client.sendall(b"hello?\\n")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, limits[1]))
    lines.poll(0)
    assert not lines.selector.select(0)
    lines.resume_accepting()
    lines.poll(0)
    assert not lines.selector.select(0)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    lines.resume_accepting()
    lines.poll(0)
    assert received(client) == GREETING + b"hello?\\n"
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=Path(__file__).parent)
