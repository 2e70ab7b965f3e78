"""One call while its handler works: its dialogs, its programs, its progress, and its cancellation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import anyio
from msgspec import Struct

from agent_hooks.concurrency.deadlines import cancelled_class
from agent_hooks.concurrency.foreign import attempt
from agent_hooks.concurrency.foreign_async import attempt_async
from agent_hooks.errors import text_of
from agent_hooks.isolation.protocol import Ask, Cancel, Message, Notify, ProtocolError, Reply, Stop, Update, plain
from agent_hooks.isolation.running import Pending, Running, is_last

# Seconds that a cancelled handler gets to end; the clock of a dispatch gives a handler up a little later.
STOP_GRACE = 0.9
NOT_STOPPED = f"a handler was cancelled and did not stop within {STOP_GRACE:.1g} s, so it was killed"


class Services(Struct, frozen=True):
    """The functions of the agent for one call.

    `answer`: opens a dialog or runs a program; `notify`: shows the person a message; `on_update`: gets the progress of a
    tool.  A call that has no such function ignores the message.
    """

    answer: Callable[[Ask], Awaitable[Any]] | None = None
    notify: Callable[[Notify], object] | None = None
    on_update: Callable[[Any], object] | None = None


async def converse(running: Running, pending: Pending, message: Any, services: Services) -> Any:
    """Answer the requests of a call, of which `message` is the first, until it ends; return its last message."""
    scopes: dict[int, anyio.CancelScope] = {}
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        try:
            while not is_last(message) and failure is None:
                match message:
                    case Ask() if services.answer is not None:
                        scopes[message.request] = scope = anyio.CancelScope()
                        tasks.start_soon(answer, running.send, message, services.answer, scope)
                    case Stop():
                        if (stopped := scopes.pop(message.request, None)) is not None:
                            stopped.cancel()
                    case Notify() if services.notify is not None:
                        services.notify(message)
                    case Update() if services.on_update is not None:
                        failure = attempt(services.on_update, message.output).exception
                if failure is None:
                    message = await pending.next()
        # This is a cancellation: the handler hears of it before its dialogs have ended.
        except BaseException:
            cancel(running, pending)
            raise
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return message


async def stop(running: Running, pending: Pending) -> None:
    """Cancel a call and wait until it has ended; kill the process if it does not."""
    cancel(running, pending)
    end = monotonic() + STOP_GRACE
    while not pending.ended and running.alive and (left := end - monotonic()) > 0:
        try:
            with anyio.move_on_after(left, shield=True):
                await pending.end()
        except cancelled_class():
            # asyncio's clock cancels again and again.  The first cancellation goes on, when this is over.
            continue
    if not pending.ended:
        running.kill(NOT_STOPPED)


def cancel(running: Running, pending: Pending) -> None:
    """Tell the process to cancel a call."""
    with suppress(ProtocolError):
        running.send(Cancel(pending.id))


async def answer(
    send: Callable[[Message], None],
    request: Ask,
    answer_request: Callable[[Ask], Awaitable[Any]],
    scope: anyio.CancelScope | None = None,
) -> None:
    """Answer a request of the hook; a UI may raise anything, and the handler that asked gets the text."""
    with scope or anyio.CancelScope():
        value, failure = await attempt_async(answer_request, request)
        try:
            send(Reply(request.request, value) if failure is None else refusal(request.request, failure))
        except ProtocolError as exc:
            # The answer is too large.
            send(refusal(request.request, exc))


def refusal(request: int, exc: BaseException) -> Reply:
    """Return the reply to a request that failed."""
    text = text_of(exc) or type(exc).__name__
    return Reply(request, None, plain(text), type(exc).__name__)
