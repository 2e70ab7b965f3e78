"""Messages of hooks and clients in a session: their entries, the actions that they wait for, and their limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_hooks import Attachment, HookAPI, SendError, UserMessage
from agent_hooks.host.runs import InboxLimits
from agent_hooks.host.session import Session
from agent_hooks.values.content import text_of_content
from host.hosting import stage
from running import Command
from support import PATIENCE, hook_on

pytestmark = pytest.mark.anyio

IMAGE = Attachment(kind="image", file_name="shot.png", mime_type="image/png", content="aGkh")


async def test_the_session_file_has_a_message_with_its_attachments_and_the_hook_that_sent_it(project: Path) -> None:
    """At the beginning of a run and in the middle of one; a message of the person has no source."""

    def send(event: Any, ctx: Any) -> None:
        if event.turn_index == 0:
            api.send("in the middle", [IMAGE])

    hook = hook_on("turn_end", send, path="/hooks/sender.py")
    api = hook.api
    on = stage(project, hook)
    async with on.host as host:
        with anyio.fail_after(PATIENCE):
            api.send("@bash one", [IMAGE])
            await host.wait_idle()
            await host.prompt("mine")
        assert [each.source for each in on.model.requests[1].messages if isinstance(each, UserMessage)] == [
            "/hooks/sender.py",
            "/hooks/sender.py",
        ]
    lines = [json.loads(line) for line in on.path.read_text().splitlines()]
    said = [line["message"] for line in lines if line["type"] == "message" and line["message"]["role"] == "user"]
    assert [each["content"][0]["text"] for each in said] == ["@bash one", "in the middle", "mine"]
    assert [each.get("source") for each in said] == ["/hooks/sender.py", "/hooks/sender.py", None]
    assert [len(each.get("attachments", ())) for each in said] == [1, 1, 0]

    again = Session.open(on.path, str(project))
    assert again.entries == on.session.entries
    again.close()


async def test_a_message_that_comes_while_the_session_changes_waits_for_that(project: Path) -> None:
    """It belongs to the session in which it is read."""

    def register(api: HookAPI) -> None:
        @api.on("session")
        async def send(event: Any, ctx: Any) -> None:
            if event.reason in ("start", "before_clear"):
                api.send(f"from {event.reason}")

    on = stage(project, register)
    async with on.host as host:
        with anyio.fail_after(PATIENCE):
            await host.wait_idle()
            await host.clear()
            await host.wait_idle()
        assert [text_of_content(each.content) for each in host.messages if isinstance(each, UserMessage)] == [
            "from before_clear"
        ]


async def test_a_hook_that_answers_itself_for_ever_comes_to_its_bounds(project: Path) -> None:
    """Its handler fails with the remedy, and the agent goes on."""

    def register(api: HookAPI) -> None:
        @api.on("agent_end")
        async def again(event: Any, ctx: Any) -> None:
            api.send("again")

    on = stage(project, register)
    limits = InboxLimits()
    async with on.host as host:
        with anyio.fail_after(PATIENCE):
            await host.prompt("go")
            await host.wait_idle()
        assert on.view.seen.count("started again by hook0.py") == limits.rate
        [error] = on.events.errors
        assert f"one hook may send {limits.rate} messages in {limits.period:g} s" in error.error
        with pytest.raises(SendError, match="the limit is 20,000,000; save it in a file"):
            host.submit("x" * (limits.size + 1))
        host.submit("still there?")
        with anyio.fail_after(PATIENCE):
            await host.wait_idle()
        assert "started still there? by None" in on.view.seen


def test_the_print_mode_of_the_command_warns_and_goes_on(command: Command) -> None:
    """The warning is on stderr; the sender does not fail, and the session does not have the message."""
    command.add_hook("""
        def register(api):
            @api.on("turn_start")
            async def send(event, ctx):
                api.send("look at this")
                print("went on")
    """)
    done = command("run", "@bash echo hello")
    assert "   hello" in done.stdout
    assert "hook.py: a message was not sent, because this agent takes none: 'look at this'" in done.stderr
    assert "went on" in done.stderr
    [session] = (command.project / ".agent" / "sessions").glob("*.jsonl")
    assert "look at this" not in session.read_text()
