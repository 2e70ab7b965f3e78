"""The second argument of a handler: where the agent works, the person to ask, and a way to run programs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, Never, NoReturn, Protocol, TypeVar, get_args

from msgspec import Struct

from agent_hooks.concurrency.deadlines.base import Clock
from agent_hooks.concurrency.threads import while_wanted
from agent_hooks.errors import HookUsageError, capped, did_you_mean, shown
from agent_hooks.ui.base import Asker, Dialogs, NotifyType
from agent_hooks.validation import milliseconds_problem
from agent_hooks.values.content import ExecResult
from agent_hooks.values.near import add_near_misses
from agent_hooks.values.spellings import spelled

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
    ui: Dialogs
    has_ui: bool
    mode: Mode
    session_id: str
    session_file: str | None = None
    agent_id: str = "main"


class Validity:
    """Whether some hooks are in force; `ended`: they were loaded again, so their contexts are stale."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended = False


class Timed(Protocol):
    """The dispatch of a context: its place, its tool, and the clock that stands while a dialog is open."""

    surroundings: Surroundings

    @property
    def ended(self) -> bool:
        """Return whether the hooks of the dispatch were loaded again."""
        ...

    @property
    def tool_name(self) -> str | None:
        """Return the tool that the event is about, `None` for other events."""
        ...

    @property
    def asker(self) -> Asker:
        """Return the running handler's hook, and the call that the event is about."""
        ...

    def need_clock(self) -> Clock:
        """Return the clock of the dispatch."""
        ...

    async def dialog(self, title: str, message: str, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Open a dialog of the running handler and return the answer."""
        ...


class Awaited(NamedTuple):
    """A call of the context that has to be awaited, and the way of a plain `def` handler to do without it."""

    code: str
    instead: str


_TYPES: tuple[str, ...] = get_args(NotifyType)
_ASK = "returns Ask(title, message) instead"
EXEC = Awaited("ctx.exec(...)", "uses subprocess.run(...) instead")


class Pending(Coroutine[Any, Any, T], Generic[T]):
    """The awaitable answer of a dialog or a program.

    Testing it without `await` is the commonest way to write a gate that never blocks, so that raises; and one that is
    never awaited is a failure of the handler that made it.
    """

    def __init__(self, call: Awaited, start: Callable[[], Coroutine[Any, Any, T]], unawaited: list[Awaited]) -> None:
        self._call = call
        self._start = start
        self._unawaited = unawaited
        self._coroutine: Coroutine[Any, Any, T] | None = None
        unawaited.append(call)

    def _begin(self) -> Coroutine[Any, Any, T]:
        if self._coroutine is None:
            if self._call in self._unawaited:
                self._unawaited.remove(self._call)
            self._coroutine = while_wanted(self._start)
        return self._coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        return self._begin().__await__()

    def send(self, value: Any) -> Any:
        """Run to the next suspension; event loops call this."""
        return self._begin().send(value)

    def throw(self, *args: Any) -> Any:
        """Raise in the coroutine; event loops call this."""
        return self._begin().throw(*args)

    def close(self) -> None:
        """End the coroutine if it has begun."""
        if self._coroutine is not None:
            self._coroutine.close()

    def _refuse(self, *_: object) -> NoReturn:
        raise HookUsageError(forgotten_await(self._call))

    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    # A comparison means that the await was forgotten.
    __eq__ = __ne__ = _refuse
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(forgotten_await(self._call))


def forgotten_await(call: Awaited) -> str:
    """Return the error text for the author of a hook that did not await `call`."""
    mend = f"write `await {call.code}` in an `async def` handler; a plain `def` handler {call.instead}"
    return f"`{call.code}` was not awaited: {mend}"


def _check_texts(call: str, **arguments: object) -> None:
    """Raise `HookUsageError`, at the line of the hook that made the call, for an argument that is no text."""
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise HookUsageError(f"ctx.ui.{call}: {name} is a text, not {shown(value)}; write str(...) around it")


def check_exec(command: object, args: object, wrong: Sequence[object], timeout: object) -> None:
    """Raise `HookUsageError` for arguments of `ctx.exec` that cannot be meant."""
    if isinstance(command, list | tuple):
        program, *words = (*command, "PROGRAM")[: len(command) or 1]
        raise HookUsageError(f"ctx.exec(command, args) wants the program apart: ctx.exec({program!r}, {words!r})")
    if isinstance(args, str):
        raise HookUsageError(f"ctx.exec(command, args) wants a list of arguments: ctx.exec({command!r}, [{args!r}])")
    if wrong or isinstance(args, Mapping):
        raise HookUsageError(
            "ctx.exec(command, args) takes its options by name, and the timeout in seconds: "
            f"write timeout=…, cwd=… in place of {shown(wrong[0] if wrong else args)}"
        )
    if not isinstance(args, Iterable):
        raise HookUsageError(f"ctx.exec(command, args) wants a list of arguments, not {shown(args)}")
    if problem := milliseconds_problem(timeout):
        raise HookUsageError(f"ctx.exec(timeout=…): {problem}")


def _current(timed: Timed) -> Timed:
    """Return the dispatch of a context; raise `HookUsageError` when its hooks were loaded again."""
    if timed.ended:
        raise HookUsageError(
            "this ctx is stale: its hook was loaded again, and ctx belongs to a former generation of it; "
            "end threads in on_unload, and use the ctx of the event that is handled now"
        )
    return timed


class HookUI:
    """The person to ask; while a dialog is open the handler's clock stands.

    A text that is too long for a person is cut in its middle, and says so.
    """

    __slots__ = ("_timed", "_ui", "_unawaited")

    def __init__(self, ui: Dialogs, timed: Timed, unawaited: list[Awaited]) -> None:
        self._ui = ui
        self._timed = timed
        self._unawaited = unawaited

    def select(self, title: str, options: Sequence[str]) -> Pending[str | None]:
        """Let the person choose one of `options`; `None` when they cancel or no person is there."""
        _check_texts("select(title, options)", title=title)
        if isinstance(options, str | bytes) or not isinstance(options, Sequence):
            raise HookUsageError(f"ctx.ui.select(title, options): options is a list of texts, not {shown(options)}")
        for option in options:
            _check_texts("select(title, options)", option=option)
        call = Awaited("ctx.ui.select(...)", _ASK)
        title = capped(title)
        return self._pending(call, title, "", lambda ui: ui.select(title, list(options)))

    def confirm(self, title: str, message: str = "") -> Pending[bool]:
        """Ask yes or no; `False` when no person is there."""
        _check_texts("confirm(title, message)", title=title, message=message)
        call = Awaited("ctx.ui.confirm(...)", _ASK)
        title, message = capped(title), capped(message)
        return self._pending(call, title, message, lambda ui: ui.confirm(title, message))

    def input(self, title: str, placeholder: str | None = None) -> Pending[str | None]:
        """Ask for a line of text; `None` when cancelled or no person is there.  `placeholder` is only a hint."""
        _check_texts("input(title, placeholder)", title=title, placeholder="" if placeholder is None else placeholder)
        call = Awaited("ctx.ui.input(...)", _ASK)
        title = capped(title)
        return self._pending(call, title, "", lambda ui: ui.input(title, placeholder))

    def notify(self, message: str, type: NotifyType = "info") -> None:
        """Show the person a message; not awaited, from any thread."""
        _current(self._timed)
        _check_texts("notify(message, type)", message=message, type=type)
        if type not in _TYPES:
            known = did_you_mean(type, _TYPES)
            raise HookUsageError(f"ctx.ui.notify(message, type): there is no type {shown(type)}{known}")
        self._ui.notify(capped(message), type)

    def _pending(
        self, call: Awaited, title: str, message: str, ask: Callable[[Dialogs], Coroutine[Any, Any, T]]
    ) -> Pending[T]:
        async def dialog() -> T:
            clock = _current(self._timed).need_clock()
            named = getattr(self._ui, "asked_by", None)
            ui = self._ui if named is None else named(self._timed.asker)
            clock.pause()
            try:
                return await self._timed.dialog(title, message, lambda: ask(ui))  # type: ignore[no-any-return]  # as `ask` does
            finally:
                clock.resume()

        return Pending(call, dialog, self._unawaited)


class HookContext(Struct, eq=False):
    """The second argument of a handler."""

    _timed: Timed
    # The dialogs and programs that the running handler asked for and has not awaited; the one loop reads it.
    unawaited: list[Awaited] | None = None

    @property
    def _place(self) -> Surroundings:
        return _current(self._timed).surroundings

    def _asked_for(self) -> list[Awaited]:
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
        return HookUI(self._place.ui, self._timed, self._asked_for())

    @property
    def has_ui(self) -> bool:
        """Whether a person can answer a dialog."""
        return self._place.has_ui

    @property
    def mode(self) -> Mode:
        """How the agent runs: `interactive`, `rpc`, `print`, `embedded` or `bridge`; `replay` is history."""
        return self._place.mode

    @property
    def cwd(self) -> str:
        """The directory the agent works in, absolute."""
        return self._place.cwd

    @property
    def session_file(self) -> str | None:
        """The session's file, absolute; `None` when the session is not saved."""
        return self._place.session_file

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._place.session_id

    @property
    def session_key(self) -> str:
        """The same as `session_id`; the name that vetoes and interceptors use."""
        return self._place.session_id

    @property
    def agent_id(self) -> str:
        """`"main"` in the main agent."""
        return self._place.agent_id

    def exec(
        self,
        command: str,
        args: Sequence[str] = (),
        *wrong: Never,
        timeout: float | None = None,
        cwd: str | None = None,
    ) -> Pending[ExecResult]:
        """Run a program, in the agent's directory unless `cwd` is given; `timeout` in seconds.

        Its result has `stdout`, `stderr`, `code` and `killed`; a missing program is a result too (code 127).
        """
        check_exec(command, args, wrong, timeout)

        async def run() -> ExecResult:
            # Imported here, because it needs an event loop, and few hooks run programs.
            from agent_hooks.concurrency import process

            return await process.run(command, list(args), cwd=cwd or self.cwd, timeout=timeout)

        return Pending(EXEC, run, self._asked_for())


class _QuietUI(HookUI):
    """The dialogs of a hook whose messages are dropped."""

    __slots__ = ()

    def notify(self, message: str, type: NotifyType = "info") -> None:
        """Drop the message."""


class QuietContext(HookContext):
    """A context for a former version's handler: the new version tells the user the same."""

    @classmethod
    def of(cls, context: HookContext) -> QuietContext:
        """Return the context of the same event."""
        # The one loop reads the list of the context that it has made.
        return cls(context._timed, context._asked_for())

    @property
    def ui(self) -> HookUI:
        """The user: `select`, `confirm` and `input` (awaited)."""
        return _QuietUI(self._place.ui, self._timed, self._asked_for())


add_near_misses(HookUI, "ctx.ui", spelled("ctx.ui."))
add_near_misses(HookContext, "ctx", spelled("ctx."))
