"""The runner: the object by which a program dispatches events to the handlers of its hooks."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from os import fspath
from os.path import abspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import UNSET, UnsetType

from agent_hooks.dispatch.context import Mode, Surroundings
from agent_hooks.dispatch.handlers import Handler, Undo
from agent_hooks.dispatch.interceptors import InterceptorRegistry
from agent_hooks.dispatch.stats import HandlerStats
from agent_hooks.errors import HookError, HookUsageError, SettingsError, shown
from agent_hooks.guards.base import Guard
from agent_hooks.hooks.loaded import LoadedHook, LoadResult
from agent_hooks.runner.engine import Engine
from agent_hooks.runner.listeners import SendHandler
from agent_hooks.runner.watchdog import Watchdog
from agent_hooks.settings import DEFAULT_TIMEOUT
from agent_hooks.transformers.base import ConfiguredTransformer
from agent_hooks.ui.base import Dialogs, SilentUI
from agent_hooks.validation import check_timeout
from agent_hooks.values.answers import Stop
from agent_hooks.values.events import Event
from agent_hooks.values.near import add_near_misses

if TYPE_CHECKING:
    from pathlib import Path

    from agent_hooks.dispatch.recording import Records
    from agent_hooks.redaction import Redactor
    from agent_hooks.runner.reloaded import Reloaded
    from agent_hooks.values.content import Entry

A = TypeVar("A")


class HookRunner:
    """Dispatches events to the handlers of loaded hooks.

    `hooks`: the result of `load_hooks` or `discover_and_load_hooks`, with which a hook that could not be loaded blocks
    every tool call; or only the hooks of that result.
    `timeout`: seconds of its own time that a handler gets on events with a deadline, `None` for no limit;
    `tool_call_timeout`: the same for `tool_call`, off by default; `ui`: asks the person for handlers, `None` when no
    person is there; `mode`, `session_file`, `session_id`: shown to handlers in their context; `guards`: vetoes of tool
    calls, for example `builtin_guards()`; `interceptors`: a registry that several runners share; `transformers`: the
    result of `load_transformers`, or your own; `redactor`: hides secrets in every result and progress update;
    `records`: writes every decision down, `None` for no records; `answers_home`: the agent home whose file keeps the
    answers that the person gives for good, `None` for answers that count for a session at most.

    Use it as `async with HookRunner(...) as runner`, once.  Entering starts the hooks' background tasks.  Leaving aborts
    the calls that run, ends the tasks and calls `on_unload`; afterwards, `emit` raises, and a call that has a gate is
    blocked.  Without entering, `emit` works as long as no hook has queued a task. Raises `SettingsError` for a wrong
    deadline, and `HookUsageError` when two interceptors have the same id.
    """

    def __init__(
        self,
        hooks: Iterable[LoadedHook] | LoadResult,
        *,
        cwd: str | Path = ".",
        timeout: float | None = DEFAULT_TIMEOUT,
        tool_call_timeout: float | None = None,
        ui: Dialogs | None = None,
        mode: Mode = "embedded",
        session_file: str | Path | None = None,
        session_id: str | None = None,
        guards: Iterable[Guard] = (),
        interceptors: InterceptorRegistry | None = None,
        transformers: Iterable[ConfiguredTransformer] = (),
        redactor: Redactor | None = None,
        records: Records | None = None,
        answers_home: str | Path | None = None,
    ) -> None:
        loaded = hooks.fail_closed() if isinstance(hooks, LoadResult) else list(hooks)
        if wrong := [hook for hook in loaded if not isinstance(hook, LoadedHook)]:
            raise HookUsageError(
                f"HookRunner wants loaded hooks, not {shown(wrong[0])}: await load_hooks([...], cwd=…)"
            )
        self._surroundings = Surroundings(
            cwd=abspath(fspath(cwd)),
            ui=SilentUI(),
            has_ui=False,
            mode=mode,
            session_id=session_id or uuid.uuid4().hex,
        )
        self.set_ui(ui)
        self.set_session_file(session_file)
        limits = {
            "hook_timeout": check_timeout(timeout, "HookRunner(timeout=…)"),
            "tool_call_timeout": check_timeout(tool_call_timeout, "HookRunner(tool_call_timeout=…)"),
        }
        self.engine = Engine(
            loaded,
            self._surroundings,
            limits=limits,
            guards=guards,
            registry=interceptors,
            transformers=transformers,
            redactor=redactor,
        )
        self.engine.answers_home = None if answers_home is None else abspath(fspath(answers_home))
        if records is not None:
            self.engine.record(records)
        if type(self).emit is HookRunner.emit:
            # The engine's method itself saves a call: an event without handlers takes 1.6 instead of 2 bare awaits.
            self.emit = self.engine.emit  # type: ignore[method-assign]
        self._known_tools: set[str] = set()
        self._entered = False
        self._watchdog = Watchdog(self.engine, self.engine.suspended, self.engine.report)
        self.matchers_checked = False

    # ---- lifetime

    async def __aenter__(self) -> Self:
        if self._entered:
            raise HookUsageError("this HookRunner was entered before; make a new one for each `async with`")
        self._entered = True
        try:
            await self.engine.processes.start()
            await self.engine.background.start()
            self._watchdog.start()
        # A cancellation, for example: `__aexit__` is not called then.
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        try:
            await self.engine.leave()
        finally:
            try:
                try:
                    await self.engine.background.end()
                finally:
                    await self.engine.processes.end()
            finally:
                self._watchdog.stop()
                self.end_records()

    def record_edits(self, edits: Iterable[Any], unlocked: Sequence[str] = ()) -> None:
        """Write edits of hooks and settings into the records, if there are any.

        `unlocked`: the directories in which the person lets the agent change them.
        """
        if self.engine.recorder is not None:
            self.engine.recorder.edited(edits, unlocked)

    def end_records(self) -> None:
        """Write the ends of the record files and close them, if there are any; leaving the runner does so."""
        if self.engine.recorder is not None:
            self.engine.recorder.close()

    async def reload(
        self,
        hooks: Iterable[LoadedHook] | LoadResult,
        *,
        guards: Iterable[Guard] | None = None,
        transformers: Iterable[ConfiguredTransformer] | None = None,
        redactor: Redactor | UnsetType | None = UNSET,
        timeout: float | UnsetType | None = UNSET,
        tool_call_timeout: float | UnsetType | None = UNSET,
        records: Records | None = None,
        entries: Sequence[Entry] = (),
    ) -> Reloaded:
        """Put newly loaded hooks in the place of those in force, and return the problems.

        `hooks`: a result of `load_hooks` or `discover_and_load_hooks`.  A hook of it that could not be loaded stays in
        force in its former version, or blocks every tool call if there is none.  The other arguments are those of
        `HookRunner`, and stay as they are unless given; `entries`: those of the session, for its events.

        The old hooks hear `session` shutdown, their tasks end, and their `on_unload` functions are called; then the new
        ones get `api.state`, hear `session` start, and their tasks begin.  Events that come meanwhile wait.  Raises
        `HookUsageError` before the runner is entered, after it was left, and in a handler; the new hooks are unloaded
        then, and the old ones stay.
        """
        # Imported here, because few programs load hooks again.
        from agent_hooks.runner.generation import Generation, kept_hooks, with_kept
        from agent_hooks.runner.reloading import discard, reload

        engine = self.engine
        redactor = engine.redactor if redactor is UNSET else redactor
        result = hooks if isinstance(hooks, LoadResult) else LoadResult(list(hooks), [])
        if redactor is not None:
            result = result.hidden(redactor.hide)
        kept = kept_hooks(engine.hooks, result.errors)
        paths = {hook.path for hook in kept}
        broken = LoadResult([], [error for error in result.errors if error.path not in paths])
        found = with_kept(result.hooks, kept, engine.hooks)
        try:
            limits = {
                "hook_timeout": self._limit("hook_timeout", timeout, "HookRunner.reload(timeout=…)"),
                "tool_call_timeout": self._limit(
                    "tool_call_timeout", tool_call_timeout, "HookRunner.reload(tool_call_timeout=…)"
                ),
            }
        except SettingsError:
            await discard(engine, result.hooks)
            raise
        generation = Generation(
            [*found, *broken.fail_closed()],
            engine.guards if guards is None else tuple(guards),
            engine.transformers if transformers is None else tuple(transformers),
            redactor,
            limits,
            records,
        )
        reloaded = await reload(engine, generation, result.errors, entries=entries)
        self.matchers_checked = False
        self._watchdog.forget()
        return reloaded

    def _limit(self, name: str, value: float | UnsetType | None, where: str) -> float | None:
        return self.engine.limits[name] if value is UNSET else check_timeout(value, where)

    # ---- dispatch

    def emit(self, event: Event[A]) -> Coroutine[Any, Any, A | None]:
        """Await this: it calls every handler of `event` in order, and returns their combined answer or `None`.

        Events that must not overlap wait for one another, first in, first out.  An event that a handler, one of its tasks
        or its thread emits runs at once.  Raises `HookUsageError` for a value that is no event, when a hook has queued a
        task and the runner was not entered, and when the runner was left.
        """
        return self.engine.emit(event)

    def emit_tool_call(self, event: Event[A]) -> Coroutine[Any, Any, A | None]:
        """The same as `emit`, under the name that other hook systems use."""
        return self.engine.emit(event)

    @property
    def interceptors(self) -> InterceptorRegistry:
        """The registry for interceptors of the program itself; hooks have `api.intercept`."""
        return self.engine.interceptors

    def has_handlers(self, event_type: str) -> bool:
        """Tell whether any handler is subscribed to events of this type."""
        return self.engine.has_handlers(event_type)

    def stats(self) -> list[HandlerStats]:
        """Return how often each handler ran and failed, and how long it took, in load order."""
        return [
            HandlerStats(h.hook, h.event, h.name, h.stats.count, h.stats.failures, h.stats.p50, h.stats.max)
            for h in self.engine.handlers()
        ]

    # ---- listeners

    def on_error(self, listener: Callable[[HookError], object]) -> Undo:
        """Call `listener` with every failure of a handler, task or answer; return a function that undoes it.

        Without a listener failures are logged, to the logger `agent_hooks`.
        """
        return self.engine.on_error(listener)

    def on_stop(self, listener: Callable[[Stop], object]) -> Undo:
        """Call `listener` with each `Stop` about a tool call; return a function that undoes it.

        A program with its own agent loop ends the run then, after it has taken the results of the calls that run.  The
        `Stop` of a `turn_end` handler is the answer that `emit` returns.
        """
        return self.engine.on_stop(listener)

    def observe(self, listener: Callable[[Event[Any]], object]) -> Undo:
        """Call `listener` with every event after its handlers, as they left it; return a function that undoes it."""
        return self.engine.observe(listener)

    def on_answer(self, listener: Callable[[Handler, Event[Any], Any], object]) -> Undo:
        """Call `listener(handler, event, answer)` with every value that a handler returned; return the undo."""
        return self.engine.on_answer(listener)

    def set_send_handler(self, handler: SendHandler | None) -> None:
        """Let `api.send` call `handler(text, attachments, source)`, from any thread; `source` is the hook's path."""
        self.engine.set_send_handler(handler)

    # ---- the context of handlers

    @property
    def hooks(self) -> list[LoadedHook]:
        """The loaded hooks, in order."""
        return self.engine.hooks

    @property
    def cwd(self) -> str:
        """The directory the agent works in, absolute."""
        return self._surroundings.cwd

    @property
    def mode(self) -> Mode:
        """How the agent is driven."""
        return self._surroundings.mode

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._surroundings.session_id

    @property
    def session_file(self) -> str | None:
        """The file of the session, absolute; `None` when the session is not saved."""
        return self._surroundings.session_file

    def set_ui(self, ui: Dialogs | None) -> None:
        """Let handlers ask the person through `ui`; `None` when no person is there."""
        self._surroundings.ui = SilentUI() if ui is None else ui
        self._surroundings.has_ui = ui is not None

    def set_session_file(self, path: str | Path | None, *, session_id: str | None = None) -> None:
        """Set the file of the session, and its id if that changed too."""
        self._surroundings.session_file = None if path is None else abspath(fspath(path))
        self._surroundings.session_id = session_id or self._surroundings.session_id

    # ---- matchers

    def know_tools(self, names: Iterable[str]) -> None:
        """Add the names of tools for `check_matchers`."""
        self._known_tools.update(names)

    def check_matchers(self) -> list[HookError]:
        """Report every handler and interceptor that can match none of the known tools; return the reports.

        Call it once all tools are known; otherwise the first call of a wrapped tool does.
        """
        self.matchers_checked = True
        reports = self.engine.unmatchable(self._known_tools)
        for report in reports:
            self.engine.report(report)
        return reports


add_near_misses(HookRunner, "runner")
