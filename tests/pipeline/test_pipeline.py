"""One tool call from the agent's request to its result: rewriters, judges, the question to the person, observers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import (
    AfterToolCall,
    AgentStart,
    Ask,
    BeforeToolCall,
    Block,
    HookAPI,
    HookContext,
    HookRunner,
    LoadedHook,
    Replace,
    Rewrite,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    wrap_tool,
    wrap_tools,
)
from agent_hooks.pipeline.order import preflight, run_tool
from agent_hooks.testing import RecordedEvents, ScriptedUI, StepClock
from agent_hooks.values.answers import DEFAULT_REASON
from support import PATIENCE, EchoTool, examples, hook_of, hook_on, runner_of

LoadHook = Callable[..., Any]
LS = {"command": "ls"}


def wrapped(*hooks: LoadedHook, tool: EchoTool | None = None, **options: Any) -> tuple[EchoTool, Tool, RecordedEvents]:
    """Return a tool, the same with these hooks around it, and the recorded events of the runner."""
    runner, _ = runner_of(*hooks, **options)
    bare = tool or EchoTool()
    return bare, wrap_tool(bare, runner), RecordedEvents(runner)


async def blocked_by(*hooks: LoadedHook, tool_input: Any = None, **options: Any) -> str:
    """Call a tool with these hooks around it; return the text, after checking that it was blocked and told so."""
    bare, tool, recorded = wrapped(*hooks, **options)
    output = await tool.execute("1", LS if tool_input is None else tool_input)
    assert output.is_error
    assert not bare.inputs
    cause = {"cause": "schema"} if output.text.startswith("bash: ") else {}
    assert output.details == {"status": "blocked", "tool": "bash", "reason": output.text, **cause}
    [after] = recorded.of("after_tool_call")
    assert after.blocked
    assert after.error == output.text
    assert (after.result, after.duration_ms) == (None, None)
    assert not recorded.of("tool_result")
    return output.text


# ---- without hooks ---------------------------------------------------------------------------------------------------


async def test_without_hooks_the_very_same_result_comes_back() -> None:
    """No event is made, and the tool gets the very same input."""
    result = ToolOutput("exactly this")

    async def body(tool_input: dict[str, Any]) -> ToolOutput:
        assert tool_input is LS
        return result

    runner, _ = runner_of()
    [tool] = wrap_tools([EchoTool(body=body)], runner)
    assert await tool.execute("1", LS) is result
    assert (tool.name, tool.description) == ("bash", "Echo the command.")
    assert isinstance(tool, Tool)


@pytest.mark.parametrize("matcher", ["bash", re.compile("^ba"), ["bash", re.compile("x$")]])
async def test_handlers_of_other_tools_are_skipped_at_no_cost(matcher: Any) -> None:
    """With `tool=` the call of another tool goes straight through."""

    def register(api: HookAPI) -> None:
        for event in ("before_tool_call", "tool_call", "tool_result", "after_tool_call"):
            on: Any = api.on
            on(event, lambda event, ctx: seen.append(event.type), tool=matcher, inline=True)

    seen: list[str] = []
    result = ToolOutput("exactly this")

    async def body(tool_input: dict[str, Any]) -> ToolOutput:
        return result

    runner, _ = runner_of(hook_of(register))
    other, bash = wrap_tools([EchoTool("read", body), EchoTool("bash", body)], runner)
    assert await other.execute("1", LS) is result
    assert not seen
    await bash.execute("1", LS)
    assert seen == ["before_tool_call", "tool_call", "tool_result", "after_tool_call"]


# ---- blocks ----------------------------------------------------------------------------------------------------------


async def test_a_block_stops_the_tool_and_the_next_hook_is_not_asked(load_hook: LoadHook) -> None:
    """The text is the reason and names the hook; `after_tool_call` says it was blocked and why."""
    first = await load_hook(
        """
        from agent_hooks import Block
        def register(api):
            @api.on("tool_call", tool="bash")
            async def gate(event, ctx):
                return Block("not on a Friday")
        """,
        "friday.py",
    )
    seen: list[str] = []
    second = hook_on("tool_call", lambda event, ctx: seen.append("asked"), path="b.py")
    bare, tool, recorded = wrapped(first, second)
    output = await tool.execute("1", LS)
    assert output.is_error
    assert "not on a Friday" in output.text
    assert "friday" in output.text
    assert not seen
    assert not bare.inputs
    [after] = recorded.of("after_tool_call")
    assert (after.blocked, after.block_reason, after.params) == (True, "not on a Friday", LS)
    assert not recorded.errors


@pytest.mark.parametrize("answer", [Block(), Block(""), {"block": True}, {"block": True, "reason": ""}])
async def test_a_block_without_a_reason_has_a_default_text(answer: object) -> None:
    """It still names the hook."""
    text = await blocked_by(hook_on("tool_call", lambda event, ctx: answer, inline=True))
    assert text == f"{DEFAULT_REASON} (hook.py)"


async def test_a_false_block_is_no_opinion_whatever_its_reason() -> None:
    """The next hook's block counts."""
    text = await blocked_by(
        hook_on("tool_call", lambda event, ctx: {"block": False, "reason": "fine"}, inline=True),
        hook_on("tool_call", lambda event, ctx: {"block": True, "reason": "not fine"}, path="b.py", inline=True),
    )
    assert text == "not fine (b.py)"


