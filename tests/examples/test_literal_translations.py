"""The examples of pi's page on hooks, translated word for word: each runs, or says in one line how to mend it."""

from __future__ import annotations

import http.client
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from textwrap import dedent
from threading import Event
from typing import Any, NamedTuple

import anyio
import pytest

from agent_hooks import HookError, HookRunner, SessionEvent, TurnStart, UserMessage
from agent_hooks.testing import MakeRunner, ScriptedUI, call_tool
from agent_hooks.values.answers import Compaction
from agent_hooks.values.events import CutPoint
from support import PATIENCE

Trial = Callable[[HookRunner], Awaitable[None]]


class Mend(NamedTuple):
    """One line that a literal translation says, and the change that it names."""

    says: str
    before: str
    after: str


async def mended(hook_runner: MakeRunner, source: str, mends: list[Mend], trial: Trial, **options: Any) -> HookRunner:
    """Load the source and try it; after each change, one error fewer is left.  Return the runner of the last one."""
    source = dedent(source)
    for says, before, after in mends:
        try:
            runner = await hook_runner(source, **options)
        except BaseException as exc:
            said = [str(exc)]
        else:
            errors: list[HookError] = []
            runner.on_error(errors.append)
            await trial(runner)
            said = [error.error for error in errors]
        assert any(says in each for each in said), said
        assert before in source
        source = source.replace(before, after)
    runner = await hook_runner(source, **options)
    runner.on_error(lambda error: pytest.fail(str(error)))
    return runner


EVENT_NAME = Mend("there is no event.toolName: write event.tool_name", "event.toolName", "event.tool_name")


async def test_the_permission_gate(hook_runner: MakeRunner) -> None:
    """A dialog of the gate decides, as there."""
    source = r"""
        import re

        def register(pi):
            dangerous_patterns = [
                re.compile(r"\brm\s+(-rf?|--recursive)", re.I),
                re.compile(r"\bsudo\b", re.I),
                re.compile(r"\b(chmod|chown)\b.*777", re.I),
            ]

            async def gate(event, ctx):
                if event.toolName != "bash":
                    return None
                command = event.input.command
                if any(pattern.search(command) for pattern in dangerous_patterns):
                    choice = await ctx.ui.select(f"Dangerous command:\n\n  {command}\n\nAllow?", ["Yes", "No"])
                    if choice != "Yes":
                        return {"block": True, "reason": "Blocked by user"}
                return None

            pi.on("tool_call", gate)
    """

    async def trial(runner: HookRunner) -> None:
        assert (await call_tool(runner, "bash", {"command": "sudo ls"})).is_error

    mends = [
        EVENT_NAME,
        Mend('there is no input.command: write input["command"]', "event.input.command", 'event.input["command"]'),
    ]
    runner = await mended(hook_runner, source, mends, trial, ui=ScriptedUI("No", "Yes"))
    assert "Blocked by user" in (await call_tool(runner, "bash", {"command": "sudo ls"})).text
    assert not (await call_tool(runner, "bash", {"command": "sudo ls"})).is_error
    assert not (await call_tool(runner, "bash", {"command": "ls"})).is_error


async def test_the_protected_paths(hook_runner: MakeRunner) -> None:
    """A warning, and a block that names the path."""
    source = """
        def register(pi):
            protected_paths = [".env", ".git/", "node_modules/"]

            async def protect(event, ctx):
                if event.toolName != "write" and event.toolName != "edit":
                    return None
                path = event.input.path
                if any(each in path for each in protected_paths):
                    if ctx.hasUI:
                        ctx.ui.notify(f"Blocked write to protected path: {path}", "warning")
                    return {"block": True, "reason": f'Path "{path}" is protected'}
                return None

            pi.on("tool_call", protect)
    """

    async def trial(runner: HookRunner) -> None:
        assert (await call_tool(runner, "write", {"path": ".env", "content": "x"})).is_error

    mends = [
        EVENT_NAME,
        Mend('there is no input.path: write input["path"]', "event.input.path", 'event.input["path"]'),
        Mend("there is no ctx.hasUI: write ctx.has_ui", "ctx.hasUI", "ctx.has_ui"),
    ]
    ui = ScriptedUI()
    runner = await mended(hook_runner, source, mends, trial, ui=ui)
    output = await call_tool(runner, "write", {"path": ".env", "content": "x"})
    assert 'Path ".env" is protected' in output.text
    assert ui.asked[-1].title == "Blocked write to protected path: .env"
    assert not (await call_tool(runner, "write", {"path": "a.py", "content": "x"})).is_error


