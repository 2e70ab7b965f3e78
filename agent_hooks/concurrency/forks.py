"""End a process that a hook has forked, when it comes back from the hook.

A hook may fork, and run another program in the child or end it there.  A child that returns from the hook's function
would be a second agent: it would answer a second time, on the same stdout, and write the same session file.  So the
process ends where the runtime gets control back.  A program that forks in its own code is not concerned, and may use its
hooks in both processes.
"""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NoReturn

# The number of forks between this process and the first.
FORKS = [0]


def _after_fork() -> None:
    FORKS[0] += 1


os.register_at_fork(after_in_child=_after_fork)


def forks() -> int:
    """Return a number that is another one in a child process."""
    return FORKS[0]


def end_child_of(name: Callable[[], str], before: int, exc: BaseException | None = None) -> None:
    """End this process if it was forked since `forks()` was `before`; `name()` is the hook's name in the message.

    `exc`: the exception that the hook's code raised.  A child that called `sys.exit` ends without a message.
    """
    if FORKS[0] != before:
        end_child(name(), exc)


def end_child(name: str, exc: BaseException | None = None) -> NoReturn:
    """End this process, which a hook has forked; the buffers of the parent's files are not written a second time."""
    if isinstance(exc, SystemExit):
        os._exit(exc.code if isinstance(exc.code, int) else int(exc.code is not None))
    text = f"agent_hooks: {name} forked a process that came back from it; process {os.getpid()} ends, the agent goes on"
    try:
        os.write(2, f"{text} (end a child with os._exit, or use subprocess)\n".encode(errors="replace"))
    except OSError:
        # The child has closed stderr.
        pass
    os._exit(1)


def function_name(function: object) -> str:
    """Return the file and the name of a function."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    return name if code is None else f"{code.co_filename}: {name.rpartition('<locals>.')[2]}"


@types.coroutine
def await_in_parent(name: Callable[[], str], awaitable: Awaitable[Any]) -> Generator[Any, Any, Any]:
    """Await a hook's awaitable; a child that it forks ends before the event loop would go on in it."""
    before = FORKS[0]
    steps = _await(awaitable)
    send, throw = steps.send, steps.throw
    try:
        waiting = send(None)
        while True:
            end_child_of(name, before)
            try:
                value = yield waiting
            except GeneratorExit:
                # The awaiting coroutine is closed.
                steps.close()
                raise
            # The exception is thrown into the coroutine, which decides.
            except BaseException as exc:
                waiting = throw(exc)
            else:
                waiting = send(value)
    except StopIteration as done:
        end_child_of(name, before)
        return done.value
    # The coroutine's own failure, which goes on to the caller.
    except BaseException as exc:
        end_child_of(name, before, exc)
        raise


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
