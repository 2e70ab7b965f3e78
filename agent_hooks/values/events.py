"""The events, as frozen values: one class per event, which also names the answers it takes.

`Event[A]` carries the type of the combined answer, so that `emit(event: Event[A]) -> A | None` needs no overloads.  An
event's row in `dispatch.table` has its deadline, its failure policy and the way in which its answers combine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Never, Protocol, Self, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from agent_hooks.values.answers import (
    AddContext,
    Ask,
    Block,
    Cancel,
    Compaction,
    Continue,
    Replace,
    Rewrite,
    SkipConversationRestore,
    Stop,
)
from agent_hooks.values.content import (
    AssistantMessage,
    CompactionEntry,
    ContentBlock,
    Entry,
    Message,
    ToolOutput,
    ToolResultMessage,
    Value,
    as_tuples,
    content_blocks,
    text_of_content,
)
from agent_hooks.values.frozen import READ_ONLY, FrozenDict, freeze
from agent_hooks.values.near import add_near_misses, refuse_access_by_key
from agent_hooks.values.spellings import spelled

if TYPE_CHECKING:
    from agent_hooks.values.effects import Effects

TRIAL = "agent-hooks doctor"
"""The id of the session of the sample call that `agent-hooks doctor` sends; a process id comes after it."""
A_co = TypeVar("A_co", covariant=True)
# An `attrgetter` runs in C; this property is read for every event.
_BY_TOOL = property(attrgetter("type", "tool_name"))


def _nothing() -> tuple[()]:
    # A factory of our own: with `tuple` as the factory, msgspec would leave the empty tuple out on the wire.
    return ()


class Event(Struct, Generic[A_co], frozen=True, kw_only=True, rename="camel", tag_field="type", omit_defaults=True):
    """Base of all events; `A_co` is the union of the combined answers, which `emit` returns.

    A handler may return these, and at a `tool_result` also `AddContext` and `Stop`, which become fields of a `Replace`.
    """

    type: ClassVar[str]
    route: ClassVar[Any] = property(attrgetter("type"))
    """The key by which the runner finds handlers: the row of the dispatch table, and the tool if there is one."""
    about: ClassVar[Any] = None
    """The part of `route` in which events of one class differ: the tool's name or the session's reason."""


class CutPoint(Value, frozen=True, kw_only=True):
    """The cut of a compaction.

    `first_kept_entry_index`: the entry index of the first message that is kept; `is_split_turn`: the cut is inside a
    turn.
    """

    first_kept_entry_index: int
    is_split_turn: bool = field(default_factory=bool)


class ModelRef(Value, frozen=True, kw_only=True):
    """A model by name: its `provider`, and its `id` there."""

    provider: str
    id: str


class HasProvider(Protocol):
    """An object that names the provider of a model: a `ModelRef`, or a model."""

    @property
    def provider(self) -> str: ...


SessionReason = Literal[
    "start",
    "before_switch",
    "switch",
    "before_clear",
    "clear",
    "before_branch",
    "branch",
    "before_compact",
    "compact",
    "shutdown",
]


class SessionEvent(
    Event[Cancel | SkipConversationRestore | Compaction | AddContext], frozen=True, tag="session", dict=True
):
    """Something happens to the session; fields of other reasons are `None`.

    - `entries`: all entries of the session; `session_file`: absolute path, `None` when the session is not saved;
      `previous_session_file`: the file just left (`switch`, `clear`, `branch`).
    - `before_branch`, `branch`: `target_turn_index` is the index in `entries` of the entry branched from, `target_turn`
      the `turn_index` of the first turn after it.
    - `before_compact`: `messages_to_summarize` would be dropped, `messages_to_keep` stay word for word, and `cut_point`
      is between them; `previous_summary`: the text of the last compaction; `tokens_before`: the tokens in context now;
      `model`: the one for summarising; `custom_instructions`: the TEXT of `/compact TEXT`.
    - `compact`: `compaction_entry` is the saved entry, and `from_hook` is true when a hook supplied it.
    - `start`, `shutdown`: `reload` is true when the hooks are loaded again and the session itself goes on.
    """

    type: ClassVar[str] = "session"
    # Each reason has its own answers.
    route: ClassVar[Any] = property(lambda event: f"session:{event.reason}")

    reason: SessionReason
    entries: tuple[Entry, ...] = field(default_factory=_nothing)
    # Always written to JSON, as null when the session is not saved.
    session_file: str | None = field(default_factory=NoneType)
    previous_session_file: str | None = field(default_factory=NoneType)
    target_turn_index: int | None = None
    target_turn: int | None = None
    cut_point: CutPoint | None = None
    previous_summary: str | None = None
    messages_to_summarize: tuple[Message, ...] | None = None
    messages_to_keep: tuple[Message, ...] | None = None
    tokens_before: int | None = None
    model: ModelRef | None = None
    custom_instructions: str | None = None
    compaction_entry: CompactionEntry | None = None
    from_hook: bool | None = None
    reload: bool | None = None

    def __post_init__(self) -> None:
        as_tuples(self, "entries", "messages_to_summarize", "messages_to_keep")

    async def resolve_api_key(self, model: HasProvider) -> str | None:
        """Return the API key for `model` (`event.model`, or any other with a `provider`); `None` when there is none.

        On `before_compact` of the host only.  The key is in no field, so it reaches no wire, file or log.
        """
        find = self.__dict__.get("find_key")
        return None if find is None else find(model.provider)

    def with_keys(self, find_key: Callable[[str], str | None]) -> Self:
        """Set the function that `resolve_api_key` calls with the provider, and return the event itself."""
        self.__dict__["find_key"] = find_key
        return self


class AgentStart(Event[AddContext], frozen=True, tag="agent_start"):
    """The agent begins to work on a prompt; `prompt`: its text, as the interceptors of `message.before` left it."""

    type: ClassVar[str] = "agent_start"

    prompt: str = field(default_factory=str)


class AgentEnd(Event[Continue], frozen=True, tag="agent_end"):
    """The agent is done with a prompt, unless a hook answers `Continue`; `messages` are the new messages of this prompt.

    `continued`: how many times in a row hooks have kept the agent going.  A bridged agent may report only whether there
    was one; then it is 0 or 1.
    """

    type: ClassVar[str] = "agent_end"

    messages: tuple[Message, ...] = field(default_factory=_nothing)
    continued: int = field(default_factory=int)

    def __post_init__(self) -> None:
        as_tuples(self, "messages")


class TurnStart(Event[Never], frozen=True, tag="turn_start"):
    """A turn begins: one model response and its tool calls.

    `turn_index` counts from 0 over the whole session; `timestamp` in Unix milliseconds; `entry_index`: number of session
    entries when the turn begins.
    """

    type: ClassVar[str] = "turn_start"

    turn_index: int
    timestamp: int
    entry_index: int = field(default_factory=int)


class TurnEnd(Event[Stop], frozen=True, tag="turn_end"):
    """A turn is over; `Stop` ends the run.

    `turn_index`: as in `TurnStart`; `message`: the model's response; `tool_results`: the results of its tool calls.
    """

    type: ClassVar[str] = "turn_end"

    turn_index: int
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...] = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        as_tuples(self, "tool_results")


EffectsOf = Callable[[str, Mapping[str, Any]], "Effects"]
"""Returns what a call would do, from the tool's name and its input."""


