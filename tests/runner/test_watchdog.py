"""The watchdog names handlers that block the event loop or take long.  Tests wait for its reports, not for a time."""

from __future__ import annotations

import inspect
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from agent_hooks import Ask, HookError, HookRunner, SessionEvent, SilentUI, ToolCall, TurnStart
from agent_hooks.runner import watchdog
from agent_hooks.testing import MakeRunner
from support import everywhere, hook_on, runner_of

pytestmark = pytest.mark.anyio
TURN = TurnStart(turn_index=0, timestamp=0)
CALL = ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"})
LONG = 60.0  # seconds after which a test gives up


class Warnings(logging.Handler):
    """Keeps the warnings of all threads."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.said = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Note one."""
        assert threading.current_thread().name == "agent_hooks watchdog"
        self.texts.append(record.getMessage())
        self.said.set()


@pytest.fixture
def blocks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of a second is a block."""
    monkeypatch.setattr(watchdog, "INTERVAL", 0.02)
    monkeypatch.setattr(watchdog, "BLOCKED", 0.2)


@pytest.fixture
def slow_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of a second is long."""
    monkeypatch.setattr(watchdog, "INTERVAL", 0.02)
    monkeypatch.setattr(watchdog, "SLOW", 0.2)


@pytest.fixture
def warnings() -> Iterator[Warnings]:
    """Give the warnings of the watchdog while the loop is blocked."""
    handler = Warnings()
    logger = logging.getLogger("agent_hooks")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def watching() -> int:
    """Return the number of the threads that watch."""
    return sum(thread.name == "agent_hooks watchdog" for thread in threading.enumerate())


def stop_until(condition: Callable[[], bool]) -> None:
    """Block this thread, and so its event loop, until a condition holds."""
    end = time.monotonic() + LONG
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


async def until(condition: Callable[[], object]) -> None:
    """Wait on the loop until something is so."""
    with anyio.fail_after(LONG):
        while not condition():
            await anyio.sleep(0.01)


@everywhere
@pytest.mark.parametrize("when", ["first step", "after an await", "plain inline"])
@pytest.mark.usefixtures("blocks_soon")
async def test_a_handler_that_blocks_the_loop_is_named_at_once_and_reported_when_it_is_back(
    warnings: Warnings, when: str
) -> None:
    """Hook, handler, file and line; in its first step, later, and as a plain `def` on the loop."""

    async def blocker(event: object, ctx: object) -> None:
        if when == "after an await":
            await anyio.sleep(0)
        stop_until(warnings.said.is_set)

    def inline(event: object, ctx: object) -> None:
        stop_until(warnings.said.is_set)

    handler = inline if when == "plain inline" else blocker
    runner, errors = runner_of(hook_on("turn_start", handler, inline=True))
    async with runner:
        await runner.emit(TURN)
        [text] = warnings.texts
        place = re.match(rf"hook\.py \({re.escape(__file__)}:(\d+)\): {handler.__name__} on turn_start: ", text)
        assert place
        assert int(place[1]) in range(*lines_of(stop_until))
        assert "blocks the event loop, in stop_until at " in text
        await until(lambda: errors)
        [error] = errors
        assert (error.hook_path, error.handler, error.event) == ("hook.py", handler.__name__, "turn_start")
        assert (error.file, error.line) == (__file__, int(place[1]))
        assert "blocked the event loop for " in error.error
        assert "use a plain `def`" in error.error
        assert f"in {handler.__name__}\n    stop_until(" in error.traceback
        assert error.outcome == "continued"
        assert error.elapsed >= watchdog.BLOCKED

        await runner.emit(TURN)
        assert (len(warnings.texts), len(errors)) == (1, 1)


def lines_of(function: Any) -> tuple[int, int]:
    """Return the lines of a function, as a range takes them."""
    lines, first = inspect.getsourcelines(function)
    return first, first + len(lines)


