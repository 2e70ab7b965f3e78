"""Clocks, timers and watches, one by one; `test_deadlines` tests them together."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import anyio
import pytest
import sniffio
import trio
import trio.testing
from anyio.lowlevel import checkpoint

from agent_hooks import AgentEnd, AgentStart, Ask, HookContext, HookUsageError, wrap_tool
from agent_hooks.concurrency import deadlines
from agent_hooks.concurrency.deadlines import StillClock, call_soon, cancelled_class, clock_type
from agent_hooks.concurrency.deadlines.asyncio import AsyncioClock, LoopTimer, loop_timer
from agent_hooks.concurrency.deadlines.base import KICK, NoWatch, cancellation_in
from agent_hooks.concurrency.deadlines.trio import TrioClock, scope_timer
from agent_hooks.dispatch.loop import current_dispatch
from agent_hooks.testing import ScriptedUI, StepClock
from support import PATIENCE, EchoTool, call_of, everywhere, hook_on, on_asyncio, runner_of

on_trio = pytest.mark.parametrize("anyio_backend", ["trio"])
MOCKED = [("trio", {"clock": trio.testing.MockClock(autojump_threshold=0.01)})]


def driven(coroutine: Any) -> Any:
    """Run a coroutine that never suspends, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for an event loop")


class Suspension:
    """An awaitable that suspends once."""

    def __await__(self) -> Any:
        yield


# ---- the backend -----------------------------------------------------------------------------------------------------


@everywhere
async def test_the_backend_of_the_running_task_is_found() -> None:
    """The clock, the class of a cancellation, and the function that calls another one soon."""
    on_trio = sniffio.current_async_library() == "trio"
    assert clock_type() is (TrioClock if on_trio else AsyncioClock)
    assert cancelled_class() is (trio.Cancelled if on_trio else asyncio.CancelledError)
    assert (deadlines.in_trio_task(), deadlines.in_asyncio_task()) == (on_trio, not on_trio)
    called = anyio.Event()
    soon = call_soon()
    assert soon is not None
    soon(called.set)
    with anyio.fail_after(PATIENCE):
        await called.wait()


