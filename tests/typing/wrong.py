"""Mistakes that a type checker must report; each such line is marked. Never imported."""

from __future__ import annotations

from agent_hooks import (
    AgentEnd,
    AgentStart,
    Block,
    Cancel,
    Continue,
    HookAPI,
    HookContext,
    HookRunner,
    Replace,
    Rewrite,
    SessionEvent,
    ToolCall,
    ToolResult,
    is_bash_tool_call,
    is_bash_tool_result,
    wrap_tool,
    wrap_tools,
)
from agent_hooks.testing import call_tool


async def any_event(event: object, ctx: HookContext) -> None: ...


async def wrong_event(event: ToolResult, ctx: HookContext) -> None: ...


async def wrong_answer(event: ToolCall, ctx: HookContext) -> Replace:
    raise NotImplementedError


async def rewriting_gate(event: ToolCall, ctx: HookContext) -> Rewrite | None:
    raise NotImplementedError


def plain_wrong_answer(event: ToolCall, ctx: HookContext) -> bool:
    raise NotImplementedError


async def cancelling_start(event: AgentStart, ctx: HookContext) -> Cancel:
    raise NotImplementedError


async def blocking_end(event: AgentEnd, ctx: HookContext) -> Block:
    raise NotImplementedError


async def continuing_start(event: AgentStart, ctx: HookContext) -> Continue:
    raise NotImplementedError


async def no_context(event: ToolCall) -> None: ...


def register(api: HookAPI) -> None:
    api.on("tool_cal", any_event)  # ERROR
    api.on("tool_call", wrong_event)  # ERROR
    api.on("tool_call", wrong_answer)  # ERROR
    api.on("tool_call", rewriting_gate)  # ERROR
    api.on("tool_call", plain_wrong_answer)  # ERROR
    api.on("agent_start", cancelling_start)  # ERROR
    api.on("agent_start", continuing_start)  # ERROR
    api.on("agent_end", blocking_end)  # ERROR
    api.on("tool_call", no_context)  # ERROR
    api.on("tool_call", any_event, prioriti=1)  # ERROR
    api.on("tool_call", any_event, priority="high")  # ERROR
    api.on("tool_call", any_event, on_error="ignore")  # ERROR
    api.on("agent_start", any_event, tool="bash")  # ERROR
    api.on("tool_call", any_event, tool=7)  # ERROR

    @api.on("tool_cal")  # ERROR
    async def misspelt(event: ToolCall, ctx: HookContext) -> None: ...

    @api.on("tool_call")  # ERROR
    async def of_another_event(event: SessionEvent, ctx: HookContext) -> None: ...

    @api.on("tool_call")  # ERROR
    async def with_another_answer(event: ToolCall, ctx: HookContext) -> Cancel:
        raise NotImplementedError

    @api.on("tool_call")  # ERROR
    async def that_rewrites(event: ToolCall, ctx: HookContext) -> Rewrite:
        raise NotImplementedError

    @api.on("tool_call", inlin=True)  # ERROR
    async def with_a_misspelt_option(event: ToolCall, ctx: HookContext) -> None: ...

    @api.on("tool_call")
    async def that_assigns(event: ToolCall, ctx: HookContext) -> Block | None:
        event.tool_name = "read"  # ERROR
        event.input["command"] = "ls"  # ERROR
        event.input = {}  # ERROR
        return None

    @api.on("tool_call")
    async def that_narrows(event: ToolCall, ctx: HookContext) -> None:
        if is_bash_tool_call(event):
            event.input["comand"]  # ERROR

    @api.on("tool_result")
    async def that_narrows_a_result(event: ToolResult, ctx: HookContext) -> None:
        if is_bash_tool_result(event) and event.details is not None:
            len(event.details.truncation)  # ERROR

    api.start_task(any_event)  # ERROR


async def embed(runner: HookRunner) -> None:
    answer = await runner.emit(ToolCall(tool_name="bash", tool_call_id="1", input={}))
    print(answer.reason)  # ERROR
    ToolCall(tool_name="bash", input={})  # ERROR
    HookRunner([], cwd=".", timeout="30")  # ERROR
    HookRunner([], cwd=".", mode="desktop")  # ERROR
    wrap_tools([7], runner)  # ERROR
    wrap_tool("bash", runner)  # ERROR
    await call_tool(runner, 7, {})  # ERROR
