"""Events that arrive by HTTP: the requests, the answers, and the ports."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base.installation import Address
from agent_hooks.installs.plan import new_address
from agent_hooks.server.http import HttpConnection
from agent_hooks.server.lines import Connection, LineServer, Respond
from agent_hooks.server.ports import Ports
from agent_hooks.server.server import Server
from server.test_server_protocol import CALL, request, serving, stdout_of
from support import PATIENCE, hook_on

CLAUDE = open_bridge("claude-code")
TOKEN = "s3cret"
PATH = "/agent-hooks/claude-code/Notification"
ENTRY = {"type": "http", "url": f"http://127.0.0.1:1{PATH}"}
BATCH = {"hook_event_name": "PostToolBatch", "session_id": "s"}


def post(body: str = "{}", *headers: str, path: str = PATH, method: str = "POST", token: str = TOKEN) -> bytes:
    """Return a request."""
    given = [f"Authorization: Bearer {token}", f"Content-Length: {len(body.encode())}", *headers]
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *given, "", body]).encode()


# ---- the wire, without a server behind it


class Wire:
    """A connection to a server that echoes each payload."""

    def __init__(self, lines: LineServer, client: socket.socket) -> None:
        self._lines = lines
        self.client = client
        self.taken: list[Any] = []

    def say(self, data: bytes) -> None:
        """Send data, and let the server answer it."""
        with suppress(BrokenPipeError, ConnectionResetError):  # it was hung up on
            self.client.sendall(data)
        for _ in range(3):
            self._lines.poll(0)

    def heard(self) -> bytes:
        """Return the data that has arrived."""
        try:
            return self.client.recv(1 << 22)
        except BlockingIOError:
            return b""

    def hung_up(self) -> bool:
        """Return whether the server has closed the connection."""
        try:
            return self.client.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True


unix_socket = partial(socket.socket, socket.AF_UNIX)


@contextmanager
def wired(*, longest: int = 1 << 20) -> Iterator[Wire]:
    """Yield a client of a server that echoes."""
    with tempfile.TemporaryDirectory() as folder, unix_socket() as unix, unix_socket() as door, unix_socket() as client:
        for listening, name in ((unix, "lines"), (door, "http")):
            listening.bind(str(Path(folder, name)))
            listening.listen()
        lines = LineServer(unix, lambda connection, line: take(connection, line), greeting=b"hello\n", longest=longest)
        lines.listen(door, partial(HttpConnection, token=TOKEN))
        # Data that was sent over a Unix socket has arrived.
        client.connect(door.getsockname())
        client.setblocking(False)
        wire = Wire(lines, client)

        def take(connection: Connection, line: bytes) -> bytes:
            try:
                head, payload = json.loads(line)
            except ValueError:
                return b'{"error": "no request"}\n'
            wire.taken.append((head["do"], head["agent"], head["event"], payload))
            return f"[0, {json.dumps({'payload': payload})}]\n".encode()

        try:
            yield wire
        finally:
            lines.stop_listening()
            lines.close()


def statuses(said: bytes) -> list[int]:
    """Return the status of each response."""
    return [int(line.split(b" ")[1]) for line in said.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


@given(st.lists(st.text(), min_size=1, max_size=5), st.integers(1, 400))
@example(["\n", "]"], 1)
def test_each_payload_is_answered_once_and_in_order_however_it_arrives(texts: list[str], size: int) -> None:
    """The answer is JSON, and never an empty body, which an agent takes for an approval."""
    said = b"".join(
        post(json.dumps({"text": text}), path=f"/agent-hooks/agent/Event{at}") for at, text in enumerate(texts)
    )
    with wired() as wire:
        answers = b""
        for at in range(0, len(said), size):
            wire.say(said[at : at + size])
            answers += wire.heard()
        assert wire.taken == [("tell", "agent", f"Event{at}", {"text": text}) for at, text in enumerate(texts)]
    for text in texts:
        answer, _, answers = answers.partition(b"}}\n")
        assert statuses(answer) == [200]
        head, _, body = answer.partition(b"\r\n\r\n")
        assert f"content-length: {len(body) + 3}".encode() in head.lower()
        assert json.loads(body + b"}}") == {"payload": {"text": text}}
    assert answers == b""


def test_what_surrounds_the_json_of_a_body_does_not_matter() -> None:
    """As for the payloads of commands."""
    with wired() as wire:
        wire.say(post('\ufeff{"text": "a"}\r\n\0'))
        assert statuses(wire.heard()) == [200]
        assert wire.taken == [("tell", "claude-code", "Notification", {"text": "a"})]


ODD = st.sampled_from(
    [
        *(b"POST ", b"GET ", b"HEAD ", b"CONNECT ", b"OPTIONS ", PATH.encode(), b" HTTP/1.1\r\n", b" HTTP/1.0\r\n"),
        *(b"Host: x\r\n", b"Content-Length: 2\r\n", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n"),
        *(
            b"Authorization: Bearer wrong\r\n",
            b"Upgrade: websocket\r\nConnection: upgrade\r\n",
            b"\r\n",
            b"{}",
            b"0\r\n",
        ),
        *(
            b"Expect: 100-continue\r\n",
            b"Connection: close\r\n",
            post(token="wrong"),
            post(method="HEAD", token="wrong"),
        ),
    ]
)


@given(st.lists(ODD | st.binary(max_size=50), max_size=12), st.booleans())
def test_whatever_arrives_without_the_token_reaches_nobody(parts: list[bytes], whole: bool) -> None:
    """The next client is served as usual."""
    with wired() as wire:
        for part in [b"".join(parts)] if whole else parts:
            wire.say(part)
        assert wire.taken == []
        assert 200 not in statuses(wire.heard())


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (post(method="GET"), 405),
        (post(method="HEAD"), 405),
        (post(path="/"), 404),
        (post(path="/agent-hooks/claude-code/Stop/more"), 404),
        (post(path="/other/claude-code/Stop"), 404),
        (post("no JSON"), 500),
        (post(""), 500),
        (post("1, 2"), 500),
        (post("{}] ["), 500),
    ],
)
def test_what_is_no_event_is_refused_and_the_connection_goes_on(said: bytes, status: int) -> None:
    """No agent takes the status for an answer."""
    with wired() as wire:
        wire.say(said)
        assert statuses(wire.heard()) == [status]
        assert wire.taken == []
        wire.say(post())
        assert statuses(wire.heard()) == [200]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (post("{}", "Content-Length: 3"), 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20_000, 431),
        (post("x" * 2000), 413),
        (post(token="wrong"), 401),
        (post(token="wrong") * 9, 401),
        (post(token="wrong", method="CONNECT"), 401),
        # The body has not come yet.
        (post(token="wrong").partition(b"\r\n\r\n")[0] + b"\r\n\r\n", 401),
        (post("{}", path="/").replace(b"Authorization", b"X"), 401),
    ],
)
def test_what_is_no_http_or_too_much_or_without_the_token_ends_the_connection(said: bytes, status: int) -> None:
    """The client gets the status first.  Any user of this machine can connect, and must cost no more than one request."""
    with wired(longest=1000) as wire:
        wire.say(said)
        assert statuses(wire.heard()) == [status]
        assert wire.hung_up()
        assert wire.taken == []


def test_who_asks_first_whether_a_body_is_wanted_is_told() -> None:
    """curl asks so before it sends a large body."""
    with wired() as wire:
        said = post("{}", "Expect: 100-continue")
        wire.say(said[:-2])
        assert statuses(wire.heard()) == [100]
        wire.say(said[-2:])
        assert statuses(wire.heard()) == [200]


def test_who_wants_the_connection_closed_has_it_closed_after_the_whole_answer() -> None:
    """The client may read the answer slowly."""
    with wired(longest=1 << 24) as wire:
        text = "x" * 6_000_000
        wire.client.setblocking(True)
        sender = threading.Thread(target=wire.client.sendall, args=[post(json.dumps(text), "Connection: close")])
        sender.start()
        while sender.is_alive():
            wire.say(b"")
        wire.client.setblocking(False)
        answer = b""
        while not answer.endswith(b'x"}\n'):
            wire.say(b"")
            answer += wire.heard()
        wire.say(b"")
        assert wire.hung_up()
        assert len(answer) > len(text)


# ---- ports


class Listening(Ports):
    """Ports that keep their server."""

    def __init__(self, lines: LineServer, project: str) -> None:
        super().__init__(lines, project)
        self.lines = lines


@contextmanager
def ports_of(project: Path, take: Respond = lambda connection, line: b"") -> Iterator[Listening]:
    """Yield the ports of a project."""
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(project / "socket"))
        unix.listen()
        lines = LineServer(unix, take, greeting=b"", longest=1000)
        try:
            yield Listening(lines, str(project))
        finally:
            lines.stop_listening()
            lines.close()


def write(project: Path, address: Address | None) -> Path:
    """Write settings with an address."""
    path = project / ".claude/settings.local.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(CLAUDE.install({}, ["run"], [row.name for row in CLAUDE.describe()], address)))
    return path


def is_open(address: Address) -> bool:
    """Return whether a program listens."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", address.port)) == 0


