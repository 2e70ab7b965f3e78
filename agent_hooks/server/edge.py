"""The edge between the server and the hooks: the state of the process is restored there, and the hook is named."""

from __future__ import annotations

from collections.abc import Callable

from agent_hooks.concurrency.process_state import ProcessState
from agent_hooks.dispatch.loop import Dispatch, running
from agent_hooks.errors import log
from agent_hooks.runner.listeners import error_of


class Edge:
    """Restores the state of the process before and after each step of a task: `edge(after)`.

    `add_signal_handlers`: makes the event loop listen to signals again, after a hook has replaced its handlers.
    """

    def __init__(self, add_signal_handlers: Callable[[], object]) -> None:
        self._state = ProcessState()
        self._add_signal_handlers = add_signal_handlers
        # Each hook with each change that it was reported for.
        self._reported: set[tuple[str, str]] = set()

    def __call__(self, after: bool) -> None:
        """Restore the state after a step of a task, and report the handler that has changed it.

        Before a step only the recursion limit is restored, because the end of the step before has restored the rest.
        """
        if not after:
            self._state.restore_depth()
        elif changed := self._state.restore():
            self._report(changed)

    def restore(self) -> None:
        """Restore the state outside of a step, where only a task or a thread of a hook can have changed it."""
        changed = self._state.restore()
        if changed:
            self._listen_to_signals(changed)
            log().warning("restored after a task or a thread of a hook had changed it: %s", ", ".join(changed))

    def _listen_to_signals(self, changed: list[str]) -> None:
        if any(text.startswith("the handler of") for text in changed):
            self._add_signal_handlers()

    def _report(self, changed: list[str]) -> None:
        self._listen_to_signals(changed)
        dispatch = running.get()
        handler = getattr(dispatch, "handler", None)
        if dispatch is None or handler is None:
            log().warning("restored after a hook had changed it: %s", ", ".join(changed))
            return
        new = [text for text in changed if (handler.hook, text) not in self._reported]
        self._reported.update((handler.hook, text) for text in new)
        if new:
            _report(dispatch, ", ".join(new))


def _report(dispatch: Dispatch, changed: str) -> None:
    handler = dispatch.handler
    text = f"changed {changed} of the process, which the hooks of all sessions share; it was restored"
    dispatch.owner.report(error_of(dispatch, text, place=(handler.file, handler.line)))
