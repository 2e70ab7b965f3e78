"""Dialogs as records: each waits for the response with its id, and for nothing else."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any

import anyio
import msgspec
import pytest

from agent_hooks import HookAPI, HookContext, TurnStart
from agent_hooks.ui import Answer, Question
from agent_hooks.ui.rpc import ConfirmRequest, HookUiCancel, HookUiResponse, NotifyRequest, RpcUI, SelectRequest
from support import PATIENCE, hook_of, runner_of

Ask = Callable[[RpcUI], Awaitable[object]]


class Client:
    """Another program: keeps the records it is sent."""

    def __init__(self, *, allow_remember: bool = False) -> None:
        self.records: list[Any] = []
        self.ui = RpcUI(self.records.append, allow_remember=allow_remember)

    async def asked(self, number: int = 1) -> Any:
        """Wait for that many records, and return the last."""
        with anyio.fail_after(PATIENCE):
            while len(self.records) < number:
                await anyio.lowlevel.checkpoint()
        return self.records[number - 1]

    async def settle(self, ask: Ask, **response: Any) -> tuple[object, str | None]:
        """Open one dialog and answer it; return the hook's answer and the error of the response."""
        async with self.dialog(ask) as (request, got):
            error = self.ui.answer(HookUiResponse(id=request.id, **response))
        return got[0], error

    @asynccontextmanager
    async def dialog(self, ask: Ask) -> AsyncIterator[tuple[Any, list[object]]]:
        """Open one dialog, and give its record and the list that gets the hook's answer."""
        got: list[object] = []

        async def ask_it() -> None:
            got.append(await ask(self.ui))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_it)
            yield await self.asked(), got


def select(ui: RpcUI) -> Awaitable[object]:
    return ui.select("Which?", ["a", "b"])


def confirm(ui: RpcUI) -> Awaitable[object]:
    return ui.confirm("Sure?", "It is gone then.")


def input_(ui: RpcUI) -> Awaitable[object]:
    return ui.input("Name?", "Ada")


@pytest.mark.parametrize(
    ("ask", "response", "got"),
    [
        (select, {"value": "b"}, "b"),
        (select, {"value": "b", "cancelled": False}, "b"),
        (select, {"cancelled": True}, None),
        (confirm, {"confirmed": True}, True),
        (confirm, {"confirmed": False}, False),
        (confirm, {"cancelled": True}, False),
        (input_, {"value": ""}, ""),
        (input_, {"cancelled": True}, None),
    ],
)
async def test_a_right_response_is_the_answer(ask: Ask, response: dict[str, Any], got: object) -> None:
    """A cancelled dialog of each kind gives its default."""
    assert await Client().settle(ask, **response) == (got, None)


def question(ui: RpcUI) -> Awaitable[object]:
    return ui.ask(QUESTION)


QUESTION = Question(
    title="overwrites history",
    call="bash git push --force",
    risk="discards published history",
    diff="-a",
    reasons=("guard: why",),
    answers=("no", "once", "session", "always"),
)


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ({"confirmed": True}, Answer("once")),
        ({"confirmed": False}, Answer("no")),
        ({"cancelled": True}, Answer("no")),
        ({"answer": "no"}, Answer("no")),
        ({"answer": "no", "text": "use a branch"}, Answer("no", "use a branch")),
        ({"answer": "once"}, Answer("once")),
        ({"answer": "session"}, Answer("session")),
        ({"answer": "always"}, Answer("always")),
    ],
)
async def test_a_client_answers_a_question_about_a_call(response: dict[str, Any], answer: Answer) -> None:
    """The request is a `confirm` for older clients, and has all parts of the question."""
    client = Client(allow_remember=True)
    assert await client.settle(question, **response) == (answer, None)
    [request] = client.records
    assert isinstance(request, ConfirmRequest)
    assert (request.method, request.title, request.call) == ("confirm", QUESTION.title, QUESTION.call)
    assert (request.risk, request.diff, request.answers) == (QUESTION.risk, "-a", ["no", "once", "session", "always"])
    assert "guard: why" in request.message


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ({"answer": "always"}, "'always' is not one of its answers ['no', 'once', 'session']; start the host with"),
        ({"answer": "session", "text": "x"}, "'text' goes beside 'answer': 'no' only"),
        ({"confirmed": True, "text": "x"}, "'text' goes beside 'answer': 'no' only"),
        ({"answer": "no", "confirmed": True}, "and got 'confirmed' and 'answer'"),
        ({"value": "yes"}, "needs either 'confirmed', 'answer' or 'cancelled': true, and got 'value'"),
        ({}, "and got nothing"),
    ],
)
async def test_a_wrong_answer_to_a_question_is_no(response: dict[str, Any], error: str) -> None:
    """Without `--allow-remember`, no client answers for always."""
    client = Client()
    answer, told = await client.settle(question, **response)
    assert answer == Answer("no")
    assert error in str(told)


