"""The agent loop: the order of events, parallel calls, aborts, and the entries in the session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agent_hooks import Ask, HookAPI, HookRunner, ModelError, ToolOutput
from agent_hooks.host.agent import Agent
from agent_hooks.host.models import open_model
from agent_hooks.host.session import Session
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.testing import RecordedEvents, ScriptedUI
from agent_hooks.values.content import ToolCallContent, ToolResultMessage, text_of_content
from agent_hooks.values.tool import OnUpdate
from support import PATIENCE, EchoTool, SilentView, hook_of

pytestmark = pytest.mark.anyio


class Watched(SilentView):
    """A view that keeps the calls of its methods."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def text(self, delta: str) -> None:
        self.seen.append(f"text {delta.strip()}")

    def tool_judged(self, call: ToolCallContent) -> None:
        self.seen.append(f"judged {call.arguments['command']}")

    def tool_runs(self, call: ToolCallContent, judged: JudgedCall) -> None:
        self.seen.append(f"runs {call.arguments['command']}")

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        self.seen.append(f"progress {partial.text}")

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        self.seen.append(f"ended {call.arguments['command']} {output.is_error}")


class ReportingTool(EchoTool):
    """A tool that reports half of its output, and then runs for ever."""

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Report, and wait."""
        assert on_update is not None
        on_update(ToolOutput("half"))
        await anyio.sleep_forever()
        raise AssertionError


def agent_of(
    project: Path, *registers: Callable[[HookAPI], Any], tool: EchoTool | None = None, ui: ScriptedUI | None = None
) -> tuple[Agent, HookRunner, Watched, Session]:
    """Return an agent with the puppet, one tool called bash, and these hooks."""
    runner = HookRunner([hook_of(register) for register in registers], cwd=project, ui=ui)
    view = Watched()
    session = Session.create(str(project))
    agent = Agent(runner=runner, model=open_model("puppet"), tools=[tool or EchoTool()], session=session, view=view)
    return agent, runner, view, session


async def test_a_prompt_is_turns_and_each_has_its_number(project: Path) -> None:
    """Turn numbers count over the whole session; the entry index is the length of the file at that time."""
    agent, runner, view, _ = agent_of(project)
    events = RecordedEvents(runner)
    answer = await agent.prompt("Look.\n@bash a\n---\n@bash b")
    await agent.prompt("hello")

    assert answer.text.startswith("1. bash a\n   ran a\n2. bash b")
    assert events.types == [
        "agent_start",
        *["turn_start", "before_tool_call", "tool_call", "tool_result", "after_tool_call", "turn_end"] * 2,
        "turn_start",
        "turn_end",
        "agent_end",
        "agent_start",
        "turn_start",
        "turn_end",
        "agent_end",
    ]
    assert [event.turn_index for event in events.of("turn_start")] == [0, 1, 2, 3]
    assert [event.entry_index for event in events.of("turn_start")] == [2, 4, 6, 8]
    assert [len(event.tool_results) for event in events.of("turn_end")] == [1, 1, 0, 0]
    assert [message.role for message in events.of("agent_end")[1].messages] == ["user", "assistant"]
    assert view.seen[:4] == ["text Look.", "judged a", "runs a", "ended a False"]


async def test_calls_of_a_turn_are_judged_in_order_and_run_in_parallel(project: Path) -> None:
    """No tool runs while the first call's dialog is open; then both run at once, each with its own result."""
    judged: list[str] = []
    ran: list[str] = []
    both = anyio.Event()

    async def body(input: dict[str, Any]) -> ToolOutput:
        ran.append(input["command"])
        if len(ran) == 2:
            both.set()
        with anyio.fail_after(PATIENCE):
            await both.wait()
        return ToolOutput(f"ran {input['command']}")

    def register(api: HookAPI) -> None:
        @api.on("tool_call")
        async def gate(event: Any, ctx: Any) -> Ask | None:
            judged.append(event.input["command"])
            return Ask("sure?") if event.input["command"] == "one" else None

    def first_asked(asked: object) -> bool:
        assert (judged, ran) == (["one"], [])
        return True

    agent, runner, _, _ = agent_of(project, register, tool=EchoTool(body=body), ui=ScriptedUI(first_asked))
    answer = await agent.prompt("@bash one\n@bash two")
    assert judged == ["one", "two"]
    assert sorted(ran) == ["one", "two"]
    assert answer.text == "1. bash one\n   ran one\n2. bash two\n   ran two\n"
    del runner


async def test_an_aborted_turn_leaves_no_call_without_an_end(project: Path) -> None:
    """The finished call keeps its result, the running one gets a result marked as aborted, and agent_end comes."""
    running = anyio.Event()

    async def body(input: dict[str, Any]) -> ToolOutput:
        if input["command"] == "long":
            running.set()
            await anyio.sleep_forever()
        return ToolOutput("quick")

    agent, runner, _, session = agent_of(project, tool=EchoTool(body=body))
    events = RecordedEvents(runner)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.prompt, "@bash quick\n@bash long")
        await running.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert [event.error for event in events.of("after_tool_call")] == [None, "aborted"]
    assert events.types[-1] == "agent_end"
    assert [message.role for message in events.of("agent_end")[0].messages] == [
        "user",
        "assistant",
        "toolResult",
        "toolResult",
    ]
    assert session.path is not None
    messages = [json.loads(line)["message"] for line in session.path.read_text().splitlines()[1:]]
    results = {message["content"][0]["text"]: message.get("details") for message in messages[2:]}
    assert results == {"quick": None, "aborted": {"status": "aborted", "tool": "bash"}}


async def test_the_result_of_an_aborted_call_has_its_output_so_far(project: Path) -> None:
    """The model reads it in its next request, and the view shows the call."""
    agent, _, view, _ = agent_of(project, tool=ReportingTool())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.prompt, "@bash long")
        with anyio.fail_after(PATIENCE):
            while "progress half" not in view.seen:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    (result,) = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert text_of_content(result.content) == "aborted; the output until then:\nhalf"
    assert result.details == {"status": "aborted", "tool": "bash"}
    assert view.seen[-1] == "ended long True"


async def test_progress_reaches_the_view(project: Path) -> None:
    """The view gets partial output."""

    class Slow(EchoTool):
        async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> ToolOutput:
            on_update(ToolOutput("half"))
            return ToolOutput("whole")

    agent, _, view, _ = agent_of(project, tool=Slow())
    await agent.prompt("@bash x")
    assert "progress half" in view.seen


async def test_a_model_that_fails_ends_the_prompt_and_still_ends_the_events(project: Path) -> None:
    """agent_end comes before the error."""
    (project / "s.jsonl").write_text("")
    runner = HookRunner([], cwd=project)
    events = RecordedEvents(runner)
    session = Session(cwd=str(project))
    agent = Agent(
        runner=runner, model=open_model(f"script:{project}/s.jsonl"), tools=[], session=session, view=Watched()
    )
    with pytest.raises(ModelError):
        await agent.prompt("go")
    assert events.types == ["agent_start", "turn_start", "agent_end"]
