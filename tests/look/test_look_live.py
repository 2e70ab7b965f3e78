"""The news of the data: pages that listen hear of each change, and the files are looked at for them alone."""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_hooks.look import live
from agent_hooks.look.app import Access, application
from agent_hooks.look.index.index import Changes
from agent_hooks.look.live import Live
from agent_hooks.look.view import View
from agent_hooks.testing import call_tool
from look.serving import served
from recording import Recorded
from support import PATIENCE

pytestmark = pytest.mark.anyio


class CountingView(View):
    """A view that counts its refreshes."""

    refreshes = 0

    def refresh(self, seconds: float | None = None) -> Changes:
        """Count, and read the new lines."""
        self.refreshes += 1
        return super().refresh(seconds)


async def record(recorded: Recorded, session: str, *commands: str) -> None:
    """Record calls in a file of their own."""
    runner = recorded.runner(session_id=session)
    for command in commands:
        await call_tool(runner, "bash", {"command": command})
    runner.end_records()


@asynccontextmanager
async def running(view: View, between: float = 0.01) -> AsyncIterator[Live]:
    """Refresh a view for the pages that listen, until the block ends."""
    news = Live(view, between)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(news.run)
        with anyio.fail_after(PATIENCE):
            yield news
        tasks.cancel_scope.cancel()


async def following(stream: AsyncIterator[bytes]) -> dict[str, Any]:
    """Return the data of the next event; comments are passed over."""
    async for part in stream:
        if part.startswith(b"event: changed\ndata: "):
            return news_of(part)
    raise AssertionError


def news_of(part: bytes) -> dict[str, Any]:
    """Return the data of an event."""
    assert part.endswith(b"\n\n")
    found: dict[str, Any] = json.loads(part.partition(b"data: ")[2])
    return found


async def test_a_page_hears_at_once_of_the_version_and_then_of_each_change(recorded: Recorded) -> None:
    """An event has the number of calls and the first row that the page has to ask for."""
    await record(recorded, "s1", "ls", "date")
    view = View(recorded.home)
    async with running(view) as news:
        stream = news.stream()
        assert await anext(stream) == b": here\n\n"
        first = await following(stream)
        assert (first["total"], first["from"]) == (2, 0)
        await record(recorded, "s2", "pwd")
        second = await following(stream)
        assert (second["total"], second["from"]) == (3, 2)
        assert second["version"] > first["version"]
        await stream.aclose()
    view.close()


async def test_each_page_hears_of_all_that_is_new_to_it(recorded: Recorded) -> None:
    """A page that comes later begins with the version; a slow page gets two changes as one, from the first row on."""
    await record(recorded, "s1", "ls")
    view = View(recorded.home)
    async with running(view) as news:
        slow, quick = news.stream(), news.stream()
        assert (await anext(slow), await anext(quick)) == (b": here\n\n", b": here\n\n")
        assert (await following(slow))["total"] == (await following(quick))["total"] == 1
        for number, session in enumerate(("s2", "s3"), 2):
            await record(recorded, session, "date")
            assert (await following(quick))["total"] == number
        assert await following(slow) == {"version": view.summary()["version"], "total": 3, "from": 1}
        late = news.stream()
        await anext(late)
        assert (await following(late))["total"] == 3
        for stream in (slow, quick, late):
            await stream.aclose()
    view.close()


async def test_without_a_page_no_file_is_looked_at(recorded: Recorded) -> None:
    """A browser that goes away ends the refreshing, and the next page begins it again, with the calls of the pause."""
    view = CountingView(recorded.home)
    async with running(view) as news:
        await anyio.wait_all_tasks_blocked()
        assert view.refreshes == 0
        stream = news.stream()
        await anext(stream)
        assert (await following(stream))["total"] == 0
        await stream.aclose()
        while news.is_refreshing:
            await anyio.sleep(0.001)
        before = view.refreshes
        await record(recorded, "s1", "ls")
        await anyio.wait_all_tasks_blocked()
        assert view.refreshes == before
        stream = news.stream()
        await anext(stream)
        assert (await following(stream))["total"] == 1
        assert view.refreshes > before
        await stream.aclose()
    view.close()


async def test_a_page_that_goes_away_at_once_ends_the_refreshing(recorded: Recorded) -> None:
    """The browser is gone before it has read the first bytes; its response closes the stream all the same."""
    view = CountingView(recorded.home)
    async with running(view) as news:
        access = Access("127.0.0.1:1")
        headers = {"host": access.host, "sec-fetch-site": "same-origin"}
        headers["authorization"] = f"Bearer {access.exchange(access.start_token)}"
        stream = news.stream()
        news.stream = lambda: stream  # type: ignore[method-assign]  # the test keeps it from the garbage collection
        sending = anyio.Event()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert message["status"] == 200
            else:
                sending.set()
                await anyio.sleep_forever()

        async def receive() -> Any:
            await sending.wait()
            return {"type": "http.disconnect"}

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/live",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        await application(view, access, news)(scope, receive, send)
        while news.is_refreshing:
            await anyio.sleep(0.001)
    view.close()


async def test_a_stream_without_news_shows_that_it_is_alive(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy or a browser that waits for bytes gets a comment, which no page takes for a change."""
    monkeypatch.setattr(live, "SECONDS_OF_SILENCE", 0.01)
    view = View(recorded.home)
    async with running(view, math.inf) as news:
        stream = news.stream()
        await anext(stream)
        await following(stream)
        assert [await anext(stream) for _ in range(2)] == [b": alive\n\n", b": alive\n\n"]
        await stream.aclose()
    view.close()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_recorded_call_reaches_a_page_over_http(recorded: Recorded, tmp_path: Path, backend: str) -> None:
    """The stream is of the type that browsers read as events; two pages come and go, and the server ends in order."""
    anyio.run(record, recorded, "s1", "ls")
    view = View(recorded.home)
    with served(view, tmp_path / "look", backend) as server:
        server.start()
        for number in (1, 2):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            headers = {"Authorization": f"Bearer {server.bearer}", "Sec-Fetch-Site": "same-origin"}
            connection.request("GET", "/api/live", headers=headers)
            response = connection.getresponse()
            assert (response.status, response.headers.get_content_type()) == (200, "text/event-stream")
            assert response.readline() == b": here\n"
            assert read_event(response)["total"] == number
            anyio.run(record, recorded, f"t{number}", "date")
            assert read_event(response) == {"version": view.summary()["version"], "total": number + 1, "from": number}
            connection.close()
    view.close()


def read_event(response: http.client.HTTPResponse) -> dict[str, Any]:
    """Read up to the end of the next event, and return its data."""
    while (line := response.readline()) and not line.startswith(b"data: "):
        pass
    return news_of(line + response.readline())
