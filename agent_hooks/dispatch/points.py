"""The points at which interceptors step in, as one table: the input, the output, and whether an interceptor may block.

An interceptor gets a frozen input, and an output of its own to change.  The changed output is read back, checked and
copied before the next interceptor runs, so a reference that an interceptor keeps changes nothing later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from agent_hooks.errors import shown
from agent_hooks.validation import mismatch
from agent_hooks.values.answers import Answer, Block
from agent_hooks.values.content import Message, ToolOutput
from agent_hooks.values.events import Event
from agent_hooks.values.frozen import freeze, thaw
from agent_hooks.values.near import add_near_misses
from agent_hooks.values.spellings import spelled

O = TypeVar("O", bound=Struct)  # noqa: E741  # an output


# ---- inputs and outputs ----------------------------------------------------------------


class Input(Struct, frozen=True, kw_only=True):
    """Base of all inputs: frozen."""


class ToolBeforeInput(Input, frozen=True):
    """A tool is asked for."""

    tool_name: str
    tool_call_id: str


class ToolBeforeOutput(Struct):
    """`args`: the tool's input; `block` and `block_reason`: do not run it."""

    args: dict[str, Any]
    block: bool = False
    block_reason: str = ""


class ToolAfterInput(Input, frozen=True):
    """A tool ran, or raised."""

    tool_name: str
    tool_call_id: str
    is_error: bool = False


class ResultDraft(ToolOutput, frozen=False):  # type: ignore[misc]  # frozen as its base is, for the checker
    """A tool's result whose fields can be set; `content` takes a `str` too."""

    def __post_init__(self) -> None:
        self.content = list(self.content)  # type: ignore[misc]
        self.details = thaw(self.details)  # type: ignore[misc]


class ToolAfterOutput(Struct):
    """`result`: the output of the tool; change its fields, or put another `ToolOutput` there."""

    result: ToolOutput


class MessageBeforeInput(Input, frozen=True):
    """A message is about to reach the agent, from the person or from a hook."""

    agent_id: str
    session_key: str
    provider: str
    model: str


class MessageBeforeOutput(Struct):
    """`message`: its text; `metadata`: for later points of the same run; `context`: texts to add for the model."""

    message: str
    metadata: dict[str, Any] = field(default_factory=dict)
    context: list[str] = field(default_factory=list)
    block: bool = False
    block_reason: str = ""


class ParamsBeforeInput(Input, frozen=True):
    """A run is about to begin; `metadata` comes from `message.before`."""

    agent_id: str
    session_key: str
    message: str
    metadata: Mapping[str, Any]


class ParamsBeforeOutput(Struct):
    """How the model is asked in this run; `None` leaves a value to the provider.

    `reasoning_level`: `"off"` forbids thinking at every `think_level`, `"on"` asks for some; `temperature`, `top_p`,
    `top_k`: the parameters of that name.
    """

    provider: str
    model: str
    think_level: Literal["off", "low", "medium", "high"] = "off"
    reasoning_level: Literal["off", "on"] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


class RequestInput(Input, frozen=True):
    """A request to the model is about to go out."""

    agent_id: str
    session_key: str
    provider: str
    model: str


class HeadersOutput(Struct):
    """`headers`: more HTTP headers of the request, name → text."""

    headers: dict[str, str] = field(default_factory=dict)


class SystemOutput(Struct):
    """`system`: the instructions, a list of texts."""

    system: list[str]


class MessagesOutput(Struct):
    """`messages`: all messages about to be sent; the session keeps its own."""

    messages: list[Message]


class PermissionInput(Input, frozen=True):
    """The runtime is about to ask the person whether a tool may run; `reason` is the question."""

    agent_id: str
    session_key: str
    tool_name: str
    tool_call_id: str
    args: Mapping[str, Any]
    reason: str

    @property
    def input(self) -> Mapping[str, Any]:
        """The same as `args`."""
        return self.args


class PermissionOutput(Struct):
    """`status`: leave it to the person (`ask`), run it (`allow`), or do not (`deny`)."""

    status: Literal["ask", "allow", "deny"] = "ask"


class CommandInput(Input, frozen=True):
    """A slash command is about to be carried out; `command` without the slash."""

    command: str
    session_key: str


class CommandOutput(Struct):
    """`arguments`: the text typed after the command."""

    arguments: str
    block: bool = False
    block_reason: str = ""


class CompactingInput(Input, frozen=True):
    """The older part of the conversation is about to be summarised."""

    agent_id: str
    session_key: str


class CompactingOutput(Struct):
    """`context`: texts that the summariser should know too; `prompt`: replaces the question to it."""

    context: list[str] = field(default_factory=list)
    prompt: str | None = None


class BusInput(Input, frozen=True):
    """An event happened; its handlers have run.  `event`: the event itself."""

    event: Event[Any]


