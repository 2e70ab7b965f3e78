"""Hooks are loaded again while the program goes on."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest
import sniffio

from agent_hooks import (
    HookAPI,
    HookError,
    HookRunner,
    HookUsageError,
    LoadedHook,
    LoadResult,
    SessionEvent,
    ToolOutput,
    load_hooks,
    wrap_tool,
    wrap_tools,
)
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.loop import Dispatch
from agent_hooks.hooks.imports import is_hook_module
from agent_hooks.isolation.process import HookProcess
from agent_hooks.runner.reloaded import Reloaded
from agent_hooks.server.endless import forget_cancelled_timers
from support import PATIENCE, EchoTool, call_of, gone, hook_on

pytestmark = pytest.mark.anyio

GATE = """
    def register(api):
        @api.on("tool_call", inline=True)
        def judge(event, ctx):
            return {{"block": True, "reason": "{}"}}
"""
LIFE = """
    import anyio
    LOG = __import__("builtins").life
    def register(api):
        LOG.append("{0} loaded")
        @api.on("session", inline=True)
        def hear(event, ctx):
            LOG.append(f"{0} {{event.reason}} {{event.reload}}")
        async def work():
            LOG.append("{0} works")
            try:
                await anyio.sleep_forever()
            finally:
                LOG.append("{0} stops")
        api.start_task(work)
        api.on_unload(lambda: LOG.append("{0} unloads"))
"""


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that hooks find among the builtins."""
    log: list[str] = []
    monkeypatch.setattr("builtins.life", log, raising=False)
    return log


class Place:
    """A directory of hooks, and a runner of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.errors: list[HookError] = []

    def write(self, text: str, name: str = "hook.py") -> Path:
        path = self.directory / name
        path.write_text(dedent(text))
        return path

    async def load(self) -> LoadResult:
        return await load_hooks(sorted(self.directory.glob("[!_]*.py")), cwd=self.directory)

    async def runner(self) -> HookRunner:
        runner = HookRunner(await self.load(), cwd=self.directory)
        runner.on_error(self.errors.append)
        return runner

    async def reload(self, runner: HookRunner) -> Reloaded:
        with anyio.fail_after(PATIENCE):
            return await runner.reload(await self.load())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def reason(runner: HookRunner) -> str | None:
    """Return the reason for which a call is blocked."""
    with anyio.fail_after(PATIENCE):
        answer: Any = await runner.emit(call_of())
    return None if answer is None else answer.reason


async def test_the_new_version_of_a_hook_judges_the_next_call(place: Place) -> None:
    """A reload of the runner replaces its handlers."""
    place.write(GATE.format("old"))
    async with await place.runner() as runner:
        assert await reason(runner) == "old"
        place.write(GATE.format("new"))
        assert await place.reload(runner) == Reloaded()
        assert await reason(runner) == "new"
        (place.directory / "hook.py").unlink()
        await place.reload(runner)
        assert await reason(runner) is None


async def test_the_old_generation_ends_before_the_new_one_begins(place: Place, life: list[str]) -> None:
    """A port that a task of the old one held is free when the new one needs it."""
    place.write(LIFE.format("old"))
    async with await place.runner() as runner:
        await anyio.wait_all_tasks_blocked()
        place.write(LIFE.format("new"))
        await place.reload(runner)
        await anyio.wait_all_tasks_blocked()
        assert life == [
            "old loaded",
            "old works",
            "new loaded",
            "old shutdown True",
            "old stops",
            "old unloads",
            "new start True",
            "new works",
        ]
    assert life[-2:] == ["new stops", "new unloads"]
    assert place.errors == []


async def test_a_port_of_an_old_task_is_free_for_the_new_one(place: Place) -> None:
    """A webhook listens on one port, also while hooks are loaded again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = f"""
        import socket, anyio
        def register(api):
            async def listen():
                with socket.socket() as listener:
                    listener.bind(("127.0.0.1", {port}))
                    listener.listen()
                    api.state["bound"] = api.state.get("bound", 0) + 1
                    await anyio.sleep_forever()
            api.start_task(listen)
    """
    place.write(text)
    async with await place.runner() as runner:
        for number in range(1, 6):
            await anyio.wait_all_tasks_blocked()
            assert runner.hooks[0].api.state["bound"] == number
            await place.reload(runner)
    assert place.errors == []


