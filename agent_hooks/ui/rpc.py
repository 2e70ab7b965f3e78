"""The UI of a client: each dialog is a record to the client, and waits for the response with its id.

This module has no I/O: `RpcUI` passes records to a `send` function and takes responses by `answer`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from math import inf
from typing import Any, ClassVar, Literal

import anyio
from anyio.lowlevel import checkpoint
from msgspec import UNSET, Struct, UnsetType

from agent_hooks.errors import shown
from agent_hooks.ui.base import NO, ONCE, Answer, Choice, NotifyType, Question

CancelReason = Literal["aborted", "timeout", "shutdown"]


# ---- the wire --------------------------------------------------------------------------------------------------------


class HookUiRequest(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="hook_ui_request"):
    """Base of the four requests; `id` is unique."""

    type: ClassVar[str] = "hook_ui_request"

    id: str


class SelectRequest(HookUiRequest, frozen=True, kw_only=True, tag="hook_ui_request"):
    """Let the person choose one of `options`; answered by `value` or `cancelled`."""

    method: Literal["select"]
    title: str
    options: list[str]


class ConfirmRequest(HookUiRequest, frozen=True, kw_only=True, tag="hook_ui_request"):
    """Ask yes or no; answered by `confirmed` or `cancelled`.

    A question about a tool call also has `call`, `risk`, `answers`, and for an edit `diff`; it may be answered by
    `answer`, one of `answers`, too.
    """

    method: Literal["confirm"]
    title: str
    message: str
    call: str | UnsetType = UNSET
    risk: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET
    answers: list[Choice] | UnsetType = UNSET


class InputRequest(HookUiRequest, frozen=True, kw_only=True, tag="hook_ui_request"):
    """Ask for a line of text; answered by `value` or `cancelled`.  `placeholder` is a hint, not a default."""

    method: Literal["input"]
    title: str
    placeholder: str | UnsetType = UNSET


class NotifyRequest(HookUiRequest, frozen=True, kw_only=True, tag="hook_ui_request"):
    """Show the person a message; it has no response."""

    method: Literal["notify"]
    message: str
    notify_type: NotifyType


class HookUiCancel(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="hook_ui_cancel"):
    """The dialog with this id has ended without a response, and a later response is refused."""

    type: ClassVar[str] = "hook_ui_cancel"

    id: str
    reason: CancelReason


class HookUiResponse(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    tag_field="type",
    tag="hook_ui_response",
    forbid_unknown_fields=True,
):
    """The response to a dialog: exactly one of `value` (select, input), `confirmed` (confirm) and `cancelled: true`.

    A question about a tool call takes `answer` as well; `text`, beside the answer `no`, is the reason for the model.
    """

    type: ClassVar[str] = "hook_ui_response"

    id: str
    value: str | None = None
    confirmed: bool | None = None
    cancelled: bool | None = None
    answer: Choice | None = None
    text: str | None = None


# ---- the UI ----------------------------------------------------------------------------------------------------------


class RpcUI:
    """Asks by records: `send(record)` must return at once, and is called from any thread.

    Dialogs are independent: the responses may come in any order.  A wrong response ends its dialog with the default:
    `None`, or `False` for `confirm`.  `allow_remember`: the client may answer for always; it may be an agent, so the
    person who starts the host decides.
    """

    def __init__(self, send: Callable[[HookUiRequest | HookUiCancel], None], *, allow_remember: bool = False) -> None:
        self._send = send
        self._allow_remember = allow_remember
        self._open: dict[str, _Dialog] = {}
        self._closed = False

    async def select(self, title: str, options: list[str]) -> str | None:
        """Let the person choose one of `options`; `None` when they cancel."""
        chosen: str | None = await self._ask(
            SelectRequest(id=_new_id(), method="select", title=title, options=options), None
        )
        return chosen

    async def confirm(self, title: str, message: str) -> bool:
        """Ask yes or no; `False` when they cancel."""
        confirmed: bool = await self._ask(
            ConfirmRequest(id=_new_id(), method="confirm", title=title, message=message), False
        )
        return confirmed

    async def ask(self, question: Question) -> Answer:
        """Ask about a tool call; cancelled is No."""
        answers = [choice for choice in question.answers if choice != "always" or self._allow_remember]
        request = ConfirmRequest(
            id=_new_id(),
            method="confirm",
            title=question.title,
            message=question.message,
            call=question.call,
            risk=question.risk,
            diff=question.diff or UNSET,
            answers=answers,
        )
        answer: Answer = await self._ask(request, NO)
        return answer

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Ask for a line of text; `None` when they cancel."""
        hint = UNSET if placeholder is None else placeholder
        chosen: str | None = await self._ask(
            InputRequest(id=_new_id(), method="input", title=title, placeholder=hint), None
        )
        return chosen

    def notify(self, message: str, type: NotifyType) -> None:
        """Send a record that has no response; from any thread."""
        self._send(NotifyRequest(id=_new_id(), method="notify", message=message, notify_type=type))

    def answer(self, response: HookUiResponse) -> str | None:
        """End the dialog with the id of `response`; return the error of a wrong response, or `None`.

        A response to no open dialog changes nothing; a response with any other error ends its dialog with the default.
        """
        dialog = self._open.pop(response.id, None)
        if dialog is None:
            return f"no dialog {shown(response.id)} is open: it has been answered or cancelled, or was never asked"
        error = _error_of(response, dialog.request)
        if error is None and not response.cancelled:
            dialog.answer = _answer_of(response, dialog.request)
        dialog.done.set()
        return error

    def refuse(self, id: object) -> None:
        """End a dialog with its default, because its response could not be read."""
        dialog = self._open.pop(id, None) if isinstance(id, str) else None
        if dialog is not None:
            dialog.done.set()

    def close(self) -> None:
        """End every dialog with its default, and every later one at once: the client is gone."""
        self._closed = True
        for dialog in tuple(self._open):
            self._send(HookUiCancel(id=dialog, reason="shutdown"))
            self.refuse(dialog)

    async def _ask(self, request: HookUiRequest, default: Any) -> Any:
        if self._closed:
            await checkpoint()
            return default
        # A handler may have set a deadline, to ask for a limited time only.
        deadline = anyio.current_effective_deadline()
        dialog = self._open[request.id] = _Dialog(request, default)
        try:
            self._send(request)
            await dialog.done.wait()
        except anyio.get_cancelled_exc_class():
            if self._open.pop(request.id, None) is not None:
                expired = -inf < deadline <= anyio.current_time()
                self._send(HookUiCancel(id=request.id, reason="timeout" if expired else "aborted"))
            raise
        finally:
            self._open.pop(request.id, None)
        return dialog.answer


