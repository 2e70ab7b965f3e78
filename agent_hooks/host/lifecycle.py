"""A session's life: one agent, its session, and everything that a person or a program can do to them.

All modes drive a `SessionHost` and nothing else.  One task of its own works on what was submitted, one run after
another; what changes the session happens between runs only.
Above: cli.modes.  Below: agent, session, compaction, inbox.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from agent_hooks.answers import Cancel, SkipConversationRestore
from agent_hooks.content import (
    AssistantMessage,
    Attachment,
    CompactionEntry,
    Entry,
    Message,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
    UserMessage,
    text_of_content,
)
from agent_hooks.errors import HostBusyError, ModelError, SessionError
from agent_hooks.events import ModelRef, SessionEvent, SessionReason
from agent_hooks.host.agent import Agent
from agent_hooks.host.model import Model, ThinkingLevel
from agent_hooks.host.session import Session
from agent_hooks.host.view import View
from agent_hooks.runner import HookRunner
from agent_hooks.tool import Tool


class Outcome(NamedTuple):
    """What came of an action on the session.

    `cancelled`: a hook cancelled it, nothing changed, and `reason` says who and why; `text`: of a branch, the user
    message branched from, to be offered again; `entry`: of a compaction, what was saved.
    """

    cancelled: bool = False
    reason: str | None = None
    text: str | None = None
    entry: CompactionEntry | None = None


class HostState(NamedTuple):
    """What a program asks about a host; `is_streaming`: the agent works on a prompt."""

    session_id: str
    session_file: str | None
    model: ModelRef
    thinking_level: ThinkingLevel
    is_streaming: bool
    message_count: int


class Injected(NamedTuple):
    """A message on its way to the agent; `source` is the path of the hook that sent it, `None` for the person."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    source: str | None = None


