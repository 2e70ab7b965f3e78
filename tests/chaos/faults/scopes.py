"""Faults that abuse tasks, scopes, groups and loops."""

from __future__ import annotations

from chaos.faults.fault import Fault

CALLER = "it cancels the agent's own task, as an interrupt does"
TORN = "it ends the event loop under the agent"
ASYNCIO = ("*/inline/asyncio/*",)
TRIO = ("*/inline/trio/*",)

FAULTS = (
    Fault(
        "cancels its own task",
        """
        import asyncio
        asyncio.current_task().cancel()
        """,
        ends=CALLER,
        where=("*/inline/asyncio/wrapped", "*/inline/asyncio/host"),
    ),
    Fault(
        "cancels its own task and waits",
        """
        import asyncio
        asyncio.current_task().cancel()
        await asyncio.sleep(0)
        """,
        ends=CALLER,
        where=("*/inline/asyncio/wrapped", "*/inline/asyncio/host"),
    ),
    Fault(
        "cancels all tasks",
        """
        import asyncio
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(0)
        """,
        ends=CALLER,
        where=ASYNCIO,
    ),
    Fault(
        "cancels the nursery around it",
        """
        import trio
        trio.lowlevel.current_task().parent_nursery.cancel_scope.cancel()
        await trio.sleep(0)
        """,
        ends=CALLER,
        where=TRIO,
    ),
    Fault(
        "leaves a scope open",
        """
        import anyio
        anyio.CancelScope().__enter__()
        """,
    ),
    Fault(
        "leaves a cancelled scope open",
        """
        import anyio
        scope = anyio.CancelScope().__enter__()
        scope.cancel()
        """,
    ),
    Fault(
        "leaves two scopes in the wrong order",
        """
        import anyio
        a, b = anyio.CancelScope(), anyio.CancelScope()
        a.__enter__()
        b.__enter__()
        a.__exit__(None, None, None)
        """,
    ),
    Fault(
        "leaves a group open",
        """
        import anyio
        group = anyio.create_task_group()
        await group.__aenter__()
        group.start_soon(anyio.sleep_forever)
        """,
    ),
    Fault(
        "leaves a group open with a task that raises",
        """
        import anyio
        async def fail(): raise ValueError('child')
        group = anyio.create_task_group()
        await group.__aenter__()
        group.start_soon(fail)
        await anyio.sleep(0.01)
        """,
    ),
    Fault(
        "has a group whose task raises",
        """
        import anyio
        async def fail(): raise ValueError('child')
        async with anyio.create_task_group() as group:
            group.start_soon(fail)
        """,
    ),
    Fault(
        "has a group whose task never ends",
        """
        import anyio
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
        """,
        waits=True,
    ),
    Fault(
        "yields nonsense to the loop",
        """
        class Odd:
            def __await__(self):
                yield 'nonsense'
        await Odd()
        """,
    ),
    Fault(
        "awaits a Future of another loop",
        """
        import asyncio
        other = asyncio.new_event_loop()
        try:
            await other.create_future()
        finally:
            other.close()
        """,
    ),
    Fault(
        "runs a loop in a thread",
        """
        import asyncio
        asyncio.run(asyncio.sleep(0.01))
        """,
        "def",
    ),
    Fault(
        "stops the loop",
        """
        import asyncio
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        """,
        ends=TORN,
        where=ASYNCIO,
    ),
    Fault(
        "makes callbacks of the loop raise",
        """
        import asyncio
        def fail(): raise ValueError('callback')
        asyncio.get_running_loop().call_soon(fail)
        """,
        noisy=True,
    ),
    Fault(
        "exits in a callback of the loop",
        """
        import asyncio
        asyncio.get_running_loop().call_soon(sys.exit, 0)
        await asyncio.sleep(0.05)
        """,
        ends=TORN,
        where=ASYNCIO,
    ),
    Fault(
        "makes new tasks fail",
        """
        import asyncio
        def fail(*_, **options): raise ValueError('factory')
        asyncio.get_running_loop().set_task_factory(fail)
        """,
        ends="the agent can start no task",
        where=ASYNCIO,
    ),
    Fault(
        "removes readers of the loop",
        """
        import asyncio
        loop = asyncio.get_running_loop()
        for fd in range(256):
            try:
                loop.remove_reader(fd)
            except Exception:
                pass
        """,
        ends="the loop no longer hears of anything",
        where=ASYNCIO,
        waits=True,
    ),
    Fault(
        "starts a system task of trio that raises",
        """
        import trio
        async def fail(): raise ValueError('system')
        trio.lowlevel.spawn_system_task(fail)
        await trio.sleep(0.05)
        """,
        ends=TORN,
        where=TRIO,
    ),
    Fault(
        "starts a task in the nursery around it that raises",
        """
        import trio
        async def fail(): raise ValueError('nursery')
        trio.lowlevel.current_task().parent_nursery.start_soon(fail)
        await trio.sleep(0.05)
        """,
        ends=CALLER,
        where=TRIO,
    ),
    Fault(
        "uses from_thread for ever in a thread",
        """
        import anyio.from_thread
        anyio.from_thread.run(anyio.sleep_forever)
        """,
        "def",
        waits=True,
        noisy=True,
    ),
    Fault(
        "cancels the task that called the thread",
        """
        import anyio.from_thread, asyncio
        for task in anyio.from_thread.run_sync(asyncio.all_tasks):
            anyio.from_thread.run_sync(task.cancel)
        """,
        "def",
        ends=CALLER,
        where=ASYNCIO,
    ),
    Fault(
        "changes the running dispatch",
        """
        from agent_hooks.dispatch.loop import running
        running.set(None)
        """,
    ),
)
