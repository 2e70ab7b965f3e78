"""A tool with hooks around it: what a program that has its own agent loop gives its agent.

Above: testing, programs.  Below: pipeline, function_tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agent_hooks.pipeline.call import running_call
from agent_hooks.pipeline.order import plan_of, preflight, run_tool
from agent_hooks.runner.runner import HookRunner
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import OnUpdate, Tool


def wrap_tool(tool: Tool | Callable[..., Any], runner: HookRunner) -> Tool:
    """Return a tool that does what `tool` does, with the runner's hooks around it.

    `tool` may be a typed function, `def` or `async def`: its name, docstring and type hints tell the model what it needs.
    A blocked call is a result with `is_error=True` whose text is the reason and who blocked; a tool that raises gives an
    error result.  With no hook that listens, the call goes straight through and the very same result comes back.
    """
    from agent_hooks.pipeline.function_tool import as_tool  # here, because the events of another agent need no schemas

    tool = as_tool(tool)
    runner.know_tools([tool.name])
    return WrappedTool(FixedTool(tool), runner)


def wrap_tools(tools: Iterable[Tool | Callable[..., Any]], runner: HookRunner) -> list[Tool]:
    """Wrap each of `tools`; see `wrap_tool`."""
    return [wrap_tool(tool, runner) for tool in tools]


class FixedTool:
    """A tool whose name and schema stay what they were: gates must not be asked about another name than was offered."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.input_schema = tool.input_schema
        self.execute = tool.execute


class WrappedTool:
    """A tool with hooks around it."""

    def __init__(self, tool: Tool, runner: HookRunner) -> None:
        self.name = tool.name
        self.description = tool.description
        self.input_schema = tool.input_schema
        self._tool = tool
        self._runner = runner

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Run the tool as `call_tool` does, if anybody listens."""
        runner = self._runner
        if not runner.matchers_checked:
            runner.check_matchers()
        plan = plan_of(runner.engine, self.name)
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
