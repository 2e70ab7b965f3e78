"""The test doubles do what they promise to those who test their own hooks."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_hooks import AgentEnd, AgentStart, HookContext, SessionEvent
from agent_hooks.testing import Asked, RecordedEvents, ScriptedUI, StepClock
from support import call_of, hook_on, runner_of


async def test_a_scripted_ui_answers_from_its_list() -> None:
    """Values, functions of the dialog and async functions; everything asked is kept."""

    async def slowly(asked: Asked) -> str:
        await checkpoint()
        return asked.title.upper()

    ui = ScriptedUI("b", False, None, lambda asked: asked.more[0], slowly, "typed", None)
    assert await ui.select("which", ["a", "b"]) == "b"
    assert await ui.confirm("sure", "") is False
    assert await ui.select("which", ["a"]) is None
    assert await ui.select("which", ["first", "second"]) == "first"
    assert await ui.input("name", None) == "NAME"
    assert await ui.input("name", None) == "typed"
    assert await ui.input("name", "hint") is None
    ui.notify("hello", "info")
    assert [asked.method for asked in ui.asked] == ["select", "confirm", "select", "select", *["input"] * 3, "notify"]
    assert ui.asked[-2:] == [Asked("input", "name", "hint"), Asked("notify", "hello", "info")]


async def test_a_scripted_ui_without_an_answer_left_raises_and_names_the_dialog() -> None:
    """A dialog the test did not expect must not pass as a no."""
    with pytest.raises(AssertionError, match=r"no answer to Asked.*Sure"):
        await ScriptedUI().confirm("Sure?", "")


async def test_a_scripted_ui_takes_only_true_or_false_for_a_confirm() -> None:
    """A script that is out of step with the dialogs must not pass as a yes or a no."""
    with pytest.raises(TypeError, match=r"confirm\('Sure\?'\) with 'b'; use True or False"):
        await ScriptedUI("b").confirm("Sure?", "")


async def test_recorded_events_keep_what_was_emitted_and_what_failed() -> None:
    """`types` names the reason of a session event; `of` picks one type."""
    runner, _ = runner_of(hook_on("agent_start", lambda event, ctx: 1 / 0, inline=True))
    recorded = RecordedEvents(runner)
    await runner.emit(SessionEvent(reason="start"))
    await runner.emit(AgentStart())
    await runner.emit(call_of())
    assert recorded.types == ["session:start", "agent_start", "tool_call"]
    assert recorded.of("tool_call") == [call_of()]
    assert [error.error for error in recorded.errors] == ["ZeroDivisionError: division by zero"]


async def test_a_step_clock_moves_deadlines_and_nothing_else() -> None:
    """It waits until a handler's time runs; `skip` does not wait."""
    ended: list[str] = []

    async def slow(event: object, ctx: HookContext) -> None:
        try:
            await anyio.sleep(60)
        finally:
            ended.append("slow")

    runner, errors = runner_of(hook_on("agent_start", slow), hook_on("agent_end", slow))
    clock = StepClock(runner)
    clock.skip(1000)
    assert clock.now() == 1000
    for event in (AgentStart(), AgentEnd()):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.emit, event)
            await clock.advance(29)
            assert len(ended) == len(errors)
            await clock.advance(1)
    assert ended == ["slow", "slow"]
    assert [error.error for error in errors] == ["timed out after 30 s"] * 2
    assert clock.now() == 1060
