"""Messages from outside: `api.send` while the agent is idle, while it works, and where it takes none."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from agent_hooks import Attachment, HookAPI, HookRunner, LoadedHook, SendError, ToolOutput, UserMessage
from agent_hooks.content import text_of_content
from agent_hooks.host.inbox import InboxLimits
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.model import ModelRequest, Piece
from agent_hooks.host.models.puppet import Puppet
from agent_hooks.host.session import Session
from agent_hooks.testing import RecordedEvents
from running import Command
from support import EchoTool, SilentView, hook_of

pytestmark = pytest.mark.anyio

IMAGE = Attachment(kind="image", file_name="shot.png", mime_type="image/png", content="aGkh")


class Asked(Puppet):
    """The puppet, and what it was asked."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.requests.append(request)
        return super().stream(request)


class Seen(SilentView):
    """Which messages a person saw come in, and what they were warned of."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ended = anyio.Event()

    def run_started(self, text: str, source: str | None) -> None:
        self.lines.append(f"run {text} ({source})")

    def run_ended(self, error: str | None, aborted: bool) -> None:
        self.lines.append("end")
        self.ended.set()

    def injected(self, text: str, source: str | None) -> None:
        self.lines.append(f"injected {text} ({source})")

    def warning(self, text: str) -> None:
        self.lines.append(f"warning {text}")


def sender() -> tuple[LoadedHook, HookAPI]:
    """Return a hook that does nothing by itself, and its api."""
    hook = hook_of(lambda api: None, "/hooks/sender.py")
    return hook, hook.api


def words(message: Any) -> str:
    return f"{message.role}: {text_of_content(message.content)}"


@pytest.mark.behaviour("S1")
async def test_a_message_to_an_idle_agent_begins_a_run(project: Path) -> None:
    """Sent from a thread that is no handler's; with its attachments and its source, in the file too."""
    hook, api = sender()
    view, model, session = Seen(), Asked(), Session.create(str(project))
    async with (
        HookRunner([hook], cwd=project) as runner,
        SessionHost(runner=runner, model=model, tools=[EchoTool()], session=session, view=view) as host,
    ):
        threading.Thread(target=api.send, args=("@bash one", [IMAGE])).start()
        with anyio.fail_after(20):
            await view.ended.wait()
            await host.wait_idle()
        assert view.lines == ["run @bash one (/hooks/sender.py)", "end"]
        assert model.requests[0].messages[0].attachments == (IMAGE,)  # type: ignore[union-attr]
    assert session.path is not None
    [sent] = [line for line in map(json.loads, session.path.read_text().splitlines()) if "user" in str(line)]
    assert sent["message"]["source"] == "/hooks/sender.py"
    assert sent["message"]["attachments"][0]["fileName"] == "shot.png"

    again = Session.open(session.path, str(project))
    assert again.entries == session.entries
    again.close()


@pytest.mark.behaviour("S1")
async def test_a_message_to_a_working_agent_is_in_its_next_request(project: Path) -> None:
    """After the turn's calls, all of which run; no run of its own."""
    hook, api = sender()
    view, model = Seen(), Asked()
    sent = anyio.Event()

    async def body(input: dict[str, Any]) -> ToolOutput:
        if input["command"] == "one":
            await to_thread.run_sync(api.send, "and this?", [IMAGE])
            sent.set()
        else:
            await sent.wait()
        return ToolOutput(f"ran {input['command']}")

    tool = EchoTool(body=body)
    async with HookRunner([hook], cwd=project) as runner:
        events = RecordedEvents(runner)
        async with SessionHost(
            runner=runner, model=model, tools=[tool], session=Session(cwd=str(project)), view=view
        ) as host:
            with anyio.fail_after(20):
                await host.prompt("@bash one\n@bash two\n---\n@bash never")
                await host.wait_idle()
            messages = host.messages
    assert sorted(each["command"] for each in tool.inputs) == ["one", "two"]
    assert [words(each) for each in model.requests[1].messages[2:]] == [
        "toolResult: ran one",
        "toolResult: ran two",
        "user: and this?",
    ]
    injected = model.requests[1].messages[-1]
    assert isinstance(injected, UserMessage)
    assert (injected.source, injected.attachments) == ("/hooks/sender.py", (IMAGE,))
    assert messages[-2] == injected
    assert view.lines == [
        "run @bash one\n@bash two\n---\n@bash never (None)",
        "injected and this? (/hooks/sender.py)",
        "end",
    ]
    assert events.types.count("agent_start") == events.types.count("agent_end") == 1
    assert injected in events.of("agent_end")[0].messages


