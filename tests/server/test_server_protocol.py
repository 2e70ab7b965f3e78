"""The server's answers to lines, in one process with the test."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_hooks import HookRunner, LoadedHook, SettingsError
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.server.server import Server
from agent_hooks.server.session import FindHooks, Opened
from agent_hooks.server.sources import Sources
from agent_hooks.server.stub import HELLO
from agent_hooks.server.tasks import Tasks
from agent_hooks.trust.place import Place
from support import PATIENCE, hook_on

CALL = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "1"}


class FakeOpening:
    """An opener that opens each session with these hooks."""

    def __init__(self, *hooks: LoadedHook) -> None:
        self.plain = not hooks
        self._hooks = hooks

    def __call__(self, bridge: Bridge, happening: Happening, environment: Mapping[str, str]) -> FakeOpening:
        """Find the hooks."""
        return self

    async def renew(self, opened: Opened) -> Opened | None:
        """Open the session anew."""
        return None

    async def open(self) -> Opened:
        """Load the hooks."""
        ui = BridgeUI()
        runner = HookRunner(self._hooks, cwd="/", ui=ui, mode="bridge")
        return Opened(runner, Bridging(runner, ui, resident=True), Sources([], []), Place("/", ()))


def request(payload: object = CALL, event: str = "PreToolUse", **fields: Any) -> bytes:
    """Return a line that asks for an answer; a payload that is a text is used as it is."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    known = {**json.loads(HELLO), "do": "answer", "agent": "claude-code", "event": event}
    return f"[{json.dumps({**known, **fields})}, {text}]".encode()


@asynccontextmanager
async def serving(
    path: Path, *hooks: LoadedHook, opening: FindHooks | None = None, at: str | None = None
) -> AsyncIterator[Server]:
    """Run a server for a project, and stop it at the end.  `at`: the path of its files."""
    at = at or str(path / "s")
    server = Server(at, str(path), opening or FakeOpening(*hooks))
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve_in_loop)
            while not os.path.exists(f"{at}.socket"):
                await anyio.sleep(0.001)
            # The server goes on when its task is cancelled, as it does after a hook that cancels all tasks.
            try:
                yield server
            finally:
                server.stop()


def stdout_of(answer: bytes) -> Any:
    """Return the JSON object to print."""
    code, said = json.loads(answer)
    assert code == 0
    return said


nested: st.SearchStrategy[Any] = st.recursive(st.none() | st.text(), st.lists)


@given(st.binary() | st.text().map(str.encode) | nested.map(json.dumps).map(str.encode))
def test_any_line_gets_an_answer_that_is_one_line(line: bytes) -> None:
    """The answer approves nothing."""

    async def ask() -> bytes:
        return await Server("/nowhere", "/project", FakeOpening()).handle(line)

    answer = asyncio.run(ask())
    assert answer.count(b"\n") == 1
    assert "error" in json.loads(answer)


@given(st.text() | nested.map(json.dumps), st.sampled_from(["PreToolUse", "UserPromptSubmit", "Stop", "", "Nonsense"]))
def test_any_payload_that_is_no_event_denies_what_can_be_stopped(payload: str, event: str) -> None:
    """An unknown event may be a call."""

    async def ask() -> bytes:
        return await Server("/nowhere", "/project", FakeOpening()).handle(request(payload, event))

    answer = asyncio.run(ask())
    assert answer.count(b"\n") == 1
    # A payload that is no JSON makes the line no request.  The client then refuses a gate, see test_served.py.
    if answer.startswith(b'{"error": "'):
        return
    said = stdout_of(answer)
    if event in ("PreToolUse", ""):
        assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    elif event == "UserPromptSubmit":
        assert said["decision"] == "block"
    else:
        assert said == {}


async def answer_of(server: Server, line: bytes) -> bytes:
    """Return the answer to one line."""
    reader, writer = await asyncio.open_unix_connection(f"{server.path}.socket")
    try:
        writer.write(line + b"\n")
        assert await reader.readline() == HELLO.encode()
        return await reader.readline()
    finally:
        writer.close()
        await writer.wait_closed()


