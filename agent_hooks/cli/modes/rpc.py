"""RPC mode: another program drives the agent, by JSON lines on stdin and stdout.

The reader runs before any hook does, so that every dialog can be answered.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import anyio
import click
from anyio.abc import TaskGroup
from msgspec import UNSET

from agent_hooks.cli.lifetime import FAILED, INTERRUPTED, OK, leave_soon
from agent_hooks.cli.modes.base import Start, until_signal
from agent_hooks.cli.rpc.pipes import MAX_LINE, LineReader, RecordWriter, read_chunks, reserve_stdin
from agent_hooks.cli.rpc.protocol import (
    Abort,
    HookErrorRecord,
    MessageInjected,
    MessageUpdate,
    Prompt,
    Request,
    RunEnd,
    RunStart,
    Shutdown,
    UnreadableLine,
    hook_error_record,
    parse,
)
from agent_hooks.cli.rpc.requests import AT_THE_END, RequestQueue
from agent_hooks.cli.streams import ReservedStdout, complain, watch_readers
from agent_hooks.errors import AgentHooksError
from agent_hooks.hooks.loaded import LoadError
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.ui.rpc import HookUiResponse, RpcUI
from agent_hooks.values.content import ToolCallContent, ToolOutput

# Seconds for runs to end after the end of stdin.
LAST_RUN = 5.0
# Seconds for the client to read the last records.
LAST_WORDS = 5.0


async def run(start: Start) -> int:
    """Serve one client until it ends the session, its pipe ends, or a signal comes."""
    if start.prompt is not None:
        raise click.UsageError("rpc mode takes its prompts on stdin; leave out the argument PROMPT")
    stdin = reserve_stdin()
    with ReservedStdout() as stdout:
        watch_readers()
        # Prints of hooks go to stderr now, where a reader wants each line when it is printed.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)
        writer = RecordWriter(stdout.duplicate())
        try:
            code = await _Server(writer, allow_remember=start.allow_remember).run(start, stdin)
        finally:
            read = writer.close(LAST_WORDS)
    if writer.broken:
        complain(f"stdout could not be written: {writer.broken}")
        return FAILED
    if not read:
        complain("the client did not read all records")
    return code


class _Server:
    """Reads the client's lines, and runs the session that they drive."""

    def __init__(self, writer: RecordWriter, *, allow_remember: bool) -> None:
        self._send = writer.send
        self._gone = writer.gone
        self._ui = RpcUI(self._send, allow_remember=allow_remember)
        self._requests = RequestQueue(self._send)
        self._over = anyio.Event()
        # Whether runs may end before the session does.
        self._finish = False

    async def run(self, start: Start, stdin: int) -> int:
        failure: AgentHooksError | None = None
        code = FAILED
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, stdin)
            tasks.start_soon(self._watch_client)
            try:
                code = await self._serve(start, tasks)
            except AgentHooksError as exc:
                # It is raised again below, where no task group wraps it in a group.
                failure = exc
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return code

    async def _serve(self, start: Start, tasks: TaskGroup) -> int:
        setup = await start.load(self._warn, lambda _: None)
        for failure in setup.errors:
            self._send(_load_error_record(failure))
        runner = start.runner(setup, "rpc", self._ui)
        runner.on_error(lambda error: self._send(hook_error_record(error)))
        runner.observe(self._send)
        code = OK
        async with runner:
            reloading = start.reloading(setup, runner, self._warn)
            host = start.host(reloading, runner, RpcView(self._send, self._warn))
            self._requests.use_host(host)
            async with until_signal(reloading, host, before=self._ui.close) as scope:
                with anyio.CancelScope() as life:
                    tasks.start_soon(self._limit, life)
                    async with host, anyio.create_task_group() as actions:
                        self._requests.use_tasks(actions)
                        await self._over.wait()
                        if self._finish:
                            await self._requests.wait_done(host)
                        actions.cancel_scope.cancel()
            self._requests.refuse_waiting(AT_THE_END)
            if scope.cancelled_caught:
                complain("interrupted")
                code = INTERRUPTED
            leave_soon(code)
        return code

    async def _limit(self, life: anyio.CancelScope) -> None:
        """Cancel the session when it is over, even if it has not started yet."""
        await self._over.wait()
        if self._finish:
            await anyio.sleep(LAST_RUN)
        life.cancel()

    def _warn(self, text: str) -> None:
        self._ui.notify(text, "warning")

    # ---- the client

    async def _read(self, stdin: int) -> None:
        reader = LineReader()
        async for chunk in read_chunks(stdin):
            for number, line in reader.feed(chunk):
                self._take(number, line)
        for number, line in reader.end():
            self._take(number, line)
        self._end(finish=True)

    async def _watch_client(self) -> None:
        await self._gone.wait()
        self._end(finish=False)

    def _end(self, *, finish: bool) -> None:
        """End the session; open dialogs end with their defaults."""
        self._finish = finish and not self._over.is_set()
        self._over.set()
        self._ui.close()

    def _take(self, number: int, line: bytes | None) -> None:
        """Take one line of the client."""
        if line is None:
            text = f"it is longer than {MAX_LINE // 2**20} MiB; reading goes on after its end"
            self._refuse_line(number, UnreadableLine(text))
        elif line.strip():
            parsed = parse(line)
            if isinstance(parsed, UnreadableLine):
                self._refuse_line(number, parsed)
            elif isinstance(parsed, HookUiResponse):
                if error := self._ui.answer(parsed):
                    self._requests.refuse(parsed.type, parsed.id, error)
            else:
                self._obey(parsed)

    def _refuse_line(self, number: int, line: UnreadableLine) -> None:
        if line.command == HookUiResponse.type:
            self._ui.refuse(line.id)
        self._requests.refuse(line.command, line.id, f"line {number}: {line.error}")

    def _obey(self, request: Request) -> None:
        if self._over.is_set():
            self._requests.refuse(request.type, request.id, AT_THE_END)
        elif isinstance(request, Prompt) and not request.message.strip() and not request.attachments:
            self._requests.refuse(request.type, request.id, "the message is empty")
        elif isinstance(request, Abort):
            self._requests.abort()
            self._requests.agree(request)
        elif isinstance(request, Shutdown):
            self._requests.agree(request)
            self._end(finish=False)
        else:
            self._requests.put(request)