def _new_id() -> str:
    return uuid.uuid4().hex


class _Dialog:
    """A request, and its answer when `done` is set."""

    def __init__(self, request: HookUiRequest, default: Any) -> None:
        self.request = request
        self.answer = default
        self.done = anyio.Event()


def _answer_of(response: HookUiResponse, request: HookUiRequest) -> Any:
    """Return the answer of a right response to `request`."""
    if response.value is not None:
        return response.value
    if not isinstance(request, ConfirmRequest) or request.answers is UNSET:
        return response.confirmed
    if response.answer is None:
        return ONCE if response.confirmed else NO
    return Answer(response.answer, response.text or "")


def _error_of(response: HookUiResponse, request: HookUiRequest) -> str | None:
    """Return the error of a response to `request`, or `None`."""
    given = [name for name in ("value", "confirmed", "answer") if getattr(response, name) is not None]
    given += ["cancelled"] if response.cancelled else []
    wanted = ["confirmed"] if isinstance(request, ConfirmRequest) else ["value"]
    answers = request.answers if isinstance(request, ConfirmRequest) and request.answers is not UNSET else []
    wanted += ["answer"] if answers else []
    if given not in (*([name] for name in wanted), ["cancelled"]):
        there = " and ".join(repr(name) for name in given) or "nothing"
        needs = ", ".join(repr(name) for name in wanted)
        return f"dialog {request.id!r} needs either {needs} or 'cancelled': true, and got {there}"
    if response.answer is not None and response.answer not in answers:
        remedy = "; start the host with --allow-remember" if response.answer == "always" else ""
        return f"dialog {request.id!r}: {response.answer!r} is not one of its answers {answers}{remedy}"
    if response.text is not None and response.answer != "no":
        return f"dialog {request.id!r}: 'text' goes beside 'answer': 'no' only"
    if isinstance(request, SelectRequest) and not response.cancelled and response.value not in request.options:
        return f"dialog {request.id!r}: {shown(response.value)} is not one of its options {shown(request.options, 400)}"
    return None
