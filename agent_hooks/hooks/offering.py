"""The tools that hooks and programs offer, checked where they are given, before a model calls one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from agent_hooks.dispatch.handlers import is_async
from agent_hooks.errors import HookUsageError, shown
from agent_hooks.values.tool import Tool

_CALL = "`async def execute(self, tool_call_id, input, *, on_update=None)`"


def offered_tool(tool: object) -> Tool:
    """Return the tool that a hook offers: the object itself, or a tool that calls a typed function.

    Raises `HookUsageError` for an object or a function that cannot be a tool.
    """
    if (function_tool := _of_function(tool)) is not None:
        return function_tool
    if isinstance(tool, type):
        raise HookUsageError(f"api.register_tool wants an object, not a class; write {tool.__name__}()")
    for attribute in ("name", "description", "input_schema", "execute"):
        if not hasattr(tool, attribute):
            form = "; or write a typed function, `def name(argument: str) -> str: ...`, and give it that"
            remedy = form if isinstance(tool, Mapping) or callable(tool) else ""
            raise HookUsageError(f"api.register_tool({shown(tool)}): a tool needs {attribute!r}{remedy}")
    found = cast("Tool", tool)
    if not isinstance(found.name, str) or not found.name or not isinstance(found.input_schema, Mapping):
        raise HookUsageError(f"api.register_tool({shown(tool)}): name is a text, and input_schema a mapping")
    if not is_async(found.execute):
        raise HookUsageError(f"api.register_tool: {found.name}.execute must be an `async def`: {_CALL}")
    if problem := _refuses_call(found.execute):
        raise HookUsageError(f"api.register_tool: {found.name}.execute {problem}")
    return found


def as_tool(tool: Tool | Callable[..., Any]) -> Tool:
    """Return the tool of a program: `tool` itself, or a tool that calls the typed function `tool`.

    Raises `HookUsageError` for any other value, and for a function whose signature no model could fill in.
    """
    if (function_tool := _of_function(tool)) is not None:
        return function_tool
    if isinstance(tool, type) or not isinstance(tool, Tool):
        raise HookUsageError(
            "wrap_tool wants a tool, with name, description, input_schema and execute, or a typed function; "
            f"not {shown(tool)}"
        )
    if problem := _refuses_call(tool.execute):
        raise HookUsageError(f"wrap_tool: {tool.name}.execute {problem}")
    return tool


def _of_function(tool: object) -> Tool | None:
    if not (inspect.isfunction(tool) or inspect.ismethod(tool)):
        return None
    # Imported here, because few hooks offer tools.
    from agent_hooks.hooks.function_tool import FunctionTool

    return FunctionTool(tool)


def _refuses_call(execute: Callable[..., Any]) -> str | None:
    """Return why the pipeline cannot call `execute`, and the right form; `None` when it can, or Python does not know."""
    try:
        signature = inspect.signature(execute)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind("", {}, on_update=None)
    except TypeError as exc:
        return f"cannot be called with (tool_call_id, input, on_update=…): {exc}; write {_CALL}"
    return None