class TestConnections:
    """The tests use a real socket; the server's own loop is that of asyncio."""

    async def test_requests_of_one_client_are_answered_in_order_and_in_pieces(self, tmp_path: Path) -> None:
        """The bytes of a line may arrive in pieces."""
        async with serving(tmp_path) as server:
            reader, writer = await asyncio.open_unix_connection(f"{server.path}.socket")
            line = request() + b"\n" + b'[{"do": "status"}, null]\n' + request(event="x") + b"\n"
            for at in range(0, len(line), 7):
                writer.write(line[at : at + 7])
                await writer.drain()
            await reader.readline()
            assert stdout_of(await reader.readline()) == {}
            assert json.loads(await reader.readline())["events"] == 1
            assert stdout_of(await reader.readline()) == {}
            writer.close()
            await writer.wait_closed()

    async def test_a_client_that_goes_gives_its_request_up(self, tmp_path: Path) -> None:
        """The handler is cancelled, and the next call is judged."""
        begun, ended = anyio.Event(), anyio.Event()

        async def judge(event: object, ctx: object) -> None:
            begun.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()

        async with serving(tmp_path, hook_on("tool_call", judge)) as server:
            _, writer = await asyncio.open_unix_connection(f"{server.path}.socket")
            writer.write(request() + b"\n")
            await begun.wait()
            writer.close()
            await ended.wait()
            assert stdout_of(await answer_of(server, request({"hook_event_name": "Stop"}, "Stop"))) == {}

    async def test_a_session_that_is_stuck_does_not_hold_up_another(self, tmp_path: Path) -> None:
        """Only the events of one session wait for one another."""
        begun, go_on = anyio.Event(), anyio.Event()

        async def judge(event: Any, ctx: Any) -> None:
            if ctx.session_id == "stuck":
                begun.set()
                await go_on.wait()

        async with serving(tmp_path, hook_on("tool_call", judge)) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(answer_of, server, request({**CALL, "session_id": "stuck"}))
            await begun.wait()
            assert stdout_of(await answer_of(server, request({**CALL, "session_id": "free"}))) == {}
            go_on.set()

    async def test_settings_that_cannot_be_read_deny_until_they_can(self, tmp_path: Path) -> None:
        """Each event tries again."""
        broken = True

        class Breaking(FakeOpening):
            def __call__(self, *about: Any) -> FakeOpening:
                if broken:
                    raise SettingsError("settings.json: broken")
                return self

        async with serving(tmp_path, opening=Breaking()) as server:
            said = stdout_of(await answer_of(server, request()))
            assert "settings.json: broken" in said["hookSpecificOutput"]["permissionDecisionReason"]
            broken = False
            assert stdout_of(await answer_of(server, request())) == {}

    async def test_hooks_that_do_not_load_in_time_deny_until_they_do(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The next event tries again."""
        monkeypatch.setattr("agent_hooks.server.session.LOAD_TIMEOUT", 0.05)
        hangs = True

        class Hanging(FakeOpening):
            async def open(self) -> Opened:
                if hangs:
                    await anyio.sleep_forever()
                return await super().open()

        async with serving(tmp_path, opening=Hanging(hook_on("turn_end", print))) as server:
            said = stdout_of(await answer_of(server, request()))
            assert "did not load within 0.05 s" in said["hookSpecificOutput"]["permissionDecisionReason"]
            hangs = False
            assert stdout_of(await answer_of(server, request())) == {}

    @pytest.mark.parametrize("reason", ["start", "shutdown"])
    async def test_hooks_that_break_off_their_session_are_unloaded(self, tmp_path: Path, reason: str) -> None:
        """A runner lets KeyboardInterrupt through, and the next event loads the hooks again."""
        unloaded, broken = anyio.Event(), list[str]()

        async def session(event: Any, ctx: Any) -> None:
            await anyio.sleep(0)
            if event.reason == reason and not broken:
                broken.append(reason)
                raise KeyboardInterrupt

        class Watching(FakeOpening):
            async def open(self) -> Opened:
                return replace(await super().open(), sources=Sources([str(tmp_path / "hook.py")], []))

        hook = hook_on("session", session)
        hook.api.on_unload(unloaded.set)
        async with serving(tmp_path, opening=Watching(hook)) as server:
            if reason == "shutdown":
                assert stdout_of(await answer_of(server, request())) == {}
                (tmp_path / "hook.py").touch()
            said = stdout_of(await answer_of(server, request()))
            assert "KeyboardInterrupt" in said["hookSpecificOutput"]["permissionDecisionReason"]
            assert stdout_of(await answer_of(server, request())) == {}
            with anyio.fail_after(PATIENCE):
                await unloaded.wait()

    async def test_a_server_that_nobody_can_reach_ends(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also if the socket was removed before the server compared it."""
        rename = os.rename

        def rename_in_vain(old: str, new: str) -> None:
            rename(old, new)
            os.unlink(new)

        monkeypatch.setattr(os, "rename", rename_in_vain)
        monkeypatch.setattr("agent_hooks.server.server._MAINTENANCE", 0.01)
        with anyio.fail_after(PATIENCE):
            await Server(str(tmp_path / "s"), str(tmp_path), FakeOpening()).serve_in_loop()

    async def test_a_line_without_an_end_is_cut_off(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Memory is bounded."""
        monkeypatch.setattr("agent_hooks.server.server._LONGEST", 100_000)
        async with serving(tmp_path) as server:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(f"{server.path}.socket")
                client.setblocking(False)
                text = b"x" * 10_000_000
                with pytest.raises(OSError, match=r"reset|pipe"):
                    await asyncio.get_running_loop().sock_sendall(client, text)


async def test_what_comes_before_there_are_tasks_waits() -> None:
    """A later task begins at once."""
    later = Tasks()
    done: list[str] = []

    async def note(text: str) -> None:
        done.append(text)

    later.later(note, "before")
    assert len(later.waiting) == 1
    later.start()
    later.later(note, "after")
    await later.end(PATIENCE)
    assert sorted(done) == ["after", "before"]
    assert not later.waiting


def test_sources_see_every_change_of_code_and_settings_and_nothing_else(tmp_path: Path) -> None:
    """Files are new, changed in place, replaced or deleted, in directories that exist or are made later."""
    settings, hooks = tmp_path / "settings.json", tmp_path / "hooks"
    sources = Sources([str(settings)], [str(hooks)])
    changes: list[Callable[[], object]] = [
        lambda: settings.write_text("{}"),
        lambda: hooks.mkdir(),
        lambda: (hooks / "a.py").write_text("a"),
        lambda: (hooks / "a.py").write_text("bb"),
        lambda: (hooks / "new").write_text("bb"),
        lambda: (hooks / "new").replace(hooks / "a.py"),
        lambda: (hooks / "package").mkdir(),
        lambda: (hooks / "package" / "inner").mkdir(),
        lambda: (hooks / "package" / "inner" / "deep.py").write_text(""),
        lambda: (hooks / "state.txt").write_text("what a hook keeps"),
        lambda: (hooks / "__pycache__").mkdir(),
        lambda: (hooks / "__pycache__" / "x.py").write_text(""),
        lambda: (hooks / "package" / "inner" / "deep.py").unlink(),
        lambda: settings.unlink(),
    ]
    seen = []
    for change in changes:
        change()
        seen.append(sources.changed())
        assert not sources.changed()
    yes, no = True, False
    assert seen == [yes, no, yes, yes, no, yes, no, no, yes, no, no, no, yes, yes]


@pytest.mark.parametrize("kind", ["file", "link to nowhere", "link to itself"])
def test_a_directory_that_cannot_be_read_counts_as_a_file(tmp_path: Path, kind: str) -> None:
    """Files that cannot be listed may hold a gate, so the place is looked at again."""
    root = tmp_path / ".agent"
    sources = Sources([], [str(root)])
    if kind == "file":
        root.touch()
    else:
        root.symlink_to(root if kind == "link to itself" else tmp_path / "nowhere")
    assert sources.changed()
    assert not sources.changed()
