"""Vetoes: `before_tool_call` may rewrite or block, `after_tool_call` hears of every end."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hooks import AfterToolCall, Block, HookContext, ToolOutput, wrap_tool
from agent_hooks.testing import RecordedEvents
from support import EchoTool, everywhere, hook_on, runner_of

LS = {"command": "ls"}


@everywhere
async def test_a_veto_blocks_with_its_reason() -> None:
    """In the form that other systems use; the reason is the agent's and the observers'."""
    seen: list[Any] = []

    def veto(event: Any, ctx: HookContext) -> dict[str, object]:
        seen.append((event.tool_name, event.params, ctx.agent_id, ctx.session_key, ctx.tool_name))
        return {"block": True, "blockReason": "not on Fridays"}

    runner, _ = runner_of(hook_on("before_tool_call", veto), session_id="the-session")
    recorded = RecordedEvents(runner)
    tool = EchoTool()
    output = await wrap_tool(tool, runner).execute("1", LS)
    assert seen == [("bash", LS, "main", "the-session", "bash")]
    assert tool.inputs == []
    assert output.text == "not on Fridays (hook.py)"
    assert output.details == {"status": "blocked", "tool": "bash", "reason": output.text}
    [after] = recorded.of("after_tool_call")
    assert (after.blocked, after.block_reason, after.result) == (True, "not on Fridays", None)


@everywhere
async def test_changed_params_reach_the_tool_and_whoever_judges() -> None:
    """A gate sees the changed input, not the input of the model."""
    judged: list[Any] = []
    veto = hook_on("before_tool_call", lambda event, ctx: {"params": {"command": "ls -l"}})
    gate = hook_on("tool_call", lambda event, ctx: judged.append(event.input), path="gate.py")
    runner, _ = runner_of(veto, gate)
    tool = EchoTool()
    await wrap_tool(tool, runner).execute("1", LS)
    assert tool.inputs == judged == [{"command": "ls -l"}]


async def fails(given: dict[str, Any]) -> ToolOutput:
    return ToolOutput("no such thing", is_error=True)


async def raises(given: dict[str, Any]) -> ToolOutput:
    raise ValueError("broken")


@everywhere
@pytest.mark.parametrize(
    ("body", "error"),
    [(None, None), (fails, "no such thing"), (raises, "ValueError: broken")],
    ids=["succeeds", "fails", "raises"],
)
async def test_an_observer_hears_of_every_end(body: Any, error: str | None) -> None:
    """Result, error and duration; the context says where."""
    seen: list[tuple[AfterToolCall, str, str, str | None]] = []

    def look(event: AfterToolCall, ctx: HookContext) -> None:
        seen.append((event, ctx.agent_id, ctx.session_key, ctx.tool_name))

    runner, _ = runner_of(hook_on("after_tool_call", look), session_id="the-session")
    output = await wrap_tool(EchoTool(body=body), runner).execute("1", LS)
    [(event, *where)] = seen
    assert where == ["main", "the-session", "bash"]
    assert event.result == output
    assert event.error == error
    assert event.duration_ms is not None
    assert event.duration_ms >= 0
    assert not event.blocked


@everywhere
async def test_a_veto_that_raises_blocks_unless_it_says_otherwise() -> None:
    """It is reported either way."""

    def broken(event: object, ctx: object) -> Block:
        raise ValueError("broken")

    tool = EchoTool()
    for options, runs, outcome in (({}, 0, "blocked"), ({"on_error": "continue"}, 1, "continued")):
        runner, errors = runner_of(hook_on("before_tool_call", broken, **options))
        await wrap_tool(tool, runner).execute("1", LS)
        assert len(tool.inputs) == runs
        assert [error.outcome for error in errors] == [outcome]
