"""The actions on a session: switch, new, clear, branch, compact.

An action takes place between runs, in this order: the hooks get the before-event; when none of them cancels, the session
file and the conversation are replaced together; then the hooks get the after-event.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import anyio

from agent_hooks.dispatch.handlers import Handler
from agent_hooks.errors import ModelError, SessionError
from agent_hooks.host.agent import Agent
from agent_hooks.host.compaction import accept, prepare, summarize
from agent_hooks.host.exchanges import conversation
from agent_hooks.host.model import THINKING_LEVELS, Model, ThinkingLevel
from agent_hooks.host.models import find_key
from agent_hooks.host.runs import Runs
from agent_hooks.host.session import Session
from agent_hooks.host.session_file import paused_collector
from agent_hooks.host.tokens import TokenCounter
from agent_hooks.host.view import View
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import CompactionSettings
from agent_hooks.values.answers import AddContext, Cancel, Compaction, SkipConversationRestore
from agent_hooks.values.content import CompactionEntry, Entry, MessageEntry, UserMessage
from agent_hooks.values.events import Event, SessionEvent, SessionReason


class ActionOutcome(NamedTuple):
    """The outcome of an action on the session.

    `cancelled`: a hook or an abort cancelled the action, so nothing changed, and `reason` names the hook and its reason;
    `text`: after a branch, the user message branched from, for the prompt line; `entry`: after a compaction, the entry
    that was saved; `model`: after a switch, the model that answered last in the session, as `provider:id`.
    """

    cancelled: bool = False
    reason: str | None = None
    text: str | None = None
    entry: CompactionEntry | None = None
    model: str | None = None


ABORTED = ActionOutcome(cancelled=True, reason="aborted")


class SessionChecks(Protocol):
    """Decides which session files this host may go on with."""

    def wrote(self, session: Session) -> None:
        """Note a session that the host works on from now on."""

    async def accept(self, session: Session) -> None:
        """Return if a session that was opened may be continued; raises `SessionError`."""


class Actions:
    """Carries out the actions of one host, one at a time, and only while no run is going on.

    An action raises `HostBusyError` while the agent works or another action is going on.  `model` and
    `thinking_level` are not actions: they can change during a run, and so can `settings`.
    """

    def __init__(
        self,
        *,
        runner: HookRunner,
        agent: Agent,
        runs: Runs,
        view: View,
        settings: CompactionSettings,
        checks: SessionChecks | None = None,
    ) -> None:
        self._runner = runner
        self._agent = agent
        self._runs = runs
        self._view = view
        self.settings = settings
        self._checks = checks
        self._tokens = TokenCounter()
        # The part of an action that an abort ends: the hooks' dialogs, or the model's summary.
        self._scope: anyio.CancelScope | None = None
        # The handler that answered the last before-event with a cancel.
        self._canceller = ""
        # The number of the run in which an automatic compaction did not help.
        self._gave_up_in = 0

    # ---- the session

    @property
    def file(self) -> str | None:
        """The path of the session file, `None` for a session without one."""
        path = self._agent.session.path
        return None if path is None else str(path)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries of the session."""
        return self._agent.session.entries

    async def emit(self, reason: SessionReason, **fields: Any) -> None:
        """Emit a `session` event about the session as it is now."""
        answer = await self._runner.emit(self._event(reason, **fields))
        if isinstance(answer, AddContext):
            self._agent.add_context(answer)

    def use(self, session: Session, level: ThinkingLevel | None = None) -> None:
        """Make `session` the agent's session: its conversation, its turns, its model and its thinking level.

        `level` replaces the thinking level that the session was last used with.
        """
        agent = self._agent
        session.report = self._view.warning
        for note in session.notes:
            self._view.warning(note)
        agent.session = session
        if self._checks is not None:
            self._checks.wrote(session)
        with paused_collector():
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

    def set_model(self, model: Model) -> None:
        """Use `model` from the next request on, also in the middle of a run, and save that in the session."""
        self._agent.model = model
        self._agent.session.add_model(model.provider, model.id)

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Use `level` from the next request on, also in the middle of a run, and save that in the session."""
        self._agent.thinking_level = level
        self._agent.session.add_thinking_level(level)

    # ---- the actions

    async def new_session(self) -> ActionOutcome:
        """Leave the session and begin a new one."""
        return await self._begin("before_switch", "switch")

    async def clear(self) -> ActionOutcome:
        """Leave the session and begin a new one, with the events of a clear."""
        return await self._begin("before_clear", "clear")

    async def _begin(self, before: SessionReason, after: SessionReason) -> ActionOutcome:
        with self._exclusive():
            if cancelled := await self._consult(before):
                return cancelled
            await self._go_to(self._fresh(), after, keep_level=True)
            return ActionOutcome()

    async def switch_session(self, path: str | Path) -> ActionOutcome:
        """Leave the session and continue the one in the file `path`."""
        path = Path(self._runner.cwd, os.path.expanduser(path))
        with self._exclusive():
            if self._is_open(path):
                raise SessionError(f"{path}: this session is already open")
            session = Session.open(path, self._runner.cwd, home=self._agent.session.home)
            try:
                if self._checks is not None:
                    await self._checks.accept(session)
                cancelled = await self._consult("before_switch")
            # Neither a refusal nor a cancellation may leave the file locked.  The exception goes on to the caller.
            except BaseException:
                session.close()
                raise
            if cancelled:
                session.close()
                return cancelled
            used = session.last_model()
            await self._go_to(session, "switch", keep_level=False)
            return ActionOutcome(model=used)

    async def branch(self, entry_index: int) -> ActionOutcome:
        """Begin a new session with the entries before the user message at `entry_index`."""
        with self._exclusive():
            agent = self._agent
            entries = agent.session.entries
            entry = entries[entry_index] if 0 <= entry_index < len(entries) else None
            if not isinstance(entry, MessageEntry) or not isinstance(entry.message, UserMessage):
                raise SessionError(f"entry {entry_index} is not a user message; a branch begins before a user message")
            first = bisect_right(agent.turns, entry_index)
            target = {"target_turn_index": entry_index, "target_turn": first if first < len(agent.turns) else None}
            answer = await self._emit_before(self._event("before_branch", **target))
            if isinstance(answer, Cancel):
                return self._cancelled(answer)
            session = self._fresh(entries[1:entry_index], branched_from=self.file or agent.session.id)
            keeps = isinstance(answer, SkipConversationRestore) and answer.skip
            turns = agent.turns[:first]
            await self._go_to(session, "branch", keep_level=True, keep_messages=keeps, turns=turns, **target)
            return ActionOutcome(text=entry.message.sent)

    async def compact(self, instructions: str | None = None) -> ActionOutcome:
        """Replace the older part of the conversation by a summary."""
        with self._exclusive():
            return await self._compact(instructions)

    async def compact_when_long(self) -> None:
        """Compact the conversation when it is longer than the settings allow; called before each turn.

        When that does not help, the person gets one warning in this run, and the next run tries again.
        """
        limit = self.settings.limit(getattr(self._agent.model, "window", None))
        if limit is None or self._gave_up_in == self._runs.count or self.count_tokens() <= limit:
            return
        try:
            outcome = await self._compact(None)
        except (ModelError, SessionError) as exc:
            self._give_up(f"was not compacted: {exc}")
        else:
            if outcome.cancelled:
                self._give_up(f"was not compacted: {outcome.reason}")
            elif self.count_tokens() > limit:
                self._give_up(f"is longer than {limit:,} tokens also after it was compacted")

    def count_tokens(self) -> int:
        """Return the tokens of the conversation, as the next request would have it."""
        return self._tokens.count(self._agent.session)

    def _give_up(self, reason: str) -> None:
        self._gave_up_in = self._runs.count
        self._view.warning(f"the conversation {reason}")

    async def _compact(self, instructions: str | None) -> ActionOutcome:
        agent = self._agent
        event = prepare(
            self.entries,
            model=agent.model,
            session_file=self.file,
            keep_recent_tokens=self.settings.keep_recent_tokens,
            custom_instructions=instructions,
        ).with_keys(find_key)
        answer = await self._emit_before(event)
        if isinstance(answer, Cancel):
            return self._cancelled(answer)
        if isinstance(answer, Compaction):
            entry = accept(answer)
        else:
            with self._abortable() as scope:
                output = await agent.steering.compacting()
                entry = await summarize(event, agent.model, context=output.context, prompt=output.prompt)
            if scope.cancelled_caught:
                return ABORTED
        agent.session.append(entry)
        agent.messages = list(conversation(self.entries))
        fields = {"compaction_entry": entry, "tokens_before": entry.tokens_before, "from_hook": entry.from_hook}
        await self.emit("compact", **fields)
        return ActionOutcome(entry=entry)

    # ---- the steps of an action

    def abort(self) -> bool:
        """Cancel the handlers, dialogs or model request that an action waits for; return whether there were any."""
        if self._scope is None:
            return False
        self._scope.cancel()
        return True

    def note_answer(self, handler: Handler, event: Event[Any], answer: object) -> None:
        """Note which handler cancels: an answer listener of the runner."""
        if isinstance(answer, Cancel) or (isinstance(answer, Mapping) and answer.get("cancel") is True):
            self._canceller = handler.label

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Let no run and no other action begin in the block; raises `HostBusyError` when one is going on."""
        self._runs.check_idle()
        self._runs.paused = True
        try:
            yield
        finally:
            self._runs.resume()

    @contextmanager
    def _abortable(self) -> Iterator[anyio.CancelScope]:
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                yield scope
            finally:
                self._scope = None

    async def _consult(self, reason: SessionReason) -> ActionOutcome | None:
        """Emit a before-event that has no fields of its own; return the outcome if a hook cancels."""
        answer = await self._emit_before(self._event(reason))
        return self._cancelled(answer) if isinstance(answer, Cancel) else None

    async def _emit_before(self, event: SessionEvent) -> Any:
        """Emit a before-event and return the answer; an abort of the handlers counts as `Cancel`."""
        self._canceller = ""
        with self._abortable() as scope:
            answer = await self._runner.emit(event)
        return Cancel("aborted") if scope.cancelled_caught else answer

    def _cancelled(self, answer: Cancel) -> ActionOutcome:
        """Return the outcome of a cancel, with the handler's name; the reason of a failed gate has it already."""
        by = f"cancelled by {self._canceller}" if self._canceller else ""
        return ActionOutcome(cancelled=True, reason=": ".join(filter(None, (by, answer.reason))))

    def _is_open(self, path: Path) -> bool:
        here = self._agent.session.path
        try:
            return here is not None and here.samefile(path)
        # `Session.open` names the reason.
        except (OSError, ValueError):
            return False

    def _fresh(self, entries: Sequence[Entry] = (), branched_from: str | None = None) -> Session:
        """Return a new session, with a file if the session before it has one."""
        make = Session.create if self._agent.session.path is not None else Session
        home = self._agent.session.home
        return make(cwd=self._runner.cwd, branched_from=branched_from, entries=entries, home=home)

    async def _go_to(
        self,
        session: Session,
        reason: SessionReason,
        *,
        keep_level: bool,
        keep_messages: bool = False,
        turns: list[int] | None = None,
        **fields: Any,
    ) -> None:
        """Replace session file and conversation, then emit the after-event.

        `keep_level`: the thinking level stays as the person has set it; else it is that of the other session.
        """
        left, path, messages = self._agent.session, self.file, self._agent.messages
        self._agent.drop_context()
        self.use(session, self._agent.thinking_level if keep_level else None)
        if keep_messages:
            self._agent.messages = messages
        if turns is not None:
            self._agent.turns = turns
        left.close()
        await self.emit(reason, previous_session_file=path, **fields)

    def _event(self, reason: SessionReason, **fields: Any) -> SessionEvent:
        return SessionEvent(reason=reason, entries=self.entries, session_file=self.file, **fields)
