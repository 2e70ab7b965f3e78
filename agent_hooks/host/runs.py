"""The agent's runs: what is said to it is worked on, one prompt after another.

While a run goes on, what comes in waits in the inbox and is delivered before the next request to the model; else it
begins a new run.  After an abort it waits until somebody says something again.
Above: lifecycle.  Below: agent, inbox, view.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import anyio
from anyio.abc import TaskStatus

from agent_hooks.errors import AbortedError, HostBusyError, MessageBlockedError, ModelError
from agent_hooks.host.agent import Agent
from agent_hooks.host.inbox import Inbox, Injected
from agent_hooks.host.view import View
from agent_hooks.values.content import AssistantMessage, Attachment

Refusal = (ModelError, MessageBlockedError)  # why a run has no answer


class Runs:
    """One run after another; made on the event loop.  While `paused` none begins: the session is being changed."""

    def __init__(self, agent: Agent, view: View) -> None:
        self.inbox = Inbox(self._arrived)
        self.paused = True
        self.count = 0  # of runs that have begun
        self._agent = agent
        self._view = view
        self._taken: deque[Injected] = deque()  # off the inbox, and not yet delivered
        self._held = False  # what was taken waits, after an abort, for something new
        self._scope: anyio.CancelScope | None = None  # of the run that goes on
        self._wake = anyio.Event()
        self._changed = anyio.Event()  # set and made anew when there may be nothing left to do
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
        """Work on a prompt, now, and return the last response; raises `ModelError`, `MessageBlockedError`
        or `AbortedError`.
        """
        answer = await self._run(Injected(text, tuple(attachments)))
        if answer is None:
            raise AbortedError("aborted")
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def abort(self) -> bool:
        """Stop the run, or drop what was said and has not begun; return whether there was anything."""
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

    async def wait_idle(self) -> None:
        """Wait until no run goes on and none is about to begin."""
        while self.running or len(self.inbox) or (self._taken and not self._held):
            await self._changed.wait()

    async def deliver(self) -> None:
        """Give the agent what waits; it is in the next request."""
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
        """Wait for the end of `work`; then say what nobody took."""
        await self._ended.wait()
        left = len(self._taken) + len(self.inbox.close())
        if left:
            messages = "1 message" if left == 1 else f"{left} messages"
            self._view.warning(f"the session ends with {messages} that the agent has not read")

    def _next(self) -> bool:
        """Tell whether there is something to begin a run with."""
        if len(self.inbox):
            self._held = False
            self._taken += self.inbox.take()
        return bool(self._taken) and not self._held

    async def _run(self, message: Injected) -> AssistantMessage | ModelError | MessageBlockedError | None:
        """Work on one prompt; return the last response, or why there is none: the error, or `None` for an abort."""
        answer: AssistantMessage | ModelError | MessageBlockedError | None = None
        self.count += 1
        self._view.run_started(message.text, message.source)
        try:
            with anyio.CancelScope() as self._scope:
                try:
                    answer = await self._agent.prompt(*message)
                except Refusal as exc:
                    answer = exc
        finally:
            self._scope = None
            if aborted := answer is None:
                self._taken += self.inbox.take()
            self._held = aborted
            self._view.run_ended(_told(answer) if isinstance(answer, Refusal) else None, aborted)
            self._wake.set()
        return answer

    def _arrived(self) -> None:
        self._wake.set()


def _told(refusal: ModelError | MessageBlockedError) -> str:
    return f"the model failed: {refusal}" if isinstance(refusal, ModelError) else str(refusal)
