"""A hook ends the run, and hooks add texts for the model, in the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import (
    AddContext,
    AgentEnd,
    AgentStart,
    Ask,
    Continue,
    HookAPI,
    HookContext,
    SessionEvent,
    Stop,
    ToolCall,
    ToolResult,
    TurnEnd,
)
from agent_hooks.errors import RunStoppedError
from agent_hooks.host.model import ModelRequest
from agent_hooks.testing import ScriptedUI
from agent_hooks.ui import Answer
from agent_hooks.values.content import TextContent, UserMessage
from host.hosting import Stage, stage
from running import Command, RpcClient

pytestmark = pytest.mark.anyio


def texts(request: ModelRequest) -> list[str]:
    """Return the texts of the user messages of a request."""
    messages = [each for each in request.messages if isinstance(each, UserMessage)]
    return [block.text for each in messages for block in each.content if isinstance(block, TextContent)]


async def stopped(on: Stage, prompt: str) -> RunStoppedError:
    """Return the error with which a run ends."""
    async with on.host as host:
        with pytest.raises(RunStoppedError) as caught:
            await host.prompt(prompt)
    return caught.value


async def test_a_stop_ends_the_run_and_no_call_of_its_turn_begins(project: Path) -> None:
    """Calls before it, which may run already, and calls after it, which no handler judges, get a refusal."""
    judged: list[str] = []

    def register(api: HookAPI) -> None:
        @api.on("tool_call")
        async def gate(event: ToolCall, ctx: HookContext) -> Stop | None:
            judged.append(event.input["command"])
            return Stop("the budget is spent") if event.input["command"] == "two" else None

    on = stage(project, register)
    error = await stopped(on, "@bash one\n@bash two\n@bash three\n---\n@bash four")
    assert str(error) == "the run was stopped: the budget is spent (hook0.py)"
    assert (judged, on.tool.inputs, len(on.model.requests)) == (["one", "two"], [], 1)
    [turn] = on.events.of("turn_end")
    assert [result.content[0].text for result in turn.tool_results] == [
        "not run, because the run was stopped: the budget is spent (hook0.py)",
        "the run was stopped: the budget is spent (hook0.py)",
        "not run, because the run was stopped: the budget is spent (hook0.py)",
    ]
    assert [event.blocked for event in on.events.of("after_tool_call")] == [True] * 3
    assert on.events.types[-3:] == ["turn_end", "agent_end", "session:shutdown"]
    assert on.view.seen[-1] == "ended the run was stopped: the budget is spent (hook0.py) aborted=False"


async def test_a_person_is_not_asked_about_a_call_after_a_stop(project: Path) -> None:
    """The question of the first call was answered before; that of the last one is not put."""

    def register(api: HookAPI) -> None:
        @api.on("tool_call")
        async def gate(event: ToolCall, ctx: HookContext) -> Stop | Ask:
            return Stop("enough") if event.input["command"] == "two" else Ask(f"Run {event.input['command']}?")

    ui = ScriptedUI(True)
    on = stage(project, register, ui=ui)
    await stopped(on, "@bash one\n@bash two\n@bash three")
    assert [each.title for each in ui.asked] == ["Run one?"]
    assert on.tool.inputs == []


async def test_a_no_of_the_person_that_stops_ends_the_run(project: Path) -> None:
    """The call is blocked by the person, the model reads of it with the next prompt, and no other call begins."""

    def register(api: HookAPI) -> None:
        @api.on("tool_call")
        async def gate(event: ToolCall, ctx: HookContext) -> Ask | None:
            return Ask("Sure?") if event.input["command"] == "one" else None

    on = stage(project, register, ui=ScriptedUI(Answer("no", stops=True)))
    error = await stopped(on, "@bash one\n@bash two\n---\n@bash three")
    assert str(error) == "the run was stopped by your No"
    assert (on.tool.inputs, len(on.model.requests)) == ([], 1)
    [turn] = on.events.of("turn_end")
    assert [result.content[0].text for result in turn.tool_results] == [
        "the run was stopped: Sure?: the user said no (asked by hook0.py)",
        "not run, because the run was stopped: Sure? (hook0.py)",
    ]


async def test_a_no_alone_lets_the_agent_go_on(project: Path) -> None:
    """The model reads the refusal and makes its next request."""

    def register(api: HookAPI) -> None:
        api.on("tool_call", lambda event, ctx: Ask("Sure?") if event.input["command"] == "one" else None)

    on = stage(project, register, ui=ScriptedUI(False))
    async with on.host as host:
        await host.prompt("@bash one\n---\n@bash two")
    assert on.tool.inputs == [{"command": "two"}]


def test_a_yes_does_not_stop() -> None:
    """Such an answer would be a mistake of the UI."""
    with pytest.raises(ValueError, match="goes with 'no'"):
        Answer("once", stops=True)


async def test_a_stop_from_a_result_keeps_the_results_of_the_turn(project: Path) -> None:
    """The calls that run end as always; no further request goes out, and the session has the results."""

    def register(api: HookAPI) -> None:
        @api.on("tool_result")
        async def judge(event: ToolResult, ctx: HookContext) -> Stop | None:
            return Stop("that is enough") if event.input["command"] == "one" else None

    on = stage(project, register)
    error = await stopped(on, "@bash one\n@bash two\n---\n@bash three")
    assert "that is enough" in str(error)
    # The calls of a turn run side by side.
    assert sorted(each["command"] for each in on.tool.inputs) == ["one", "two"]
    assert len(on.model.requests) == 1
    [turn] = on.events.of("turn_end")
    assert [result.content[0].text for result in turn.tool_results] == ["ran one", "ran two"]
    assert on.path.read_text().count('"toolResult"') == 2


@pytest.mark.parametrize("answer", [Stop("three turns are enough"), {"stop": "three turns are enough"}])
async def test_a_stop_from_a_turn_ends_the_run_after_it(project: Path, answer: Any) -> None:
    """A hook can limit the turns of a run; the error has the last message of the model."""

    def register(api: HookAPI) -> None:
        api.on("turn_end", lambda event, ctx: answer if event.turn_index == 2 else None)

    on = stage(project, register)
    error = await stopped(on, "@bash 1\n---\n@bash 2\n---\nlook\n@bash 3\n---\n@bash 4")
    assert len(on.model.requests) == 3
    assert "three turns are enough" in str(error)
    assert error.answer is on.events.of("turn_end")[-1].message


async def test_no_hook_keeps_a_stopped_run_going_and_waiting_messages_stay(project: Path) -> None:
    """A `Continue` does not count, and a sent message begins no run; it goes with the next prompt."""

    def register(api: HookAPI) -> None:
        @api.on("turn_end")
        async def end(event: TurnEnd, ctx: HookContext) -> Stop | None:
            if event.turn_index == 0:
                api.send("sent meanwhile")
                return Stop("enough")
            return None

        @api.on("agent_end")
        async def more(event: AgentEnd, ctx: HookContext) -> Continue | None:
            return Continue("go on") if len(event.messages) == 2 else None

    on = stage(project, register)
    async with on.host as host:
        host.submit("hello")
        await host.wait_idle()
        assert len(on.model.requests) == 1
        assert on.view.warnings == [
            "the agent stops here, because a hook has stopped the run; hook0.py wants to continue it"
        ]
        host.submit("again")
        await host.wait_idle()
    sent = {text for request in on.model.requests for text in texts(request)}
    assert {"hello", "sent meanwhile", "again"} <= sent
    assert "go on" not in sent


async def test_the_next_prompt_runs_as_always(project: Path) -> None:
    """A stop ends one run only."""

    def register(api: HookAPI) -> None:
        api.on("tool_call", lambda event, ctx: Stop("no") if event.input["command"] == "one" else None)

    on = stage(project, register)
    async with on.host as host:
        with pytest.raises(RunStoppedError):
            await host.prompt("@bash one")
        assert "ran two" in (await host.prompt("@bash two")).text


async def test_agent_start_knows_the_prompt_and_adds_a_text_after_it(project: Path) -> None:
    """The prompt is that of `message.before`; the text is a message of the hook, in the session too."""

    def register(api: HookAPI) -> None:
        @api.intercept("message.before")
        def shorter(input: Any, output: Any) -> None:
            output.message = output.message.replace("please ", "")

        @api.on("agent_start")
        async def start(event: AgentStart, ctx: HookContext) -> AddContext:
            return AddContext(f"The branch for {event.prompt!r} is main.")

    on = stage(project, register)
    async with on.host as host:
        await host.prompt("please look")
    assert [event.prompt for event in on.events.of("agent_start")] == ["look"]
    assert texts(on.model.requests[0]) == ["look", "The branch for 'look' is main."]
    lines = [json.loads(line) for line in on.path.read_text().splitlines()]
    sources = [line["message"].get("source") for line in lines if line.get("message", {}).get("role") == "user"]
    assert sources == [None, "hook0.py"]
    assert "injected The branch for 'look' is main. by hook0.py" in on.view.seen


async def test_a_text_of_a_session_event_comes_after_the_next_prompt(project: Path) -> None:
    """A text about a session that was left is dropped; the texts of several hooks come in their order."""

    def first(api: HookAPI) -> None:
        @api.on("session")
        async def session(event: SessionEvent, ctx: HookContext) -> AddContext | None:
            return AddContext(f"about {event.reason}") if event.reason in ("start", "clear") else None

    def second(api: HookAPI) -> None:
        api.on("session", lambda event, ctx: {"addContext": "more"} if event.reason == "clear" else None)

    on = stage(project, first, second)
    async with on.host as host:
        await host.clear()
        await host.prompt("one")
        await host.prompt("two")
    assert texts(on.model.requests[0]) == ["one", "about clear\n\nmore"]
    assert texts(on.model.requests[1]) == ["one", "about clear\n\nmore", "two"]


async def test_a_text_of_a_session_without_a_prompt_makes_no_entry(project: Path) -> None:
    """A session that is opened and closed stays empty."""

    def register(api: HookAPI) -> None:
        api.on("session", lambda event, ctx: AddContext("house rules") if event.reason == "start" else None)

    on = stage(project, register)
    async with on.host:
        pass
    assert on.model.requests == []
    assert not on.path.exists() or "house rules" not in on.path.read_text()


async def test_a_text_below_a_result_reaches_the_model(project: Path) -> None:
    """The next request has the result and the text."""

    def register(api: HookAPI) -> None:
        api.on("tool_result", lambda event, ctx: AddContext("this tool is deprecated"))

    on = stage(project, register)
    async with on.host as host:
        await host.prompt("@bash ls")
    [result] = [each for each in on.model.requests[1].messages if each.role == "toolResult"]
    assert [block.text for block in result.content] == ["ran ls", "this tool is deprecated"]


HOOK = """
from agent_hooks import AddContext, Stop

