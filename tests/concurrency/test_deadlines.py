"""How a handler is driven and cancelled: deadlines, dialogs, cancellation from outside, and races between them.

Every test here runs on asyncio (plain, in debug mode, on uvloop, with eager tasks where there are any) and on trio.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from textwrap import dedent
from typing import Any

import anyio
import pytest
import sniffio
import trio
import trio.testing
from anyio.lowlevel import checkpoint

from agent_hooks import AgentEnd, AgentStart, Block, Cancel, HookContext, SessionEvent
from agent_hooks.concurrency.deadlines import GRACE
from agent_hooks.dispatch.loop import Dispatch
from agent_hooks.testing import ScriptedUI, StepClock
from support import PATIENCE, call_of, everywhere, hook_on, on_asyncio, runner_of

SHORT = 0.02
Handler = Callable[..., Any]


on_trio = pytest.mark.parametrize("anyio_backend", ["trio"])


@pytest.fixture(autouse=True)
async def _no_cancellation_is_left_behind(anyio_backend: Any) -> AsyncIterator[None]:
    """After every test the task that ran it is as it was."""
    task = None if _is_trio() else asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    yield
    await checkpoint()
    assert (0 if task is None else task.cancelling()) == before


def _is_trio() -> bool:
    return sniffio.current_async_library() == "trio"


async def hang(event: object, ctx: HookContext) -> None:
    """Wait much longer than any deadline."""
    await anyio.sleep_forever()


async def failures(*handlers: Handler, timeout: float = SHORT) -> list[str]:
    """Return the failures of these handlers of one event."""
    runner, errors = runner_of(hook_on("agent_start", *handlers), timeout=timeout)
    await runner.emit(AgentStart())
    return [error.error for error in errors]


TIMED_OUT = [f"timed out after {SHORT:g} s"]


# ---- the deadline ----------------------------------------------------------------------------------------------------


@everywhere
async def test_a_handler_past_its_deadline_is_cancelled_and_reported_and_the_next_one_runs() -> None:
    """The rest of the handler does not run."""
    seen: list[str] = []

    async def slow(event: object, ctx: HookContext) -> None:
        try:
            await anyio.sleep_forever()
            seen.append("late side effect")
        finally:
            seen.append("cleaned")

    async def fine(event: object, ctx: HookContext) -> None:
        await checkpoint()
        seen.append("next")

    runner, errors = runner_of(hook_on("agent_start", slow, fine))
    clock = StepClock(runner)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        await clock.advance(29.9)
        await checkpoint()
        assert not seen
        await clock.advance(0.2)
    assert seen == ["cleaned", "next"]
    [error] = errors
    assert (error.error, error.outcome) == ("timed out after 30 s", "continued")


@everywhere
async def test_a_gate_past_its_deadline_blocks() -> None:
    """`tool_call` has no deadline unless one is set; its expiry blocks."""
    runner, errors = runner_of(hook_on("tool_call", hang), tool_call_timeout=SHORT)
    verdict = await runner.emit(call_of())
    assert verdict == Block(TIMED_OUT[0], by="hook.py", cause="timed_out")
    assert "gave no verdict" in str(verdict)
    assert errors[0].outcome == "blocked"


@everywhere
async def test_a_session_action_can_be_cancelled_by_a_timeout_too() -> None:
    """With `on_error="block"` a handler that gives no verdict cancels."""
    runner, _ = runner_of(hook_on("session", hang, on_error="block"), timeout=SHORT)
    assert await runner.emit(SessionEvent(reason="before_clear")) == Cancel(f"hook hook.py: {TIMED_OUT[0]}")


@everywhere
async def test_ten_handlers_just_under_the_deadline_all_run() -> None:
    """A deadline belongs to one handler, not to the dispatch."""
    seen: list[int] = []
    go = [anyio.Event() for _ in range(10)]

    def waiting(number: int) -> Handler:
        async def handler(event: object, ctx: HookContext) -> None:
            await go[number].wait()
            seen.append(number)

        return handler

    runner, errors = runner_of(hook_on("agent_start", *map(waiting, range(10))))
    clock = StepClock(runner)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        for number in range(10):
            await clock.advance(29.9)
            go[number].set()
            while len(seen) <= number:
                await checkpoint()
    assert seen == list(range(10))
    assert not errors


@everywhere
async def test_without_a_deadline_a_handler_may_take_as_long_as_it_wants() -> None:
    """`timeout=None` means no limit, and arms nothing."""

    async def slow(event: object, ctx: HookContext) -> None:
        await anyio.sleep(SHORT)

    runner, errors = runner_of(hook_on("agent_start", slow), timeout=None)
    clock = StepClock(runner)
    await runner.emit(AgentStart())
    clock.skip(10**9)
    assert not errors


@everywhere
async def test_a_raising_cleanup_of_a_stopped_handler_is_still_a_timeout() -> None:
    """A stopped handler is reported as stopped, also when it raises another exception or returns."""

    async def raising(event: object, ctx: HookContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("in the cleanup")

    async def swallowing(event: object, ctx: HookContext) -> None:
        try:
            await anyio.sleep_forever()
        except BaseException:
            # A careless author writes this.
            pass

    async def group(event: object, ctx: HookContext) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(raising, event, ctx)
            tasks.start_soon(hang, event, ctx)

    assert await failures(raising, swallowing, group, raising) == TIMED_OUT * 4


# ---- scopes and tasks of a handler -----------------------------------------------------------------------------------


@everywhere
async def test_a_handlers_own_time_limit_in_its_first_step_is_its_own() -> None:
    """A scope of its own that is longer does not save it; a shorter one that it catches itself is no failure."""

    async def longer(event: object, ctx: HookContext) -> None:
        with anyio.fail_after(PATIENCE):
            await anyio.sleep_forever()

    async def shorter(event: object, ctx: HookContext) -> None:
        with anyio.move_on_after(0.001):
            await anyio.sleep_forever()

    async def failing(event: object, ctx: HookContext) -> None:
        with anyio.fail_after(0.001):
            await anyio.sleep_forever()

    assert await failures(longer) == TIMED_OUT
    assert await failures(shorter, timeout=5) == []
    assert await failures(failing, timeout=5) == ["TimeoutError"]


@everywhere
async def test_a_task_group_in_a_handler_ends_with_it() -> None:
    """Its children are cancelled too; one that ends in time is no failure."""

    async def slow(event: object, ctx: HookContext) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            tasks.start_soon(anyio.sleep_forever)

    async def quick(event: object, ctx: HookContext) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(checkpoint)

    assert await failures(slow, quick) == TIMED_OUT


@on_trio
async def test_a_plain_trio_nursery_in_a_handler_ends_with_it() -> None:
    """trio wraps the cancellations of its children in a group."""

    async def nursery(event: object, ctx: HookContext) -> None:
        async with trio.open_nursery() as tasks:
            tasks.start_soon(trio.sleep_forever)
            tasks.start_soon(trio.sleep_forever)

    async def broken(event: object, ctx: HookContext) -> None:
        async with trio.open_nursery() as tasks:
            tasks.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("cleanup")

    assert await failures(nursery, broken) == TIMED_OUT * 2
    runner, errors = runner_of(hook_on("agent_start", nursery))
    with trio.move_on_after(SHORT) as scope:
        await runner.emit(AgentStart())
    assert scope.cancelled_caught
    assert not errors


@on_asyncio
async def test_asyncios_own_timeouts_and_task_groups_work_in_a_handler() -> None:
    """Its way of counting cancellations goes together with ours."""

    async def timeout(event: object, ctx: HookContext) -> None:
        async with asyncio.timeout(20):
            await asyncio.sleep(1000)

    async def group(event: object, ctx: HookContext) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(1000))
            tasks.create_task(asyncio.sleep(1000))

    async def same_moment(event: object, ctx: HookContext) -> None:
        async with asyncio.timeout(0.005):
            await asyncio.sleep(1000)

    async def handled(event: object, ctx: HookContext) -> None:
        try:
            await asyncio.wait_for(asyncio.sleep(1000), 0.001)
        except TimeoutError:
            pass

    assert await failures(timeout, group) == TIMED_OUT * 2
    assert await failures(handled, timeout=5) == []
    for _ in range(20):
        assert len(await failures(same_moment, timeout=0.005)) == 1


@everywhere
async def test_a_handler_stays_in_one_task_and_context() -> None:
    """The first step, taken by hand, and those after a suspension are in the task that emits."""
    seen: list[tuple[str, int]] = []
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    async def handler(event: object, ctx: HookContext) -> None:
        variable.set(7)
        seen.append((sniffio.current_async_library(), anyio.get_current_task().id))
        await checkpoint()
        seen.append((sniffio.current_async_library(), anyio.get_current_task().id))
        assert variable.get() == 7

    here = sniffio.current_async_library(), anyio.get_current_task().id
    assert await failures(handler) == []
    assert seen == [here, here]


@on_asyncio
async def test_events_leave_no_timer_behind() -> None:
    """There is one timer per event loop, however many handlers suspend."""

    async def quick(event: object, ctx: HookContext) -> None:
        await checkpoint()

    runner, _ = runner_of(hook_on("agent_start", quick, quick))
    await runner.emit(AgentStart())
    loop: Any = asyncio.get_running_loop()
    before = len(getattr(loop, "_scheduled", ()))
    for _ in range(200):
        await runner.emit(AgentStart())
    assert len(getattr(loop, "_scheduled", ())) <= before


@everywhere
async def test_a_dispatch_that_is_over_can_be_collected() -> None:
    """Neither clock nor timer keeps it alive; only the context variables of this task and of the timer hold one."""

    async def quick(event: object, ctx: HookContext) -> None:
        await checkpoint()

    runner, _ = runner_of(hook_on("tool_call", quick), tool_call_timeout=5)
    for _ in range(5):
        await runner.emit(call_of())
    dispatches = [each for each in gc.get_objects() if isinstance(each, Dispatch)]
    assert sum(each.owner is runner.engine for each in dispatches) <= 2


# ---- dialogs ---------------------------------------------------------------------------------------------------------


@everywhere
async def test_a_dialog_stops_the_clock_of_its_handler() -> None:
    """The person answers after ten minutes, and the answer counts; own time adds up across dialogs."""
    seen: list[object] = []

    async def late_yes(asked: object) -> bool:
        clock.skip(600)
        await checkpoint()
        return True

    async def handler(event: object, ctx: HookContext) -> None:
        seen.append(await ctx.ui.confirm("Go on?"))
        clock.skip(20)
        seen.append(await ctx.ui.confirm("Still?"))
        clock.skip(9)
        await checkpoint()
        seen.append("in time")
        await anyio.sleep_forever()

    runner, errors = runner_of(hook_on("agent_start", handler), ui=ScriptedUI(late_yes, late_yes))
    clock = StepClock(runner)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        while "in time" not in seen:
            await checkpoint()
        await clock.advance(1.5)
    assert seen == [True, True, "in time"]
    assert [error.error for error in errors] == ["timed out after 30 s"]


@everywhere
async def test_two_dialogs_at_once_stop_the_clock_until_both_are_answered() -> None:
    """The time goes on with the last answer."""
    second = anyio.Event()

    async def first_answer(asked: object) -> bool:
        clock.skip(100)
        await checkpoint()
        return True

    async def second_answer(asked: object) -> bool:
        await second.wait()
        clock.skip(100)
        return True

    async def handler(event: object, ctx: HookContext) -> None:
        async def ask() -> None:
            await ctx.ui.confirm("?")
            second.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)

    runner, errors = runner_of(hook_on("agent_start", handler), ui=ScriptedUI(first_answer, second_answer))
    clock = StepClock(runner)
    await runner.emit(AgentStart())
    assert not errors


@everywhere
async def test_a_dialog_of_a_nested_dispatch_stops_the_outer_clock_too() -> None:
    """Both handlers wait for the same person."""

    async def late(asked: object) -> bool:
        clock.skip(600)
        await checkpoint()
        return True

    async def outer(event: object, ctx: HookContext) -> None:
        await checkpoint()
        await runner.emit(AgentEnd())
        await checkpoint()

    async def inner(event: object, ctx: HookContext) -> None:
        await ctx.ui.confirm("?")

    runner, errors = runner_of(hook_on("agent_start", outer), hook_on("agent_end", inner), ui=ScriptedUI(late))
    clock = StepClock(runner)
    await runner.emit(AgentStart())
    assert not errors


@everywhere
async def test_a_dialog_that_outlives_its_dispatch_does_not_touch_the_task_that_emitted() -> None:
    """A closed clock stays closed, although a task of the handler goes on."""
    answered = anyio.Event()

    async def answer(asked: object) -> bool:
        await answered.wait()
        return True

    async with anyio.create_task_group() as tasks:

        async def ask(ctx: HookContext) -> None:
            await ctx.ui.confirm("?")

        async def handler(event: object, ctx: HookContext) -> None:
            await checkpoint()
            tasks.start_soon(ask, ctx)

        runner, errors = runner_of(hook_on("agent_start", handler), ui=ScriptedUI(answer), timeout=SHORT)
        await runner.emit(AgentStart())
        await checkpoint()
        answered.set()
        # In this time an open clock would cancel the task.
        await anyio.sleep(3 * SHORT)
    assert not errors


# ---- cancellation from outside ---------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("suspended_in", ["handler", "dialog", "second handler"])
async def test_cancelling_the_emitting_task_cancels_handler_and_dialog(suspended_in: str) -> None:
    """Nothing is reported, no later handler runs, and the runner works on."""
    seen: list[str] = []
    began = anyio.Event()

    async def forever(asked: object) -> bool:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("dialog cancelled")
        return True

    async def handler(event: object, ctx: HookContext) -> None:
        if suspended_in == "second handler" and "first" not in seen:
            await checkpoint()
            seen.append("first")
            return
        try:
            if suspended_in == "dialog":
                await ctx.ui.confirm("?")
            began.set()
            await anyio.sleep_forever()
        finally:
            seen.append("handler cancelled")

    async def next_one(event: object, ctx: HookContext) -> None:
        seen.append("next")

    handlers = [handler, handler, next_one] if suspended_in == "second handler" else [handler, next_one]
    runner, errors = runner_of(hook_on("agent_start", *handlers), ui=ScriptedUI(forever))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        await began.wait()
        tasks.cancel_scope.cancel()
    expected = {"handler": [], "dialog": ["dialog cancelled"], "second handler": ["first"]}[suspended_in]
    assert seen == [*expected, "handler cancelled"]
    assert not errors
    with anyio.fail_after(PATIENCE):
        await runner.emit(AgentEnd())  # the lane is free


@everywhere
async def test_an_emit_under_a_shield_works_inside_a_cancelled_scope() -> None:
    """A shutdown event is emitted just there; its deadlines hold all the same."""
    results: list[list[str]] = []

    async def quick(event: object, ctx: HookContext) -> None:
        await checkpoint()

    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                results.append(await failures(quick, hang, quick))
    assert results == [TIMED_OUT]


# One race after another would wait for each deadline.
RACES, AT_ONCE = 800, 20
# The deadline in seconds; the races are with other events that are due at about the same time.
LIMIT = 0.003


class Races:
    """Races until there have been enough, with each outcome: on a busy machine, by times further from the deadline.

    `due` gives a time near the deadline.
    """

    def __init__(self, seed: int, *expected: str) -> None:
        self.rng = random.Random(seed)
        self.outcomes: list[str] = []
        self._expected = set(expected)
        self._spread = 3e-4

    def __iter__(self) -> Iterator[int]:
        end = time.monotonic() + PATIENCE
        for number in itertools.count():
            if len(self.outcomes) >= RACES and set(self.outcomes) == self._expected:
                return
            assert time.monotonic() < end, set(self.outcomes)
            yield number
            assert len(self.outcomes) == (number + 1) * AT_ONCE
            if set(self.outcomes) != self._expected:
                self._spread *= 1.2

    def due(self) -> float:
        return max(0, LIMIT + self.rng.uniform(-self._spread, self._spread))


@everywhere
async def test_outer_cancellation_racing_the_deadline_and_the_answer_is_never_lost() -> None:
    """The scope caught its cancellation, the handler timed out, or its answer came in time: one of these, for good."""
    races = Races(1, "cancelled", "timed_out", "hook")
    running = 0

    async def race(work: float, patience: float) -> None:
        async def gate(event: object, ctx: HookContext) -> Block:
            nonlocal running
            running += 1
            try:
                await anyio.sleep(work)
            finally:
                running -= 1
            return Block("answered")

        runner, errors = runner_of(hook_on("tool_call", gate), tool_call_timeout=LIMIT)
        verdict: Any = None
        with anyio.move_on_after(patience) as scope:
            verdict = await runner.emit(call_of())
        reported = [error.error for error in errors]
        if verdict is None:
            races.outcomes.append("cancelled")
        else:
            races.outcomes.append(verdict.cause)
            assert reported == ([] if verdict.cause == "hook" else [f"timed out after {LIMIT:g} s"])
            assert (verdict.cause == "hook") == (verdict.reason == "answered")
        assert scope.cancelled_caught == (verdict is None)
        await checkpoint()
        assert [error.error for error in errors] == reported
        if not _is_trio():
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

    for _ in races:
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for number in range(AT_ONCE):
                    work = (1000.0, races.due(), races.rng.uniform(0, LIMIT))[number % 3]
                    tasks.start_soon(race, work, races.due())
        assert running == 0


@on_asyncio
async def test_a_native_cancel_racing_the_deadline_is_never_lost() -> None:
    """`Task.cancel()` comes once: when it came before the end of the emit, the task must end by it."""
    races = Races(2, "cancelled", "timed out")

    async def race() -> None:
        asked: list[bool] = []
        task = asyncio.ensure_future(failures(hang, timeout=LIMIT))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(races.due(), lambda: asked.append(task.cancel()))
        try:
            reported = await task
        except asyncio.CancelledError:
            races.outcomes.append("cancelled")
        else:
            races.outcomes.append("timed out")
            assert reported == [f"timed out after {LIMIT:g} s"]
            assert asked in ([], [False])  # it was not cancelled, or only after it had ended
        while not asked:
            await asyncio.sleep(0.0005)

    async def make_both_due_at_once() -> None:
        await asyncio.sleep(0)
        time.sleep(2 * LIMIT)

    for number in races:
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(race())
            if number % 3 == 0:
                tasks.create_task(make_both_due_at_once())


@on_asyncio
async def test_a_handler_that_swallows_a_native_cancel_does_not_swallow_it_for_the_program() -> None:
    """asyncio would not deliver it again; the emit does."""
    began = asyncio.Event()

    async def careless(event: object, ctx: HookContext) -> None:
        began.set()
        try:
            await asyncio.sleep(1000)
        except BaseException:
            # A careless author writes this.
            pass

    async def careless_and_broken(event: object, ctx: HookContext) -> None:
        await careless(event, ctx)
        raise ValueError("boom")

    for handler in (careless, careless_and_broken):
        task = asyncio.ensure_future(failures(handler, timeout=5))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        began.clear()


@everywhere
async def test_a_deadline_of_an_outer_handler_stops_an_inner_dispatch() -> None:
    """The inner handler is cancelled with it, and only the outer one is reported."""

    async def outer(event: object, ctx: HookContext) -> None:
        await runner.emit(call_of())

    runner, errors = runner_of(hook_on("agent_start", outer), hook_on("tool_call", hang, path="b.py"), timeout=SHORT)
    await runner.emit(AgentStart())
    assert [(error.hook_path, error.error) for error in errors] == [("hook.py", TIMED_OUT[0])]


@everywhere
async def test_a_deadline_of_an_inner_handler_leaves_the_outer_one_alone() -> None:
    """Only the dispatch whose handler was late is concerned."""
    seen: list[object] = []

    async def outer(event: object, ctx: HookContext) -> None:
        seen.append(await runner.emit(call_of()))
        await checkpoint()
        seen.append("outer goes on")

    runner, errors = runner_of(
        hook_on("agent_start", outer), hook_on("tool_call", hang, path="b.py"), tool_call_timeout=SHORT
    )
    await runner.emit(AgentStart())
    assert seen == [Block(TIMED_OUT[0], by="b.py", cause="timed_out"), "outer goes on"]
    assert len(errors) == 1


# ---- handlers that will not stop -------------------------------------------------------------------------------------


@on_asyncio
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python's own complaint of the handler
@pytest.mark.parametrize("own_scope", [False, True])
async def test_a_handler_that_swallows_every_cancellation_is_left_behind_on_asyncio(
    own_scope: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Emit returns about a second past the deadline; the next handler runs; the hook's gates block from then on."""
    assert GRACE == 1
    monkeypatch.setattr("agent_hooks.concurrency.deadlines.asyncio.GRACE", 0.2)
    seen: list[str] = []

    async def endless() -> None:
        while True:
            try:
                await anyio.sleep(0.2)
            except BaseException:  # GeneratorExit too: it will not be closed either
                pass

    async def stubborn(event: object, ctx: HookContext) -> None:
        if own_scope:
            with anyio.CancelScope():
                await endless()
        await endless()

    async def next_one(event: object, ctx: HookContext) -> None:
        await checkpoint()
        seen.append("next")

    stubborn_hook = hook_on("agent_start", stubborn, path="bad.py")
    stubborn_hook.api.on("tool_call", lambda event, ctx: None, inline=True)
    stubborn_hook.api.on("agent_end", lambda event, ctx: seen.append("of the disabled hook"), inline=True)
    runner, errors = runner_of(stubborn_hook, hook_on("agent_start", next_one), timeout=SHORT)
    begun = time.perf_counter()
    await runner.emit(AgentStart())
    assert time.perf_counter() - begun >= 0.2
    assert seen == ["next"]
    assert [error.error for error in errors] == [
        f"timed out after {SHORT:g} s and did not stop when cancelled; its hook is disabled"
    ]
    await runner.emit(AgentEnd())
    assert seen == ["next"]
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert (verdict.by, verdict.cause) == ("bad.py", "failed")
    assert "disabled" in verdict.reason
    with anyio.move_on_after(0.01) as scope:  # cancellation works as before
        await anyio.sleep(5)
    assert scope.cancelled_caught
    gc.collect()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