@pytest.mark.parametrize("event", ["tool_call", "before_tool_call"])
async def test_a_raising_tool_call_handler_blocks_the_tool(event: str) -> None:
    """The text says which hook failed, and listeners are told."""
    runner, errors = runner_of(hook_on(event, lambda event, ctx: 1 / 0, inline=True))
    bare = EchoTool()
    output = await wrap_tool(bare, runner).execute("1", LS)
    assert output.text == "not run, because hook hook.py failed: ZeroDivisionError: division by zero"
    assert not bare.inputs
    assert [(error.hook_path, error.event, error.outcome) for error in errors] == [("hook.py", event, "blocked")]


@pytest.mark.parametrize(
    "answer",
    [True, "yes", 1, [], {"blok": True}, {"block": "yes"}, {"reason": "x"}, {1: 2}, {"params": {}}, Rewrite({})],
    ids=repr,
)
async def test_an_answer_of_the_wrong_shape_blocks_and_the_text_shows_the_right_form(answer: object) -> None:
    """It is a failure of that handler, never "no opinion"."""
    text = await blocked_by(hook_on("tool_call", lambda event, ctx: answer, inline=True))
    assert "hook hook.py failed" in text
    assert 'return Block("why") or {"block": True, "reason": "why"}' in text.replace("handlers return", "return")


@pytest.mark.parametrize(
    "mutate",
    [
        lambda event: event.input.update(command="rm"),
        lambda event: event.input.__setitem__("command", "rm"),
        lambda event: event.input["options"].append("-rf"),
        lambda event: event.input["options"][0].__setitem__("name", "rm"),
        lambda event: setattr(event, "input", {}),
        lambda event: setattr(event, "tool_name", "read"),
    ],
)
async def test_a_handler_that_changes_its_event_in_place_fails(mutate: Callable[[Any], object]) -> None:
    """It raises in that handler and names Rewrite; tool and other handlers are not touched."""
    tool_input = {"command": "ls", "options": [{"name": "-l"}]}
    text = await blocked_by(hook_on("tool_call", lambda event, ctx: mutate(event), inline=True), tool_input=tool_input)
    assert "Rewrite" in text
    seen: list[object] = []
    bare, tool, _ = wrapped(
        hook_on("tool_call", lambda event, ctx: mutate(event), inline=True, on_error="continue"),
        hook_on("tool_call", lambda event, ctx: seen.append(event.input), inline=True),
    )
    await tool.execute("1", tool_input)
    assert seen == bare.inputs == [{"command": "ls", "options": [{"name": "-l"}]}]
    assert type(bare.inputs[0]) is dict


# ---- rewrites --------------------------------------------------------------------------------------------------------


async def test_everyone_after_a_rewrite_sees_the_rewritten_input() -> None:
    """The next rewriter, the gates, the dialog, the tool and the observers."""
    seen: dict[str, object] = {}

    def register(api: HookAPI) -> None:
        api.on("before_tool_call", lambda event, ctx: {"params": {"command": "ls -l"}}, priority=1, inline=True)
        api.on("before_tool_call", lambda event, ctx: seen.update(rewriter=event.params), inline=True)

        @api.on("tool_call")
        async def gate(event: ToolCall, ctx: HookContext) -> Ask:
            seen.update(gate=event.input)
            return Ask("Sure?")

        api.on("tool_result", lambda event, ctx: seen.update(result=event.input), inline=True)
        api.on("after_tool_call", lambda event, ctx: seen.update(after=event.params), inline=True)

    ui = ScriptedUI(True)
    bare, tool, recorded = wrapped(hook_of(register), ui=ui)
    await tool.execute("1", LS)
    assert seen == {name: {"command": "ls -l"} for name in ("rewriter", "gate", "result", "after")}
    assert bare.inputs == [{"command": "ls -l"}]
    assert "ls -l" in str(ui.asked[0].more)
    assert not recorded.errors


