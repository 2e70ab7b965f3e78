"""The example hooks that send messages: real files, real HTTP, a real session."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from agent_hooks import HookError, UserMessage
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.models import open_model
from agent_hooks.host.runs import InboxLimits
from agent_hooks.host.session import Session
from agent_hooks.testing import MakeRunner, ScriptedUI
from agent_hooks.values.content import text_of_content
from support import PATIENCE, EchoTool, SilentView

pytestmark = pytest.mark.anyio

FILE = "examples/hooks/file_trigger.py"
WEB = "examples/hooks/webhook.py"


class Listening(SilentView):
    """A view that keeps the messages to the agent and reports each new one."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._more = anyio.Event()

    def run_started(self, text: str, source: str | None) -> None:
        assert source is not None
        self.told.append(text)
        self._more.set()

    def injected(self, text: str, source: str | None) -> None:
        self.run_started(text, source)

    async def until(self, count: int) -> list[str]:
        """Wait for so many messages."""
        with anyio.fail_after(PATIENCE):
            while len(self.told) < count:
                await self._more.wait()
                self._more = anyio.Event()
        return self.told


class Running:
    """A session with one example, with its view and its notifications."""

    def __init__(self, project: Path, ui: ScriptedUI) -> None:
        self.view = Listening()
        self.errors: list[HookError] = []
        self.notes = ui.asked
        self.trigger = project / ".agent" / "trigger.txt"
        self.token = project / ".agent" / "webhook" / "token"


Begin = Callable[[str], Any]


@pytest.fixture
def session(project: Path, hook_runner: MakeRunner) -> Begin:
    """Begin a session with one example hook."""

    @asynccontextmanager
    async def begin(hook: str) -> AsyncIterator[Running]:
        ui = ScriptedUI()
        on = Running(project, ui)
        async with await hook_runner(hook, ui=ui, cwd=project) as runner:
            runner.on_error(on.errors.append)
            async with SessionHost(
                runner=runner,
                model=open_model("puppet"),
                tools=[EchoTool()],
                session=Session(cwd=str(project)),
                view=on.view,
            ) as host:
                yield on
                with anyio.fail_after(PATIENCE):
                    await host.wait_idle()
                said = [text_of_content(m.content) for m in host.messages if isinstance(m, UserMessage)]
            assert said == on.view.told

    return begin


# ---- a file


async def emptied(path: Path) -> None:
    """Wait until a file is empty."""
    with anyio.fail_after(PATIENCE):
        while path.read_text():
            await anyio.sleep(0.01)


async def test_what_is_written_to_the_trigger_file_is_sent_and_the_file_emptied(session: Begin) -> None:
    """The message has the stripped text and the file's path, each time; an empty file sends no message."""
    async with session(FILE) as on:
        assert on.notes == [("notify", f"watching {on.trigger}", "info")]
        on.trigger.write_text("\n  run the tests\n")
        assert await on.view.until(1) == [f"Message from {on.trigger}:\nrun the tests"]
        await emptied(on.trigger)
        on.trigger.write_text("run the tests\n")
        await on.view.until(2)
        await emptied(on.trigger)
        on.trigger.write_bytes(b"caf\xe9")
        assert (await on.view.until(3))[2].endswith("\ncaf\ufffd")
    assert on.errors == []
    assert on.trigger.read_text() == ""


async def test_an_editor_may_replace_the_file(session: Begin) -> None:
    """An editor moves a new file over the old one, more than once."""
    async with session(FILE) as on:
        for number in (1, 2, 3):
            new = on.trigger.with_name(f"new{number}")
            new.write_text(f"message {number}")
            new.replace(on.trigger)
            assert (await on.view.until(number))[-1].endswith(f"\nmessage {number}")
            await emptied(on.trigger)
        on.trigger.unlink()
        on.trigger.write_text("after it was deleted")
        assert (await on.view.until(4))[-1].endswith("after it was deleted")


