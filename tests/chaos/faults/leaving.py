"""Faults that leave threads, tasks, programs and hooks of the interpreter behind."""

from __future__ import annotations

from chaos.faults.fault import Fault

FAULTS = (
    Fault(
        "leaves a thread behind",
        "threading.Thread(target=time.sleep, args=(1e6,)).start()",
    ),
    Fault(
        "leaves a daemon thread behind that computes",
        """
        def spin():
            while True: pass
        threading.Thread(target=spin, daemon=True).start()
        """,
    ),
    Fault(
        "leaves a thread behind that raises",
        """
        def fail(): raise ValueError('thread')
        threading.Thread(target=fail).start()
        """,
        noisy=True,
    ),
    Fault(
        "leaves a thread behind that exits",
        "threading.Thread(target=sys.exit, args=(0,)).start()",
    ),
    Fault(
        "leaves a task of asyncio behind",
        """
        import asyncio
        sys.kept_by_a_hook = asyncio.create_task(asyncio.sleep(1e6))
        """,
    ),
    Fault(
        "leaves a task of asyncio behind that raises",
        """
        import asyncio
        async def fail(): raise ValueError('task')
        asyncio.create_task(fail())
        await asyncio.sleep(0.01)
        """,
        noisy=True,
    ),
    Fault(
        "leaves a task of asyncio behind that exits",
        """
        import asyncio
        async def leave(): sys.exit(0)
        asyncio.create_task(leave())
        await asyncio.sleep(0.01)
        """,
        ends="a task that exits ends the event loop of asyncio",
        where=("*/inline/asyncio/*",),
    ),
    Fault(
        "leaves a task of trio behind",
        """
        import trio
        trio.lowlevel.spawn_system_task(trio.sleep_forever)
        """,
    ),
    Fault(
        "leaves a program behind",
        """
        import subprocess
        subprocess.Popen(['sleep', '600'])
        """,
        noisy=True,
        leaves=True,
    ),
    Fault(
        "leaves a program behind in a session of its own",
        """
        import subprocess
        subprocess.Popen(['sleep', '600'], start_new_session=True)
        """,
        noisy=True,
        leaves=True,
    ),
    Fault(
        "leaves a coroutine behind",
        """
        import anyio
        anyio.sleep(1)
        """,
        noisy=True,
    ),
    Fault(
        "raises at the exit",
        """
        import atexit
        def fail(): raise ValueError('exit')
        atexit.register(fail)
        """,
        noisy=True,
    ),
    Fault(
        "exits at the exit",
        """
        import atexit
        atexit.register(os._exit, 0)
        """,
    ),
    Fault(
        "hangs at the exit",
        """
        import atexit
        atexit.register(time.sleep, 1e6)
        """,
        ends="Python runs it when the process ends",
        where=("*/inline/*/host", "*/inline/*/server"),
    ),
)