async def test_a_dialog_of_a_handler_takes_no_answer_for_a_call() -> None:
    """Its `confirm` has none of the fields."""
    client = Client(allow_remember=True)
    answer, told = await client.settle(confirm, answer="session")
    assert (answer, "needs either 'confirmed' or" in str(told)) == (False, True)
    assert b"answers" not in msgspec.json.encode(client.records[0])


async def test_a_question_ends_as_no_when_the_client_is_gone() -> None:
    """So does one that is asked later."""
    client = Client()
    async with client.dialog(question) as (_, got):
        client.ui.close()
    assert [*got, await question(client.ui)] == [Answer("no")] * 2


@pytest.mark.parametrize(
    ("ask", "response", "got", "error"),
    [
        (select, {"value": "c"}, None, "'c' is not one of its options ['a', 'b']"),
        (select, {"confirmed": True}, None, "needs either 'value' or 'cancelled': true, and got 'confirmed'"),
        (select, {}, None, "and got nothing"),
        (select, {"cancelled": False}, None, "and got nothing"),
        (select, {"value": "a", "cancelled": True}, None, "and got 'value' and 'cancelled'"),
        (confirm, {"value": "yes"}, False, "needs either 'confirmed' or 'cancelled': true, and got 'value'"),
        (confirm, {"confirmed": True, "cancelled": True}, False, "and got 'confirmed' and 'cancelled'"),
        (input_, {"confirmed": True}, None, "needs either 'value'"),
    ],
)
async def test_a_wrong_response_is_the_default_and_an_error_that_names_the_id(
    ask: Ask, response: dict[str, Any], got: object, error: str
) -> None:
    """It never counts as yes."""
    client = Client()
    answer, told = await client.settle(ask, **response)
    assert answer is got
    assert told is not None
    assert error in told
    assert client.records[0].id in told


async def test_an_unknown_or_repeated_id_changes_nothing() -> None:
    """The first response counts; the other dialog stays open."""
    client = Client()
    async with client.dialog(confirm) as (request, got):
        assert "'nobody'" in str(client.ui.answer(HookUiResponse(id="nobody", confirmed=True)))
        assert client.ui.answer(HookUiResponse(id=request.id, confirmed=False)) is None
        assert request.id in str(client.ui.answer(HookUiResponse(id=request.id, confirmed=True)))
        client.ui.refuse(request.id)
        client.ui.refuse(["no", "id"])
    assert got == [False]
    assert len(client.records) == 1


async def test_a_response_that_cannot_be_read_settles_its_dialog() -> None:
    """With the default."""
    client = Client()
    async with client.dialog(confirm) as (request, got):
        client.ui.refuse(request.id)
    assert got == [False]


