"""Real models that fail: retries, the text for the person, and the session afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agent_hooks import HookRunner, ModelError
from agent_hooks.host.agent import Agent
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.model import BrokenResponseError, Model, ModelRequest, collect
from agent_hooks.host.models import MODELS, open_model
from agent_hooks.host.session import Session
from agent_hooks.testing import RecordedEvents
from agent_hooks.values.content import TextContent
from host.test_models_wire import request_of
from model_server import ENVIRONMENT, KEY, KINDS, Fail, ModelServer, Raw, Say
from support import EchoTool, SilentView

pytestmark = pytest.mark.anyio
OVERFLOWS = {
    "anthropic": Fail(400, "prompt is too long: 250000 tokens > 200000 maximum", kind="invalid_request_error"),
    "openai": Fail(400, "too many tokens", code="context_length_exceeded"),
    "openai-responses": Fail(400, "too many tokens", code="context_length_exceeded"),
    "google": Fail(400, "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."),
}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the list of seconds that models would wait; they do not wait."""
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("agent_hooks.host.models.remote.sleep", wait)
    return waited


@pytest.fixture
def model(kind: str, server: ModelServer, waits: list[float], monkeypatch: pytest.MonkeyPatch) -> Model:
    """Give a model of that kind, on the server, that does not wait."""
    for name, value in server.environment(kind).items():
        monkeypatch.setenv(name, value)
    return open_model(f"{kind}:some-model")


async def failure_of(model: Model, request: ModelRequest | None = None) -> tuple[ModelError, list[str]]:
    """Ask the model, and return the error and the notices before it."""
    notices: list[str] = []
    with pytest.raises(ModelError) as caught:
        await collect(model, request or request_of(), lambda _: None, notices.append)
    return caught.value, notices


async def test_errors_that_stay_are_told_at_once_with_their_remedy(
    model: Model, kind: str, server: ModelServer, waits: list[float]
) -> None:
    """The text has provider, model, status, the server's text and the remedy, never the key; there is no second try."""
    key, address, _ = ENVIRONMENT[kind]
    for fail, *expected in (
        (Fail(401, f"invalid key {KEY}"), "HTTP 401: invalid key ***", key),
        (Fail(403, "not yours"), "HTTP 403: not yours", key),
        (Fail(404, "model: some-model"), "HTTP 404: model: some-model", "the model's name", address, server.url),
        (OVERFLOWS[kind], "HTTP 400: ", "the conversation is too long"),
        (Fail(400, f"{'x' * 299}{KEY}"), f"HTTP 400: {'x' * 299}*…"),
    ):
        server.play(fail)
        error, notices = await failure_of(model)
        assert str(error).startswith(f"{kind}:some-model: ")
        assert [text for text in expected if text not in str(error)] == []
        assert KEY not in str(error)
        assert (notices, waits) == ([], [])


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *[(kind, status) for kind in ("anthropic", "openai") for status in (408, 409, 429, 500, 503, 529)],
        ("openai-responses", 429),
        ("google", 429),
    ],
    indirect=["kind"],
)
async def test_errors_that_may_pass_are_tried_again_and_the_person_is_told(
    model: Model, kind: str, server: ModelServer, waits: list[float], status: int
) -> None:
    """The second try brings the answer, after the seconds that the server asks for."""
    server.play(Fail(status, "not now", {"retry-after": "0"}), Say("here I am"))
    notices: list[str] = []
    message = await collect(model, request_of(), lambda _: None, notices.append)
    assert message.text == "here I am"
    assert notices == [f"{kind}:some-model: HTTP {status}: not now; trying again in 0 s (1 of 3)"]
    assert waits == [0.0]


async def test_it_gives_up_after_four_tries(model: Model, server: ModelServer, waits: list[float]) -> None:
    """The waits grow, each with some jitter, and the error has the number of tries."""
    server.play(*[Fail(500, "broken")] * 4, Say("too late"))
    error, notices = await failure_of(model)
    assert "HTTP 500: broken (tried 4 times); the provider has a problem" in str(error)
    assert (len(server.requests), len(notices)) == (4, 3)
    assert [0.5 <= waits[0] <= 1, 1 <= waits[1] <= 2, 2 <= waits[2] <= 4] == [True] * 3


@pytest.mark.parametrize("kind", ["anthropic", "openai"], indirect=True)
async def test_a_server_cannot_make_it_wait_for_an_hour(model: Model, server: ModelServer, waits: list[float]) -> None:
    """A minute is the most."""
    server.play(Fail(429, "slow down", {"retry-after": "3600"}), Say("ok"))
    await collect(model, request_of(), lambda _: None)
    assert waits == [60.0]


