"""Collects the steps of a call or an event while they happen.

A dispatch of a recorded runner is a `RecordedDispatch`: the same loop, taken handler by handler, so that each has its own
time and answer.  It adds its steps to the trail of the call that this task judges or runs, or to one of its own.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from msgspec import Struct, field

from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.loop import Dispatch
from agent_hooks.dispatch.points import AtPoint
from agent_hooks.dispatch.table import EventSpec

# The trail of the call that this task judges or runs.
current: ContextVar[Trail | None] = ContextVar("agent_hooks trail", default=None)


class Passed(Struct, eq=False):
    """One step, as it happened; the recorder makes a `Step` of it.

    `answer`: the value that the handler returned; `spec`: the row of the event, which reads the answer; `failure`:
    `failed`, `timeout` or `stopped`, with its text in `text`; `before`, `after`: the input before and after a rewrite.
    """

    stage: str
    by: str
    began: float
    handler: Handler | None = None
    ms: float = 0.0
    answer: Any = None
    spec: EventSpec | None = None
    failure: str = ""
    text: str = ""
    blocked: bool = False
    before: Any = None
    after: Any = None
    changed: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


class Trail(Struct, eq=False):
    """The steps of one half of a call, or of one event.

    `input`: the input as it was asked for; `began`: the time at which the half began; `parent`: the id of the call whose
    tool or handler makes this one; `took`: milliseconds that the tool ran; `kinds`: those of the hidden secrets;
    `digest`: the keyed digest of the input that was judged; `questions`: their number; `asked`: the time of the last one;
    `handed_over`: whether another agent asks it; `may_change`: whether the call may change files of a working tree.
    """

    id: str
    input: Any = None
    began: float = field(default_factory=perf_counter)
    parent: str | None = None
    passed: list[Passed] = field(default_factory=list)
    status: str = "ok"
    took: float | None = None
    kinds: list[str] = field(default_factory=list)
    digest: str = ""
    questions: int = 0
    asked: float = 0.0
    handed_over: bool = False
    may_change: bool = False
    # The fields that each line of the call has, as JSON without braces.
    fields: bytes = b""

    def add(self, stage: str, by: str, began: float, answer: Any = None, **facts: Any) -> None:
        """Add a step that is no handler; `facts`: other slots of `Passed`."""
        step = Passed(stage, by, began)
        step.ms = (perf_counter() - began) * 1000
        step.answer = answer
        for name, value in facts.items():
            setattr(step, name, value)
        self.passed.append(step)

    def redacted(self, kinds: list[str]) -> None:
        """Add the kinds of hidden secrets."""
        self.kinds += kinds


_call_handlers = Dispatch.call_handlers


class RecordedDispatch(Dispatch):
    """A dispatch that notes each handler, its time, and its answer or failure."""

    __slots__ = ("_ended", "_step", "trail")

    trail: Trail

    @types.coroutine
    def call_handlers(self, handlers: Sequence[Handler]) -> Generator[Any, Any, None]:
        """Call `handlers` one by one, and add a step for each before it runs."""
        event = self.event
        stage = event.point if isinstance(event, AtPoint) else event.type
        if handlers is self.plan.handlers:
            self.trail = _trail_of(event)
        # Otherwise these are the rest of the handlers, after one that was given up.
        passed = self.trail.passed
        call = _call_handlers
        for handler in handlers:
            self._ended = False
            began = perf_counter()
            self._step = step = Passed(stage, handler.label, began, handler)
            passed.append(step)
            try:
                yield from call(self, (handler,))
            finally:
                step.ms = (perf_counter() - began) * 1000
            if self._ended:
                break

    def _take_answer(self, handler: Handler, answer: Any) -> bool:
        self._step.answer, self._step.spec = answer, self.plan.spec
        self._ended = super()._take_answer(handler, answer)
        return self._ended

    def _take_stop(self, clock: Any) -> bool:
        question = clock.question
        self._ended = super()._take_stop(clock)
        if question is not None and not self._step.failure:
            self._step.answer = question
        return self._ended

    def _fail(self, text: str, exc: BaseException | None = None, **options: Any) -> bool:
        step = self._step
        step.answer, step.text = None, text
        step.failure = "timeout" if options.get("cause") == "timed_out" else "failed"
        if options.get("always_block") and step.failure != "timeout":
            step.failure = "stopped"
        self._ended = super()._fail(text, exc, **options)
        step.blocked = self._ended and not self.plan.spec.settles
        return self._ended

    async def dialog(self, title: str, message: str, ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Open a dialog of the running handler, and write the question and the answer."""
        return await self.plan.owner.recorder.dialog(self, title, message, ask)  # type: ignore[attr-defined]  # an engine


def _trail_of(event: Any) -> Trail:
    """Return the trail of the call that an event is a part of, or a new one."""
    if not (isinstance(event, AtPoint) or (event.about is not None and hasattr(event, "tool_name"))):
        return Trail("")
    if isinstance(event, AtPoint) and event.point == "event":
        # Interceptors at this point see all events, and change none.
        return Trail("")
    return current.get() or Trail("")
