"""How one event goes through its handlers: order, answers, failures, and every kind of callable and exception."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
import trio
from anyio import from_thread
from anyio.lowlevel import checkpoint

from agent_hooks import (
    AgentEnd,
    AgentStart,
    Ask,
    BeforeToolCall,
    Block,
    Cancel,
    Compaction,
    Continue,
    HookAPI,
    HookContext,
    HookRunner,
    LoadedHook,
    Replace,
    Rewrite,
    SessionEvent,
    SkipConversationRestore,
    ToolResult,
    TurnStart,
)
from agent_hooks.errors import describe, honest
from support import PATIENCE, call_of, everywhere, hook_of, hook_on, runner_of

LoadHook = Callable[..., Any]


# ---- order -----------------------------------------------------------------------------------------------------------


async def test_handlers_run_in_load_order_one_at_a_time_and_a_higher_priority_goes_first() -> None:
    """The order is priority, then hooks, then registration; no handler starts before the last one has ended."""
    seen: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        async def handler(event: AgentStart, ctx: HookContext) -> None:
            seen.append(f"{name} begins")
            await checkpoint()
            seen.append(f"{name} ends")

        return handler

    def late_but_important(api: HookAPI) -> None:
        api.on("agent_start", noting("b1"))
        api.on("agent_start", noting("b2"), priority=5)
        api.on("agent_start", noting("b3"), priority=-1)

    runner, errors = runner_of(hook_on("agent_start", noting("a1"), noting("a2")), hook_of(late_but_important, "b.py"))
    await runner.emit(AgentStart())
    assert seen == [f"{name} {step}" for name in ("b2", "a1", "a2", "b1", "b3") for step in ("begins", "ends")]
    assert not errors


async def test_a_handler_subscribed_during_a_dispatch_runs_from_the_next_one_on() -> None:
    """The handlers of a running dispatch are a snapshot; an undo takes effect at the next one too."""
    seen: list[str] = []

    def register(api: HookAPI) -> None:
        def third(event: AgentStart, ctx: HookContext) -> None:
            seen.append("third")

        def first(event: AgentStart, ctx: HookContext) -> None:
            seen.append("first")
            undo_first()
            undo_second()
            api.on("agent_start", third, inline=True)

        undo_first = api.on("agent_start", first, inline=True)
        undo_second = api.on("agent_start", lambda event, ctx: seen.append("second"), inline=True)

    runner, _ = runner_of(hook_of(register))
    await runner.emit(AgentStart())
    assert seen == ["first", "second"]
    await runner.emit(AgentStart())
    assert seen == ["first", "second", "third"]


# ---- answers ---------------------------------------------------------------------------------------------------------


async def test_an_answer_to_an_event_that_takes_none_is_reported_once_per_handler_and_ignored(
    load_hook: LoadHook,
) -> None:
    """Each handler that answers is told once in a run; an empty mapping is no answer."""
    hook = await load_hook("""
        def register(api):
            api.on("turn_start", lambda event, ctx: "hello", inline=True)
            api.on("turn_start", lambda event, ctx: {}, inline=True)
            @api.on("turn_start")
            async def other(event, ctx):
                return 7
    """)
    runner, errors = runner_of(hook)
    for _ in range(3):
        await runner.emit(TurnStart(turn_index=0, timestamp=0))
    assert [error.error for error in errors] == [
        "returned 'hello', but turn_start takes no answer; it is ignored",
        "returned 7, but turn_start takes no answer; it is ignored",
    ]
    assert {error.outcome for error in errors} == {"continued"}
    assert all(row.failures == 0 for row in runner.stats())


async def test_a_cancel_on_session_start_is_a_mistake_and_the_next_hook_still_sees_the_event() -> None:
    """`start` cannot be cancelled."""
    seen: list[str] = []
    runner, errors = runner_of(
        hook_on("session", lambda event, ctx: Cancel(), inline=True),
        hook_on("session", lambda event, ctx: seen.append(event.reason), path="b.py", inline=True),
    )
    assert await runner.emit(SessionEvent(reason="start")) is None
    assert seen == ["start"]
    [error] = errors
    assert (error.event, error.reason) == ("session", "start")
    assert "session handlers return AddContext" in error.error


async def test_the_first_cancel_of_before_clear_ends_the_dispatch() -> None:
    """B is not called when A has cancelled."""
    seen: list[str] = []
    runner, errors = runner_of(
        hook_on("session", lambda event, ctx: {"cancel": True, "reason": "busy"}, inline=True),
        hook_on("session", lambda event, ctx: seen.append(event.reason), path="b.py", inline=True),
    )
    assert await runner.emit(SessionEvent(reason="before_clear")) == Cancel("busy")
    assert not seen
    assert not errors


@pytest.mark.parametrize(
    ("first", "second", "outcome", "conflicts"),
    [
        ({"cancel": False}, {"skipConversationRestore": True}, SkipConversationRestore(), 0),
        ({"skipConversationRestore": False}, {"skipConversationRestore": True}, SkipConversationRestore(), 1),
        (SkipConversationRestore(), SkipConversationRestore(), SkipConversationRestore(), 0),
        (SkipConversationRestore(), Cancel(), Cancel(), 0),
    ],
)
async def test_on_before_branch_the_later_answer_wins_and_a_conflict_is_reported(
    first: object, second: object, outcome: object, conflicts: int
) -> None:
    """`{"cancel": false}` is no opinion; two different opinions are told to the listeners."""
    runner, errors = runner_of(
        hook_on("session", lambda event, ctx: first, inline=True),
        hook_on("session", lambda event, ctx: second, path="b.py", inline=True),
    )
    assert await runner.emit(SessionEvent(reason="before_branch")) == outcome
    assert len(errors) == conflicts
    assert all("the later one counts" in error.error for error in errors)


async def test_on_agent_end_the_first_answer_wins_and_all_handlers_hear_of_it() -> None:
    """The end reaches every handler that saw the start.  The answer is signed with the hook's path."""
    seen: list[int] = []
    runner, errors = runner_of(
        hook_on("agent_end", lambda event, ctx: {"continue": "first"}, lambda event, ctx: Continue("x"), inline=True),
        hook_on("agent_end", lambda event, ctx: Continue("second", by="me"), path="b.py", inline=True),
        hook_on("agent_end", lambda event, ctx: seen.append(event.continued), path="c.py", inline=True),
    )
    assert await runner.emit(AgentEnd(continued=2)) == Continue("first", "hook.py")
    assert seen == [2]
    assert not errors


