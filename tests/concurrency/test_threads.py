"""A plain `def` handler runs in a thread: the calls that it may make there, and threads that do not end."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from queue import Empty
from textwrap import dedent
from typing import Any

import anyio
import pytest
from anyio import from_thread
from anyio.lowlevel import checkpoint

from agent_hooks import AfterToolCall, AgentEnd, AgentStart, Ask, Block, HookAPI, HookContext, ToolCall
from agent_hooks.concurrency import threads as threads_module
from agent_hooks.concurrency.threads import MOST_IDLE, ThreadCall
from agent_hooks.dispatch import handlers
from agent_hooks.testing import ScriptedUI, StepClock
from support import PATIENCE, call_of, hook_of, hook_on, runner_of

SHORT = 0.02


async def test_a_plain_function_runs_in_a_thread_and_its_answer_counts() -> None:
    """`inline=True` keeps it on the event loop."""
    threads: list[threading.Thread] = []

    def gate(event: object, ctx: HookContext) -> Block:
        threads.append(threading.current_thread())
        return Block("no")

    for inline in (False, True):
        runner, errors = runner_of(hook_on("tool_call", gate, inline=inline))
        assert await runner.emit(call_of()) == Block("no", by="hook.py")
        assert not errors
    assert [thread is threading.main_thread() for thread in threads] == [False, True]
    assert threads[0].daemon


async def test_a_sleeping_thread_freezes_nothing_and_its_late_answer_is_ignored() -> None:
    """The loop goes on, the deadline holds, the next handler runs."""
    seen: list[str] = []
    wake, woken = threading.Event(), threading.Event()

    def sleepy(event: object, ctx: HookContext) -> Block:
        wake.wait(PATIENCE)
        woken.set()
        return Block("too late")

    async def next_one(event: object, ctx: HookContext) -> None:
        seen.append("next")

    runner, errors = runner_of(hook_on("tool_call", sleepy, next_one, on_error="continue"), tool_call_timeout=SHORT)
    async with anyio.create_task_group() as tasks:

        async def tick() -> None:
            while not seen:
                seen.append("the loop is alive")

        tasks.start_soon(tick)
        assert await runner.emit(call_of()) is None
    assert seen == ["the loop is alive", "next"]
    assert [error.error for error in errors] == [f"timed out after {SHORT:g} s"]
    wake.set()
    woken.wait(PATIENCE)
    await checkpoint()
    assert len(errors) == 1


async def test_what_an_abandoned_thread_forgets_to_await_is_not_held_against_the_next_handler() -> None:
    """The next handler has a context of its own."""
    go, done = threading.Event(), threading.Event()

    def sleepy(event: object, ctx: HookContext) -> None:
        go.wait(PATIENCE)
        ctx.ui.confirm("dropped")
        done.set()

    async def next_one(event: object, ctx: HookContext) -> None:
        go.set()
        while not done.is_set():
            await anyio.sleep(0.001)

    runner, errors = runner_of(hook_on("agent_start", sleepy, next_one), timeout=5)
    clock = StepClock(runner)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        await clock.advance(6)
    assert [error.error for error in errors] == ["timed out after 5 s"]


async def test_a_handler_that_still_runs_is_not_called_again_until_it_ends() -> None:
    """On a gate that is a failure, so it blocks; a dispatch that runs beside it changes nothing about that."""
    wake = threading.Event()
    begun: list[str] = []

    def sleepy(event: object, ctx: HookContext) -> None:
        begun.append("call")
        if len(begun) == 1:
            wake.wait(PATIENCE)

    runner, errors = runner_of(hook_on("tool_call", sleepy), tool_call_timeout=SHORT)
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert verdict.cause == "timed_out"
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert "still running from an earlier event" in verdict.reason
    assert len(begun) == 1
    wake.set()
    with anyio.fail_after(PATIENCE):
        while await runner.emit(call_of()) is not None:
            await anyio.sleep(0.001)
    assert len(begun) >= 2
    assert errors


async def test_a_call_that_ends_does_not_hide_another_that_was_given_up() -> None:
    """Two results at once may run the same handler twice; the one left behind still counts."""
    events = [threading.Event(), threading.Event()]
    begun: list[int] = []
    scopes = [anyio.CancelScope(), anyio.CancelScope()]

    def sleepy(event: AfterToolCall, ctx: HookContext) -> None:
        begun.append(int(event.tool_name))
        events[int(event.tool_name)].wait(PATIENCE)

    async def emit(number: int) -> None:
        with scopes[number]:
            await runner.emit(AfterToolCall(tool_name=str(number), params={}))

    runner, errors = runner_of(hook_on("after_tool_call", sleepy), timeout=None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(emit, 0)
        tasks.start_soon(emit, 1)
        while len(begun) < 2:
            await checkpoint()
        scopes[0].cancel()
        await checkpoint()
        events[1].set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AfterToolCall(tool_name="1", params={}))
        await anyio.sleep(SHORT)
        assert len(begun) == 2
        events[0].set()
    assert begun[2:] == [1]
    assert not errors


async def abort(begun: list[Any], function: Callable[..., Coroutine[Any, Any, object]], *args: object) -> None:
    """Call a function whose thread adds to `begun`, and cancel the call then."""
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(function, *args)
            while not begun:
                await checkpoint()
            tasks.cancel_scope.cancel()


async def test_a_gate_that_was_aborted_judges_the_next_call_when_its_thread_has_ended() -> None:
    """The abort is no failure of the hook: no listener hears of it, and the next call waits."""
    wake = threading.Event()
    begun: list[str] = []

    def gate(event: ToolCall, ctx: HookContext) -> Block:
        begun.append(event.input["command"])
        wake.wait(PATIENCE)
        return Block(f"no {event.input['command']}")

    runner, errors = runner_of(hook_on("tool_call", gate))
    verdicts: list[Any] = []

    async def judge(command: str) -> None:
        verdicts.append(await runner.emit(call_of(command)))

    await abort(begun, judge, "first")
    async with anyio.create_task_group() as turn:
        turn.start_soon(judge, "second")
        turn.start_soon(judge, "third")
        await anyio.sleep(SHORT)
        assert (begun, verdicts) == (["first"], [])
        wake.set()
    # trio starts the two in any order.
    assert sorted(begun) == ["first", "second", "third"]
    assert [verdict.reason for verdict in verdicts] == [f"no {command}" for command in begun[1:]]
    assert not errors


async def test_the_wait_for_an_aborted_thread_is_the_next_calls_own_time() -> None:
    """Its deadline ends the wait; the gate has failed then, and blocks at once from there on."""
    wake = threading.Event()
    begun: list[object] = []

    def gate(event: ToolCall, ctx: HookContext) -> None:
        begun.append(event)
        wake.wait(PATIENCE)

    runner, _ = runner_of(hook_on("tool_call", gate), tool_call_timeout=SHORT * 5)
    await abort(begun, runner.emit, call_of())
    verdicts = [await runner.emit(call_of()) for _ in "ab"]
    assert [verdict.cause for verdict in verdicts if isinstance(verdict, Block)] == ["timed_out", "failed"]
    assert len(begun) == 1
    wake.set()


async def test_a_thread_that_never_ends_after_an_abort_blocks_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate has no deadline by default, and the next call does not wait for ever."""
    monkeypatch.setattr(handlers, "THREAD_PATIENCE", SHORT)
    wake = threading.Event()
    begun: list[object] = []

    def gate(event: ToolCall, ctx: HookContext) -> None:
        begun.append(event)
        wake.wait(PATIENCE)

    runner, _ = runner_of(hook_on("tool_call", gate))
    await abort(begun, runner.emit, call_of())
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert "is still running from an event that was aborted more than 0.02 s ago" in verdict.reason
    wake.set()


