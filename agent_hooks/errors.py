"""The errors of the package, and the texts of errors.  Imports nothing of the package.

    AgentHooksError            base of all errors this package raises; shown to a user as one line, without a traceback
    ├── HookUsageError         a hook or an embedding program called the API in a way that cannot work
    ├── SettingsError          a settings file or a setting is wrong; names file, key, expected and found
    ├── SessionError           a session file cannot be read or written
    ├── ModelError             the model could not answer
    ├── MessageBlockedError    an interceptor kept a message from the agent
    ├── CommandBlockedError    an interceptor kept a slash command from being carried out
    ├── HostBusyError          the agent works on a prompt, so its session cannot be changed now
    ├── AbortedError           the prompt was aborted, so there is no answer
    └── SendError              a message to the agent was refused: too large, too many, too fast, or too late

`HookError` is not an exception but the record that error listeners get.
"""

from __future__ import annotations

import os
import traceback as tracebacks
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from logging import Logger

_PACKAGE = os.path.dirname(__file__) + os.sep
LONGEST_TEXT = 20_000
"""The most characters of an exception, a traceback or a reason in denials, reports and records."""

Outcome = Literal["blocked", "continued"]


class AgentHooksError(Exception):
    """Base of all errors this package raises; its text names the culprit, the place and the remedy."""


class HookUsageError(AgentHooksError, TypeError):
    """A call of the API cannot work; raised at once, at the place of the mistake."""


class SettingsError(AgentHooksError, ValueError):
    """A setting is wrong; the text names file, key, expected and found.

    `problem`: the text without the file; `path`: the settings file, empty when the setting is in none; `line`: in the
    file, `None` when it is not known.
    """

    def __init__(self, problem: str, path: str | os.PathLike[str] = "", line: int | None = None) -> None:
        self.problem, self.path, self.line = problem, os.fspath(path), line
        place = at(self.path, line)
        super().__init__(f"{place}: {problem}" if place else problem)


class SessionError(AgentHooksError):
    """A session file cannot be read or written."""


class MessageBlockedError(AgentHooksError):
    """An interceptor or a bridge's hook kept a message from the agent."""


class RunStoppedError(AgentHooksError):
    """A hook has ended the run; `answer`: the last message of the model, `None` without one."""

    answer: Any = None


class CommandBlockedError(AgentHooksError):
    """An interceptor kept a slash command from being carried out."""


class ModelError(AgentHooksError):
    """The model could not answer."""


class HostBusyError(AgentHooksError):
    """The agent works on a prompt, or its session is being changed: nothing was done."""


class AbortedError(AgentHooksError):
    """The prompt was aborted, so there is no answer."""


class SendError(AgentHooksError):
    """A message was not sent to the agent: too large, too many, too fast, or too late."""


class HookError(Struct, frozen=True, kw_only=True):
    """The record of one failure, for error listeners.

    `hook_path`: the file whose code failed; `handler`: the function; `event`: the event's type, and for `session` its
    `reason`; `error`: one line of text; `exception` and `traceback`: the exception that was raised, if one was; `file`
    and `line`: the place in the hook that raised it, or where the handler begins if none did; `elapsed`: seconds the
    handler ran; `outcome`: whether the failure blocked the action or the dispatch continued.
    """

    hook_path: str
    handler: str
    event: str
    error: str
    outcome: Outcome
    reason: str | None = None
    exception: BaseException | None = None
    traceback: str = ""
    line: int | None = None
    elapsed: float = 0.0
    file: str | None = None

    def __str__(self) -> str:
        """Return the line a person reads: hook, handler, event, error."""
        event = f"{self.event} ({self.reason})" if self.reason else self.event
        place = at(self.hook_path, self.line)
        if self.line and self.file and os.path.basename(self.file) != os.path.basename(self.hook_path):
            # The code is in another file than the hook: a file of its package, or the module of an imported handler.
            place = f"{self.hook_path} ({self.file}:{self.line})"
        return f"{place}: {self.handler} on {event}: {self.error}"


def hook_error(
    exc: BaseException | None,
    *,
    hook: str,
    handler: str,
    event: str,
    outcome: Outcome,
    error: str | None = None,
    reason: str | None = None,
    elapsed: float = 0.0,
    place: tuple[str | None, int | None] | None = None,
) -> HookError:
    """Return the report of a failure: its text, its traceback and its place in the hook come from `exc`.

    `error`: another text than the exception's own; `elapsed`: seconds that the code ran; `place`: file and line, if the
    caller knows them better.  The other arguments are the fields of `HookError`.
    """
    file, line = place_of(exc) if place is None else place
    return HookError(
        hook_path=hook,
        handler=handler,
        event=event,
        error=describe(exc) if error is None and exc is not None else error or "",
        outcome=outcome,
        reason=reason,
        exception=exc,
        traceback="" if exc is None else traceback_text(exc),
        file=file,
        line=line,
        elapsed=elapsed,
    )


def text_of(value: object) -> str:
    """Return `str(value)`, or a text in its place when `__str__` raises, so that no error report fails."""
    try:
        return str(value)
    # A foreign `__str__` may raise anything, and the report goes on without its text.
    except BaseException:
        return f"<{type(value).__name__} that cannot be shown>"


