"""What happens, as frozen values: one class per event, which also names the answers it takes.

`Event[A]` carries its answer type, so that `emit(event: Event[A]) -> A | None` needs no overloads.  How an event is
dispatched (deadline, failure policy, how answers combine) is its row in `dispatch_table`.
Above: tool, dispatch_table.  Below: answers, content, frozen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Never, Protocol, Self, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

from agent_hooks.values.answers import (
    Ask,
    Block,
    Cancel,
    Compaction,
    Continue,
    Replace,
    Rewrite,
    SkipConversationRestore,
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

A_co = TypeVar("A_co", covariant=True)
_BY_TOOL = property(attrgetter("type", "tool_name"))  # made in C, because it is read for every event


def _nothing() -> tuple[()]:
    return ()  # a factory of our own: msgspec leaves an empty tuple out on the wire when `tuple` is the factory


class Event(Struct, Generic[A_co], frozen=True, kw_only=True, rename="camel", tag_field="type", omit_defaults=True):
    """Base of all events; `A_co` is the union of the answers a handler may return."""

    type: ClassVar[str]
    route: ClassVar[Any] = property(attrgetter("type"))
    """What the runner looks handlers up by: the row of the dispatch table, and the tool if there is one."""
    about: ClassVar[Any] = None
    """What tells events of one class apart in that: the tool's name, say; a field, by another name."""


class CutPoint(Value, frozen=True, kw_only=True):
    """Where a compaction cuts: entry index of the first kept message, and whether the cut falls inside a turn."""

    first_kept_entry_index: int
    is_split_turn: bool = field(default_factory=bool)


class ModelRef(Value, frozen=True, kw_only=True):
    """A model by name."""

    provider: str
    id: str


class HasProvider(Protocol):
    """What names the provider of a model: a `ModelRef`, or a model."""

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


class SessionEvent(Event[Cancel | SkipConversationRestore | Compaction], frozen=True, tag="session", dict=True):
    """Something happens to the session; fields of other reasons are `None`.

    `entries`: all entries of the session; `session_file`: absolute path, `None` when the session is not saved;
    `previous_session_file`: the file just left (`switch`, `clear`, `branch`).
    `before_branch`, `branch`: `target_turn_index` is the index in `entries` of the entry branched from, `target_turn`
    the `turn_index` of the first turn after it.  `before_compact`: what would be dropped and kept, `tokens_before` in
    context now.  `compact`: the saved entry, and whether a hook supplied it.
    """

    type: ClassVar[str] = "session"
    route: ClassVar[Any] = property(lambda event: f"session:{event.reason}")  # each reason has its own answers

    reason: SessionReason
    entries: tuple[Entry, ...] = field(default_factory=_nothing)
    session_file: str | None = field(default_factory=NoneType)  # always written, as null when not saved
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

    def __post_init__(self) -> None:
        as_tuples(self, "entries", "messages_to_summarize", "messages_to_keep")

    async def resolve_api_key(self, model: HasProvider) -> str | None:
        """Return the key for `model` (`event.model`, or any other with a `provider`); `None` when there is none.

        On `before_compact` of the host only.  The key is in no field, so no wire, file or log can get hold of it.
        """
        find = self.__dict__.get("find_key")
        return None if find is None else find(model.provider)

    def with_keys(self, find_key: Callable[[str], str | None]) -> Self:
        """Let handlers ask for keys: `find_key(provider)`.  Returns the event itself."""
        self.__dict__["find_key"] = find_key
        return self


class AgentStart(Event[Never], frozen=True, tag="agent_start"):
    """The agent begins to work on a prompt."""

    type: ClassVar[str] = "agent_start"


class AgentEnd(Event[Continue], frozen=True, tag="agent_end"):
    """The agent is done with a prompt, unless a hook answers `Continue`; `messages` are the new messages of this prompt.

    `continued`: how many times in a row hooks have kept it going already.  In another agent that tells only whether they
    have, it may be 1 where it is more.
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


class TurnEnd(Event[Never], frozen=True, tag="turn_end"):
    """A turn is over: the model's message and the results of its tool calls."""

    type: ClassVar[str] = "turn_end"

    turn_index: int
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...] = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        as_tuples(self, "tool_results")


class ToolCall(Event[Block | Ask], frozen=True, tag="tool_call"):
    """A tool is about to run with exactly this input; a gate answers `Block`, `Ask` or nothing.

    `parent_tool_call_id`: set when another tool made the call; `native`: the payload of the agent a bridge speaks for.
    """

    type: ClassVar[str] = "tool_call"
    route: ClassVar[Any] = _BY_TOOL

    tool_name: str
    tool_call_id: str
    input: Mapping[str, Any]
    parent_tool_call_id: str | None = None
    native: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if type(self.input) is not FrozenDict:  # as it is in the pipeline
            force_setattr(self, "input", freeze(self.input))
        if self.native is not None:
            force_setattr(self, "native", freeze(self.native))


class ToolResult(Event[Replace], frozen=True, tag="tool_result"):
    """A tool ran (or raised); each handler sees the result as the one before left it."""

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
        if type(self.input) is not FrozenDict:  # as it is in the pipeline
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


class BeforeToolCall(Event[Rewrite | Block | Ask], frozen=True, tag="before_tool_call"):
    """A tool is asked for; this is the place to rewrite `params`.  A gate belongs in `tool_call`."""

    type: ClassVar[str] = "before_tool_call"
    route: ClassVar[Any] = _BY_TOOL

    tool_name: str
    params: Mapping[str, Any]
    tool_call_id: str = field(default_factory=str)

    def __post_init__(self) -> None:
        force_setattr(self, "params", freeze(self.params))


class AfterToolCall(Event[Never], frozen=True, tag="after_tool_call"):
    """A tool call is over, for good or ill.

    `params`: what ran or would have run; `result`: if the tool ran; `error`: its text if it failed; `duration_ms`: the
    tool's own time; `blocked` and `block_reason`: if it did not run.
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


class ForeignEvent(Event[Never], frozen=True, tag="foreign"):
    """Something happened in another agent that no event of ours stands for; seen at the point `event` only.

    `name`: what that agent calls it; `native`: its payload.
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
    _event.__setattr__ = _refuse  # type: ignore[method-assign]  # frozen already; this one says what to do
    _event.__delattr__ = _refuse  # type: ignore[method-assign]
