"""Run a program: bounded output, a deadline, and a whole process group that really ends.  POSIX.

This module makes the pipes itself: with the event loop's pipes, `wait()` may last as long as any grandchild holds one
open.
"""

from __future__ import annotations

import codecs
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from agent_hooks.errors import os_reason
from agent_hooks.values.content import ExecResult

# Seconds between SIGTERM and SIGKILL.
GRACE = 2.0
# Seconds to read on after the program ended, while a grandchild still holds its pipe.
DRAIN = 0.5
# Bytes of each stream that are kept.
CAPTURE_LIMIT = 10 * 1024 * 1024
_CHUNK = 65536
# The process groups of programs that run.
_running: set[int] = set()


class Capture:
    """Keeps the first `limit` bytes written to it and counts the rest."""

    def __init__(self, limit: int = CAPTURE_LIMIT) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._total = 0

    def __call__(self, chunk: bytes) -> None:
        self._total += len(chunk)
        self._kept += chunk[: self._limit - len(self._kept)]

    def text(self) -> str:
        """Return the kept bytes as text, with a note when bytes were left out."""
        lost = self._total - len(self._kept)
        # A character that the limit cut in two is left out rather than shown as a replacement.
        text, _ = codecs.utf_8_decode(self._kept, "replace", not lost)
        if lost:
            text += f"\n[{lost} more bytes were left out; {self._limit} bytes are kept]"
        return text


async def run(command: str, args: Sequence[str] = (), *, cwd: str | Path, timeout: float | None = None) -> ExecResult:
    """Run `command` with `args` in `cwd` and return its output.

    `timeout` in seconds; past it, or when the calling task is cancelled, the whole process group gets SIGTERM and, 2 s
    later, SIGKILL.  Standard input is empty.  A program that cannot be started is a result too (code 127 or 126).
    """
    stdout, stderr = Capture(), Capture()
    try:
        code, killed = await stream([command, *args], cwd=cwd, timeout=timeout, stdout=stdout, stderr=stderr)
    except OSError as exc:
        code = 127 if isinstance(exc, FileNotFoundError) else 126
        return ExecResult("", _cannot_start(command, cwd, exc), code)
    return ExecResult(stdout.text(), stderr.text(), code, killed)


def _cannot_start(command: str, cwd: str | Path, exc: OSError) -> str:
    if not os.path.isdir(cwd):
        return f"{command}: cannot start: the working directory {cwd} does not exist"
    program, *words = command.split()[:3] if isinstance(exc, FileNotFoundError) else [command]
    apart = f"; the arguments are apart: ctx.exec({program!r}, [{words[0]!r}, …])" if words else ""
    return f"{command}: cannot start: {os_reason(exc)}{apart}"


async def stream(
    argv: Sequence[str],
    *,
    cwd: str | Path,
    timeout: float | None = None,
    stdout: Callable[[bytes], Any],
    stderr: Callable[[bytes], Any] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | None = None,
    left: Callable[[int], object] | None = None,
) -> tuple[int, bool]:
    """Run `argv` and hand its output over as it comes; return `(code, killed)`.

    Without `stderr` both streams go to `stdout`, in the order they were written.  A receiver that returns `True` ends
    the program.  `stdin` is a file descriptor; without it standard input is empty.  `left` gets the descriptor of
    each stream that a program in the background still holds at the end, before it is closed: the next line of that
    program would fail.  Raises `OSError` when it cannot be started.  `code` is `128 + signal` for a program a signal
    ended.
    """
    readers: list[tuple[int, Callable[[bytes], Any]]] = []
    ours, theirs = os.pipe()
    readers.append((ours, stdout))
    ends = [theirs]
    if stderr is not None:
        ours, theirs = os.pipe()
        readers.append((ours, stderr))
        ends.append(theirs)
    try:
        # Imported here, because few programs that use hooks run others.
        from subprocess import DEVNULL

        try:
            # A cancellation at this moment would leave the new process to itself.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    list(argv),
                    stdin=DEVNULL if stdin is None else stdin,
                    stdout=ends[0],
                    stderr=ends[-1],
                    cwd=cwd,
                    env=env,
                    start_new_session=True,
                )
        finally:
            for end in ends:
                os.close(end)
        code, killed, held = await _supervise(process, readers, timeout)
        if left is not None and not killed:
            for fd in held:
                os.set_blocking(fd, True)
                left(fd)
        return code, killed
    finally:
        for fd, _ in readers:
            os.close(fd)


async def _supervise(
    process: Any, readers: Sequence[tuple[int, Callable[[bytes], Any]]], timeout: float | None
) -> tuple[int, bool, set[int]]:
    """Return the code, whether the program was killed, and the descriptors whose streams have not ended."""
    killed, held = False, {fd for fd, _ in readers}
    _running.add(process.pid)
    try:
        with anyio.move_on_after(timeout) as deadline:
            async with anyio.create_task_group() as tasks:

                async def pump(fd: int, receive: Callable[[bytes], Any]) -> None:
                    nonlocal killed
                    if await _pump(fd, receive):
                        killed = True
                        _signal(process.pid, signal.SIGKILL)
                    held.discard(fd)

                for fd, receive in readers:
                    tasks.start_soon(pump, fd, receive)
                await process.wait()
                tasks.cancel_scope.deadline = anyio.current_time() + DRAIN
        # The time may also run out while a grandchild still holds the pipe of a program that ended in time.
        killed = killed or (deadline.cancelled_caught and process.returncode is None)
    finally:
        if process.returncode is None:
            with anyio.CancelScope(shield=True):
                await _end(process)
        _running.discard(process.pid)
    code = process.returncode
    return (128 - code, True, held) if code < 0 else (code or 1 if killed else code, killed, held)


def kill_left() -> None:
    """Kill the programs that still run, with their groups: this process ends without waiting for them."""
    while _running:
        _signal(_running.pop(), signal.SIGKILL)


async def _pump(fd: int, receive: Callable[[bytes], Any]) -> bool:
    """Read `fd` to its end; return whether the receiver asked to end the program."""
    os.set_blocking(fd, False)
    while True:
        await anyio.wait_readable(fd)
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            continue
        if not chunk:
            return False
        if receive(chunk) is True:
            return True


async def _end(process: Any) -> None:
    """End a whole process group: ask, wait, insist."""
    _signal(process.pid, signal.SIGTERM)
    try:
        with anyio.move_on_after(GRACE):
            await process.wait()
    finally:
        # Children may have outlived their leader, or the handler that waits here is given up.
        _signal(process.pid, signal.SIGKILL)
    await process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