def shown(value: object, limit: int = 80) -> str:
    """Return `repr(value)` cut to `limit` characters, for error texts; never fails."""
    try:
        text = repr(value)
    # A foreign `__repr__` may raise anything, and the error text goes on without it.
    except BaseException:
        text = f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    r"""Return a text in one line: `\n` and each other character that cannot be shown become escapes."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def sendable(text: str) -> str:
    """Return a text that UTF-8 can express: half of a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def honest(exc: BaseException) -> BaseException:
    """Return `exc`, or an error in its place if it lies about its class, by which `isinstance` would be misled."""
    try:
        if exc.__class__ is type(exc):
            return exc
    # A property of the exception is foreign code, and may raise anything; the error in its place says so.
    except BaseException:  # noqa: S110  # see above
        pass
    lie = RuntimeError(f"raised an exception that lies about its class: {capped(type(exc).__name__)}")
    return lie.with_traceback(exc.__traceback__)


def capped(text: str) -> str:
    """Return a text, or both of its ends and the number of characters between them if it is too long to be passed on.

    Half of a surrogate pair, which could not be passed on either, becomes a question mark.
    """
    text = sendable(text)
    left_out = len(text) - LONGEST_TEXT
    if left_out <= 0:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]} …[{left_out:,} characters cut]… {text[-half:]}"


def describe(exc: BaseException) -> str:
    """Return `TypeName: message` for an exception, or the bare message for our own errors; a long message is cut."""
    message = capped(text_of(exc))
    if isinstance(exc, AgentHooksError):
        return message
    name = capped(type(exc).__name__)
    return f"{name}: {message}" if message else name


def traceback_text(exc: BaseException) -> str:
    """Return the formatted traceback of `exc`, cut if it is long; never fails."""
    try:
        return capped("".join(tracebacks.format_exception(exc)))
    # A broken `__str__` or `__cause__` must not lose the report.
    except BaseException:
        return describe(exc)


def place_in(exc: BaseException, path: str) -> tuple[str | None, int | None]:
    """Return the file and line in `path`, a file or directory, that raised `exc`.

    That is the place of a syntax error, or else the innermost frame in `path`; `None, None` when there is neither.
    """

    def inside(file: str | None) -> bool:
        return file == path or (file or "").startswith(f"{path}{os.sep}")

    if isinstance(exc, SyntaxError) and inside(exc.filename):
        return exc.filename, exc.lineno
    frames = [(frame.f_code.co_filename, line) for frame, line in tracebacks.walk_tb(exc.__traceback__)]
    return next((place for place in reversed(frames) if inside(place[0])), (None, None))


def place_of(exc: BaseException | None) -> tuple[str | None, int | None]:
    """Return the file and line in a hook that raised `exc`; `None, None` when no hook is in its traceback.

    An exception of another process brings the place as `hook_place`.
    """
    if exc is None:
        return None, None
    if (elsewhere := getattr(exc, "hook_place", None)) is not None:
        return elsewhere[0], elsewhere[1]
    return place_among((frame.f_code.co_filename, line) for frame, line in tracebacks.walk_tb(exc.__traceback__))


def place_among(frames: Iterable[tuple[str, int]]) -> tuple[str | None, int | None]:
    """Return the hook's file and line in a stack of frames, outermost first.

    The first frame outside this package is in the hook's file; the line is that of the innermost frame in that file.
    """
    foreign = [(file, line) for file, line in frames if not is_own(file)]
    return [place for place in foreign if place[0] == foreign[0][0]][-1] if foreign else (None, None)


def is_own(file: str) -> bool:
    """Tell whether a file is one of this package."""
    return file.startswith(_PACKAGE)


def at(path: str, line: int | None) -> str:
    """Return `path:line` as an editor takes it, or the path alone when the line is not known."""
    return f"{path}:{line}" if line else path


def count(number: int, thing: str) -> str:
    """Return `1 line`, `2 lines`, `2 matches`, `2 entries`."""
    plural = {"match": "matches", "entry": "entries"}.get(thing, f"{thing}s")
    return f"{number} {thing if number == 1 else plural}"


def os_reason(exc: OSError) -> str:
    """Return the system's text for `exc` ("Permission denied"), without number and path."""
    return exc.strerror or os.strerror(exc.errno or 0)


def log() -> Logger:
    """Return the logger `agent_hooks`, for failures that no error listener can get."""
    # Imported here, because most programs never log.
    import logging

    return logging.getLogger("agent_hooks")


def did_you_mean(wrong: Any, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest of `known`, or a list of all of them when none is near."""
    names = sorted(known)
    near = nearest(wrong, names)
    return f"; did you mean {near!r}?" if near else f"; known are: {', '.join(names)}"


def nearest(wrong: Any, known: Iterable[str]) -> str | None:
    """Return the name in `known` that is most like `wrong`, `None` when none is like it."""
    # Imported here, because few programs need it.
    from difflib import get_close_matches

    return next(iter(get_close_matches(str(wrong), sorted(known), n=1)), None)
