"""RPC mode: another program drives the agent, by JSON lines on stdin and stdout.

The reader runs before any hook does, so that every dialog can be answered.  Commands take effect in the order in which
they come; while the session is being changed, which may wait for a dialog, those that need the session wait.
Above: run.  Below: base, pipes, protocol, ui.rpc.
"""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio
import click
from anyio.abc import TaskGroup
from msgspec import UNSET

from agent_hooks.cli.lifetime import leave_soon
from agent_hooks.cli.main import FAILED, INTERRUPTED, OK
from agent_hooks.cli.modes.base import Start, until_signal
from agent_hooks.cli.rpc.pipes import MAX_LINE, Lines, RecordWriter, read_chunks, reserve_stdin
from agent_hooks.cli.rpc.protocol import (
    Abort,
    ActionResponse,
    ActionResult,
    Branch,
    Clear,
    Command,
    Compact,
    GetState,
    HookErrorRecord,
    MessageInjected,
    MessageUpdate,
    NewSession,
    Prompt,
    Response,
    RunEnd,
    RunStart,
    Shutdown,
    State,
    StateResponse,
    SwitchSession,
    UnreadableLine,
    hook_error_record,
    parse,
)
from agent_hooks.cli.stderr import complain
from agent_hooks.cli.stdout import ReservedStdout
from agent_hooks.errors import AgentHooksError
from agent_hooks.host.lifecycle import Outcome, SessionHost
from agent_hooks.pipeline.order import JudgedCall
from agent_hooks.ui.rpc import HookUiResponse, RpcUI
from agent_hooks.values.content import ToolCallContent, ToolOutput

LAST_RUN = 5.0  # seconds that what was asked for gets to come to its end after the end of stdin
LAST_WORDS = 5.0  # seconds that a client gets to read the last records
_AT_THE_END = "the session is ending"


async def run(start: Start) -> int:
    """Serve one client until it ends the session, its pipe ends, or a signal comes."""
    if start.prompt is not None:
        raise click.UsageError("rpc mode takes its prompts on stdin; leave out the argument PROMPT")
    stdin = reserve_stdin()
    with ReservedStdout() as stdout:
        if isinstance(sys.stdout, io.TextIOWrapper):  # it is the log now, and a log does not keep lines to itself
            sys.stdout.reconfigure(line_buffering=True)
        writer = RecordWriter(stdout.duplicate())
        try:
            code = await _Server(writer).run(start, stdin)
        finally:
            read = writer.close(LAST_WORDS)
    if writer.broken:
        complain(f"stdout could not be written: {writer.broken}")
        return FAILED
    if not read:
        complain("the client did not read all that it was sent")
    return code


class _View:
    """Tells the client how the agent gets on, as far as no event does."""

    def __init__(self, send: Callable[[object], None], warn: Callable[[str], object]) -> None:
        self._send = send
        self._warn = warn

    def run_started(self, text: str, source: str | None) -> None:
        self._send(RunStart(message=text, source=source or UNSET))

    def run_ended(self, error: str | None, aborted: bool) -> None:
        self._send(RunEnd(aborted=aborted, error=error or UNSET))

    def injected(self, text: str, source: str | None) -> None:
        self._send(MessageInjected(message=text, source=source or UNSET))

    def text(self, delta: str) -> None:
        self._send(MessageUpdate(delta=delta))

    def tool_judged(self, call: ToolCallContent) -> None:
        """Say nothing: the events do."""

    def tool_runs(self, call: ToolCallContent) -> None:
        """Say nothing: the events do."""

    def tool_progress(self, call: ToolCallContent, partial: ToolOutput) -> None:
        """Say nothing: no hook has seen it yet, one that hides secrets for example."""

    def warning(self, text: str) -> None:
        self._warn(text)

    def tool_ended(self, call: ToolCallContent, judged: JudgedCall, output: ToolOutput, seconds: float) -> None:
        """Say nothing: the events do."""


