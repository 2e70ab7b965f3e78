"""Single steps of a tool call: the rewriter that an error names, the plan of a tool, and leaving between two steps."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_hooks import (
    AfterToolCall,
    AgentStart,
    Ask,
    Block,
    HookAPI,
    HookContext,
    Interceptor,
    InterceptorRegistry,
    Rewrite,
    ToolOutput,
    ToolResult,
    wrap_tool,
)
from agent_hooks.pipeline import order
from agent_hooks.pipeline.order import call_tool, plan_of, preflight
from agent_hooks.runner import clocks
from agent_hooks.testing import ScriptedUI, StepClock
from agent_hooks.transformers.base import ConfiguredTransformer
from support import PATIENCE, EchoTool, hook_of, hook_on, on_asyncio, runner_of

LS = {"command": "ls"}
GOOD, BAD = {"command": "ls -l"}, {"cmd": "ls"}


def interceptor_of(id: str, args: dict[str, Any], priority: int = 0) -> Interceptor:
    """Return an interceptor that makes `args` the input of each call."""
    return Interceptor(id, "tool.before", lambda given, output: setattr(output, "args", args), priority)


def registry_of(*interceptors: Interceptor) -> InterceptorRegistry:
    """Return a registry with these interceptors."""
    registry = InterceptorRegistry()
    for each in interceptors:
        registry.add(each)
    return registry


# ---- the rewriter that broke the input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by_interceptor", "by_handler", "culprit"),
    [(GOOD, BAD, "late.py"), (BAD, {"cmd": "pwd"}, "early"), (BAD, None, "early")],
    ids=["the second", "the first", "the only one"],
)
async def test_the_error_names_the_first_rewriter_since_whom_the_input_breaks_the_schema(
    by_interceptor: dict[str, Any], by_handler: dict[str, Any] | None, culprit: str
) -> None:
    """A rewriter that gets a wrong input and leaves it wrong is not the culprit."""
    answer = None if by_handler is None else Rewrite(by_handler)
    late = hook_on("before_tool_call", lambda event, ctx: answer, path="late.py", inline=True)
    runner, _ = runner_of(late, interceptors=registry_of(interceptor_of("early", by_interceptor)))
    call = await preflight(EchoTool(), "1", LS, runner=runner)
    assert call.block is not None
    assert (call.block.by, call.block.cause) == (culprit, "schema")
    assert call.block.reason.endswith(f"(rewritten by {culprit})")


async def test_all_rewriters_of_one_step_are_named() -> None:
    """Interceptors of one point chain, and so do the names in the call."""
    chain = [interceptor_of("a", GOOD, 2), interceptor_of("b", {"command": "pwd"}, 1), interceptor_of("c", BAD)]
    runner, _ = runner_of(interceptors=registry_of(*chain))
    call = await preflight(EchoTool(), "1", LS, runner=runner)
    assert call.rewritten_by == ("a", "b", "c")
    assert call.block is not None
    assert call.block.by == "a, b, c"


async def test_a_rewritten_call_names_each_rewriter_once() -> None:
    """Also when a hook rewrites at two points."""

    def register(api: HookAPI) -> None:
        api.on("before_tool_call", lambda event, ctx: Rewrite({"command": "1"}), inline=True)
        api.on("before_tool_call", lambda event, ctx: Rewrite({"command": "2"}), inline=True)

    runner, _ = runner_of(hook_of(register), interceptors=registry_of(interceptor_of("early", GOOD)))
    call = await preflight(EchoTool(), "1", LS, runner=runner)
    assert call.rewritten_by == ("early", "hook.py")
    assert [rewriting.by for rewriting in call.rewrites] == [("early",), ("hook.py",)]
    assert call.arguments == {"command": "2"}


class Same:
    """A transformer that changes no input."""

    def transform(self, tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        """Return the input."""
        return dict(tool_input)


async def test_a_transformer_that_changes_nothing_is_no_rewriter() -> None:
    """The call has no rewriting and no note."""
    same = ConfiguredTransformer(tool="bash", name="same", transformer=Same())
    runner, errors = runner_of(transformers=[same])
    call = await preflight(EchoTool(), "1", LS, runner=runner)
    assert (call.rewrites, call.notes, call.block) == ((), (), None)
    assert not errors


@pytest.mark.parametrize("event", ["before_tool_call", "tool_call"])
async def test_an_input_that_a_handler_changes_in_place_blocks_the_call(event: str) -> None:
    """C functions can change a list that refuses every change in Python."""

    def tamper(event: Any, ctx: HookContext) -> None:
        heapq.heappop(event.params["paths"] if event.type == "before_tool_call" else event.input["paths"])

    runner, _ = runner_of(hook_on(event, tamper, inline=True))
    bare = EchoTool()
    output = await wrap_tool(bare, runner).execute("1", {**LS, "paths": ["b", "a"]})
    assert "changed event.input in place" in output.text
    assert bare.inputs == []


async def test_an_input_that_holds_itself_blocks_the_call() -> None:
    """No event could hold it."""
    endless: dict[str, Any] = {"command": "ls"}
    endless["more"] = endless
    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: None, inline=True))
    bare = EchoTool()
    output = await wrap_tool(bare, runner).execute("1", endless)
    assert "bash: the input is nested too deeply, or holds itself" in output.text
    assert bare.inputs == []
    assert not errors


# ---- the question to the person --------------------------------------------------------------------------------------


async def test_after_the_persons_answer_the_time_of_the_calling_handler_goes_on() -> None:
    """A handler that calls a wrapped tool is stopped at its deadline when it hangs after the question."""
    answered = anyio.Event()

    async def hang(event: AgentStart, ctx: HookContext) -> None:
        await checkpoint()
        await tool.execute("1", LS)
        answered.set()
        await anyio.sleep_forever()

    runner, errors = runner_of(
        hook_on("agent_start", hang),
        hook_on("tool_call", lambda event, ctx: Ask("Sure?"), inline=True),
        ui=ScriptedUI(True),
        timeout=30,
    )
    tool = wrap_tool(EchoTool(), runner)
    clock = StepClock(runner)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        await answered.wait()
        clock.skip(29)
        await anyio.wait_all_tasks_blocked()
        assert not errors
        clock.skip(2)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert [error.error for error in errors] == ["timed out after 30 s"]


@pytest.mark.parametrize(
    ("tool", "given", "shown"),
    [
        ("bash", {"command": "ls", "more": 1}, "bash ls {'more': 1}"),
        ("bash", {"command": "ls\nrm"}, "bash 'ls\\nrm'"),
        ("custom", {"command": "ls"}, "custom {'command': 'ls'}"),
    ],
)
async def test_the_question_shows_the_whole_call_in_one_line(tool: str, given: dict[str, Any], shown: str) -> None:
    """The main argument of a known tool comes first, as the person would type it."""
    ui = ScriptedUI(True)
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: Ask("Sure?"), inline=True), ui=ui)
    assert not (await wrap_tool(EchoTool(tool), runner).execute("1", given)).is_error
    assert ui.asked[0].more.splitlines()[0] == shown


# ---- results ---------------------------------------------------------------------------------------------------------


@on_asyncio
async def test_a_tool_that_swallows_its_cancellation_leaves_none_to_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task goes on after the call of a runner that was left."""
    monkeypatch.setattr(clocks, "ABORT_GRACE", 0.05)
    go_on, began = anyio.Event(), anyio.Event()
    pending: list[int] = []

    async def body(input: dict[str, Any]) -> None:
        began.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue

    runner, _ = runner_of(hook_on("tool_result", lambda event, ctx: None, inline=True))
    tool = wrap_tool(EchoTool(body=body), runner)

    async def call() -> None:
        task: Any = asyncio.current_task()
        before = task.cancelling()
        await tool.execute("1", LS)
        pending.append(task.cancelling() - before)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            async with runner:
                tasks.start_soon(call)
                await began.wait()
            go_on.set()
    assert pending == [0]