async def test_what_was_in_the_file_before_is_not_sent_until_somebody_writes(session: Begin, project: Path) -> None:
    """A checkout may bring a file with a text."""
    path = project / ".agent" / "trigger.txt"
    path.parent.mkdir()
    path.write_text("delete everything")
    async with session(FILE) as on:
        assert on.notes[0].title.endswith("trigger.txt; its present text is not sent")
        beside = path.with_name("other.txt")
        beside.write_text("something else changes")
        path.write_text("hello")
        assert await on.view.until(1) == [f"Message from {path}:\nhello"]


async def test_a_message_that_is_refused_stays_in_the_file(session: Begin) -> None:
    """There is one warning, and the message is sent when the inbox takes it."""
    async with session(FILE) as on:
        on.trigger.write_text("x" * (InboxLimits().size + 1))
        with anyio.fail_after(PATIENCE):
            while len(on.notes) < 2:
                await anyio.sleep(0.01)
        assert "the limit is 20,000,000; save it in a file" in on.notes[1].title
        assert on.notes[1].more == "warning"
        on.trigger.write_text("short")
        assert len(await on.view.until(1)) == 1
        await emptied(on.trigger)
        assert len(on.notes) == 2


async def test_a_file_that_cannot_be_emptied_is_sent_once(session: Begin, project: Path) -> None:
    """There is one warning.  The file of a running program is not writable, not even for root."""
    program = shutil.copy(shutil.which("sleep") or "", project / "program")
    running = await anyio.open_process([program, "1000"])
    try:
        async with session(FILE) as on:
            on.trigger.hardlink_to(program)
            await on.view.until(1)
            # The hook reads the file some more times and must send no second message.
            with anyio.move_on_after(1.5):
                await on.view.until(2)
            assert len(on.view.told) == 1
            assert [note.more for note in on.notes] == ["info", "warning"]
            on.trigger.unlink()
            on.trigger.write_text("now it can")
            assert (await on.view.until(2))[1].endswith("\nnow it can")
            await emptied(on.trigger)
    finally:
        running.kill()
        await running.aclose()


# ---- HTTP


@pytest.fixture(autouse=True)
def _any_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_WEBHOOK_PORT", "0")
    monkeypatch.delenv("AGENT_WEBHOOK_TOKEN", raising=False)


def address(on: Running) -> str:
    assert on.notes[0].title.startswith("listening on http://127.0.0.1:")
    return on.notes[0].title.removeprefix("listening on ")


def client(on: Running, token: str | None = None) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {token or on.token.read_text()}"}
    return httpx2.AsyncClient(base_url=address(on), headers=headers, timeout=20)


async def test_what_is_posted_is_sent(session: Begin) -> None:
    """The token of this session is readable for its owner only; an empty body sends a fixed text."""
    async with session(WEB) as on:
        assert on.token.stat().st_mode & 0o777 == 0o600
        assert len(on.token.read_text()) > 40
        async with client(on) as http:
            answer = await http.post("/", content=" café \n".encode())
            assert (answer.status_code, answer.text) == (200, "OK")
            assert await on.view.until(1) == ["café"]
            await http.post("/")
            await http.post("/", content=b"\xff")
            assert (await on.view.until(3))[1:] == ["The webhook was called without a text.", "\ufffd"]
    assert on.errors == []


async def test_nobody_gets_in_without_the_token(session: Begin) -> None:
    """Another method and another path are refused too."""
    async with session(WEB) as on, client(on) as http:
        for value in ("Bearer no", on.token.read_text(), "é"):
            answer = await http.post("/", content=b"let me in", headers={b"authorization": value.encode()})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        async with httpx2.AsyncClient(base_url=address(on)) as stranger:
            assert (await stranger.post("/", content=b"let me in")).status_code == 401
        assert (await http.get("/")).status_code == 405
        assert (await http.post("/other", content=b"x")).status_code == 404
        assert on.view.told == []