@pytest.mark.parametrize("kind", ["openai", "openai-responses"], indirect=True)
async def test_a_used_up_quota_is_not_tried_again(model: Model, server: ModelServer, waits: list[float]) -> None:
    """It is a 429 as well, but waiting does not help."""
    server.play(Fail(429, "you are out of money", code="insufficient_quota"))
    error, _ = await failure_of(model)
    assert "you are out of money; the quota of the account is used up" in str(error)
    assert waits == []


async def test_a_connection_that_breaks_before_the_first_piece_is_tried_again(
    model: Model, server: ModelServer, waits: list[float]
) -> None:
    """There was no text yet, so none comes twice."""
    server.play(Fail(0), Say("here I am"))
    notices: list[str] = []
    assert (await collect(model, request_of(), lambda _: None, notices.append)).text == "here I am"
    assert "the connection failed" in notices[0]


@pytest.mark.parametrize("kind", ["anthropic", "openai"], indirect=True)
async def test_an_error_inside_of_the_stream_counts_as_its_status(
    model: Model, kind: str, server: ModelServer, waits: list[float]
) -> None:
    """A provider that is overloaded may send the error after status 200."""
    error = {"type": "overloaded_error" if kind == "anthropic" else "server_error", "message": "Overloaded"}
    event = f"event: error\ndata: {json.dumps({'type': 'error', 'error': error})}\n\n"
    server.play(Raw(event), Say("here I am"))
    notices: list[str] = []
    assert (await collect(model, request_of(), lambda _: None, notices.append)).text == "here I am"
    assert f"HTTP {529 if kind == 'anthropic' else 500}: Overloaded; trying again" in notices[0]


@pytest.mark.parametrize("ends_early", [False, True])
async def test_a_stream_that_breaks_off_later_is_an_error_that_keeps_what_was_said(
    model: Model, kind: str, server: ModelServer, waits: list[float], ends_early: bool
) -> None:
    """There is no second try: the person has read the beginning already."""
    say = Say("The answer is forty-two, and here is why", calls=[("ls", {"path": "."})])
    say.cut_after, say.ends_early = {"google": 3, "openai-responses": 6}.get(kind, 5), ends_early
    server.play(say, Say("again"))
    error, notices = await failure_of(model)
    assert isinstance(error, BrokenResponseError)
    assert "the connection" in str(error)
    assert ENVIRONMENT[kind][1] in str(error)
    assert error.partial.stop_reason == "error"
    assert [type(block) for block in error.partial.content] == [TextContent]
    assert "The answer is forty-two, and here is why".startswith(error.partial.text)
    assert (notices, len(server.requests)) == ([], 1)


async def test_an_empty_answer_is_an_answer_and_does_not_go_out_again(model: Model, server: ModelServer) -> None:
    """Models do end a turn without text, and providers refuse an empty message."""
    server.play(Say(), Say("ok"))
    empty = await collect(model, request_of(), lambda _: None)
    assert (empty.content, empty.stop_reason) == ((), "stop")
    again = request_of(*request_of().messages, empty, *request_of().messages)
    assert (await collect(model, again, lambda _: None)).text == "ok"
    assert "assistant" not in json.dumps(server.requests[1].body)
    assert '"model", "parts"' not in json.dumps(server.requests[1].body)


@pytest.mark.parametrize("kind", ["anthropic", "openai"], indirect=True)
async def test_a_stream_that_breaks_off_in_a_call_leaves_nothing(
    model: Model, kind: str, server: ModelServer, waits: list[float]
) -> None:
    """Half a call is not a call, and there is no text to keep."""
    server.play(Say(calls=[("ls", {"path": "a/long/path/that/never/ends"})], cut_after=6))
    error, notices = await failure_of(model)
    assert not isinstance(error, BrokenResponseError)
    assert (notices, len(server.requests)) == ([], 1)


async def test_a_stream_that_is_no_json_is_an_error(model: Model, kind: str, server: ModelServer) -> None:
    """The prompt ends with a message, not with a traceback."""
    server.play(Raw("event: message_start\ndata: {nonsense\n\n"))
    error, _ = await failure_of(model)
    assert str(error).startswith(f"{kind}:some-model: ")
    assert "JSON" in str(error)


@pytest.mark.parametrize("kind", ["anthropic", "google"], indirect=True)
async def test_an_answer_that_the_provider_refuses_is_an_error(model: Model, kind: str, server: ModelServer) -> None:
    """It is not an empty answer."""
    server.play(Say("Well,", stop="refusal" if kind == "anthropic" else "SAFETY"))
    error, _ = await failure_of(model)
    assert "the provider stopped the response" in str(error)


