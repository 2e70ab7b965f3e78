"""The values that cross between an agent and a hook's process: events, answers, dialogs, interceptors, tools."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_hooks import (
    AfterToolCall,
    AgentStart,
    HookRunner,
    HookUsageError,
    Interceptor,
    ModelRef,
    SendError,
    SessionEvent,
    ToolCall,
    ToolOutput,
    ToolResult,
    wrap_tool,
)
from agent_hooks.errors import HookError
from agent_hooks.hook_process.link import ERRORS
from agent_hooks.testing import Asked, ScriptedUI
from agent_hooks.values.tool import BashToolDetails, Truncation
from isolation.isolating import load, running, telling, told, until_told
from support import PATIENCE, EchoTool, call_of

# ---- values


async def test_a_value_that_cannot_cross_makes_a_gate_block(tmp_path: Path) -> None:
    """A gate must not judge another value than the tool gets."""
    source = telling("""
        def register(api):
            api.on("tool_call", lambda event, ctx: None)
    """)
    async with running(tmp_path, source) as started:
        call = ToolCall(tool_name="at", tool_call_id="1", input={"when": dt.date.min})
        answer = await started.block_of(call)
    assert "event.input['when'] is of datetime.date" in answer.reason


async def test_a_mistake_in_an_isolated_hook_is_told_with_its_remedy(tmp_path: Path) -> None:
    """As in the agent: the names of other agents, the input of another tool, and milliseconds."""
    source = """
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                match event.tool_name:
                    case "a": event.toolName
                    case "b": event.input["command"]
                    case "c": await ctx.exec("true", [], {"timeout": 5000})
    """
    async with running(tmp_path, source) as started:
        for tool, says in {
            "a": "there is no event.toolName: write event.tool_name",
            "b": """KeyError: 'command'; the input of 'b' has 'path'; for the calls of one tool only, write api.on(""",
            "c": "takes its options by name, and the timeout in seconds: write timeout=…",
        }.items():
            answer = await started.block_of(ToolCall(tool_name=tool, tool_call_id="1", input={"path": "x"}))
            assert says in answer.reason


async def test_an_observer_gets_the_text_of_a_value_that_cannot_cross(tmp_path: Path) -> None:
    """The text says that it is one, and a result handler cannot write it over the value."""
    source = telling("""
        def register(api):
            @api.on("after_tool_call")
            def after(event, ctx):
                tell(event.params["when"])
            @api.on("tool_result")
            def result(event, ctx):
                return Replace(details={**event.details, "more": 1})
    """)
    when = {"when": dt.date(2026, 1, 2)}
    async with running(tmp_path, source) as started:
        await started.emit(AfterToolCall(tool_name="at", params=when))
        answer = await started.emit(ToolResult(tool_name="at", tool_call_id="1", input={}, content="out", details=when))
        assert answer is None
        assert "cannot cross" in started.texts[0]
    assert told(tmp_path) == ["2026-01-02 [text of datetime.date, which cannot cross between two processes]"]


async def test_an_answer_that_cannot_cross_is_a_failure_of_its_handler(tmp_path: Path) -> None:
    """On a gate it blocks."""
    source = telling("""
        def register(api):
            api.on("tool_call", lambda event, ctx: {"block": object()})
    """)
    async with running(tmp_path, source) as started:
        answer = await started.block_of(call_of())
    assert "the answer['block'] is of object" in answer.reason


async def test_details_come_out_as_the_class_that_went_in(tmp_path: Path) -> None:
    """A hook may narrow a result by its details."""
    source = telling("""
        def register(api):
            @api.on("tool_result")
            async def result(event, ctx):
                assert is_bash_tool_result(event)
                lines = event.details.truncation.total_lines
                return Replace(details={"lines": lines, "class": type(event.details).__name__})
    """)
    cut = Truncation(truncated=True, truncated_by="lines", total_lines=9, total_bytes=1, output_lines=1, output_bytes=1)
    details = BashToolDetails(truncation=cut)
    async with running(tmp_path, source) as started:
        answer = await started.emit(
            ToolResult(tool_name="bash", tool_call_id="1", input={}, content="out", details=details)
        )
        assert started.texts == []
    assert answer is not None
    assert answer.details == {"lines": 9, "class": "BashToolDetails"}


async def test_a_huge_event_crosses_and_one_beyond_the_limit_fails(tmp_path: Path) -> None:
    """The limit is a failure of the handler, by its policy."""
    source = telling("""
        def register(api):
            api.on("tool_call", lambda event, ctx: Block(str(len(event.input["command"]))), inline=True)
    """)
    async with running(tmp_path, source) as started:
        answer = await started.block_of(call_of("x" * 10_000_000))
        assert answer.reason == "10000000"
        answer = await started.block_of(call_of("x" * 70_000_000))
        assert "too large" in answer.reason


async def test_an_event_that_is_too_large_does_not_end_the_process(tmp_path: Path) -> None:
    """The event was never sent, so the process has nothing to cancel, and its other calls go on."""
    source = telling("""
        def register(api):
            api.on("tool_call", lambda event, ctx: Block(str(os.getpid())), inline=True)
    """)
    async with running(tmp_path, source) as started:
        pid = started.pid
        answer = await started.block_of(call_of("x" * 70_000_000))
        assert "too large" in answer.reason
        answer = await started.block_of(call_of("ls"))
        assert answer.reason == str(pid)


# ---- the context


async def test_dialogs_programs_and_the_context_are_those_of_the_agent(tmp_path: Path) -> None:
    """The person of the agent answers, and a program runs in the agent's directory."""
    source = telling("""
        import anyio.from_thread
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                ctx.ui.notify("look", "warning")
                chosen = await ctx.ui.select("which?", ["a", "b"])
                line = await ctx.ui.input("name?", "hint")
                result = await ctx.exec("sh", ["-c", "pwd; echo err >&2; exit 3"])
                tell([ctx.mode, ctx.cwd, ctx.session_id, ctx.agent_id, ctx.tool_name, ctx.has_ui])
                return Block(f"{chosen} {line} {result.stdout.strip()} {result.stderr.strip()} {result.code}")
            @api.on("agent_start")
            def plain(event, ctx):
                tell(anyio.from_thread.run(ctx.ui.confirm, "sure?"))
    """)
    ui = ScriptedUI("b", "Eve", True)
    async with running(tmp_path, source, ui=ui, session_id="s1") as started:
        answer = await started.block_of(call_of())
        await started.emit(AgentStart())
        assert started.texts == []
    assert answer.reason == f"b Eve {tmp_path} err 3"
    assert told(tmp_path) == [f"['embedded', '{tmp_path}', 's1', 'main', 'bash', True]", "True"]
    assert ui.asked[0] == Asked("notify", "look", "warning")


async def test_a_ui_that_fails_is_a_failure_of_the_handler_that_asked(tmp_path: Path) -> None:
    """The gate blocks with the text of the UI's error."""

    def fail(asked: Asked) -> bool:
        raise OSError("no terminal")

    source = telling("""
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                await ctx.ui.confirm("sure?")
    """)
    async with running(tmp_path, source, ui=ScriptedUI(fail)) as started:
        answer = await started.block_of(call_of())
    assert "no terminal" in answer.reason


async def test_a_dialog_ends_with_the_scope_that_the_handler_opened_around_it(tmp_path: Path) -> None:
    """The cancellation of a single dialog crosses."""
    ended = anyio.Event()

    async def wait(asked: Asked) -> bool:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return True

    source = telling("""
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                with anyio.move_on_after(0.1):
                    await ctx.ui.confirm("sure?")
                return Block("no answer")
    """)
    async with running(tmp_path, source, ui=ScriptedUI(wait)) as started:
        answer = await started.block_of(call_of())
        await ended.wait()
    assert answer.reason == "no answer"


async def test_api_send_reaches_the_agent_and_its_refusal_raises_in_the_hook(tmp_path: Path) -> None:
    """Also in a thread, and between other messages."""
    sent: list[tuple[str, str]] = []

    def take(text: str, attachments: Any, source: str) -> None:
        if text == "too much":
            raise SendError("too many messages")
        sent.append((text, source))

    source = telling("""
        def register(api):
            @api.on("agent_start")
            async def on_the_loop(event, ctx):
                api.send("one")
                try:
                    api.send("too much")
                except SendError as exc:
                    tell(exc)
                await ctx.ui.confirm("still there?")
            @api.on("agent_start")
            def in_a_thread(event, ctx):
                api.send("two")
    """)
    async with running(tmp_path, source) as started:
        started.runner.set_send_handler(take)
        await started.emit(AgentStart())
        assert started.texts == []
    assert sent == [("one", str(tmp_path / "hook.py")), ("two", str(tmp_path / "hook.py"))]
    assert told(tmp_path) == ["too many messages"]


async def test_a_process_shares_no_runner_tool_interceptor_environment_or_directory(tmp_path: Path) -> None:
    """A call that would reach nothing of the agent raises, and changes of the hook stay in its process."""
    source = telling("""
        def register(api):
            @api.on("agent_start")
            async def reach(event, ctx):
                os.environ["CHANGED"] = "yes"
                os.chdir("/")
                runner = HookRunner([], cwd=".")
                async def tool(command: str) -> str:
                    return command
                async def get():
                    get_interceptors()
                async def initialize():
                    initialize_interceptors()
                async def emit():
                    await runner.emit(AgentStart())
                async def wrap():
                    await wrap_tool(tool, runner).execute("1", {"command": "ls"})
                for call in (get, initialize, emit, wrap):
                    try:
                        await call()
                    except HookUsageError as exc:
                        tell(exc)
    """)
    before = Path.cwd()
    async with running(tmp_path, source) as started:
        await started.emit(AgentStart())
        assert started.texts == []
    lines = told(tmp_path)
    assert len(lines) == 4
    assert all("runs in a process of its own" in line for line in lines)
    assert "CHANGED" not in os.environ
    assert Path.cwd() == before


async def test_a_compaction_hook_gets_no_key(tmp_path: Path) -> None:
    """The key of a model stays in the agent."""
    source = telling("""
        def register(api):
            @api.on("session")
            async def compact(event, ctx):
                await event.resolve_api_key(event.model)
    """)
    event = SessionEvent(reason="before_compact", model=ModelRef(provider="p", id="m")).with_keys(lambda name: "secret")
    async with running(tmp_path, source) as started:
        await started.emit(event)
        assert "no key leaves the agent" in started.texts[0]


# ---- interceptors and tools


async def test_interceptors_get_a_copy_and_their_changed_fields_come_back(tmp_path: Path) -> None:
    """Sync and async interceptors at `tool.before` and `tool.after`, before and after one inside of the agent."""
    source = telling("""
        def register(api):
            @api.intercept("tool.before", tool="^bash$", priority=5)
            def first(input, output):
                output.args["command"] += " first"
            @api.intercept("tool.before", tool="other")
            async def never(input, output):
                output.block = True
            @api.intercept("tool.after")
            async def after(input, output):
                output.result.content = output.result.text + " after"
                output.result.is_error = True
    """)
    async with running(tmp_path, source) as started:

        def last(input: Any, output: Any) -> None:
            output.args["command"] += " last"

        started.runner.interceptors.add(Interceptor("last", "tool.before", last))
        tool = wrap_tool(EchoTool(), started.runner)
        result = await tool.execute("1", {"command": "ls"})
        assert ["can match no known tool" in text for text in started.texts] == [True]
    assert (result.text, result.is_error) == ("ran ls first last after", True)
    assert result.details == {"command": "ls first last"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("output.block, output.block_reason = True, 'not here'", "not here"),
        ("raise ValueError('boom')", "ValueError: boom"),
        ("output.args = 5", "output.args"),
        ("return 5", "return nothing, not 5"),
        ("os._exit(1)", "its process ended"),
    ],
)
async def test_an_interceptor_that_blocks_or_fails_blocks_the_call(body: str, reason: str, tmp_path: Path) -> None:
    """The policy of the point holds."""
    source = telling(f"""
        def register(api):
            @api.intercept("tool.before")
            async def step(input, output):
                {body}
    """)
    async with running(tmp_path, source) as started:
        tool = EchoTool()
        result = await wrap_tool(tool, started.runner).execute("1", {"command": "ls"})
    assert reason in result.text
    assert tool.inputs == []


