"""An MCP server that follows the protocol by hand, with tools of odd names and schemas."""

from __future__ import annotations

import json
import sys
from typing import Any

OBJECT = {"type": "object"}
TOOLS: dict[str, Any] = {
    "good": OBJECT,
    "x" * 70: OBJECT,
    "wrong": {**OBJECT, "properties": {"a": {"type": 12}}},
    "a.b": OBJECT,
    "a_b": OBJECT,
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        server = {"name": "odd", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        # One tool a page.
        names = [*TOOLS]
        at = int(params.get("cursor", 0))
        more = {"nextCursor": str(at + 1)} if at + 1 < len(names) else {}
        return {"tools": [{"name": names[at], "inputSchema": TOOLS[names[at]]}], **more}
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    file = {"type": "resource", "resource": {"uri": "file:///a", "text": "the text of a file"}}
    return {"content": [{"type": "text", "text": params["name"]}, image, file]}


for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "server/discover":
        error = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
    elif "id" in request:
        result = answer(request["method"], request.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