def _load_error_record(failure: LoadError) -> HookErrorRecord:
    return HookErrorRecord(
        hook_path=failure.path,
        event="load",
        error=failure.error,
        handler="register",
        outcome="blocked",
        line=failure.line or UNSET,
    )


class RpcView:
    """Sends a record for each run, message and piece of the model's words."""

    def __init__(self, send: Callable[[object], None], warn: Callable[[str], object]) -> None:
        self._send = send
        self._warn = warn

    def run_started(self, text: str, source: str | None) -> None:
        """Send `run_start`."""
        self._send(RunStart(message=text, source=source or UNSET))

    def run_ended(self, error: str | None, aborted: bool) -> None:
        """Send `run_end`."""
        self._send(RunEnd(aborted=aborted, error=error or UNSET))

    def injected(self, text: str, source: str | None) -> None:
        """Send `message_injected`."""
        self._send(MessageInjected(message=text, source=source or UNSET))

    def text(self, delta: str) -> None:
        """Send `message_update`."""
        self._send(MessageUpdate(delta=delta))

    def thinking(self, delta: str) -> None:
        """Send nothing: the thoughts are in the event of their message."""

    def warning(self, text: str) -> None:
        """Send a notice."""
        self._warn(text)

    def tool_judged(self, call: ToolCallContent) -> None:
        """Send nothing: events show it."""

    def tool_runs(self, call: ToolCallContent, judged: JudgedCall) -> None:
        """Send nothing: events show it."""

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Send nothing: hooks have not seen this output yet, one that hides secrets for example."""

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Send nothing: events show it."""