def _effects(event: Any, input: Mapping[str, Any]) -> Effects:
    """Return the effects of the call of an event, or one unknown part when the event has no directory."""
    find: EffectsOf | None = event.__dict__.get("effects_of")
    if find is not None:
        return find(event.tool_name, input)
    # Imported here, because most programs ask for no effects.
    from agent_hooks.values.effects import Effects, Unknown

    why = "the event has no directory; use effects_of(tool, input, cwd=...)"
    return Effects(unknown=(Unknown("opaque", event.tool_name, why),))


class ToolCall(Event[Block | Ask], frozen=True, tag="tool_call", dict=True):
    """A tool is about to run with exactly this input; a gate answers `Block`, `Ask` or nothing.

    `parent_tool_call_id`: set when another tool made the call; `native`: the payload of the bridged agent.
    """

    type: ClassVar[str] = "tool_call"
    route: ClassVar[Any] = _BY_TOOL

    tool_name: str
    tool_call_id: str
    input: Mapping[str, Any]
    parent_tool_call_id: str | None = None
    native: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        # In the pipeline the input is frozen already.
        if type(self.input) is not FrozenDict:
            force_setattr(self, "input", freeze(self.input))
        if self.native is not None:
            force_setattr(self, "native", freeze(self.native))

    @property
    def effects(self) -> Effects:
        """What the call would do: files, programs, hosts.

        They are found when a handler first asks for them.  An event without a directory, one that a program has made by
        hand for example, has one `unknown`.
        """
        return _effects(self, self.input)

    def with_effects(self, find: EffectsOf | None) -> Self:
        """Set the function that `effects` calls, and return the event itself."""
        self.__dict__["effects_of"] = find
        return self


