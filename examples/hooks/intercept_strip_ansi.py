r"""Take colours and cursor movements out of what tools return.

Try it:  agent-hooks run --hook examples/hooks/intercept_strip_ansi.py "@bash printf '\033[31mred\033[0m and plain'"
"""

import re

from agent_hooks import HookAPI, TextContent, ToolAfterInput, ToolAfterOutput, ToolOutput

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)")


def register(api: HookAPI) -> None:
    @api.intercept("tool.after")
    async def strip(input: ToolAfterInput, output: ToolAfterOutput) -> None:
        result = output.result
        content = [TextContent(ANSI.sub("", b.text)) if isinstance(b, TextContent) else b for b in result.content]
        output.result = ToolOutput(content, result.details, result.is_error)