@pytest.mark.parametrize("priority", [-1000, 0, 1000])
async def test_no_rewriter_slips_past_a_gate_whatever_its_priority(priority: int) -> None:
    """Judging comes after all rewriting."""
    text = await blocked_by(
        hook_on(
            "tool_call",
            lambda event, ctx: Block("destructive") if event.input["command"].startswith("rm") else None,
            priority=5000,
            inline=True,
        ),
        hook_on(
            "before_tool_call",
            lambda event, ctx: Rewrite({"command": "rm -rf /"}),
            path="evil.py",
            priority=priority,
            inline=True,
        ),
    )
    assert text == "destructive (hook.py)"


async def test_a_rewrite_that_breaks_the_schema_blocks_and_names_the_rewriter() -> None:
    """The gates are not asked about it."""
    seen: list[str] = []
    text = await blocked_by(
        hook_on("before_tool_call", lambda event, ctx: Rewrite({"cmd": "ls"}), path="clumsy.py", inline=True),
        hook_on("tool_call", lambda event, ctx: seen.append("asked"), inline=True),
    )
    assert '"command" is a required property' in text
    assert "rewritten by clumsy.py" in text
    assert not seen


@pytest.mark.parametrize("wrong", [{}, {"command": 7}, "ls", None, []])
async def test_an_input_that_breaks_the_schema_reaches_nobody(wrong: Any) -> None:
    """It is an error result for the model, and observers hear of it."""
    seen: list[str] = []
    bare, tool, recorded = wrapped(hook_on("tool_call", lambda event, ctx: seen.append("asked"), inline=True))
    output = await tool.execute("1", wrong)
    assert output.is_error
    assert output.text.startswith("bash: ")
    assert output.details == {"status": "blocked", "tool": "bash", "reason": output.text, "cause": "schema"}
    assert not seen
    assert not bare.inputs
    assert recorded.of("after_tool_call")[0].blocked


async def test_a_block_in_before_tool_call_stops_the_call() -> None:
    """A veto there is as good as one of a gate."""
    text = await blocked_by(
        hook_on("before_tool_call", lambda event, ctx: {"block": True, "blockReason": "vetoed"}, inline=True)
    )
    assert text == "vetoed (hook.py)"


# ---- asking ----------------------------------------------------------------------------------------------------------


def asking() -> list[LoadedHook]:
    """Return hooks that ask at three places, with a rewrite between them."""
    return [
        hook_on("before_tool_call", lambda event, ctx: Ask("Odd", "a veto asks"), path="a.py", inline=True),
        hook_on("before_tool_call", lambda event, ctx: Rewrite({"command": "ls -l"}), path="r.py", inline=True),
        hook_on("tool_call", lambda event, ctx: Ask("Risky", "the first gate"), path="b.py", inline=True),
        hook_on("tool_call", lambda event, ctx: {"ask": {"title": "Risky"}}, path="c.py", inline=True),
    ]


async def test_all_asks_of_a_call_become_one_question() -> None:
    """The question shows the call and every reason; "yes" runs the call."""
    ui = ScriptedUI(True)
    _, tool, recorded = wrapped(*asking(), ui=ui)
    assert (await tool.execute("1", LS)).text == "ran ls -l"
    [asked] = ui.asked
    assert (asked.method, asked.title) == ("confirm", "Odd; Risky")
    assert asked.more.splitlines() == [
        "bash ls -l",
        "a.py: a veto asks",
        "b.py: the first gate",
        "c.py: Risky",
    ]
    assert not recorded.errors


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
async def test_anything_but_yes_blocks(answer: object) -> None:
    """Also an answer that merely looks like a yes."""

    class OddUI(ScriptedUI):
        async def confirm(self, title: str, message: str) -> bool:
            return answer  # type: ignore[return-value]  # from a careless UI

    assert await blocked_by(*asking(), ui=OddUI()) == "Odd; Risky: the user said no (asked by a.py, b.py, c.py)"


async def test_with_nobody_there_an_ask_blocks() -> None:
    """The text says so, and not that somebody refused."""
    assert await blocked_by(*asking()) == "Odd; Risky: no person is here to answer (asked by a.py, b.py, c.py)"


