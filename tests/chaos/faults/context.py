"""Faults that abuse the context, the dialogs, the programs and the api of a hook."""

from __future__ import annotations

from chaos.faults.fault import Fault

FAULTS = (
    Fault(
        "forgets an await",
        'ctx.ui.confirm("Sure?", "really")',
    ),
    Fault(
        "tests a dialog that it does not await",
        """
        if ctx.ui.confirm("Sure?", "really"):
            return None
        """,
    ),
    Fault(
        "asks with nonsense",
        "await ctx.ui.select(5, print)",
    ),
    Fault(
        "asks with 20 MB",
        """
        if not await ctx.ui.confirm("x" * 20_000_000, "y" * 20_000_000):
            raise ValueError("no")
        """,
        closes=True,
    ),
    Fault(
        "notifies 10,000 times",
        """
        for n in range(10_000):
            ctx.ui.notify(f"note {n}")
        """,
    ),
    Fault(
        "notifies 20 MB",
        'ctx.ui.notify("x" * 20_000_000)',
    ),
    Fault(
        "runs a program that hangs",
        'await ctx.exec("sleep", ["600"])',
        waits=True,
    ),
    Fault(
        "runs a program that ignores its end",
        "await ctx.exec('sh', ['-c', 'trap \"\" TERM INT HUP; sleep 600 & wait; sleep 600'])",
        waits=True,
    ),
    Fault(
        "runs a program that prints 1 GB",
        "await ctx.exec('sh', ['-c', 'head -c 1073741824 /dev/zero'])",
        waits=True,
    ),
    Fault(
        "runs 100 programs at once",
        """
        import anyio
        async def one(): await ctx.exec("true", [])
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(one)
        """,
    ),
    Fault(
        "keeps its context",
        """
        sys.kept_by_a_hook = ctx
        def late():
            time.sleep(0.1)
            ctx.ui.notify("late")
            ctx.exec("true", [])
        threading.Thread(target=late, daemon=True).start()
        """,
        noisy=True,
    ),
    Fault(
        "sends 1,000 messages",
        """
        for n in range(1000):
            api.send(f"message {n}")
        """,
    ),
    Fault(
        "sends nonsense",
        "api.send(object(), attachments=[object()])",
    ),
    Fault(
        "subscribes a gate",
        'api.on("tool_call", lambda event, ctx: None)',
    ),
    Fault(
        "intercepts with a step that raises, for another tool",
        """
        async def step(input, output): raise ValueError("step")
        api.intercept("tool.before", step, tool="write")
        """,
    ),
    Fault(
        "starts a task that never ends",
        """
        import anyio
        api.start_task(anyio.sleep_forever)
        """,
    ),
    Fault(
        "starts a task that raises",
        """
        async def fail(): raise ValueError('task')
        api.start_task(fail)
        import anyio
        await anyio.sleep(0.01)
        """,
    ),
    Fault(
        "starts a task that exits",
        """
        async def leave(): sys.exit(0)
        api.start_task(leave)
        import anyio
        await anyio.sleep(0.01)
        """,
    ),
    Fault(
        "raises when it is unloaded",
        """
        def fail(): raise SystemExit(5)
        api.on_unload(fail)
        """,
    ),
    Fault(
        "hangs for a while when it is unloaded",
        "api.on_unload(lambda: time.sleep(1))",
    ),
)
