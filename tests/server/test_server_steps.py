"""Coroutines that begin without an event loop, and go on as tasks."""

from __future__ import annotations

import anyio
import pytest

from agent_hooks.server.steps import Steps, first_step, in_task, rest_of


async def add(one: int, two: int, *, wait: bool) -> int:
    """Return a sum, at once or after a while."""
    if wait:
        await in_task()
        await anyio.sleep(0)
    return one + two


def test_what_waits_for_nothing_is_done_in_one_step() -> None:
    """There is no event loop here."""
    assert first_step(add(1, 2, wait=False)) == (3,)


async def test_what_has_begun_goes_on_as_a_task() -> None:
    """The step before the first wait is not taken again."""
    adding = add(1, 2, wait=True)
    assert first_step(adding) is None
    assert await rest_of(adding) == 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_is_a_task_already_may_say_that_it_needs_one() -> None:
    """The server's loop is asyncio's."""
    assert await add(3, 4, wait=True) == 7


async def test_a_rest_can_be_cancelled() -> None:
    """As any other task."""

    async def wait() -> None:
        await in_task()
        await anyio.sleep_forever()

    waiting = wait()
    first_step(waiting)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await rest_of(waiting)
    assert scope.cancelled_caught


async def test_what_comes_before_the_tasks_waits_for_them() -> None:
    """And what comes after begins at once."""
    steps = Steps()
    done: list[str] = []

    async def note(text: str) -> None:
        done.append(text)

    steps.later(note, "before")
    assert len(steps.waiting) == 1
    async with anyio.create_task_group() as tasks:
        steps.use(tasks)
        steps.later(note, "after")
    assert done == ["before", "after"]
    assert not steps.waiting


async def test_an_exception_comes_out_of_either_half() -> None:
    """Nothing is lost."""

    async def fail(*, wait: bool) -> None:
        if wait:
            await in_task()
        raise ValueError("so there")

    with pytest.raises(ValueError, match="so there"):
        first_step(fail(wait=False))
    failing = fail(wait=True)
    first_step(failing)
    with pytest.raises(ValueError, match="so there"):
        await rest_of(failing)