async def test_on_before_compact_the_last_entry_wins() -> None:
    """Two hooks that summarise differently are a conflict, and the later one counts."""
    runner, errors = runner_of(
        hook_on(
            "session",
            lambda event, ctx: Compaction("first", 1, 10),
            lambda event, ctx: {"compactionEntry": {"summary": "last", "firstKeptEntryIndex": 2, "tokensBefore": 10}},
            inline=True,
        )
    )
    assert await runner.emit(SessionEvent(reason="before_compact")) == Compaction("last", 2, 10)
    assert len(errors) == 1


async def test_rewrites_chain_and_the_outcome_names_everyone_who_rewrote() -> None:
    """Each handler sees the input as the one before left it; an ask beside it keeps the final input."""
    seen: list[str] = []

    def adding(text: str) -> Callable[..., Any]:
        def handler(event: BeforeToolCall, ctx: HookContext) -> Rewrite:
            seen.append(event.params["command"])
            return Rewrite({"command": event.params["command"] + text})

        return handler

    event = BeforeToolCall(tool_name="bash", params={"command": "ls"})
    runner, errors = runner_of(
        hook_on("before_tool_call", adding(" a"), adding(" b"), path="a.py", inline=True),
        hook_on("before_tool_call", lambda event, ctx: Ask("sure?"), path="b.py", inline=True),
        hook_on("before_tool_call", adding(" c"), path="c.py", inline=True),
        hook_on("before_tool_call", lambda event, ctx: Ask("really?"), path="d.py", inline=True),
    )
    answer = await runner.emit(event)
    assert isinstance(answer, Ask)
    assert (answer.by, [other.by for other in answer.also]) == ("b.py", ["d.py"])
    assert answer.rewrite == Rewrite({"command": "ls a b c"}, by=("a.py", "c.py"))
    assert seen == ["ls", "ls a", "ls a b"]
    assert not errors