@pytest.mark.behaviour("S1")
async def test_a_message_that_comes_too_late_for_this_run_begins_the_next(project: Path) -> None:
    """The last response is there, and nothing is asked any more."""
    view = Seen()

    def register(api: HookAPI) -> None:
        @api.on("agent_end")
        async def once(event: Any, ctx: Any) -> None:
            if not any("afterwards" in words(message) for message in event.messages):
                api.send("afterwards")

    async with (
        HookRunner([hook_of(register)], cwd=project) as runner,
        SessionHost(
            runner=runner, model=Asked(), tools=[EchoTool()], session=Session(cwd=str(project)), view=view
        ) as host,
    ):
        with anyio.fail_after(20):
            await host.prompt("first")
            await host.wait_idle()
        assert view.lines == ["run first (None)", "end", "run afterwards (hook.py)", "end"]
        assert [message.role for message in host.messages] == ["user", "assistant"] * 2


@pytest.mark.behaviour("S1")
async def test_messages_that_come_while_the_session_changes_wait_for_it(project: Path) -> None:
    """They belong to the session that is there when they are read."""
    view = Seen()

    def register(api: HookAPI) -> None:
        @api.on("session")
        async def send(event: Any, ctx: Any) -> None:
            if event.reason in ("start", "before_clear"):
                api.send(f"from {event.reason}")

    async with (
        HookRunner([hook_of(register)], cwd=project) as runner,
        SessionHost(
            runner=runner, model=Asked(), tools=[EchoTool()], session=Session(cwd=str(project)), view=view
        ) as host,
    ):
        with anyio.fail_after(20):
            await host.wait_idle()
            await host.clear()
            await host.wait_idle()
        assert view.lines == ["run from start (hook.py)", "end", "run from before_clear (hook.py)", "end"]
        assert words(host.messages[0]) == "user: from before_clear"


async def test_a_hook_that_answers_itself_for_ever_is_stopped_by_the_bounds(project: Path) -> None:
    """Its handler fails with what to do; the agent and other senders go on."""
    errors: list[str] = []

    def register(api: HookAPI) -> None:
        @api.on("agent_end")
        async def again(event: Any, ctx: Any) -> None:
            api.send("again")

    view = Seen()
    async with HookRunner([hook_of(register)], cwd=project) as runner:
        runner.on_error(lambda error: errors.append(error.error))
        async with SessionHost(
            runner=runner, model=Asked(), tools=[EchoTool()], session=Session(cwd=str(project)), view=view
        ) as host:
            with anyio.fail_after(30):
                host.submit("go")
                await host.wait_idle()
            rate = InboxLimits().rate
            assert view.lines.count("run again (hook.py)") == rate
            assert len(errors) == 1
            assert f"{rate} messages in 60 s is the most for one hook" in errors[0]
            with pytest.raises(SendError, match="is the most"):
                host.submit("x" * (InboxLimits().size + 1))


async def test_what_nobody_has_read_at_the_end_is_said(project: Path) -> None:
    """A message never vanishes without a word."""
    hook, api = sender()
    view = Seen()
    async with HookRunner([hook], cwd=project) as runner:
        async with SessionHost(
            runner=runner, model=Asked(), tools=[EchoTool()], session=Session(cwd=str(project)), view=view
        ):
            api.send("too late")
        assert view.lines == ["warning the session ends with 1 messages that the agent has not read"]
        api.send("nobody is there")  # logged


@pytest.mark.behaviour("S1")
def test_in_print_mode_a_message_is_not_sent_and_a_warning_says_so(command: Command) -> None:
    """The prompt ends with its answer; whoever sends is not failed by that."""
    command.add_hook("""
        from agent_hooks import HookAPI

        def register(api: HookAPI) -> None:
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
