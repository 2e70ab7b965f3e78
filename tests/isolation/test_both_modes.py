"""The promises of dispatch, deadlines and cancellation hold inside of the agent and in a process of the hook's own."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest

from agent_hooks import AfterToolCall, AgentEnd, AgentStart, Continue, Stop, ToolResult, TurnStart
from agent_hooks.testing import Asked, ScriptedUI, call_tool
from isolation.isolating import Mode, running, telling, told, until_told
from support import Endless, call_of

LIMIT = 0.3
"""Seconds of a deadline that a handler exceeds."""
AMPLE = 20.0

pytestmark = pytest.mark.parametrize("mode", ["inline", "process"])


async def test_handlers_run_one_after_another_by_priority_and_new_ones_from_the_next_event_on(
    mode: Mode, tmp_path: Path
) -> None:
    """Order, priority and snapshot are those of the runner."""
    first = telling("""
        def register(api):
            async def late(event, ctx):
                tell("late")
            added = []
            async def a1(event, ctx):
                tell("a1")
                if not added:
                    added.append(api.on("agent_start", late))
            def a2(event, ctx):
                tell("a2")
            api.on("agent_start", a1)
            api.on("agent_start", a2, inline=True)
    """)
    second = telling("""
        def register(api):
            async def b1(event, ctx):
                tell("b1")
            api.on("agent_start", b1, priority=1)
    """)
    async with running(tmp_path, first, second, mode=mode) as started:
        await started.emit(AgentStart())
        assert told(tmp_path) == ["b1", "a1", "a2"]
        await started.emit(AgentStart())
    assert told(tmp_path)[3:] == ["b1", "a1", "a2", "late"]


async def test_a_subscription_that_is_undone_in_a_handler_ends_with_the_event(mode: Mode, tmp_path: Path) -> None:
    """The function that `api.on` returns works in both modes."""
    source = telling("""
        def register(api):
            async def once(event, ctx):
                tell("once")
                undo()
            undo = api.on("agent_start", once)
    """)
    async with running(tmp_path, source, mode=mode) as started:
        await started.emit(AgentStart())
        await started.emit(AgentStart())
        assert not started.runner.has_handlers("agent_start")
    assert told(tmp_path) == ["once"]


async def test_an_answer_that_counts_nowhere_is_reported_once(mode: Mode, tmp_path: Path) -> None:
    """A mistaken answer is named, and ignored."""
    source = """
from agent_hooks import Cancel
def register(api):
    api.on("turn_start", lambda event, ctx: 5)
    api.on("after_tool_call", lambda event, ctx: Cancel())
"""
    async with running(tmp_path, source, mode=mode) as started:
        for _ in range(2):
            await started.emit(TurnStart(turn_index=0, timestamp=0))
        await started.emit(AfterToolCall(tool_name="bash", params={}))
        assert ["takes no answer" in text for text in started.texts] == [True, True]


async def test_a_stop_and_texts_for_the_model_cross_as_they_are(mode: Mode, tmp_path: Path) -> None:
    """The answers of a hook in a process of its own are combined like any other."""
    source = """
from agent_hooks import AddContext, Replace, Stop
def register(api):
    api.on("tool_call", lambda event, ctx: Stop("enough"))
    api.on("tool_result", lambda event, ctx: Replace(content="short"))
    api.on("tool_result", lambda event, ctx: AddContext(f"about {event.text}"))
    api.on("tool_result", lambda event, ctx: {"stop": "it is done"})
    api.on("agent_start", lambda event, ctx: {"add_context": f"you asked: {event.prompt}"})
    api.on("turn_end", lambda event, ctx: Stop("last turn"))