@pytest.mark.usefixtures("blocks_soon")
async def test_each_of_two_handlers_that_block_in_a_row_is_named(warnings: Warnings) -> None:
    """The loop does not turn in between; the file of a hook is the one it was loaded from."""

    async def first(event: object, ctx: object) -> None:
        stop_until(lambda: len(warnings.texts) >= 1)

    async def second(event: object, ctx: object) -> None:
        stop_until(lambda: len(warnings.texts) >= 2)

    runner, errors = runner_of(hook_on("session", first, second))
    async with runner:
        await runner.emit(SessionEvent(reason="start"))
        await until(lambda: len(errors) == 2)
        assert [error.handler for error in errors] == ["first", "second"]
        assert "first on session (start): blocks" in warnings.texts[0]


@pytest.mark.usefixtures("blocks_soon")
async def test_a_hook_file_that_blocks_is_named_by_its_own_line(warnings: Warnings, hook_runner: MakeRunner) -> None:
    """Not by the one of a library that it called."""
    runner = await hook_runner("""
        import logging, time, agent_hooks.runner.watchdog
        said = []
        class Listener(logging.Handler):
            def emit(self, record):
                said.append(record)
        def register(api):
            listener = Listener()
            logging.getLogger("agent_hooks").addHandler(listener)
            api.on_unload(lambda: logging.getLogger("agent_hooks").removeHandler(listener))
            @api.on("tool_call")
            async def gate(event, ctx):
                end = time.monotonic() + 60
                while not said and time.monotonic() < end:
                    time.sleep(0.1)
    """)
    errors: list[HookError] = []
    runner.on_error(errors.append)
    async with runner:
        await runner.emit(CALL)
        await until(lambda: errors)
    assert errors[0].file == errors[0].hook_path
    assert errors[0].line in (14, 15)
    assert f"{errors[0].hook_path}:{errors[0].line}: gate on tool_call" in warnings.texts[0]


@everywhere
@pytest.mark.parametrize("kind", ["async", "thread"])
@pytest.mark.usefixtures("slow_soon")
async def test_a_handler_that_takes_long_is_named_once(kind: str) -> None:
    """It does not block the loop, but the next handlers wait."""
    named = threading.Event()

    async def slow(event: object, ctx: object) -> None:
        await until(named.is_set)
        await anyio.sleep(5 * watchdog.INTERVAL)  # it is looked at some more times

    def thread(event: object, ctx: object) -> None:
        assert named.wait(LONG)
        time.sleep(5 * watchdog.INTERVAL)

    handler = thread if kind == "thread" else slow
    runner, errors = runner_of(hook_on("tool_call", handler))
    runner.on_error(lambda error: named.set())
    async with runner:
        await runner.emit(CALL)
        [error] = errors
        assert error.handler == handler.__name__
        assert "takes long, 0.2 s of its own time so far" in error.error
        assert (error.file, error.line) == (__file__, handler.__code__.co_firstlineno)
        assert (error.outcome, error.elapsed >= 0.2) == ("continued", True)


class SlowPerson(SilentUI):
    """A person who answers when the test lets them."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.may_answer = anyio.Event()

    async def confirm(self, title: str, message: str = "") -> bool:
        """Wait."""
        self.asked.set()
        await self.may_answer.wait()
        return True


async def test_the_time_of_an_open_dialog_is_not_the_handlers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that waits for a person since long before another handler is named as slow is not named."""
    monkeypatch.setattr(watchdog, "SLOW", 0.5)
    named = anyio.Event()
    person = SlowPerson()

    async def gate(event: object, ctx: Any) -> Ask | None:
        assert await ctx.ui.confirm("?")
        return None

    async def slow(event: object, ctx: object) -> None:
        with anyio.fail_after(LONG):
            await named.wait()

    runner, errors = runner_of(hook_on("tool_call", gate), hook_on("turn_start", slow), ui=person)
    runner.on_error(lambda error: named.set())
    async with runner, anyio.create_task_group() as tasks:
        tasks.start_soon(runner.emit, CALL)
        await person.asked.wait()
        await runner.emit(TURN)
        person.may_answer.set()
    assert [error.handler for error in errors] == ["slow"]


