"""A call of a process that is cancelled, that is not heard, or that waits for the start of its process."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import anyio
import pytest

from agent_hooks import AgentStart, BeforeToolCall, Block, HookRunner, Rewrite, SilentUI
from agent_hooks.isolation.protocol import Registrations
from isolation.isolating import Started, load, running, telling, until_told
from support import PATIENCE, call_of, gone, on_asyncio

THREADS = """
import time
from agent_hooks import Block, Rewrite
def register(api):
    @api.on("before_tool_call")
    def rewriter(event, ctx):
        if event.params["command"] == "wait":
            HANG
        return Rewrite({"command": "rewritten"})
    @api.on("tool_call")
    def gate(event, ctx):
        if event.input["command"] == "wait":
            HANG
        return Block("judged")
"""
HANGS = {"sleep": "time.sleep(600)", "from_thread": "import anyio.from_thread; anyio.from_thread.run(anyio.sleep, 600)"}
SLOW_START = """
import time
from agent_hooks import Block
def register(api):
    time.sleep({})
    api.on("tool_call", judge)
async def judge(event, ctx):
    return Block("judged")
"""


async def kill_and_notice(started: Started) -> None:
    """Kill the process, and wait until the agent has noticed its end."""
    pid = started.pid
    os.kill(pid, signal.SIGKILL)
    while started.process.pid == pid:
        await anyio.sleep(0.005)


def before(command: str) -> BeforeToolCall:
    """Return an event of a rewriter, which has no deadline."""
    return BeforeToolCall(tool_name="bash", tool_call_id="1", params={"command": command})


@pytest.mark.parametrize("hang", HANGS)
async def test_a_thread_that_goes_on_after_its_cancellation_is_killed_with_its_process(
    hang: str, tmp_path: Path
) -> None:
    """The program cancels the call of a rewriter; the next call is judged by a new process."""
    async with running(tmp_path, THREADS.replace("HANG", HANGS[hang])) as started:
        pid = started.pid
        begun = time.monotonic()
        with anyio.move_on_after(0.5) as scope:
            await started.emit(before("wait"))
        assert scope.cancelled_caught
        assert time.monotonic() - begun < 10
        if hang == "sleep":
            await gone(pid)
        assert await started.emit(before("ls")) == Rewrite({"command": "rewritten"}, by=("hook.py",))


async def test_a_thread_that_goes_on_after_its_deadline_is_killed_with_its_process(tmp_path: Path) -> None:
    """The gate is asked again at the next call, by a new process."""
    source = THREADS.replace("HANG", HANGS["sleep"])
    async with running(tmp_path, source, tool_call_timeout=0.3) as started:
        pid = started.pid
        answer = await started.block_of(call_of("wait"))
        assert answer.cause == "timed_out"
        await gone(pid)
        started.runner.engine.limits["tool_call_timeout"] = None
        answer = await started.block_of(call_of("ls"))
        assert answer.reason == "judged"


@on_asyncio
async def test_a_process_that_cannot_hear_of_calls_any_more_is_started_again(tmp_path: Path) -> None:
    """A handler has removed the readers of the event loop, and its own call fails."""
    source = """
    import asyncio
    from agent_hooks import Rewrite
    def register(api):
        @api.on("before_tool_call")
        async def rewriter(event, ctx):
            if event.params["command"] == "remove":
                for fd in range(256):
                    asyncio.get_running_loop().remove_reader(fd)
            return Rewrite({"command": "rewritten"})
    """
    async with running(tmp_path, source) as started:
        answer = await started.block_of(before("remove"))
        assert "removed the readers of its event loop" in answer.reason
        assert await started.emit(before("ls")) == Rewrite({"command": "rewritten"}, by=("hook.py",))


async def test_the_clock_of_a_handler_stands_while_its_process_starts(tmp_path: Path) -> None:
    """The start takes longer than the deadline of the handler, and the call is judged."""
    async with running(tmp_path, SLOW_START.format(1.0), tool_call_timeout=0.5) as started:
        await kill_and_notice(started)
        answer = await started.block_of(call_of("ls"))
        assert answer.reason == "judged"


async def test_a_start_that_takes_too_long_fails_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start goes on, and a later call is judged."""
    monkeypatch.setattr("agent_hooks.isolation.process.START_PATIENCE", 0.3)
    async with running(tmp_path, SLOW_START.format(1.5)) as started:
        await kill_and_notice(started)
        answer = await started.block_of(call_of("ls"))
        assert "did not start within 0.3 s" in answer.reason
        while answer.reason != "judged":
            answer = await started.block_of(call_of("ls"))


async def test_a_call_of_a_process_that_is_not_served_any_more_ends_at_once(tmp_path: Path) -> None:
    """So leaving the runner does not wait for an answer that cannot come."""
    source = telling("""
        def register(api):
            @api.on("before_tool_call")
            async def rewriter(event, ctx):
                tell("begun")
                await anyio.sleep_forever()
    """)
    async with running(tmp_path, source) as started:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(started.emit, before("ls"))
            await until_told(tmp_path, "begun")
            await started.runner.engine.processes.end_those_of(started.runner.hooks)
        assert "the agent has ended it" in started.texts[0]


