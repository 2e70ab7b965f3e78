"""A session's life: start, runs, actions, shutdown.

All modes drive a `SessionHost` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import anyio
from anyio.abc import TaskGroup

from agent_hooks.errors import CommandBlockedError
from agent_hooks.host import CLIENT
from agent_hooks.host.actions import ActionOutcome, Actions, SessionChecks
from agent_hooks.host.agent import Agent
from agent_hooks.host.model import Model, ThinkingLevel
from agent_hooks.host.runs import Runs
from agent_hooks.host.session import Session
from agent_hooks.host.tokens import Log
from agent_hooks.host.view import View
from agent_hooks.pipeline.saving import keep_turns
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import Settings
from agent_hooks.values.answers import Block
from agent_hooks.values.content import AssistantMessage, Attachment, Entry, Message
from agent_hooks.values.events import ModelRef
from agent_hooks.values.tool import Tool

__all__ = ["ActionOutcome", "HostState", "SessionHost"]


class Renewed(NamedTuple):
    """The parts of a host that a reload changes, and sentences for the person that are new.

    `hooks`: the paths of those in force; `problems`: a sentence for each hook that could not be loaded, also known ones.
    """

    tools: Sequence[Tool]
    settings: Settings
    messages: Sequence[str] = ()
    hooks: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class Reloading(Protocol):
    """Loads the hooks and settings of a host again."""

    def changed(self) -> bool:
        """Tell whether a file that they were loaded from has changed."""
        ...

    async def reload(self, entries: Sequence[Entry]) -> Renewed:
        """Load them again; the former ones stay in force where the new ones cannot be loaded."""
        ...

    def tools(self) -> Sequence[Tool]:
        """Return the tools as they are now: hooks may have registered some since they were loaded."""
        ...

    def note_edits(self) -> Sequence[str]:
        """Record the edits since the last time, at the end; return sentences for the person."""
        ...


class HostState(NamedTuple):
    """The state of a host, for a client; `is_streaming`: the agent works on a prompt."""

    session_id: str
    session_file: str | None
    model: ModelRef
    thinking_level: ThinkingLevel
    is_streaming: bool
    message_count: int


class SessionHost:
    """An agent and its session: `async with SessionHost(...) as host`, which emits start and shutdown to the hooks.

    Create it on the event loop.  A message that is submitted before the start waits for the start, and `state` works.
    `thinking_level`: `None` for the level that the session was last used with; `settings`: when to compact
    automatically, and the settings that interceptors of `config` get; `checks`: decides which session files may be
    continued, all of them without it; `reloading`: loads hooks and settings again when they have changed, before a run or
    a turn; `instructions`: returns texts for the model, before each run.
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
        checks: SessionChecks | None = None,
        reloading: Reloading | None = None,
        instructions: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._runner = runner
        self._view = view
        self._reloading = reloading
        self._reload_lock = anyio.Lock()
        self._settings = settings
        runner.engine.warn = view.warning
        if settings.checkpoints.enabled and runner.engine.keeper is None:
            keep_turns(runner.engine, CLIENT)
        self._agent = Agent(
            runner=runner,
            model=model,
            tools=tools,
            session=session,
            view=view,
            before_run=self.reload_if_changed,
            before_turn=self._before_turn,
            instructions=instructions,
        )
        self._runs = Runs(self._agent, view)
        self._actions = Actions(
            runner=runner, agent=self._agent, runs=self._runs, view=view, settings=settings.compaction, checks=checks
        )
        self._tasks: TaskGroup | None = None
        self._actions.use(session, thinking_level)

    # ---- start and shutdown

    async def __aenter__(self) -> Self:
        self._stop_listening = self._runner.on_answer(self._actions.note_answer)
        if self._runner.mode != "print":
            self._runner.set_send_handler(self._runs.inbox.put)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        await self._tasks.start(self._runs.work)
        try:
            await self._agent.steering.config(self._settings)
            await self._actions.emit("start")
            if self._reloading is not None:
                self._agent.use_tools(self._reloading.tools())
            self._runner.check_matchers()
        # Any exception, also a cancellation by a signal: the hooks get their shutdown, and the exception goes on.
        except BaseException:
            await self._end()
            raise
        self._runs.resume()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        """Stop the run, emit the shutdown once, close the session file; also while this task is being cancelled."""
        assert self._tasks is not None
        self._runs.paused = True
        self._tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._runs.ended()
            self._runner.set_send_handler(None)
            try:
                # Before the shutdown, after which the session's records are closed.
                self._warn(() if self._reloading is None else self._reloading.note_edits())
                await self._actions.emit("shutdown")
            finally:
                self._stop_listening()
                if self._agent.messages:
                    # A session that is gone on with has them.
                    self._agent.keep_notes()
                self._agent.session.close()
        await self._tasks.__aexit__(None, None, None)

    # ---- messages and runs

    def submit(self, text: str, attachments: Sequence[Attachment] = (), source: str | None = None) -> None:
        """Send the agent a message: it begins a run when the agent is idle, else it goes into the next model request.

        `source`: the hook that sent it, `None` for the person.  Raises `SendError` when the message is too large or too
        many messages wait.
        """
        self._runs.inbox.put(text, attachments, source)

    async def prompt(self, text: str, attachments: Sequence[Attachment] = ()) -> AssistantMessage:
        """Work on a prompt and return the last response.

        Raises `ModelError` when the model cannot answer, `MessageBlockedError` when an interceptor blocks the prompt,
        `RunStoppedError` when a hook ends the run, `AbortedError` when it is aborted, and `HostBusyError` while the agent
        works or the session is being changed.
        """
        self._runs.check_idle()
        return await self._runs.prompt(text, attachments)

    def note(self, text: str) -> None:
        """Give the model a text before the next prompt, about a thing that the person has just done and seen."""
        self._agent.note(text)

    def has_note(self, text: str) -> bool:
        """Tell whether the model has not got a text yet."""
        return self._agent.has_note(text)

    def forget_note(self, text: str) -> bool:
        """Take a text back that the model has not got yet; return whether there was one."""
        return self._agent.forget_note(text)

    async def wait_idle(self) -> None:
        """Wait until the agent has worked on all submitted messages."""
        await self._runs.wait_idle()

    def abort(self) -> bool:
        """Stop the run, or the action that waits for a hook or the model; return whether there was one.

        The run's handlers, their dialogs and the tools are cancelled.
        """
        if not self.running and self._actions.abort():
            return True
        return self._runs.abort()

    def withdraw(self) -> list[str]:
        """Take back the messages of the person that wait, and return their texts."""
        return self._runs.withdraw()

    async def command(self, name: str, arguments: str) -> str:
        """Pass a slash command, without its slash, through the interceptors, and return its arguments.

        Raises `CommandBlockedError` when an interceptor blocks the command.
        """
        answer = await self._agent.steering.command(name, arguments)
        if isinstance(answer, Block):
            raise CommandBlockedError(f"not carried out: {answer}")
        return answer

    async def reload(self) -> Renewed | None:
        """Load the hooks and settings again, also while the agent works; `None` for a host that cannot.

        The person reads about each new problem.
        """
        if self._reloading is None:
            return None
        async with self._reload_lock:
            renewed = await self._reloading.reload(self.entries)
            self._agent.use_tools(renewed.tools)
            self._actions.settings = renewed.settings.compaction
            self._warn(renewed.messages)
            self._runner.check_matchers()
            if renewed.settings != self._settings:
                self._settings = renewed.settings
                await self._agent.steering.config(self._settings)
            return renewed

    async def reload_if_changed(self) -> bool:
        """Load the hooks and settings again if a file of them, or trust, has changed, and return whether one has.

        Each turn begins with this.
        """
        changed = self._reloading is not None and self._reloading.changed()
        if changed:
            await self.reload()
        return changed

    def _warn(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._view.warning(text)

    async def _before_turn(self) -> None:
        await self.reload_if_changed()
        await self._runs.deliver()
        await self._actions.compact_when_long()

    # ---- the state

    @property
    def running(self) -> bool:
        """Whether the agent works on a prompt."""
        return self._runs.running

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries of the session."""
        return self._actions.entries

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is offered."""
        return self._agent.tools

    @property
    def log(self) -> Log:
        """The session, for a running sum over its entries; another object after an action that replaces it."""
        return self._agent.session

    @property
    def context_tokens(self) -> int:
        """The tokens of the conversation, estimated since the last response."""
        return self._actions.count_tokens()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation, as the next request to the model has it."""
        return tuple(self._agent.messages)

    def state(self) -> HostState:
        """Return the state of the host."""
        agent = self._agent
        return HostState(
            session_id=agent.session.id,
            session_file=self._actions.file,
            model=ModelRef(provider=agent.model.provider, id=agent.model.id),
            thinking_level=agent.thinking_level,
            is_streaming=self.running,
            message_count=len(agent.messages),
        )

    def set_model(self, model: Model) -> None:
        """Use `model` from the next request on, also in the middle of a run."""
        self._actions.set_model(model)

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Use `level` from the next request on, also in the middle of a run."""
        self._actions.set_thinking_level(level)

    # ---- the actions; each raises `HostBusyError` while a run or another action is going on

    async def new_session(self) -> ActionOutcome:
        """Leave the session and begin a new one; raises `SessionError` when the new one cannot be saved."""
        return await self._actions.new_session()

    async def clear(self) -> ActionOutcome:
        """Do the same as `new_session`, with events of its own; the file of the session that is left stays."""
        return await self._actions.clear()

    async def switch_session(self, path: str | Path) -> ActionOutcome:
        """Leave the session and continue the one in the file `path` (relative to the agent's directory).

        Raises `SessionError` when that file cannot be read, or another process has it open.
        """
        return await self._actions.switch_session(path)

    async def branch(self, entry_index: int) -> ActionOutcome:
        """Begin a new session with the entries before the user message at `entry_index`; the outcome has its text.

        Raises `SessionError` when that entry is not a user message.
        """
        return await self._actions.branch(entry_index)

    async def compact(self, instructions: str | None = None) -> ActionOutcome:
        """Replace the older part of the conversation by a summary; `instructions`: for the model that summarises.

        Raises `ModelError` when the model cannot summarise, `SessionError` when there is nothing to summarise; the
        session is then unchanged.
        """
        return await self._actions.compact(instructions)
