"""The state of a runner: lanes, listeners, statistics, the hooks' tasks, and the end of a session."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest
import trio
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from agent_hooks import (
    AgentEnd,
    AgentStart,
    Attachment,
    Block,
    Cancel,
    HookAPI,
    HookContext,
    HookError,
    HookRunner,
    HookUsageError,
    SessionEvent,
    SettingsError,
    ToolCall,
    ToolResult,
)
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.dispatch.table import SPECS
from agent_hooks.testing import RecordedEvents, ScriptedUI
from support import PATIENCE, call_of, hook_of, hook_on, runner_of

SHUTDOWN = SessionEvent(reason="shutdown")
RESULT = ToolResult(tool_name="bash", tool_call_id="1", input={}, content="text")


async def hang(event: object, ctx: HookContext) -> None:
    """Wait much longer than any deadline."""
    await anyio.sleep_forever()


# ---- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "30", True])
@pytest.mark.parametrize("setting", ["timeout", "tool_call_timeout"])
def test_a_deadline_that_cannot_be_one_is_refused_by_name(setting: str, wrong: Any) -> None:
    """Zero, negative, NaN and text are mistakes; the error says which argument."""
    options = {setting: wrong}
    with pytest.raises(SettingsError, match=rf"HookRunner\({setting}=…\): expected seconds above 0"):
        HookRunner([], cwd=".", **options)


async def test_no_deadline_is_none() -> None:
    """`None` means no limit."""
    runner, errors = runner_of(hook_on("agent_start", lambda event, ctx: None), timeout=None, tool_call_timeout=None)
    await runner.emit(AgentStart())
    assert not errors


# ---- the order of events ---------------------------------------------------------------------------------------------


async def test_events_of_a_life_queue_first_in_first_out() -> None:
    """A slow `agent_end` never overlaps the next `agent_start`; tool calls have a lane of their own."""
    seen: list[str] = []
    began, go = anyio.Event(), anyio.Event()

    async def slow(event: AgentEnd, ctx: HookContext) -> None:
        began.set()
        await go.wait()
        seen.append("end")

    async def start(event: AgentStart, ctx: HookContext) -> None:
        await checkpoint()
        seen.append("start")

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        seen.append(str(event.input["command"]))

    runner, _ = runner_of(hook_on("agent_end", slow), hook_on("agent_start", start), hook_on("tool_call", gate))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentEnd())
        await began.wait()
        tasks.start_soon(runner.emit, AgentStart())
        await anyio.wait_all_tasks_blocked()
        await runner.emit(call_of("beside"))
        go.set()
    assert seen == ["beside", "end", "start"]


async def test_a_dialog_of_one_call_stalls_neither_its_results_nor_loses_the_order_of_the_others() -> None:
    """Judging queues in order; `tool_result` of another call goes through at once."""
    seen: list[str] = []
    asked, answer = anyio.Event(), anyio.Event()

    async def dialog(question: object) -> bool:
        asked.set()
        await answer.wait()
        return True

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        seen.append(f"judge {event.input['command']}")
        if event.input["command"] == "first":
            await ctx.ui.confirm("?")
        seen.append(f"judged {event.input['command']}")

    async def result(event: ToolResult, ctx: HookContext) -> None:
        await checkpoint()
        seen.append("result")

    runner, errors = runner_of(hook_on("tool_call", gate), hook_on("tool_result", result), ui=ScriptedUI(dialog))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, call_of("first"))
        await asked.wait()
        for command in ("second", "third"):
            tasks.start_soon(runner.emit, call_of(command))
            await anyio.wait_all_tasks_blocked()
        await runner.emit(RESULT)
        answer.set()
    steps = [f"{step} {command}" for command in ("first", "second", "third") for step in ("judge", "judged")]
    assert seen == [steps[0], "result", *steps[1:]]
    assert not errors


async def test_a_lane_passes_on_the_turn_of_one_that_was_cancelled() -> None:
    """Cancelled while it waits, or in the very step in which its turn came."""
    lane = Lane()
    seen: list[int] = []
    scopes = [anyio.CancelScope() for _ in range(3)]

    async def pass_through(number: int) -> None:
        with scopes[number]:
            await lane.enter()
            seen.append(number)
            lane.leave()

    await lane.enter()
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(pass_through, number)
            await anyio.wait_all_tasks_blocked()
        scopes[0].cancel()
        await anyio.wait_all_tasks_blocked()
        lane.leave()  # the turn goes to 1 ...
        scopes[1].cancel()  # ... which on asyncio is cancelled before it can take it
    assert seen in ([2], [1, 2])
    assert not lane.busy


# ---- listeners -------------------------------------------------------------------------------------------------------


async def test_listeners_hear_of_failures_events_and_answers_until_they_are_undone() -> None:
    """Each registration returns its undo, which may be called twice."""
    failures: list[HookError] = []
    events: list[object] = []
    answers: list[tuple[str, str, object]] = []

    def answering(event: ToolCall, ctx: HookContext) -> dict[str, object]:
        return {"block": False}

    runner = HookRunner(
        [
            hook_on("tool_call", answering, inline=True),
            hook_on("tool_call", lambda event, ctx: 1 / 0, path="b.py", inline=True),
        ],
        cwd=".",
    )
    undos = [
        runner.on_error(failures.append),
        runner.observe(events.append),
        runner.on_answer(lambda handler, event, answer: answers.append((handler.hook, event.type, answer))),
    ]
    await runner.emit(call_of())
    await runner.emit(AgentStart())
    assert [failure.hook_path for failure in failures] == ["b.py"]
    assert events == [call_of(), AgentStart()]
    assert answers == [("hook.py", "tool_call", {"block": False})]
    for undo in undos * 2:
        undo()
    await runner.emit(call_of())
    assert (len(failures), len(events), len(answers)) == (1, 2, 1)


async def test_observers_see_an_event_as_its_handlers_left_it() -> None:
    """A result that was replaced is shown replaced."""
    runner, _ = runner_of(hook_on("tool_result", lambda event, ctx: {"content": "other"}, inline=True))
    recorded = RecordedEvents(runner)
    await runner.emit(RESULT)
    assert recorded.of("tool_result")[0].content[0].text == "other"


async def test_a_raising_observer_or_answer_listener_is_logged_and_breaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Listeners are bystanders."""
    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: Block("no"), inline=True))

    def broken(*_: object) -> None:
        raise RuntimeError("bystander broke")

    runner.observe(broken)
    runner.on_answer(broken)
    assert await runner.emit(call_of()) == Block("no", by="hook.py")
    assert caplog.text.count("RuntimeError: bystander broke") == 2
    assert not errors