async def test_state_is_handed_over_as_a_deep_copy(place: Place) -> None:
    """The new generation has it at its start, with the last change of the old one's end."""
    text = """
        def register(api):
            api.state.setdefault("calls", [])
            api.on_unload(lambda: api.state["calls"].append("unload"))
            @api.on("tool_call", inline=True)
            def judge(event, ctx):
                api.state["calls"].append("call")
                return {"block": True, "reason": " ".join(api.state["calls"])}
    """
    place.write(text)
    async with await place.runner() as runner:
        (old,) = runner.hooks
        assert await reason(runner) == "call"
        before = old.api.state["calls"]
        await place.reload(runner)
        (new,) = runner.hooks
        assert new.api.state["calls"] == ["call", "unload"] == before
        assert new.api.state["calls"] is not before
        assert await reason(runner) == "call unload call"


async def test_a_value_that_cannot_be_copied_is_left_out_and_named(place: Place) -> None:
    """The other values are handed over."""
    place.write("""
        import threading
        class Own: pass
        def register(api):
            if not api.state:
                one = [1]
                api.state.update(lock=threading.Lock(), own=Own(), kind=Own, function=register, shared=one, again=one)
    """)
    async with await place.runner() as runner:
        place.write("def register(api): pass")
        reloaded = await place.reload(runner)
        (new,) = runner.hooks
        assert new.api.state == {"shared": [1], "again": [1]}
    assert len(reloaded.left_out) == 4
    assert "api.state['lock'] was left out" in reloaded.left_out[0]
    assert all("of the hook itself" in text for text in reloaded.left_out[1:])


async def test_a_broken_edit_keeps_the_old_gate(place: Place, life: list[str]) -> None:
    """The hook hears nothing of the reload, and the other hooks are loaded again."""
    place.write(GATE.format("old") + LIFE.format("kept").split("def register(api):")[0], name="gate.py")
    place.write(LIFE.format("kept"), name="kept.py")
    place.write(LIFE.format("old"), name="other.py")
    async with await place.runner() as runner:
        await anyio.wait_all_tasks_blocked()
        place.write("def register(api:", name="gate.py")
        place.write("1/0", name="kept.py")
        place.write(LIFE.format("new"), name="other.py")
        del life[:]
        reloaded = await place.reload(runner)
        await anyio.wait_all_tasks_blocked()
        assert [Path(error.path).name for error in reloaded.kept] == ["gate.py", "kept.py"]
        assert "former version stays in force" in reloaded.messages[0]
        assert reloaded.failed == ()
        assert [hook.name for hook in runner.hooks] == ["gate", "kept", "other"]
        assert not [line for line in life if "kept" in line]
        assert await reason(runner) == "old"
        place.write(GATE.format("mended"), name="gate.py")
        await place.reload(runner)
        assert await reason(runner) == "mended"
        assert not [line for line in life if "kept" in line]


async def test_a_broken_new_file_blocks_every_call(place: Place) -> None:
    """There is no former version that could judge."""
    place.write(GATE.format("old"))
    async with await place.runner() as runner:
        place.write("1/0", name="another.py")
        place.write("def register(api): pass")
        reloaded = await place.reload(runner)
        assert len(reloaded.failed) == 1
        assert "could not be loaded" in str(await reason(runner))
        # It still has no former version.
        await place.reload(runner)
        assert "could not be loaded" in str(await reason(runner))


async def test_objects_of_an_old_generation_say_that_they_are_stale(place: Place) -> None:
    """A thread that was left behind cannot act for the new one."""
    place.write("""
        def register(api):
            @api.on("tool_call", inline=True)
            def judge(event, ctx):
                api.held = ctx, ctx.ui
    """)
    async with await place.runner() as runner:
        (old,) = runner.hooks
        api: Any = old.api
        await runner.emit(call_of())
        await place.reload(runner)
        ctx, ui = api.held
        calls: list[Any] = [
            lambda: api.on("session", print),
            lambda: api.intercept("tool.before", lambda given, output: None),
            lambda: api.send("hello"),
            lambda: api.register_tool(object()),
            lambda: api.start_task(anyio.sleep_forever),
            lambda: api.on_unload(print),
            lambda: api.state,
            lambda: ctx.ui,
            lambda: ctx.cwd,
            lambda: ctx.has_ui,
            lambda: ui.notify("hello"),
        ]
        for call in calls:
            with pytest.raises(HookUsageError, match="stale"):
                call()
        with pytest.raises(HookUsageError, match="stale"):
            await ctx.exec("true")
        with pytest.raises(HookUsageError, match="stale"):
            await ui.confirm("Really?")


