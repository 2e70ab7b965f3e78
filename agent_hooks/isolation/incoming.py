"""The messages of a hook's process, as the agent takes them: to the calls that wait, and to the runner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import Struct

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.errors import describe
from agent_hooks.isolation.conversation import answer, refusal
from agent_hooks.isolation.failures import RemoteError
from agent_hooks.isolation.protocol import (
    Ask,
    Deaf,
    Failed,
    FromHook,
    Imported,
    Loaded,
    Notify,
    ProtocolError,
    Registrations,
    Reply,
    Reported,
    Result,
    Send,
    Stop,
    Update,
    from_hook,
)
from agent_hooks.isolation.running import Running

if TYPE_CHECKING:
    from anyio.abc import TaskGroup


class Serving(Struct, frozen=True):
    """The functions of the agent that a process uses beside its calls.

    `state`: returns the state that a former generation has left; `answer`: opens a dialog or runs a program for code that
    belongs to no running call; `notify`, `send`: show the person a message, and send the agent one; `report`: takes the
    failure of a task, by function, event, exception.
    """

    state: Callable[[], dict[Any, Any]]
    answer: Callable[[Ask], Awaitable[Any]]
    notify: Callable[[str, Any], object]
    send: Callable[[str, Any], object]
    report: Callable[[str, str, BaseException], object]


class Incoming:
    """Takes the messages of all runs of one process.

    `registered`: called with the registrations of the hook when they change.
    `serving`, `tasks`: the functions of the agent, and the tasks of the process, while it is served.
    `kept`: the bytes by path that a hook without approved bytes was loaded from.
    """

    def __init__(self, registered: Callable[[Registrations], object]) -> None:
        self.serving: Serving | None = None
        self.tasks: TaskGroup | None = None
        self.kept: dict[str, bytes] = {}
        self._registered = registered

    def take_all(self, running: Running) -> bool:
        """Take the messages that there are to read; return `False` at their end."""
        found = running.receive()
        if found is None:
            return False
        for each in found:
            message = from_hook(each)
            failure = attempt(self.take, running, message).exception
            if failure is not None:
                # The process has registered something that cannot be, or it does not follow the protocol.
                raise ProtocolError(describe(failure))
        return True

    def take(self, running: Running, message: FromHook) -> None:
        """Take one message of a run."""
        match message:
            case Result() | Failed() | Loaded() | Update():
                if (pending := running.calls.get(message.id)) is not None:
                    pending.put(message)
            case Ask() | Stop() | Notify():
                if (pending := running.calls.get(message.call)) is not None and not pending.ended:
                    pending.put(message)
                else:
                    self._take_late(running, message)
            # A run that was killed may have sent more; the handlers are those of the run that follows it.
            case Registrations() if not running.replaced:
                self._registered(message)
            case Imported():
                self.kept.setdefault(message.path, message.data)
            case Send():
                running.send(self._sent(message))
            case Deaf():
                running.kill(message.why)
            case Reported():
                if self.serving is not None:
                    self.serving.report(message.handler, message.event, RemoteError(message.failure))

    def _take_late(self, running: Running, message: Ask | Stop | Notify) -> None:
        """Take a request of code that belongs to no running call, a background task for example."""
        serving, tasks = self.serving, self.tasks
        if serving is None or tasks is None:
            return
        if isinstance(message, Notify):
            self.notify(serving.notify, message)
        elif isinstance(message, Stop):
            running.stop_late(message.request)
        else:
            tasks.start_soon(self._answer_late, running, message, serving.answer)

    async def _answer_late(
        self, running: Running, message: Ask, answer_request: Callable[[Ask], Awaitable[Any]]
    ) -> None:
        with anyio.CancelScope() as scope:
            running.late[message.request] = scope
            await answer(running.send, message, answer_request)
        running.late.pop(message.request, None)

    def notify(self, notify: Callable[[str, Any], object], message: Notify) -> None:
        """Show the person a message; the failure of a UI is reported, because the handler does not wait for it."""
        failure = attempt(notify, message.text, message.type).exception
        if failure is not None and self.serving is not None:
            self.serving.report("ctx.ui.notify", "notify", failure)

    def _sent(self, message: Send) -> Reply:
        if self.serving is None:
            return Reply(message.request, None, "the agent takes no messages while hooks are loading", "HookUsageError")
        failure = attempt(self.serving.send, message.text, message.attachments).exception
        return Reply(message.request) if failure is None else refusal(message.request, failure)
