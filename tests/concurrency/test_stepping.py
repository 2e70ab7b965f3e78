"""Coroutines that begin without an event loop, and go on as tasks."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

import anyio
import pytest

from agent_hooks.concurrency.stepping import event_loop, first_step, rest_of, resume, run

T = TypeVar("T")
either = pytest.mark.parametrize("backend", ["asyncio", "trio"])


async def rest(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of the rest.  trio runs coroutines only."""
    return await rest_of(coroutine)


async def add(one: int, two: int, *, wait: bool) -> int:
    """Return a sum, at once or after a while."""
    if wait:
        await event_loop()
        await anyio.sleep(0)
    return one + two


def test_what_waits_for_nothing_is_done_in_one_step() -> None:
    """There is no event loop here."""
    assert first_step(add(1, 2, wait=False)) == (3,)
    assert run(add(1, 2, wait=False)) == 3


@either
def test_what_has_begun_goes_on_as_a_task(backend: str) -> None:
    """Where it stopped."""
    adding = add(1, 2, wait=True)
    assert first_step(adding) is None
    assert anyio.run(rest, adding, backend=backend) == 3


@either
def test_what_is_a_task_already_just_goes_on(backend: str) -> None:
    """Though it says that it wants an event loop."""

    async def together() -> int:
        return await add(3, 4, wait=True)

    assert anyio.run(together, backend=backend) == 7


def test_a_run_starts_an_event_loop_once_it_is_wanted() -> None:
    """And says so just before."""
    said: list[str] = []
    assert run(add(1, 2, wait=True), ready=lambda: said.append("now")) == 3
    assert said == ["now"]


@either
def test_a_rest_can_be_cancelled(backend: str) -> None:
    """As any other task."""

    async def wait() -> None:
        await event_loop()
        await anyio.sleep_forever()

    waiting = wait()
    first_step(waiting)

    async def cancel() -> bool:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await rest_of(waiting)
        return scope.cancelled_caught

    assert anyio.run(cancel, backend=backend)


@either
def test_an_exception_comes_out_of_either_half(backend: str) -> None:
    """Nothing is lost."""

    async def fail(*, wait: bool) -> None:
        if wait:
            await event_loop()
        raise ValueError("so there")

    with pytest.raises(ValueError, match="so there"):
        first_step(fail(wait=False))
    failing = fail(wait=True)
    first_step(failing)
    with pytest.raises(ValueError, match="so there"):
        anyio.run(rest, failing, backend=backend)


def _two_waits(log: list[object]) -> Generator[Any, Any, None]:
    """Wait twice and log how each wait ends."""
    try:
        for number in (1, 2):
            try:
                log.append((yield number))
            except ValueError as exc:
                log.append(exc)
    finally:
        log.append("over")


@pytest.mark.parametrize("first", [None, "value", ValueError("thrown")], ids=["none", "value", "exception"])
def test_a_resumed_generator_gets_the_values_and_exceptions_that_are_sent_to_its_awaiter(first: object) -> None:
    """At the wait that was taken by hand, and at the next one."""
    log: list[object] = []
    steps = _two_waits(log)
    rest = resume(steps, next(steps))
    assert rest.send(None) == 1
    assert (rest.throw(first) if isinstance(first, ValueError) else rest.send(first)) == 2
    with pytest.raises(StopIteration):
        rest.send("second")
    assert log == [first, "second", "over"]


def test_a_generator_is_closed_with_the_awaiter_that_resumes_it() -> None:
    """Nothing of it is left to the garbage collector."""
    log: list[object] = []
    steps = _two_waits(log)
    rest = resume(steps, next(steps))
    rest.send(None)
    rest.close()
    assert log == ["over"]
