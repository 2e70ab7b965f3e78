"""A reload in which something fails leaves one whole generation in force."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from agent_hooks import HookUsageError, Interceptor
from runner.test_reloading import GATE, Place, life, place, reason
from support import PATIENCE, call_of, gone, on_asyncio

__all__ = ["life", "place"]
pytestmark = pytest.mark.anyio

# Another event than the gate's, so that the handlers of a half generation can be told from those of the former one.
COMING = """
    def register(api):
        api.intercept("message.before", lambda given, output: None, id="one")
"""
WORKING = """
    import anyio
    LOG = __import__("builtins").life
    def register(api):
        @api.on("session", inline=True)
        def hear(event, ctx):
            LOG.append(event.reason)
        async def work():
            LOG.append("works")
            await anyio.sleep_forever()
        api.start_task(work)
"""


async def test_an_interceptor_that_comes_during_a_reload_leaves_the_old_generation(place: Place) -> None:
    """The program takes an id that a new hook needs, after the reload has checked the ids."""
    place.write(GATE.format("old"), "gate.py")
    place.write("""
        def register(api):
            @api.on("session", inline=True)
            def hear(event, ctx):
                api.take()
    """)
    async with await place.runner() as runner:
        before = list(runner.hooks)

        def take() -> None:
            runner.interceptors.add(Interceptor("one", "tool.before", lambda given, output: None))

        next(hook.api for hook in before if hook.name == "hook").take = take  # type: ignore[attr-defined]  # a test's
        (place.directory / "gate.py").unlink()
        place.write(COMING)
        with pytest.raises(HookUsageError, match="two interceptors"):
            await place.reload(runner)
        assert runner.hooks == before
        assert await reason(runner) == "old"
        # A later reload that fails too, and the end of the runner, do not open the gate.
        with pytest.raises(HookUsageError, match="two interceptors"):
            await place.reload(runner)
        assert await reason(runner) == "old"


async def test_a_reload_takes_whatever_an_object_raises_while_it_is_copied(place: Place) -> None:
    """`SystemExit` of an object in `api.state` does not end the agent; the value is left out and named."""
    place.write("""
        def fail(self, protocol):
            raise SystemExit(3)
        def register(api):
            kind = type("Strange", (), {"__reduce_ex__": fail, "__module__": "elsewhere"})
            api.state.update(strange=kind(), plain=1)
    """)
    async with await place.runner() as runner:
        place.write("def register(api): pass")
        reloaded = await place.reload(runner)
        assert runner.hooks[0].api.state == {"plain": 1}
    assert "api.state['strange'] was left out" in reloaded.left_out[0]


@on_asyncio
async def test_tasks_begin_after_a_reload_although_a_hook_has_cancelled_all_tasks(
    place: Place, life: list[str]
) -> None:
    """The task that holds the others open was cancelled too, and the next generation gets another one."""
    place.write("def register(api): pass")
    async with await place.runner() as runner:
        for _ in range(2):
            place.write(WORKING)
            del life[:]
            await place.reload(runner)
            await anyio.wait_all_tasks_blocked()
            assert life[-2:] == ["start", "works"]
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                if "_keep" in repr(task.get_coro()):
                    task.cancel()
            await anyio.wait_all_tasks_blocked()
    assert place.errors == []


@on_asyncio
async def test_a_process_is_served_after_a_reload_although_a_hook_has_cancelled_all_tasks(place: Place) -> None:
    """Until the reload, the gates of the process block with the reason."""
    place.write("def register(api): pass")
    async with await place.runner() as runner:
        for number in range(2):
            place.write("ISOLATION = 'process'\n" + GATE.format(f"judged {number}").replace("\n    ", "\n"))
            await place.reload(runner)
            assert await reason(runner) == f"judged {number}"
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                if "_keep" in repr(task.get_coro()):
                    task.cancel()
            with anyio.fail_after(PATIENCE):
                while "the task that serves it was cancelled" not in str(await reason(runner)):
                    await anyio.sleep(0.01)


@on_asyncio
async def test_a_runner_that_is_left_during_a_reload_keeps_no_process(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new generation was in force already; its process is killed, and the reload says that the runner was left."""
    place.write("def register(api): pass")
    runner = await place.runner()
    await runner.__aenter__()
    start = runner.engine.processes.start_those_of
    pids = []

    async def leave_first(hooks: list[object]) -> None:
        pids.append(runner.hooks[0].process.pid)  # type: ignore[union-attr]  # it is isolated
        await runner.__aexit__(None, None, None)
        await start(hooks)  # type: ignore[arg-type]  # the engine's

    monkeypatch.setattr(runner.engine.processes, "start_those_of", leave_first)
    place.write("ISOLATION = 'process'\n" + GATE.format("judged").replace("\n    ", "\n"))
    with pytest.raises(HookUsageError, match="left"):
        await place.reload(runner)
    assert pids[0] is not None
    await gone(pids[0])
    assert not [task for task in asyncio.all_tasks() if "_keep" in repr(task.get_coro())]
    with pytest.raises(HookUsageError, match="left"):
        await runner.emit(call_of())


async def test_the_new_generation_works_although_the_end_of_an_old_hook_interrupts(
    place: Place, life: list[str]
) -> None:
    """A finalizer of the old hook raises `KeyboardInterrupt`, which goes on to the program."""
    place.write("""
        import weakref
        class Held: pass
        HELD = Held()
        def fail():
            raise KeyboardInterrupt
        def register(api):
            weakref.finalize(HELD, fail)
    """)
    async with await place.runner() as runner:
        place.write(WORKING)
        with pytest.raises(KeyboardInterrupt):
            await place.reload(runner)
        await anyio.wait_all_tasks_blocked()
        assert life == ["works"]