async def test_a_failure_that_nobody_listens_to_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With hook, handler, event and traceback."""
    runner = HookRunner([hook_on("agent_start", lambda event, ctx: 1 / 0, inline=True)], cwd=".")
    with caplog.at_level(logging.ERROR, logger="agent_hooks"):
        await runner.emit(AgentStart())
    assert "hook.py" in caplog.text
    assert "on agent_start: ZeroDivisionError" in caplog.text
    assert "Traceback" in caplog.text


# ---- statistics ------------------------------------------------------------------------------------------------------


async def test_counts_are_exact_and_every_suspended_handler_is_timed() -> None:
    """Also one that blocks, or fails; of the others one call in 32 is timed."""

    async def suspending(event: ToolCall, ctx: HookContext) -> Block | None:
        await checkpoint()
        if event.input["command"] == "fail":
            raise ValueError("boom")
        return Block("no") if event.input["command"] == "block" else None

    async def quick(event: ToolCall, ctx: HookContext) -> None:
        pass

    runner, _ = runner_of(hook_on("tool_call", quick, suspending))
    for command in ["ls"] * 20 + ["block"] * 5 + ["fail"] * 3:
        await runner.emit(call_of(command))
    first, second = runner.stats()
    assert (first.hook, first.event, first.handler.rpartition(".")[2]) == ("hook.py", "tool_call", "quick")
    assert (first.count, first.failures) == (28, 0)
    assert (second.count, second.failures) == (28, 3)
    [row] = [row for row in runner.stats() if row.handler.endswith("suspending")]
    assert row.p50 is not None
    assert row.max is not None
    assert 0 < row.p50 <= row.max < 1


async def test_the_time_of_a_gate_that_blocks_is_kept() -> None:
    """The dispatch ends with it, its statistics do not leave it out."""

    async def gate(event: ToolCall, ctx: HookContext) -> Block:
        await checkpoint()
        return Block()

    runner, _ = runner_of(hook_on("agent_start", lambda event, ctx: None, inline=True), hook_on("tool_call", gate))
    await runner.emit(AgentStart())  # the first dispatch is timed in any case
    await runner.emit(call_of())
    assert runner.stats()[1].max is not None


# ---- listeners and questions of a program ----------------------------------------------------------------------------


async def test_a_matcher_that_no_known_tool_can_match_is_reported_once_with_the_nearest_name() -> None:
    """After loading, when all tools are known."""

    def register(api: HookAPI) -> None:
        api.on("tool_call", lambda event, ctx: None, tool="bsh")
        api.on("tool_call", lambda event, ctx: None, tool=re.compile("^grep"))
        api.on("tool_call", lambda event, ctx: None, tool=["bash", "unknown"])
        api.on("tool_call", lambda event, ctx: None, tool=["reed"])
        api.on("tool_call", lambda event, ctx: None)

    runner, errors = runner_of(hook_of(register))
    runner.know_tools(["bash", "read"])
    reports = runner.check_matchers()
    assert reports == errors
    assert ["can match no known tool" in report.error for report in reports] == [True, True, True]
    assert "did you mean 'bash'?" in reports[0].error
    assert "did you mean 'read'?" in reports[2].error


async def test_has_handlers_and_listens_tell_whether_anybody_would_hear() -> None:
    """By event type, and by route with the tool."""
    runner, _ = runner_of(hook_on("tool_call", hang, tool="bash"))
    assert runner.has_handlers("tool_call")
    assert not runner.has_handlers("agent_start")
    assert runner.engine.listens(("tool_call", "bash"))
    assert not runner.engine.listens(("tool_call", "read"))
    undo = runner.observe(lambda event: None)
    assert runner.engine.listens(("tool_call", "read"))
    undo()
    assert not runner.engine.listens(("tool_call", "read"))


async def test_many_invented_tool_names_do_not_fill_the_memory() -> None:
    """The cache of plans starts anew past a limit; dispatch goes on."""
    seen: list[str] = []
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: seen.append(event.tool_name), inline=True))
    for number in range(5000):
        await runner.emit(call_of(tool=f"tool{number}"))
    assert len(seen) == 5000
    assert len(runner.engine._plans) < 5000


async def test_a_hooks_message_goes_to_the_send_handler_and_is_warned_about_without_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`f(text, attachments, source)`; the source is the hook's path."""
    sent: list[object] = []
    image = Attachment(kind="image", file_name="a.png", mime_type="image/png", content="")
    hook = hook_of(lambda api: None)
    runner, _ = runner_of(hook)
    hook.api.send("to nobody")
    assert "was not sent" in caplog.text
    runner.set_send_handler(lambda *args: sent.append(args))
    hook.api.send("hello", [image])
    assert sent == [("hello", (image,), "hook.py")]