def test_a_port_is_open_as_long_as_settings_name_it(tmp_path: Path) -> None:
    """Broken settings name no port."""
    address, other = new_address(), new_address()
    with ports_of(tmp_path) as ports:
        ports.refresh()
        for named, there in ((address, True), (None, False), (address, True), (other, False), (address, True)):
            path = write(tmp_path, named)
            ports.refresh()
            assert is_open(address) == there
            assert is_open(other) == (named == other)
        odd = json.dumps({"hooks": {"Stop": [{"hooks": [ENTRY | {"timeout": 10**400}]}]}})
        for text in ("{", "[]", '{"hooks": {"Stop": 1}}', "\udcff", "[" * 100_000, odd):
            path.write_bytes(text.encode(errors="surrogateescape"))
            ports.refresh()
            assert not is_open(address)
        write(tmp_path, address)
        ports.refresh()
        assert is_open(address)
        path.unlink()
        ports.refresh()
        assert not is_open(address)


def test_a_port_that_another_program_has_is_told_once_and_taken_when_it_is_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The events until then are lost."""
    with socket.create_server(("127.0.0.1", 0)) as other, ports_of(tmp_path) as ports:
        address = Address(other.getsockname()[1], TOKEN)
        write(tmp_path, address)
        with caplog.at_level(logging.WARNING):
            ports.refresh()
            ports.refresh()
        assert [each.getMessage() for each in caplog.records] == [
            f"port {address.port}: Address already in use; events that are posted there are lost"
        ]
        other.close()
        assert not is_open(address)
        ports.refresh()
        assert is_open(address)


def test_what_cannot_be_read_for_the_moment_changes_nothing(tmp_path: Path) -> None:
    """The server does not wait for the file."""
    address = new_address()
    with ports_of(tmp_path) as ports:
        path = write(tmp_path, address)
        ports.refresh()
        path.rename(tmp_path / "kept")
        os.mkfifo(path)
        ports.refresh()
        assert is_open(address)
        path.unlink()
        ports.refresh()
        assert not is_open(address)


def test_without_a_descriptor_left_a_port_opens_later(tmp_path: Path) -> None:
    """The server does not fail."""
    script = """