def test_without_an_event_loop_no_backend_is_found() -> None:
    """Nothing can be cancelled there."""
    assert clock_type() is StillClock
    assert cancelled_class() == ()
    assert call_soon() is None
    assert not deadlines.in_trio_task()
    assert not deadlines.in_asyncio_task()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_backend_is_not_imported_to_find_out_that_it_does_not_run(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import of a backend takes longer than many a hook."""
    in_task = {"asyncio": deadlines.in_asyncio_task, "trio": deadlines.in_trio_task}[backend]
    monkeypatch.delitem(sys.modules, backend)
    assert not in_task()
    assert backend not in sys.modules


def test_without_any_backend_there_is_no_class_of_a_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    """anyio is not imported for it either."""
    for module in ("asyncio", "trio", "anyio"):
        monkeypatch.delitem(sys.modules, module)
    assert cancelled_class() == ()
    assert "anyio" not in sys.modules


# ---- without an event loop -------------------------------------------------------------------------------------------


def test_a_handler_that_waits_without_an_event_loop_is_refused() -> None:
    """The error text says that no event loop runs."""

    async def wait(event: object, ctx: HookContext) -> None:
        await Suspension()

    runner, _ = runner_of(hook_on("agent_start", wait))
    with pytest.raises(HookUsageError, match="a handler waits for something, and no event loop runs here"):
        driven(runner.emit(AgentStart()))


def test_a_handler_that_fails_after_a_dialog_without_an_event_loop_is_reported() -> None:
    """The clock that the dialog made takes no failure for a cancellation."""
    calls: list[object] = []

    async def fail(event: object, ctx: HookContext) -> None:
        calls.append(await ctx.ui.confirm("?"))
        raise ValueError("boom")

    async def ask(event: object, ctx: HookContext) -> None:
        calls.append(await ctx.ui.confirm("?"))

    runner, errors = runner_of(hook_on("agent_start", fail, ask), ui=ScriptedUI(True, False))
    driven(runner.emit(AgentStart()))
    assert calls == [True, False]
    assert [error.error for error in errors] == ["ValueError: boom"]


def test_a_clock_without_an_event_loop_stands_still() -> None:
    """Neither the clock nor the watch over a call stops anything."""
    clock, watch = StillClock(5, set()), StillClock.watch_call(set())
    clock.attach()
    assert isinstance(watch, NoWatch)
    watch.cancel()
    watch.close()
    exc = ValueError()
    assert not clock.settle(exc)
    assert not watch.settle(exc)
    assert clock.foreign(exc) is None
    assert watch.foreign(exc) is None


# ---- the timer of an event loop --------------------------------------------------------------------------------------


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop with a time of its own, that keeps the timers it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.handles: list[asyncio.TimerHandle] = []

    def time(self) -> float:
        """Return the stepped time."""
        return self.now

    # The superclass has a type variable here.
    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Keep the timer."""
        handle = super().call_at(when, callback, *args, context=context)
        self.handles.append(handle)
        return handle

    def tick(self) -> None:
        """Take one turn."""
        self.call_soon(self.stop)
        self.run_forever()


class NotedClock(AsyncioClock):
    """A clock that notes when it expires."""

    __slots__ = ("expired",)

    def __init__(self, deadline: float) -> None:
        super().__init__(1.0, set())
        self.deadline = deadline
        self.expired: list[float] = []

    def expire(self, now: float) -> None:
        """Note the time, and have no deadline any more."""
        self.expired.append(now)
        self.deadline = float("inf")


@pytest.fixture
def loop() -> Any:
    """Give an event loop that is stepped by hand."""
    stepped = SteppedLoop()
    yield stepped
    stepped.close()


def test_a_timer_takes_the_time_of_its_event_loop(loop: SteppedLoop) -> None:
    """A loop may have a time of its own."""
    timer = LoopTimer(loop)
    assert timer.now() == 100.0
    loop.now = 101.5
    assert timer.now() == 101.5


def test_an_event_loop_has_one_pending_timer_for_all_clocks(loop: SteppedLoop) -> None:
    """A nearer deadline replaces the pending timer, a later one leaves it."""
    timer = LoopTimer(loop)
    late, early, latest = NotedClock(120.0), NotedClock(110.0), NotedClock(130.0)
    for clock in (late, early, latest):
        timer.watch(clock)
    assert [(handle.when(), handle.cancelled()) for handle in loop.handles] == [(120.0, True), (110.0, False)]
    loop.now = 110.0
    loop.tick()
    assert (early.expired, late.expired, latest.expired) == ([110.0], [], [])
    timer.forget(early)
    assert loop.handles[-1].when() == 120.0
    loop.now = 125.0
    loop.tick()
    assert (late.expired, latest.expired) == ([125.0], [])
    timer.forget(late)
    timer.forget(latest)
    loop.now = 135.0
    loop.tick()
    assert latest.expired == []
    pending = len(loop.handles)
    loop.now = 500.0
    loop.tick()
    assert len(loop.handles) == pending


def test_each_event_loop_keeps_its_timer() -> None:
    """Also when a program has several loops in turn."""
    one, other = SteppedLoop(), SteppedLoop()
    try:
        timers = [loop_timer(each) for each in (one, other, one, other)]
        assert timers[0] is timers[2]
        assert timers[1] is timers[3]
        assert timers[0] is not timers[1]
    finally:
        one.close()
        other.close()


# ---- the clock of a dispatch -----------------------------------------------------------------------------------------


@everywhere
async def test_a_dispatch_that_is_over_is_in_no_set_of_the_runner() -> None:
    """Neither its clock nor the watch over a call."""

    async def quick(event: object, ctx: HookContext) -> None:
        await checkpoint()
        assert len(runner.engine.suspended) == 1

    runner, errors = runner_of(hook_on("agent_start", quick, quick), hook_on("tool_call", quick))
    await runner.emit(AgentStart())
    await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
    assert (runner.engine.suspended, runner.engine.running_calls) == (set(), set())
    assert not errors


@on_asyncio
async def test_a_handler_that_swallows_its_cancellation_is_cancelled_again_after_a_pause() -> None:
    """A cancellation at every turn of the loop would leave the handler no time to clean up."""
    cancelled: list[float] = []

    async def slow_to_stop(event: object, ctx: HookContext) -> None:
        while len(cancelled) < 2:
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError:
                cancelled.append(clock.now())

    runner, errors = runner_of(hook_on("agent_start", slow_to_stop))
    clock = StepClock(runner)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        await clock.advance(31)
        await anyio.wait_all_tasks_blocked()
        clock.skip(KICK * 0.9)
        await anyio.wait_all_tasks_blocked()
        assert cancelled == [31]
        clock.skip(KICK * 0.2)
    assert len(cancelled) == 2
    assert [error.error for error in errors] == ["timed out after 30 s"]


@everywhere
async def test_a_keyboard_interrupt_in_an_error_listener_passes_after_a_timeout() -> None:
    """The clock has been settled by then, and is asked once more."""

    async def swallow(event: object, ctx: HookContext) -> None:
        try:
            await anyio.sleep_forever()
        except BaseException:
            # The handler swallows its cancellation.
            return

    def interrupt(error: object) -> None:
        raise KeyboardInterrupt

    runner, errors = runner_of(hook_on("agent_start", swallow), timeout=0.02)
    runner.on_error(interrupt)
    with pytest.raises(KeyboardInterrupt):
        await runner.emit(AgentStart())
    assert len(errors) == 1


@on_asyncio
async def test_a_tool_that_turns_a_cancellation_into_an_error_does_not_swallow_it_for_the_program() -> None:
    """asyncio would not deliver the cancellation again; the call does."""
    began = asyncio.Event()

    async def body(input: dict[str, Any]) -> None:
        began.set()
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise ValueError("boom") from None

    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None, inline=True))
    tool = wrap_tool(EchoTool(body=body), runner)
    task = asyncio.ensure_future(tool.execute("1", {"command": "ls"}))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@on_asyncio
