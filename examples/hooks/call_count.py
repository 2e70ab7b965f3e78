"""Block the tool calls of a session after the first hundred; the count survives an edit of this file.

Try it:  agent-hooks run --hook examples/hooks/call_count.py '@bash true'

LIMIT may be changed while the agent waits at the prompt: the hook is loaded again, and `api.state` is handed over.
"""

from agent_hooks import Block, HookAPI, HookContext, ToolCall

LIMIT = 100


def register(api: HookAPI) -> None:
    """Count the calls."""
    api.state.setdefault("calls", 0)

    @api.on("tool_call", inline=True)
    def count(event: ToolCall, ctx: HookContext) -> Block | None:
        if api.state["calls"] >= LIMIT:
            return Block(f"this session has made {LIMIT} tool calls; raise LIMIT in call_count.py to go on")
        api.state["calls"] += 1
        print(f"call {api.state['calls']} of {LIMIT}")
        return None
