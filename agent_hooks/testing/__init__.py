"""Test doubles for hooks, the same ones this project's own tests use.

`call_tool` takes a call through all steps, with a stand-in for the tool; `ScriptedUI` answers dialogs from a list,
`RecordedEvents` keeps what was emitted, `StepClock` moves deadlines by hand; `check_bridge` is what every bridge passes.
The pytest fixtures are in `agent_hooks.testing.fixtures`.  Above: tests.  Below: everything but host and cli.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import anyio
from anyio.lowlevel import checkpoint

from agent_hooks.concurrency.deadlines import INF, Clock
from agent_hooks.errors import HookError, HookUsageError
from agent_hooks.hooks.loader import LoadedHook
from agent_hooks.pipeline import order as pipeline
from agent_hooks.runner.runner import HookRunner
from agent_hooks.testing.bridges import check_bridge
from agent_hooks.ui.base import UI, NotifyType
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import Event, SessionEvent
from agent_hooks.values.tool import OnUpdate, Tool, call_line

__all__ = [
    "Asked",
    "LoadHook",
    "MakeRunner",
    "RecordedEvents",
    "ScriptedUI",
    "StandInTool",
    "StepClock",
    "call_tool",
    "check_bridge",
]


class LoadHook(Protocol):
    """What the fixture `load_hook` is: `hook = await load_hook("gate.py")`, or with the source text of a hook."""

    async def __call__(self, hook: str | Path, name: str = "hook.py") -> LoadedHook: ...


class MakeRunner(Protocol):
    """What the fixture `hook_runner` is: `runner = await hook_runner("gate.py", ui=ScriptedUI(True))`."""

    async def __call__(self, *hooks: str | Path | LoadedHook, ui: UI | None = None, **options: Any) -> HookRunner: ...


# ---- tool calls ------------------------------------------------------------------------------------------------------


class StandInTool:
    """A tool that does nothing but keep what it was called with, in `inputs`.

    `output` is what it returns, or a function of the input that returns or raises it, which may be async.  Without, it
    says what it was asked to do, and has the input in its details.  It takes any input.
    """

    description = "Stands in for a tool."
    input_schema: Mapping[str, Any] = {"type": "object"}

    def __init__(
        self, name: str = "bash", output: str | ToolOutput | Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self.name = name
        self.inputs: list[dict[str, Any]] = []
        self._output = output

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput:
        """Keep the input and return the output."""
        self.inputs.append(input)
        output: Any = self._output(input) if callable(self._output) else self._output
        if isawaitable(output):
            output = await output
        if output is None:
            return ToolOutput(f"ran {call_line(self.name, input)}", input)
        return ToolOutput(output) if isinstance(output, str) else output


async def call_tool(
    runner: HookRunner, name: str, input: Mapping[str, Any], tool: Tool | None = None, *, tool_call_id: str = "1"
) -> ToolOutput:
    """Take a call of the tool `name` through all steps and return what the agent would be shown.

    Nothing real runs: without `tool`, a `StandInTool` takes the call; it answers `ran …`, with the input it got as
    details.  A blocked call is an output with `is_error`, whose text is the reason and who blocked.
    """
    if tool is None:
        tool = StandInTool(name)
    elif tool.name != name:
        raise HookUsageError(f"call_tool calls {name!r}, but its tool is named {tool.name!r}: give both the same name")
    return await pipeline.call_tool(tool, tool_call_id, dict(input), runner=runner)


# ---- the person, the events, the time --------------------------------------------------------------------------------


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
        runner.engine.timer = self

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