async def test_the_translated_git_checkpoint_brings_the_files_back(hook_runner: MakeRunner, tmp_path: Path) -> None:
    """The files come back; the turn to look up is `target_turn`, because the other number counts entries."""
    source = """
        def register(pi):
            checkpoints = {}

            async def save(event, ctx):
                ref = (await ctx.exec("git", ["stash", "create"]))["stdout"].strip()
                if ref:
                    checkpoints[event.turnIndex] = ref

            async def restore(event, ctx):
                if event.reason != "before_branch":
                    return
                ref = checkpoints.get(event.targetTurnIndex)
                if not ref:
                    return
                choice = await ctx.ui.select("Restore code state?", ["Yes, restore code", "No, keep current code"])
                if choice and choice.startswith("Yes"):
                    await ctx.exec("git", ["checkout", "--", "."], {"timeout": 5000})
                    await ctx.exec("git", ["stash", "apply", ref])
                    ctx.ui.notify("Code restored to checkpoint", "info")

            async def clear():
                checkpoints.clear()

            pi.on("turn_start", save)
            pi.on("session", restore)
            pi.on("agent_end", clear)
    """
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(tmp_path)]
    (tmp_path / "a.txt").write_text("committed")
    for line in (["init", "-q"], ["config", "user.name", "t"], ["config", "user.email", "t@t"], ["add", "."]):
        subprocess.run([*git, *line], check=True)
    subprocess.run([*git, "commit", "-qm", "a"], check=True)

    async def trial(runner: HookRunner) -> None:
        (tmp_path / "a.txt").write_text("before the turn")
        await runner.emit(TurnStart(turn_index=0, timestamp=0))
        (tmp_path / "a.txt").write_text("after the turn")
        await runner.emit(SessionEvent(reason="before_branch", target_turn_index=3, target_turn=0))

    mends = [
        Mend("clear cannot be called with (event, ctx)", "def clear():", "def clear(event, ctx):"),
        Mend("write .stdout in place of ['stdout']", '["stdout"]', ".stdout"),
        Mend("write event.turn_index", "event.turnIndex", "event.turn_index"),
        Mend("write event.target_turn_index", "event.targetTurnIndex", "event.target_turn"),
        Mend("the timeout in seconds: write timeout=…", '{"timeout": 5000}', "timeout=5"),
    ]
    runner = await mended(hook_runner, source, mends, trial, ui=ScriptedUI("Yes, restore code", "Yes, restore code"))
    await trial(runner)
    assert (tmp_path / "a.txt").read_text() == "before the turn"


async def test_the_translated_file_trigger_sends_from_a_thread_that_ends_with_the_hook(
    hook_runner: MakeRunner, tmp_path: Path
) -> None:
    """A thread may watch and send; it ends with the hook."""
    source = """
        from pathlib import Path
        from threading import Event, Thread

        from watchfiles import watch

        def register(pi):
            async def start(event, ctx):
                if event.reason != "start":
                    return
                trigger, done = Path(ctx.cwd, "agent-trigger.txt"), Event()
                trigger.write_text("")

                def watching():
                    for _ in watch(trigger, stop_event=done, debounce=50, step=10, rust_timeout=100):
                        content = trigger.read_text().strip()
                        if content:
                            pi.sendMessage(f"External trigger: {content}")
                            trigger.write_text("")

                Thread(target=watching).start()
                pi.on_unload(done.set)
                ctx.ui.notify(f"Watching {trigger}", "info")

            pi.on("session", start)
    """
    # The mistake is in a thread, whose error no listener gets, so the mend is made beforehand.
    source = source.replace("pi.sendMessage(", "pi.send(")
    ui, sent = ScriptedUI(), []
    runner = await mended(hook_runner, source, [], _nothing, ui=ui)
    came = Event()

    def take(text: str, attachments: object, hook: str | None) -> None:
        sent.append(text)
        came.set()

    runner.set_send_handler(take)
    async with runner:
        await runner.emit(SessionEvent(reason="start"))
        assert ui.asked[-1].title == f"Watching {tmp_path}/agent-trigger.txt"
        with anyio.fail_after(PATIENCE):
            while not came.is_set():
                (tmp_path / "agent-trigger.txt").write_text("build failed\n")
                await anyio.to_thread.run_sync(came.wait, 1)
    assert sent[0] == "External trigger: build failed"