class _Server:
    """Reads commands, and drives a `SessionHost` by them."""

    def __init__(self, writer: RecordWriter) -> None:
        self._send = writer.send
        self._gone = writer.gone
        self._ui = RpcUI(self._send)
        self._host: SessionHost | None = None  # before that, commands wait
        self._tasks: TaskGroup | None = None  # as soon as the session has started
        self._waiting: deque[Command] = deque()
        self._acting = False  # the session is being changed
        self._acted = anyio.Event()
        self._over = anyio.Event()
        self._finish = False  # whether what was asked for comes to its end first

    async def run(self, start: Start, stdin: int) -> int:
        failure: AgentHooksError | None = None
        code = FAILED
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, stdin)
            tasks.start_soon(self._watch_client)
            try:
                code = await self._serve(start, tasks)
            except AgentHooksError as exc:  # told by whoever called us, without the task group around it
                failure = exc
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return code

    async def _serve(self, start: Start, tasks: TaskGroup) -> int:
        setup = await start.load(self._warn, lambda _: None)
        for failure in setup.loaded.errors:
            self._send(
                HookErrorRecord(
                    hook_path=failure.path,
                    event="load",
                    error=failure.error,
                    handler="register",
                    outcome="blocked",
                    line=failure.line or UNSET,
                )
            )
        runner = start.runner(setup, "rpc", self._ui)
        runner.on_error(lambda error: self._send(hook_error_record(error)))
        runner.observe(self._send)
        code = OK
        async with runner:
            self._host = host = start.host(setup, runner, _View(self._send, self._warn))
            self._go_on()
            async with until_signal(before=self._ui.close) as scope:
                with anyio.CancelScope() as life:
                    tasks.start_soon(self._limit, life)
                    async with host, anyio.create_task_group() as self._tasks:
                        self._go_on()
                        await self._over.wait()
                        if self._finish:
                            await self._all_done(host)
                        self._tasks.cancel_scope.cancel()
            self._drop_waiting(_AT_THE_END)
            if scope.cancelled_caught:
                complain("interrupted")
                code = INTERRUPTED
            leave_soon(code)
        return code

    async def _limit(self, life: anyio.CancelScope) -> None:
        """Cut the session off when it is over, also one that has not got started."""
        await self._over.wait()
        if self._finish:
            await anyio.sleep(LAST_RUN)
        life.cancel()

    async def _all_done(self, host: SessionHost) -> None:
        while self._acting or self._waiting:
            await self._acted.wait()
        await host.wait_idle()

    def _warn(self, text: str) -> None:
        self._ui.notify(text, "warning")

    # ---- the client

    async def _read(self, stdin: int) -> None:
        lines = Lines()
        async for chunk in read_chunks(stdin):
            for number, line in lines.feed(chunk):
                self._take(number, line)
        for number, line in lines.end():
            self._take(number, line)
        self._end(finish=True)

    async def _watch_client(self) -> None:
        await self._gone.wait()
        self._end(finish=False)

    def _end(self, *, finish: bool) -> None:
        """End the session; nobody answers dialogs any more."""
        self._finish = finish and not self._over.is_set()
        self._over.set()
        self._ui.close()

    def _take(self, number: int, line: bytes | None) -> None:
        """Obey one line from the client."""
        if line is None:
            text = f"it is longer than {MAX_LINE // 2**20} MiB; reading goes on after its end"
            command: Command | HookUiResponse | UnreadableLine = UnreadableLine(text)
        elif not line.strip():
            return
        else:
            command = parse(line)
        if isinstance(command, UnreadableLine):
            if command.command == HookUiResponse.type:
                self._ui.refuse(command.id)
            self._refuse(command.command, command.id, f"line {number}: {command.error}")
        elif isinstance(command, HookUiResponse):
            if error := self._ui.answer(command):
                self._refuse(command.type, command.id, error)
        elif self._over.is_set():
            self._refuse(command.type, command.id, _AT_THE_END)
        elif isinstance(command, Prompt) and not command.message.strip() and not command.attachments:
            self._refuse(command.type, command.id, "the message is empty")
        elif isinstance(command, Abort):
            self._abort(command)
        elif isinstance(command, Shutdown):
            self._agree(command)
            self._end(finish=False)
        elif isinstance(command, GetState) and self._host is not None:
            self._obey_now(command, self._host)
        else:
            self._waiting.append(command)
            self._go_on()

    def _abort(self, command: Abort) -> None:
        self._drop_waiting("aborted before it began")
        if self._host is not None:
            self._host.abort()
        self._agree(command)

    def _drop_waiting(self, why: str) -> None:
        for command in self._waiting:
            self._refuse(command.type, command.id, why)
        self._waiting.clear()

    def _agree(self, command: Command) -> None:
        self._send(Response(id=_given(command.id), command=command.type, success=True))

    def _refuse(self, command: str, id: str | int | None, error: str) -> None:
        self._send(Response(id=_given(id), command=command, success=False, error=error))

    # ---- the host

    def _go_on(self) -> None:
        """Obey what waits, up to the next command whose time has not come."""
        while self._waiting and self._host is not None and not self._acting:
            if isinstance(self._waiting[0], Prompt | GetState):
                self._obey_now(self._waiting.popleft(), self._host)
            elif self._tasks is None:
                return
            else:
                self._acting = True
                self._tasks.start_soon(self._act, self._host)

    def _obey_now(self, command: Command, host: SessionHost) -> None:
        if isinstance(command, Prompt):
            try:
                host.submit(command.message, command.attachments)
            except AgentHooksError as exc:  # too much waits already, or it is too long
                self._refuse(command.type, command.id, str(exc))
            else:
                self._agree(command)
        else:
            state = State(**host.state()._asdict())
            self._send(StateResponse(id=_given(command.id), command="get_state", success=True, data=state))

    async def _act(self, host: SessionHost) -> None:
        """Change the session, as the next command says; an abort may just have dropped that."""
        try:
            if self._waiting and not isinstance(self._waiting[0], Prompt | GetState):
                await self._change_session(self._waiting.popleft(), host)
        finally:
            self._acting = False
            self._acted.set()
            self._acted = anyio.Event()
        self._go_on()

    async def _change_session(self, command: Command, host: SessionHost) -> None:
        try:
            outcome = await _change(command, host)
        except AgentHooksError as exc:  # nothing has changed, and the client learns why
            self._refuse(command.type, command.id, str(exc))
        except anyio.get_cancelled_exc_class():
            self._refuse(command.type, command.id, _AT_THE_END)
            raise
        else:
            self._send(_response(command, outcome))


async def _change(command: Command, host: SessionHost) -> Outcome:
    match command:
        case NewSession():
            return await host.new_session()
        case SwitchSession():
            return await host.switch_session(command.session_file)
        case Clear():
            return await host.clear()
        case Branch():
            return await host.branch(command.entry_index)
        case Compact():
            return await host.compact(command.custom_instructions)
    raise NotImplementedError(command.type)


def _response(command: Command, outcome: Outcome) -> ActionResponse:
    result = ActionResult(
        cancelled=outcome.cancelled,
        reason=_given(outcome.reason),
        text=_given(outcome.text),
        compaction_entry=_given(outcome.entry),
    )
    return ActionResponse(id=_given(command.id), command=command.type, success=True, data=result)


def _given(value: Any) -> Any:
    return UNSET if value is None else value