async def test_the_token_may_be_ones_own_and_a_file_that_was_there_counts_for_nothing(
    session: Begin, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout may bring a token that others know, or a link to another file."""
    folder = project / ".agent" / "webhook"
    folder.mkdir(parents=True)
    secret = project / "secret"
    secret.write_text("precious")
    for name in ("token", ".gitignore"):
        (folder / name).symlink_to(secret)
    async with session(WEB) as on, client(on, "precious") as http:
        assert (await http.post("/", content=b"x")).status_code == 401
        assert secret.read_text() == "precious"
        assert not on.token.is_symlink()
        assert on.token.with_name(".gitignore").read_text() == "*\n"
    monkeypatch.setenv("AGENT_WEBHOOK_TOKEN", "mine")
    on.token.unlink()
    async with session(WEB) as on, client(on, "mine") as http:
        assert (await http.post("/", content=b"x")).status_code == 200
        assert not on.token.exists()


async def test_too_much_is_refused_however_it_comes(session: Begin) -> None:
    """A body with its length, or in endless pieces, is refused, and the server goes on."""

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    async with session(WEB) as on, client(on) as http:
        assert (await http.post("/", content=b"x" * 64_001)).status_code == 413
        try:
            status = (await http.post("/", content=endless())).status_code
        # The server closed the connection while the request was still being sent.
        except httpx2.TransportError:
            status = 413
        assert status == 413
        assert (await http.post("/", content=b"x" * 64_000)).status_code == 200
        assert [len(text) for text in await on.view.until(1)] == [64_000]


async def test_who_sends_too_fast_is_told_so(session: Begin) -> None:
    """The limits of the inbox become an HTTP status."""
    async with session(WEB) as on, client(on) as http:
        statuses = [(await http.post("/", content=b"x")).status_code for _ in range(InboxLimits().rate)]
        assert set(statuses) == {200}
        answer = await http.post("/", content=b"x")
        assert answer.status_code == 429
        assert "one hook may send 60 messages in 60 s; the next can be sent in" in answer.text
        await on.view.until(InboxLimits().rate)


async def test_the_server_ends_with_the_session_also_while_clients_hang_on(session: Begin) -> None:
    """One client keeps its connection open, and one has not sent its whole request."""
    async with session(WEB) as on:
        port = int(address(on).rsplit(":", 1)[1].strip("/"))
        idle = client(on)
        assert (await idle.post("/", content=b"x")).status_code == 200
        slow = await anyio.connect_tcp("127.0.0.1", port)
        await slow.send(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
            + f"Authorization: Bearer {on.token.read_text()}\r\n\r\nhalf".encode()
        )
        await on.view.until(1)
    with pytest.raises(OSError, match="All connection attempts failed"):
        await anyio.connect_tcp("127.0.0.1", port)
    await idle.aclose()
    await slow.aclose()
    assert on.errors == []


async def test_a_client_that_hangs_up_sends_nothing_and_nothing_is_said_about_it(
    session: Begin, capfd: pytest.CaptureFixture[str]
) -> None:
    """Half a message is not sent, and no line about it disturbs the conversation on screen."""
    async with session(WEB) as on:
        port = int(address(on).rsplit(":", 1)[1].strip("/"))
        head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nAuthorization: Bearer {on.token.read_text()}"
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(f"{head}\r\nExpect: 100-continue\r\n\r\n".encode())
            assert (await stream.receive()).startswith(b"HTTP/1.1 100")
            await stream.send(b"half")
        async with client(on) as http:
            assert (await http.post("/", content=b"whole")).status_code == 200
    assert on.view.told == ["whole"]
    assert on.errors == []
    assert capfd.readouterr().err == ""


async def test_a_port_that_is_taken_is_a_failure_that_names_it(session: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session goes on without the webhook."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("AGENT_WEBHOOK_PORT", str(port))
        async with session(WEB) as on:
            [error] = on.errors
            assert str(port) in error.error
            assert os.strerror(98) in error.error
            assert on.notes == []
