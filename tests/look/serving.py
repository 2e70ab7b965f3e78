"""A server of the page for tests: over a made-up view, in a thread, with requests as browsers and strangers make them."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

from agent_hooks.look.serving import look
from agent_hooks.look.viewing import Viewing
from support import PATIENCE


class Reply:
    """The answer to one request."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A running server; `path` is its redirect file."""

    def __init__(self, address: str, path: str) -> None:
        self.address, self.path = address, Path(path)
        self.host = address.removeprefix("http://")
        self.port = int(self.host.partition(":")[2])
        self.bearer = ""

    @property
    def start_token(self) -> str:
        found = re.search(r"#start=([\w-]+)", self.path.read_text())
        assert found is not None
        return found[1]

    def request(self, path: str, method: str = "GET", body: str = "", **headers: str) -> Reply:
        """Send a request as the page does, but for the given headers; an empty header is left out."""
        usual = {"host": self.host, "sec_fetch_site": "same-origin"}
        if self.bearer:
            usual["authorization"] = f"Bearer {self.bearer}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {**usual, **headers, "content_length": str(len(body))}.items():
                if value:
                    connection.putheader(name.replace("_", "-"), value)
            connection.endheaders(body.encode())
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def start(self) -> None:
        """Exchange the start token."""
        self.bearer = self.request("/start", "POST", self.start_token).json["bearer"]


@contextmanager
def served(view: Viewing, directory: Path, backend: str = "asyncio") -> Iterator[Served]:
    """Serve a view until the block ends."""
    ready, told = Event(), list[str]()
    stopping: list[Any] = []

    async def main() -> None:
        stop = anyio.Event()
        stopping.extend((current_token(), stop))

        def tell(address: str, path: str) -> None:
            told.extend((address, path))
            ready.set()

        await look(view, str(directory), tell, stop)

    thread = Thread(target=lambda: anyio.run(main, backend=backend))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield Served(*told)
    finally:
        token, stop = stopping
        from_thread.run_sync(stop.set, token=token)
        thread.join(PATIENCE)
        assert not thread.is_alive()
