"""Guard, steer and record a coding agent from one Python file.

A hook file defines `register(api)` and subscribes handlers with `api.on(...)`.  A program of your own wraps its tools
with `wrap_tools(tools, runner)` and emits the other events with `runner.emit(...)`.
"""

from __future__ import annotations

import sys

# `python -m agent_hooks` puts the current directory first on the path, and a project there may have modules with the
# names of ours.  This package is found already, so the entry goes before anything else is imported.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path and sys.orig_argv[-len(sys.argv)].endswith("agent_hooks"):
    del sys.path[0]

from typing import TYPE_CHECKING as _CHECKING

from agent_hooks.dispatch.context import HookContext, HookUI
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.dispatch.interceptors import (
    Interceptor,
    InterceptorRegistry,
    get_interceptors,
    initialize_interceptors,
    reset_interceptors,
)
from agent_hooks.dispatch.points import (
    BusInput,
    CommandInput,
    CommandOutput,
    CompactingInput,
    CompactingOutput,
    ConfigInput,
    HeadersOutput,
    MessageBeforeInput,
    MessageBeforeOutput,
    MessagesOutput,
    NoOutput,
    ParamsBeforeInput,
    ParamsBeforeOutput,
    PermissionInput,
    PermissionOutput,
    RequestInput,
    SystemOutput,
    ToolAfterInput,
    ToolAfterOutput,
    ToolBeforeInput,
    ToolBeforeOutput,
)
from agent_hooks.dispatch.stats import HandlerStats
from agent_hooks.effects import effects_of
from agent_hooks.errors import (
    AgentHooksError,
    HookError,
    HookUsageError,
    ModelError,
    SendError,
    SessionError,
    SettingsError,
)
from agent_hooks.guards.base import Guard, GuardedCall
from agent_hooks.hooks.api import HookAPI
from agent_hooks.hooks.loaded import LoadedHook, LoadError, LoadResult
from agent_hooks.hooks.loader import discover_and_load_hooks, load_hooks
from agent_hooks.pipeline.wrapping import wrap_tool, wrap_tools
from agent_hooks.runner.reloaded import Reloaded
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import Settings, load_settings
from agent_hooks.trust.policy import Trust
from agent_hooks.ui.base import UI, SilentUI
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
from agent_hooks.values.content import (
    AssistantMessage,
    Attachment,
    CompactionEntry,
    ExecResult,
    ImageContent,
    MessageEntry,
    ModelChangeEntry,
    SessionHeader,
    TextContent,
    ThinkingContent,
    ThinkingLevelChangeEntry,
    ToolCallContent,
    ToolOutput,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_hooks.values.effects import (
    Device,
    Discard,
    Effects,
    Install,
    Kill,
    PathEffect,
    Place,
    Privilege,
    Program,
    Transfer,
    Unknown,
)
from agent_hooks.values.events import (
    AfterToolCall,
    AgentEnd,
    AgentStart,
    BeforeToolCall,
    CutPoint,
    Event,
    ForeignEvent,
    ModelRef,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from agent_hooks.values.tool import (
    BashToolDetails,
    FindToolDetails,
    GrepToolDetails,
    LsToolDetails,
    ReadToolDetails,
    Tool,
    ToolDetails,
    Truncation,
    is_bash_tool_call,
    is_bash_tool_result,
    is_edit_tool_call,
    is_edit_tool_result,
    is_find_tool_call,
    is_find_tool_result,
    is_grep_tool_call,
    is_grep_tool_result,
    is_ls_tool_call,
    is_ls_tool_result,
    is_read_tool_call,
    is_read_tool_result,
    is_write_tool_call,
    is_write_tool_result,
)

__all__ = [
    "UI",
    "AddContext",
    "AfterToolCall",
    "AgentEnd",
    "AgentHooksError",
    "AgentStart",
    "Answer",
    "Ask",
    "AssistantMessage",
    "Attachment",
    "BashToolDetails",
    "BeforeToolCall",
    "Block",
    "BusInput",
    "Cancel",
    "CommandInput",
    "CommandOutput",
    "CompactingInput",
    "CompactingOutput",
    "Compaction",
    "CompactionEntry",
    "ConfigInput",
    "Continue",
    "CutPoint",
    "Device",
    "Discard",
    "Effects",
    "Event",
    "ExecResult",
    "FindToolDetails",
    "ForeignEvent",
    "GrepToolDetails",
    "Guard",
    "GuardedCall",
    "Handler",
    "HandlerStats",
    "HeadersOutput",
    "HookAPI",
    "HookContext",
    "HookError",
    "HookRunner",
    "HookUI",
    "HookUsageError",
    "ImageContent",
    "Install",
    "Interceptor",
    "InterceptorRegistry",
    "Kill",
    "LoadError",
    "LoadResult",
    "LoadedHook",
    "LsToolDetails",
    "MessageBeforeInput",
    "MessageBeforeOutput",
    "MessageEntry",
    "MessagesOutput",
    "ModelChangeEntry",
    "ModelError",
    "ModelRef",
    "NoOutput",
    "ParamsBeforeInput",
    "ParamsBeforeOutput",
    "PathEffect",
    "PermissionInput",
    "PermissionOutput",
    "Place",
    "Privilege",
    "Program",
    "ReadToolDetails",
    "Reloaded",
    "Replace",
    "RequestInput",
    "Rewrite",
    "SendError",
    "SessionError",
    "SessionEvent",
    "SessionHeader",
    "Settings",
    "SettingsError",
    "SilentUI",
    "SkipConversationRestore",
    "Stop",
    "SystemOutput",
    "TextContent",
    "ThinkingContent",
    "ThinkingLevelChangeEntry",
    "Tool",
    "ToolAfterInput",
    "ToolAfterOutput",
    "ToolBeforeInput",
    "ToolBeforeOutput",
    "ToolCall",
    "ToolCallContent",
    "ToolDetails",
    "ToolOutput",
    "ToolResult",
    "ToolResultMessage",
    "Transfer",
    "Truncation",
    "Trust",
    "TurnEnd",
    "TurnStart",
    "Unknown",
    "Usage",
    "UserMessage",
    "__version__",
    "discover_and_load_hooks",
    "effects_of",
    "get_interceptors",
    "initialize_interceptors",
    "is_bash_tool_call",
    "is_bash_tool_result",
    "is_edit_tool_call",
    "is_edit_tool_result",
    "is_find_tool_call",
    "is_find_tool_result",
    "is_grep_tool_call",
    "is_grep_tool_result",
    "is_ls_tool_call",
    "is_ls_tool_result",
    "is_read_tool_call",
    "is_read_tool_result",
    "is_write_tool_call",
    "is_write_tool_result",
    "load_hooks",
    "load_settings",
    "reset_interceptors",
    "wrap_tool",
    "wrap_tools",
]

__version__ = "0.2.0.dev0"

if not _CHECKING:
    # Type checkers go on to reject other names.
    def __getattr__(name: str) -> object:
        """Raise the error for a name that the package does not have; one of another agent gets ours."""
        from agent_hooks.values.near import camel_case
        from agent_hooks.values.spellings import spelled

        ours = spelled("from agent_hooks import ").get(name) or next(
            (each for each in __all__ if camel_case(each) == name), None
        )
        if ours is not None:
            raise ImportError(f"agent_hooks has no {name}: write {ours}", name=name)
        raise AttributeError(f"module 'agent_hooks' has no attribute {name!r}", name=name)
