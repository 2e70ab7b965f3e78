"""A small MCP server on stdin and stdout: `echo` gives its text back, `fail` fails."""

from __future__ import annotations

import json
import sys
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [{"name": name, "description": name, "inputSchema": TEXT} for name in ("echo", "fail")]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    match method:
        case "initialize":
            server = {"name": "probe", "version": "1"}
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": server,
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call" if params["name"] == "echo":
            return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "it broke"}], "isError": True}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    # The rest are notifications.
    if "id" in request:
        result = answer(request["method"], request.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