async def test_replacements_merge_by_field() -> None:
    """The outcome has the changed fields only."""
    event = ToolResult(tool_name="bash", tool_call_id="1", input={}, content="secret", details={"a": 1})
    runner, _ = runner_of(
        hook_on(
            "tool_result",
            lambda event, ctx: Replace(content=event.content[0].text.upper()),
            lambda event, ctx: {"content": event.content[0].text + "!"},
            lambda event, ctx: {"isError": True},
            inline=True,
        )
    )
    assert await runner.emit(event) == Replace(content="SECRET!", is_error=True)


async def test_only_the_runner_says_who_blocked() -> None:
    """The runner overwrites the `by` and `cause` of a handler's answer."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: Block("no", by="root", cause="user"), inline=True))
    assert await runner.emit_tool_call(call_of()) == Block("no", by="hook.py", cause="hook")


# ---- failures --------------------------------------------------------------------------------------------------------


async def test_a_raising_handler_is_reported_once_and_the_next_one_runs(load_hook: LoadHook) -> None:
    """The report has hook, handler, event, traceback and elapsed time; emit returns as if nothing had been."""
    hook = await load_hook("""
        import anyio
        seen = []
        def register(api):
            @api.on("agent_end")
            async def broken(event, ctx):
                await anyio.sleep(0)
                raise ValueError("boom")
            @api.on("agent_end")
            async def fine(event, ctx):
                seen.append(event.type)
    """)
    runner, errors = runner_of(hook)
    await runner.emit(AgentEnd())
    assert hook.module.seen == ["agent_end"]
    [error] = errors
    assert error.hook_path == hook.path
    assert (error.handler, error.event, error.outcome) == ("broken", "agent_end", "continued")
    assert error.error == "ValueError: boom"
    assert isinstance(error.exception, ValueError)
    assert "hook.py" in error.traceback
    assert 'raise ValueError("boom")' in error.traceback
    assert 0 < error.elapsed < 5


async def test_a_raising_error_listener_is_logged_and_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The other listeners hear of the failure and the other handlers run."""
    seen: list[str] = []
    runner = HookRunner(
        [hook_on("agent_start", lambda event, ctx: 1 / 0, lambda event, ctx: seen.append("next"), inline=True)], cwd="."
    )

    def broken_listener(error: object) -> None:
        raise RuntimeError("listener broke")

    runner.on_error(broken_listener)
    runner.on_error(lambda error: seen.append(error.error))
    with caplog.at_level(logging.ERROR, logger="agent_hooks"):
        await runner.emit(AgentStart())
    assert seen == ["ZeroDivisionError: division by zero", "next"]
    assert "listener broke" in caplog.text


@pytest.mark.parametrize("suspends", [False, True])
async def test_a_handlers_own_timeout_error_is_an_error_and_not_a_timeout(suspends: bool) -> None:
    """The clock is asked whether it expired, not the exception."""

    async def handler(event: AgentStart, ctx: HookContext) -> None:
        if suspends:
            with anyio.fail_after(0.001):
                await anyio.sleep_forever()
        raise TimeoutError("mine")

    runner, errors = runner_of(hook_on("agent_start", handler))
    await runner.emit(AgentStart())
    [error] = errors
    assert error.error.startswith("TimeoutError")
    assert isinstance(error.exception, TimeoutError)


async def test_on_error_decides_whether_a_failure_blocks() -> None:
    """A session action goes on unless the author says `block`; a gate blocks unless the author says `continue`."""

    def broken(event: object, ctx: HookContext) -> None:
        raise ValueError("boom")

    event = SessionEvent(reason="before_clear")
    assert await runner_of(hook_on("session", broken, inline=True))[0].emit(event) is None
    runner, errors = runner_of(hook_on("session", broken, on_error="block", inline=True))
    assert await runner.emit(event) == Cancel("hook hook.py: ValueError: boom")
    assert errors[0].outcome == "blocked"
    runner, errors = runner_of(hook_on("tool_call", broken, on_error="continue", inline=True))
    assert await runner.emit(call_of()) is None
    assert errors[0].outcome == "continued"


