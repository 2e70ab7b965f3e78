"""Add what a server knows: a result with a `url` in its details gets that page's status beside it.

Try it:  agent-hooks run --hook examples/hooks/intercept_enrich.py '@ls'
"""

import urllib.error
import urllib.request
from typing import Any

import anyio.to_thread

from agent_hooks import HookAPI, ToolAfterInput, ToolAfterOutput, ToolOutput


def status_of(url: str) -> int | str:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  # http only, see below
            status: int = answer.status
            return status
    except urllib.error.HTTPError as exc:
        return exc.code
    except (OSError, ValueError) as exc:
        return str(exc)


def register(api: HookAPI) -> None:
    @api.intercept("tool.after")
    async def add_status(input: ToolAfterInput, output: ToolAfterOutput) -> None:
        details: Any = output.result.details
        if isinstance(details, dict) and str(details.get("url", "")).startswith(("http://", "https://")):
            status = await anyio.to_thread.run_sync(status_of, details["url"])
            result = output.result
            output.result = ToolOutput(result.content, {**details, "status": status}, result.is_error)
