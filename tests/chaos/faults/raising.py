"""Faults that raise."""

from __future__ import annotations

from chaos.faults.fault import Fault

CTRL_C = "a KeyboardInterrupt on the event loop is the person's Ctrl-C"

FAULTS = (
    Fault(
        "raises an Exception",
        'raise ValueError("broken")',
    ),
    Fault(
        "raises in a thread",
        'raise ValueError("broken")',
        "def",
    ),
    Fault(
        "raises a BaseException",
        """
        class Odd(BaseException): pass
        raise Odd("broken")
        """,
    ),
    Fault(
        "raises SystemExit",
        "sys.exit(3)",
    ),
    Fault(
        "raises SystemExit in a thread",
        "sys.exit(0)",
        "def",
    ),
    Fault(
        "raises KeyboardInterrupt",
        "raise KeyboardInterrupt",
        ends=CTRL_C,
    ),
    Fault(
        "raises KeyboardInterrupt in a thread",
        "raise KeyboardInterrupt",
        "def",
    ),
    Fault(
        "raises GeneratorExit",
        "raise GeneratorExit",
    ),
    Fault(
        "raises StopIteration",
        'raise StopIteration({"block": False})',
    ),
    Fault(
        "raises StopIteration in a thread",
        'raise StopIteration({"block": False})',
        "def",
    ),
    Fault(
        "raises a cancellation of asyncio",
        """
        import asyncio
        raise asyncio.CancelledError
        """,
    ),
    Fault(
        "raises a cancellation of trio",
        """
        import trio
        raise trio.Cancelled.__new__(trio.Cancelled)
        """,
    ),
    Fault(
        "raises the TimeoutError of a scope",
        """
        import anyio
        with anyio.fail_after(0.01):
            await anyio.sleep_forever()
        """,
    ),
    Fault(
        "raises an ExceptionGroup",
        'raise ExceptionGroup("many", [ValueError(n) for n in range(1000)])',
    ),
    Fault(
        "raises a group with Ctrl-C inside",
        'raise BaseExceptionGroup("mixed", [KeyboardInterrupt(), ValueError("x")])',
    ),
    Fault(
        "raises with a str that raises",
        """
        class Odd(Exception):
            def __str__(self): raise ValueError
        raise Odd
        """,
    ),
    Fault(
        "raises with a str that exits",
        """
        class Odd(Exception):
            def __str__(self): sys.exit(0)
            __repr__ = __str__
        raise Odd
        """,
    ),
    Fault(
        "raises with 20 MB of text",
        'raise ValueError("x" * 20_000_000)',
    ),
    Fault(
        "raises a class with 20 MB of name",
        'raise type("E" * 20_000_000, (Exception,), {})("broken")',
    ),
    Fault(
        "raises with lone surrogates",
        r'raise ValueError("\ud800\udfff")',
    ),
    Fault(
        "raises with terminal escapes",
        r'raise ValueError("\x1b[2J\x1b]0;owned\x07\x00\x9b31m\r")',
    ),
    Fault(
        "raises an exception in a circle",
        """
        a, b = ValueError(1), ValueError(2)
        a.__cause__, b.__cause__ = b, a
        raise a
        """,
    ),
    Fault(
        "raises an exception that lies about its class",
        """
        class Odd(Exception):
            @property
            def __class__(self): raise ValueError
        raise Odd
        """,
    ),
    Fault(
        "raises an exception that raises when it is deleted",
        """
        class Odd(Exception):
            def __del__(self): raise ValueError
        raise Odd
        """,
        noisy=True,
    ),
    Fault(
        "recurses for ever",
        """
        def deeper(): return deeper()
        deeper()
        """,
    ),
    Fault(
        "raises MemoryError",
        "bytearray(1 << 60)",
    ),
    Fault(
        "raises BrokenPipeError",
        "raise BrokenPipeError",
    ),
    Fault(
        "raises an exit of click",
        """
        import click
        raise click.exceptions.Exit(0)
        """,
    ),
    Fault(
        "raises an error of the model",
        """
        from agent_hooks.errors import ModelError
        raise ModelError("mine")
        """,
    ),
    Fault(
        "raises an aborted call",
        """
        from agent_hooks.pipeline.call import AbortedCallError
        raise AbortedCallError
        """,
    ),
    Fault(
        "imports a module that exits",
        "import _exits",
    ),
    Fault(
        "imports a module with a wrong syntax",
        "import _wrong_syntax",
    ),
    Fault(
        "imports a module that hangs",
        "import _hangs",
        "def",
        waits=True,
    ),
)