class RaisingClassError(Exception):
    """An exception that raises when its class is asked."""

    @property  # type: ignore[misc]  # the lie
    def __class__(self) -> Any:
        raise ValueError("no class")


class PretendingError(Exception):
    """An exception that says it is Ctrl-C."""

    @property  # type: ignore[misc]  # the lie
    def __class__(self) -> Any:
        return KeyboardInterrupt


NASTY: list[Callable[[], BaseException]] = [
    RaisingClassError,
    PretendingError,
    # The class has no public constructor.
    lambda: trio.Cancelled.__new__(trio.Cancelled),
    asyncio.CancelledError,
    GeneratorExit,
    lambda: SystemExit(0),
    StopIteration,
    StopAsyncIteration,
    RecursionError,
    lambda: BaseExceptionGroup("group", [KeyError("inner")]),
]


@pytest.mark.parametrize("nasty", NASTY, ids=lambda make: type(make()).__name__)
@pytest.mark.parametrize("where", ["first step", "after a suspension", "inline", "thread"])
@everywhere
async def test_whatever_a_gate_raises_blocks(nasty: Callable[[], BaseException], where: str) -> None:
    """No exception of a handler leaves `emit`, whenever and wherever it is raised."""

    async def at_once(event: object, ctx: HookContext) -> None:
        raise nasty()

    async def later(event: object, ctx: HookContext) -> None:
        await checkpoint()
        raise nasty()

    def plain(event: object, ctx: HookContext) -> None:
        raise nasty()

    handler = {"first step": at_once, "after a suspension": later}.get(where, plain)
    runner, errors = runner_of(hook_on("tool_call", handler, inline=where == "inline"))
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert (verdict.by, verdict.cause) == ("hook.py", "failed")
    assert len(errors) == 1
    await checkpoint()  # nothing of it is left in the task


@pytest.mark.parametrize("inline", [False, True])
@everywhere
async def test_a_gate_whose_results_are_awaitable_without_an_end_blocks(inline: bool) -> None:
    """Such a chain never suspends, so no deadline could end it."""

    async def again() -> Any:
        return again()

    def gate(event: object, ctx: HookContext) -> Any:
        return again()

    runner, errors = runner_of(hook_on("tool_call", gate, inline=inline))
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert errors[0].error == "returned an awaitable whose result was awaitable again, 100 times"


def test_an_exception_that_lies_about_its_class_is_named() -> None:
    """The report names the class that it really has, and keeps the traceback."""
    lie = PretendingError("x")
    named = honest(lie.with_traceback(None))
    assert describe(named) == "RuntimeError: raised an exception that lies about its class: PretendingError"
    true = ValueError("x")
    assert honest(true) is true


@pytest.mark.parametrize("suspends", [False, True])
@everywhere
async def test_a_keyboard_interrupt_passes_through_an_async_handler(suspends: bool) -> None:
    """Ctrl-C belongs to the program, not to the handler it happens to hit."""

    async def handler(event: object, ctx: HookContext) -> None:
        if suspends:
            await checkpoint()
        raise KeyboardInterrupt

    runner, errors = runner_of(hook_on("tool_call", handler))
    with pytest.raises(KeyboardInterrupt):
        await runner.emit(call_of())
    assert not errors


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("suspends", [False, True])
async def test_a_handlers_own_cancelled_error_blocks_also_while_the_task_is_being_cancelled(suspends: bool) -> None:
    """Under a shield, in a scope that is cancelled, only a cancellation from outside is passed on."""

    async def handler(event: object, ctx: HookContext) -> None:
        if suspends:
            await checkpoint()
        raise asyncio.CancelledError

    runner, _ = runner_of(hook_on("tool_call", handler))
    verdict = None
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancel_that_a_handler_requests_before_it_suspends_ends_the_emit() -> None:
    """asyncio delivers such a cancellation at the first suspension; it is a cancellation of the task and no error."""

    async def handler(event: object, ctx: HookContext) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    runner, errors = runner_of(hook_on("tool_call", handler))
    task = asyncio.ensure_future(runner.emit(call_of()))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not errors


# ---- every kind of callable ------------------------------------------------------------------------------------------