async def test_a_busy_handler_that_lets_the_loop_turn_is_not_said_to_block(
    monkeypatch: pytest.MonkeyPatch, warnings: Warnings
) -> None:
    """It is seen on the loop at every look, until it is named as one that takes long."""
    monkeypatch.setattr(watchdog, "INTERVAL", 0.05)
    monkeypatch.setattr(watchdog, "SLOW", 2 * watchdog.BLOCKED)
    named = anyio.Event()

    async def busy(event: object, ctx: object) -> None:
        with anyio.fail_after(LONG):
            while not named.is_set():
                time.sleep(0.005)
                await anyio.sleep(0)

    runner, errors = runner_of(hook_on("turn_start", busy))
    runner.on_error(lambda error: named.set())
    async with runner:
        await runner.emit(TURN)
    assert ["takes long" in error.error for error in errors] == [True]
    assert warnings.texts == []


@pytest.mark.usefixtures("slow_soon")
async def test_each_handler_of_an_event_has_its_own_time() -> None:
    """Two handlers one after another are two; and a runner does not name another one's handler."""
    named: list[HookError] = []

    async def first(event: object, ctx: object) -> None:
        await until(lambda: len(named) >= 1)

    async def second(event: object, ctx: object) -> None:
        await until(lambda: len(named) >= 2)

    runner, errors = runner_of(hook_on("turn_start", first, second))
    other, others = runner_of(hook_on("turn_start", first))
    runner.on_error(named.append)
    async with runner, other:
        await runner.emit(TURN)
    assert [error.handler for error in errors] == ["first", "second"]
    assert others == []


async def test_the_watchdog_ends_with_its_runner() -> None:
    """No thread stays, and a handler that ends later is not reported."""
    await until(lambda: watching() == 0)
    async with HookRunner([], cwd="."):
        assert watching() == 1
    await until(lambda: watching() == 0)


async def test_one_thread_watches_all_runners_of_the_process() -> None:
    """It stays while one of them is entered, and ends with the last one."""
    async with HookRunner([], cwd="."):
        async with AsyncExitStack() as stack:
            for _ in range(50):
                await stack.enter_async_context(HookRunner([], cwd="."))
            assert watching() == 1
        assert watching() == 1
    await until(lambda: watching() == 0)


@pytest.mark.usefixtures("blocks_soon")
async def test_a_logging_handler_that_raises_does_not_end_the_watch(warnings: Warnings) -> None:
    """A hook installed it; the handlers of other hooks are named all the same."""

    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ValueError("as the test wants")

    async def blocker(event: object, ctx: object) -> None:
        stop_until(lambda: len(warnings.texts) == 1)

    async def other(event: object, ctx: object) -> None:
        stop_until(lambda: len(warnings.texts) == 2)

    raising = Raising()
    logging.getLogger("agent_hooks").addHandler(raising)
    try:
        one, _ = runner_of(hook_on("turn_start", blocker))
        two, _ = runner_of(hook_on("turn_start", other))
        async with one, two:
            await one.emit(TURN)
            await two.emit(TURN)
    finally:
        logging.getLogger("agent_hooks").removeHandler(raising)
    assert len(warnings.texts) == 2


def test_a_runner_whose_loop_went_away_leaves_no_thread() -> None:
    """Entered and never left: the watchdog ends when it finds that its loop is closed."""

    async def blocker(event: object, ctx: object) -> None:
        stop_until(lambda: not watching())

    runner, _ = runner_of(hook_on("turn_start", blocker))
    anyio.run(runner.__aenter__)
    assert watching()
    anyio.run(runner.emit, TURN)
    assert not watching()