"""
    async with running(tmp_path, source, mode=mode) as started:
        stop = await started.emit(call_of())
        assert isinstance(stop, Stop)
        assert (stop.reason, stop.cause) == ("enough", "hook")
        result = await started.emit(ToolResult(tool_name="bash", tool_call_id="1", input={}, content="long"))
        assert result is not None
        assert result.stop is not None
        assert [each.text for each in result.context] == ["about short"]
        assert (result.changes()["content"][0].text, result.stop.reason) == ("short", "it is done")
        context = await started.emit(AgentStart(prompt="why?"))
        assert context is not None
        assert context.text == "you asked: why?"


async def test_an_interceptor_with_a_third_parameter_gets_the_context(mode: Mode, tmp_path: Path) -> None:
    """Its dialogs and programs work in both modes."""
    source = """
def register(api):
    @api.intercept("tool.before")
    async def step(input, output, ctx):
        done = await ctx.exec("echo", ["from", ctx.tool_name])
        yes = await ctx.ui.confirm("Shall it?", ctx.cwd)
        output.args["command"] = f"{done.stdout.strip()} {yes} {ctx.agent_id}"
        ctx.ui.notify("changed")

    @api.intercept("tool.before")
    def plain(input, output, ctx=None):
        output.args["command"] += f" {ctx.mode}"

    @api.intercept("tool.before")
    def two(input, output, ctx_of_mine="own"):
        output.args["command"] += f" {ctx_of_mine}"
"""
    ui = ScriptedUI(True)
    async with running(tmp_path, source, mode=mode, ui=ui) as started:
        output = await call_tool(started.runner, "bash", {"command": "ls"})
    assert output.details == {"command": "from bash True main embedded own"}
    assert ui.asked == [Asked("confirm", "Shall it?", str(tmp_path)), Asked("notify", "changed", "info")]


async def test_a_raising_handler_is_reported_with_its_place_and_the_next_one_runs(mode: Mode, tmp_path: Path) -> None:
    """The report names hook, handler, event, text, traceback, file and line."""
    source = telling("""
        def register(api):
            async def broken(event, ctx):
                raise ValueError("boom")
            api.on("agent_start", broken)
            api.on("agent_start", lambda event, ctx: tell("next"))
    """)
    async with running(tmp_path, source, mode=mode) as started:
        await started.emit(AgentStart())
        [error] = started.errors
    assert told(tmp_path) == ["next"]
    assert (error.handler, error.event, error.error, error.outcome) == (
        "broken", "agent_start", "ValueError: boom", "continued",
    )  # fmt: skip
    assert 'raise ValueError("boom")' in error.traceback
    hook = tmp_path / "hook.py"
    line = hook.read_text().splitlines().index('        raise ValueError("boom")') + 1
    assert (error.file, error.line) == (str(hook), line)


@pytest.mark.parametrize("failure", ['raise ValueError("boom")', "return 5", "raise SystemExit(3)"])
async def test_a_gate_that_fails_blocks(mode: Mode, failure: str, tmp_path: Path) -> None:
    """The policy of the event applies, and the block names the hook."""
    source = f"""
def register(api):
    async def gate(event, ctx):
        {failure}
    api.on("tool_call", gate)
"""
    async with running(tmp_path, source, mode=mode) as started:
        answer = await started.block_of(call_of())
    assert (answer.by, answer.cause) == ("hook.py", "failed")


async def test_without_a_person_dialogs_are_answered_at_once(mode: Mode, tmp_path: Path) -> None:
    """`has_ui` is false, and each dialog has its default."""
    source = telling("""
        def register(api):
            @api.on("agent_start")
            async def ask(event, ctx):
                ctx.ui.notify("hello")
                tell([ctx.has_ui, await ctx.ui.select("t", ["a"]), await ctx.ui.confirm("t"), await ctx.ui.input("t")])
    """)
    async with running(tmp_path, source, mode=mode) as started:
        await started.emit(AgentStart())
        assert started.texts == []
    assert told(tmp_path) == ["[False, None, False, None]"]


async def test_a_handler_past_its_deadline_is_cancelled_and_the_next_one_runs(mode: Mode, tmp_path: Path) -> None:
    """The rest of the handler does not run."""
    source = telling("""
        def register(api):
            @api.on("agent_start")
            async def slow(event, ctx):
                try:
                    await anyio.sleep(60)
                    tell("rest")
                finally:
                    tell("ended")
            @api.on("agent_start")
            async def next(event, ctx):
                tell("next")
    """)
    async with running(tmp_path, source, mode=mode, timeout=LIMIT) as started:
        await started.emit(AgentStart())
        assert started.texts == [f"timed out after {LIMIT} s"]
    assert told(tmp_path) == ["ended", "next"]


async def test_a_handlers_own_timeout_error_is_no_timeout(mode: Mode, tmp_path: Path) -> None:
    """The failure is the exception, and no deadline is named."""
    source = """
