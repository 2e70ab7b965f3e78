"""Code that a type checker must accept, with the types it must infer. Never imported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, assert_type

from typing_extensions import TypeIs

from agent_hooks import (
    AddContext,
    AfterToolCall,
    AgentEnd,
    AgentStart,
    Ask,
    BashToolDetails,
    BeforeToolCall,
    Block,
    Cancel,
    Compaction,
    Continue,
    ExecResult,
    HookAPI,
    HookContext,
    HookRunner,
    Replace,
    Rewrite,
    SessionEvent,
    SkipConversationRestore,
    Stop,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    TurnEnd,
    TurnStart,
    is_bash_tool_call,
    is_bash_tool_result,
    is_edit_tool_result,
    wrap_tool,
    wrap_tools,
)
from agent_hooks.testing import LoadHook, MakeRunner, ScriptedUI, StandInTool, call_tool


class DeployDetails(TypedDict):
    """Details of a custom tool."""

    url: str


if TYPE_CHECKING:

    class DeployResult(ToolResult, frozen=True):
        """A result of the custom tool."""

        details: DeployDetails = DeployDetails(url="")


def is_deploy_tool_result(event: ToolResult) -> TypeIs[DeployResult]:
    """Narrow to the custom tool; the form that the documentation shows."""
    return event.tool_name == "deploy"


class DeployTool:
    """A custom tool."""

    name = "deploy"
    description = "Deploy."
    input_schema: Mapping[str, Any] = {"type": "object"}

    async def execute(
        self,
        tool_call_id: str,
        input: dict[str, Any],
        *,
        on_update: Callable[[ToolOutput], None] | None = None,
    ) -> ToolOutput:
        """Do it."""
        return ToolOutput("done", {"url": "https://example.org"})


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


async def add_later(a: int, *, b: int = 1) -> int:
    """Add."""
    return a + b


async def test_a_hook(hook_runner: MakeRunner, load_hook: LoadHook) -> None:
    """Use the public test doubles."""
    ui = ScriptedUI(True, lambda asked: asked.title)
    runner = await hook_runner("gate.py", await load_hook("def register(api): ..."), ui=ui, mode="print")
    assert_type(runner, HookRunner)
    assert_type(await call_tool(runner, "bash", {"command": "ls"}), ToolOutput)
    assert_type(await call_tool(runner, "deploy", {}, DeployTool()), ToolOutput)
    assert_type(StandInTool("bash", "text").inputs, list[dict[str, Any]])


async def gate(event: ToolCall, ctx: HookContext) -> Block | Ask | None:
    """Judge."""
    if is_bash_tool_call(event):
        assert_type(event.input["command"], str)
        return Block(event.input["command"])
    assert_type(event, ToolCall)
    return None


def plain_gate(event: ToolCall, ctx: HookContext) -> dict[str, object] | None:
    """Judge with a mapping."""
    return {"block": True, "reason": str(event.input["command"])}


async def observer(event: object, ctx: HookContext) -> None:
    """Observe any event."""


async def task() -> None:
    """Run beside the agent."""


def register(api: HookAPI) -> None:
    """Use everything as the documentation does."""
    undo = api.on("tool_call", gate, tool="bash", priority=10, on_error="block")
    assert_type(undo, Callable[[], None])
    api.on("tool_call", plain_gate, tool=["bash", re.compile("^mcp_")])
    api.on("tool_call", lambda event, ctx: Block() if event.tool_name == "bash" else None, inline=True)
    api.on("session", observer)
    api.on("turn_end", observer)
    api.on("agent_end", lambda event, ctx: None)
    api.start_task(task)
    api.register_tool(DeployTool())
    api.send("hello")

    @api.on("tool_call")
    async def decorated(event: ToolCall, ctx: HookContext) -> Block | None:
        return None

    async def the_decorator_keeps_the_type(event: ToolCall, ctx: HookContext) -> None:
        assert_type(await decorated(event, ctx), Block | None)

    api.on("tool_call", the_decorator_keeps_the_type)

    @api.on("before_tool_call", tool=re.compile("bash"))
    def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite | Block | Ask | None:
        return Rewrite({**event.params, "timeout": 5})

    assert_type(rewrite(BeforeToolCall(tool_name="bash", params={}), _context()), Rewrite | Block | Ask | None)

    @api.on("tool_result")
    async def result(event: ToolResult, ctx: HookContext) -> Replace | None:
        if is_bash_tool_result(event):
            assert_type(event.details, BashToolDetails | None)
            assert_type(event.input["command"], str)
        elif is_edit_tool_result(event):
            assert_type(event.details, None)
        elif is_deploy_tool_result(event):
            assert_type(event.details["url"], str)
        return Replace(content="text", details=None, is_error=False)

    @api.on("session", on_error="block")
    async def session(event: SessionEvent, ctx: HookContext) -> Cancel | SkipConversationRestore | Compaction | None:
        return Cancel() if event.reason == "before_clear" else None

    @api.on("agent_start")
    async def start(event: AgentStart, ctx: HookContext) -> None: ...

    @api.on("agent_start")
    async def note(event: AgentStart, ctx: HookContext) -> AddContext:
        assert_type(event.prompt, str)
        return AddContext("Small commits.")

    @api.on("tool_result")
    def judge(event: ToolResult, ctx: HookContext) -> Replace | AddContext | Stop | None:
        return Stop("enough") if event.is_error else AddContext("It worked.")

    @api.on("tool_call")
    async def stopping(event: ToolCall, ctx: HookContext) -> Block | Stop | None:
        return Stop("enough")

    @api.intercept("tool.before")
    async def with_context(input: Any, output: Any, ctx: HookContext) -> None:
        assert_type(ctx.cwd, str)

    @api.on("agent_end")
    async def end(event: AgentEnd, ctx: HookContext) -> Continue | None:
        return Continue("Run the tests.") if event.continued < 2 else None

    api.on("agent_end", lambda event, ctx: {"continue": "Run the tests."})

    @api.on("turn_start")
    async def turn_start(event: TurnStart, ctx: HookContext) -> None:
        assert_type(event.turn_index, int)

    @api.on("turn_end")
    def turn_end(event: TurnEnd, ctx: HookContext) -> None: ...

    @api.on("turn_end")
    def last_turn(event: TurnEnd, ctx: HookContext) -> Stop | None:
        return Stop("enough") if event.turn_index > 9 else None

    @api.on("after_tool_call", tool="bash")
    async def after(event: AfterToolCall, ctx: HookContext) -> None:
        assert_type(event.result, ToolOutput | None)

    @api.on_unload
    def unload() -> None: ...

    assert_type(unload(), None)


async def use_context(ctx: HookContext) -> None:
    """Ask and run."""
    assert_type(await ctx.ui.confirm("Sure?", "really"), bool)
    assert_type(await ctx.ui.select("Which?", ["a"]), str | None)
    assert_type(await ctx.ui.input("Name?"), str | None)
    assert_type(ctx.ui.notify("hello", "warning"), None)
    assert_type(await ctx.exec("git", ["status"], timeout=5), ExecResult)
    assert_type(ctx.mode, Literal["interactive", "rpc", "print", "embedded", "bridge", "replay"])
    assert_type(ctx.tool_name, str | None)


async def embed(tools: Sequence[Tool]) -> None:
    """Use the runner from a program."""
    async with HookRunner([], cwd=".", timeout=None) as runner:
        assert_type(runner, HookRunner)
        assert_type(await runner.emit(ToolCall(tool_name="bash", tool_call_id="1", input={})), Block | Ask | None)
        assert_type(
            await runner.emit_tool_call(BeforeToolCall(tool_name="bash", params={})), Rewrite | Block | Ask | None
        )
        assert_type(
            await runner.emit(SessionEvent(reason="before_branch")),
            Cancel | SkipConversationRestore | Compaction | AddContext | None,
        )
        assert_type(
            await runner.emit(ToolResult(tool_name="bash", tool_call_id="1", input={}, content="text")), Replace | None
        )
        assert_type(await runner.emit(AgentStart(prompt="go")), AddContext | None)
        assert_type(await runner.emit(AgentEnd()), Continue | None)
        assert_type(wrap_tools([*tools, DeployTool(), add, add_later], runner), list[Tool])
        assert_type(wrap_tool(add, runner), Tool)
        output = await wrap_tool(DeployTool(), runner).execute("1", {})
        assert_type(output.text, str)
        assert_type(runner.on_error(lambda error: print(error.hook_path)), Callable[[], None])


def _context() -> HookContext:
    raise NotImplementedError
