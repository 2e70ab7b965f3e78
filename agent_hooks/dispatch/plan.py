"""The two things that a dispatch is given: the plan of its event, and the engine as far as the one loop uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from agent_hooks.concurrency.deadlines import Clock
from agent_hooks.concurrency.lanes import Lane
from agent_hooks.dispatch.context import Validity
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.table import EventSpec
from agent_hooks.errors import HookError
from agent_hooks.values.events import Event


class Plan(Struct, frozen=True, eq=False):
    """The handlers of one kind of event, in order; made once per event type, reason and tool.

    `limit`: seconds of its own time that each handler gets; `tool_name`: the tool, if the event is about one, or the
    agent's id at a point of the agent; `lane`: the lane the event waits in, if any; `validity`: ended when the handlers
    were loaded again.
    """

    owner: Owner
    spec: EventSpec
    handlers: tuple[Handler, ...]
    limit: float
    tool_name: str | None
    lane: Lane | None
    validity: Validity


class Owner(Protocol):
    """The engine, as far as a dispatch uses it."""

    def make_clock(self, limit: float, parent: Clock | None) -> Clock:
        """Return a clock of the running backend, nested in `parent`."""
        ...

    def disable(self, hook_path: str) -> None:
        """Disable a hook: its gates block from now on, its other handlers are left out."""

    def is_disabled(self, hook_path: str) -> bool:
        """Tell whether a hook is disabled."""
        ...

    def counts(self, hook_path: str, answer: Any) -> bool:
        """Return whether an answer of a hook is taken into account: no user may have taken the hook up."""
        ...

    def intercept(self, hook: str, interceptor: Any) -> Callable[[], None]:
        """Register an interceptor of a hook and return a function that removes it again."""
        ...

    def answered(self, handler: Handler, event: Event[Any], answer: Any) -> None:
        """Take note of a value that a handler returned."""

    def report(self, error: HookError) -> None:
        """Take note of a failure."""

    def hide(self, text: str) -> str:
        """Return a text of a hook without its secrets."""
        ...