async def test_a_tool_streams_its_progress_and_returns_its_result(tmp_path: Path) -> None:
    """Name, description and schema are the tool's own."""
    source = telling("""
        class Count:
            name, description = "count", "Count."
            input_schema = {"type": "object", "properties": {"to": {"type": "integer"}}, "required": ["to"]}
            async def execute(self, tool_call_id, input, *, on_update=None):
                for number in range(input["to"]):
                    on_update(ToolOutput(str(number)))
                if input["to"] == 0:
                    raise ValueError("nothing to count")
                return ToolOutput(f"{input['to']} in {os.getpid()}", {"odd": object()})
        def register(api):
            api.register_tool(Count())
            api.on("after_tool_call", lambda event, ctx: None, inline=True)
    """)
    async with running(tmp_path, source) as started:
        [found] = started.runner.hooks[0].tools
        assert (found.name, found.description, found.input_schema["required"]) == ("count", "Count.", ["to"])
        tool = wrap_tool(found, started.runner)
        updates: list[ToolOutput] = []
        result = await tool.execute("1", {"to": 3}, on_update=updates.append)
        assert [each.text for each in updates] == ["0", "1", "2"]
        assert result.text == f"3 in {started.pid}"
        assert "[text of object" in result.details["odd"]
        result = await tool.execute("1", {"to": 0}, on_update=updates.append)
        assert (result.text, result.is_error) == ("ValueError: nothing to count", True)


