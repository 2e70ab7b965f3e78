"""The queue of a client's requests: they take effect in the order in which they come.

1. `abort` and `shutdown` take effect at once.
2. A prompt or `get_state` takes effect when the host exists and no session action is under way.
3. A session action (new, switch, clear, branch, compact) and a reload also wait until the session has started.  They run
   as tasks, because they may wait for a dialog; the requests behind one wait for its end.
4. An abort refuses the requests that wait, and so does the end of the session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from msgspec import UNSET

from agent_hooks.cli.rpc.protocol import (
    ActionResponse,
    ActionResult,
    Branch,
    Clear,
    Compact,
    GetState,
    NewSession,
    Prompt,
    Reload,
    ReloadResponse,
    ReloadResult,
    Request,
    Response,
    State,
    StateResponse,
    SwitchSession,
)
from agent_hooks.errors import AgentHooksError
from agent_hooks.host.lifecycle import ActionOutcome, Renewed, SessionHost

AT_THE_END = "the session is ending"


class RequestQueue:
    """Answers the requests of one client by a `SessionHost`."""

    def __init__(self, send: Callable[[object], None]) -> None:
        self._send = send
        self._host: SessionHost | None = None
        self._tasks: TaskGroup | None = None
        self._waiting: deque[Request] = deque()
        self._acting = False
        self._acted = anyio.Event()

    def use_host(self, host: SessionHost) -> None:
        """Take the host, whose session has not started yet."""
        self._host = host
        self._go_on()

    def use_tasks(self, tasks: TaskGroup) -> None:
        """Take a task group for session actions; the session has started."""
        self._tasks = tasks
        self._go_on()

    def put(self, request: Request) -> None:
        """Answer a request when its turn comes."""
        if isinstance(request, GetState) and self._host is not None:
            self._answer(request, self._host)
        else:
            self._waiting.append(request)
            self._go_on()

    def abort(self) -> None:
        """Abort the run or the action under way, and refuse the requests that wait."""
        self.refuse_waiting("aborted before it began")
        if self._host is not None:
            self._host.abort()

    def refuse_waiting(self, why: str) -> None:
        """Refuse the requests that wait."""
        for request in self._waiting:
            self.refuse(request.type, request.id, why)
        self._waiting.clear()

    async def wait_done(self, host: SessionHost) -> None:
        """Wait until all requests are answered and the agent is idle."""
        while self._acting or self._waiting:
            await self._acted.wait()
        await host.wait_idle()

    def agree(self, request: Request) -> None:
        """Send the response of success."""
        self._send(Response(id=_or_unset(request.id), command=request.type, success=True))

    def refuse(self, type: str, id: str | int | None, error: str) -> None:
        """Send the response of failure."""
        self._send(Response(id=_or_unset(id), command=type, success=False, error=error))

    def _go_on(self) -> None:
        """Answer the requests that wait, up to the first that has to wait longer."""
        while self._waiting and self._host is not None and not self._acting:
            if isinstance(self._waiting[0], Prompt | GetState):
                self._answer(self._waiting.popleft(), self._host)
            elif self._tasks is None:
                return
            else:
                self._acting = True
                self._tasks.start_soon(self._act, self._host)

    def _answer(self, request: Request, host: SessionHost) -> None:
        """Answer a prompt or `get_state`."""
        if isinstance(request, Prompt):
            try:
                host.submit(request.message, request.attachments)
            except AgentHooksError as exc:
                # The inbox is full, or the message is too long.
                self.refuse(request.type, request.id, str(exc))
            else:
                self.agree(request)
        else:
            state = State(**host.state()._asdict())
            self._send(StateResponse(id=_or_unset(request.id), command="get_state", success=True, data=state))

    async def _act(self, host: SessionHost) -> None:
        """Carry out the next session action; an abort may have refused it meanwhile."""
        try:
            if self._waiting and not isinstance(self._waiting[0], Prompt | GetState):
                await self._change_session(self._waiting.popleft(), host)
        finally:
            self._acting = False
            self._acted.set()
            self._acted = anyio.Event()
        self._go_on()

    async def _change_session(self, request: Request, host: SessionHost) -> None:
        try:
            if isinstance(request, Reload):
                self._send(_reloaded(request, await host.reload()))
                return
            outcome = await _change(request, host)
        except AgentHooksError as exc:
            # Nothing has changed, and the client gets the reason.
            self.refuse(request.type, request.id, str(exc))
        except anyio.get_cancelled_exc_class():
            self.refuse(request.type, request.id, AT_THE_END)
            raise
        else:
            self._send(_response(request, outcome))


async def _change(request: Request, host: SessionHost) -> ActionOutcome:
    match request:
        case NewSession():
            return await host.new_session()
        case SwitchSession():
            return await host.switch_session(request.session_file)
        case Clear():
            return await host.clear()
        case Branch():
            return await host.branch(request.entry_index)
        case Compact():
            return await host.compact(request.custom_instructions)
        case _:
            # The mode and the queue have taken all other requests before.
            raise AssertionError(f"{request.type} is no action on a session")


def _reloaded(request: Request, renewed: Renewed | None) -> ReloadResponse:
    result = ReloadResult(hooks=()) if renewed is None else ReloadResult(hooks=renewed.hooks, problems=renewed.problems)
    return ReloadResponse(id=_or_unset(request.id), command="reload", success=True, data=result)


def _response(request: Request, outcome: ActionOutcome) -> ActionResponse:
    result = ActionResult(
        cancelled=outcome.cancelled,
        reason=_or_unset(outcome.reason),
        text=_or_unset(outcome.text),
        compaction_entry=_or_unset(outcome.entry),
    )
    return ActionResponse(id=_or_unset(request.id), command=request.type, success=True, data=result)


def _or_unset(value: Any) -> Any:
    return UNSET if value is None else value
