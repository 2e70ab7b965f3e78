"""strands: its hook registry before a tool call, async callbacks without deadlines."""

from __future__ import annotations

from strands.hooks import BeforeToolCallEvent, HookRegistry

from benchmarks.harness import Side, unrolled
from benchmarks.peers.common import measure


async def callback(event):
    """Have no opinion."""


def side(count: int) -> Side:
    """Return a side that invokes that many callbacks."""
    registry = HookRegistry()
    for _ in range(count):
        registry.add_callback(BeforeToolCallEvent, callback)
    event = BeforeToolCallEvent(
        agent=None,
        selected_tool=None,
        tool_use={"name": "bash", "toolUseId": "1", "input": {"command": "ls"}},
        invocation_state={},
    )
    return unrolled("await invoke(event)", invoke=registry.invoke_callbacks_async, event=event)


measure("strands-agents", {"dispatch": {1: side(1), 10: side(10)}})