import os, resource, socket, sys
from contextlib import contextmanager
from pathlib import Path
from server.test_server_http import is_open, new_address, ports_of, write

@contextmanager
def full():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open("/", os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)

address, project = new_address(), Path(sys.argv[1])
with ports_of(project) as ports:
    write(project, address)
    with socket.create_server(("127.0.0.1", address.port)):
        with full():
            ports.refresh()  # the settings cannot be read
        ports.refresh()
        with full():
            ports.refresh()  # there is no socket for the port
    assert not is_open(address)
    ports.refresh()
    assert is_open(address)
"""
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60, cwd=Path(__file__).parent.parent
    )


def test_who_came_by_a_port_that_is_closed_is_hung_up_on_once_it_is_answered(tmp_path: Path) -> None:
    """The client's token is no longer valid."""
    address = new_address()
    waiting: list[Connection] = []
    with ports_of(tmp_path, lambda connection, line: waiting.append(connection)) as ports:
        write(tmp_path, address)
        ports.refresh()
        with (
            socket.create_connection(("127.0.0.1", address.port), PATIENCE) as idle,
            socket.create_connection(("127.0.0.1", address.port), PATIENCE) as busy,
        ):
            busy.sendall(post(token=address.token) * 2)
            while not waiting:
                ports.lines.poll(PATIENCE)
            write(tmp_path, None)
            ports.refresh()
            assert idle.recv(1) == b""
            waiting[0].answer(b"[0, {}]\n")
            assert statuses(busy.recv(1 << 16)) == [200]
            assert busy.recv(1) == b""
        assert len(waiting) == 1


