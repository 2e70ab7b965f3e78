"""A runner that was left opens no gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agent_hooks import (
    AfterToolCall,
    AgentStart,
    Ask,
    BeforeToolCall,
    Block,
    HookAPI,
    HookContext,
    HookUsageError,
    Interceptor,
    InterceptorRegistry,
    ToolCall,
    ToolResult,
    TurnStart,
    wrap_tool,
)
from agent_hooks.guards import builtin_guards
from agent_hooks.pipeline.order import preflight, run_tool
from agent_hooks.runner import clocks
from agent_hooks.testing import ScriptedUI
from agent_hooks.values.events import ForeignEvent
from support import PATIENCE, EchoTool, Endless, call_of, everywhere, hook_of, hook_on, runner_of

LEFT = "this HookRunner was left"


async def allow(*_: object) -> None:
    """Let a call pass."""


def intercepting(api: HookAPI) -> None:
    """Register a gate at `tool.before`, for `bash` only."""
    api.intercept("tool.before", lambda given, output: None, tool="^bash$")


def shared() -> InterceptorRegistry:
    """Return a registry of the program, with a gate."""
    registry = InterceptorRegistry()
    registry.add(Interceptor("shared", "tool.before", lambda given, output: None, tool_matcher="^bash$"))
    return registry


@pytest.mark.parametrize(
    "gated",
    [
        lambda: runner_of(hook_on("tool_call", allow, tool="bash")),
        lambda: runner_of(hook_on("before_tool_call", allow, tool="bash")),
        lambda: runner_of(hook_of(intercepting)),
        lambda: runner_of(hook_of(intercepting), interceptors=InterceptorRegistry()),
        lambda: runner_of(interceptors=shared()),
        lambda: runner_of(guards=builtin_guards()),
    ],
    ids=["tool_call", "before_tool_call", "interceptor", "with-a-registry", "program", "guard"],
)
@everywhere
async def test_a_gated_tool_is_blocked_after_its_runner_was_left(gated: Callable[[], Any]) -> None:
    """The result says that the runner was left, whether the tool was wrapped before or after."""
    runner, _ = gated()
    bare = EchoTool()
    early = wrap_tool(bare, runner)
    async with runner:
        assert not (await early.execute("1", {"command": "ls"})).is_error
    for tool in (early, wrap_tool(bare, runner)):
        output = await tool.execute("2", {"command": "ls"})
        assert output.is_error
        assert output.text.startswith(LEFT)
    assert len(bare.inputs) == 1
    with pytest.raises(HookUsageError, match=LEFT):
        await runner.emit(call_of())


@everywhere
async def test_a_tool_that_no_gate_concerns_still_runs() -> None:
    """The runner has nothing to say of it."""
    runner, _ = runner_of(hook_on("tool_call", allow, tool="bash"))
    bare = EchoTool("other")
    async with runner:
        pass
    assert (await wrap_tool(bare, runner).execute("1", {"command": "ls"})).text == "ran ls"


@everywhere
async def test_a_call_that_waits_for_its_turn_is_blocked_when_the_runner_is_left() -> None:
    """The gate that ran was stopped, which blocks its call; the call behind it is not judged any more."""
    gate = Endless()
    runner, errors = runner_of(hook_on("tool_call", gate))
    bare = EchoTool()
    tool = wrap_tool(bare, runner)
    texts: list[str] = []

    async def call(number: str) -> None:
        texts.append((await tool.execute(number, {"command": "ls"})).text)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks, runner:
            tasks.start_soon(call, "1")
            await gate.begun.wait()
            tasks.start_soon(call, "2")
            await anyio.wait_all_tasks_blocked()
    assert "was stopped, because the session ends" in texts[0]
    assert texts[1].startswith(LEFT)
    assert bare.inputs == []
    assert [error.outcome for error in errors] == ["blocked"]


@everywhere
async def test_a_call_whose_own_rewriter_leaves_the_runner_is_blocked() -> None:
    """The steps after it are not taken."""
    seen: list[str] = []

    async def leave(event: BeforeToolCall, ctx: HookContext) -> None:
        await runner.engine.leave()

    async def judge(event: ToolCall, ctx: HookContext) -> None:
        seen.append(event.tool_name)

    runner, _ = runner_of(hook_on("before_tool_call", leave), hook_on("tool_call", judge, path="b.py"))
    bare = EchoTool()
    output = await wrap_tool(bare, runner).execute("1", {"command": "ls"})
    assert output.text.startswith(LEFT)
    assert (bare.inputs, seen) == ([], [])


@everywhere
async def test_a_runner_cannot_be_entered_twice() -> None:
    """Neither again nor at once."""
    runner, _ = runner_of()
    async with runner:
        with pytest.raises(HookUsageError, match="make a new one"):
            await runner.__aenter__()
    with pytest.raises(HookUsageError, match="make a new one"):
        async with runner:
            pass


@everywhere
async def test_a_call_that_runs_when_its_runner_is_left_ends_as_an_abort() -> None:
    """The tool is cancelled, its caller gets an error result, and the observers hear of the abort before they unload."""
    ends: list[str | None] = []
    results: list[object] = []

    def register(api: HookAPI) -> None:
        async def observe(event: AfterToolCall, ctx: object) -> None:
            await anyio.lowlevel.checkpoint()
            ends.append(event.error)

        async def see(event: ToolResult, ctx: object) -> None:
            results.append(event)

        api.on("after_tool_call", observe)
        api.on("tool_result", see)
        api.on_unload(lambda: ends.append("unloaded"))

    body = Endless()
    runner, errors = runner_of(hook_of(register))
    tool = wrap_tool(EchoTool(body=body), runner)
    outputs: list[Any] = []

    async def call() -> None:
        outputs.append(await tool.execute("1", {"command": "ls"}))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks, runner:
            tasks.start_soon(call)
            await body.begun.wait()
    (output,) = outputs
    assert output.is_error
    assert output.text.startswith(f"aborted: {LEFT}")
    assert ends == ["aborted", "unloaded"]
    assert results == []
    assert not errors


@everywhere
async def test_a_host_gets_the_result_of_a_call_that_leaving_aborted() -> None:
    """As of every other call: through `on_result`."""
    body = Endless()
    results: list[str] = []
    runner, _ = runner_of(hook_on("tool_call", allow))

    async def call() -> None:
        judged = await preflight(EchoTool(body=body), "1", {"command": "ls"}, runner=runner)
        output = await run_tool(judged, on_result=lambda result: results.append(result.text))
        results.append(output.text)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks, runner:
            tasks.start_soon(call)
            await body.begun.wait()
    assert [text.startswith(f"aborted: {LEFT}") for text in results] == [True, True]


@everywhere
async def test_a_question_that_is_open_when_the_runner_is_left_blocks_its_call() -> None:
    """The dialog is cancelled, and no answer is no yes."""
    answer = Endless()

    class Asking(ScriptedUI):
        async def confirm(self, title: str, message: str) -> bool:
            return bool(await answer())

    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: Ask("sure?"), inline=True), ui=Asking())
    bare = EchoTool()
    tool = wrap_tool(bare, runner)
    outputs: list[Any] = []

    async def call() -> None:
        outputs.append(await tool.execute("1", {"command": "ls"}))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks, runner:
            tasks.start_soon(call)
            await answer.begun.wait()
    assert [output.text.startswith(LEFT) for output in outputs] == [True]
    assert bare.inputs == []
    assert not errors


@everywhere
async def test_a_tool_that_does_not_stop_holds_leaving_up_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result, whenever it comes, passes no handler that was unloaded."""
    monkeypatch.setattr(clocks, "ABORT_GRACE", 0.05)
    go_on, began = anyio.Event(), anyio.Event()
    seen: list[str] = []

    async def body(input: dict[str, Any]) -> None:
        began.set()
        with anyio.CancelScope(shield=True):
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except BaseException:
                    # The tool swallows every cancellation.
                    continue

    async def see(event: ToolResult, ctx: object) -> None:
        seen.append(event.tool_name)

    runner, _ = runner_of(hook_on("tool_result", see))
    tool = wrap_tool(EchoTool(body=body), runner)
    outputs: list[Any] = []

    async def call() -> None:
        outputs.append(await tool.execute("1", {"command": "ls"}))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            async with runner:
                tasks.start_soon(call)
                await began.wait()
            assert outputs == []
            go_on.set()
    assert [output.text.startswith(f"aborted: {LEFT}") for output in outputs] == [True]
    assert seen == []


@pytest.mark.parametrize(
    "wrong", [None, "turn_start", {"type": "turn_start"}, TurnStart, ForeignEvent(name="x", native={})]
)
@everywhere
async def test_a_value_that_is_no_event_is_refused_with_the_names_of_the_events(wrong: Any) -> None:
    """With handlers and without."""
    for hooks in ((), (hook_on("turn_start", allow),)):
        runner, _ = runner_of(*hooks)
        with pytest.raises(HookUsageError, match=r"emit wants an event .*TurnStart.*ToolCall"):
            await runner.emit(wrong)


@everywhere
async def test_other_events_raise_after_the_runner_was_left() -> None:
    """A program that goes on with a runner that it left is told."""
    runner, _ = runner_of(hook_on("agent_start", allow))
    async with runner:
        await runner.emit(AgentStart())
    with pytest.raises(HookUsageError, match=LEFT):
        await runner.emit(AgentStart())


def test_a_blocked_call_of_a_left_runner_names_no_hook() -> None:
    """The text is the reason alone."""
    assert str(Block("left", cause="failed")) == "left"