@pytest.mark.parametrize("body", ["await anyio.sleep_forever()", "time.sleep(600)"])
async def test_a_tool_whose_call_is_cancelled_ends(body: str, tmp_path: Path) -> None:
    """By a message; one that does not hear it is killed with its process."""
    source = telling(f"""
        class Endless:
            name, description, input_schema = "endless", "Endless.", {{"type": "object"}}
            async def execute(self, tool_call_id, input, *, on_update=None):
                tell("begun")
                try:
                    {body}
                finally:
                    tell("ended")
        def register(api):
            api.register_tool(Endless())
            api.on("tool_call", lambda event, ctx: None, inline=True)
    """)
    async with running(tmp_path, source) as started:
        before = started.pid
        async with anyio.create_task_group() as tasks:
            tool = wrap_tool(started.runner.hooks[0].tools[0], started.runner)
            tasks.start_soon(tool.execute, "1", {})
            await until_told(tmp_path, "begun")
            tasks.cancel_scope.cancel()
        if "sleep_forever" in body:
            assert told(tmp_path) == ["begun", "ended"]
        assert await started.emit(call_of()) is None
        assert (started.pid == before) == ("sleep_forever" in body)


async def test_a_tool_that_cannot_cross_keeps_no_later_one_from_the_agent(tmp_path: Path) -> None:
    """The handler gets the error; a tool that it registers after that is offered."""
    source = telling("""
        class Tool:
            description = ""
            def __init__(self, name, schema):
                self.name, self.input_schema = name, schema
            async def execute(self, tool_call_id, input, *, on_update=None):
                return ToolOutput("done")
        def register(api):
            @api.on("session")
            async def start(event, ctx):
                for tool in (Tool("first", {}), Tool("odd", {"default": object()}), Tool("last", {})):
                    try:
                        api.register_tool(tool)
                    except TypeError as exc:
                        tell(str(exc)[:17])
    """)
    async with running(tmp_path, source) as started:
        assert await started.emit(SessionEvent(reason="start")) is None
        assert [tool.name for tool in started.runner.hooks[0].tools] == ["first", "last"]
    assert told(tmp_path) == ["the schema of odd"]


