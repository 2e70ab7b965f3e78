"""The agent's runs, one after another, and the inbox of messages for the agent.

Hooks, clients, and a user who types while the agent works put messages in, from any thread or task.  A message begins a
run.  During a run, the agent takes messages out between two requests to the model.  After an abort, and when a hook has
ended the run, the waiting messages stay until another message comes.

The queue is bounded for each source, so that a hook that sends in a circle gets an error instead of filling the memory.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskStatus
from anyio.lowlevel import current_token
from msgspec import Struct

from agent_hooks.errors import (
    AbortedError,
    HostBusyError,
    MessageBlockedError,
    ModelError,
    RunStoppedError,
    SendError,
    count,
)
from agent_hooks.host.agent import Agent
from agent_hooks.host.view import View
from agent_hooks.values.content import AssistantMessage, Attachment


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


Refusal = ModelError | MessageBlockedError | RunStoppedError
"""The errors that end a run before its last response."""


class Runs:
    """Works on messages, one run after another; create it on the event loop.

    While `paused`, no run begins: the session is being changed.  `count`: how many runs have begun.
    """

    def __init__(self, agent: Agent, view: View) -> None:
        self.inbox = Inbox(self._arrived)
        self.paused = True
        self.count = 0
        self._agent = agent
        self._view = view
        # Messages that were taken out of the inbox and are not delivered yet.
        self._taken: deque[Injected] = deque()
        # Whether the taken messages wait for another one, after an abort or a stop.
        self._held = False
        # The scope of the run that is going on.
        self._scope: anyio.CancelScope | None = None
        self._wake = anyio.Event()
        # Set, and replaced by a new event, when there may be nothing left to do.
        self._changed = anyio.Event()
        self._ended = anyio.Event()

    @property
    def running(self) -> bool:
        """Whether the agent works on a prompt."""
        return self._scope is not None

    def check_idle(self) -> None:
        """Raise `HostBusyError` while a run is going on or the session is being changed."""
        if self.running:
            raise HostBusyError("the agent is working; abort it first")
        if self.paused:
            raise HostBusyError("the session is being changed; wait for that, or abort it")

    def resume(self) -> None:
        """Let runs begin again, first with the messages that came meanwhile."""
        self.paused = False
        self._wake.set()

    async def prompt(self, text: str, attachments: Sequence[Attachment] = ()) -> AssistantMessage:
        """Work on a prompt, now, and return the last response.

        Raises `ModelError`, `MessageBlockedError`, `RunStoppedError` or `AbortedError`.
        """
        answer = await self._run(Injected(text, tuple(attachments)))
        if answer is None:
            raise AbortedError("aborted")
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def abort(self) -> bool:
        """Stop the run, or without a run drop the waiting messages; return whether there were any."""
        if self._scope is not None:
            self._scope.cancel()
            return True
        self._taken += self.inbox.take()
        dropped, self._taken = self._taken, deque()
        for message in dropped:
            self._view.run_started(message.text, message.source)
            self._view.run_ended(None, aborted=True)
        self._wake.set()
        return bool(dropped)

    def withdraw(self) -> list[str]:
        """Take back the messages of the person that wait, and return their texts; those with attachments stay."""
        self._taken += self.inbox.take()
        own = [each for each in self._taken if each.source is None and not each.attachments]
        self._taken = deque(each for each in self._taken if each not in own)
        return [each.text for each in own]

    async def wait_idle(self) -> None:
        """Wait until no run goes on and none is about to begin."""
        while self.running or len(self.inbox) or (self._taken and not self._held):
            await self._changed.wait()

    async def deliver(self) -> None:
        """Give the agent the waiting messages; they are in the next request."""
        self._taken += self.inbox.take()
        while self._taken:
            message = self._taken.popleft()
            self._view.injected(message.text, message.source)
            try:
                await self._agent.inject(*message)
            except MessageBlockedError as exc:
                self._view.warning(str(exc))

    async def work(self, *, task_status: TaskStatus[None]) -> None:
        """Begin runs as messages come in, until cancelled."""
        try:
            task_status.started()
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                while not (self.paused or self.running) and self._next():
                    await self._run(self._taken.popleft())
                self._changed.set()
                self._changed = anyio.Event()
        finally:
            self._ended.set()

    async def ended(self) -> None:
        """Wait for the end of `work`, then warn of the messages that the agent has not read."""
        await self._ended.wait()
        left = len(self._taken) + len(self.inbox.close())
        if left:
            messages = count(left, "message")
            self._view.warning(f"the session ends with {messages} that the agent has not read")

    def _next(self) -> bool:
        """Take the messages out of the inbox; return whether there is one to begin a run with."""
        if len(self.inbox):
            self._held = False
            self._taken += self.inbox.take()
        return bool(self._taken) and not self._held

    async def _run(self, message: Injected) -> AssistantMessage | Refusal | None:
        """Work on one prompt; return the last response, the error in its place, or `None` after an abort."""
        answer: AssistantMessage | Refusal | None = None
        self.count += 1
        self._view.run_started(message.text, message.source)
        try:
            with anyio.CancelScope() as self._scope:
                try:
                    answer = await self._agent.prompt(*message)
                except (ModelError, MessageBlockedError, RunStoppedError) as exc:
                    answer = exc
        finally:
            self._scope = None
            aborted = answer is None
            self._held = aborted or isinstance(answer, RunStoppedError)
            if self._held:
                self._taken += self.inbox.take()
            self._view.run_ended(_reason(answer) if isinstance(answer, Refusal) else None, aborted)
            self._wake.set()
        return answer

    def _arrived(self) -> None:
        self._wake.set()


def _reason(refusal: Refusal) -> str:
    return f"the model failed: {refusal}" if isinstance(refusal, ModelError) else str(refusal)
