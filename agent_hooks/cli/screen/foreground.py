"""Another program in the foreground of the terminal: a pager for the conversation, an editor for the prompt line."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from anyio import to_thread
from prompt_toolkit.application import Application, in_terminal

from agent_hooks.errors import AgentHooksError, os_reason

# Colours stay, one page is shown as well, and the end comes first.
_LESS = ("-R", "-+F", "+G")


class NoProgramError(AgentHooksError):
    """There is no program for it, or it cannot be started."""


def pager_command() -> list[str]:
    """Return the pager of the person, from `PAGER`, else less, else more.  Raises `NoProgramError`."""
    command = _chosen(("PAGER",), ("less", "more"))
    return [*command, *_LESS] if os.path.basename(command[0]) == "less" else command


def editor_command() -> list[str]:
    """Return the editor of the person, from `VISUAL` or `EDITOR`, else vi or nano.  Raises `NoProgramError`."""
    return _chosen(("VISUAL", "EDITOR"), ("vi", "nano"))


def _chosen(variables: Sequence[str], programs: Sequence[str]) -> list[str]:
    for name in variables:
        if value := os.environ.get(name, "").strip():
            try:
                return shlex.split(value)
            except ValueError as exc:
                raise NoProgramError(f"{name}={value} cannot be read: {exc}") from None
    for program in programs:
        if path := shutil.which(program):
            return [path]
    raise NoProgramError(f"there is no {' and no '.join(programs)}; install one, or name yours in {variables[0]}")


class Foreground:
    """Lends the terminal of an application to one program at a time; printing has to wait meanwhile (`lent`)."""

    def __init__(self, app: Application[None]) -> None:
        self._app = app
        self._process: asyncio.subprocess.Process | None = None
        self._pages = False
        self.lent = False

    async def page(self, text: str) -> None:
        """Show a text in the person's pager until it ends, or until `end_pager`.  Raises `NoProgramError`."""
        command = pager_command()
        self._pages = True
        try:
            await self._run(command, text)
        finally:
            self._pages = False

    async def edit(self, text: str) -> str:
        """Let the person change a text in their editor, and return it.  Raises `NoProgramError`."""
        command = editor_command()
        with tempfile.TemporaryDirectory(prefix="agent-hooks-") as directory:
            path = Path(directory, "message.md")
            path.write_text(text, encoding="utf-8")
            code = await self._run([*command, str(path)])
            if code != 0:
                raise NoProgramError(f"{command[0]} ended with {code}; the line stays as it was")
            # The editor adds the last line break.
            return path.read_text(encoding="utf-8", errors="replace").rstrip("\n")

    async def call(self, function: Callable[[], None]) -> None:
        """Let a function of this process have the terminal, in a thread; it blocks nothing else."""
        async with in_terminal():
            self.lent = True
            try:
                with _interrupts_ignored():
                    await to_thread.run_sync(function)
            finally:
                self.lent = False

    def end_pager(self) -> None:
        """End the program that runs if it is the pager."""
        if self._pages:
            self.end()

    def end(self) -> None:
        """End the program that runs."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    async def _run(self, command: Sequence[str], text: str | None = None) -> int:
        """Run a program with a text on its stdin, else with the keyboard there; return its exit code."""
        app = self._app
        async with in_terminal():
            self.lent = True
            try:
                with _interrupts_ignored():
                    self._process = await asyncio.create_subprocess_exec(
                        *command,
                        stdin=app.input.fileno() if text is None else asyncio.subprocess.PIPE,
                        stdout=app.output.fileno(),
                        stderr=app.output.fileno(),
                    )
                    try:
                        await self._process.communicate(None if text is None else text.encode("utf-8", "replace"))
                    finally:
                        self.end()
                    code = await self._process.wait()
            except OSError as exc:
                raise NoProgramError(f"{command[0]} cannot be started: {os_reason(exc)}") from None
            finally:
                self._process, self.lent = None, False
        return code


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Leave Ctrl-C to the program in the foreground: the terminal sends it to this one too."""
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
