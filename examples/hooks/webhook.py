"""Send the agent each text that is posted to http://127.0.0.1:3333/.  Needs: pip install 'agent-hooks-runtime[http]'

Try it:  agent-hooks run --hook examples/hooks/webhook.py

Then, from another terminal:

    curl --data-raw 'run the tests' -H "Authorization: Bearer $(cat .agent/webhook/token)" 127.0.0.1:3333

Each session makes a token and writes it to .agent/webhook/token, which only you can read and git ignores.  To use a token
of your own, set AGENT_WEBHOOK_TOKEN; to use another port, AGENT_WEBHOOK_PORT (0 for any free one).
"""

import os
import secrets
import socket
from contextlib import aclosing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
from anyio.lowlevel import current_token
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from agent_hooks import HookAPI, HookContext, SendError, SessionEvent

MOST = 64_000  # bytes of a body
EMPTY = "The webhook was called without a text."


def register(api: HookAPI) -> None:
    @api.on("session")
    async def start(event: SessionEvent, ctx: HookContext) -> None:
        # Print mode takes no messages.
        if event.reason != "start" or ctx.mode == "print":
            return
        listener = socket.create_server(("127.0.0.1", int(os.environ.get("AGENT_WEBHOOK_PORT", "3333"))))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        token = os.environ.get("AGENT_WEBHOOK_TOKEN") or new_token(Path(ctx.cwd, ".agent", "webhook", "token"))

        async def receive(request: Request) -> PlainTextResponse:
            given = request.headers.get("authorization", "")
            if not secrets.compare_digest(given.encode(), f"Bearer {token}".encode()):
                return PlainTextResponse("wrong token\n", 401, {"WWW-Authenticate": "Bearer"})
            body = b""
            try:
                async with aclosing(request.stream()) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        if len(body) > MOST:
                            return PlainTextResponse(f"more than {MOST} bytes\n", 413, {"Connection": "close"})
                api.send(body.decode(errors="replace").strip() or EMPTY)
            # Half a message is not sent.
            except ClientDisconnect:
                return PlainTextResponse("", 400)
            except SendError as exc:
                return PlainTextResponse(f"{exc}\n", 429)
            return PlainTextResponse("OK")

        app = Starlette(routes=[Route("/", receive, methods=["POST"])])
        api.start_task(partial(serve, app, listener))
        ctx.ui.notify(f"listening on {address}")


def new_token(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    # A checkout may bring links to other directories.
    for folder in (path.parent.parent, path.parent):
        if folder.is_symlink():
            raise OSError(f"{folder} is a link, so no token is written there: remove the link")
    path.parent.mkdir(parents=True, exist_ok=True)
    # No commit and no checkpoint may hold the token.
    write_new(path.with_name(".gitignore"), "*\n")
    write_new(path, token)
    return token


def write_new(path: Path, text: str) -> None:
    # Here too, a checkout may bring a link.
    path.unlink(missing_ok=True)
    with open(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)


async def serve(app: Starlette, listener: socket.socket) -> None:
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.loglevel = "WARNING"
    # Seconds for requests that are still open at the end.
    config.graceful_timeout = 0.5
    # Seconds for a client that sends nothing: from Python 3.12 on, the end waits for all clients.
    config.read_timeout = 2
    backend = "trio" if "trio" in type(current_token().native_token).__module__ else "asyncio"
    hypercorn: Any = import_module(f"hypercorn.{backend}")
    stop = anyio.Event()

    async def run() -> None:
        # Its own trigger ends it in order.
        with anyio.CancelScope(shield=True):
            await hypercorn.serve(app, config, shutdown_trigger=stop.wait)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()
