"""Compaction of a real session: who decides, what is saved, and what the model sees afterwards."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from agent_hooks import (
    Cancel,
    Compaction,
    CompactionEntry,
    HookAPI,
    HookError,
    HookRunner,
    ModelError,
    SessionError,
    UserMessage,
)
from agent_hooks.content import text_of_content
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.model import EndPiece, ModelRequest, Piece, TextPiece
from agent_hooks.host.models.puppet import Puppet
from agent_hooks.host.session import Session
from agent_hooks.settings import CompactionSettings
from agent_hooks.testing import RecordedEvents
from support import EchoTool, SilentView, hook_of

pytestmark = pytest.mark.anyio

OnSession = Callable[[Any, Any], Any]


class Clever(Puppet):
    """The puppet, which can summarise, or fail to; `requests` has what it was asked to answer."""

    def __init__(self, summary: str | Exception = "the model's summary") -> None:
        self.summary = summary
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        if "You summarise" in request.system[0]:
            if isinstance(self.summary, Exception):
                raise self.summary
            yield TextPiece(self.summary)
            yield EndPiece()
            return
        self.requests.append(request)
        async for piece in super().stream(request):
            yield piece


class Warned(SilentView):
    """What a person is warned of."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)


class Stage(NamedTuple):
    """A host with two prompts behind it, and everything that can be seen of it."""

    host: SessionHost
    model: Clever
    events: RecordedEvents
    errors: list[HookError]
    view: Warned
    file: Path

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.events.of("session")][1:]


@asynccontextmanager
async def stage(
    project: Path, *handlers: OnSession, model: Clever | None = None, **settings: Any
) -> AsyncIterator[Stage]:
    def register(handler: OnSession) -> Callable[[HookAPI], object]:
        return lambda api: api.on("session", handler)

    hooks = [hook_of(register(handler), f"hook{number}.py") for number, handler in enumerate(handlers)]
    errors: list[HookError] = []
    model, view = model or Clever(), Warned()
    session = Session.create(str(project))
    assert session.path is not None
    async with HookRunner(hooks, cwd=project) as runner:
        runner.on_error(errors.append)
        events = RecordedEvents(runner)
        async with SessionHost(
            runner=runner,
            model=model,
            tools=[EchoTool()],
            session=session,
            view=view,
            compaction=CompactionSettings(**settings),
        ) as host:
            await host.prompt("@bash one")
            await host.prompt("@bash two")
            yield Stage(host, model, events, errors, view, session.path)


def on_before(answer: Callable[[Any], Any]) -> OnSession:
    """Return a handler that answers `before_compact`."""

    def handler(event: Any, ctx: Any) -> Any:
        return answer(event) if event.reason == "before_compact" else None

    return handler


@pytest.mark.behaviour("S4")
async def test_without_an_opinion_the_model_summarises(project: Path) -> None:
    """The summary takes the place of what is dropped; the file keeps it all, and says the same when it is read again."""
    async with stage(project) as on:
        before = on.host.entries
        outcome = await on.host.compact("be brief")
        assert on.reasons == ["before_compact", "compact"]
        asked, done = on.events.of("session")[1:]
        assert asked.custom_instructions == "be brief"
        assert (*asked.messages_to_summarize, *asked.messages_to_keep) == tuple(
            each.message for each in before if each.type == "message"
        )
        entry = on.host.entries[-1]
        assert isinstance(entry, CompactionEntry)
        assert (entry.summary, entry.from_hook) == ("the model's summary", False)
        assert (outcome.entry, done.compaction_entry, done.entries[-1]) == (entry, entry, entry)
        assert (done.from_hook, done.tokens_before) == (False, asked.tokens_before)
        assert on.host.entries[:-1] == before
        seen = on.host.messages
        assert "the model's summary" in text_of_content(seen[0].content)
        assert seen[1:] == asked.messages_to_keep

        await on.host.prompt("hello")
        assert on.model.requests[-1].messages[: len(seen)] == seen
        everything = on.host.messages
    again = Session.open(on.file, str(project))
    async with (
        HookRunner([], cwd=project) as runner,
        SessionHost(runner=runner, model=Clever(), tools=[], session=again, view=Warned()) as host,
    ):
        assert host.messages == everything


@pytest.mark.behaviour("S4")
async def test_a_cancelled_compaction_changes_nothing_and_says_who(project: Path) -> None:
    """The next hook is not asked, and there is no compact event."""
    asked: list[str] = []
    async with stage(
        project, on_before(lambda event: Cancel("not now")), on_before(lambda event: asked.append("second"))
    ) as on:
        before = (on.host.entries, on.host.messages, on.file.read_bytes())
        outcome = await on.host.compact()
        assert outcome == (True, "cancelled by hook0.py: not now", None, None)
        assert (on.host.entries, on.host.messages, on.file.read_bytes()) == before
        assert on.reasons == ["before_compact"]
        assert asked == []


