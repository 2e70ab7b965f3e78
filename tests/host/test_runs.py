"""Messages for the agent while it works, while it is idle, and when it never reads them."""

from __future__ import annotations

import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_hooks import Attachment, HookAPI, SendError, UserMessage
from agent_hooks.errors import AbortedError, ModelError
from agent_hooks.host.models import open_model
from agent_hooks.host.models.puppet import Puppet
from agent_hooks.values.content import text_of_content
from host.hosting import stage
from support import PATIENCE, EchoTool, Endless

pytestmark = pytest.mark.anyio

FILE = Attachment(kind="document", file_name="a.txt", mime_type="text/plain", content="aGk=")


@pytest.mark.parametrize("from_thread", [True, False])
async def test_a_message_of_a_hook_begins_a_run_when_the_agent_is_idle(project: Path, from_thread: bool) -> None:
    """From a thread as from a handler; the message keeps its source and its attachments."""

    def register(api: HookAPI) -> None:
        @api.on("session")
        async def start(event: Any, ctx: Any) -> None:
            if event.reason == "start":
                if from_thread:
                    threading.Thread(target=api.send, args=("@bash sent", [FILE])).start()
                else:
                    api.send("@bash sent", [FILE])

    on = stage(project, register)
    ended = anyio.Event()
    on.runner.observe(lambda event: ended.set() if event.type == "agent_end" else None)
    async with on.host as host:
        with anyio.fail_after(PATIENCE):
            await ended.wait()
        await host.wait_idle()
    assert on.view.seen == ["started @bash sent by hook0.py", "ended None aborted=False"]
    assert on.tool.inputs == [{"command": "sent"}]
    [message] = [each for each in on.model.requests[0].messages if isinstance(each, UserMessage)]
    assert message.attachments == (FILE,)
    assert on.events.types[0] == "session:start"


async def test_a_message_during_a_run_is_in_the_next_request_and_the_turns_other_calls_still_run(project: Path) -> None:
    """A message comes during the first of two calls: both run, and the next request has the message."""
    running = anyio.Event()

    async def body(input: dict[str, Any]) -> None:
        if input["command"] == "one":
            on.host.submit("@bash injected", [FILE], "hook0.py")
            on.host.submit("and more")
        running.set()

    on = stage(project, tool=EchoTool(body=body))
    async with on.host as host:
        await host.prompt("@bash one\n@bash two\n---\n@bash three")
        await host.wait_idle()
        roles = [message.role for message in host.messages]
    assert sorted(given["command"] for given in on.tool.inputs) == ["one", "two"]
    assert roles == ["user", "assistant", "toolResult", "toolResult", "user", "user", "assistant"]
    sent = on.model.requests[1].messages[4]
    assert isinstance(sent, UserMessage)
    assert (sent.content[0].text, sent.attachments) == ("@bash injected", (FILE,))  # type: ignore[union-attr]
    assert on.view.seen[1:] == [
        "injected @bash injected by hook0.py",
        "injected and more by None",
        "ended None aborted=False",
    ]
    [end] = on.events.of("agent_end")
    assert [message.role for message in end.messages] == roles
    assert [event.entry_index for event in on.events.of("turn_start")] == [3, 8]


async def test_what_came_too_late_for_a_run_begins_the_next_one(project: Path) -> None:
    """The last turn of a run makes no more request; several messages make one run."""

    def register(api: HookAPI) -> None:
        @api.on("agent_end")
        async def more(event: Any, ctx: Any) -> None:
            if len(event.messages) == 2:
                api.send("second")
                api.send("third")

    on = stage(project, register)
    async with on.host as host:
        host.submit("first")
        await host.wait_idle()
        assert not host.running
    assert on.view.seen == [
        "started first by None",
        "ended None aborted=False",
        "started second by hook0.py",
        "injected third by hook0.py",
        "ended None aborted=False",
    ]
    nested = [event.type for event in on.events.events if event.type.startswith("agent")]
    assert nested == ["agent_start", "agent_end"] * 2