async def test_a_block_at_tool_after_leaves_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool has run, so a block is no answer there."""
    kept = ToolOutput("kept")
    after = Interceptor("after", "tool.after", lambda given, output: None)
    runner, _ = runner_of(interceptors=registry_of(after))

    async def body(input: dict[str, Any]) -> ToolOutput:
        return kept

    async def reach(*args: Any, **options: Any) -> Block:
        return Block("too late")

    monkeypatch.setattr(runner.engine, "reach", reach)
    assert await wrap_tool(EchoTool(body=body), runner).execute("1", LS) is kept


# ---- the plan of a tool ----------------------------------------------------------------------------------------------


def test_the_plan_of_a_tool_is_made_once() -> None:
    """A subscription drops it."""
    apis: list[HookAPI] = []
    runner, _ = runner_of(hook_of(apis.append))
    plan = plan_of(runner.engine, "bash")
    assert not plan.concerned
    assert plan_of(runner.engine, "bash") is plan
    apis[0].on("tool_call", lambda event, ctx: None)
    assert plan_of(runner.engine, "bash").concerned


def test_plans_of_many_tools_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may invent names of tools."""
    monkeypatch.setattr(order, "MANY_PLANS", 3)
    runner, _ = runner_of()
    sizes = []
    for number in range(10):
        plan_of(runner.engine, f"tool{number}")
        sizes.append(len(runner.engine.call_plans))
    assert sizes == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]


