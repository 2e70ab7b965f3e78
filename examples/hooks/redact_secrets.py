"""Hide keys and tokens in the results of tools, before the model gets them.

Try it:  agent-hooks run --hook examples/hooks/redact_secrets.py '@bash echo sk-abcdefghijklmnopqrstuvwxyz'
"""

import re
from collections.abc import Callable
from typing import Any

from agent_hooks import HookAPI, HookContext, Replace, TextContent, ToolResult

SECRET = re.compile(
    r"""(?P<kind> sk- | gh[pousr]_ | AKIA | xox[abprs]-   # OpenAI and Anthropic, GitHub, AWS, Slack
        | (?i:(?:api[_-]?key|token|secret|password)["']?\s*[=:]\s*["']?) )
        [\w-]{16,}""",
    re.VERBOSE,
)


def redact(text: str) -> str:
    return SECRET.sub(lambda match: f"{match['kind']}***", text)


def register(api: HookAPI) -> None:
    @api.on("tool_result")
    async def hide(event: ToolResult, ctx: HookContext) -> Replace | None:
        content = [TextContent(redact(b.text)) if isinstance(b, TextContent) else b for b in event.content]
        details = everywhere(redact, event.details)
        if content == event.content and details == event.details:
            return None
        return Replace(content=content, details=details)


def everywhere(change: Callable[[str], str], value: Any) -> Any:
    """Return JSON data with all texts in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: everywhere(change, item) for key, item in value.items()}
    if isinstance(value, list):
        return [everywhere(change, item) for item in value]
    return value