async def test_a_wrapped_tool_of_an_old_generation_is_stale(place: Place) -> None:
    """A program that wrapped the tools of hooks has to wrap the new ones."""
    place.write("""
        from agent_hooks import ToolOutput

        class Tool:
            name, description, input_schema = "t", "", {}
            async def execute(self, tool_call_id, input, *, on_update=None):
                return ToolOutput("done")
        def register(api):
            api.register_tool(Tool())
    """)
    async with await place.runner() as runner:
        (tool,) = wrap_tools(runner.hooks[0].tools, runner)
        assert await tool.execute("1", {}) == ToolOutput("done")
        await place.reload(runner)
        output = await tool.execute("1", {})
        assert output.is_error
        assert "tool 't' is stale" in output.text
        (tool,) = wrap_tools(runner.hooks[0].tools, runner)
        assert await tool.execute("1", {}) == ToolOutput("done")


async def test_code_of_an_old_generation_imports_nothing(place: Place) -> None:
    """It would find a module of that name elsewhere, or load a newer one."""
    place.write("value = 1", name="_beside.py")
    place.write("""
        def register(api):
            def later():
                import _beside
                return _beside.value
            api.later = later
    """)
    async with await place.runner() as runner:
        api: Any = runner.hooks[0].api
        await place.reload(runner)
        with pytest.raises(ImportError, match="unloaded or loaded again"):
            api.later()
        later: Any = runner.hooks[0].api
        assert later.later() == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_task_that_does_not_stop_is_given_up(place: Place) -> None:
    """A reload waits for it no longer than its deadline."""
    place.write("""
        import anyio
        def register(api):
            async def work():
                while not api.ended:
                    try:
                        await anyio.sleep(0.1)
                    except BaseException:
                        pass
            api.start_task(work)
    """)
    async with await place.runner() as runner:
        await anyio.wait_all_tasks_blocked()
        place.write("def register(api): pass")
        with anyio.fail_after(20):
            await place.reload(runner)
    assert [error.event for error in place.errors] == ["task"]


async def test_a_reload_is_refused_where_it_cannot_work(place: Place) -> None:
    """The new hooks are unloaded, and the old ones judge on."""
    place.write(GATE.format("old"))
    runner = await place.runner()
    with pytest.raises(HookUsageError, match="entered"):
        await place.reload(runner)
    async with runner:
        two = 'def register(api): api.intercept("tool.before", lambda i, o: None, id="one")'
        place.write(two, name="one.py")
        place.write(two, name="two.py")
        with pytest.raises(HookUsageError, match="two interceptors"):
            await place.reload(runner)
        assert await reason(runner) == "old"
    with pytest.raises(HookUsageError, match="left"):
        await place.reload(runner)


async def test_a_handler_cannot_reload_its_own_hooks(place: Place) -> None:
    """It would wait for its own end."""
    async with await place.runner() as runner:

        async def hear(event: SessionEvent, ctx: object) -> None:
            await place.reload(runner)

        await runner.reload([hook_on("session", hear)])
        assert "between calls" in place.errors[0].error


ISOLATED = """
    import os
    ISOLATION = "process"
    def register(api):
        api.state.setdefault("calls", 0)
        @api.on("tool_call", inline=True)
        def judge(event, ctx):
            api.state["calls"] += 1
            return {{"block": True, "reason": f"{} {{api.state['calls']}} {{os.getpid()}}"}}
"""


async def test_an_isolated_hook_is_loaded_again(place: Place) -> None:
    """The old process ends, the state is handed over, and a broken edit keeps the process."""

    async def judged() -> tuple[str, int]:
        text, _, pid = str(await reason(runner)).rpartition(" ")
        return text, int(pid)

    place.write(ISOLATED.format("v0"))
    async with await place.runner() as runner:
        text, pid = await judged()
        assert text == "v0 1"
        for number in range(1, 6):
            place.write(ISOLATED.format(f"v{number}"))
            assert await place.reload(runner) == Reloaded()
            text, new = await judged()
            assert text == f"v{number} {number + 1}"
            assert new != pid
            await gone(pid)
            pid = new
        place.write("ISOLATION = 'process'\n1/0")
        reloaded = await place.reload(runner)
        assert len(reloaded.kept) == 1
        assert await judged() == ("v5 7", pid)
        # From a process of its own into the agent's, and back.
        place.write(ISOLATED.replace('"process"', '"inline"').format("inside"))
        await place.reload(runner)
        assert await judged() == ("inside 8", os.getpid())
        await gone(pid)
        place.write(ISOLATED.format("outside"))
        await place.reload(runner)
        text, pid = await judged()
        assert text == "outside 9"
    await gone(pid)
    assert place.errors == []


