"""Test doubles for hooks; the tests of this project use them too.

`call_tool` takes a tool call through all steps, with a stand-in for the tool.  `ScriptedUI` answers dialogs from a list.
`RecordedEvents` keeps the emitted events.  `StepClock` moves deadlines by hand.  `check_bridge` checks a bridge.
`gate_event` makes the event of a call with its effects, for a handler that is tested without a runner.
The pytest fixtures are in `agent_hooks.testing.fixtures`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import anyio
from anyio.lowlevel import checkpoint

from agent_hooks.concurrency.deadlines import INF, Clock
from agent_hooks.effects import CallEffects, effects_of
from agent_hooks.errors import HookError, HookUsageError
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.pipeline import order as pipeline
from agent_hooks.runner.runner import HookRunner
from agent_hooks.testing.bridges import check_bridge
from agent_hooks.ui.base import CHOICES, NO, ONCE, Answer, Dialogs, NotifyType, Question
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.events import Event, SessionEvent, ToolCall
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
    "effects_of",
    "gate_event",
]


class LoadHook(Protocol):
    """The type of the fixture `load_hook`: `hook = await load_hook("gate.py")`, or with the source text of a hook."""

    async def __call__(self, hook: str | Path, name: str = "hook.py") -> LoadedHook:
        """Load the hook from its file or its source text; `name`: the file's name for a source text."""
        ...


class MakeRunner(Protocol):
    """The type of the fixture `hook_runner`: `runner = await hook_runner("gate.py", ui=ScriptedUI(True))`."""

    async def __call__(self, *hooks: str | Path | LoadedHook, ui: Dialogs | None = None, **options: Any) -> HookRunner:
        """Return a runner of these hooks; `options`: those of `HookRunner`."""
        ...


# ---- tool calls ------------------------------------------------------------------------------------------------------


class StandInTool:
    """A tool that does no work and keeps the inputs of its calls in `inputs`; its schema takes any input.

    `output`: the output of each call, or a function of the input, plain or async, that returns the output or raises.
    Without it, the output is `ran …`, with the input as details.
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
    """Take a call of the tool `name` through all steps and return the output for the model.

    Without `tool`, a `StandInTool` takes the call: its output is `ran …`, with its input as details.  The output of a
    blocked call has `is_error`, and its text is the reason and the hook or guard that blocked.
    Raises `HookUsageError` when `tool` has another name.
    """
    if tool is None:
        tool = StandInTool(name)
    elif tool.name != name:
        raise HookUsageError(f"call_tool calls {name!r}, but its tool is named {tool.name!r}: give both the same name")
    return await pipeline.call_tool(tool, tool_call_id, dict(input), runner=runner)


def gate_event(name: str, input: Mapping[str, Any], cwd: str | Path = "/project") -> ToolCall:
    """Return the event `tool_call` of a call in `cwd`, with the effects that it would have there."""
    event = ToolCall(tool_name=name, tool_call_id="1", input=input)
    return event.with_effects(CallEffects(str(Path(cwd).absolute())))


# ---- the person, the events, the time --------------------------------------------------------------------------------


class Asked(NamedTuple):
    """One dialog or notification.

    `method`: `select`, `confirm`, `input` or `notify`; `title`: its title, or the message of a notification; `more`: the
    options, the message, the placeholder, or the type of a notification.
    """

    method: str
    title: str
    more: Any = None


class ScriptedUI:
    """A UI that answers dialogs from a list, in order: `ScriptedUI("the second option", True)`.

    An answer may be a function of the dialog, an `Asked`, plain or async.  A dialog for which no answer is left raises
    `AssertionError`, so its handler fails.  `asked` holds all dialogs and notifications.

    A question about a tool call is a `confirm`; `True` is Yes once and `False` is No.  It may also be answered by an
    `Answer`, or by the name of one: `"session"`, `"always"`, `"once"`, `"no"`.  `questions` holds them.
    """

    def __init__(self, *answers: object) -> None:
        self.asked: list[Asked] = []
        self.questions: list[Question] = []
        self._answers = list(answers)

    async def select(self, title: str, options: list[str]) -> str | None:
        """Return the next answer of the script."""
        answer = await self._answer(Asked("select", title, options))
        return None if answer is None else str(answer)

    async def confirm(self, title: str, message: str) -> bool:
        """Return the next answer of the script."""
        answer = await self._answer(Asked("confirm", title, message))
        if not isinstance(answer, bool):
            raise TypeError(f"the script answers confirm({title!r}) with {answer!r}; use True or False")
        return answer

    async def ask(self, question: Question) -> Answer:
        """Return the next answer of the script."""
        self.questions.append(question)
        answer = await self._answer(Asked("confirm", question.title, question.message))
        if isinstance(answer, bool):
            return ONCE if answer else NO
        if isinstance(answer, str) and answer in CHOICES:
            return Answer(answer)
        if not isinstance(answer, Answer):
            raise TypeError(
                f"the script answers the question {question.title!r} with {answer!r}; use True, False, an Answer, or one "
                f"of {', '.join(map(repr, CHOICES))}"
            )
        return answer

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Return the next answer of the script."""
        answer = await self._answer(Asked("input", title, placeholder))
        return None if answer is None else str(answer)

    def notify(self, message: str, type: NotifyType) -> None:
        """Add the notification to `asked`."""
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
    """Keeps the events that a runner emits in `events`, and the failures that it reports in `errors`."""

    def __init__(self, runner: HookRunner) -> None:
        self.events: list[Event[Any]] = []
        self.errors: list[HookError] = []
        runner.observe(self.events.append)
        runner.on_error(self.errors.append)

    @property
    def types(self) -> list[str]:
        """The types of the events, in order; for a `session` event with its reason: `session:start`."""
        return [
            f"{event.type}:{event.reason}" if isinstance(event, SessionEvent) else event.type for event in self.events
        ]

    def of(self, event_type: str) -> list[Any]:
        """Return the events of one type."""
        return [event for event in self.events if event.type == event_type]


class StepClock:
    """A clock for deadlines, moved by hand: `await clock.advance(31)` lets a deadline of 30 s pass at once.

    It replaces the clock of `runner` for the deadlines of handlers; `sleep` and other timers run in real time.
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
        """Let `clock` expire when the time passes its deadline; the runner calls it."""
        self._clocks.add(clock)
        if clock.deadline != INF:
            self._armed.set()

    def forget(self, clock: Clock) -> None:
        """Stop watching `clock`; the runner calls it."""
        self._clocks.discard(clock)

    async def advance(self, seconds: float) -> None:
        """Wait until a handler's clock runs, then let `seconds` pass."""
        while not any(clock.deadline != INF for clock in self._clocks):
            self._armed = anyio.Event()
            await self._armed.wait()
        self.skip(seconds)
        await checkpoint()

    def skip(self, seconds: float) -> None:
        """Let `seconds` pass at once, also when no handler's clock runs: during a dialog it stands still."""
        self._now += seconds
        for clock in tuple(self._clocks):
            if clock.deadline <= self._now:
                clock.expire(self._now)