# ---- the hooks' tasks ------------------------------------------------------------------------------------------------


async def test_a_queued_task_starts_at_entry_and_is_ended_at_exit() -> None:
    """An emit before the entry would run without the task, so it is refused with the remedy."""
    seen: list[str] = []
    began = anyio.Event()

    async def task() -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("task ended")

    hook = hook_of(lambda api: api.start_task(task))
    runner, errors = runner_of(hook)
    hook.api.start_task(task)  # bound to the runner by now, and queued there
    with pytest.raises(HookUsageError, match=r"hook\.py started a background task: use `async with HookRunner"):
        await runner.emit(AgentStart())
    async with runner:
        await began.wait()
        await anyio.wait_all_tasks_blocked()
        await runner.emit(AgentStart())
        assert not seen
    assert seen == ["task ended", "task ended"]
    assert not errors


async def test_a_raising_task_is_reported_and_the_others_go_on() -> None:
    """Every exception is reported, also of a task that is started later."""
    done = anyio.Event()

    async def broken() -> None:
        await checkpoint()
        raise SystemExit(3)

    async def fine() -> None:
        await anyio.wait_all_tasks_blocked()
        done.set()

    hook = hook_of(lambda api: None)
    runner, errors = runner_of(hook)
    async with runner:
        hook.api.start_task(broken)
        hook.api.start_task(fine)
        await done.wait()
    [error] = errors
    assert (error.hook_path, error.event, error.error, error.outcome) == (
        "hook.py",
        "task",
        "SystemExit: 3",
        "continued",
    )
    assert error.handler.endswith("broken")