async def test_a_block_counts_more_than_an_ask_and_nobody_is_bothered() -> None:
    """A question that could not change anything is not put."""
    ui = ScriptedUI()
    block = hook_on("tool_call", lambda event, ctx: Block("never"), path="z.py", inline=True)
    assert await blocked_by(*asking(), block, ui=ui) == "never (z.py)"
    assert not ui.asked


async def test_a_broken_ui_counts_as_no_answer() -> None:
    """The text names the failure."""
    text = await blocked_by(*asking(), ui=ScriptedUI())
    assert "could not be shown: AssertionError" in text


async def test_a_gate_may_wait_ten_minutes_for_an_answer() -> None:
    """Also when `tool_call` has a deadline: the clock stands while the dialog is open."""

    async def late(asked: object) -> bool:
        clock.skip(600)
        await checkpoint()
        return True

    async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        return None if await ctx.ui.confirm("Sure?") else Block()

    for timeout in (None, 5):
        runner, errors = runner_of(hook_on("tool_call", gate), ui=ScriptedUI(late), tool_call_timeout=timeout)
        clock = StepClock(runner)
        output = await wrap_tool(EchoTool(), runner).execute("1", LS)
        assert output.text == "ran ls"
        assert not errors


async def test_a_dialog_of_a_wrapped_tools_gate_stops_the_clock_of_the_handler_that_called_it() -> None:
    """Whether the gate opens it or answers Ask; the handler waits for the person too."""

    async def late(asked: object) -> bool:
        clock.skip(600)
        await checkpoint()
        return True

    async def gate(event: ToolCall, ctx: HookContext) -> Ask | None:
        return Ask("Sure?") if await ctx.ui.confirm("May I ask?") else None

    async def outer(event: AgentStart, ctx: HookContext) -> None:
        await checkpoint()
        outputs.append((await tool.execute("1", LS)).text)
        await checkpoint()

    outputs: list[str] = []
    runner, errors = runner_of(
        hook_on("agent_start", outer), hook_on("tool_call", gate), ui=ScriptedUI(late, late), timeout=30
    )
    tool = wrap_tool(EchoTool(), runner)
    clock = StepClock(runner)
    await runner.emit(AgentStart())
    assert outputs == ["ran ls"]
    assert not errors


# ---- aborts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["dialog of a gate", "one question", "queue"])
async def test_an_abort_ends_a_call_that_is_being_judged_at_once(where: str) -> None:
    """The tool does not run, and observers hear of it."""
    began = anyio.Event()

    async def forever(asked: object) -> bool:
        began.set()
        await anyio.sleep_forever()
        return True

    async def gate(event: ToolCall, ctx: HookContext) -> Ask | None:
        if where == "one question":
            return Ask("?")
        await ctx.ui.confirm("?")
        return None

    bare, tool, recorded = wrapped(hook_on("tool_call", gate), ui=ScriptedUI(forever, forever))
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tool.execute, "1", LS)
            await began.wait()
            if where == "queue":
                tasks.start_soon(tool.execute, "2", LS)
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert not bare.inputs
    assert {event.tool_call_id for event in recorded.of("after_tool_call")} == (
        {"1", "2"} if where == "queue" else {"1"}
    )
    assert {event.error for event in recorded.of("after_tool_call")} == {"aborted"}
    assert not recorded.errors


@pytest.mark.parametrize("where", ["tool", "tool_result handler"])
async def test_an_abort_while_the_tool_runs_still_fires_after_tool_call(where: str) -> None:
    """With `error="aborted"`; the observers may take a moment although the task is being cancelled."""
    seen: list[object] = []
    began = anyio.Event()

    async def body(tool_input: dict[str, Any]) -> None:
        if where == "tool":
            began.set()
            try:
                await anyio.sleep_forever()
            finally:
                seen.append("tool cancelled")

    async def result(event: ToolResult, ctx: HookContext) -> None:
        began.set()
        await anyio.sleep_forever()

    async def after(event: AfterToolCall, ctx: HookContext) -> None:
        await anyio.sleep(0.001)
        seen.append((event.error, event.blocked, event.result))
        assert event.duration_ms is not None

    _, tool, recorded = wrapped(
        hook_on("after_tool_call", after), hook_on("tool_result", result), tool=EchoTool(body=body)
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tool.execute, "1", LS)
        await began.wait()
        tasks.cancel_scope.cancel()
    assert seen == (["tool cancelled"] if where == "tool" else []) + [("aborted", False, None)]
    assert not recorded.errors


