"""The inbox: messages for the agent from hooks, from clients, and from a person who types while the agent works.

Any thread or task may put a message in; the agent takes the messages out between two requests to the model.  The queue is
bounded for each source, so that a hook that sends in a circle gets an error instead of filling the memory.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

from anyio.lowlevel import current_token
from msgspec import Struct

from agent_hooks.errors import SendError
from agent_hooks.values.content import Attachment


class Injected(NamedTuple):
    """A message on its way to the agent; `source` is the path of the hook that sent it, `None` for the person."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    source: str | None = None

    @property
    def size(self) -> int:
        """Characters of text and attachments."""
        return len(self.text) + sum(len(each.content) + len(each.extracted_text or "") for each in self.attachments)


class InboxLimits(Struct, frozen=True, kw_only=True):
    """The limits for the messages of one source.

    `count`, `size`: the most messages, and characters of them, that wait at one time; `rate`: the most messages in
    `period` seconds.  `rate` is for hooks only, not for the person or the client.
    """

    count: int = 100
    size: int = 20_000_000
    rate: int = 60
    period: float = 60.0


class Inbox:
    """A bounded queue that any thread may fill; create it on the event loop.

    `arrived` is called on that event loop soon after a message was put in, at least once for all messages that wait;
    `now` returns the time in seconds.
    """

    def __init__(
        self,
        arrived: Callable[[], object],
        *,
        limits: InboxLimits = InboxLimits(),  # noqa: B008  # frozen
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._arrived = arrived
        self._limits = limits
        self._now = now
        self._lock = Lock()
        self._waiting: deque[Injected] = deque()
        # For each hook, the times of its last messages.
        self._times: defaultdict[str, deque[float]] = defaultdict(deque)
        self._closed = False
        loop: Any = current_token().native_token
        self._post = loop.call_soon_threadsafe if hasattr(loop, "call_soon_threadsafe") else loop.run_sync_soon

    def __len__(self) -> int:
        """Number of messages that wait."""
        return len(self._waiting)

    def put(self, text: str, attachments: Sequence[Attachment] = (), source: str | None = None) -> None:
        """Queue a message and wake the event loop; from any thread or task.

        Raises `SendError` when the source has too many messages waiting, sends too fast, or the session has ended; the
        message is not queued then.
        """
        message = Injected(text, tuple(attachments), source)
        with self._lock:
            self._check(message)
            # Queued before the event loop wakes, because `arrived` takes the message.
            self._waiting.append(message)
            try:
                self._post(self._arrived)
            # Both backends raise it when the event loop has ended.
            except RuntimeError:
                self._waiting.pop()
                self._closed = True
                self._check(message)
            if source is not None:
                self._times[source].append(self._now())

    def take(self) -> tuple[Injected, ...]:
        """Take the waiting messages out and return them, oldest first."""
        with self._lock:
            taken = tuple(self._waiting)
            self._waiting.clear()
        return taken

    def close(self) -> tuple[Injected, ...]:
        """Refuse messages from here on; return those that still wait."""
        with self._lock:
            self._closed = True
        return self.take()

    def _check(self, message: Injected) -> None:
        limits = self._limits
        if self._closed:
            raise SendError("the message was not sent: the session has ended")
        waiting = [each for each in self._waiting if each.source == message.source]
        if len(waiting) >= limits.count:
            raise SendError(
                f"the message was not sent: {len(waiting)} messages of this sender wait for the agent already; "
                "send one message for many things, or wait until the agent has read them (agent_end)"
            )
        size = message.size + sum(each.size for each in waiting)
        if size > limits.size:
            others = f" with the {len(waiting)} that wait" if waiting else ""
            raise SendError(
                f"the message was not sent: it has {size:,} characters{others}, with attachments, and the limit is "
                f"{limits.size:,}; save it in a file and send its path"
            )
        if message.source is None:
            return
        times = self._times[message.source]
        while times and times[0] <= self._now() - limits.period:
            times.popleft()
        if len(times) >= limits.rate:
            wait = times[0] + limits.period - self._now()
            raise SendError(
                f"the message was not sent: one hook may send {limits.rate} messages in {limits.period:g} s; "
                f"the next can be sent in {wait:.0f} s"
            )