import anyio
def register(api):
    @api.on("agent_start")
    async def impatient(event, ctx):
        with anyio.fail_after(0.01):
            await anyio.sleep(5)
"""
    async with running(tmp_path, source, mode=mode, timeout=AMPLE) as started:
        await started.emit(AgentStart())
        assert started.texts == ["TimeoutError"]


async def test_handlers_just_under_the_deadline_all_run(mode: Mode, tmp_path: Path) -> None:
    """Each handler has a deadline of its own."""
    source = telling("""
        def register(api):
            for number in range(5):
                async def slow(event, ctx, number=number):
                    await anyio.sleep(0.4)
                    tell(number)
                api.on("agent_start", slow)
    """)
    async with running(tmp_path, source, mode=mode, timeout=1.5) as started:
        await started.emit(AgentStart())
        assert started.texts == []
    assert told(tmp_path) == ["0", "1", "2", "3", "4"]


async def test_a_sleeping_thread_exceeds_its_deadline_and_is_not_called_again_meanwhile(
    mode: Mode, tmp_path: Path
) -> None:
    """The next event finds the handler busy; in a process, the thread was killed, and a new process is asked."""
    source = telling("""
        def register(api):
            @api.on("tool_call")
            def sleepy(event, ctx):
                while not (HERE / "told").exists():
                    time.sleep(0.01)
    """)
    async with running(tmp_path, source, mode=mode, tool_call_timeout=LIMIT) as started:
        answer = await started.block_of(call_of())
        assert answer.cause == "timed_out"
        answer = await started.block_of(call_of())
        if mode == "inline":
            assert "still running" in answer.reason
        else:
            assert answer.cause == "timed_out"
        (tmp_path / "told").touch()
        while await started.emit(call_of()) is not None:
            await anyio.sleep(0.01)


async def test_the_clock_stands_while_a_dialog_is_open(mode: Mode, tmp_path: Path) -> None:
    """A dialog may stay open longer than the deadline, and its answer counts."""

    async def answer_late(asked: Asked) -> bool:
        await anyio.sleep(3 * LIMIT)
        return True

    source = telling("""
        def register(api):
            @api.on("agent_start")
            async def ask(event, ctx):
                tell(await ctx.ui.confirm("sure?"))
                await anyio.sleep(60)
    """)
    async with running(tmp_path, source, mode=mode, timeout=LIMIT, ui=ScriptedUI(answer_late)) as started:
        begun = time.monotonic()
        await started.emit(AgentStart())
        assert time.monotonic() - begun > 3 * LIMIT
        assert started.texts == [f"timed out after {LIMIT} s"]
    assert told(tmp_path) == ["True"]


@pytest.mark.parametrize("where", ["handler", "dialog"])
async def test_cancelling_the_emitting_task_cancels_handler_and_dialog(mode: Mode, where: str, tmp_path: Path) -> None:
    """Nothing of the event goes on."""
    dialog = Endless()
    ended: list[str] = []

    async def wait(asked: Asked) -> None:
        try:
            await dialog()
        finally:
            ended.append("dialog")

    line = 'await ctx.ui.confirm("sure?")' if where == "dialog" else "await anyio.sleep(60)"
    source = telling(f"""
        def register(api):
            @api.on("agent_start")
            async def wait(event, ctx):
                tell("begun")
                try:
                    {line}
                finally:
                    tell("ended")
    """)
    async with running(tmp_path, source, mode=mode, ui=ScriptedUI(wait)) as started, anyio.create_task_group() as tasks:
        tasks.start_soon(started.emit, AgentStart())
        await until_told(tmp_path, "begun")
        if where == "dialog":
            await dialog.begun.wait()
        tasks.cancel_scope.cancel()
    assert told(tmp_path) == ["begun", "ended"]
    assert ended == (["dialog"] if where == "dialog" else [])


async def test_calls_of_two_tasks_are_judged_in_turn_and_results_pass_meanwhile(mode: Mode, tmp_path: Path) -> None:
    """The lane of the calls is held; a result waits for no dialog of a call."""
    dialog = anyio.Event()

    async def wait(asked: Asked) -> bool:
        await dialog.wait()
        return True

    source = telling("""
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                tell(event.input["command"])
                if event.input["command"] == "first":
                    await ctx.ui.confirm("sure?")
                tell("judged")
            @api.on("tool_result")
            async def result(event, ctx):
                tell("result")
    """)
    result = ToolResult(tool_name="bash", tool_call_id="1", input={}, content="out")
    async with running(tmp_path, source, mode=mode, ui=ScriptedUI(wait)) as started, anyio.create_task_group() as tasks:
        tasks.start_soon(started.emit, call_of("first"))
        await until_told(tmp_path, "first")
        tasks.start_soon(started.emit, call_of("second"))
        await started.emit(result)
        dialog.set()
    assert told(tmp_path) == ["first", "result", "judged", "second", "judged"]


async def test_every_kind_of_callable_is_awaited(mode: Mode, tmp_path: Path) -> None:
    """Objects, partials, methods, and functions that return a coroutine."""
    source = telling("""
        from functools import partial
        async def handle(word, event, ctx):
            await anyio.sleep(0)
            tell(word)
        class Callable:
            async def __call__(self, event, ctx):
                await handle("object", event, ctx)
            async def method(self, event, ctx):
                await handle("method", event, ctx)
        def register(api):
            api.on("agent_start", Callable())
            api.on("agent_start", partial(handle, "partial"))
            api.on("agent_start", Callable().method)
            api.on("agent_start", lambda event, ctx: handle("lambda", event, ctx))
    """)
    async with running(tmp_path, source, mode=mode) as started:
        await started.emit(AgentStart())
        assert started.texts == []
    assert told(tmp_path) == ["object", "partial", "method", "lambda"]


@pytest.mark.parametrize("call", ['ctx.ui.confirm("sure?")', 'ctx.exec("true")'])
@pytest.mark.parametrize("use", ["if not {}: return None", "{}"])
async def test_a_forgotten_await_blocks(mode: Mode, call: str, use: str, tmp_path: Path) -> None:
    """It is a failure of the handler that names the missing word."""
    source = f"""
def register(api):
    @api.on("tool_call")
    async def gate(event, ctx):
        {use.format(call)}
"""
    async with running(tmp_path, source, mode=mode) as started:
        answer = await started.block_of(call_of())
    assert "was not awaited" in answer.reason


async def test_the_first_continue_counts_and_all_are_called(mode: Mode, tmp_path: Path) -> None:
    """Answers are combined by the runner."""
    source = telling("""
        def register(api):
            for word in ("one", "two"):
                async def go_on(event, ctx, word=word):
                    tell(word)
                    return Continue(word)
                api.on("agent_end", go_on)
    """)
    async with running(tmp_path, source, mode=mode) as started:
        answer = await started.emit(AgentEnd())
    assert isinstance(answer, Continue)
    assert answer.text == "one"
    assert told(tmp_path) == ["one", "two"]
