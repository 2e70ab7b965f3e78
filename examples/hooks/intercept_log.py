"""Print every tool call as it will run: a negative priority sees what all other interceptors left.

Try it:  agent-hooks run --hook examples/hooks/intercept_log.py '@ls'
"""

import json
import sys

from agent_hooks import HookAPI, ToolBeforeInput, ToolBeforeOutput


def register(api: HookAPI) -> None:
    @api.intercept("tool.before", priority=-10)
    async def log(input: ToolBeforeInput, output: ToolBeforeOutput) -> None:
        print(f"calling {input.tool_name} {json.dumps(output.args)}", file=sys.stderr)
