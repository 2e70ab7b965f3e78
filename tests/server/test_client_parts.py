"""The parts of the client that need no server: what it takes for an answer, and how it reads and writes texts."""

from __future__ import annotations

import json
import os
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.server import client
from agent_hooks.server.client_config import ClientConfig
from agent_hooks.server.stub import config_of
from other_agent import BRIDGE


def test_a_configuration_has_each_fact_that_the_client_reads() -> None:
    """The generated file holds it as a plain dictionary, which no type checker sees."""
    assert set(config_of(BRIDGE)) == set(ClientConfig.__annotations__)


@pytest.mark.parametrize(
    ("line", "answer"),
    [(b"[0, {}]\n", (b"{}\n", 0)), (b'[2, {"a": "[1, {}]"}]\n', (b'{"a": "[1, {}]"}\n', 2))],
)
def test_an_answer_is_a_text_for_the_agent_and_an_exit_code(line: bytes, answer: tuple[bytes, int]) -> None:
    """Only the codes 0 and 2 mean something to an agent."""
    assert client._answer(line) == answer


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"error": "no \\u00e9"}\n', "no é"),
        (b'{"error": "no end\n', "the server answered"),
        (b'{"error": ""}\n', "the server answered"),
        (b"[1, {}]\n", "the server answered"),
        (b"[0, []]\n", "the server answered"),
        (b"[0, {}\n", "the server answered"),
        (b"[0, {}]\n[0, {}]\n", "the server answered"),
        (b"\xff\n", "the server answered"),
        (b"\n", "the server answered"),
    ],
)
def test_any_other_line_is_no_answer(line: bytes, reason: str) -> None:
    """The client refuses a gate then, and gives the reason of the server if it has one."""
    with pytest.raises(client._FailedError, match=reason):
        client._answer(line)


@given(st.text(st.characters(codec="utf-8")))
def test_a_text_is_quoted_as_json(text: str) -> None:
    """Each text comes back as it was."""
    assert json.loads(client._quoted(text)) == text


def test_a_line_comes_in_parts_and_ends_with_the_server() -> None:
    """A server that ends within a line has given no answer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"the en")
        theirs.sendall(b"d\n")
        assert client._line(ours, b"this is ") == b"this is the end\n"
        theirs.sendall(b"half a line")
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(client._FailedError, match="the server ended"):
            client._line(ours, b"")


def write_and_close(descriptor: int, data: bytes) -> None:
    """Write all bytes to a descriptor, and close it."""
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


@pytest.mark.parametrize("size", [0, 1 << 20, (1 << 20) + 1])
def test_a_payload_is_read_to_its_end_and_refused_above_the_limit(size: int) -> None:
    """An agent whose write fails might run the tool."""
    reading, writing = os.pipe()
    former = os.dup(0)
    try:
        os.dup2(reading, 0)
        # A pipe holds less than the payload.
        writer = threading.Thread(target=write_and_close, args=(writing, b"x" * size))
        writer.start()
        if size > 1 << 20:
            with pytest.raises(client._FailedError, match="larger than 1 MiB"):
                client._payload(1 << 20)
        else:
            assert client._payload(1 << 20) == b"x" * size
        writer.join()
    finally:
        os.dup2(former, 0)
        os.close(former)
        os.close(reading)


def test_each_project_and_each_home_has_a_place_of_its_own() -> None:
    """All servers of one home share the beginning of their names, by which they are found."""
    config = config_of(BRIDGE)
    directory, name = client.place(config, "/a")
    assert directory == client.directory()
    other = client.place(config, "/b")[1]
    assert other != name
    assert other.partition("-")[0] == name.partition("-")[0]
    elsewhere = client.place({**config, "home": "/another/home"}, "/a")[1]
    assert elsewhere.partition("-")[0] != name.partition("-")[0]
