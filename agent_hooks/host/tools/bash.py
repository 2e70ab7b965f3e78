"""The `bash` tool: run a command, report its progress, return the end of its output.

Memory holds only the last part of the output.  Output that is longer than the limits goes to a file as a whole.
"""

from __future__ import annotations

import os
import re
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import anyio

from agent_hooks.concurrency.process import stream
from agent_hooks.errors import count, os_reason
from agent_hooks.host.tools.base import (
    MAX_BYTES,
    MAX_LINES,
    BuiltinTool,
    Refused,
    check_text,
    cut_tail,
    lines_of,
    object_schema,
    text_schema,
    with_line,
)
from agent_hooks.storage.programs import find_program
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import BashToolDetails, OnUpdate, Truncation

if TYPE_CHECKING:
    from agent_hooks.redaction import RedactedStream, Redactor

OUTPUT_LIMIT = 100 * 1024 * 1024
"""A program is stopped when it has printed more bytes."""
UPDATE_INTERVAL = 0.1
"""Seconds between two progress updates."""
# The variables by which a program types into the user's terminal, or draws on it.
_OF_THE_TERMINAL = re.compile(
    "TMUX|TMUX_PANE|STY|WINDOW|WINDOWID|SSH_TTY|NVIM|NVIM_LISTEN_ADDRESS|TERM_SESSION_ID|ITERM_SESSION_ID"
    "|(KITTY|WEZTERM|ALACRITTY|GNOME_TERMINAL|KONSOLE|TERMINATOR|TILIX)_.*|ZELLIJ.*"
)
# Keeps the first bytes of a stream, and drops the rest.  The program would end if its output were not read.
_KEEPS = "exec 3<&0; {{ head -c {}; exec cat >/dev/null; }} <&3 &"
# The least bytes of a longer output that stay in memory.
_BUFFER = 2 * MAX_BYTES


class BashTool(BuiltinTool):
    """Runs a command in a shell."""

    name = "bash"
    description = (
        f"Run a bash command and return its output, stdout and stderr together. Only the last {MAX_LINES} lines or "
        f"{MAX_BYTES // 1024} KiB are shown; longer output is kept in a file."
    )
    input_schema = object_schema(
        ["command"],
        command=text_schema("The command"),
        timeout={
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Seconds after which the command is ended; without it, it may run for ever",
        },
    )

    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        command, timeout = input["command"], input.get("timeout")
        check_text(command, "the command")
        code = 0
        with closing(_Output(self)) as output:
            # With a scope of our own, a timeout of ours can be distinguished from a program that killed itself.
            with anyio.move_on_after(timeout) as deadline:
                code = await self._stream(command, output, on_update)
            if deadline.cancelled_caught:
                return output.result(f"[timed out after {timeout:g} s]", is_error=True)
            if output.stopped:
                limit = OUTPUT_LIMIT // 1024 // 1024
                return output.result(f"[stopped, because it printed more than {limit} MiB]", is_error=True)
            notes = [output.background, f"[exit code {code}]" if code else ""]
            return output.result("\n".join(filter(None, notes)), is_error=code != 0)

    async def _stream(self, command: str, output: _Output, on_update: OnUpdate | None) -> int:
        shell = find_program("bash", outside=self.cwd) or find_program("sh", outside=self.cwd) or "/bin/sh"
        env = {name: value for name, value in os.environ.items() if not _OF_THE_TERMINAL.fullmatch(name)}
        code, refused = 0, None
        async with anyio.create_task_group() as tasks:
            if on_update is not None:
                tasks.start_soon(_report, output, on_update)
            try:
                code, _ = await stream([shell, "-c", command], cwd=self.cwd, env=env, stdout=output, left=output.leave)
            except OSError as exc:
                reason = os_reason(exc) if os.path.isdir(self.cwd) else f"there is no directory {self.cwd}"
                refused = Refused(f"cannot start {shell}: {reason}")
            tasks.cancel_scope.cancel()
        # Raised outside of the task group, which would wrap it.
        if refused is not None:
            raise refused
        return code


async def _report(output: _Output, on_update: OnUpdate) -> None:
    """Call `on_update` with the end of the output when there is more, at most once in `UPDATE_INTERVAL`."""
    reported = 0
    while True:
        if output.total_bytes > reported:
            reported = output.total_bytes
            on_update(ToolOutput(output.so_far()))
        await anyio.sleep(UPDATE_INTERVAL)