class ConfigInput(Input, frozen=True):
    """The session starts; `settings`: those in force, read-only."""

    settings: Mapping[str, Any]


class NoOutput(Struct):
    """Nothing can be changed here."""


# ---- the event and its answer ----------------------------------------------------------------------------------------


class Changed(Answer, Generic[O], frozen=True):
    """The output as interceptors left it; `by`: their labels, in the order in which they changed it."""

    output: O
    by: tuple[str, ...] = ()


class AtPoint(Event[Block | Changed[O]], Generic[O], frozen=True, tag="point"):
    """One of the points is reached; `key`: the tool's name or the agent's id, in which matchers are searched."""

    type: ClassVar[str] = "point"
    route: ClassVar[Any] = property(attrgetter("point", "key"))
    about: ClassVar[Any] = route

    point: str
    key: str
    input: Any
    output: O


# ---- reading an output back ------------------------------------------------------------------------------------------


def _copied(output: Any) -> Any:
    """Return a private copy of an output, with its types checked; raises `TypeError` that names the field."""
    try:
        return msgspec.convert(msgspec.to_builtins(output), type(output), strict=True)
    except msgspec.ValidationError as exc:
        found = mismatch(exc)
        raise TypeError(f"output{found.place}: {found.text[:1].lower()}{found.text[1:]}") from None


def _copied_call(output: ToolBeforeOutput) -> ToolBeforeOutput:
    if not isinstance(output.args, dict):
        raise TypeError(f"output.args: the tool's input is an object, not {shown(output.args)}")
    checked = _copied(ToolBeforeOutput({}, output.block, output.block_reason))
    return ToolBeforeOutput(thaw(freeze(output.args)), checked.block, checked.block_reason)


def _copied_result(output: ToolAfterOutput) -> ToolAfterOutput:
    result = output.result
    if not isinstance(result, ToolOutput):
        raise TypeError(f"output.result: expected a ToolOutput, got {shown(result)}")
    if not isinstance(result.is_error, bool):
        raise TypeError(f"output.result.is_error: expected a bool, got {shown(result.is_error)}")
    try:
        # Freezes, and checks the blocks.
        plain = ToolOutput(result.content, result.details, result.is_error)
    except TypeError as exc:
        raise TypeError(f"output.result.content: {exc}") from None
    return ToolAfterOutput(ResultDraft(plain.content, plain.details, plain.is_error))


class Point(Struct, frozen=True):
    """One row of the table.

    `matched`: whether a matcher is searched in the tool's name or in the agent's id; `blocks`: whether `output.block`
    stops the action, and a failing interceptor does too; `when`: the moment, for people; `copy`: returns a checked,
    private copy of an output.
    """

    name: str
    input: type[Input]
    output: type[Struct]
    when: str
    matched: Literal["tool", "agent"] = "agent"
    blocks: bool = False
    copy: Callable[[Any], Any] = _copied

    def fields(self, kind: type[Struct]) -> Sequence[str]:
        """Return the names of the fields of the input or the output."""
        return kind.__struct_fields__


POINTS: dict[str, Point] = {
    point.name: point
    for point in (
        Point(
            "message.before",
            MessageBeforeInput,
            MessageBeforeOutput,
            "before the agent sees a message",
            blocks=True,
        ),
        Point(
            "params.before",
            ParamsBeforeInput,
            ParamsBeforeOutput,
            "after message.before, before the first request of a run",
        ),
        Point("chat.headers", RequestInput, HeadersOutput, "before each request to the model"),
        Point("chat.system.transform", RequestInput, SystemOutput, "before each request to the model"),
        Point("chat.messages.transform", RequestInput, MessagesOutput, "before each request to the model"),
        Point("permission.ask", PermissionInput, PermissionOutput, "before the person is asked about a tool call"),
        Point(
            "command.execute.before",
            CommandInput,
            CommandOutput,
            "before a slash command",
            blocks=True,
        ),
        Point("session.compacting", CompactingInput, CompactingOutput, "before the default summary is written"),
        Point("event", BusInput, NoOutput, "after the handlers of any event"),
        Point("config", ConfigInput, NoOutput, "when the session starts"),
        Point(
            "tool.before",
            ToolBeforeInput,
            ToolBeforeOutput,
            "before a tool call is judged",
            matched="tool",
            blocks=True,
            copy=_copied_call,
        ),
        Point(
            "tool.after",
            ToolAfterInput,
            ToolAfterOutput,
            "after tool_result, before the agent sees the result",
            matched="tool",
            copy=_copied_result,
        ),
    )
}

for _point in POINTS.values():
    add_near_misses(_point.input, "input", spelled("input."))
    add_near_misses(_point.output, "output", spelled("output."))