async def test_tasks_that_start_late_are_ended_before_what_is_unloaded() -> None:
    """Nothing was queued when the runner was entered."""
    seen: list[str] = []

    def register(api: HookAPI) -> None:
        api.on_unload(lambda: seen.append("unloaded"))

    hook = hook_of(register)
    runner, errors = runner_of(hook)
    began = anyio.Event()

    async def task() -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            # A task that takes its time to end is waited for.
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            seen.append("task ended")

    async with runner:
        hook.api.start_task(task)
        await began.wait()
    assert seen == ["task ended", "unloaded"]
    assert not errors


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_late_task_is_waited_for_also_when_who_leaves_the_runner_is_cancelled() -> None:
    """The cancellation is raised afterwards, and not lost."""
    seen: list[str] = []
    began = anyio.Event()
    hook = hook_of(lambda api: None)
    runner, _ = runner_of(hook)

    async def task() -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
            seen.append("ended")

    async def program() -> None:
        async with runner:
            hook.api.start_task(task)
            await began.wait()
        seen.append("left")

    running = asyncio.get_running_loop().create_task(program())
    await began.wait()
    await asyncio.sleep(0.01)  # it is leaving now, and waits for the task
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["ended"]


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_task_with_a_plain_trio_nursery_is_ended_without_a_report() -> None:
    """Its cancellations come in a group."""
    began = anyio.Event()

    async def task() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            began.set()
            await trio.sleep_forever()

    runner, errors = runner_of(hook_of(lambda api: api.start_task(task)))
    async with runner:
        await began.wait()
    assert not errors


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_keyboard_interrupt_in_a_task_ends_the_program(backend: str) -> None:
    """It is the person's, wherever it hits."""
    failures: list[HookError] = []

    async def task() -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        runner, _ = runner_of(hook_of(lambda api: api.start_task(task)))
        runner.on_error(failures.append)
        async with runner:
            await anyio.sleep_forever()

    with pytest.raises(BaseException) as caught:  # noqa: PT011  # a group or the bare one, as the backend has it
        anyio.run(main, backend=backend)
    assert "KeyboardInterrupt" in repr(caught.value)
    assert not failures


async def test_on_unload_functions_run_backwards_and_failing_ones_are_reported() -> None:
    """Last hook first, last registered first; sync and async; nothing one raises stops the others."""
    seen: list[str] = []

    def registering(name: str) -> Callable[[HookAPI], None]:
        def register(api: HookAPI) -> None:
            @api.on_unload
            async def first() -> None:
                await checkpoint()
                seen.append(f"{name} first")

            @api.on_unload
            def broken() -> None:
                raise SystemExit(name)

            @api.on_unload
            async def cancels_itself() -> None:
                await checkpoint()
                raise ValueError(name)

            @api.on_unload
            def last() -> None:
                seen.append(f"{name} last")

        return register

    runner, errors = runner_of(hook_of(registering("a"), "a.py"), hook_of(registering("b"), "b.py"))
    async with runner:
        pass
    assert seen == ["b last", "b first", "a last", "a first"]
    assert [(error.hook_path, error.event, error.error) for error in errors] == [
        (f"{name}.py", "on_unload", text)
        for name in ("b", "a")
        for text in (f"ValueError: {name}", f"SystemExit: {name}")
    ]