async def test_a_handler_after_one_that_was_given_up_is_awaited_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may suspend as often as it likes, and then the event is over."""
    monkeypatch.setattr("agent_hooks.concurrency.deadlines.asyncio.GRACE", 0.1)
    calls: list[str] = []

    async def stubborn(event: object, ctx: HookContext) -> None:
        while True:
            try:
                await anyio.sleep(0.2)
            except asyncio.CancelledError:
                pass

    async def patient(event: object, ctx: HookContext) -> None:
        for name in ("one", "two"):
            turn: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(turn.set_result, name)
            calls.append(await turn)

    async def last(event: object, ctx: HookContext) -> None:
        calls.append("last")

    for hooks in ([], [hook_on("agent_start", last)], [hook_on("agent_start", patient, last)]):
        calls.clear()
        runner, errors = runner_of(hook_on("agent_start", stubborn, path="bad.py"), *hooks, timeout=0.02)
        with anyio.fail_after(PATIENCE):
            await runner.emit(AgentStart())
        assert len(errors) == 1
        assert calls == (["one", "two"] if len(calls) == 3 else []) + ["last"] * bool(hooks)


def test_a_cancellation_is_found_in_a_group_of_cancellations_only() -> None:
    """A group with another exception is a failure."""
    cancelled = asyncio.CancelledError()
    group = BaseExceptionGroup("outer", [BaseExceptionGroup("inner", [cancelled])])
    assert cancellation_in(cancelled, asyncio.CancelledError) is cancelled
    assert cancellation_in(group, asyncio.CancelledError) is cancelled
    mixed = BaseExceptionGroup("outer", [cancelled, ValueError()])
    assert cancellation_in(mixed, asyncio.CancelledError) is None
    assert cancellation_in(ValueError(), asyncio.CancelledError) is None
    assert cancellation_in(cancelled, ()) is None


# ---- dialogs ---------------------------------------------------------------------------------------------------------


@everywhere
async def test_after_a_dialog_of_a_nested_dispatch_the_time_of_the_outer_handler_goes_on() -> None:
    """The outer handler is stopped at its deadline."""
    answered = anyio.Event()

    async def outer(event: object, ctx: HookContext) -> None:
        await checkpoint()
        await runner.emit(AgentEnd())
        answered.set()
        await anyio.sleep_forever()

    async def inner(event: object, ctx: HookContext) -> None:
        await ctx.ui.confirm("?")

    hooks = [hook_on("agent_start", outer), hook_on("agent_end", inner)]
    runner, errors = runner_of(*hooks, ui=ScriptedUI(True), timeout=30)
    clock = StepClock(runner)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        await answered.wait()
        clock.skip(31)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert [error.error for error in errors] == ["timed out after 30 s"]


@everywhere
async def test_the_time_goes_on_after_a_dialog_that_was_open_longer_than_the_deadline() -> None:
    """The event loop's own timer was due meanwhile."""

    async def answer(asked: object) -> bool:
        await anyio.sleep(0.05)
        return True

    async def handler(event: object, ctx: HookContext) -> None:
        await checkpoint()
        await ctx.ui.confirm("?")
        await anyio.sleep_forever()

    runner, errors = runner_of(hook_on("agent_start", handler), ui=ScriptedUI(answer), timeout=0.02)
    with anyio.fail_after(PATIENCE):
        await runner.emit(AgentStart())
    assert [error.error for error in errors] == ["timed out after 0.02 s"]