@pytest.mark.behaviour("S4")
@pytest.mark.parametrize("keep_nothing", [True, False])
async def test_a_hooks_own_entry_is_used(project: Path, keep_nothing: bool) -> None:
    """With what it keeps; the model is not asked."""

    def answer(event: Any) -> Compaction:
        index = len(event.entries) if keep_nothing else event.cut_point.first_kept_entry_index
        return Compaction("the hook's summary", index, event.tokens_before)

    async with stage(project, on_before(answer), model=Clever(ModelError("must not be asked"))) as on:
        outcome = await on.host.compact()
        assert outcome.entry is not None
        assert (outcome.entry.summary, outcome.entry.from_hook) == ("the hook's summary", True)
        assert on.events.of("session")[-1].from_hook is True
        kept = [each.role for each in on.host.messages[1:]]
        assert kept == ([] if keep_nothing else ["user", "assistant", "toolResult", "assistant"])
        assert on.errors == []


def _raise(event: Any) -> None:
    raise ValueError("oh no")


BAD: list[tuple[Any, str]] = [
    (_raise, "ValueError: oh no"),
    (lambda event: Compaction("", 1, 1), "summary wants a text with words in it"),
    (lambda event: Compaction("s", 999, 1), "first_kept_entry_index wants 1 to 10"),
    (
        lambda event: {"compactionEntry": {"summary": "s", "firstKeptEntryIndex": 1, "tokensBefore": -1}},
        "tokens_before",
    ),
    (lambda event: {"compactionEntry": {"summary": "s"}}, "firstKeptEntryIndex"),
]


@pytest.mark.behaviour("S4")
@pytest.mark.parametrize(("answer", "error"), BAD, ids=[error for _, error in BAD])
async def test_a_hook_that_fails_or_answers_nonsense_is_reported_and_the_default_is_used(
    project: Path, answer: Any, error: str
) -> None:
    """The field is named."""
    async with stage(project, on_before(answer)) as on:
        outcome = await on.host.compact()
        assert outcome.entry is not None
        assert (outcome.entry.summary, outcome.entry.from_hook) == ("the model's summary", False)
        assert [each.hook_path for each in on.errors] == ["hook0.py"]
        assert error in on.errors[0].error
        assert on.reasons == ["before_compact", "compact"]


@pytest.mark.behaviour("S4")
@pytest.mark.parametrize("summary", [ModelError("the network is gone"), "  "])
async def test_a_model_that_fails_to_summarise_leaves_the_session_as_it_was(project: Path, summary: Any) -> None:
    """Whoever asked is told; the agent goes on, and compacting works when the model does again."""
    async with stage(project, model=Clever(summary)) as on:
        before = (on.host.entries, on.host.messages, on.file.read_bytes())
        with pytest.raises((ModelError, SessionError), match=r"the network is gone|gave an empty summary"):
            await on.host.compact()
        assert (on.host.entries, on.host.messages, on.file.read_bytes()) == before
        assert on.reasons == ["before_compact"]
        await on.host.prompt("still there?")
        on.model.summary = "works again"
        assert (await on.host.compact()).entry is not None


async def test_the_last_summary_is_handed_on(project: Path) -> None:
    """And what it kept is summarised by the next one."""
    async with stage(project) as on:
        await on.host.compact()
        kept = on.host.messages[1:]
        await on.host.prompt("third")
        on.model.summary = "newer"
        await on.host.compact()
        asked = on.events.of("session")[-2]
        assert asked.previous_summary == "the model's summary"
        assert (*asked.messages_to_summarize, *asked.messages_to_keep)[: len(kept)] == kept
        assert [words(each) for each in on.host.messages if "newer" in words(each)] != []
        assert "the model's summary" not in str(on.host.messages)


def words(message: Any) -> str:
    return text_of_content(message.content)


async def test_a_long_conversation_is_compacted_by_itself_before_the_next_request(project: Path) -> None:
    """Between two turns as well; what the person said last is not lost."""
    async with stage(project, threshold_tokens=100, keep_recent_tokens=60) as on:
        with anyio.fail_after(20):
            await on.host.prompt("x" * 400 + "\n@bash three")
        assert "compact" in on.reasons
        assert any(isinstance(entry, CompactionEntry) for entry in on.host.entries)
        assert on.errors == []
        [first, *_] = on.model.requests[-1].messages
        assert isinstance(first, UserMessage)
        assert "<summary>" in words(first)
        assert on.view.warnings == []
