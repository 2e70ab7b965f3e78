r"""Keep the agent from writing Python that cannot be parsed, in a process of its own.

Try it:  agent-hooks run --hook examples/hooks/python_gate.py '@write {"path": "x.py", "content": "def f(:\n"}'

The text comes from a model, and a parser that is written in C can crash on a hostile one.  With `ISOLATION` it takes its
own process with it: that call is blocked, and the agent goes on.
"""

import ast

from agent_hooks import Block, HookAPI, HookContext, ToolCall

ISOLATION = "process"


def register(api: HookAPI) -> None:
    @api.on("tool_call", tool="write")
    async def parse(event: ToolCall, ctx: HookContext) -> Block | None:
        if not event.input["path"].endswith(".py"):
            return None
        try:
            ast.parse(event.input["content"])
        except SyntaxError as exc:
            return Block(f"{event.input['path']}:{exc.lineno}: {exc.msg}")
        return None
