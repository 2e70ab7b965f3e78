"""The second argument of a handler: where the agent works, the person to ask, and a way to run programs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeVar

from msgspec import Struct

from agent_hooks.concurrency.deadlines.base import Clock
from agent_hooks.concurrency.threads import while_wanted
from agent_hooks.errors import HookUsageError
from agent_hooks.ui.base import UI, NotifyType
from agent_hooks.values.content import ExecResult

T = TypeVar("T")
Mode = Literal["interactive", "rpc", "print", "embedded", "bridge", "replay"]


class Surroundings(Struct, eq=False):
    """The place an event comes from, as handlers see it in their context.

    A runner has one of its own, which its setters change.  A bridge passes another one with each event, because one
    session of another agent works in many directories and has many sub-agents.

    `cwd` and `session_file` are absolute; `agent_id` is `"main"` in the main agent; `has_ui` tells whether a person can
    answer `ui`.
    """

    cwd: str
    ui: UI
    has_ui: bool
    mode: Mode
    session_id: str
    session_file: str | None = None
    agent_id: str = "main"


class Timed(Protocol):
    """The dispatch of a context: its place, its tool, and the clock that stands while a dialog is open."""

    surroundings: Surroundings

    @property
    def tool_name(self) -> str | None:
        """Return the tool that the event is about, `None` for other events."""
        ...

    def need_clock(self) -> Clock:
        """Return the clock of the dispatch."""
        ...


class Pending(Coroutine[Any, Any, T], Generic[T]):
    """The awaitable answer of a dialog or a program.

    Testing it without `await` is the commonest way to write a gate that never blocks, so that raises; and one that is
    never awaited is a failure of the handler that made it.
    """

    def __init__(self, what: str, start: Callable[[], Coroutine[Any, Any, T]], unawaited: list[str]) -> None:
        self._what = what
        self._start = start
        self._unawaited = unawaited
        self._coroutine: Coroutine[Any, Any, T] | None = None
        unawaited.append(what)

    def _begin(self) -> Coroutine[Any, Any, T]:
        if self._coroutine is None:
            if self._what in self._unawaited:
                self._unawaited.remove(self._what)
            self._coroutine = while_wanted(self._start)
        return self._coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        return self._begin().__await__()

    def send(self, value: Any) -> Any:
        """Run to the next suspension; this is what event loops call."""
        return self._begin().send(value)

    def throw(self, *args: Any) -> Any:
        """Raise in the coroutine; this is what event loops call."""
        return self._begin().throw(*args)

    def close(self) -> None:
        """End the coroutine if it has begun."""
        if self._coroutine is not None:
            self._coroutine.close()

    def _refuse(self, *_: object) -> NoReturn:
        raise HookUsageError(forgotten_await(self._what))

    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __eq__ = __ne__ = _refuse  # a comparison is a forgotten await
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(forgotten_await(self._what))


def forgotten_await(what: str) -> str:
    """Return what to tell the author of a hook that did not await `what`."""
    return f"`{what}` was not awaited: write `await {what}` in an `async def` handler; a plain `def` handler " + (
        "uses subprocess.run(...) instead" if what.startswith("ctx.exec") else "returns Ask(title, message) instead"
    )


class HookUI:
    """The person, as a handler sees them; while a dialog is open the handler's clock stands."""

    __slots__ = ("_timed", "_ui", "_unawaited")

    def __init__(self, ui: UI, timed: Timed, unawaited: list[str]) -> None:
        self._ui = ui
        self._timed = timed
        self._unawaited = unawaited

    def select(self, title: str, options: Sequence[str]) -> Pending[str | None]:
        """Let the person choose one of `options`; `None` when they cancel or nobody is there."""
        return self._pending("ctx.ui.select(...)", lambda: self._ui.select(title, list(options)))

    def confirm(self, title: str, message: str = "") -> Pending[bool]:
        """Ask yes or no; `False` when nobody is there."""
        return self._pending("ctx.ui.confirm(...)", lambda: self._ui.confirm(title, message))

    def input(self, title: str, placeholder: str | None = None) -> Pending[str | None]:
        """Ask for a line of text; `placeholder` is a hint, not a default.  `None` when cancelled or nobody is there."""
        return self._pending("ctx.ui.input(...)", lambda: self._ui.input(title, placeholder))

    def notify(self, message: str, type: NotifyType = "info") -> None:
        """Tell the person something; not awaited, from any thread."""
        self._ui.notify(message, type)

    def _pending(self, what: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> Pending[T]:
        async def dialog() -> T:
            clock = self._timed.need_clock()
            clock.pause()
            try:
                return await ask()
            finally:
                clock.resume()

        return Pending(what, dialog, self._unawaited)


class HookContext(Struct, eq=False):
    """What a handler gets beside the event."""

    _timed: Timed
    unawaited: list[str] | None = None  # for the runner: what the running handler asked for and has not awaited

    def _asked_for(self) -> list[str]:
        if self.unawaited is None:
            self.unawaited = []
        return self.unawaited

    @property
    def tool_name(self) -> str | None:
        """The tool that the event is about, if there is one."""
        return self._timed.tool_name

    @property
    def ui(self) -> HookUI:
        """The person: `select`, `confirm`, `input` (awaited) and `notify`."""
        return HookUI(self._timed.surroundings.ui, self._timed, self._asked_for())

    @property
    def has_ui(self) -> bool:
        """Whether somebody can answer a dialog."""
        return self._timed.surroundings.has_ui

    @property
    def mode(self) -> Mode:
        """How the agent runs: `interactive`, `rpc`, `print`, `embedded` or `bridge`; `replay` is history."""
        return self._timed.surroundings.mode

    @property
    def cwd(self) -> str:
        """The directory the agent works in, absolute."""
        return self._timed.surroundings.cwd

    @property
    def session_file(self) -> str | None:
        """The session's file, absolute; `None` when the session is not saved."""
        return self._timed.surroundings.session_file

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._timed.surroundings.session_id

    @property
    def session_key(self) -> str:
        """The same as `session_id`; the name that vetoes and interceptors use."""
        return self._timed.surroundings.session_id

    @property
    def agent_id(self) -> str:
        """`"main"` in the main agent."""
        return self._timed.surroundings.agent_id

    def exec(
        self, command: str, args: Sequence[str] = (), *, timeout: float | None = None, cwd: str | None = None
    ) -> Pending[ExecResult]:
        """Run a program, in the agent's directory unless `cwd` is given; `timeout` in seconds.

        Its result has `stdout`, `stderr`, `code` and `killed`; a missing program is a result too (code 127).
        """
        if isinstance(args, str):
            raise HookUsageError(
                f"ctx.exec(command, args) wants a list of arguments: ctx.exec({command!r}, [{args!r}])"
            )

        async def run() -> ExecResult:
            from agent_hooks.concurrency import (
                process,  # here, because it needs an event loop, and few hooks run programs
            )

            return await process.run(command, list(args), cwd=cwd or self.cwd, timeout=timeout)

        return Pending("ctx.exec(...)", run, self._asked_for())
