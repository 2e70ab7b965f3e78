"""A stop ends the run, and a text for the model comes below a result: through all steps of a call."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hooks import (
    AddContext,
    AfterToolCall,
    Ask,
    BeforeToolCall,
    Block,
    Continue,
    HookAPI,
    HookContext,
    HookRunner,
    Replace,
    Rewrite,
    Stop,
    TextContent,
    ToolOutput,
    ToolResult,
    TurnEnd,
    wrap_tool,
)
from agent_hooks.redaction import Redactor
from agent_hooks.testing import RecordedEvents, ScriptedUI, StandInTool, call_tool
from agent_hooks.values.content import AssistantMessage
from support import EchoTool, call_of, hook_of, hook_on, runner_of

pytestmark = pytest.mark.anyio
TOKEN = "ghp_" + "0123456789" * 4
NOW = {"timestamp": 0, "provider": "p", "model": "m"}


async def test_a_stop_is_a_block_first() -> None:
    """The tool does not run, the model reads that the run ends, and observers read the reason."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: Stop("the budget is spent"), inline=True))
    events = RecordedEvents(runner)
    stops: list[Stop] = []
    undo = runner.on_stop(stops.append)
    tool = StandInTool()
    output = await call_tool(runner, "bash", {"command": "ls"}, tool)
    assert tool.inputs == []
    assert (output.is_error, output.text) == (True, "the run was stopped: the budget is spent (hook.py)")
    assert output.details["status"] == "blocked"
    [after] = events.of("after_tool_call")
    assert isinstance(after, AfterToolCall)
    assert (after.blocked, after.block_reason) == (True, "the budget is spent")
    assert stops == [Stop("the budget is spent", "hook.py", "hook")]
    undo()
    await call_tool(runner, "bash", {"command": "ls"}, tool)
    assert len(stops) == 1


async def test_a_program_that_knows_only_blocks_blocks() -> None:
    """The answer to the event is a `Block` too."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: {"stop": "enough"}, inline=True))
    answer = await runner.emit(call_of())
    assert isinstance(answer, Block)
    assert answer == Stop("enough", "hook.py", "hook")


async def test_a_stop_beats_questions_and_rewrites() -> None:
    """No person is asked, and no rewritten call runs, whichever comes first."""

    def register(api: Any) -> None:
        api.on("before_tool_call", lambda event, ctx: Rewrite({"command": "other"}), inline=True)
        api.on("before_tool_call", lambda event, ctx: Ask("Shall it?"), inline=True)
        api.on("tool_call", lambda event, ctx: Ask("Really?"), inline=True)
        api.on("tool_call", lambda event, ctx: Stop("enough"), inline=True)
        api.on("tool_call", lambda event, ctx: Ask("And now?"), inline=True)

    ui = ScriptedUI()
    tool = StandInTool()
    output = await call_tool(HookRunner([hook_of(register)], cwd="/w", ui=ui), "bash", {"command": "ls"}, tool)
    assert output.text == "the run was stopped: enough (hook.py)"
    assert (ui.asked, tool.inputs) == ([], [])


@pytest.mark.parametrize(
    "answer",
    [
        {"stop": "enough", "ask": {"title": "Shall it?"}},
        {"stop": "enough", "params": {"command": "other"}},
        {"stop": "enough", "block": True, "reason": "no"},
        {"stop": "enough", "block": False},
    ],
)
async def test_a_stop_in_the_mapping_form_beats_what_stands_beside_it(answer: Any) -> None:
    """Also on `before_tool_call`, where a rewrite could stand."""
    runner, _ = runner_of(hook_on("before_tool_call", lambda event, ctx: answer, inline=True))
    found = await runner.emit(BeforeToolCall(tool_name="bash", params={"command": "ls"}))
    assert found == Stop("enough", "hook.py", "hook")


async def test_a_stop_without_a_reason_has_one() -> None:
    """The text names the hook."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: Stop(), inline=True))
    assert (await call_tool(runner, "bash", {})).text == "the run was stopped: stopped by a hook (hook.py)"


