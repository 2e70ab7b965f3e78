"""The command line, run as a user does."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from textwrap import dedent
from threading import Thread
from typing import IO, Any

from jsonschema import Draft202012Validator

import forking
from agent_hooks.cli.rpc import protocol
from support import PATIENCE, approve

TRIO = 'import functools, anyio; anyio.run = functools.partial(anyio.run, backend="trio")'


class Command:
    """Runs `agent-hooks` as a user does: a process of its own, in the project, with an empty home."""

    # Python code that runs before the command, for example to shorten a wait.
    first = ""
    # Whether any content of the project counts as approved.
    trusted = True
    # Whether a command may be a fork, whose arguments are not those of its process for other programs.
    may_fork = True
    # Whether such a fork is measured for coverage.
    measured = False

    def __init__(self, project: Path) -> None:
        self.project = project

    def line(self, *args: str, first: str = "") -> list[str]:
        """Return the command line."""
        if self.trusted:
            approve(self.project)
        if first := "\n".join(each for each in (first, self.first) if each):
            program = ["-c", f"{first}\nfrom agent_hooks.__main__ import main\nmain()"]
        else:
            program = ["-m", "agent_hooks"]
        return [sys.executable, *program, *args]

    def __call__(self, *args: str, stdin: str = "", code: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Run it to its end and check the exit code; `code=None` takes any."""
        line = self.line(*args)
        if self.may_fork and forking.fits(os.environ):
            done = forking.run(args, self.project, stdin, PATIENCE, self.first, measured=self.measured)
        else:
            done = subprocess.run(line, cwd=self.project, input=stdin, capture_output=True, text=True, timeout=PATIENCE)
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stdout + done.stderr, done.stdout
        return done

    def on_terminal(self, *args: str) -> str:
        """Run it to its end on a terminal of 100 columns, and return the output there."""
        ours, theirs = pty.openpty()
        run = subprocess.Popen(
            self.line(*args),
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(theirs)
        seen = read_all(ours)
        assert run.wait(timeout=PATIENCE) == 0
        return seen

    def dialog(self, *args: str, stdout: Path | None = None) -> Dialog:
        """Start it with stdin and stderr on a terminal, and stdout too unless it goes to a file."""
        return Dialog(self.line(*args), self.project, stdout)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start it, for a test that sends signals."""
        return subprocess.Popen(
            self.line(*args),
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def rpc(self, *args: str, backend: str = "asyncio", **options: Any) -> RpcClient:
        """Start it in RPC mode, on either backend."""
        line = self.line("run", "--mode", "rpc", *args, first=TRIO if backend == "trio" else "")
        return RpcClient(line, cwd=self.project, **options)

    def add_hook(self, source: str, name: str = "hook.py") -> Path:
        """Put a hook file into the project."""
        if self.trusted:
            approve(self.project)
        path = self.project / ".agent" / "hooks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source))
        return path

    def add_waiting_hook(self, reason: str, *, deaf: bool = False) -> Path:
        """Put a hook into the project that says "waiting" at that event of the session, and then waits for ever.

        `deaf`: also when it is cancelled.
        """
        return self.add_hook(f"""
            import anyio
            def register(api):
                @api.on("session")
                async def wait(event, ctx):
                    if event.reason == {reason!r}:
                        ctx.ui.notify("waiting")
                        with anyio.CancelScope(shield={deaf}):
                            await anyio.sleep_forever()
        """)


class Dialog:
    """A program at a terminal of its own, which a test reads and types into."""

    def __init__(self, line: list[str], cwd: Path, stdout: Path | None) -> None:
        self.seen = ""
        self._fd, theirs = pty.openpty()
        with open(os.devnull if stdout is None else stdout, "wb") as file:
            self.process = subprocess.Popen(
                line,
                cwd=cwd,
                stdin=theirs,
                stdout=theirs if stdout is None else file,
                stderr=theirs,
                env={**os.environ, "TERM": "xterm"},
                start_new_session=True,
                preexec_fn=lambda: sit_at(theirs),
            )
        os.close(theirs)

    def sees(self, text: str, times: int = 1) -> str:
        """Wait until a text was shown, so often at least, and return all that was shown."""
        limit = time.monotonic() + PATIENCE
        while self.seen.count(text) < times:
            assert self._read(limit), f"it ended without {text!r}:\n{self.seen}"
        return self.seen

    def type(self, text: str) -> None:
        """Type a text; a newline is Enter, and `\\x04` the end of the input."""
        os.write(self._fd, text.encode())

    def end(self, code: int | None = 0) -> str:
        """Wait for the end, check the exit code, and return all that was shown."""
        limit = time.monotonic() + PATIENCE
        while self._read(limit):
            pass
        returned = self.process.wait(timeout=PATIENCE)
        os.close(self._fd)
        assert code is None or returned == code, f"exit {returned}\n{self.seen}"
        assert "Traceback" not in self.seen, self.seen
        return self.seen

    def _read(self, limit: float) -> bool:
        chunk = read_terminal(self._fd, limit, self.seen)
        self.seen += chunk.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(chunk)


class RpcClient:
    """A program that drives the agent over pipes; every record it gets is checked against the JSON Schema."""

    validator = Draft202012Validator({"$ref": "#/$defs/Record", "$defs": protocol.schema()["$defs"]})

    def __init__(self, command: list[str], **options: Any) -> None:
        self._run: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )
        self.pid = self._run.pid
        # Complete when the program has ended.
        self.records: list[dict[str, Any]] = []
        # The text of stderr, after the end.
        self.log = ""
        self._arrived: SimpleQueue[bytes | None] = SimpleQueue()
        self._errors: list[bytes] = []
        assert self._run.stdout
        assert self._run.stderr
        self.stdin = self._run.stdin
        self._threads = [
            Thread(target=self._read_records, args=(self._run.stdout,), daemon=True),
            Thread(target=self._errors.extend, args=(self._run.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_records(self, stdout: IO[bytes]) -> None:
        for line in stdout:
            self._arrived.put(line)
        self._arrived.put(None)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        assert self.stdin
        self.stdin.write(data)
        self.stdin.flush()

    def send(self, type: str, **fields: Any) -> None:
        """Send a command or a response."""
        self.write(json.dumps({"type": type, **fields}).encode() + b"\n")

    def next(self) -> dict[str, Any] | None:
        """Return the next record, `None` after the last."""
        try:
            line = self._arrived.get(timeout=PATIENCE)
        except Empty:
            raise AssertionError(f"nothing came for {PATIENCE:g} s after {self.records[-3:]}\n{self._errors}") from None
        if line is None:
            return None
        assert line.endswith(b"\n")
        record: dict[str, Any] = json.loads(line)
        self.validator.validate(record)
        self.records.append(record)
        return record

    def expect(self, type: str, **fields: Any) -> dict[str, Any]:
        """Return the next record of that type with these fields, passing over others."""
        while (record := self.next()) is not None:
            if record["type"] == type and all(record.get(name) == value for name, value in fields.items()):
                return record
        raise AssertionError(f"no {type} {fields} came; {self.records[-5:]}\n{b''.join(self._errors).decode()}")

    def response(self, id: str | int | None) -> dict[str, Any]:
        """Return the response with that id."""
        return self.expect("response", id=id)

    def end(self, code: int = 0) -> list[dict[str, Any]]:
        """Close stdin, wait for the end, and return all records."""
        if self.stdin and not self.stdin.closed:
            self.stdin.close()
        while self.next() is not None:
            pass
        self.wait(code)
        return self.records

    def wait(self, code: int = 0) -> None:
        """Wait for the end of the process."""
        returned = self._run.wait(timeout=PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        self.log = b"".join(self._errors).decode()
        for pipe in (self._run.stdin, self._run.stdout, self._run.stderr):
            if pipe:
                pipe.close()
        assert returned == code, f"exit {returned}\n{self.log}"
        assert "Traceback" not in self.log

    def all(self, type: str, **fields: Any) -> list[dict[str, Any]]:
        """Return all records of that type with these fields, of those that have been looked at."""
        return [
            record
            for record in self.records
            if record["type"] == type and all(record.get(name) == value for name, value in fields.items())
        ]


def read_all(fd: int) -> str:
    """Return the output to a terminal until its other end closed."""
    seen = b""
    limit = time.monotonic() + PATIENCE
    while chunk := read_terminal(fd, limit, seen):
        seen += chunk
    os.close(fd)
    return seen.decode()


def sit_at(terminal: int) -> None:
    """Let this process's session have a terminal."""
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def start_at(terminal: int, line: Sequence[str], cwd: Path) -> subprocess.Popen[bytes]:
    """Start a command in a session with this terminal, whose descriptor is closed here."""
    process = subprocess.Popen(
        line,
        cwd=cwd,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: sit_at(terminal),
    )
    os.close(terminal)
    return process


def read_terminal(fd: int, limit: float, seen: object) -> bytes:
    """Return the next output to a terminal, nothing at its end. It has to come before the monotonic time `limit`.

    A code that a command shows is typed, as a user does.
    """
    if not select.select([fd], [], [], max(0, limit - time.monotonic()))[0]:
        raise AssertionError(f"waited {PATIENCE:g} s for more than\n{seen}")
    try:
        piece = os.read(fd, 65536)
        if code := re.search(rb"Type (\w+) and Enter: ", piece):
            os.write(fd, code[1] + b"\n")
        return piece
    except OSError:
        # How Linux says that the other end is closed.
        return b""


_ACCOUNT = """\
import os, pwd
found = pwd.getpwuid(os.getuid())
pwd.getpwuid = lambda uid: pwd.struct_passwd((*found[:5], {home!r}, found[6]))
from agent_hooks.__main__ import main
main()
"""


def write_shared_command(directory: Path, home: Path) -> Path:
    """Write the program `agent-hooks` of a user with this home in the password database, and return its directory.

    An entry that people share runs it from the PATH, and takes the home from there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "agent-hooks.py").write_text(_ACCOUNT.format(home=str(home)))
    (directory / "agent-hooks").write_text(f'#!/bin/sh\nexec {sys.executable} "$0.py" "$@"\n')
    (directory / "agent-hooks").chmod(0o755)
    return directory