async def test_a_thousand_dialogs_at_once_each_get_their_own_answer() -> None:
    """Answered in any order, by value, by nonsense and by cancelling: none is lost, none is crossed."""
    order = random.Random(4)
    client = Client()
    got: dict[int, object] = {}

    async def dialog(number: int) -> None:
        kind = number % 3
        if kind == 0:
            got[number] = await client.ui.input(str(number), None)
        elif kind == 1:
            got[number] = await client.ui.select(str(number), [f"{number} a", f"{number} b"])
        else:
            got[number] = await client.ui.confirm(str(number), "")

    async with anyio.create_task_group() as tasks:
        for number in range(1000):
            tasks.start_soon(dialog, number)
        await client.asked(1000)
        requests = list(client.records)
        order.shuffle(requests)
        expected: dict[int, object] = {}
        for request in requests:
            number = int(request.title)
            if order.random() < 0.1:
                client.ui.answer(HookUiResponse(id=request.id, cancelled=True))
                expected[number] = False if isinstance(request, ConfirmRequest) else None
            elif isinstance(request, ConfirmRequest):
                expected[number] = order.random() < 0.5
                client.ui.answer(HookUiResponse(id=request.id, confirmed=bool(expected[number])))
            else:
                expected[number] = f"{number} b" if isinstance(request, SelectRequest) else f"answer {number}"
                client.ui.answer(HookUiResponse(id=request.id, value=str(expected[number])))
            if order.random() < 0.1:
                await anyio.lowlevel.checkpoint()
            if order.random() < 0.1:
                assert client.ui.answer(HookUiResponse(id=request.id, value="once more")) is not None
    assert got == expected
    assert len({request.id for request in requests}) == 1000


async def test_a_cancelled_dialog_tells_the_client() -> None:
    """An answer to it comes too late."""
    client = Client()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.ui.confirm, "Sure?", "")
        request = await client.asked()
        tasks.cancel_scope.cancel()
    assert client.records[1:] == [HookUiCancel(id=request.id, reason="aborted")]
    assert client.ui.answer(HookUiResponse(id=request.id, confirmed=True)) is not None


async def test_a_dialog_whose_time_is_over_says_so() -> None:
    """A handler may ask for a while only."""
    client = Client()
    with anyio.move_on_after(0.01) as scope:
        await client.ui.confirm("Sure?", "")
    assert scope.cancelled_caught
    assert client.records[1:] == [HookUiCancel(id=client.records[0].id, reason="timeout")]


async def test_a_dialog_that_begins_cancelled_is_aborted() -> None:
    """No deadline has passed then."""
    client = Client()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await client.ui.confirm("Sure?", "")
    assert [record.reason for record in client.records if isinstance(record, HookUiCancel)] == ["aborted"]


async def test_an_answer_that_came_before_the_cancellation_is_no_cancelled_dialog() -> None:
    """The response has ended the dialog, so no record cancels it."""
    client = Client()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.ui.confirm, "Sure?", "")
        request = await client.asked()
        client.ui.answer(HookUiResponse(id=request.id, confirmed=True))
        tasks.cancel_scope.cancel()
    assert client.records == [request]


async def test_closing_settles_every_dialog_with_its_default() -> None:
    """Also those that come later, at once and without a record."""
    client = Client()
    got: list[object] = []

    async def dialog(ask: Ask) -> None:
        got.append(await ask(client.ui))

    async with anyio.create_task_group() as tasks:
        for ask in (select, confirm, input_):
            tasks.start_soon(dialog, ask)
        await client.asked(3)
        client.ui.close()
    assert sorted(map(str, got)) == ["False", "None", "None"]
    assert [record.reason for record in client.records[3:]] == ["shutdown"] * 3
    assert (await select(client.ui), await confirm(client.ui), await input_(client.ui)) == (None, False, None)
    assert len(client.records) == 6


async def test_a_handler_has_a_ui_and_may_notify_from_a_thread() -> None:
    """A notification is a record without a response."""
    client = Client()
    seen: list[bool] = []

    def register(api: HookAPI) -> None:
        @api.on("turn_start")
        def tell(event: TurnStart, ctx: HookContext) -> None:
            seen.append(ctx.has_ui)
            thread = Thread(target=ctx.ui.notify, args=("careful", "warning"))
            thread.start()
            thread.join()

    runner, errors = runner_of(hook_of(register), mode="rpc", ui=client.ui)
    await runner.emit(TurnStart(turn_index=0, timestamp=0))
    [record] = client.records
    assert isinstance(record, NotifyRequest)
    assert (record.message, record.notify_type, seen, errors) == ("careful", "warning", [True], [])