async def test_observers_of_an_abort_cannot_hold_it_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have two seconds."""
    monkeypatch.setattr("agent_hooks.pipeline.order.ABORT_GRACE", 0.02)
    began = anyio.Event()

    async def body(tool_input: dict[str, Any]) -> None:
        began.set()
        await anyio.sleep_forever()

    async def after(event: AfterToolCall, ctx: HookContext) -> None:
        await anyio.sleep_forever()

    _, tool, _ = wrapped(hook_on("after_tool_call", after), tool=EchoTool(body=body))
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tool.execute, "1", LS)
            await began.wait()
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_native_cancel_of_the_task_aborts_the_tool() -> None:
    """`Task.cancel()` goes through to the program."""
    began = asyncio.Event()

    async def body(tool_input: dict[str, Any]) -> None:
        began.set()
        await asyncio.sleep(1000)

    _, tool, recorded = wrapped(
        hook_on("after_tool_call", lambda event, ctx: None, inline=True), tool=EchoTool(body=body)
    )
    task = asyncio.ensure_future(tool.execute("1", LS))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert recorded.of("after_tool_call")[0].error == "aborted"


@pytest.mark.parametrize("event_name", ["before_tool_call", "tool_call"])
async def test_the_tool_does_not_run_when_a_handler_swallows_the_cancellation_of_the_call(event_name: str) -> None:
    """The tool acts before its first checkpoint, at which trio would deliver the cancellation again."""
    began = anyio.Event()
    ran: list[str] = []

    async def swallow(event: Any, ctx: HookContext) -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        except BaseException:
            return

    async def body(tool_input: dict[str, Any]) -> None:
        ran.append("ran")

    _, tool, _ = wrapped(hook_on(event_name, swallow), tool=EchoTool(body=body))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tool.execute, "1", LS)
        with anyio.fail_after(PATIENCE):
            await began.wait()
        tasks.cancel_scope.cancel()
    assert ran == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("where", ["gate", "tool"])
async def test_a_cancel_that_is_requested_before_the_tool_suspends_aborts_it(where: str) -> None:
    """asyncio delivers such a cancellation at the first suspension; it is a cancellation of the task and no error."""

    def cancel() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        if where == "gate":
            cancel()

    async def body(tool_input: dict[str, Any]) -> None:
        if where == "tool":
            cancel()
        await asyncio.sleep(0)

    _, tool, _ = wrapped(hook_on("tool_call", gate), tool=EchoTool(body=body))
    task = asyncio.ensure_future(tool.execute("1", LS))
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("suspends", [False, True])
async def test_a_tools_own_cancelled_error_is_a_result_also_while_the_task_is_being_cancelled(suspends: bool) -> None:
    """A call in the cleanup of a cancelled task keeps its result, and an error of the tool is one."""

    async def body(tool_input: dict[str, Any]) -> None:
        if suspends:
            await asyncio.sleep(0)
        raise asyncio.CancelledError

    _, failing, _ = wrapped(hook_on("tool_call", lambda event, ctx: None, inline=True), tool=EchoTool(body=body))
    _, working, _ = wrapped(hook_on("tool_call", lambda event, ctx: None, inline=True))
    results: list[bool] = []

    async def work() -> None:
        for tool in (failing, working):
            results.append((await tool.execute("1", LS)).is_error)
        try:
            await asyncio.sleep(1000)
        finally:
            for tool in (failing, working):
                results.append((await tool.execute("1", LS)).is_error)

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert results == [True, False, True, False]


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_an_abort_of_a_tool_with_a_plain_trio_nursery_is_an_abort() -> None:
    """trio wraps the cancellations of its children in a group; that is no error of the tool."""
    began = anyio.Event()

    async def body(tool_input: dict[str, Any]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            began.set()
            await trio.sleep_forever()

    _, tool, recorded = wrapped(
        hook_on("after_tool_call", lambda event, ctx: None, inline=True), tool=EchoTool(body=body)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tool.execute, "1", LS)
        await began.wait()
        nursery.cancel_scope.cancel()
    assert recorded.types[-1] == "after_tool_call"
    assert recorded.of("after_tool_call")[0].error == "aborted"


# ---- results ---------------------------------------------------------------------------------------------------------


async def test_results_are_changed_field_by_field_in_a_chain() -> None:
    """A sets the content, B sees that and sets the details; both count."""
    seen: list[str] = []

    def second(event: ToolResult, ctx: HookContext) -> Replace:
        seen.append(event.content[0].text)  # type: ignore[union-attr]  # it is text
        return Replace(details={"from": "b"})

    _, tool, _ = wrapped(
        hook_on("tool_result", lambda event, ctx: {"content": "from a"}, inline=True),
        hook_on("tool_result", second, path="b.py", inline=True),
    )
    output = await tool.execute("1", LS)
    assert (output.text, output.details, output.is_error) == ("from a", {"from": "b"}, False)
    assert seen == ["from a"]


@pytest.mark.parametrize(
    ("answer", "details"),
    [
        (Replace(content="x"), {"command": "ls"}),
        ({"content": "x"}, {"command": "ls"}),
        (Replace(content="x", details=None), None),
        ({"content": [{"type": "text", "text": "x"}], "details": None}, None),
    ],
)
async def test_details_are_kept_unless_they_are_cleared(answer: object, details: object) -> None:
    """A field that is left out stays; `details: None` clears."""
    _, tool, _ = wrapped(hook_on("tool_result", lambda event, ctx: answer, inline=True))
    output = await tool.execute("1", LS)
    assert (output.text, output.details) == ("x", details)


@pytest.mark.parametrize("fails", [False, True])
async def test_an_answer_can_flip_is_error_both_ways(fails: bool) -> None:
    """The hook's `is_error` counts, for the agent and for observers."""

    async def body(tool_input: dict[str, Any]) -> ToolOutput:
        return ToolOutput("text", is_error=fails)

    _, tool, recorded = wrapped(
        hook_on("tool_result", lambda event, ctx: {"isError": not event.is_error}, inline=True),
        tool=EchoTool(body=body),
    )
    output = await tool.execute("1", LS)
    assert output == ToolOutput("text", is_error=not fails)
    assert recorded.of("after_tool_call")[0].error == (None if fails else "text")


