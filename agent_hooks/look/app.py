"""The server's application: the page's files, the exchange of the start token, and the data as JSON or as bytes.

The rules by which the server answers a request: its place, its origin and its token.

1. `Host` is exactly the address that the server listens at, so that no other name leads here (DNS rebinding).
2. Data goes to this page alone: `Sec-Fetch-Site` is `same-origin`, or `Origin` is our own.  A page of another port of
   127.0.0.1 is another origin, and is refused.
3. Data needs the bearer token, because every user of the machine can connect.  There is no cookie, because a browser
   sends the cookies of 127.0.0.1 to every port.
4. The bearer token is given once, for the start token, which is valid for one use within a minute.
5. Only `POST /start` changes anything.
"""

from __future__ import annotations

import hmac
import json
import secrets
import struct
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Any

from anyio import to_thread
from msgspec import Struct
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_hooks.look.live import Live
from agent_hooks.look.saved import INDEX, SAFE_HEADERS, PageFile, page_files
from agent_hooks.look.viewing import Viewing

START_SECONDS = 60.0
"""The seconds in which the start token is valid."""


class Refusal(Struct, frozen=True):
    """A request that is not answered: the status, and the reason with the remedy."""

    status: int
    reason: str


class Access:
    """The tokens and the address of one server.

    `host`: the only `Host` that is answered, with the port; `clock`: seconds of a monotonic clock.
    """

    def __init__(self, host: str, clock: Callable[[], float] = monotonic) -> None:
        self.host = host
        self.origin = f"http://{host}"
        self.start_token = secrets.token_urlsafe(32)
        self._bearer = secrets.token_urlsafe(32)
        self._clock = clock
        self._until = clock() + START_SECONDS
        self._is_used = False

    @property
    def is_open(self) -> bool:
        """Whether the start token can still be exchanged."""
        return not self._is_used and self._clock() < self._until

    def exchange(self, start_token: str) -> str | None:
        """Return the bearer token for the start token, once and in time; otherwise `None`."""
        if not self.is_open or not _equal(start_token, self.start_token):
            return None
        self._is_used = True
        return self._bearer

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """Return the reason not to answer a request, or `None`."""
        if headers.get("host") != self.host:
            return Refusal(421, f"this server answers at {self.origin} only")
        posts = path == "/start"
        if method not in (("POST",) if posts else ("GET", "HEAD")):
            return Refusal(405, "this page is read only")
        is_data = posts or path.startswith("/api/")
        if not self._comes_from_here(headers, is_data=is_data):
            return Refusal(403, "only the page of this server may ask for this")
        if is_data and not posts and not _equal(headers.get("authorization", ""), f"Bearer {self._bearer}"):
            return Refusal(401, "the token is missing or not valid; run agent-hooks look again")
        return None

    def _comes_from_here(self, headers: Mapping[str, str], *, is_data: bool) -> bool:
        """Tell whether a request comes from our page; the page itself may be opened from anywhere, by a person."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin != self.origin:
            return False
        if site is not None and site != "same-origin":
            return not is_data and headers.get("sec-fetch-mode") == "navigate"
        return not is_data or origin is not None or site is not None


def _equal(given: str, wanted: str) -> bool:
    """Compare two tokens in a time that tells nothing; a header may hold any character."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


MOST_ROWS = 500
"""The rows of one request for commands."""
MOST_FOUND = 10_000
"""The rows that a search returns."""
_LONGEST_START = 200
_LONGEST_SEARCH = 1000