def test_the_process_can_end_after_a_handler_was_left_behind() -> None:
    """Nothing keeps the handler until the loop is gone, where its endless loop would spin."""
    program = """
        import anyio
        from agent_hooks import AgentStart, HookAPI, HookRunner, LoadedHook

        async def stubborn(event, ctx):
            while True:
                try:
                    await anyio.sleep(0.2)
                except BaseException:
                    pass

        async def main():
            api = HookAPI("hook.py")
            api.on("agent_start", stubborn)
            hook = LoadedHook("hook.py", "hook.py", "hook", api)
            async with HookRunner([hook], cwd=".", timeout=0.02) as runner:
                await runner.emit(AgentStart())
            print("over")

        anyio.run(main)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr


@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": trio.testing.MockClock(autojump_threshold=0.01)})])
async def test_a_handler_that_swallows_every_cancellation_is_reported_every_second_on_trio() -> None:
    """trio cannot leave a task behind: the hook is disabled at once, the emit goes on when the handler ends."""
    seen: list[str] = []
    stop = False

    async def stubborn(event: object, ctx: HookContext) -> None:
        while not stop:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.2)

    async def next_one(event: object, ctx: HookContext) -> None:
        seen.append("next")

    bad = hook_on("agent_start", stubborn, path="bad.py")
    bad.api.on("tool_call", lambda event, ctx: None, inline=True)
    runner, errors = runner_of(bad, hook_on("agent_start", next_one), timeout=SHORT)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.emit, AgentStart())
        await trio.sleep(4.5)
        verdict = await runner.emit(call_of())
        stop = True
    assert isinstance(verdict, Block)
    assert "disabled" in verdict.reason
    late = [error.error for error in errors if error.event == "agent_start"]
    assert late[:-1] == [f"was cancelled {late} s ago and did not stop; its hook is disabled" for late in (2, 3, 4)]
    assert seen == ["next"]
    assert errors[-1].error == TIMED_OUT[0]


@everywhere
async def test_a_stopped_handlers_forgotten_await_is_not_held_against_the_next_one() -> None:
    """Each handler answers for its own awaitables."""

    async def forgetful(event: object, ctx: HookContext) -> None:
        ctx.ui.confirm("?")  # dropped
        await anyio.sleep_forever()

    async def fine(event: object, ctx: HookContext) -> None:
        await checkpoint()

    assert await failures(forgetful, fine) == TIMED_OUT


@on_trio
async def test_a_blocking_handler_is_not_blamed_for_the_deadline_of_the_one_before() -> None:
    """A deadline ends with its handler, also when the next one raises in its first step after it."""

    async def quick(event: object, ctx: HookContext) -> None:
        await checkpoint()

    async def blocking(event: object, ctx: HookContext) -> None:
        time.sleep(2 * SHORT)
        raise ValueError("boom")

    assert await failures(quick, blocking) == ["ValueError: boom"]
