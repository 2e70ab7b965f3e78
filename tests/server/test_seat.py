"""The port for a mod: who may ask there, and what a reply proves."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread
import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.server.client import NONCE, digest_of, signature
from agent_hooks.server.files import server_key
from agent_hooks.server.mod_files import mod_key, write_mod
from agent_hooks.server.seat import REQUEST, SCHEME, Seat
from agent_hooks.server.server import Server
from server.test_server_protocol import CALL, request, serving
from support import PATIENCE, hook_on

pytestmark = pytest.mark.usefixtures("home")
CLAUDE = open_bridge("claude-code")


class Reply(NamedTuple):
    """The status and the body of a response."""

    status: int
    body: bytes


Post = Callable[..., Any]


def line_of(payload: Mapping[str, Any] = CALL) -> bytes:
    """Return a request with a nonce of its own."""
    return f'{NONCE}{os.urandom(16).hex()}", {request(payload).decode()[2:]}\n'.encode()


def signed(line: bytes, key: bytes) -> str:
    """Return the header with the signature of a request."""
    return (SCHEME + signature(key, REQUEST, digest_of(line))).decode()


@asynccontextmanager
async def seated(path: Path, *hooks: Any) -> AsyncIterator[tuple[Server, Post]]:
    """Run a server with the port of a mod, and yield it with a function that posts to the port."""
    settings = path / ".claude/settings.local.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps(CLAUDE.install({}, ["run"], ["PreToolUse"])))

    write_mod(CLAUDE)
    async with serving(path, *hooks) as server:
        port = json.loads(await server.handle(b'[{"do": "seat"}, null]'))["seat"]

        def post(line: bytes, key: bytes, headers: Mapping[str, str], target: str) -> Reply:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
                connection.request("POST", target, line, {"Authorization": signed(line, key), **headers})
                response = connection.getresponse()
                return Reply(response.status, response.read())

        async def tell(
            line: bytes, *, key: bytes | None = None, target: str = "/agent-hooks/seat", **headers: str
        ) -> Reply:
            return await anyio.to_thread.run_sync(post, line, key or mod_key(), headers, target)

        yield server, tell


class TestSeat:
    """Over real sockets."""

    async def test_a_signed_request_gets_the_signed_verdict_of_the_hooks(self, tmp_path: Path) -> None:
        """A reply to another request, and a changed one, have another signature."""
        gate = hook_on("tool_call", lambda event, ctx: {"block": True, "reason": "not this one"})
        async with seated(tmp_path, gate) as (_, post):
            line = line_of()
            reply = await post(line)
            sign, _, answer = reply.body.partition(b" ")
            assert reply.status == 200
            assert json.loads(answer)[1]["hookSpecificOutput"]["permissionDecision"] == "deny"
            assert sign == signature(mod_key(), digest_of(line), answer)
            assert sign != signature(mod_key(), digest_of(line_of()), answer)
            assert sign != signature(mod_key(), digest_of(line), answer.replace(b"deny", b"none"))

    async def test_what_another_program_posts_reaches_no_hook(self, tmp_path: Path) -> None:
        """A browser, the forwarded port of an editor, and a program without the key are refused."""
        seen = []
        async with seated(tmp_path, hook_on("tool_call", lambda event, ctx: seen.append(event))) as (_, post):
            line = line_of()
            assert (await post(line, Origin="http://127.0.0.1")).status == 403
            assert (await post(line, Host="localhost:3000")).status == 403
            assert (await post(line, target="/agent-hooks/claude-code/PreToolUse")).status == 404
            assert (await post(line, Authorization="Bearer token")).status == 401
            assert (await post(line, key=b"k" * 32)).status == 401
            # The server's own key differs from the mods' key.
            assert (await post(line, key=server_key())).status == 401
            assert (await post(line.replace(b"\n", b""))).status == 401
            assert (await post(request() + b"\n")).status == 401
            assert (await post(line + line_of())).status == 401
            assert seen == []
            assert (await post(line)).status == 200
            assert len(seen) == 1

    async def test_a_request_that_was_sent_before_is_refused(self, tmp_path: Path) -> None:
        """A program that has seen it cannot let the hooks judge it again."""
        async with seated(tmp_path) as (_, post):
            line = line_of()
            assert (await post(line)).status == 200
            assert (await post(line)).status == 409
            assert (await post(line_of())).status == 200

    async def test_the_port_is_closed_without_an_installation(self, tmp_path: Path) -> None:
        """A mod is loaded in all projects, and judges where agent_hooks is installed."""
        write_mod(CLAUDE)
        async with serving(tmp_path) as server:
            assert json.loads(await server.handle(b'[{"do": "seat"}, null]'))["seat"] == 0

    async def test_the_port_closes_after_the_last_session(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It stays open for a while before the first one."""
        async with seated(tmp_path) as (server, post):
            seat = server._seat
            assert isinstance(seat, Seat)
            seat.refresh(is_used=False)
            assert seat.number
            monkeypatch.setattr("agent_hooks.server.seat._PATIENCE", 0.0)
            seat.refresh(is_used=True)
            assert seat.number
            seat.refresh(is_used=False)
            assert seat.number == 0
            with pytest.raises(ConnectionRefusedError):
                await post(line_of())