async def test_on_unload_functions_have_a_time_limit_and_run_although_the_program_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that takes too long is cancelled and reported, and the quick ones still run."""
    monkeypatch.setattr("agent_hooks.runner.background.UNLOAD_TIMEOUT", 0.02)
    seen: list[str] = []

    def register(api: HookAPI) -> None:
        api.on_unload(lambda: seen.append("quick"))

        @api.on_unload
        async def slow() -> None:
            await anyio.sleep_forever()

        @api.on_unload
        async def slow_with_a_broken_end() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError("cleanup")

    runner, errors = runner_of(hook_of(register))
    with anyio.CancelScope() as scope:
        async with runner:
            scope.cancel()
            await checkpoint()
    assert seen == ["quick"]
    assert [error.error for error in errors] == [
        "ValueError: cleanup",
        "TimeoutError: did not end within 0.02 s, the time for all on_unload functions of a hook",
    ]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_on_unload_function_that_cancels_itself_is_reported() -> None:
    """Its own CancelledError is a failure like any other."""

    async def odd() -> None:
        raise asyncio.CancelledError

    runner, errors = runner_of(hook_of(lambda api: api.on_unload(odd)))
    async with runner:
        pass
    assert [error.error for error in errors] == ["CancelledError"]


async def test_a_keyboard_interrupt_in_on_unload_passes() -> None:
    """Ctrl-C ends a program that hangs in the hooks' last functions."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    runner, _ = runner_of(hook_of(lambda api: api.on_unload(interrupted)))
    with pytest.raises(KeyboardInterrupt):
        async with runner:
            pass


async def test_the_programs_own_exception_leaves_the_runner_unwrapped() -> None:
    """Not in a group, although tasks run; and they are ended."""
    seen: list[str] = []

    async def task() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("ended")

    runner, _ = runner_of(hook_of(lambda api: api.start_task(task)))

    async def program() -> None:
        async with runner:
            await anyio.wait_all_tasks_blocked()
            raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        await program()
    assert seen == ["ended"]


# ---- the end of a session --------------------------------------------------------------------------------------------


async def test_a_shutdown_first_cancels_the_handlers_that_run() -> None:
    """Their dialogs end too, and they are reported as stopped.  Then the shutdown handlers run."""
    seen: list[str] = []

    async def forever(asked: object) -> bool:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("dialog closed")
        return True

    async def asking(event: ToolCall, ctx: HookContext) -> None:
        await ctx.ui.confirm("?")

    async def last_words(event: SessionEvent, ctx: HookContext) -> None:
        await checkpoint()
        seen.append("shutdown")

    hooks = [hook_on("tool_call", asking), hook_on("agent_start", hang, hang), hook_on("session", last_words)]
    runner, errors = runner_of(*hooks, ui=ScriptedUI(forever))
    verdicts: list[object] = []
    async with anyio.create_task_group() as tasks:

        async def judge() -> None:
            verdicts.append(await runner.emit(call_of()))

        tasks.start_soon(judge)
        tasks.start_soon(runner.emit, AgentStart())
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(PATIENCE):
            await runner.emit(SHUTDOWN)
    assert seen == ["dialog closed", "shutdown"]
    text = "was stopped, because the session ends"
    assert verdicts == [Block(text, by="hook.py", cause="failed")]
    assert [error.error for error in errors] == [text] * 3


async def test_a_shutdown_works_from_within_a_handler() -> None:
    """The handler that quits is not cancelled by its own shutdown, others are."""
    seen: list[str] = []

    async def quitting(event: AgentEnd, ctx: HookContext) -> None:
        await checkpoint()
        await runner.emit(SHUTDOWN)
        await checkpoint()
        seen.append("quit")

    runner, errors = runner_of(
        hook_on("agent_end", quitting),
        hook_on("tool_call", hang, path="b.py"),
        hook_on("session", lambda event, ctx: seen.append(event.reason), inline=True),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, call_of())
        await anyio.wait_all_tasks_blocked()
        await runner.emit(AgentEnd())
    assert seen == ["shutdown", "quit"]
    assert [error.hook_path for error in errors] == ["b.py"]


