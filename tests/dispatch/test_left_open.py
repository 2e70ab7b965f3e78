"""A handler that ends inside of a cancel scope or task group has failed, and no cancellation reaches the agent later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import anyio
import pytest
import sniffio
import trio

from agent_hooks import Block, ToolResult, wrap_tool
from support import PATIENCE, EchoTool, Endless, call_of, everywhere, hook_on, runner_of

pytestmark = [pytest.mark.anyio, everywhere]
# Python closes the context managers that the handlers leave, and complains of them.
pytestmark.append(pytest.mark.filterwarnings("ignore"))

TOOL_RESULT = ToolResult(tool_name="bash", tool_call_id="1", input={"command": "ls"}, content="done", is_error=False)
LEFT = "ended inside of a cancel scope or task group that it had entered; enter these by `with`"
kept: list[Any] = []


@pytest.fixture(autouse=True)
def _keep() -> Iterator[None]:
    """Keep the scopes, which a hook may keep too."""
    yield
    kept.clear()


def enter() -> anyio.CancelScope:
    """Enter a scope that is never left."""
    scope = anyio.CancelScope()
    scope.__enter__()
    kept.append(scope)
    return scope


async def begin() -> Any:
    """Begin a task group that never ends."""
    group = anyio.create_task_group()
    await group.__aenter__()
    kept.append(group)
    return group


async def scope(event: object, ctx: object) -> None:
    """Leave a scope open."""
    enter()


async def cancelled_scope(event: object, ctx: object) -> None:
    """Leave a scope open that was cancelled."""
    enter().cancel()


async def deadline(event: object, ctx: object) -> None:
    """Leave a scope open whose deadline is near."""
    enter().deadline = anyio.current_time() + 0.01
    await anyio.sleep(0)


async def cancelled_within(event: object, ctx: object) -> None:
    """End by the cancellation of a scope that was left open."""
    enter().cancel()
    await anyio.sleep(0)


async def raising(event: object, ctx: object) -> None:
    """Fail with a scope open."""
    enter().cancel()
    raise ValueError("mine")


async def group(event: object, ctx: object) -> None:
    """Leave a task group open with a task that never ends."""
    (await begin()).start_soon(anyio.sleep_forever)


async def failing_group(event: object, ctx: object) -> None:
    """Leave a task group open with a task that fails."""

    async def fail() -> None:
        raise ValueError("in the task")

    (await begin()).start_soon(fail)
    await anyio.sleep(0)


async def nested(event: object, ctx: object) -> None:
    """Leave scopes and groups open in one another."""
    enter()
    outer = await begin()
    enter()
    (await begin()).start_soon(anyio.sleep_forever)
    outer.start_soon(anyio.sleep_forever)
    outer.cancel_scope.cancel()


LEAVING = [scope, cancelled_scope, deadline, cancelled_within, raising, group, failing_group, nested]


@pytest.mark.parametrize("handler", LEAVING)
@pytest.mark.parametrize("event", ["tool_result", "after_tool_call"])
async def test_an_observer_that_leaves_a_scope_open_loses_no_result(event: str, handler: Callable[..., Any]) -> None:
    """The result is the tool's, the observer is reported, and the agent goes on: also in the next call."""
    runner, errors = runner_of(hook_on(event, handler))
    tool = wrap_tool(EchoTool(), runner)
    for number in range(3):
        assert (await tool.execute("1", {"command": "ls"})).text == "ran ls"
        await anyio.sleep(0.02)
        assert [error.error for error in errors] == [f"LeftOpenError: {LEFT}"] * (number + 1)
        assert errors[-1].outcome == "continued"


@pytest.mark.parametrize("handler", LEAVING)
async def test_a_gate_that_leaves_a_scope_open_blocks_and_the_agent_goes_on(handler: Callable[..., Any]) -> None:
    """It has failed, as any gate that raises."""
    runner, errors = runner_of(hook_on("tool_call", handler))
    echo = EchoTool()
    tool = wrap_tool(echo, runner)
    for _ in range(3):
        assert LEFT in (await tool.execute("1", {"command": "ls"})).text
        await anyio.sleep(0.02)
    assert (len(errors), echo.inputs) == (3, [])


async def test_the_handlers_after_it_see_the_event_and_their_deadline_holds() -> None:
    """The next handler is called in scopes that are not cancelled."""
    seen = []

    async def next_one(event: object, ctx: object) -> None:
        await anyio.sleep(0.01)
        seen.append(event)

    runner, errors = runner_of(hook_on("after_tool_call", nested, next_one, Endless(), next_one), timeout=0.2)
    assert (await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})).text == "ran ls"
    assert len(seen) == 2
    assert [error.error for error in errors] == [f"LeftOpenError: {LEFT}", "timed out after 0.2 s"]


async def test_the_caller_can_still_cancel_the_call_and_leave_its_own_scopes() -> None:
    """The scopes around the call are whole afterwards."""
    runner, _ = runner_of(hook_on("tool_result", nested), hook_on("after_tool_call", nested))
    tool = wrap_tool(EchoTool(), runner)
    async with anyio.create_task_group() as around:
        with anyio.CancelScope() as inner:
            assert (await tool.execute("1", {"command": "ls"})).text == "ran ls"
            inner.cancel()
            await anyio.sleep_forever()
        assert inner.cancelled_caught
        with anyio.move_on_after(0.01) as limit:
            await anyio.sleep_forever()
        assert limit.cancelled_caught
        around.start_soon(anyio.sleep, 0)