class ToolResult(Event[Replace], frozen=True, tag="tool_result"):
    """A tool ran or raised; each handler gets the result with the changes of the handlers before it.

    `parent_tool_call_id`, `native`: as in `ToolCall`.
    """

    type: ClassVar[str] = "tool_result"
    route: ClassVar[Any] = _BY_TOOL

    tool_name: str
    tool_call_id: str
    input: Mapping[str, Any]
    content: Sequence[ContentBlock]
    details: Any = None
    is_error: bool = field(default_factory=bool)
    parent_tool_call_id: str | None = None
    native: Mapping[str, Any] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tool_name: str,
            tool_call_id: str,
            input: Mapping[str, Any],
            content: str | Sequence[ContentBlock],
            details: Any = None,
            is_error: bool = False,
            parent_tool_call_id: str | None = None,
            native: Mapping[str, Any] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        # In the pipeline the input is frozen already.
        if type(self.input) is not FrozenDict:
            force_setattr(self, "input", freeze(self.input))
        content = content_blocks(self.content)
        if content is not self.content:
            force_setattr(self, "content", content)
        if self.details is not None:
            force_setattr(self, "details", freeze(self.details))
        if self.native is not None:
            force_setattr(self, "native", freeze(self.native))

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return text_of_content(self.content)


class BeforeToolCall(Event[Rewrite | Block | Ask], frozen=True, tag="before_tool_call", dict=True):
    """A tool call was requested; a handler may rewrite `params`.  A gate belongs in `tool_call`, after all rewrites."""

    type: ClassVar[str] = "before_tool_call"
    route: ClassVar[Any] = _BY_TOOL

    tool_name: str
    params: Mapping[str, Any]
    tool_call_id: str = field(default_factory=str)

    def __post_init__(self) -> None:
        force_setattr(self, "params", freeze(self.params))

    @property
    def effects(self) -> Effects:
        """What the call would do: files, programs, hosts.

        They are found when a handler first asks for them.  An event without a directory, one that a program has made by
        hand for example, has one `unknown`.
        """
        return _effects(self, self.params)

    def with_effects(self, find: EffectsOf | None) -> Self:
        """Set the function that `effects` calls, and return the event itself."""
        self.__dict__["effects_of"] = find
        return self

    @property
    def input(self) -> Mapping[str, Any]:
        """The same as `params`."""
        return self.params

    def rewritten(self, params: Mapping[str, Any]) -> Self:
        """Return the event with another input, whose effects are its own."""
        return replace(self, params=params).with_effects(self.__dict__.get("effects_of"))


class AfterToolCall(Event[Never], frozen=True, tag="after_tool_call"):
    """A tool call is over: the tool returned, failed, or was blocked.

    `params`: the input with which it ran or would have run; `result`: the result, if the tool ran; `error`: the text of
    its failure; `duration_ms`: the tool's own time; `blocked` and `block_reason`: set if it did not run.
    """

    type: ClassVar[str] = "after_tool_call"
    route: ClassVar[Any] = _BY_TOOL

    tool_name: str
    params: Mapping[str, Any]
    tool_call_id: str = field(default_factory=str)
    result: ToolOutput | None = None
    error: str | None = None
    duration_ms: float | None = None
    blocked: bool = False
    block_reason: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "params", freeze(self.params))

    @property
    def input(self) -> Mapping[str, Any]:
        """The same as `params`."""
        return self.params


class ForeignEvent(Event[Never], frozen=True, tag="foreign"):
    """An event of another agent that corresponds to none of ours; only interceptors at the point `event` get it.

    `name`: that agent's name for it; `native`: its payload.
    """

    type: ClassVar[str] = "foreign"

    name: str
    native: Mapping[str, Any]

    def __post_init__(self) -> None:
        force_setattr(self, "native", freeze(self.native))


EVENTS: tuple[type[Event[Any]], ...] = (
    SessionEvent,
    AgentStart,
    AgentEnd,
    TurnStart,
    TurnEnd,
    BeforeToolCall,
    ToolCall,
    ToolResult,
    AfterToolCall,
)


def _refuse(self: object, name: str, value: object = None) -> Never:
    raise AttributeError(READ_ONLY)


_frozen: tuple[type[Event[Any]], ...] = (*EVENTS, ForeignEvent)
_of_tools: tuple[type[Event[Any]], ...] = (BeforeToolCall, ToolCall, ToolResult, AfterToolCall)
for _event in _of_tools:
    _event.about = _event.__dict__["tool_name"]
SessionEvent.about = SessionEvent.__dict__["reason"]
for _event in _frozen:
    _event.__setattr__ = _refuse  # type: ignore[method-assign]  # names the remedy
    _event.__delattr__ = _refuse  # type: ignore[method-assign]
refuse_access_by_key(Event)
_names = {name for _event in _frozen for name in (*_event.__struct_fields__, *vars(_event))}
add_near_misses(Event, "event", spelled("event."), _names)
add_near_misses(CutPoint, "event.cut_point")