async def test_a_server_that_is_not_there_is_told_with_its_address(
    kind: str, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A password in the address is left out of the text."""
    key, address, _ = ENVIRONMENT[kind]
    monkeypatch.setenv(key, KEY)
    monkeypatch.setenv(address, "http://me:hush@127.0.0.1:9/v1")
    error, _ = await failure_of(open_model(f"{kind}:some-model"))
    assert f"{address} (http://127.0.0.1:9/v1)" in str(error)
    assert "tried 4 times" in str(error)
    assert "hush" not in str(error)


async def test_a_prompt_after_a_failure_goes_on_with_the_session(
    model: Model, kind: str, server: ModelServer, waits: list[float], project: Path
) -> None:
    """The text until the failure is in the file and in the next request; hooks get the end of the failed prompt."""
    session = Session.create(str(project))
    runner = HookRunner([], cwd=project)
    events = RecordedEvents(runner)
    agent = Agent(runner=runner, model=model, tools=[EchoTool()], session=session, view=SilentView())
    broken = Say("Half an answer, not more than that", cut_after={"google": 3, "openai-responses": 6}.get(kind, 5))
    calls = Say(calls=[("bash", {"command": "one"}), ("bash", {"command": "two"})])
    server.play(calls, broken, Fail(401, f"gone {KEY}"), Say("Whole again."))

    for _ in range(2):
        with pytest.raises(ModelError):
            await agent.prompt("go")
    assert (await agent.prompt("go on")).text == "Whole again."

    assert [kind for kind in events.types if kind.startswith("agent")] == ["agent_start", "agent_end"] * 3
    assert session.path is not None
    saved = session.path.read_text()
    messages = [json.loads(line)["message"] for line in saved.splitlines()[1:]]
    roles = [f"{message['role']} {message.get('stopReason', '')}".strip() for message in messages]
    turn = ["user", "assistant tool_use", "toolResult", "toolResult"]
    assert roles == [*turn, "assistant error", "user", "user", "assistant stop"]
    assert "Half an " in json.dumps(server.requests[-1].body)
    assert KEY not in saved


async def test_model_and_thinking_level_change_in_a_session(model: Model, server: ModelServer, project: Path) -> None:
    """The next request goes to the new model, and the file has an entry for the change."""
    session = Session(cwd=str(project))
    runner = HookRunner([], cwd=project)
    async with SessionHost(runner=runner, model=model, tools=[], session=session, view=SilentView()) as host:
        server.play(Say("first"), Say("second"))
        await host.prompt("hello")
        host.set_model(open_model(f"{model.provider}:another-model"))
        host.set_thinking_level("high")
        assert (await host.prompt("hello")).model == "another-model"
    kinds = [entry.type for entry in session.entries]
    change = ["model_change", "thinking_level_change"]
    assert kinds == ["session", "model_change", "message", "message", *change, "message", "message"]
    asked = [request.path + json.dumps(request.body) for request in server.requests]
    assert ["another-model" in text for text in asked] == [False, True]


# ---- before anything is asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_key_is_told_by_its_variable(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An OpenAI-compatible server at another address needs no key."""
    for names in ENVIRONMENT.values():
        monkeypatch.delenv(names[0], raising=False)
        monkeypatch.delenv(names[1], raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ModelError, match=ENVIRONMENT[kind][0]):
        open_model(f"{kind}:m")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    if kind.startswith("openai"):
        open_model(f"{kind}:m")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_without_a_name_is_asked_for(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has an example."""
    monkeypatch.setenv(ENVIRONMENT[kind][0], KEY)
    with pytest.raises(ModelError, match=f"--model {kind}:MODEL"):
        open_model(kind)


def test_the_extra_that_is_not_installed_is_told() -> None:
    """The error has the command that installs it."""
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from agent_hooks.host.models import open_model\n"
        "for kind in sys.argv[1:]:\n"
        "    try: open_model(kind + ':m')\n"
        "    except Exception as exc: print(type(exc).__name__, exc)\n"
    )
    lines = subprocess.check_output([sys.executable, "-c", code, *KINDS], text=True).splitlines()
    assert len(lines) == len(KINDS)
    for kind, line in zip(KINDS, lines, strict=True):
        assert line.startswith(f"ModelError {kind} models need pip install 'agent-hooks-runtime[models]'")


def test_nothing_of_it_is_imported_until_such_a_model_is_named() -> None:
    """The puppet and the scripts start without it."""
    code = (
        "import sys; import agent_hooks.cli.commands.run\n"
        "from agent_hooks.host.models import open_model\n"
        "open_model('puppet')\n"
        "print([name for name in ('pydantic_ai', 'httpx2', 'openai', 'anthropic', 'google') if name in sys.modules])\n"
        "open_model('openai:m')\n"
        "print([name for name in ('pydantic_ai', 'anthropic') if name in sys.modules])\n"
    )
    environment = {**os.environ, "OPENAI_API_KEY": "x"}
    printed = subprocess.check_output([sys.executable, "-c", code], text=True, env=environment)
    assert printed.splitlines() == ["[]", "['pydantic_ai']"]


def test_every_row_of_the_table_opens_or_says_why() -> None:
    """Each row of the table has a module."""
    assert {*KINDS, "puppet", "script"} == MODELS.keys()
