"""Write every tool call, run or blocked, to .agent/audit.jsonl.

Try it:  agent-hooks run --hook examples/hooks/audit_log.py '@ls' && cat .agent/audit.jsonl
"""

import json
import time
from pathlib import Path

from agent_hooks import AfterToolCall, HookAPI, HookContext


def register(api: HookAPI) -> None:
    @api.on("after_tool_call")
    # A plain def runs in a thread, so it may wait for the disk.
    def log(event: AfterToolCall, ctx: HookContext) -> None:
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "session": ctx.session_id,
            "tool": event.tool_name,
            "input": dict(event.params),
            "blocked": event.block_reason if event.blocked else None,
            "error": event.error,
            "ms": event.duration_ms,
        }
        path = Path(ctx.cwd, ".agent", "audit.jsonl")
        # A checkout may bring links to other files.
        if path.parent.is_symlink() or path.is_symlink():
            raise OSError(f"{path} is a link, or its directory is: remove the link")
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, default=str) + "\n")
