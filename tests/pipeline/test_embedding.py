"""Easy mistakes of a program that embeds the runner: they must not open a gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_hooks import HookRunner, HookUsageError, ToolCall, load_hooks, wrap_tool, wrap_tools
from agent_hooks.testing import RecordedEvents, ScriptedUI
from support import EchoTool, call_of, hook_on, runner_of

pytestmark = pytest.mark.anyio


async def test_a_runner_of_a_load_result_blocks_for_a_hook_that_could_not_be_loaded(tmp_path: Path) -> None:
    """Given the whole result, nothing runs that the broken file might have stopped."""
    (tmp_path / "bad.py").write_text("def register(api):\n    oops\n")
    tool = EchoTool()
    loaded = await load_hooks(["bad.py"], cwd=tmp_path)
    output = await wrap_tool(tool, HookRunner(loaded, cwd=tmp_path)).execute("1", {"command": "ls"})
    assert output.is_error
    assert "bad.py:2: NameError" in output.text
    assert tool.inputs == []


async def test_what_is_no_hook_and_no_tool_is_refused_at_once() -> None:
    """A path instead of a loaded hook, a class instead of an object."""
    with pytest.raises(HookUsageError, match=r"HookRunner wants loaded hooks, not 'a\.py'"):
        HookRunner(["a.py"], cwd=".")  # type: ignore[list-item]  # the mistake
    with pytest.raises(HookUsageError, match="wrap_tool wants a tool"):
        wrap_tools([EchoTool], HookRunner([], cwd="."))


async def test_a_matcher_that_matches_none_of_the_wrapped_tools_is_reported_at_the_first_call() -> None:
    """The report comes once, also without any other listener."""

    async def gate(event: ToolCall, ctx: Any) -> None:
        raise AssertionError("never called")

    runner, errors = runner_of(hook_on("tool_call", gate, tool="Bash"))
    tool, _ = wrap_tools([EchoTool(), EchoTool("read")], runner)
    for _ in range(3):
        await tool.execute("1", {"command": "ls"})
    [error] = errors
    assert "tool='Bash' can match no known tool" in str(error)
    assert "did you mean 'bash'?" in str(error)


async def test_a_failure_names_the_line_in_the_hooks_own_file(tmp_path: Path) -> None:
    """Not the line in a library that it called."""
    handler = "    @api.on('tool_call')\n    def gate(event, ctx):\n        json.loads('{')\n"
    (tmp_path / "h.py").write_text(f"import json\n\ndef register(api):\n{handler}")
    loaded = await load_hooks(["h.py"], cwd=tmp_path)
    runner = HookRunner(loaded.hooks, cwd=tmp_path)
    events = RecordedEvents(runner)
    await runner.emit(call_of())
    assert events.errors[0].line == 6
    assert str(events.errors[0]).startswith("h.py:6: gate on tool_call: JSONDecodeError")


async def test_an_answer_that_was_not_awaited_is_awaited() -> None:
    """`return decide()` in an async handler returns a coroutine; its answer counts."""

    async def decide() -> dict[str, object]:
        return {"block": True, "reason": "decided"}

    async def gate(event: ToolCall, ctx: Any) -> Any:
        return decide()

    runner, errors = runner_of(hook_on("tool_call", gate))
    assert str(await runner.emit(call_of())) == "decided (hook.py)"
    assert errors == []


async def test_a_script_answers_confirm_with_true_or_false_only() -> None:
    """The text "no" would be yes."""
    with pytest.raises(TypeError, match="use True or False"):
        await ScriptedUI("no").confirm("Sure?", "")
