"""The news of the data, for the pages that listen: one task refreshes while at least one page does.

A page gets the version, the number of calls and the first row that changed, and asks for the rows itself.  A browser that
goes away cancels its stream, and the refreshing rests.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import anyio
from anyio import to_thread

from agent_hooks.look.viewing import Viewing

SECONDS_BETWEEN = 1.0
"""The seconds between two looks at the record files."""
SECONDS_OF_SILENCE = 15.0
"""The seconds after which a comment shows that the stream is alive."""


class _Listener:
    """One page: the first row that it has not heard of, and the moment at which there is news."""

    def __init__(self) -> None:
        self.news = anyio.Event()
        self.first: int | None = None
        # The first event comes at once, so that the page learns the version.
        self.is_new = True


class Live:
    """The refreshing of one server's data, for any number of pages.

    `view`: the data; `between`: the seconds between two refreshes.
    """

    def __init__(self, view: Viewing, between: float = SECONDS_BETWEEN) -> None:
        self._view = view
        self._between = between
        self._listeners: list[_Listener] = []
        self._begun = anyio.Event()
        self._version: int | None = None
        self._total = 0
        self._has_ended = False

    @property
    def is_refreshing(self) -> bool:
        """Whether the files are looked at again and again, because a page listens."""
        return self._begun.is_set()

    async def run(self) -> None:
        """Refresh for ever, as long as a page listens."""
        while True:
            if not self._listeners:
                self._begun = anyio.Event()
                await self._begun.wait()
            found = await to_thread.run_sync(self._view.refresh)
            has_changed = found.version != self._version
            first = min(found.calls, default=found.total)
            self._version, self._total = found.version, found.total
            for listener in self._listeners:
                if has_changed or listener.is_new:
                    listener.is_new = False
                    listener.first = first if listener.first is None else min(first, listener.first)
                    listener.news.set()
            await anyio.sleep(self._between)

    def end(self) -> None:
        """End all streams, so that their connections close in order."""
        self._has_ended = True
        for listener in self._listeners:
            listener.news.set()

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events: `changed` at the beginning and after each change, and comments in between."""
        listener = _Listener()
        self._listeners.append(listener)
        self._begun.set()
        try:
            # The headers go out with the first bytes.
            yield b": here\n\n"
            while not self._has_ended:
                with anyio.move_on_after(SECONDS_OF_SILENCE):
                    await listener.news.wait()
                if listener.first is None:
                    yield b": alive\n\n"
                    continue
                data = {"version": self._version, "total": self._total, "from": listener.first}
                listener.first, listener.news = None, anyio.Event()
                yield f"event: changed\ndata: {json.dumps(data)}\n\n".encode()
        finally:
            self._listeners.remove(listener)