def test_who_knocks_just_when_a_port_is_closed_disturbs_nobody(tmp_path: Path) -> None:
    """One `poll` returns both events."""
    address = new_address()

    def take(connection: Connection, line: bytes) -> bytes:
        ports.refresh()
        return b"done\n"

    with ports_of(tmp_path, take) as ports:
        write(tmp_path, address)
        ports.refresh()
        with unix_socket() as client, socket.socket() as late:
            client.connect(str(tmp_path / "socket"))
            ports.lines.poll(PATIENCE)
            write(tmp_path, None)
            client.sendall(b"look\n")
            late.connect(("127.0.0.1", address.port))
            ports.lines.poll(PATIENCE)
            assert client.recv(10) == b"done\n"
            with unix_socket() as other:
                other.connect(str(tmp_path / "socket"))
                other.sendall(b"look\n")
                ports.lines.poll(PATIENCE)
                other.settimeout(PATIENCE)
                assert other.recv(10) == b"done\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no 127.0.0.2")
def test_only_this_machine_is_heard(tmp_path: Path) -> None:
    """The server does not listen at other addresses."""
    address = new_address()
    with ports_of(tmp_path) as ports:
        write(tmp_path, address)
        ports.refresh()
        # This fails if the server listens on every address.
        with socket.create_server(("127.0.0.2", address.port)):
            assert is_open(address)


# ---- the server behind it