async def test_a_call_that_has_not_begun_is_not_running() -> None:
    """A thread that could not be started must not count as one that never ends."""
    assert not ThreadCall(lambda: None).running


async def test_a_keyboard_interrupt_raised_in_a_thread_is_the_handlers_failure() -> None:
    """Ctrl-C never arrives in a thread; a handler that raises it must not end the program."""

    def gate(event: object, ctx: HookContext) -> None:
        raise KeyboardInterrupt

    runner, _ = runner_of(hook_on("tool_call", gate))
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert "KeyboardInterrupt" in verdict.reason


async def test_a_plain_handler_reaches_a_dialog_through_from_thread() -> None:
    """`anyio.from_thread.run(ctx.ui.confirm, ...)`, and the clock stands meanwhile."""

    async def late(asked: object) -> bool:
        clock.skip(600)
        await checkpoint()
        return True

    def gate(event: object, ctx: HookContext) -> Block | None:
        return None if from_thread.run(ctx.ui.confirm, "Sure?", "really") else Block()

    ui = ScriptedUI(late)
    runner, errors = runner_of(hook_on("tool_call", gate), ui=ui, tool_call_timeout=30)
    clock = StepClock(runner)
    assert await runner.emit(call_of()) is None
    assert not errors
    assert ui.asked[0].title == "Sure?"