LIMITED = """
    import time
    from agent_hooks import Block
    ISOLATION = "process"
    def register(api):
        api.state.setdefault("calls", 0)
        @api.on("tool_call", inline=True)
        def count(event, ctx):
            if api.state["calls"] >= 1:
                return Block("the limit is reached")
            api.state["calls"] += 1
"""
LARGE = """
    ISOLATION = "{}"
    def register(api):
        @api.on("tool_call", inline=True)
        def gate(event, ctx):
            state = api.state
            state.setdefault("large", "x" * 70_000_000)
            state["small"] = state.get("small", 0) + 1
            return {{"block": True, "reason": f"{{state['small']}}"}}
"""


async def test_the_slow_end_of_one_hook_does_not_take_the_state_of_another(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each hook has a time of its own for its `on_unload` functions."""
    monkeypatch.setattr("agent_hooks.runner.background.UNLOAD_TIMEOUT", 0.05)
    place.write(LIMITED, "a.py")
    place.write(
        "import time\ndef register(api):\n    api.on_unload(lambda: None)\n    api.on_unload(lambda: time.sleep(0.3))",
        "b.py",
    )
    async with await place.runner() as runner:
        assert [await reason(runner), await reason(runner)] == [None, "the limit is reached"]
        assert (await place.reload(runner)).messages == []
        assert await reason(runner) == "the limit is reached"


async def test_a_process_that_does_not_unload_in_time_loses_its_state_by_name(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages of the reload name the hook and the loss."""
    monkeypatch.setattr("agent_hooks.runner.processes.UNLOAD_TIMEOUT", 0.2)
    place.write(LIMITED + "        api.on_unload(lambda: time.sleep(60))\n")
    async with await place.runner() as runner:
        assert await reason(runner) is None
        place.write(LIMITED)
        [message] = (await place.reload(runner)).messages
        assert "hook.py: api.state was lost" in message
        assert "did not end its on_unload functions within 0.2 s" in message


async def test_a_process_that_died_before_the_reload_loses_its_state_by_name(place: Place) -> None:
    """The messages say so whether or not the process has started again; the next reload has nothing to say."""
    place.write(LIMITED)
    async with await place.runner() as runner:
        assert await reason(runner) is None
        process = runner.hooks[0].process
        assert process is not None
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        [message] = (await place.reload(runner)).messages
        assert "hook.py: " in message
        assert "lost" in message
        assert (await place.reload(runner)).messages == []


async def test_a_value_that_is_too_large_for_another_process_is_left_out_by_name(place: Place) -> None:
    """Into a process, from one process to the next, and out of it; the small value beside it is handed over."""
    place.write(LARGE.format("inline"))
    async with await place.runner() as runner:
        assert await reason(runner) == "1"
        for number, mode in enumerate(("process", "process", "inline"), 2):
            place.write(LARGE.format(mode))
            [message] = (await place.reload(runner)).messages
            assert "hook.py: api.state['large'] was left out" in message
            assert "bytes" in message
            assert await reason(runner) == str(number)


@pytest.mark.parametrize("step", ["serve", "_let_begin"])
async def test_a_process_that_cannot_be_served_after_the_swap_blocks_and_ends_nothing(
    step: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate of that hook says the failure, the other hooks are in force, and the next reload mends it."""

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no memory is left")

    place.write(LIMITED.replace('"process"', '"inline"'))
    async with await place.runner() as runner:
        place.write(LIMITED)
        with monkeypatch.context() as patch:
            patch.setattr(HookProcess, step, fail)
            await place.reload(runner)
            text = await reason(runner)
        assert text is not None
        assert "its process is not served: MemoryError: no memory is left; load the hook again" in text
        assert "no memory is left" in place.errors[0].error
        await place.reload(runner)
        assert await reason(runner) is None


def hook_modules() -> list[str]:
    """Return the names of the modules of hooks."""
    return [name for name in sys.modules if is_hook_module(name)]


async def test_no_call_passes_while_hooks_are_loaded_again(place: Place) -> None:
    """Ten tasks call a tool that every generation blocks; a gate may wait, run in a thread, or leave at its end."""
    text = """
        import anyio
        def register(api):
            closed = []
            api.on_unload(lambda: closed.append(1))
            async def judge(event, ctx):
                await anyio.sleep(0)
                assert not closed
                return {"block": True, "reason": "no"}
            def judge_in_thread(event, ctx):
                return {"block": True, "reason": "no"}
            @api.on("session")
            async def hear(event, ctx):
                if event.reason == "shutdown":
                    undo()
                    await anyio.sleep(0.01)
            undo = api.on("tool_call", KIND)
    """
    place.write(text.replace("KIND", "judge"))
    tool = EchoTool()
    over = anyio.Event()
    blocked = 0

    async def call() -> None:
        nonlocal blocked
        while not over.is_set():
            output = await wrapped.execute("1", {"command": "ls"})
            assert output.is_error, output.text
            blocked += 1

    async with await place.runner() as runner, anyio.create_task_group() as tasks:
        wrapped = wrap_tool(tool, runner)
        for _ in range(10):
            tasks.start_soon(call)
        for number in range(20):
            place.write(text.replace("KIND", ("judge", "judge_in_thread")[number % 2]))
            await place.reload(runner)
            await anyio.sleep(0.01)
        over.set()
    assert tool.inputs == []
    assert blocked > 20


async def test_a_reload_that_is_cancelled_leaves_the_old_generation_whole(place: Place) -> None:
    """Its loading may take long; the next one works."""
    place.write(GATE.format("old"))
    async with await place.runner() as runner:
        place.write("import anyio\nasync def register(api): await anyio.sleep_forever()")
        modules = hook_modules()
        with anyio.move_on_after(0.1):
            await place.reload(runner)
        assert await reason(runner) == "old"
        assert hook_modules() == modules
        place.write(GATE.format("new"))
        await place.reload(runner)
        assert await reason(runner) == "new"


BUSY = """
    import anyio
    from _beside import words

    def register(api):
        api.state.setdefault("count", 0)
        @api.on("tool_call")
        def judge(event, ctx):
            api.state["count"] += 1
            api.kept = event, ctx
            return {{"block": True, "reason": f"{0} {{words[0]}} {{api.state['count']}}"}}
        @api.on("session")
        async def hear(event, ctx):
            await anyio.sleep(0)
        async def work():
            with open(__file__):
                await anyio.sleep_forever()
        api.start_task(work)
        api.intercept("tool.before", lambda given, output: None, id="one")
        api.on_unload(lambda: None)
"""


def of_hooks() -> dict[str, int]:
    """Return the number of objects, modules, threads and descriptors that hooks may leave behind."""
    if sniffio.current_async_library() == "asyncio":
        # asyncio keeps the contexts of cancelled timers until their time, or until there are a hundred.
        forget_cancelled_timers()
    gc.collect()
    kinds = (HookAPI, LoadedHook, Handler, Dispatch)
    found = {kind.__name__: sum(isinstance(each, kind) for each in gc.get_objects()) for kind in kinds}
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return {
        **found,
        "objects": len(gc.get_objects()),
        "modules": len(sys.modules),
        # The threads of handlers wait for the next call, and end by themselves.
        "threads": sum("handler" not in each.name for each in threading.enumerate()),
        "descriptors": descriptors,
    }


def resident() -> int:
    """Return the memory of this process in KiB."""
    text = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")))


async def reload_often(place: Place, times: int) -> tuple[dict[str, int], dict[str, int]]:
    """Reload edited hooks so many times; return the numbers of objects after the first ones and at the end."""
    before: dict[str, int] = {}
    place.write("words = ['a']", name="_beside.py")
    place.write(BUSY.format(0))
    async with await place.runner() as runner:
        for number in range(times):
            place.write(f"words = ['{number}' * 1000]", name="_beside.py")
            # Every tenth edit is broken.
            place.write(BUSY.format(number) if number % 10 else "1/0")
            await place.reload(runner)
            assert str(await reason(runner)).endswith(f" {number + 1}")
            if number == 19:
                before = of_hooks()
        after = of_hooks()
    assert place.errors == []
    return before, after


def flat(before: dict[str, int], after: dict[str, int]) -> None:
    """Require that the numbers have not grown; some objects of the interpreter come and go."""
    objects = after["objects"] - before["objects"]
    assert objects < 0.02 * before["objects"], (before, after)
    # The last dispatch of a task stays until the next one, and an idle thread of trio for ten seconds.
    some = {"objects": objects, "Handler": 2, "Dispatch": 2, "threads": 2}
    assert {name: number for name, number in after.items() if number > before[name] + some.get(name, 0)} == {}


@pytest.mark.slow
async def test_reloads_leave_nothing_behind(place: Place) -> None:
    """The edits, a tenth of them broken, leave memory, threads, descriptors and modules flat."""
    flat(*await reload_often(place, 60))


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_thousand_reloads_leave_nothing_behind(place: Place) -> None:
    """The memory of the process is flat too."""
    await reload_often(place, 200)
    before = resident()
    flat(*await reload_often(place, 1000))
    grown = resident() - before
    print(f"1,000 reloads: {before} KiB, {grown:+} KiB")
    assert grown < 0.05 * before, f"{before} KiB and {grown} KiB more"