class TestServer:
    """Over real sockets."""

    async def test_what_decides_nothing_reaches_the_session_that_commands_opened(self, tmp_path: Path) -> None:
        """The session has its hooks and its environment, in which a person is present."""
        seen = []

        async def turn(event: Any, ctx: Any) -> None:
            seen.append((event.type, ctx.session_id))

        async def judge(event: Any, ctx: Any) -> None:
            seen.append((event.type, await ctx.ui.confirm("Sure?", "this")))

        hooks = hook_on("turn_end", turn), hook_on("tool_call", judge)
        async with posting(tmp_path, *hooks) as (server, tell):
            attended = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}
            await server.handle(request({"hook_event_name": "Stop", "session_id": "s"}, "Stop", environment=attended))
            assert await tell(BATCH) == (200, {})
            answer = stdout_of(await server.handle(request({**CALL, "session_id": "s"}, environment=attended)))
            assert answer["hookSpecificOutput"]["permissionDecision"] == "ask"
        assert seen == [("turn_end", "s")]

    async def test_what_comes_while_a_hook_waits_is_answered_after_it(self, tmp_path: Path) -> None:
        """The answers come on the same connection, by HTTP and by lines."""

        async def wait(event: Any, ctx: Any) -> None:
            await anyio.sleep(0)

        async with posting(tmp_path, hook_on("turn_end", wait), hook_on("tool_call", wait)) as (server, _):
            [address] = {entry.address for entry in installed(tmp_path)} - {None}
            reader, writer = await asyncio.open_unix_connection(f"{server.path}.socket")
            writer.write((request({**CALL, "session_id": "s"}) + b"\n") * 3)
            await reader.readline()
            assert [stdout_of(await reader.readline()) for _ in range(3)] == [{}] * 3
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
            path = f"/agent-hooks/claude-code/{BATCH['hook_event_name']}"
            writer.write(post(json.dumps(BATCH), token=address.token, path=path) * 3)
            assert [await read_status(reader) for _ in range(3)] == [200] * 3
            writer.close()

    async def test_a_session_that_no_command_has_told_of_is_not_opened(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The event holds neither the project nor whether a person is present."""
        seen: list[object] = []

        async def turn(event: Any, ctx: Any) -> None:
            seen.append(event)

        async with posting(tmp_path, hook_on("turn_end", turn)) as (server, tell):
            assert await tell(BATCH) == (200, {})
            assert server.status()["sessions"] == 0
        assert seen == []
        assert "PostToolBatch was dropped: no command has opened session s yet" in caplog.text

    @pytest.mark.parametrize("name", [row.name for row in CLAUDE.describe() if not row.decides_nothing] + ["New"])
    async def test_what_decides_something_is_not_for_http(self, name: str, tmp_path: Path) -> None:
        """A gate is refused, so that an entry written by hand lets nothing pass."""
        async with posting(tmp_path) as (server, tell):
            await server.handle(request({"hook_event_name": "Stop", "session_id": "s"}, "Stop"))
            call = {"tool_response": {}, "error": "x", "prompt": "x", **CALL}
            status, said = await tell({**call, "hook_event_name": name, "session_id": "s"})
        assert status == 200
        if name in ("PreToolUse", "PreSkillShellCommand"):
            assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
            assert "install claude-code --http" in said["hookSpecificOutput"]["permissionDecisionReason"]
        elif name == "UserPromptSubmit":
            assert said["decision"] == "block"
        else:
            assert set(said) <= {"systemMessage"}

    async def test_the_port_opens_at_once_when_the_server_is_told_to_look(self, tmp_path: Path) -> None:
        """`install` sends this request."""
        async with serving(tmp_path) as server:
            address = new_address()
            write(tmp_path, address)
            assert not is_open(address)
            await server.handle(b'[{"do": "look"}, null]')
            assert is_open(address)
        assert not is_open(address)

    async def test_who_holds_all_connections_open_keeps_nobody_from_being_answered(self, tmp_path: Path) -> None:
        """Every user of this machine can connect, so the oldest client without the token makes room for the next one."""
        async with posting(tmp_path) as (server, tell):
            address = next(entry.address for entry in installed(tmp_path) if entry.address)
            await server.handle(request({"hook_event_name": "Stop", "session_id": "s"}, "Stop"))

            def connected(stack: ExitStack) -> socket.socket:
                return stack.enter_context(socket.create_connection(("127.0.0.1", address.port), PATIENCE))

            def event(client: socket.socket) -> int:
                client.sendall(post(json.dumps(BATCH), token=address.token))
                return statuses(client.recv(1000))[0]

            def crowd() -> list[int]:
                with ExitStack() as stack:
                    known = connected(stack)
                    said = [event(known)]
                    clients = [connected(stack) for _ in range(80)]
                    assert [client.recv(1) for client in clients[:17]] == [b""] * 17  # closed to make room
                    said += [event(known), event(connected(stack))]
                    unix = stack.enter_context(unix_socket())
                    unix.settimeout(PATIENCE)
                    unix.connect(f"{server.path}.socket")
                    unix.sendall(request() + b"\n")
                    with unix.makefile("rb") as answers:
                        answers.readline()  # the version
                        assert stdout_of(answers.readline()) == {}
                    return said

            assert await anyio.to_thread.run_sync(crowd) == [200] * 3
            assert await tell(BATCH) == (200, {})

    async def test_where_all_connections_are_the_agents_own_the_next_one_has_to_go(self, tmp_path: Path) -> None:
        """No trusted client loses its connection."""
        async with posting(tmp_path):
            address = next(entry.address for entry in installed(tmp_path) if entry.address)

            def crowd() -> bytes:
                with ExitStack() as stack:
                    for _ in range(64):
                        client = stack.enter_context(socket.create_connection(("127.0.0.1", address.port), PATIENCE))
                        client.sendall(post("{", token=address.token))
                        assert statuses(client.recv(1000)) == [500]
                    last = stack.enter_context(socket.create_connection(("127.0.0.1", address.port), PATIENCE))
                    return last.recv(1)

            assert await anyio.to_thread.run_sync(crowd) == b""


async def read_status(reader: asyncio.StreamReader) -> int:
    """Return the status of the next response, whose body is a line."""
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readline()
    return int(head.split(b" ")[1])


def installed(project: Path) -> Any:
    """Return the entries of a project."""
    return CLAUDE.installed(json.loads((project / ".claude/settings.local.json").read_text()))


@asynccontextmanager
async def posting(path: Path, *hooks: Any) -> AsyncIterator[tuple[Server, Any]]:
    """Run a server with a port, and yield it with a function that posts an event to it."""
    address = new_address()
    write(path, address)

    def told(payload: dict[str, Any]) -> tuple[int, Any]:
        with closing(http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE)) as connection:
            headers = {"Authorization": f"Bearer {address.token}"}
            event = payload["hook_event_name"]
            connection.request("POST", f"/agent-hooks/claude-code/{event}", json.dumps(payload), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    async with serving(path, *hooks) as server:

        async def tell(payload: dict[str, Any]) -> tuple[int, Any]:
            return await anyio.to_thread.run_sync(told, payload)

        yield server, tell