@pytest.mark.parametrize("answer", [{"stop": True}, {"stop": 1}, {"stop": "x", "blok": True}])
async def test_a_wrong_stop_blocks(answer: Any) -> None:
    """A mistake in a gate's answer lets no call through."""
    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: answer, inline=True))
    output = await call_tool(runner, "bash", {"command": "ls"})
    assert output.is_error
    assert [error.outcome for error in errors] == ["blocked"]


async def test_a_stop_from_a_result_keeps_the_result_and_calls_the_later_handlers() -> None:
    """A handler that hides something in the result comes after the stop, and works."""

    def register(api: Any) -> None:
        api.on("tool_result", lambda event, ctx: Stop("that was the last one"), inline=True)
        api.on("tool_result", lambda event, ctx: Stop("a second one"), inline=True)
        api.on("tool_result", lambda event, ctx: Replace(content=event.text.replace("cus_1", "cus_***")), inline=True)

    runner, _ = runner_of(hook_of(register))
    stops: list[Stop] = []
    runner.on_stop(stops.append)
    output = await call_tool(runner, "bash", {}, StandInTool(output="paid by cus_1"))
    assert (output.text, output.is_error) == ("paid by cus_***", False)
    assert [stop.reason for stop in stops] == ["that was the last one"]


async def test_the_first_stop_of_a_turn_counts_and_all_handlers_get_the_event() -> None:
    """A turn's end is no gate: no handler is left out."""
    seen: list[int] = []

    def register(api: HookAPI) -> None:
        @api.on("turn_end")
        async def first(event: TurnEnd, ctx: HookContext) -> Stop:
            seen.append(1)
            return Stop("one")

        @api.on("turn_end")
        async def second(event: TurnEnd, ctx: HookContext) -> Stop:
            seen.append(2)
            return Stop("two")

    runner, _ = runner_of(hook_of(register))
    answer = await runner.emit(TurnEnd(turn_index=0, message=AssistantMessage(content=(), **NOW)))  # type: ignore[arg-type]  # NOW is mixed
    assert isinstance(answer, Stop)
    assert (answer.reason, seen) == ("one", [1, 2])


async def test_added_texts_come_below_the_result_which_stays() -> None:
    """Content, details and status are those of the tool; each text is a block of its own, in the order of the hooks."""
    one = hook_on("tool_result", lambda event, ctx: AddContext("one"), inline=True)
    two = hook_on("tool_result", lambda event, ctx: {"addContext": "two"}, path="b.py", inline=True)
    runner, _ = runner_of(one, two)
    tool = StandInTool(output=ToolOutput("the result", {"exit": 3}, is_error=True))
    output = await call_tool(runner, "bash", {}, tool)
    assert output.content == [TextContent("the result"), TextContent("one"), TextContent("two")]
    assert (output.details, output.is_error) == ({"exit": 3}, True)


async def test_a_replacement_keeps_added_texts_and_no_handler_takes_them_for_the_result() -> None:
    """`Replace` changes the result only, before and after a text was added."""
    seen: list[str] = []

    def register(api: Any) -> None:
        api.on("tool_result", lambda event, ctx: AddContext("mind the gap"), inline=True)
        api.on("tool_result", lambda event, ctx: seen.append(event.text), inline=True)
        api.on("tool_result", lambda event, ctx: {"content": "short", "addContext": "and the train"}, inline=True)

    runner, _ = runner_of(hook_of(register))
    output = await call_tool(runner, "bash", {}, StandInTool(output="long"))
    assert [block.text for block in output.content if isinstance(block, TextContent)] == [
        "short",
        "mind the gap",
        "and the train",
    ]
    assert seen == ["long"]


async def test_the_answer_to_a_result_is_one_replace() -> None:
    """A program that emits the event itself reads the texts and the stop in it."""

    def register(api: Any) -> None:
        api.on("tool_result", lambda event, ctx: AddContext("one"), inline=True)
        api.on("tool_result", lambda event, ctx: Stop("enough"), inline=True)

    runner, _ = runner_of(hook_of(register))
    answer = await runner.emit(ToolResult(tool_name="bash", tool_call_id="1", input={}, content="x"))
    assert answer == Replace(context=(AddContext("one", "hook.py"),), stop=Stop("enough", "hook.py", "hook"))
    assert answer.changes() == {}


