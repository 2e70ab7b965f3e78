"""Guard, steer and record a coding agent from one Python file.

A hook file defines `register(api)` and subscribes handlers with `api.on(...)`.  A program of your own wraps its tools
with `wrap_tools(tools, runner)` and emits the other events with `runner.emit(...)`.
"""

from __future__ import annotations

from agent_hooks.answers import Answer, Ask, Block, Cancel, Compaction, Replace, Rewrite, SkipConversationRestore
from agent_hooks.api import HookAPI
from agent_hooks.content import (
    AssistantMessage,
    Attachment,
    CompactionEntry,
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
    UserMessage,
)
from agent_hooks.context import HookContext, HookUI
from agent_hooks.errors import (
    AgentHooksError,
    HookError,
    HookUsageError,
    ModelError,
    SendError,
    SessionError,
    SettingsError,
)
from agent_hooks.events import (
    AfterToolCall,
    AgentEnd,
    AgentStart,
    BeforeToolCall,
    CutPoint,
    Event,
    ModelRef,
    SessionEvent,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from agent_hooks.guards import builtin_guards
from agent_hooks.guards.base import Guard, GuardedCall
from agent_hooks.guards.config import GuardSettings
from agent_hooks.handlers import Handler
from agent_hooks.interceptors import Interceptor, InterceptorRegistry
from agent_hooks.loader import LoadedHook, LoadError, LoadResult, discover_and_load_hooks, load_hooks
from agent_hooks.pipeline import wrap_tool, wrap_tools
from agent_hooks.process import ExecResult
from agent_hooks.runner import HookRunner
from agent_hooks.settings import Settings, load_settings
from agent_hooks.stats import HandlerStats
from agent_hooks.tool import (
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
from agent_hooks.ui.base import UI, SilentUI

__all__ = [
    "UI",
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
    "Cancel",
    "Compaction",
    "CompactionEntry",
    "CutPoint",
    "Event",
    "ExecResult",
    "FindToolDetails",
    "GrepToolDetails",
    "Guard",
    "GuardSettings",
    "GuardedCall",
    "Handler",
    "HandlerStats",
    "HookAPI",
    "HookContext",
    "HookError",
    "HookRunner",
    "HookUI",
    "HookUsageError",
    "ImageContent",
    "Interceptor",
    "InterceptorRegistry",
    "LoadError",
    "LoadResult",
    "LoadedHook",
    "LsToolDetails",
    "MessageEntry",
    "ModelChangeEntry",
    "ModelError",
    "ModelRef",
    "ReadToolDetails",
    "Replace",
    "Rewrite",
    "SendError",
    "SessionError",
    "SessionEvent",
    "SessionHeader",
    "Settings",
    "SettingsError",
    "SilentUI",
    "SkipConversationRestore",
    "TextContent",
    "ThinkingContent",
    "ThinkingLevelChangeEntry",
    "Tool",
    "ToolCall",
    "ToolCallContent",
    "ToolDetails",
    "ToolOutput",
    "ToolResult",
    "ToolResultMessage",
    "Truncation",
    "TurnEnd",
    "TurnStart",
    "UserMessage",
    "__version__",
    "builtin_guards",
    "discover_and_load_hooks",
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
    "wrap_tool",
    "wrap_tools",
]

__version__ = "0.1.0"
