"""Test doubles for hooks, the same ones this project's own tests use.

`ScriptedUI` answers dialogs from a list, `RecordedEvents` keeps what was emitted, `StepClock` moves deadlines by hand.
Above: tests.  Below: everything but host and cli.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import Any, NamedTuple

import anyio
from anyio.lowlevel import checkpoint

from agent_hooks.deadlines import INF, Clock
from agent_hooks.errors import HookError
from agent_hooks.events import Event, SessionEvent
from agent_hooks.runner import HookRunner
from agent_hooks.ui.base import NotifyType

__all__ = ["Asked", "RecordedEvents", "ScriptedUI", "StepClock"]


class Asked(NamedTuple):
    """One dialog or notification: its method, and what it said."""

    method: str
    title: str
    more: Any = None


class ScriptedUI:
    """A person who answers dialogs from a list, in order.

    An answer may be a function of the dialog; a dialog without an answer left raises, and so fails its handler.
    `asked` holds every dialog and notification.
    """

    def __init__(self, *answers: object) -> None:
        self.asked: list[Asked] = []
        self._answers = list(answers)

    async def select(self, title: str, options: list[str]) -> str | None:
        """Answer with the next of the script."""
        answer = await self._answer(Asked("select", title, options))
        return None if answer is None else str(answer)

    async def confirm(self, title: str, message: str) -> bool:
        """Answer with the next of the script."""
        answer = await self._answer(Asked("confirm", title, message))
        if not isinstance(answer, bool):
            raise TypeError(f"the script answers confirm({title!r}) with {answer!r}; use True or False")
        return answer

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Answer with the next of the script."""
        answer = await self._answer(Asked("input", title, placeholder))
        return None if answer is None else str(answer)

    def notify(self, message: str, type: NotifyType) -> None:
        """Note it."""
        self.asked.append(Asked("notify", message, type))

    async def _answer(self, asked: Asked) -> object:
        self.asked.append(asked)
        if not self._answers:
            raise AssertionError(f"the script has no answer to {asked}")
        answer = self._answers.pop(0)
        if callable(answer):
            answer = answer(asked)
        return await answer if isawaitable(answer) else answer


class RecordedEvents:
    """Keeps every event a runner emitted and every failure it reported.

    `types` are the events' types, with the reason for `session`.
    """

    def __init__(self, runner: HookRunner) -> None:
        self.events: list[Event[Any]] = []
        self.errors: list[HookError] = []
        runner.observe(self.events.append)
        runner.on_error(self.errors.append)

    @property
    def types(self) -> list[str]:
        """The types of the events, in order."""
        return [
            f"{event.type}:{event.reason}" if isinstance(event, SessionEvent) else event.type for event in self.events
        ]

    def of(self, event_type: str) -> list[Any]:
        """Return the events of one type."""
        return [event for event in self.events if event.type == event_type]


class StepClock:
    """Time for deadlines that only moves when told: `await clock.advance(31)` lets a 30 s deadline pass at once.

    Takes over the deadlines of `runner`; real time, `sleep` for example, is not touched.
    """

    def __init__(self, runner: HookRunner) -> None:
        self._now = 0.0
        self._clocks: set[Clock] = set()
        self._armed = anyio.Event()
        runner.timer = self

    def now(self) -> float:
        """Return the stepped time in seconds."""
        return self._now

    def watch(self, clock: Clock) -> None:
        """Have `clock` expire when time is stepped past its deadline."""
        self._clocks.add(clock)
        if clock.deadline != INF:
            self._armed.set()

    def forget(self, clock: Clock) -> None:
        """Leave `clock` alone."""
        self._clocks.discard(clock)

    async def advance(self, seconds: float) -> None:
        """Wait until a handler's time runs, then let `seconds` pass."""
        while not any(clock.deadline != INF for clock in self._clocks):
            self._armed = anyio.Event()
            await self._armed.wait()
        self.skip(seconds)
        await checkpoint()

    def skip(self, seconds: float) -> None:
        """Let `seconds` pass at once, whether or not a handler's time runs: while a dialog is open it stands."""
        self._now += seconds
        for clock in tuple(self._clocks):
            if clock.deadline <= self._now:
                clock.expire(self._now)