# ---- tasks and unloading


async def test_tasks_begin_with_the_runner_and_end_before_on_unload(tmp_path: Path) -> None:
    """The failure of a task is reported."""
    source = telling("""
        def register(api):
            async def work():
                tell("task")
                try:
                    await anyio.sleep_forever()
                finally:
                    tell("task ended")
            async def broken():
                raise ValueError("boom")
            api.start_task(work)
            api.start_task(broken)
            @api.on_unload
            async def unload():
                tell("unloaded")
                raise ValueError("late")
    """)
    loaded = await load(tmp_path, source)
    assert told(tmp_path) == []
    errors: list[HookError] = []
    runner = HookRunner(loaded, cwd=tmp_path)
    runner.on_error(errors.append)
    with anyio.fail_after(PATIENCE):
        async with runner:
            while not errors or not told(tmp_path):
                await anyio.sleep(0.01)
    assert told(tmp_path) == ["task", "task ended", "unloaded"]
    assert [(error.handler, error.event, error.error) for error in errors] == [
        ("broken", "task", "ValueError: boom"),
        ("unload", "on_unload", "ValueError: late"),
    ]


async def test_a_hook_that_is_loaded_again_gets_the_state_of_the_process_before(tmp_path: Path) -> None:
    """A value that cannot cross is left out, and named."""
    source = telling("""
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                api.state["calls"] = api.state.get("calls", 0) + 1
                api.state["odd"] = object()
                return Block(f"{api.state['calls']}")
    """)
    async with running(tmp_path, source) as started:
        before = started.pid
        await started.emit(call_of())
        again = await load(tmp_path, source.replace("{api.state['calls']}", "again {api.state['calls']}"))
        await started.runner.reload(again)
        answer = await started.block_of(call_of())
        assert answer.reason == "again 2"
        assert started.pid != before
        assert ["api.state['odd'] was left out" in text for text in started.texts] == [True]


async def test_a_nested_call_of_the_agent_is_not_held_up_by_a_dialog_of_the_process(tmp_path: Path) -> None:
    """The agent may emit while the process waits for the person."""
    nested: list[object] = []

    async def emit(asked: Asked) -> bool:
        nested.append(await started.emit(AgentStart()))
        return True

    source = telling("""
        def register(api):
            @api.on("agent_start")
            async def start(event, ctx):
                tell("start")
            @api.on("tool_call")
            async def gate(event, ctx):
                return None if await ctx.ui.confirm("sure?") else Block("no")
    """)
    async with running(tmp_path, source, ui=ScriptedUI(emit)) as started:
        assert await started.emit(call_of()) is None
    assert (nested, told(tmp_path)) == ([None], ["start"])


def test_usage_errors_are_errors_of_the_package() -> None:
    """The classes that cross by name exist on both sides."""
    assert {"HookUsageError": HookUsageError, "SendError": SendError} == ERRORS
