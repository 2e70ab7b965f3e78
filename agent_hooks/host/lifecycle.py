"""A session's life: one agent, its session, and everything that a person or a program can do to them.

All modes drive a `SessionHost` and nothing else.  What changes the session happens between runs only, in this order: the
before-event, and when no hook cancels, the file and the conversation together, then the after-event.
Above: cli.modes.  Below: runs, agent, session, compaction.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import anyio
from anyio.abc import TaskGroup

from agent_hooks.dispatch.handlers import Handler
from agent_hooks.errors import CommandBlockedError, HostBusyError, ModelError, SessionError
from agent_hooks.host.agent import Agent
from agent_hooks.host.compaction import accept, context_tokens, conversation, prepare, summarize
from agent_hooks.host.model import THINKING_LEVELS, Model, ThinkingLevel
from agent_hooks.host.models.keys import find_key
from agent_hooks.host.runs import Runs
from agent_hooks.host.session import Session
from agent_hooks.host.session_file import all_is_kept
from agent_hooks.host.view import View
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import Settings
from agent_hooks.values.answers import Block, Cancel, Compaction, SkipConversationRestore
from agent_hooks.values.content import (
    AssistantMessage,
    Attachment,
    CompactionEntry,
    Entry,
    Message,
    MessageEntry,
    UserMessage,
    text_of_content,
)
from agent_hooks.values.events import Event, ModelRef, SessionEvent, SessionReason
from agent_hooks.values.tool import Tool


class Outcome(NamedTuple):
    """What came of an action on the session.

    `cancelled`: a hook cancelled it, nothing changed, and `reason` says who and why; `text`: of a branch, the user
    message branched from, to be offered again; `entry`: of a compaction, what was saved.
    """

    cancelled: bool = False
    reason: str | None = None
    text: str | None = None
    entry: CompactionEntry | None = None


ABORTED = Outcome(cancelled=True, reason="aborted")


class HostState(NamedTuple):
    """What a program asks about a host; `is_streaming`: the agent works on a prompt."""

    session_id: str
    session_file: str | None
    model: ModelRef
    thinking_level: ThinkingLevel
    is_streaming: bool
    message_count: int


class SessionHost:
    """An agent and its session: `async with SessionHost(...) as host`, which tells the hooks of start and shutdown.

    Made on the event loop; what is submitted before the start waits for it, and `state` can be asked.
    `thinking_level`: `None` for what the session was last used with; `settings`: when to compact without being
    asked, and what the point `config` is shown.
    A hook's `api.send` is a `submit`, except in print mode, which ends with its answer.
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
        settings: Settings = Settings(),  # noqa: B008  # frozen
    ) -> None:
        self._runner = runner
        self._view = view
        self._settings = settings
        self._compaction = settings.compaction
        self._agent = Agent(
            runner=runner, model=model, tools=tools, session=session, view=view, before_turn=self._before_turn
        )
        self._tasks: TaskGroup | None = None
        self._question: anyio.CancelScope | None = None  # what an action waits for, and an abort ends
        self._canceller = ""  # the hook whose answer was a cancel
        self._gave_up_in = 0  # the run in which an automatic compaction did not help
        self._runs = Runs(self._agent, view)
        self._use(session, thinking_level)

    # ---- start and shutdown

    async def __aenter__(self) -> Self:
        self._undo = self._runner.on_answer(self._answered)
        if self._runner.mode != "print":
            self._runner.set_send_handler(self._runs.inbox.put)
        self._runner.check_matchers()
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        await self._tasks.start(self._runs.work)
        try:
            await self._agent.steering.config(self._settings)
            await self._emit("start")
        except BaseException:  # a signal, most likely
            await self._end()
            raise
        self._runs.resume()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        """Stop the run, tell the hooks once, close the file; also while this task is being cancelled."""
        assert self._tasks is not None
        self._runs.paused = True
        self._tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._runs.ended()
            self._runner.set_send_handler(None)
            try:
                await self._emit("shutdown")
            finally:
                self._undo()
                self._agent.session.close()
        await self._tasks.__aexit__(None, None, None)

    # ---- what is said to the agent

    def submit(self, text: str, attachments: Sequence[Attachment] = (), source: str | None = None) -> None:
        """Hand the agent a message: a new run when it is idle, else delivered before the next model request.

        `source`: the hook that sent it, `None` for the person.  Raises `SendError` when it is too large or too many wait.
        """
        self._runs.inbox.put(text, attachments, source)

    async def prompt(self, text: str, attachments: Sequence[Attachment] = ()) -> AssistantMessage:
        """Work on a prompt and return the last response.

        Raises `ModelError` when the model cannot answer, `AbortedError` when it was not to, and `HostBusyError` while
        another prompt is worked on.
        """
        self._refuse_when_busy()
        return await self._runs.prompt(text, attachments)

    async def wait_idle(self) -> None:
        """Wait until everything that was submitted has been worked on."""
        await self._runs.wait_idle()

    def abort(self) -> bool:
        """Stop the run, or what an action on the session waits for; return whether there was anything to stop.

        Handlers, their dialogs and tools are cancelled.
        """
        if self._question is not None and not self.running:
            self._question.cancel()
            return True
        return self._runs.abort()

    async def _before_turn(self) -> None:
        await self._runs.deliver()
        limit = self._compaction.limit(getattr(self._agent.model, "window", None))
        if limit is None or self._gave_up_in == self._runs.count or context_tokens(self.entries) <= limit:
            return
        try:
            outcome = await self._compact(None)
        except (ModelError, SessionError) as exc:
            self._give_up(f"was not compacted: {exc}")
        else:
            if outcome.cancelled:
                self._give_up(f"was not compacted: {outcome.reason}")
            elif context_tokens(self.entries) > limit:
                self._give_up(f"is longer than {limit:,} tokens also after it was compacted")

    def _give_up(self, why: str) -> None:
        """Say so once, and go on with the long conversation: the next prompt tries again."""
        self._gave_up_in = self._runs.count
        self._view.warning(f"the conversation {why}")

    # ---- what there is

    @property
    def running(self) -> bool:
        """Whether the agent works on a prompt."""
        return self._runs.running

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
        """Leave the session and begin another one; raises `SessionError` when that cannot be saved."""
        with self._action():
            if cancelled := await self._ask("before_switch"):
                return cancelled
            await self._go_to(self._fresh(), "switch")
            return Outcome()

    async def clear(self) -> Outcome:
        """Forget the conversation: the same, with events of its own; the session that is left stays on disk."""
        with self._action():
            if cancelled := await self._ask("before_clear"):
                return cancelled
            await self._go_to(self._fresh(), "clear")
            return Outcome()

    async def switch_session(self, path: str | Path) -> Outcome:
        """Leave the session and go on with the one in `path` (relative to the agent's directory).

        Raises `SessionError` when that cannot be read, or another process works on it.
        """
        path = Path(self._runner.cwd, os.path.expanduser(path))
        with self._action():
            if self._is_here(path):
                raise SessionError(f"{path}: this is the session you are in")
            session = Session.open(path, self._runner.cwd)
            try:
                cancelled = await self._ask("before_switch")
            except BaseException:  # a cancellation too: the lock must not stay behind
                session.close()
                raise
            if cancelled:
                session.close()
                return cancelled
            await self._go_to(session, "switch")
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
                raise SessionError(f"entry {entry_index} is no message of a person; a branch begins before one")
            first = bisect_right(agent.turns, entry_index)
            target = {"target_turn_index": entry_index, "target_turn": first if first < len(agent.turns) else None}
            answer = await self._emit_before(self._event("before_branch", **target))
            if isinstance(answer, Cancel):
                return self._cancelled(answer)
            session = self._fresh(entries[1:entry_index], branched_from=self._file() or agent.session.id)
            keeps = isinstance(answer, SkipConversationRestore) and answer.skip
            await self._go_to(session, "branch", keep_messages=keeps, turns=agent.turns[:first], **target)
            return Outcome(text=text_of_content(entry.message.content))

    async def compact(self, instructions: str | None = None) -> Outcome:
        """Let a summary take the place of the older part of the conversation; `instructions`: what it should heed.

        Raises `ModelError` when the model cannot summarise, `SessionError` when there is nothing to; the session is then
        as it was.
        """
        with self._action():
            return await self._compact(instructions)

    async def _compact(self, instructions: str | None) -> Outcome:
        agent = self._agent
        event = prepare(
            self.entries,
            model=agent.model,
            session_file=self._file(),
            keep_recent_tokens=self._compaction.keep_recent_tokens,
            custom_instructions=instructions,
        ).with_keys(find_key)
        answer = await self._emit_before(event)
        if isinstance(answer, Cancel):
            return self._cancelled(answer)
        if isinstance(answer, Compaction):
            entry = accept(answer)
        else:
            with self._abortable() as scope:
                heed = await agent.steering.compacting()
                entry = await summarize(event, agent.model, context=heed.context, prompt=heed.prompt)
            if scope.cancelled_caught:
                return ABORTED
        agent.session.append(entry)
        agent.messages = list(conversation(self.entries))
        fields = {"compaction_entry": entry, "tokens_before": entry.tokens_before, "from_hook": entry.from_hook}
        await self._emit("compact", **fields)
        return Outcome(entry=entry)

    async def command(self, name: str, arguments: str) -> str:
        """Let interceptors see a slash command (without its slash) before it is carried out; return its arguments.

        Raises `CommandBlockedError`.
        """
        answer = await self._agent.steering.command(name, arguments)
        if isinstance(answer, Block):
            raise CommandBlockedError(f"not carried out: {answer}")
        return answer

    def set_model(self, model: Model) -> None:
        """Let `model` answer from here on, also in the middle of a run: from the next request."""
        self._agent.model = model
        self._agent.session.add_model(model.provider, model.id)

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Let the model think as much as `level` says from here on: from the next request."""
        self._agent.thinking_level = level
        self._agent.session.add_thinking_level(level)

    # ---- how it is done

    def _refuse_when_busy(self) -> None:
        if self._runs.running:
            raise HostBusyError("the agent is working; abort it first")
        if self._runs.paused:
            raise HostBusyError("the session is being changed; wait for that, or abort it")

    @contextmanager
    def _action(self) -> Iterator[None]:
        """Keep runs and other actions out."""
        self._refuse_when_busy()
        self._runs.paused = True
        try:
            yield
        finally:
            self._runs.resume()

    @contextmanager
    def _abortable(self) -> Iterator[anyio.CancelScope]:
        with anyio.CancelScope() as scope:
            self._question = scope
            try:
                yield scope
            finally:
                self._question = None

    async def _emit_before(self, event: SessionEvent) -> Any:
        """Ask the hooks; an abort of their dialogs is a cancel too."""
        self._canceller = ""
        with self._abortable() as scope:
            answer = await self._runner.emit(event)
        return Cancel("aborted") if scope.cancelled_caught else answer

    async def _ask(self, reason: SessionReason) -> Outcome | None:
        """Emit a before-event without more fields; return the outcome if a hook cancels."""
        answer = await self._emit_before(self._event(reason))
        return self._cancelled(answer) if isinstance(answer, Cancel) else None

    def _answered(self, handler: Handler, event: Event[Any], answer: object) -> None:
        if isinstance(answer, Cancel) or (isinstance(answer, Mapping) and answer.get("cancel") is True):
            self._canceller = handler.label

    def _cancelled(self, answer: Cancel) -> Outcome:
        """Say who cancelled; the reason of a gate that failed does already."""
        who = f"cancelled by {self._canceller}" if self._canceller else ""
        return Outcome(cancelled=True, reason=": ".join(filter(None, (who, answer.reason))))

    def _is_here(self, path: Path) -> bool:
        here = self._agent.session.path
        try:
            return here is not None and here.samefile(path)
        except (OSError, ValueError):  # opening it says why
            return False

    def _fresh(self, entries: Sequence[Entry] = (), branched_from: str | None = None) -> Session:
        """Return a new session, saved if the one before it is."""
        make = Session.create if self._agent.session.path is not None else Session
        return make(cwd=self._runner.cwd, branched_from=branched_from, entries=entries)

    async def _go_to(
        self,
        session: Session,
        reason: SessionReason,
        *,
        keep_messages: bool = False,
        turns: list[int] | None = None,
        **fields: Any,
    ) -> None:
        """Replace file and conversation, then tell the hooks."""
        left, path, messages = self._agent.session, self._file(), self._agent.messages
        self._use(session)
        if keep_messages:
            self._agent.messages = messages
        if turns is not None:
            self._agent.turns = turns
        left.close()
        await self._emit(reason, previous_session_file=path, **fields)

    def _use(self, session: Session, level: ThinkingLevel | None = None) -> None:
        """Go on with a session: its conversation, its turns, and how much the model thought; `level` counts if given."""
        agent = self._agent
        session.tell = self._view.warning
        for note in session.notes:
            self._view.warning(note)
        agent.session = session
        with all_is_kept():
            agent.messages = list(conversation(session.entries))
        agent.turns = session.turns()
        used, now = session.last_model(), f"{agent.model.provider}:{agent.model.id}"
        if used not in (None, now):
            self._view.warning(f"this session was last used with {used}; it goes on with {now}")
        if used != now:
            self.set_model(agent.model)
        last = session.last_thinking_level()
        agent.thinking_level = next((known for known in THINKING_LEVELS if known == last), "off")
        if level not in (None, agent.thinking_level):
            self.set_thinking_level(level)
        self._runner.set_session_file(session.path, session_id=session.id)

    def _event(self, reason: SessionReason, **fields: Any) -> SessionEvent:
        return SessionEvent(reason=reason, entries=self.entries, session_file=self._file(), **fields)

    async def _emit(self, reason: SessionReason, **fields: Any) -> None:
        await self._runner.emit(self._event(reason, **fields))
