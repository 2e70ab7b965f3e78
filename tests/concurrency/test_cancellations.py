"""A cancellation of the program reaches its own scope, also if a handler raises another exception at it."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import trio

from agent_hooks import AgentEnd
from agent_hooks.concurrency.deadlines import INF
from agent_hooks.concurrency.deadlines.asyncio import AsyncioClock, _cancellation_behind
from agent_hooks.concurrency.deadlines.trio import TrioCallWatch
from support import PATIENCE, call_of, hook_on, on_asyncio, runner_of

pytestmark = pytest.mark.anyio


async def test_an_error_at_a_cancellation_does_not_hide_it_from_the_programs_scope() -> None:
    """The gate has no deadline, so the program cancels the call; its scope takes the cancellation."""
    began = anyio.Event()

    async def raises(event: Any, ctx: Any) -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("mine")

    runner, _ = runner_of(hook_on("tool_call", raises))
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_after, began, scope)
            await runner.emit(call_of())
            # On trio, the cancellation comes again at the next checkpoint.
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught


@on_asyncio
async def test_a_handler_that_leaves_the_scope_of_its_caller_leaves_no_other_one() -> None:
    """It has failed; the next handler has not, and the scope around stays in force."""
    with anyio.CancelScope() as around:
        inner = anyio.CancelScope()
        inner.__enter__()

        async def leave(event: Any, ctx: Any) -> None:
            inner.__exit__(None, None, None)

        async def next_one(event: Any, ctx: Any) -> None:
            await anyio.sleep(0)

        runner, errors = runner_of(hook_on("agent_end", leave, next_one))
        await runner.emit(AgentEnd(messages=()))
        await anyio.sleep(0)
        assert [error.handler.rpartition(".")[2] for error in errors] == ["leave"]
    assert not around.cancel_called


async def test_without_a_task_no_scopes_are_watched() -> None:
    """A coroutine may be driven by hand after an event loop, or by a callback of one."""
    clocks = [AsyncioClock(INF, set()), AsyncioClock(INF, set())]

    async def in_callback() -> None:
        asyncio.get_running_loop().call_soon(clocks[1].watch_scopes)
        await asyncio.sleep(0)

    def in_thread() -> None:
        clocks[0].watch_scopes()
        asyncio.run(in_callback())

    await anyio.to_thread.run_sync(in_thread)
    assert [(clock.watching, clock.left_open()) for clock in clocks] == [(False, False)] * 2


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_a_watch_that_ends_leaves_the_scopes_inside_of_it() -> None:
    """A tool may leave one open."""
    with trio.CancelScope() as around:
        watch = TrioCallWatch(set())
        inner = trio.CancelScope()
        inner.__enter__()
        watch.close()
        inner.cancel()
        await trio.lowlevel.checkpoint()
    assert not around.cancel_called


async def _cancel_after(began: anyio.Event, scope: anyio.CancelScope) -> None:
    with anyio.fail_after(PATIENCE):
        await began.wait()
    scope.cancel()


def test_the_cancellation_behind_an_exception_is_found() -> None:
    """In a chain of contexts, also in one that goes round."""
    cancelled, first, second = asyncio.CancelledError("x"), ValueError(), TypeError()
    first.__context__, second.__context__ = cancelled, first
    assert _cancellation_behind(second) is cancelled
    first.__context__ = second
    assert _cancellation_behind(second) is None
    assert _cancellation_behind(None) is None