async def test_shutdown_handlers_have_one_deadline_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last handlers get the seconds that the first ones left.  A quick handler runs in any case."""
    assert SPECS["session:shutdown"].total == 5
    monkeypatch.setitem(SPECS, "session:shutdown", replace(SPECS["session:shutdown"], total=0.5))
    seen: list[str] = []

    async def slow(event: SessionEvent, ctx: HookContext) -> None:
        await anyio.sleep(0.1)
        seen.append("slow")

    async def quick(event: SessionEvent, ctx: HookContext) -> None:
        seen.append("quick")

    runner, errors = runner_of(hook_on("session", slow, hang, hang, quick))
    await runner.emit(SHUTDOWN)
    assert seen == ["slow", "quick"]
    limits = [float(error.error.removeprefix("timed out after ").removesuffix(" s")) for error in errors]
    assert 0.1 < limits[0] <= 0.4
    assert limits[1:] == [0.001]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_deadline_of_a_shutdown_goes_on_after_a_handler_that_was_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that would not stop has used the time up; it does not begin anew."""
    monkeypatch.setitem(SPECS, "session:shutdown", replace(SPECS["session:shutdown"], total=0.05))

    async def stubborn(event: SessionEvent, ctx: HookContext) -> None:
        while True:
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError:
                pass

    runner, errors = runner_of(hook_on("session", stubborn, path="bad.py"), hook_on("session", hang))
    await runner.emit(SHUTDOWN)
    assert ["did not stop when cancelled" in error.error for error in errors] == [True, False]
    assert errors[1].error == "timed out after 0.001 s"


async def test_a_shutdown_does_not_wait_for_ever_for_a_handler_that_will_not_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a moment the shutdown handlers run beside it; the moment counts as part of the time they have."""
    monkeypatch.setattr("agent_hooks.runner.clocks.DRAIN_TIMEOUT", 0.05)
    monkeypatch.setitem(SPECS, "session:shutdown", replace(SPECS["session:shutdown"], total=0.15))
    stop = anyio.Event()

    async def stubborn(event: object, ctx: HookContext) -> None:
        while not stop.is_set():
            with anyio.CancelScope(shield=True):
                try:
                    await stop.wait()
                except asyncio.CancelledError:  # asyncio cancels in spite of the shield
                    pass

    runner, errors = runner_of(hook_on("agent_start", stubborn), hook_on("session", hang))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        await anyio.wait_all_tasks_blocked()
        await runner.emit(SHUTDOWN)
        stop.set()
    assert errors[0].error.startswith("timed out after 0.0")


async def test_a_session_that_nobody_listens_to_still_stops_what_runs() -> None:
    """Shutting down is more than an event."""
    runner, errors = runner_of(hook_on("agent_start", hang))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, AgentStart())
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(PATIENCE):
            await runner.emit(SHUTDOWN)
    assert len(errors) == 1


async def test_a_blocked_session_action_is_a_cancel() -> None:
    """Stopped by a shutdown, an action with `on_error="block"` does not happen."""

    async def undecided(event: SessionEvent, ctx: HookContext) -> None:
        if event.reason == "before_clear":
            await anyio.sleep_forever()

    runner, _ = runner_of(hook_on("session", undecided, on_error="block"))
    results: list[object] = []
    async with anyio.create_task_group() as tasks:

        async def clear() -> None:
            results.append(await runner.emit(SessionEvent(reason="before_clear")))

        tasks.start_soon(clear)
        await anyio.wait_all_tasks_blocked()
        await runner.emit(SHUTDOWN)
    assert isinstance(results[0], Cancel)


async def test_a_former_version_tells_the_user_nothing_and_judges_at_each_call() -> None:
    """Its new version tells the same, and its dialogs and its denials remain."""

    async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        ctx.ui.notify("news")
        return None if await ctx.ui.confirm("run?", "it") else Block("no")

    ui = ScriptedUI(True, False)
    former = hook_on("tool_call", gate)
    former.former_of = "new.py"
    runner, errors = runner_of(former, ui=ui)
    assert await runner.emit(call_of()) is None
    assert isinstance(await runner.emit(call_of(tool="read")), Block)
    assert ([each.method for each in ui.asked], errors) == (["confirm"] * 2, [])