@everywhere
async def test_a_dialog_that_outlives_a_cancelled_emit_does_not_start_the_time_again() -> None:
    """The task that emitted goes on."""
    begun, answered, closed = anyio.Event(), anyio.Event(), anyio.Event()

    async def answer(asked: object) -> bool:
        begun.set()
        await answered.wait()
        return True

    async with anyio.create_task_group() as tasks:

        async def ask(ctx: HookContext) -> None:
            await ctx.ui.confirm("?")
            closed.set()

        async def handler(event: object, ctx: HookContext) -> None:
            await checkpoint()
            tasks.start_soon(ask, ctx)
            await anyio.sleep_forever()

        async def cancel(scope: anyio.CancelScope) -> None:
            await begun.wait()
            scope.cancel()

        runner, errors = runner_of(hook_on("agent_start", handler), ui=ScriptedUI(answer), timeout=30)
        clock = StepClock(runner)
        with anyio.CancelScope() as scope:
            tasks.start_soon(cancel, scope)
            await runner.emit(AgentStart())
        answered.set()
        await closed.wait()
        clock.skip(31)
        await checkpoint()
    assert not errors


@everywhere
async def test_the_first_of_two_questions_is_handed_over() -> None:
    """A task of the handler may ask after the handler was stopped."""

    async def ask(event: object, ctx: HookContext) -> None:
        await checkpoint()
        dispatch = current_dispatch()
        assert dispatch is not None
        dispatch.need_clock().hand_over(Ask("first"))
        dispatch.need_clock().hand_over(Ask("second"))
        await anyio.sleep_forever()

    runner, errors = runner_of(hook_on("tool_call", ask))
    answer = await runner.emit(call_of())
    assert isinstance(answer, Ask)
    assert answer.title == "first"
    assert not errors


# ---- the timer of trio -----------------------------------------------------------------------------------------------


@on_trio
async def test_a_trio_run_has_one_timer_and_one_task_for_late_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer forgets a clock at the end of its dispatch."""
    spawned: list[object] = []
    spawn = trio.lowlevel.spawn_system_task

    def note(*args: Any, **options: Any) -> Any:
        spawned.append(args)
        return spawn(*args, **options)

    async def quick(event: object, ctx: HookContext) -> None:
        await checkpoint()

    timer = scope_timer()
    assert scope_timer() is timer
    monkeypatch.setattr(trio.lowlevel, "spawn_system_task", note)
    runner, _ = runner_of(hook_on("agent_start", quick, quick))
    for _ in range(3):
        await runner.emit(AgentStart())
    assert len(spawned) <= 1
    assert timer._clocks == set()


@pytest.mark.parametrize("anyio_backend", MOCKED)
async def test_a_late_handler_is_reported_also_after_a_time_without_handlers() -> None:
    """The task for late handlers ends without a handler, and begins again with the next one."""
    seconds = [0.0, 3.5]

    async def stubborn(event: object, ctx: HookContext) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds.pop(0))

    runner, errors = runner_of(hook_on("agent_start", stubborn), timeout=0.02)
    await runner.emit(AgentStart())
    await trio.sleep(5)
    assert not errors
    await runner.emit(AgentStart())
    assert "was cancelled 2 s ago and did not stop; its hook is disabled" in [error.error for error in errors]


@pytest.mark.parametrize("anyio_backend", MOCKED)
async def test_a_handler_without_a_deadline_that_does_not_stop_at_the_end_of_the_session_is_reported() -> None:
    """Its lateness counts from the stop."""

    async def stubborn(event: object, ctx: HookContext) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(10)

    runner, errors = runner_of(hook_on("agent_start", stubborn), timeout=None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.emit, AgentStart())
        await trio.sleep(5)
        await runner.engine.leave()
    late = [f"was cancelled {seconds} s ago and did not stop; its hook is disabled" for seconds in (1, 2, 3, 4, 5)]
    texts = [error.error for error in errors]
    assert texts[-1] == "was stopped, because the session ends"
    assert texts[:-1]
    assert set(texts[:-1]) <= set(late)