async def test_print_mode_takes_no_messages(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    """There is a warning, and no failure."""

    def register(api: HookAPI) -> None:
        api.on("turn_start", lambda event, ctx: api.send("not now"))

    on = stage(project, register, mode="print")
    async with on.host as host:
        await host.prompt("hello")
    assert "hook0.py: a message was not sent, because this agent takes none: 'not now'" in caplog.text
    assert on.events.errors == []
    assert len(on.model.requests) == 1


async def test_a_slow_turn_end_holds_up_the_next_turn(project: Path) -> None:
    """The next `turn_start` comes after it, with the right numbers."""
    seen: list[str] = []

    def register(api: HookAPI) -> None:
        @api.on("turn_start")
        async def start(event: Any, ctx: Any) -> None:
            seen.append(f"start {event.turn_index}")

        @api.on("turn_end")
        async def end(event: Any, ctx: Any) -> None:
            await anyio.wait_all_tasks_blocked()
            seen.append(f"end {event.turn_index}")

    on = stage(project, register)
    async with on.host as host:
        host.submit("@bash one\n---\n@bash two")
        await host.wait_idle()
    assert seen == ["start 0", "end 0", "start 1", "end 1", "start 2", "end 2"]


async def test_an_abort_ends_the_run_and_what_waits_goes_with_the_next_prompt(project: Path) -> None:
    """After an abort no run begins by itself, and no message is lost."""
    long = Endless()
    on = stage(project, tool=EchoTool(body=long))
    async with on.host as host:
        assert not host.abort()
        host.submit("@bash long")
        await long.begun.wait()
        host.submit("waits")
        assert host.abort()
        await host.wait_idle()
        assert not host.running
        assert len(on.model.requests) == 1
        host.submit("go on")
        await host.wait_idle()
    assert on.view.seen[1:] == [
        "ended None aborted=True",
        "started waits by None",
        "injected go on by None",
        "ended None aborted=False",
    ]


async def test_a_run_that_is_aborted_while_it_begins_has_an_end_too(project: Path) -> None:
    """A hook that got `agent_start` gets `agent_end`."""
    begun = anyio.Event()

    def register(api: HookAPI) -> None:
        @api.on("agent_start")
        async def wait(event: Any, ctx: Any) -> None:
            begun.set()
            await anyio.sleep_forever()

        @api.on("agent_end")
        def end(event: Any, ctx: Any) -> None:
            ended.append([text_of_content(message.content) for message in event.messages])

    ended: list[list[str]] = []
    on = stage(project, register)
    async with on.host as host:
        host.submit("one")
        await begun.wait()
        assert host.abort()
        await host.wait_idle()
        assert ended == [["one"]]
    assert on.view.seen == ["started one by None", "ended None aborted=True"]


async def test_a_second_abort_drops_what_waits(project: Path) -> None:
    """The waiting messages begin no run, and the view shows each as an aborted run."""
    long = Endless()
    on = stage(project, tool=EchoTool(body=long))
    async with on.host as host:
        host.submit("@bash long")
        await long.begun.wait()
        host.submit("waits")
        host.abort()
        await host.wait_idle()
        assert host.abort()
        assert not host.abort()
        await host.prompt("hello")
    assert on.view.seen[2:] == [
        "started waits by None",
        "ended None aborted=True",
        "started hello by None",
        "ended None aborted=False",
    ]


async def test_what_was_read_of_an_aborted_answer_is_kept(project: Path) -> None:
    """It is in the next request and in the file."""

    class Halting(Puppet):
        async def stream(self, request: Any) -> Any:
            async with aclosing(super().stream(request)) as pieces:
                async for piece in pieces:
                    yield piece
                    if len(request.messages) == 1:
                        said.set()
                        await anyio.sleep_forever()

    said = anyio.Event()
    on = stage(project, model=Halting())
    async with on.host as host:
        host.submit("half of it\nand the rest")
        await said.wait()
        host.abort()
        await host.wait_idle()
        assert [message.role for message in host.messages] == ["user", "assistant"]
        last = host.messages[-1]
        assert (last.text, last.stop_reason) == ("half of it\n", "aborted")  # type: ignore[union-attr]
        await host.prompt("again")
    assert '"stopReason":"aborted"' in on.path.read_text()


async def test_an_aborted_prompt_says_so(project: Path) -> None:
    """The caller of `prompt` gets an error."""
    long = Endless()
    on = stage(project, tool=EchoTool(body=long))
    async with on.host as host, anyio.create_task_group() as tasks:

        async def stop() -> None:
            await long.begun.wait()
            host.abort()

        tasks.start_soon(stop)
        with pytest.raises(AbortedError, match="aborted"):
            await host.prompt("@bash x")


async def test_a_failing_model_ends_its_run_and_not_the_host(project: Path) -> None:
    """The view gets the error, and the next message has its run."""
    (project / "s.jsonl").write_text("")
    on = stage(project, model=open_model(f"script:{project}/s.jsonl"))
    async with on.host as host:
        host.submit("one")
        await host.wait_idle()
        with pytest.raises(ModelError):
            await host.prompt("two")
    failed = f"script {project}/s.jsonl: all 0 responses are played; add one more line"
    error = f"ended the model failed: {failed} aborted=False"
    assert on.view.seen == ["started one by None", error, "started two by None", error]
    assert on.events.types.count("agent_end") == 2


async def test_what_nobody_read_is_told_at_the_end(project: Path) -> None:
    """There is a warning; after the end, sending is an error."""
    long = Endless()
    on = stage(project, tool=EchoTool(body=long))
    async with on.host as host:
        host.submit("@bash x")
        await long.begun.wait()
        host.submit("too late")
    assert on.view.warnings == ["the session ends with 1 message that the agent has not read"]
    with pytest.raises(SendError, match="the session has ended"):
        host.submit("much too late")