class Guarded:
    """Refuses the requests that `Access` does not allow, and puts the safe headers on every response."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SAFE_HEADERS)
            await send(message)

        refusal = self._access.refusal(scope["method"], scope["path"], Headers(scope=scope))
        app = self._app if refusal is None else PlainTextResponse(refusal.reason + "\n", refusal.status)
        await app(scope, receive, send_safely)


class Page:
    """The handlers of all paths, over one view.

    `view`: the data; `access`: the tokens; `live`: the news of the data; `on_start`: called when the start token has been
    exchanged.
    """

    def __init__(self, view: Viewing, access: Access, live: Live, on_start: Callable[[], None]) -> None:
        self._view, self._access, self._live, self._on_start = view, access, live, on_start

    def routes(self) -> list[Route]:
        """Return the table of paths."""
        return [
            Route("/", self.file),
            Route("/page/{name}", self.file),
            Route("/start", self.start, methods=["POST"]),
            Route("/api/summary", self.summary),
            Route("/api/columns", self.columns),
            Route("/api/commands", self.commands),
            Route("/api/search", self.search),
            Route("/api/card/{row:int}", self.card),
            Route("/api/row/{id:path}", self.row),
            Route("/api/hooks", self.hooks),
            Route("/api/live", self.news),
        ]

    async def file(self, request: Request) -> Response:
        """Return a static file of the page, which holds no data."""
        file: PageFile | None = page_files().get(request.path_params.get("name", INDEX))
        return _missing("there is no such file") if file is None else Response(file.content, media_type=file.media_type)

    async def start(self, request: Request) -> Response:
        """Exchange the start token in the body for the bearer token."""
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LONGEST_START:
                break
        bearer = self._access.exchange(body.decode("ascii", "replace"))
        if bearer is None:
            return PlainTextResponse(
                "the start token was used before, or is too old; run agent-hooks look again\n", 403
            )
        self._on_start()
        return JSONResponse({"bearer": bearer})

    async def summary(self, request: Request) -> Response:
        """Return the numbers, the lanes, the tools and the things that were left out."""
        return _json(await to_thread.run_sync(self._view.summary))

    async def columns(self, request: Request) -> Response:
        """Return the length of the header as four bytes, the header as JSON, and the arrays."""
        after = _number(request.query_params.get("after", "0"))
        if after is None:
            return _wrong("after is a row number")

        def packed() -> bytes:
            columns = self._view.columns(after)
            return pack(columns.header(), columns.to_bytes())

        return Response(await to_thread.run_sync(packed), media_type="application/octet-stream")

    async def commands(self, request: Request) -> Response:
        """Return one line for each of the rows `1,2,10-20`."""
        rows = _rows(request.query_params.get("rows", ""))
        if rows is None:
            return _wrong(f"rows are numbers and ranges, 1,2,10-20, and at most {MOST_ROWS}")
        return _json(await to_thread.run_sync(self._view.command, rows))

    async def search(self, request: Request) -> Response:
        """Return the rows that contain all words of `q`."""
        text = request.query_params.get("q", "")[:_LONGEST_SEARCH]
        return _json(await to_thread.run_sync(self._view.search, text, MOST_FOUND))

    async def card(self, request: Request) -> Response:
        """Return all about one call."""
        try:
            return _json(await to_thread.run_sync(self._view.card, request.path_params["row"]))
        except IndexError:
            return _missing("there is no such call; its record may have been removed")

    async def row(self, request: Request) -> Response:
        """Return the row of the call with an id, or null."""
        return _json(await to_thread.run_sync(self._view.row_of, request.path_params["id"]))

    async def hooks(self, request: Request) -> Response:
        """Return the numbers of each hook."""
        return _json(await to_thread.run_sync(self._view.hooks))

    async def news(self, request: Request) -> Response:
        """Stream an event for each change of the data."""
        return _News(self._live.stream())


class _News(StreamingResponse):
    """A stream that is closed with its response; otherwise the garbage collection would close it, at some later time."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._events):
            await super().__call__(scope, receive, send)


def application(view: Viewing, access: Access, live: Live, on_start: Callable[[], None] = lambda: None) -> Starlette:
    """Return the application over a view."""
    return Starlette(
        routes=Page(view, access, live, on_start).routes(), middleware=[Middleware(Guarded, access=access)]
    )


def pack(header: dict[str, Any], arrays: bytes) -> bytes:
    """Return a header and arrays as the page reads them: the arrays begin at a multiple of eight bytes."""
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return struct.pack("<I", len(text)) + text + arrays


def _json(value: Any) -> Response:
    # A half character of a broken text has no UTF-8; JSON has an escape for it.
    return Response(json.dumps(value), media_type="application/json")


def _missing(reason: str) -> Response:
    return PlainTextResponse(reason + "\n", 404)


def _wrong(reason: str) -> Response:
    return PlainTextResponse(reason + "\n", 400)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _rows(text: str) -> Sequence[int] | None:
    rows: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = _number(first), _number(last if dash else first)
        if begin is None or end is None or end - begin + len(rows) >= MOST_ROWS:
            return None
        rows.extend(range(begin, end + 1))
    return rows
