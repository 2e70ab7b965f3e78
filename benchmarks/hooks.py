"""Hooks, events and tools that the benchmarks share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_hooks import (
    AssistantMessage,
    HookAPI,
    HookContext,
    HookRunner,
    LoadedHook,
    ToolCall,
    ToolOutput,
    TurnEnd,
)

MESSAGE = AssistantMessage(content="done", timestamp=0, provider="none", model="none")
# Handlers of `turn_end` have a deadline, handlers of `tool_call` have none.
TURN_END = TurnEnd(turn_index=0, message=MESSAGE)
TOOL_CALL = ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"})
INPUT = {"command": "ls"}


async def nothing(event: Any, ctx: HookContext) -> None:
    """Have no opinion: the commonest handler."""


def runner_of(subscribe: Callable[[HookAPI], object]) -> HookRunner:
    """Return a runner of one hook."""
    api = HookAPI("bench.py")
    subscribe(api)
    return HookRunner([LoadedHook("bench.py", "bench.py", "bench", api)], cwd=".")


def runner_with(event: str, count: int, handler: Callable[..., Any] = nothing) -> HookRunner:
    """Return a runner with `count` handlers of one event."""

    def subscribe(api: HookAPI) -> None:
        on: Any = api.on
        for _ in range(count):
            on(event, handler)

    return runner_of(subscribe)


class BareTool:
    """A tool that does nothing, so that only the hooks around it cost."""

    name = "bash"
    description = "Do nothing."
    input_schema: dict[str, Any] = {  # noqa: RUF012  # as the protocol of tools has it
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    }
    output = ToolOutput("done")

    async def execute(self, tool_call_id: str, input: dict[str, Any], *, on_update: Any = None) -> ToolOutput:
        return self.output