async def test_a_plain_handler_emits_through_from_thread() -> None:
    """The emit is known as nested, so that it does not wait for the lane its own dispatch holds."""
    seen: list[str] = []

    def outer(event: object, ctx: HookContext) -> None:
        from_thread.run(runner.emit, AgentEnd())
        seen.append("outer")

    runner, errors = runner_of(
        hook_on("agent_start", outer), hook_on("agent_end", lambda event, ctx: seen.append("inner"))
    )
    with anyio.fail_after(PATIENCE):
        await runner.emit(AgentStart())
    assert seen == ["inner", "outer"]
    assert not errors


async def test_a_plain_handler_may_run_an_event_loop_of_its_own() -> None:
    """Nothing in its thread says that one runs already."""

    async def work() -> str:
        await checkpoint()
        return "worked"

    seen: list[str] = []

    def handler(event: object, ctx: HookContext) -> None:
        seen.append(anyio.run(work))

    runner, errors = runner_of(hook_on("agent_start", handler))
    await runner.emit(AgentStart())
    assert (seen, errors) == (["worked"], [])


async def test_a_plain_handler_may_start_a_task() -> None:
    """`api.start_task` reaches the event loop by itself."""
    done = anyio.Event()

    async def task() -> None:
        done.set()

    def register(api: HookAPI) -> None:
        api.on("agent_start", lambda event, ctx: api.start_task(task))

    runner, errors = runner_of(hook_of(register))
    with anyio.fail_after(PATIENCE):
        async with runner:
            await runner.emit(AgentStart())
            await done.wait()
    assert not errors


@pytest.mark.parametrize("late", [False, True])
async def test_a_dialog_that_a_thread_waits_for_ends_when_the_thread_is_given_up(late: bool) -> None:
    """An aborted call asks no person, whether its dialog is open already or opens later."""
    seen: list[str] = []
    began, ended, go = anyio.Event(), threading.Event(), threading.Event()

    async def forever(asked: object) -> bool:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("dialog cancelled")
        return True

    def gate(event: object, ctx: HookContext) -> Block | Ask | None:
        try:
            if late:
                from_thread.run_sync(began.set)
                go.wait(PATIENCE)
            from_thread.run(ctx.ui.confirm, "Sure?")
        except BaseException as exc:
            # Each exception frees the thread.
            seen.append(type(exc).__name__)
        finally:
            ended.set()
        return None

    runner, errors = runner_of(hook_on("tool_call", gate), ui=ScriptedUI(forever))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, call_of())
        await began.wait()
        tasks.cancel_scope.cancel()
    go.set()
    with anyio.fail_after(PATIENCE):
        while not ended.is_set():
            await anyio.sleep(0.001)
    assert seen == ["dialog cancelled", "RuntimeError"]
    assert not errors


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_process_can_end_while_an_abandoned_thread_sleeps(backend: str) -> None:
    """A hook in `time.sleep` must not keep the agent from quitting."""
    program = f"""
        import anyio, time
        from agent_hooks import AgentStart, HookAPI, HookRunner, LoadedHook

        async def main():
            api = HookAPI("hook.py")
            api.on("agent_start", lambda event, ctx: time.sleep(1000))
            hook = LoadedHook("hook.py", "hook.py", "hook", api)
            async with HookRunner([hook], cwd=".", timeout=0.05) as runner:
                await runner.emit(AgentStart())
            print("over")

        anyio.run(main, backend={backend!r})
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "over\n")
    assert "timed out after 0.05 s" in done.stderr


def test_a_thread_that_ends_after_its_event_loop_ends_quietly(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event loop is left that could take the result."""
    monkeypatch.setattr(threads_module, "IDLE_TIME", 0)
    wake = threading.Event()
    threads: list[threading.Thread] = []

    def handler(event: object, ctx: HookContext) -> None:
        threads.append(threading.current_thread())
        wake.wait(PATIENCE)

    async def main() -> None:
        runner, _ = runner_of(hook_on("agent_start", handler), timeout=SHORT)
        await runner.emit(AgentStart())

    for backend in ("asyncio", "trio"):
        wake.clear()
        anyio.run(main, backend=backend)
        wake.set()
        threads[-1].join(PATIENCE)
        assert not threads[-1].is_alive()
    assert capfd.readouterr().err == ""


# ---- threads that are used again -------------------------------------------------------------------------------------


@pytest.fixture
def no_idle() -> Iterator[list[Any]]:
    """Give the list of waiting threads, in which none waits that another test began."""
    kept = threads_module._idle.copy()
    threads_module._idle.clear()
    yield threads_module._idle
    threads_module._idle.extend(kept)