async def test_the_translated_webhook_sends_the_posted_text(hook_runner: MakeRunner) -> None:
    """A server of the standard library in a thread sends what is posted."""
    source = """
        from http.server import BaseHTTPRequestHandler, HTTPServer
        from threading import Thread

        def register(pi):
            async def start(event, ctx):
                if event.reason != "start":
                    return

                class Handler(BaseHTTPRequestHandler):
                    def do_POST(self):
                        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                        pi.send(body or "Webhook triggered")
                        self.send_response(200)
                        self.end_headers()
                        self.wfile.write(b"OK")

                    def log_message(self, *args):
                        pass

                server = HTTPServer(("127.0.0.1", 0), Handler)
                Thread(target=server.serve_forever).start()
                pi.on_unload(server.shutdown)
                pi.on_unload(server.server_close)
                ctx.ui.setStatus(f"{server.server_port}", "info")

            pi.on("session", start)
    """
    mends = [Mend("there is no ctx.ui.setStatus: write ctx.ui.notify(message)", "ctx.ui.setStatus", "ctx.ui.notify")]
    ui, sent = ScriptedUI(), []

    async def trial(runner: HookRunner) -> None:
        async with runner:
            await runner.emit(SessionEvent(reason="start"))

    runner = await mended(hook_runner, source, mends, trial, ui=ui)
    runner.set_send_handler(lambda text, attachments, hook: sent.append(text))
    async with runner:
        await runner.emit(SessionEvent(reason="start"))

        def post(body: str) -> tuple[int, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", int(ui.asked[-1].title), timeout=PATIENCE)
            connection.request("POST", "/", body)
            reply = connection.getresponse()
            return reply.status, reply.read()

        assert await anyio.to_thread.run_sync(post, "look here") == (200, b"OK")
        assert await anyio.to_thread.run_sync(post, "") == (200, b"OK")
    assert sent == ["look here", "Webhook triggered"]


async def test_the_translated_compaction_has_a_bullet_for_each_user_message(hook_runner: MakeRunner) -> None:
    """A bullet for each message of the person."""
    source = """
        def register(pi):
            async def compact(event, ctx):
                if event.reason != "before_compact":
                    return None
                bullets = []
                for message in event.messagesToSummarize:
                    if message["role"] == "user":
                        bullets.append("- " + message.content[:100])
                return {
                    "compactionEntry": {
                        "type": "compaction",
                        "summary": "\\n".join(bullets),
                        "firstKeptEntryIndex": event.cutPoint.firstKeptEntryIndex,
                        "tokensBefore": event.tokensBefore,
                    }
                }

            pi.on("session", compact)
    """
    event = SessionEvent(
        reason="before_compact",
        messages_to_summarize=(UserMessage(content="fix the tests", timestamp=0),),
        cut_point=CutPoint(first_kept_entry_index=2),
        tokens_before=9,
    )

    async def trial(runner: HookRunner) -> None:
        assert await runner.emit(event) is None

    mends = [
        Mend("write event.messages_to_summarize", "event.messagesToSummarize", "event.messages_to_summarize"),
        Mend("UserMessage is a value, not a mapping: write .role", 'message["role"]', "message.role"),
        Mend("its text is message.text", "message.content[", "message.text["),
        Mend("write event.cut_point", "event.cutPoint", "event.cut_point"),
        Mend("write event.cut_point.first_kept_entry_index", ".firstKeptEntryIndex", ".first_kept_entry_index"),
        Mend("write event.tokens_before", "event.tokensBefore", "event.tokens_before"),
    ]
    runner = await mended(hook_runner, source, mends, trial)
    assert await runner.emit(event) == Compaction("- fix the tests", 2, 9)


async def _nothing(runner: HookRunner) -> None:
    """Try nothing."""