def test_a_plan_that_a_subscription_made_old_meanwhile_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler's thread may subscribe while the plan is made."""
    apis: list[HookAPI] = []
    runner, _ = runner_of(hook_of(apis.append))
    concerns_tools = runner.engine.concerns_tools

    def subscribe_first() -> bool:
        if not runner.has_handlers("tool_call"):
            apis[0].on("tool_call", lambda event, ctx: None)
        return concerns_tools()

    monkeypatch.setattr(runner.engine, "concerns_tools", subscribe_first)
    assert not plan_of(runner.engine, "bash").concerned
    assert plan_of(runner.engine, "bash").concerned


@pytest.mark.parametrize("where", ["tool_result handler", "tool"])
async def test_an_observer_that_subscribes_during_a_call_sees_its_end(where: str) -> None:
    """The plan of the call is made again before the observers."""
    ends: list[str] = []
    apis: list[HookAPI] = []

    def subscribe() -> None:
        apis[0].on("after_tool_call", lambda event, ctx: ends.append(event.tool_call_id), inline=True)

    def register(api: HookAPI) -> None:
        apis.append(api)
        if where != "tool":
            api.on("tool_result", lambda event, ctx: subscribe(), inline=True)
        else:
            api.on("tool_call", lambda event, ctx: None, inline=True)

    async def body(input: dict[str, Any]) -> None:
        if where == "tool":
            subscribe()

    runner, errors = runner_of(hook_of(register))
    await wrap_tool(EchoTool(body=body), runner).execute("1", LS)
    assert ends == ["1"]
    assert not errors


async def test_a_call_whose_runner_is_left_between_two_steps_does_not_run() -> None:
    """The handlers of the later steps are gone, so the call is blocked."""

    async def leave(event: object, ctx: HookContext) -> None:
        await runner.engine.leave()

    runner, errors = runner_of(hook_on("before_tool_call", leave))
    bare = EchoTool()
    output = await wrap_tool(bare, runner).execute("1", LS)
    assert output.text.startswith("this HookRunner was left")
    assert bare.inputs == []
    assert not errors


def test_a_call_is_rewritten_before_it_is_judged_and_judged_before_a_person_is_asked() -> None:
    """This is the order of the documentation."""
    names = (
        "validate, transform, tool.before, before_tool_call, validate again, guards, marks, tool_call, ask, checkpoint"
    )
    assert [step.name for step in order.JUDGE] == names.split(", ")
    names = "execute, note end, filter, tool_result, tool.after, redact, add context"
    assert [step.name for step in order.RUN] == names.split(", ")
    assert [step.name for step in order.OBSERVE] == ["observe"]
    plan = plan_of(runner_of()[0].engine, "bash")
    assert [step.name for step in (*plan.judge, *plan.run, *plan.observe)] == ["validate", "execute"]


# ---- without an event loop -------------------------------------------------------------------------------------------


def driven(coroutine: Any) -> Any:
    """Run a coroutine that never suspends, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for an event loop")


Body = Callable[[dict[str, Any]], Any]


async def fails(input: dict[str, Any]) -> None:
    """Fail as a tool does."""
    raise ValueError("boom")


async def ends(input: dict[str, Any]) -> None:
    """Raise the class that trio and asyncio do not know outside of a loop."""
    raise asyncio.CancelledError


@pytest.mark.parametrize(("body", "text"), [(fails, "ValueError: boom"), (ends, "CancelledError")])
def test_a_tool_that_raises_without_an_event_loop_gives_an_error_result(body: Body, text: str) -> None:
    """No cancellation exists there, so none is looked for."""
    seen: list[str | None] = []

    def observe(event: AfterToolCall, ctx: HookContext) -> None:
        seen.append(event.error)

    def result(event: ToolResult, ctx: HookContext) -> None:
        assert event.is_error

    runner, errors = runner_of(
        hook_on("after_tool_call", observe, inline=True), hook_on("tool_result", result, inline=True)
    )
    output = driven(call_tool(EchoTool(body=body), "1", LS, runner=runner))
    assert output.text == text
    assert seen == [text]
    assert not errors


def test_an_exception_that_is_no_failure_leaves_the_pipeline_without_an_event_loop() -> None:
    """Ctrl-C in a gate ends the program."""

    async def interrupt(event: object, ctx: HookContext) -> None:
        raise KeyboardInterrupt

    runner, _ = runner_of(hook_on("tool_call", interrupt))
    with pytest.raises(KeyboardInterrupt):
        driven(call_tool(EchoTool(), "1", LS, runner=runner))
