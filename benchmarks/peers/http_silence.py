"""An HTTP hook that answers an empty object, as small as ASGI allows: the cost of uvicorn itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]}
BODY = {"type": "http.response.body", "body": b"{}\n"}


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Read a payload to its end and answer an empty object."""
    if scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        await send(START)
        await send(BODY)