async def test_a_failing_tool_result_handler_leaves_the_result_so_far() -> None:
    """One that raises, one that answers nonsense, one that is late."""

    async def late(event: ToolResult, ctx: HookContext) -> Replace:
        await anyio.sleep_forever()
        return Replace(content="late")

    _, tool, recorded = wrapped(
        hook_on(
            "tool_result",
            lambda event, ctx: {"content": "so far"},
            lambda event, ctx: 1 / 0,
            lambda event, ctx: {"content": None},
            inline=True,
        ),
        hook_on("tool_result", late, path="b.py"),
        timeout=0.02,
    )
    assert (await tool.execute("1", LS)).text == "so far"
    assert [error.outcome for error in recorded.errors] == ["continued"] * 3
    assert recorded.errors[-1].error == "timed out after 0.02 s"


@pytest.mark.parametrize("exc", [ValueError("boom"), SystemExit(2), asyncio.CancelledError(), StopAsyncIteration()])
async def test_a_raising_tool_is_an_error_result(exc: BaseException) -> None:
    """`tool_result` handlers see it with `is_error` and may change it; the agent gets a result, not an exception."""
    seen: list[bool] = []

    async def body(tool_input: dict[str, Any]) -> None:
        await checkpoint()
        raise exc

    def handler(event: ToolResult, ctx: HookContext) -> Replace:
        seen.append(event.is_error)
        return Replace(details={"mended": False})

    _, tool, recorded = wrapped(hook_on("tool_result", handler, inline=True), tool=EchoTool(body=body))
    output = await tool.execute("1", LS)
    assert output.is_error
    assert output.text.startswith(type(exc).__name__)
    assert output.details == {"mended": False}
    assert seen == [True]
    assert recorded.of("after_tool_call")[0].error == output.text