async def test_the_tasks_of_a_group_that_was_left_open_end() -> None:
    """They are cancelled with their group."""
    ended = anyio.Event()

    async def run() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def leave(event: object, ctx: object) -> None:
        (await begin()).start_soon(run)
        await anyio.sleep(0)

    runner, _ = runner_of(hook_on("after_tool_call", leave))
    await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
    with anyio.fail_after(PATIENCE):
        await ended.wait()


async def test_a_scope_of_trio_itself_counts_too(anyio_backend_name: str) -> None:
    """On asyncio, a scope that the handler leaves again is no failure."""

    async def leave(event: object, ctx: object) -> None:
        if anyio_backend_name == "trio":
            kept.append(trio.CancelScope())
            kept[-1].__enter__()
            kept[-1].cancel()
        else:
            async with asyncio.timeout(1), asyncio.TaskGroup() as tasks:
                tasks.create_task(asyncio.sleep(0))
            with anyio.CancelScope() as inner:
                inner.cancel()
                await anyio.sleep(1)

    runner, errors = runner_of(hook_on("after_tool_call", leave))
    assert (await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})).text == "ran ls"
    await anyio.sleep(0)
    assert len(errors) == (anyio_backend_name == "trio")


async def test_a_handler_that_left_a_scope_open_once_is_heard_later() -> None:
    """Its later calls are checked, and count."""
    calls: list[int] = []

    async def gate(event: Any, ctx: Any) -> Block | None:
        calls.append(1)
        if len(calls) == 1:
            anyio.CancelScope().__enter__()
            return None
        return Block("no")

    runner, _ = runner_of(hook_on("tool_call", gate))
    await runner.emit(call_of())
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert verdict.reason.startswith("no")


class Late:
    """A handler that leaves a scope open at some of its calls, counted from 1; `awaits`: whether it suspends before."""

    def __init__(self, calls: Sequence[int], *, awaits: bool = False) -> None:
        self.calls = calls
        self.awaits = awaits
        self.count = 0

    async def __call__(self, event: object, ctx: object) -> None:
        self.count += 1
        if self.awaits:
            await anyio.sleep(0)
        if self.count in self.calls:
            enter()


async def test_a_handler_that_suspends_is_watched_at_each_call() -> None:
    """From its second suspension on; the handlers after it are watched too."""
    late = Late([2, 5, 6, 23], awaits=True)
    quiet = Late([7, 11])
    runner, errors = runner_of(hook_on("after_tool_call", late, quiet))
    tool = wrap_tool(EchoTool(), runner)
    numbers = []
    for number in range(1, 30):
        before = len(errors)
        assert (await tool.execute("1", {"command": "ls"})).text == "ran ls"
        numbers += [number] * (len(errors) - before)
    assert numbers == [2, 5, 6, 7, 11, 23]
    assert {error.error for error in errors} == {f"LeftOpenError: {LEFT}"}


@pytest.mark.parametrize("call", [1, 2, 4, 8, 16, 32, 64, 128, 256])
async def test_a_handler_that_never_suspends_is_watched_at_the_calls_that_are_powers_of_two(call: int) -> None:
    """On trio, at each call."""
    runner, errors = runner_of(hook_on("tool_result", Late([call])))
    for _ in range(call):
        assert errors == []
        await runner.emit(TOOL_RESULT)
    assert [error.error for error in errors] == [f"LeftOpenError: {LEFT}"]


async def test_a_handler_that_left_a_scope_open_is_watched_at_each_later_call() -> None:
    """It need not suspend."""
    runner, errors = runner_of(hook_on("after_tool_call", Late([1, 3, 5, 6, 7, 30])))
    tool = wrap_tool(EchoTool(), runner)
    for _ in range(30):
        await tool.execute("1", {"command": "ls"})
    assert len(errors) == 6


async def test_a_deadline_that_passes_in_a_scope_that_is_left_open_is_that_of_one_handler() -> None:
    """The next handlers have their own."""

    async def late(event: object, ctx: object) -> None:
        enter()
        await anyio.sleep_forever()

    async def quick(event: object, ctx: object) -> None:
        await anyio.sleep(0.01)

    runner, errors = runner_of(hook_on("after_tool_call", late, quick, Endless(), quick), timeout=0.2)
    assert (await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})).text == "ran ls"
    assert [error.error for error in errors] == [f"LeftOpenError: {LEFT}", "timed out after 0.2 s"]


@pytest.mark.parametrize("swallows", [False, True])
async def test_the_cancellation_of_a_call_is_not_lost_in_a_scope_that_is_left_open(swallows: bool) -> None:
    """It goes on to the program, whose scope or task it belongs to."""
    began, ended = anyio.Event(), []

    async def gate(event: object, ctx: object) -> None:
        enter()
        began.set()
        try:
            await anyio.sleep_forever()
        except BaseException:
            # A handler may swallow a cancellation.
            if not swallows:
                raise

    runner, _ = runner_of(hook_on("tool_call", gate))

    async def call() -> None:
        await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
        await anyio.sleep(0)
        ended.append("the call")

    await cancel_natively(call, began)
    assert ended == []


async def cancel_natively(call: Callable[[], Any], began: anyio.Event) -> None:
    """Call a function and cancel it once it began, on asyncio by its task."""
    if sniffio.current_async_library() == "asyncio":
        task = asyncio.ensure_future(call())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await began.wait()
        nursery.cancel_scope.cancel()