async def test_only_the_runner_sets_the_combined_fields() -> None:
    """A handler's `Replace` with a stop or texts of its own has none."""
    forged = Replace(content="x", context=(AddContext("y"),), stop=Stop("z"))
    runner, _ = runner_of(hook_on("tool_result", lambda event, ctx: forged, inline=True))
    stops: list[Stop] = []
    runner.on_stop(stops.append)
    output = await call_tool(runner, "bash", {}, StandInTool(output="long"))
    assert (output.text, stops) == ("x", [])


class OwnBlock(Block, frozen=True, kw_only=True):
    """A hook's own kind of block, which cannot be made of a reason alone."""

    ticket: int


async def test_a_hooks_own_kind_of_block_blocks_with_its_reason() -> None:
    """Its other fields are dropped."""
    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: OwnBlock("not now", ticket=7), inline=True))
    output = await call_tool(runner, "bash", {})
    assert output.text == "not now (hook.py)"
    assert errors == []


async def test_secrets_in_the_texts_are_hidden() -> None:
    """A hook that quotes a token gives the model a mark."""

    def register(api: Any) -> None:
        api.on("tool_result", lambda event, ctx: AddContext(f"use {TOKEN}"), inline=True)
        api.on("tool_call", lambda event, ctx: Stop(TOKEN) if event.input.get("stop") else None, inline=True)

    runner = HookRunner([hook_of(register)], cwd="/w", redactor=Redactor())
    stops: list[Stop] = []
    runner.on_stop(stops.append)
    output = await call_tool(runner, "bash", {}, StandInTool(output="x"))
    assert TOKEN not in output.text
    assert "[redacted" in output.text
    await call_tool(runner, "bash", {"stop": True})
    assert TOKEN not in str(stops[0])


@pytest.mark.parametrize("text", ["", "  \n", 3, None])
def test_a_text_needs_words(text: Any) -> None:
    """A blank text, or no text, is a mistake."""
    with pytest.raises(TypeError, match="a text with words in it"):
        AddContext(text)


def test_a_long_or_odd_text_is_made_fit_to_send() -> None:
    """Half of a surrogate pair becomes a question mark, and the middle of a long text is cut."""
    assert AddContext("half \ud800").text == "half ?"
    assert len(AddContext("x" * 50_000).text) < 21_000
    with pytest.raises(TypeError, match=r"Stop\(reason\) wants a str"):
        Stop(3)  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(
    ("event", "answer"),
    [("tool_call", AddContext("x")), ("turn_end", AddContext("x")), ("agent_start", Stop("x")), ("agent_end", Stop())],
)
async def test_an_answer_at_the_wrong_event_is_reported(event: str, answer: Any) -> None:
    """The report names the right forms; a gate blocks."""
    events: dict[str, Any] = {
        "tool_call": call_of(),
        "turn_end": TurnEnd(turn_index=0, message=AssistantMessage(content=(), **NOW)),  # type: ignore[arg-type]  # as above
    }
    from agent_hooks import AgentEnd, AgentStart

    events |= {"agent_start": AgentStart(), "agent_end": AgentEnd()}
    runner, errors = runner_of(hook_on(event, lambda event, ctx: answer, inline=True))
    outcome = await runner.emit(events[event])
    assert isinstance(outcome, Block) == (event == "tool_call")
    assert not isinstance(outcome, Continue)
    assert f"{event} handlers return" in errors[0].error


async def test_a_wrapped_tool_returns_the_texts_too() -> None:
    """A program with its own agent loop shows its model the output as it is."""
    runner, _ = runner_of(hook_on("tool_result", lambda event, ctx: AddContext("note"), inline=True))
    output = await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
    assert [block.text for block in output.content if isinstance(block, TextContent)] == ["ran ls", "note"]