async def test_a_keyboard_interrupt_in_a_tool_passes() -> None:
    """Ctrl-C belongs to the program."""

    async def body(tool_input: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    _, tool, _ = wrapped(hook_on("tool_call", lambda event, ctx: None, inline=True), tool=EchoTool(body=body))
    with pytest.raises(KeyboardInterrupt):
        await tool.execute("1", LS)


async def test_a_tool_that_returns_something_else_is_an_error_result() -> None:
    """The text names the right class."""

    async def body(tool_input: dict[str, Any]) -> Any:
        return "just text"

    _, tool, _ = wrapped(hook_on("tool_call", lambda event, ctx: None, inline=True), tool=EchoTool(body=body))
    output = await tool.execute("1", LS)
    assert output.is_error
    assert "must return ToolOutput(content)" in output.text


async def test_after_tool_call_tells_result_error_and_duration() -> None:
    """Of a call that went well and of one that did not."""

    async def body(tool_input: dict[str, Any]) -> ToolOutput:
        await checkpoint()
        return ToolOutput("text", is_error=tool_input["command"] == "fail")

    _, tool, recorded = wrapped(
        hook_on("after_tool_call", lambda event, ctx: None, inline=True), tool=EchoTool(body=body)
    )
    await tool.execute("1", LS)
    await tool.execute("2", {"command": "fail"})
    good, bad = recorded.of("after_tool_call")
    assert (good.tool_call_id, good.result, good.error) == ("1", ToolOutput("text"), None)
    assert (bad.tool_call_id, bad.error, bad.blocked) == ("2", "text", False)
    assert good.duration_ms > 0


async def test_progress_reaches_whoever_called() -> None:
    """`on_update` is handed through, with and without hooks."""

    class Slow(EchoTool):
        async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> ToolOutput:
            on_update(ToolOutput("half"))
            return ToolOutput("whole")

    for hooks in ([], [hook_on("tool_call", lambda event, ctx: None, inline=True)]):
        seen: list[ToolOutput] = []
        runner, _ = runner_of(*hooks)
        tool = wrap_tool(Slow(), runner)
        assert (await tool.execute("1", LS, on_update=seen.append)).text == "whole"
        assert [output.text for output in seen] == ["half"]


# ---- several calls ---------------------------------------------------------------------------------------------------


async def test_calls_of_one_turn_are_judged_in_order_and_run_in_parallel() -> None:
    """The second call is judged when the first dialog is answered; then both run at once, each with its own result."""
    seen: list[str] = []
    together = [anyio.Event(), anyio.Event()]

    async def yes(asked: object) -> bool:
        await anyio.wait_all_tasks_blocked()
        seen.append("answered")
        return True

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        seen.append(f"judge {event.tool_call_id}")
        if event.tool_call_id == "0":
            await ctx.ui.confirm("?")

    async def body(tool_input: dict[str, Any]) -> ToolOutput:
        number = int(tool_input["command"])
        together[number].set()
        await together[1 - number].wait()  # needs the other one to run as well
        return ToolOutput(f"result {number}")

    runner, errors = runner_of(hook_on("tool_call", gate), ui=ScriptedUI(yes))
    tool = wrap_tool(EchoTool(body=body), runner)
    outputs: dict[int, str] = {}

    async def call(number: int) -> None:
        outputs[number] = (await tool.execute(str(number), {"command": str(number)})).text

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, 0)
            while not seen:
                await checkpoint()
            tasks.start_soon(call, 1)
    assert seen == ["judge 0", "answered", "judge 1"]
    assert outputs == {0: "result 0", 1: "result 1"}
    assert not errors


async def test_a_host_judges_first_and_runs_later() -> None:
    """`preflight` and `run_tool` are the two halves of a call."""
    runner, _ = runner_of(
        hook_on("tool_call", lambda event, ctx: Block("no") if event.tool_call_id == "2" else None, inline=True)
    )
    bare = EchoTool()
    judged = [await preflight(bare, number, LS, runner=runner) for number in ("1", "2")]
    assert not bare.inputs
    assert [call.block is None for call in judged] == [True, False]
    assert [(await run_tool(call)).is_error for call in judged] == [False, True]
    assert len(bare.inputs) == 1


@pytest.mark.parametrize("only_inner", [False, True])
async def test_a_tool_that_calls_another_passes_the_hooks_with_its_own_id_as_the_parent(only_inner: bool) -> None:
    """Also without a listener to the outer tool."""
    seen: list[tuple[str, str | None]] = []

    def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        seen.append((event.tool_call_id, event.parent_tool_call_id))
        return Block("inner one") if event.tool_name == "bash" else None

    async def body(tool_input: dict[str, Any]) -> ToolOutput:
        await checkpoint()
        return await inner.execute("inner", LS)

    options = {"tool": "bash"} if only_inner else {}
    runner, _ = runner_of(hook_on("tool_call", gate, inline=True, **options))
    inner, outer = wrap_tools([EchoTool("bash"), EchoTool("agent", body)], runner)
    output = await outer.execute("outer", LS)
    assert output.text == "inner one (hook.py)"
    assert seen == ([] if only_inner else [("outer", None)]) + [("inner", "outer")]
    await inner.execute("alone", LS)
    assert seen[-1] == ("alone", None)


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_wrapped_tool_called_by_a_gate_is_no_deadlock(threaded: bool) -> None:
    """Its call is judged at once, although judging queues."""

    async def ask_tool(event: ToolCall) -> None:
        if event.tool_call_id == "outer":
            texts.append((await tool.execute("nested", {"command": "pwd"})).text)

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        await ask_tool(event)

    def plain_gate(event: ToolCall, ctx: HookContext) -> None:
        anyio.from_thread.run(ask_tool, event)

    texts: list[str] = []
    _, tool, recorded = wrapped(hook_on("tool_call", plain_gate if threaded else gate))
    with anyio.fail_after(PATIENCE):
        assert (await tool.execute("outer", LS)).text == "ran ls"
    assert texts == ["ran pwd"]
    assert not recorded.errors


