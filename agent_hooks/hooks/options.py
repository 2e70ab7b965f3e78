"""The options of `api.on` and `api.intercept`, and the types of handlers, for type checkers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Union

from agent_hooks.dispatch.handlers import ToolMatcher
from agent_hooks.dispatch.table import OnError

if TYPE_CHECKING:
    from agent_hooks.dispatch.context import HookContext
    from agent_hooks.values.answers import (
        AddContext,
        Answer,
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
    from agent_hooks.values.events import (
        AfterToolCall,
        AgentEnd,
        AgentStart,
        BeforeToolCall,
        SessionEvent,
        ToolCall,
        ToolResult,
        TurnEnd,
        TurnStart,
    )
    from agent_hooks.values.tool import Tool

# Only type checkers read these, and to define them takes a millisecond.
if TYPE_CHECKING:
    Fn = TypeVar("Fn", bound=Callable[..., Any])
    Offered = TypeVar("Offered", bound=Tool | Callable[..., Any])
    Unload = TypeVar("Unload", bound=Callable[[], object])
    A = TypeVar("A", bound=Answer)
    Returns = Union[Awaitable[A | Mapping[str, object] | None], A, Mapping[str, object], None]  # noqa: UP007  # a generic alias
    Observes = Awaitable[None] | None

    SessionHandler = Callable[
        [SessionEvent, HookContext], Returns[Cancel | SkipConversationRestore | Compaction | AddContext]
    ]
    AgentStartHandler = Callable[[AgentStart, HookContext], Returns[AddContext]]
    AgentEndHandler = Callable[[AgentEnd, HookContext], Returns[Continue]]
    TurnStartHandler = Callable[[TurnStart, HookContext], Observes]
    TurnEndHandler = Callable[[TurnEnd, HookContext], Returns[Stop]]
    BeforeToolCallHandler = Callable[[BeforeToolCall, HookContext], Returns[Rewrite | Block | Ask]]
    ToolCallHandler = Callable[[ToolCall, HookContext], Returns[Block | Ask]]
    ToolResultHandler = Callable[[ToolResult, HookContext], Returns[Replace | AddContext | Stop]]
    AfterToolCallHandler = Callable[[AfterToolCall, HookContext], Observes]
    InterceptFn = Callable[[Any, Any], object] | Callable[[Any, Any, HookContext], object]

    SessionFn = TypeVar("SessionFn", bound=SessionHandler)
    AgentStartFn = TypeVar("AgentStartFn", bound=AgentStartHandler)
    AgentEndFn = TypeVar("AgentEndFn", bound=AgentEndHandler)
    TurnStartFn = TypeVar("TurnStartFn", bound=TurnStartHandler)
    TurnEndFn = TypeVar("TurnEndFn", bound=TurnEndHandler)
    BeforeToolCallFn = TypeVar("BeforeToolCallFn", bound=BeforeToolCallHandler)
    ToolCallFn = TypeVar("ToolCallFn", bound=ToolCallHandler)
    ToolResultFn = TypeVar("ToolResultFn", bound=ToolResultHandler)
    AfterToolCallFn = TypeVar("AfterToolCallFn", bound=AfterToolCallHandler)


class Options(TypedDict, total=False):
    """Options of `api.on` for every event."""

    priority: int
    on_error: OnError
    inline: bool


class ToolOptions(Options, total=False):
    """Options of `api.on` for tool events."""

    tool: ToolMatcher


class InterceptOptions(TypedDict, total=False):
    """Options of `api.intercept`; `tool` and `agent` are regular expressions."""

    id: str | None
    priority: int
    tool: str | re.Pattern[str] | None
    agent: str | re.Pattern[str] | None
