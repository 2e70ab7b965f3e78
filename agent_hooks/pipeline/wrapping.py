"""A tool with hooks around it, for the agent of a program that has its own agent loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agent_hooks.hooks.api import HookAPI
from agent_hooks.pipeline.call import running_call
from agent_hooks.pipeline.order import plan_of, preflight, run_tool
from agent_hooks.runner.runner import HookRunner
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import OnUpdate, Tool


def wrap_tool(tool: Tool | Callable[..., Any], runner: HookRunner) -> Tool:
    """Return a tool that calls `tool`, with the runner's hooks around it.

    `tool` may be a typed function, `def` or `async def`: its name, docstring and type hints describe it to the model.
    A blocked call is a result with `is_error=True` whose text is the reason and the name of the blocker; a tool that
    raises gives an error result.  A call that no hook concerns goes straight through, and the very same result comes
    back.
    """
    # Imported here, because the events of another agent need no schemas.
    from agent_hooks.hooks.offering import as_tool

    owner = next((hook.api for hook in runner.hooks if any(each is tool for each in hook.tools)), None)
    tool = as_tool(tool)
    runner.know_tools([tool.name])
    return WrappedTool(FixedTool(tool), runner, owner)


def wrap_tools(tools: Iterable[Tool | Callable[..., Any]], runner: HookRunner) -> list[Tool]:
    """Wrap each of `tools`; see `wrap_tool`."""
    return [wrap_tool(tool, runner) for tool in tools]


class FixedTool:
    """A tool whose name and schema cannot change: gates must judge the name that was offered to the model."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.input_schema = tool.input_schema
        self.execute = tool.execute


class WrappedTool:
    """A tool with hooks around it; `owner`: the api of the hook that offers it, `None` for the program's own."""

    def __init__(self, tool: Tool, runner: HookRunner, owner: HookAPI | None = None) -> None:
        self.name = tool.name
        self.description = tool.description
        self.input_schema = tool.input_schema
        self._tool = tool
        self._runner = runner
        self._owner = owner

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Take the call through the pipeline if it concerns a handler, a guard, a transformer or the redactor."""
        runner = self._runner
        if self._owner is not None and self._owner.ended:
            text = f"tool {self.name!r} is stale: its hook {self._owner.label} was loaded again; wrap its new tools"
            return ToolOutput(text, is_error=True)
        if not runner.matchers_checked:
            runner.check_matchers()
        plan = runner.engine.call_plans.get(self.name) or plan_of(runner.engine, self.name)
        if not plan.any_concerned:
            return await self._tool.execute(tool_call_id, input, on_update=on_update)
        if plan.concerned:
            call = await preflight(self._tool, tool_call_id, input, runner=runner)
            return await run_tool(call, on_update=on_update)
        outer = running_call.set(tool_call_id)
        try:
            return await self._tool.execute(tool_call_id, input, on_update=on_update)
        finally:
            running_call.reset(outer)