# ---- the property ----------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One handler of a random hook: its event, its priority and its action."""

    event: str
    does: str
    priority: int
    suspends: bool


STEPS = st.lists(
    st.builds(
        Step,
        event=st.sampled_from(["before_tool_call", "tool_call"]),
        does=st.sampled_from(["nothing", "nothing", "rewrite", "ask", "ask", "block", "raise", "nonsense", "empty"]),
        priority=st.integers(-2, 2),
        suspends=st.booleans(),
    ),
    max_size=6,
)


class Model:
    """The end of a call, as a model of a dozen lines computes it."""

    def __init__(self, steps: list[Step], person: str) -> None:
        self.command = "start"
        self.questions = 0
        self.runs = False
        asks = 0
        for event in ("before_tool_call", "tool_call"):
            for step in sorted((step for step in steps if step.event == event), key=lambda step: -step.priority):
                if step.does in {"block", "raise", "nonsense"} or (step.does == "rewrite" and event == "tool_call"):
                    return
                if step.does == "rewrite":
                    self.command += "+"
                asks += step.does == "ask"
        self.questions = 1 if asks and person != "nobody" else 0
        self.runs = not asks or person == "yes"


def _handler_of(step: Step, judged: list[str]) -> Callable[..., Any]:
    async def handler(event: Any, ctx: HookContext) -> Any:
        if step.suspends:
            await checkpoint()
        seen = event.params if isinstance(event, BeforeToolCall) else event.input
        if isinstance(event, ToolCall):
            judged.append(seen["command"])
        match step.does:
            case "rewrite":
                return Rewrite({"command": seen["command"] + "+"})
            case "ask":
                return Ask("Sure?")
            case "block":
                return Block("no")
            case "raise":
                raise ValueError("boom")
            case "nonsense":
                return {"blok": True}
            case "empty":
                return {}
        return None

    return handler


async def _check(steps: list[Step], person: str) -> None:
    judged: list[str] = []
    ui = ScriptedUI(person == "yes")
    hooks = [
        hook_on(step.event, _handler_of(step, judged), path=f"{number}.py", priority=step.priority)
        for number, step in enumerate(steps)
    ]
    bare, tool, recorded = wrapped(*hooks, ui=None if person == "nobody" else ui)
    output = await tool.execute("1", {"command": "start"})
    model = Model(steps, person)
    assert bool(bare.inputs) == model.runs
    assert output.is_error != model.runs
    assert len(ui.asked) == model.questions
    if model.runs:
        assert bare.inputs == [{"command": model.command}]
        assert set(judged) <= {model.command}
    [after] = recorded.of("after_tool_call")
    assert after.blocked != model.runs


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(steps=STEPS, person=st.sampled_from(["yes", "no", "nobody"]))
@examples(150)
def test_a_tool_runs_only_if_nobody_objects_and_then_with_what_the_last_judge_saw(
    backend: str, steps: list[Step], person: str
) -> None:
    """For random handlers and any answer of the person, the pipeline agrees with the model."""
    anyio.run(_check, steps, person, backend=backend)


async def test_a_runner_without_listeners_at_a_step_makes_no_event_for_it() -> None:
    """Only the events somebody listens to are built."""
    runner: HookRunner
    runner, _ = runner_of(hook_on("after_tool_call", lambda event, ctx: None, inline=True))
    answers: list[str] = []
    runner.on_answer(lambda handler, event, answer: answers.append(event.type))
    assert (await wrap_tool(EchoTool(), runner).execute("1", LS)).text == "ran ls"
    assert not answers