def register(api):
    api.on("tool_call", lambda event, ctx: Stop("the budget is spent") if "two" in event.input["command"] else None)
    api.on("agent_start", lambda event, ctx: AddContext(f"asked: {event.prompt}"))
"""


def test_print_mode_ends_with_the_reason_and_exit_code_1(command: Command) -> None:
    """A script knows that the work was not done; the words of the model are printed."""
    hook = command.project / "gate.py"
    hook.write_text(HOOK)
    prompt = "I look.\n@bash echo one\n---\nI go.\n@bash echo two"
    done = command("run", "--hook", str(hook), "-p", prompt, code=1)
    assert "I go." in done.stdout
    assert "the run was stopped: the budget is spent (gate.py)" in done.stderr


def test_an_rpc_client_gets_the_reason_the_prompt_and_the_texts(command: Command) -> None:
    """`run_end` has the reason, `agent_start` the prompt, and the text is a message of the hook."""
    hook = command.project / "gate.py"
    hook.write_text(HOOK)
    client = RpcClient(command.line("run", "--mode", "rpc", "--hook", str(hook)), cwd=command.project)
    client.send("prompt", message="@bash echo two")
    start = client.expect("agent_start")
    injected = client.expect("message_injected")
    end = client.expect("run_end")
    client.end()
    assert start["prompt"] == "@bash echo two"
    assert injected["message"] == "asked: @bash echo two"
    assert end["error"] == "the run was stopped: the budget is spent (gate.py)"