def _stream_of(redactor: Redactor | None) -> RedactedStream | None:
    if redactor is None:
        return None
    # Imported here, because it comes with the redactor.
    from agent_hooks.redaction import RedactedStream

    return RedactedStream(redactor)


class _Output:
    """Takes a program's output: counts it, keeps its end, and writes all of it to a file when it is too long."""

    def __init__(self, tool: BashTool) -> None:
        self._tool = tool
        self._buffer = bytearray()
        self._lines = 0
        self._file: BinaryIO | None = None
        self._lost = ""
        # Hides the secrets in the file.
        self._stream = _stream_of(tool.redactor)
        self.total_bytes = 0
        self.stopped = False
        # A note about a program that goes on.
        self.background = ""

    def __call__(self, chunk: bytes) -> bool:
        """Take a piece of output; return whether the program must end."""
        self.total_bytes += len(chunk)
        self._lines += chunk.count(b"\n")
        self.stopped = self.stopped or self.total_bytes > OUTPUT_LIMIT
        self._buffer += chunk
        if self._too_long and not self._lost:
            self._write(chunk)
        if len(self._buffer) > 2 * _BUFFER and (self._file or self._lost):
            del self._buffer[:-_BUFFER]
        return self.stopped

    def leave(self, pipe: int) -> None:
        """Have the further output of a program in the background written to a file, also when this process has ended."""
        try:
            with self._tool.output_file() as file:
                # Imported here, because few commands leave a program behind.
                from subprocess import run

                run(
                    ["/bin/sh", "-c", _KEEPS.format(OUTPUT_LIMIT)],
                    stdin=pipe,
                    stdout=file,
                    stderr=file,
                    cwd="/",
                    start_new_session=True,
                    check=False,
                )
        except OSError as exc:
            self.background = f"[a program goes on in the background, and its output is lost: {os_reason(exc)}]"
        else:
            self.background = f"[a program goes on in the background; its further output is in {file.name}]"

    @property
    def total_lines(self) -> int:
        """The number of printed lines; the last line needs no newline."""
        return self._lines + (1 if self._buffer and not self._buffer.endswith(b"\n") else 0)

    @property
    def _too_long(self) -> bool:
        return self.total_bytes > MAX_BYTES or self.total_lines > MAX_LINES

    def _write(self, data: bytes) -> None:
        try:
            if self._file is None:
                self._file = self._tool.output_file()
                # The buffer still holds all of the output.
                data = bytes(self._buffer)
            self._file.write(data if self._stream is None else self._stream.feed(data))
            self._file.flush()
        # A full disk must not end the program; the note below the output names the reason.
        except OSError as exc:
            self._lost = os_reason(exc)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            # The note below the output has named a full disk already.
            with suppress(OSError), self._file:
                if self._stream is not None:
                    self._file.write(self._stream.feed(b"", final=True))

    def so_far(self) -> str:
        """Return the end of the output; a finished line keeps its newline, without which redaction holds it back."""
        return self.tail()[0] + ("\n" if self._buffer.endswith(b"\n") else "")

    def tail(self) -> tuple[str, Truncation | None]:
        """Return the end of the output as text within the limits, and the truncation."""
        start = 0
        # The buffer may begin inside of a character.
        if self.total_bytes > len(self._buffer):
            start = next((i for i, byte in enumerate(self._buffer[:4]) if byte & 0xC0 != 0x80), 0)
        text, cut = cut_tail(self._buffer[start:].decode("utf-8", "replace").removesuffix("\n"))
        if cut is None:
            return text, None
        return text, Truncation(
            truncated=True,
            truncated_by=cut.truncated_by,
            total_lines=self.total_lines,
            total_bytes=self.total_bytes,
            output_lines=lines_of(text),
            output_bytes=len(text.encode()),
        )

    def result(self, last_line: str, *, is_error: bool) -> ToolOutput:
        """Return the tool's output, with `last_line` below it."""
        text, cut = self.tail()
        details = None
        if cut is not None:
            # Output that is not UTF-8 can be too long as text only.
            if self._file is None and not self._lost:
                self._write(b"")
            path = self._file.name if self._file is not None and not self._lost else None
            where = f"the full text is in {path}" if path else f"the full text could not be kept: {self._lost}"
            shown = f"the last {count(cut.output_lines, 'line')} of {cut.total_lines}"
            text = f"[cut: {shown} ({cut.output_bytes} of {cut.total_bytes} bytes); {where}]\n{text}"
            details = BashToolDetails(truncation=cut, full_output_path=path)
        text = text or "(no output)"
        return ToolOutput(with_line(text, last_line) if last_line else text, details, is_error)
