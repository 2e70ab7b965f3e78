"""Give every `grep` and `ls` in a command an argument: no colours in what the model reads.

Try it:  agent-hooks run --hook examples/hooks/intercept_defaults.py '@bash ls'
"""

import re

from agent_hooks import HookAPI, ToolBeforeInput, ToolBeforeOutput


def register(api: HookAPI) -> None:
    @api.intercept("tool.before", priority=50, tool="^bash$")
    async def without_colours(input: ToolBeforeInput, output: ToolBeforeOutput) -> None:
        command = output.args["command"]
        if "--color" not in command:
            output.args["command"] = re.sub(r"^(grep|ls)\b", r"\1 --color=never", command)
