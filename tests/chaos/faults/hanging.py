"""Faults that never end, or hold the event loop."""

from __future__ import annotations

from chaos.faults.fault import Fault

LOOP = "it holds the event loop; the watchdog names it, and the agent waits for a kill"
GIL = "it holds the interpreter itself, so no thread of Python goes on"
TRIO = "trio cannot give up a task that ignores its cancellation, and a program cannot cancel one that has no deadline"
ON_TRIO = ("*/inline/trio/*",)
SHIELDED = (*ON_TRIO, "rewriter/inline/asyncio/wrapped")

FAULTS = (
    Fault(
        "sleeps for ever",
        """
        import anyio
        await anyio.sleep_forever()
        """,
        waits=True,
    ),
    Fault(
        "sleeps for ever in a thread",
        "time.sleep(1e6)",
        "def",
        waits=True,
    ),
    Fault(
        "waits for a Future of asyncio",
        """
        import asyncio
        await asyncio.get_running_loop().create_future()
        """,
        waits=True,
    ),
    Fault(
        "waits for a lock twice in a thread",
        """
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
        """,
        "def",
        waits=True,
    ),
    Fault(
        "spins through the event loop",
        """
        import anyio.lowlevel
        while True:
            await anyio.lowlevel.checkpoint()
        """,
        waits=True,
    ),
    Fault(
        "blocks the loop for a second",
        "time.sleep(1)",
    ),
    Fault(
        "blocks the loop for ever",
        "time.sleep(1e6)",
        ends=LOOP,
        waits=True,
    ),
    Fault(
        "computes for ever in a thread",
        """
        while True:
            pass
        """,
        "def",
        waits=True,
    ),
    Fault(
        "computes for ever in C, in a thread",
        """
        import re
        re.match(r"(a+)+$", "a" * 64 + "b")
        """,
        "def",
        ends=GIL,
        waits=True,
    ),
    Fault(
        "ignores its cancellation for ever",
        """
        import anyio
        while True:
            try:
                await anyio.sleep(0.05)
            except BaseException:
                pass
        """,
        ends=TRIO,
        where=SHIELDED,
        waits=True,
        noisy=True,
    ),
    Fault(
        "ignores its cancellation for a while",
        """
        import anyio
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                await anyio.sleep(0.05)
            except BaseException:
                pass
        """,
    ),
    Fault(
        "shields itself for ever",
        """
        import anyio
        with anyio.CancelScope(shield=True):
            await anyio.sleep_forever()
        """,
        ends=TRIO,
        where=SHIELDED,
        waits=True,
    ),
    Fault(
        "raises at its cancellation",
        """
        import anyio
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("mine")
        """,
        waits=True,
    ),
    Fault(
        "answers at its cancellation",
        """
        import anyio
        try:
            await anyio.sleep_forever()
        finally:
            return None
        """,
        waits=True,
    ),
    Fault(
        "blocks the loop at its cancellation",
        """
        import anyio
        try:
            await anyio.sleep_forever()
        finally:
            time.sleep(1)
        """,
        waits=True,
    ),
    Fault(
        "waits for a program",
        """
        import subprocess
        subprocess.run(["sleep", "600"])
        """,
        "def",
        waits=True,
        leaves=True,
    ),
    Fault(
        "reads from stdin",
        "input()",
        "def",
    ),
    Fault(
        "stops itself",
        """
        import signal
        os.kill(os.getpid(), signal.SIGSTOP)
        """,
        ends="a stopped process does nothing",
        waits=True,
    ),
    Fault(
        "keeps the lock of logging",
        """
        import logging
        logging._lock.acquire()
        logging.getLogger().handlers and logging.getLogger().handlers[0].acquire()
        """,
        "def",
    ),
    Fault(
        "returns an awaitable of an awaitable for ever",
        """
        async def again():
            return again()
        return again()
        """,
    ),
    Fault(
        "returns an awaitable that never ends",
        """
        class Odd:
            def __await__(self):
                while True:
                    yield
        return Odd()
        """,
        waits=True,
    ),
)