async def _block_after(number: int, event: object, ctx: HookContext) -> Block:
    await checkpoint()
    return Block(str(number))


class _Object:
    async def __call__(self, event: object, ctx: HookContext) -> Block:
        return await _block_after(1, event, ctx)

    async def method(self, event: object, ctx: HookContext) -> Block:
        return await _block_after(1, event, ctx)


class _Awaitable:
    def __await__(self) -> Any:
        return _block_after(1, None, None).__await__()  # type: ignore[arg-type]  # a context it does not look at


@pytest.mark.parametrize(
    "handler",
    [
        _Object(),
        functools.partial(_block_after, 1),
        functools.partial(functools.partial(_block_after), 1),
        functools.partial(_Object()),
        _Object().method,
        lambda event, ctx: _block_after(1, event, ctx),
        lambda event, ctx: _Awaitable(),
    ],
    ids=["object", "partial", "nested partial", "partial of an object", "bound method", "async lambda", "awaitable"],
)
@everywhere
async def test_every_kind_of_async_callable_is_awaited(handler: Callable[..., Any]) -> None:
    """An awaitable answer is awaited, however the function was written."""
    runner, errors = runner_of(hook_on("tool_call", handler))
    assert await runner.emit(call_of()) == Block("1", by="hook.py")
    assert not errors


@everywhere
async def test_an_async_generator_as_a_handler_is_a_failure() -> None:
    """A `yield` slipped into an async handler must not open a gate."""

    async def handler(event: object, ctx: HookContext) -> AsyncIterator[Block]:
        yield Block()

    runner, errors = runner_of(hook_on("tool_call", handler))
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert verdict.cause == "failed"
    assert "wrong answer" in errors[0].error


# ---- emits within a dispatch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["handler", "task of the handler", "background task", "thread"])
@everywhere
async def test_an_emit_within_a_handler_runs_at_once(where: str) -> None:
    """The handler holds the lane its own emit would wait for; that must not be a deadlock."""
    seen: list[str] = []
    api_of: list[HookAPI] = []

    def register(api: HookAPI) -> None:
        api_of.append(api)
        api.on("agent_end", lambda event, ctx: seen.append("nested"), inline=True)

    async def emit() -> None:
        await runner.emit(AgentEnd())

    async def outer(event: AgentStart, ctx: HookContext) -> None:
        if where == "handler":
            await emit()
        elif where == "task of the handler":
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(emit)
        else:
            done = anyio.Event()

            async def background() -> None:
                await emit()
                done.set()

            api_of[0].start_task(background)
            await done.wait()
        seen.append("outer")

    def threaded(event: AgentStart, ctx: HookContext) -> None:
        from_thread.run(emit)
        seen.append("outer")

    hooks: list[LoadedHook] = [hook_of(register), hook_on("agent_start", threaded if where == "thread" else outer)]
    runner, errors = runner_of(*hooks)
    with anyio.fail_after(PATIENCE):
        async with runner:
            await runner.emit(AgentStart())
    assert seen == ["nested", "outer"]
    assert not errors


async def test_a_failing_nested_emit_is_the_nested_handlers_failure() -> None:
    """The outer dispatch goes on as if nothing had been."""

    async def outer(event: AgentStart, ctx: HookContext) -> None:
        await runner.emit(AgentEnd())
        await checkpoint()

    runner, errors = runner_of(
        hook_on("agent_start", outer), hook_on("agent_end", lambda event, ctx: 1 / 0, path="b.py", inline=True)
    )
    await runner.emit(AgentStart())
    assert [(error.hook_path, error.event) for error in errors] == [("b.py", "agent_end")]


@everywhere
async def test_an_emit_that_is_closed_in_mid_handler_leaves_nothing_behind() -> None:
    """The handler's `finally` runs, no failure is reported, and the lane is free again."""
    seen: list[str] = []

    async def handler(event: AgentStart, ctx: HookContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cleaned")

    runner, errors = runner_of(hook_on("agent_start", handler))
    for _ in range(2):
        coroutine = runner.emit(AgentStart())
        coroutine.send(None)
        coroutine.close()
    assert seen == ["cleaned", "cleaned"]
    assert not errors
    await checkpoint()