async def test_one_thread_works_for_one_call_after_another(no_idle: list[Any]) -> None:
    """Each call in a context of its own, and with its own event loop to reach."""
    place = ContextVar("place", default="nowhere")

    def work(name: str) -> tuple[threading.Thread, str, int]:
        before = place.get()
        place.set(name)
        return threading.current_thread(), before, from_thread.run_sync(threading.get_ident)

    here = threading.get_ident()
    first = await ThreadCall(work, "first").result()
    second = await ThreadCall(work, "second").result()
    assert first == (second[0], "nowhere", here)
    assert second[1:] == ("nowhere", here)
    assert no_idle == [first[0]]


async def test_a_thread_that_was_given_up_is_used_again_when_it_has_ended_its_call(no_idle: list[Any]) -> None:
    """Until then another one works."""
    go = threading.Event()
    began: list[threading.Thread] = []

    def stuck() -> None:
        began.append(threading.current_thread())
        go.wait(PATIENCE)

    call = ThreadCall(stuck)
    await abort(began, call.result)
    ran_on = call.running
    other = await ThreadCall(threading.current_thread).result()
    assert other is not began[0]
    go.set()
    with anyio.fail_after(PATIENCE):
        while len(no_idle) < 2:
            await anyio.sleep(0.001)
    assert (ran_on, call.running) == (True, False)
    assert await ThreadCall(threading.current_thread).result() is began[0]


async def test_what_a_function_returned_is_not_kept_by_its_thread(no_idle: list[Any]) -> None:
    """The thread does not keep the arguments either."""

    class Big:
        pass

    given = Big()
    kept = [weakref.ref(given), weakref.ref(await ThreadCall(lambda big: Big(), given).result())]
    del given
    with anyio.fail_after(PATIENCE):
        while [ref() for ref in kept] != [None, None]:
            gc.collect()
            await anyio.sleep(0.001)
    assert len(no_idle) == 1


async def test_as_many_threads_work_as_are_called_and_only_some_wait_afterwards(no_idle: list[Any]) -> None:
    """No call waits for another one's thread: they may wait for each other."""
    count = MOST_IDLE + 3
    barrier = threading.Barrier(count)
    found: list[threading.Thread] = []

    def meet() -> None:
        barrier.wait(PATIENCE)
        found.append(threading.current_thread())

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(ThreadCall(meet).result)
    assert len(set(found)) == count
    with anyio.fail_after(PATIENCE):
        while not 1 <= len(no_idle) <= MOST_IDLE:
            await anyio.sleep(0.001)


async def test_a_thread_that_nobody_needs_ends(no_idle: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next call starts another one."""
    monkeypatch.setattr(threads_module, "IDLE_TIME", 0.001)
    thread = await ThreadCall(threading.current_thread).result()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert no_idle == []
    assert await ThreadCall(threading.current_thread).result() is not thread


async def test_a_thread_that_is_taken_as_its_time_is_up_does_its_call(no_idle: list[Any]) -> None:
    """The call is on its way, and must not be lost."""

    class Calls:
        def get(self, timeout: float | None = None) -> str:
            if timeout is not None:
                raise Empty
            return "the call"

    thread: Any = threads_module._HandlerThread(ThreadCall(int))
    thread.calls = Calls()
    assert thread._next() == "the call"
    no_idle.append(thread)
    assert thread._next() is None
    assert no_idle == []


def test_event_loops_in_several_threads_share_the_waiting_threads(no_idle: list[Any]) -> None:
    """asyncio and trio at once; each function reaches the loop that called it."""
    wrong: list[object] = []

    async def calls() -> None:
        for _ in range(200):
            if await ThreadCall(from_thread.run_sync, threading.get_ident).result() != threading.get_ident():
                wrong.append("loop")

    loops = [
        threading.Thread(target=anyio.run, args=[calls], kwargs={"backend": backend})
        for backend in ("asyncio", "trio") * 2
    ]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(PATIENCE)
        assert not loop.is_alive()
    assert wrong == []


def test_a_forked_process_does_not_wait_for_threads_that_it_has_not() -> None:
    """They are its parent's."""
    program = """
        import os, anyio
        from agent_hooks.concurrency.threads import ThreadCall

        async def main():
            with anyio.fail_after(60):
                return await ThreadCall(os.getpid).result()

        assert anyio.run(main) == os.getpid()
        child = os.fork()
        if not child:
            os._exit(0 if anyio.run(main) == os.getpid() else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", dedent(program)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