async def test_a_cancellation_that_comes_together_with_its_call_is_heard(tmp_path: Path) -> None:
    """The process was busy, so it reads both at once; the handler ends, and the process goes on."""
    source = """
    import time, anyio
    from agent_hooks import Block
    def register(api):
        @api.on("before_tool_call")
        async def wait(event, ctx):
            await anyio.sleep_forever()
        @api.on("agent_start", inline=True)
        def busy(event, ctx):
            time.sleep(0.5)
        @api.on("tool_call")
        async def judge(event, ctx):
            return Block("judged")
    """
    async with running(tmp_path, source) as started:
        pid = started.pid
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(started.emit, AgentStart())
            await anyio.wait_all_tasks_blocked()
            with anyio.move_on_after(0.1) as scope:
                await started.emit(before("ls"))
            assert scope.cancelled_caught
        answer = await started.emit(call_of("ls"))
        assert isinstance(answer, Block)
        assert answer.reason == "judged"
        assert started.pid == pid


class WaitingUI(SilentUI):
    """Never answers; `open` is the number of dialogs that are open."""

    open = 0

    async def confirm(self, title: str, message: str) -> bool:
        """Wait until cancelled."""
        self.open += 1
        try:
            await anyio.sleep_forever()
        finally:
            self.open -= 1
        return False

    async def are(self, count: int) -> None:
        """Wait until so many dialogs are open."""
        with anyio.fail_after(PATIENCE):
            while self.open != count:
                await anyio.sleep(0.01)


LATE = """
import anyio
def register(api):
    held = []
    @api.on("tool_call")
    async def keep(event, ctx):
        held.append(ctx)
    async def ask():
        while not held:
            await anyio.sleep(0.01)
        with anyio.move_on_after(LIMIT):
            await held[0].ui.confirm("Really?", "")
    api.start_task(ask)
"""


async def test_a_dialog_of_a_background_task_closes_when_the_task_gives_it_up(tmp_path: Path) -> None:
    """The person is not asked any longer than the hook waits."""
    ui = WaitingUI()
    async with running(tmp_path, LATE.replace("LIMIT", "0.5"), ui=ui) as started:
        await started.emit(call_of("ls"))
        await ui.are(1)
        await ui.are(0)


async def test_a_dialog_of_a_background_task_closes_when_its_process_ends(tmp_path: Path) -> None:
    """An answer would have no reader."""
    ui = WaitingUI()
    async with running(tmp_path, LATE.replace("LIMIT", "600"), ui=ui) as started:
        await started.emit(call_of("ls"))
        await ui.are(1)
        os.kill(started.pid, signal.SIGKILL)
        await ui.are(0)


async def test_a_message_of_a_run_that_was_killed_drops_no_gate(tmp_path: Path) -> None:
    """A gate of the former run stays, although the next run, which began meanwhile, does not have it."""
    source = """
    from agent_hooks import Block
    def register(api):
        @api.on("tool_call", inline=True)
        def first(event, ctx):
            if event.input["command"] == "more":
                api.on("tool_call", later, inline=True)
    def later(event, ctx):
        return Block("later")
    """
    async with running(tmp_path, source) as started:
        process, engine = started.process, started.runner.engine
        await started.emit(call_of("more"))
        former = process._running
        assert former is not None
        stale = Registrations([], [], [])
        former.kill("")
        with anyio.fail_after(PATIENCE):
            while process.pid is None:
                await anyio.sleep(0.01)
            answer = await started.emit(call_of("ls"))
        assert isinstance(answer, Block)
        assert "earlier run" in answer.reason
        before = list(engine.handlers())
        process._incoming.take(former, stale)
        assert list(engine.handlers()) == before


async def test_a_cancelled_load_ends_the_processes_that_it_has_started(tmp_path: Path) -> None:
    """The first hook is loaded, and the second one hangs."""
    mark = tmp_path / "pid"
    first = f"""
    import os, pathlib
    def register(api):
        pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))
    """
    second = """
    import anyio
    async def register(api):
        await anyio.sleep_forever()
    """
    failures: list[BaseException] = []
    async with anyio.create_task_group() as tasks:

        async def loading() -> None:
            try:
                await load(tmp_path, first, second)
            except BaseException as exc:
                # The traceback keeps everything that the load has made.
                failures.append(exc)
                raise

        tasks.start_soon(loading)
        with anyio.fail_after(PATIENCE):
            while not mark.exists() or not mark.read_text():
                await anyio.sleep(0.01)
            await anyio.sleep(0.3)
        tasks.cancel_scope.cancel()
    await gone(int(mark.read_text()))


async def test_a_runner_that_is_cancelled_while_it_is_entered_ends_its_processes(tmp_path: Path) -> None:
    """Its `__aexit__` is never called then."""
    loaded = await load(tmp_path, "def register(api): pass")
    (hook,) = loaded.hooks
    assert hook.process is not None
    pid = hook.process.pid
    assert pid is not None
    runner = HookRunner(loaded, cwd=tmp_path)
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with runner:
            pytest.fail("the runner was entered")
    await gone(pid)
