"""The agent's runs, one after another.

A message that comes while no run is going on begins a run.  A message that comes during a run waits in the inbox, and
goes into the next request to the model.  After an abort, and when a hook has ended the run, the messages that wait stay
until another message comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import anyio
from anyio.abc import TaskStatus

from agent_hooks.errors import AbortedError, HostBusyError, MessageBlockedError, ModelError, RunStoppedError, count
from agent_hooks.host.agent import Agent
from agent_hooks.host.inbox import Inbox, Injected
from agent_hooks.host.view import View
from agent_hooks.values.content import AssistantMessage, Attachment

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
