"""Hide keys that look like `sk-…` in what tools return.

Try it:  agent-hooks run --hook examples/hooks/intercept_redact.py '@bash echo sk-abcdefghijklmnopqrstuvwxyz'
"""

import re

from agent_hooks import HookAPI, TextContent, ToolAfterInput, ToolAfterOutput, ToolOutput

KEY = re.compile(r"\bsk-[\w-]{20,}")


def register(api: HookAPI) -> None:
    @api.intercept("tool.after", priority=-5)
    async def redact(input: ToolAfterInput, output: ToolAfterOutput) -> None:
        result = output.result
        content = [TextContent(KEY.sub("sk-***", b.text)) if isinstance(b, TextContent) else b for b in result.content]
        output.result = ToolOutput(content, result.details, result.is_error)
