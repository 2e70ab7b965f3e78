"""An MCP server whose tools answer, fail, wait, end the server, and answer at length.

`deaf`: it does not end with its input; `http PORT`: it serves streamable HTTP to clients with the header `X-Word: open`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer

server = MCPServer("demo")


@server.tool()
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"the sum is {a + b}"


@server.tool()
def place() -> str:
    """Tell where the server runs."""
    return f"in {os.getcwd()} with {sys.argv[1:]} and {os.environ.get('GIVEN')}, {os.environ.get('WORD')}"


@server.tool()
def write_file(path: str) -> str:
    """Write a file."""
    Path(path).write_text(str(os.getpid()))
    return "marked"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it broke")


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
def much() -> str:
    """Answer at length."""
    return "x" * 1_000_000


@server.tool()
async def wait(path: str) -> None:
    """Wait for ever, and note it in a file."""
    Path(path).write_text("waiting")
    try:
        await anyio.sleep_forever()
    finally:
        Path(path).write_text("cancelled")


def only_with_the_word(app: Any) -> Any:
    """Return an application that refuses requests without the header."""

    async def refusing(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (b"x-word", b"open") not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body"})
        else:
            await app(scope, receive, send)

    return refusing


match sys.argv[1:]:
    case ["http", port]:
        uvicorn.run(only_with_the_word(server.streamable_http_app()), port=int(port), log_level="warning")
    case _:
        print("a line that is no message", flush=True)
        server.run()
        if "deaf" in sys.argv:
            time.sleep(600)
