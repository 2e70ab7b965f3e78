"""The listeners of a runner: of failures, of answers, and of the messages that hooks send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.dispatch.handlers import Handler, Undo
from agent_hooks.dispatch.loop import Dispatch, get_running, set_running
from agent_hooks.errors import HookError, hook_error, log, shown
from agent_hooks.values.answers import Stop
from agent_hooks.values.content import Attachment
from agent_hooks.values.events import Event

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor

SendHandler = Callable[[str, Sequence[Attachment], str], object]


class Listeners:
    """The part of an engine that passes reports and messages on, without the secrets in them."""

    def __init__(self, redactor: Redactor | None) -> None:
        self.redactor = redactor
        self._error_listeners: list[Callable[[HookError], object]] = []
        self._answer_listeners: list[Callable[[Handler, Event[Any], Any], object]] = []
        self._stop_listeners: list[Callable[[Stop], object]] = []
        self._send_handler: SendHandler | None = None

    def on_error(self, listener: Callable[[HookError], object]) -> Undo:
        """Add an error listener."""
        return added(self._error_listeners, listener)

    def on_answer(self, listener: Callable[[Handler, Event[Any], Any], object]) -> Undo:
        """Add an answer listener."""
        return added(self._answer_listeners, listener)

    def on_stop(self, listener: Callable[[Stop], object]) -> Undo:
        """Add a stop listener."""
        return added(self._stop_listeners, listener)

    def stopped(self, stop: Stop) -> None:
        """Tell the stop listeners that a hook ends the run."""
        for listener in tuple(self._stop_listeners):
            self.notify(listener, stop)

    def report(self, error: HookError) -> None:
        """Tell every error listener, without secrets in the texts; without a listener, log the failure."""
        if self.redactor is not None:
            error = replace(error, error=self.hide(error.error), traceback=self.hide(error.traceback))
        if not self._error_listeners:
            log().error("%s\n%s", error, error.traceback)
        for listener in tuple(self._error_listeners):
            self.notify(listener, error)

    def hide(self, text: str) -> str:
        """Return a text of a hook without its secrets, where this runner has a redactor."""
        return text if self.redactor is None else self.redactor.hide(text)

    def answered(self, handler: Handler, event: Event[Any], answer: Any) -> None:
        """Tell the answer listeners of a value that a handler returned."""
        for listener in tuple(self._answer_listeners):
            self.notify(listener, handler, event, answer)

    def send(self, hook: str, text: str, attachments: Sequence[Attachment]) -> None:
        """Hand a message of a hook to the agent, without its secrets; warn if this agent takes none."""
        text = self.hide(text)
        if self._send_handler is None:
            log().warning("%s: a message was not sent, because this agent takes none: %s", hook, shown(text))
        else:
            self._send_handler(text, attachments, hook)

    def set_send_handler(self, handler: SendHandler | None) -> None:
        """Set the function that takes the messages of hooks."""
        self._send_handler = handler

    def notify(self, listener: Callable[..., object], *args: Any) -> None:
        """Call a listener; one that raises is logged, and the dispatch goes on.

        A listener belongs to the program.  It runs outside of the dispatch, so that its registrations are not a hook's.
        """
        dispatch = get_running()
        set_running(None)
        exc = attempt(listener, *args).exception
        set_running(dispatch)
        if exc is not None:
            log().error("a listener raised on: %s", shown(args[-1]), exc_info=exc)


def added(listeners: list[Any], listener: Any) -> Undo:
    """Add a listener, and return a function that removes it."""
    listeners.append(listener)

    def undo() -> None:
        if listener in listeners:
            listeners.remove(listener)

    return undo


def error_of(dispatch: Dispatch, text: str, *, place: tuple[str | None, int | None], elapsed: float = 0.0) -> HookError:
    """Return a report about the handler that a dispatch runs, which has not raised; `place`: file and line."""
    handler = dispatch.handler
    return hook_error(
        None,
        hook=handler.hook,
        handler=handler.name,
        event=handler.event,
        outcome="continued",
        error=text,
        reason=getattr(dispatch.event, "reason", None),
        elapsed=elapsed,
        place=place,
    )
