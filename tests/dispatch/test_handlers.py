"""A handler: how it is called, its policy, its statistics, and the answer it forgot to await."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from agent_hooks import AgentEnd, Block, HookContext
from agent_hooks.dispatch.context import Awaited, Pending
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.loop import policy
from agent_hooks.dispatch.stats import _KEPT, Stats
from agent_hooks.dispatch.table import SPECS
from agent_hooks.testing import ScriptedUI
from support import call_of, hook_on, on_asyncio, runner_of


class Callable_:
    """An object that is called like an `async def`."""

    async def __call__(self, event: object, ctx: object) -> None: ...


async def coroutine(event: object, ctx: object) -> None: ...


def plain(event: object, ctx: object) -> None: ...


def handler_of(function: Callable[..., Any], **options: Any) -> Handler:
    """Return a handler that is in no hook."""
    return Handler(function, hook="hook.py", label="hook", event="agent_end", **options)


@pytest.mark.parametrize(
    ("function", "inline", "threaded", "direct"),
    [
        (plain, False, True, True),
        (plain, True, False, False),
        (coroutine, False, False, True),
        (coroutine, True, False, True),
        (partial(coroutine), False, False, False),
        (partial(partial(Callable_())), False, False, False),
        (Callable_(), False, False, False),
        (partial(plain), False, True, True),
    ],
)
def test_only_plain_functions_get_a_thread(
    function: Callable[..., Any], inline: bool, threaded: bool, direct: bool
) -> None:
    """An `async def` is recognised through partials and `__call__`; `direct` handlers return a coroutine for sure."""
    handler = handler_of(function, inline=inline)
    assert (handler.threaded, handler.direct) == (threaded, direct)


def test_a_replaced_function_is_called_inline() -> None:
    """The statistics stay with the handler."""
    for handler in (handler_of(plain), handler_of(coroutine)):
        other = handler.replaced_by(plain)
        assert (other.threaded, other.direct) == (False, False)
        assert other.call is other.function is plain
        assert other.stats is handler.stats


def test_a_handler_of_an_event_that_cannot_be_blocked_never_blocks() -> None:
    """Its own policy does not count there."""
    assert policy(handler_of(plain, on_error="block"), SPECS["agent_end"]) == "continue"
    assert policy(handler_of(plain, on_error="continue"), SPECS["tool_call"]) == "continue"
    assert policy(handler_of(plain), SPECS["tool_call"]) == "block"


def test_the_median_is_of_the_last_durations() -> None:
    """The oldest duration goes when a new one comes; the maximum is of all."""
    stats = Stats()
    for _ in range(_KEPT):
        stats.add(2.0)
    for _ in range(_KEPT // 2):
        stats.add(1.0)
    assert (stats.p50, stats.max) == (2.0, 2.0)
    stats.add(1.0)
    stats.add(1.0)
    assert (stats.p50, stats.max) == (1.0, 2.0)


def measured(stats: Stats, calls: int) -> dict[int, bool]:
    """Count calls as the one loop does; return the numbers of the measured ones, and whether each is watched."""
    found = {}
    for _ in range(calls):
        stats.left -= 1
        if not stats.left:
            number = stats.count
            found[number] = stats.begin_measured()
            assert stats.count == number
    return found


def test_the_first_calls_and_every_32nd_are_measured_and_their_count_is_exact() -> None:
    """The scopes of 1, 2, 4 and so on and of each 1024th are watched."""
    stats = Stats()
    found = measured(stats, 3100)
    assert list(found) == [1, 2, 4, 8, 16, *range(32, 3101, 32)]
    assert [number for number, watched in found.items() if watched] == [
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        512,
        1024,
        2048,
        3072,
    ]
    assert stats.count == 3100


@pytest.mark.parametrize("before", [0, 1, 2, 7, 40])
def test_once_all_calls_are_measured_none_is_left_out(before: int) -> None:
    """The count stays exact."""
    stats = Stats()
    measured(stats, before)
    stats.measure_all()
    assert stats.count == before
    assert measured(stats, 3) == dict.fromkeys(range(before + 1, before + 4), True)
    assert stats.count == before + 3


def test_an_answer_that_is_closed_ends_its_dialog() -> None:
    """One that has not begun has nothing to end."""
    ended: list[str] = []

    class Suspension:
        def __await__(self) -> Any:
            yield

    async def dialog() -> bool:
        try:
            await Suspension()
        finally:
            ended.append("dialog")
        return True

    answer: Pending[bool] = Pending(Awaited("ctx.ui.confirm(...)", ""), dialog, [])
    answer.close()
    assert ended == []
    answer.send(None)
    answer.close()
    assert ended == ["dialog"]


@on_asyncio
async def test_an_answer_that_a_stopped_handler_forgot_is_not_the_next_handlers_fault() -> None:
    """Each handler after a stop gets a context of its own."""

    async def late(event: object, ctx: HookContext) -> None:
        try:
            await anyio.sleep_forever()
        except BaseException:
            ctx.ui.confirm("Sure?", "")

    async def next_one(event: object, ctx: HookContext) -> None: ...

    runner, errors = runner_of(hook_on("agent_end", late, next_one), timeout=0.02, ui=ScriptedUI())
    await runner.emit(AgentEnd())
    assert [error.handler for error in errors] == ["late"]


@on_asyncio
async def test_no_gate_is_called_after_one_that_blocks_because_it_did_not_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event ends with the block."""
    monkeypatch.setattr("agent_hooks.concurrency.deadlines.asyncio.GRACE", 0.1)
    calls: list[str] = []

    async def stubborn(event: object, ctx: HookContext) -> None:
        while True:
            try:
                await anyio.sleep(0.2)
            except asyncio.CancelledError:
                pass

    async def next_gate(event: object, ctx: HookContext) -> None:
        calls.append("next")

    hooks = [hook_on("tool_call", stubborn), hook_on("tool_call", next_gate, path="b.py")]
    runner, _ = runner_of(*hooks, tool_call_timeout=0.02)
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert verdict.cause == "timed_out"
    assert calls == []


def test_a_handler_is_silenced_once() -> None:
    """`silence` is called at each lookup of handlers, and must not wrap the handler again."""
    silent = handler_of(lambda event, ctx: None)
    silent.silence()
    call = silent.call
    silent.silence()
    assert silent.call is call