class SessionHost:
    """An agent and its session: `async with SessionHost(...) as host`, which tells the hooks of start and shutdown.

    `thinking_level`: `None` for what the session was last used with.  A hook's `api.send` is a `submit`, except in print
    mode, which ends with its answer.
    """

    def __init__(
        self,
        *,
        runner: HookRunner,
        model: Model,
        tools: Sequence[Tool],
        session: Session,
        view: View,
        thinking_level: ThinkingLevel | None = None,
    ) -> None:
        self._runner = runner
        self._view = view
        self._wanted_level = thinking_level
        self._agent = Agent(
            runner=runner, model=model, tools=tools, session=session, view=view, before_turn=self._before_turn
        )
        self._inbox: list[Injected] = []
        self._tasks: TaskGroup | None = None
        self._run: anyio.CancelScope | None = None  # of the prompt that is worked on
        self._acting = True  # the session starts, ends or is being changed
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._worked = anyio.Event()  # the worker has ended
        self._cancelled_by = ""

    # ---- start and shutdown

    async def __aenter__(self) -> Self:
        agent = self._agent
        self._runner.on_answer(lambda handler, event, answer: self._answered(handler.label))
        self._runner.set_send_handler(self._sent)
        self._runner.check_matchers()
        self._use(agent.session)
        self._restore(agent.session, self._wanted_level)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        await self._tasks.start(self._work)
        try:
            await self._emit("start")
        except BaseException:  # a signal, most likely
            await self._end()
            raise
        self._acting = False
        self._wake.set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        assert self._tasks is not None
        self._acting = True
        self._tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._worked.wait()
            self._runner.set_send_handler(None)
            await self._emit("shutdown")
            self._agent.session.close()
        await self._tasks.__aexit__(None, None, None)

    # ---- what is said to the agent

    def submit(self, text: str, attachments: Sequence[Attachment] = (), source: str | None = None) -> None:
        """Hand the agent a message: a new run when it is idle, else delivered before the next model request."""
        self._inbox.append(Injected(text, tuple(attachments), source))
        self._arrived()

    def _sent(self, text: str, attachments: Sequence[Attachment], source: str) -> None:
        if self._runner.mode == "print":
            self._view.warning(
                f"{source}: a message was not sent: print mode takes one prompt and ends with its answer"
            )
            return
        self.submit(text, attachments, source)

    def _arrived(self) -> None:
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._wake.set()

    async def prompt(self, text: str, attachments: Sequence[Attachment] = ()) -> AssistantMessage:
        """Work on a prompt and return the last response; raises `ModelError`, and `HostBusyError` while another runs."""
        self._refuse_when_busy()
        answer = await self._work_on(Injected(text, tuple(attachments)))
        if isinstance(answer, ModelError):
            raise answer
        if answer is None:
            raise ModelError("aborted")
        return answer

    async def wait_idle(self) -> None:
        """Wait until everything that was submitted has been worked on."""
        while self.running or self._inbox:
            await self._idle.wait()

    def abort(self) -> bool:
        """Stop working on the prompt; return whether there was one."""
        if self._run is None:
            return False
        self._run.cancel()
        return True

    async def _work(self, *, task_status: TaskStatus[None]) -> None:
        try:
            task_status.started()
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                while self._inbox and not self._acting and self._run is None:
                    await self._work_on(self._inbox.pop(0))
                if not self._inbox and self._run is None:
                    self._idle.set()
        finally:
            self._worked.set()

    async def _work_on(self, message: Injected) -> AssistantMessage | ModelError | None:
        """Run one prompt; return the last response, or why there is none: the error, `None` when aborted."""
        error: ModelError | None = None
        answer: AssistantMessage | None = None
        self._view.run_started(message.text, message.source)
        with anyio.CancelScope() as self._run:
            try:
                answer = await self._agent.prompt(message.text, message.attachments)
            except ModelError as exc:
                error = exc
            finally:
                aborted, self._run = self._run.cancel_called, None
                self._view.run_ended(None if error is None else str(error), aborted)
                self._wake.set()
        return answer or error

    async def _before_turn(self) -> None:
        taken, self._inbox = self._inbox, []
        for message in taken:
            self._view.injected(message.text, message.source)
            self._agent.inject(message.text, message.attachments)

    # ---- what there is

    @property
    def running(self) -> bool:
        """Whether the agent works on a prompt."""
        return self._run is not None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries of the session."""
        return self._agent.session.entries

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation, as the model is shown it."""
        return tuple(self._agent.messages)

    def state(self) -> HostState:
        """Return what a program asks about."""
        agent = self._agent
        return HostState(
            session_id=agent.session.id,
            session_file=self._file(),
            model=ModelRef(provider=agent.model.provider, id=agent.model.id),
            thinking_level=agent.thinking_level,
            is_streaming=self.running,
            message_count=len(agent.messages),
        )

    def _file(self) -> str | None:
        path = self._agent.session.path
        return None if path is None else str(path)

    # ---- what is done to the session

    async def new_session(self) -> Outcome:
        """Leave the session and begin another one."""
        with self._action():
            if cancelled := await self._ask("before_switch"):
                return cancelled
            await self._go_to(self._fresh(), "switch")
            return Outcome()

    async def switch_session(self, path: str | Path) -> Outcome:
        """Leave the session and go on with the one in `path`; raises `SessionError` when that cannot be read."""
        with self._action():
            current = self._agent.session.path
            if current is not None and current.exists() and Path(path).exists() and current.samefile(path):
                raise SessionError(f"{path}: this is the session you are in")
            session = Session.open(path, self._runner.cwd)
            try:
                cancelled = await self._ask("before_switch")
            except BaseException:
                session.close()
                raise
            if cancelled:
                session.close()
                return cancelled
            await self._go_to(session, "switch")
            return Outcome()

    async def clear(self) -> Outcome:
        """Forget the conversation: leave the session, which stays on disk, and begin another one."""
        with self._action():
            if cancelled := await self._ask("before_clear"):
                return cancelled
            await self._go_to(self._fresh(), "clear")
            return Outcome()

    async def branch(self, entry_index: int) -> Outcome:
        """Go back before the user message at `entry_index`, in a session of its own; its text is offered again.

        Raises `SessionError` when there is no user message.
        """
        with self._action():
            agent = self._agent
            entries = agent.session.entries
            entry = entries[entry_index] if 0 <= entry_index < len(entries) else None
            if not isinstance(entry, MessageEntry) or not isinstance(entry.message, UserMessage):
                raise SessionError(f"entry {entry_index} is no user message; only from one of those can be branched")
            first = bisect_right(agent.turns, entry_index)
            target = {"target_turn_index": entry_index, "target_turn": first if first < len(agent.turns) else None}
            answer = await self._emit("before_branch", **target)
            if isinstance(answer, Cancel):
                return self._cancelled(answer)
            session = self._fresh(entries[1:entry_index], branched_from=self._file() or agent.session.id)
            keeps = isinstance(answer, SkipConversationRestore) and answer.skip
            await self._go_to(session, "branch", keep_messages=keeps, turns=agent.turns[:first], **target)
            return Outcome(text=text_of_content(entry.message.content))

    def set_model(self, model: Model) -> None:
        """Let `model` answer from here on, also in the middle of a run: from the next request."""
        self._agent.model = model
        self._agent.session.add_model(model.provider, model.id)

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Let the model think as much as `level` says from here on: from the next request."""
        self._agent.thinking_level = level
        self._agent.session.add_thinking_level(level)

    def _refuse_when_busy(self) -> None:
        if self._run is not None:
            raise HostBusyError("the agent is working; abort it first")
        if self._acting:
            raise HostBusyError("the session is being changed; answer the open question first")

    @contextmanager
    def _action(self) -> Iterator[None]:
        self._refuse_when_busy()
        self._acting = True
        try:
            yield
        finally:
            self._acting = False
            self._wake.set()

    async def _ask(self, reason: SessionReason) -> Outcome | None:
        """Emit a before-event without more fields; return the outcome if a hook cancels."""
        answer = await self._emit(reason)
        return self._cancelled(answer) if isinstance(answer, Cancel) else None

    def _cancelled(self, answer: Cancel) -> Outcome:
        return Outcome(cancelled=True, reason=f"{self._cancelled_by}: {answer.reason or 'cancelled'}")

    def _answered(self, hook: str) -> None:
        self._cancelled_by = hook

    def _fresh(self, entries: Sequence[Entry] = (), branched_from: str | None = None) -> Session:
        cwd = self._runner.cwd
        if self._agent.session.path is None:
            return Session(cwd=cwd, branched_from=branched_from, entries=entries)
        return Session.create(cwd, branched_from=branched_from, entries=entries)

    async def _go_to(
        self,
        session: Session,
        reason: SessionReason,
        *,
        keep_messages: bool = False,
        turns: list[int] | None = None,
        **fields: Any,
    ) -> None:
        left, path = self._agent.session, self._file()
        self._use(session)
        messages = self._agent.messages
        self._restore(session, None)
        if keep_messages:
            self._agent.messages = messages
        if turns is not None:
            self._agent.turns = turns
        left.close()
        await self._emit(reason, previous_session_file=path, **fields)

    def _use(self, session: Session) -> None:
        session.tell = self._view.warning
        for note in session.notes:
            self._view.warning(note)
        self._agent.session = session
        self._runner.set_session_file(session.path, session_id=session.id)

    def _restore(self, session: Session, level: ThinkingLevel | None) -> None:
        """Take the conversation from the entries, and what the model was last set to."""
        agent = self._agent
        messages = [entry.message for entry in session.entries if isinstance(entry, MessageEntry)]
        agent.messages = messages
        agent.turns = [
            index
            for index, entry in enumerate(session.entries)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
        ]
        models = [entry for entry in session.entries if isinstance(entry, ModelChangeEntry)]
        levels = [entry for entry in session.entries if isinstance(entry, ThinkingLevelChangeEntry)]
        used = (models[-1].provider, models[-1].model_id) if models else None
        if used != (agent.model.provider, agent.model.id):
            if used is not None:
                now = f"{agent.model.provider}:{agent.model.id}"
                self._view.warning(f"this session was last used with {':'.join(used)}; it goes on with {now}")
            self.set_model(agent.model)
        last: Any = levels[-1].thinking_level if levels else "off"
        agent.thinking_level = last
        if level not in (None, last):
            self.set_thinking_level(level)

    async def _emit(self, reason: SessionReason, **fields: Any) -> Any:
        return await self._runner.emit(
            SessionEvent(reason=reason, entries=self.entries, session_file=self._file(), **fields)
        )
