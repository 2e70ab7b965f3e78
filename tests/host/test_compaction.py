"""Compaction: the messages that a model gets, the place of the cut, the hooks' event, and the summary that counts."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import (
    AssistantMessage,
    Attachment,
    Compaction,
    CompactionEntry,
    ImageContent,
    MessageEntry,
    ModelChangeEntry,
    ModelError,
    ModelRef,
    SessionError,
    SessionEvent,
    SessionHeader,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agent_hooks.host.compaction import accept, prepare, summarize
from agent_hooks.host.exchanges import conversation, summary_message
from agent_hooks.host.model import EndPiece, ModelRequest, Piece, TextPiece
from agent_hooks.host.models import find_key
from agent_hooks.host.tokens import context_tokens, estimate_tokens
from agent_hooks.values.content import AssistantBlock, Entry, Message
from agent_hooks.values.wire import to_json
from support import examples, hook_on, runner_of

HEADER = SessionHeader(version=1, id="s", timestamp="2026-01-01T00:00:00.000Z", cwd="/")


class Summarist:
    """A model that answers with the given pieces and keeps its requests."""

    provider = "test"
    id = "summarist"

    def __init__(self, *pieces: Piece | Exception) -> None:
        self._pieces = pieces
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.requests.append(request)
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


def entry(message: Message) -> MessageEntry:
    return MessageEntry(timestamp="2026-01-01T00:00:00.000Z", message=message)


def user(text: str = "do it", **fields: Any) -> MessageEntry:
    return entry(UserMessage(content=text, timestamp=1, **fields))


def says(text: str = "done", *calls: str, usage: Usage | None = None) -> MessageEntry:
    blocks: list[AssistantBlock] = [
        TextContent(text),
        *(ToolCallContent(call, "bash", {"command": call}) for call in calls),
    ]
    return entry(AssistantMessage(content=blocks, timestamp=2, provider="p", model="m", usage=usage))


def result(call: str, text: str = "ran") -> MessageEntry:
    return entry(ToolResultMessage(tool_call_id=call, tool_name="bash", content=text, timestamp=3))


def compacted(summary: str, index: int) -> CompactionEntry:
    return CompactionEntry(
        timestamp="2026-01-01T00:00:00.000Z", summary=summary, first_kept_entry_index=index, tokens_before=1
    )


def messages(entries: Sequence[Entry], first: int = 0) -> list[Message]:
    return [each.message for each in entries[first:] if isinstance(each, MessageEntry)]


def before(entries: Sequence[Entry], keep: int = 20_000, **options: Any) -> SessionEvent:
    return prepare(entries, model=Summarist(), keep_recent_tokens=keep, **options)


def lists(event: SessionEvent) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    assert event.messages_to_summarize is not None
    assert event.messages_to_keep is not None
    return event.messages_to_summarize, event.messages_to_keep


def first_kept(event: SessionEvent) -> int:
    assert event.cut_point is not None
    return event.cut_point.first_kept_entry_index


# ---- the conversation


def test_without_a_compaction_a_model_sees_every_message() -> None:
    """The header, model changes and the like are not messages."""
    entries: list[Entry] = [HEADER, ModelChangeEntry(timestamp="t", provider="p", model_id="m"), user("a"), says("b")]
    assert conversation(entries) == tuple(messages(entries))


def test_after_a_compaction_it_sees_the_summary_and_what_was_kept_and_what_came_since() -> None:
    """The last compaction counts, and the text before the summary explains it."""
    entries: list[Entry] = [HEADER, user("a"), says("b"), user("c"), says("d"), compacted("x", 3), user("e"), says("f")]
    [summary, *rest] = conversation(entries)
    assert isinstance(summary, UserMessage)
    assert "summary of the conversation so far" in summary.content[0].text  # type: ignore[union-attr]
    assert "<summary>\nx\n</summary>" in summary.content[0].text  # type: ignore[union-attr]
    assert summary.timestamp == 1767225600000
    assert rest == messages(entries, 3)

    entries += [compacted("y", len(entries)), user("g")]  # keep nothing
    assert conversation(entries)[1:] == (messages(entries)[-1],)
    assert "y" in str(conversation(entries)[0])


def test_a_summary_of_a_foreign_file_needs_no_good_time() -> None:
    """A timestamp that cannot be read does not make a session unreadable."""
    odd = CompactionEntry(timestamp="yesterday", summary="x", first_kept_entry_index=1, tokens_before=0)
    assert summary_message(odd).timestamp == 0


def test_results_stand_in_the_order_of_the_calls_whatever_order_they_were_saved_in() -> None:
    """The file has them in the order of their ends; a model gets them right after the calls, in its own order."""
    entries: list[Entry] = [HEADER, user(), says("x", "1", "2"), result("2"), user("and then?"), result("1"), says()]
    assert [getattr(each, "tool_call_id", each.role) for each in conversation(entries)] == [
        "user",
        "assistant",
        "1",
        "2",
        "user",
        "assistant",
    ]


def test_a_call_whose_process_was_killed_gets_a_result_that_says_so() -> None:
    """No provider takes a call without a result."""
    seen = conversation([HEADER, user(), says("x", "1", "2"), result("2")])
    assert isinstance(seen[2], ToolResultMessage)
    assert seen[2].is_error
    assert "the session ended while this call ran" in str(seen[2].content)
    assert seen[3] == result("2").message


def test_a_result_whose_call_is_behind_the_summary_goes_with_it() -> None:
    """A hook may cut at any entry, and no provider takes a result without its call."""
    entries: list[Entry] = [
        HEADER,
        user(),
        says("x", "1", "2"),
        result("1"),
        result("2"),
        says("end"),
        compacted("s", 4),
    ]
    assert conversation(entries)[1:] == (messages(entries)[-1],)


def test_one_id_may_be_used_again_by_a_later_call() -> None:
    """Small models count from 1 in every response."""
    entries: list[Entry] = [HEADER, user(), says("x", "1"), result("1", "first"), says("y", "1"), result("1", "second")]
    assert conversation(entries) == tuple(messages(entries))


# ---- how long it is


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (UserMessage(content="four", timestamp=0), 1),
        (UserMessage(content="fives", timestamp=0), 2),
        (UserMessage(content="數" * 8, timestamp=0), 6),
        (UserMessage(content="\ud800" * 4, timestamp=0), 1),
        (UserMessage(content=[ImageContent("aGk=", "image/png")], timestamp=0), 1600),
        (AssistantMessage(content=[ThinkingContent("hmmmmmmm")], timestamp=0, provider="p", model="m"), 2),
    ],
)
def test_tokens_are_four_bytes_or_an_image(message: Message, tokens: int) -> None:
    """The documentation gives the same rule."""
    assert estimate_tokens(message) == tokens


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"kind": "document", "mime_type": "application/x", "extracted_text": "four" * 7}, 7),
        ({"kind": "document", "mime_type": "text/plain"}, 300),
        ({"kind": "image", "mime_type": "image/png"}, 1600),
    ],
)
def test_attachments_count_as_what_the_model_is_given_of_them(fields: dict[str, Any], tokens: int) -> None:
    """The model gets extracted text, decoded text, or the file."""
    attachment = Attachment(file_name="x", content="QUJD" * 400, **fields)
    assert estimate_tokens(UserMessage(content="", timestamp=0, attachments=(attachment,))) == tokens


def test_the_models_own_count_goes_before_an_estimate() -> None:
    """It includes instructions and tools; a count from before the last compaction does not count."""
    long = "x" * 4000
    entries: list[Entry] = [HEADER, user(), says(usage=Usage(input_tokens=7000, output_tokens=500))]
    assert context_tokens(entries) == 7500
    entries.append(user(long))
    assert context_tokens(entries) == 8500
    entries.append(compacted("s", 2))
    assert 1000 < context_tokens(entries) < 1100
    entries.append(says("x", "1", usage=Usage(input_tokens=40, output_tokens=2)))
    entries.append(result("1", "four"))
    assert context_tokens(entries) == 43


# ---- where to cut


def test_the_recent_turns_that_fit_are_kept() -> None:
    """The cut is the earliest message with at most the budget's tokens behind it."""
    entries: list[Entry] = [HEADER, user("a" * 400), says("b" * 400), user("c" * 400), says("d" * 400)]
    event = before(entries, 250)
    assert (first_kept(event), event.cut_point and event.cut_point.is_split_turn) == (3, False)
    assert lists(event) == (tuple(messages(entries[:3])), tuple(messages(entries[3:])))
    assert event.tokens_before == 400
    assert event.entries == tuple(entries)
    assert event.model == ModelRef(provider="test", id="summarist")


def test_a_long_turn_is_split_at_a_response_and_never_between_a_call_and_its_result() -> None:
    """The two lists of messages together have all messages."""
    entries: list[Entry] = [
        HEADER,
        user(),
        says("x", "1"),
        result("1", "r" * 4000),
        says("y", "2"),
        result("2", "r" * 4000),
        says(),
    ]
    for keep, kept in ((900, 6), (1100, 4), (1990, 4)):
        event = before(entries, keep)
        assert (first_kept(event), event.cut_point and event.cut_point.is_split_turn) == (kept, True)
        assert lists(event) == (tuple(messages(entries[:kept])), tuple(messages(entries[kept:])))


def test_what_is_longer_than_the_budget_by_itself_is_kept_when_it_is_the_last() -> None:
    """The model needs at least one message."""
    entries: list[Entry] = [HEADER, user("a"), says("b"), user("c" * 9000)]
    assert first_kept(before(entries, 10)) == 3


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ([user("a"), says("b"), user("c"), says("d", "1"), result("1"), says("e")], 3),
        ([user("a"), says("b", "1"), result("1"), says("c")], 4),
        ([user("a")], 1),
    ],
)
def test_a_short_conversation_is_compacted_all_the_same_when_somebody_asks(entries: list[Entry], kept: int) -> None:
    """All but the last prompt is summarised; of a single prompt, all but the last response."""
    assert first_kept(before([HEADER, *entries])) == kept


def test_what_the_last_compaction_kept_is_summarised_by_the_next() -> None:
    """No summary stands for these messages yet."""
    entries: list[Entry] = [HEADER, user("a"), says("b"), user("c"), says("d"), compacted("s", 3), user("e"), says("f")]
    event = before(entries)
    assert event.previous_summary == "s"
    assert first_kept(event) == 6
    assert lists(event)[0] == tuple(messages(entries[3:5]))


@pytest.mark.parametrize("entries", [[HEADER], [HEADER, user(), says(), compacted("s", 3)]])
def test_nothing_can_be_compacted_when_there_is_nothing(entries: list[Entry]) -> None:
    """Hooks get no event."""
    with pytest.raises(SessionError, match="nothing to compact yet"):
        before(entries)


# ---- any session


@st.composite
def sessions(draw: st.DrawFn) -> list[Entry]:
    """Return sessions with turns of many sizes, results in any order, a kill now and then, and compactions."""
    entries: list[Entry] = [HEADER]
    for number in range(draw(st.integers(1, 8))):
        match draw(st.sampled_from(["prompt", "prompt", "prompt", "compaction", "model"])):
            case "prompt":
                entries.append(user(draw(sizes)))
                for turn in range(draw(st.integers(0, 3))):
                    calls = [
                        f"{draw(st.sampled_from(['', number]))}.{turn}.{each}"
                        for each in range(draw(st.integers(0, 3)))
                    ]
                    entries.append(says(draw(sizes), *calls))
                    ended = draw(st.permutations(calls))[: draw(st.sampled_from([0, 3, 3, 3, 3]))]
                    entries += [result(call, draw(sizes)) for call in ended]
                    if draw(st.booleans()):
                        entries.append(user("sent meanwhile"))
            case "compaction":
                entries.append(compacted(f"summary {number}", draw(st.integers(1, len(entries)))))
            case _:
                entries.append(ModelChangeEntry(timestamp="t", provider="p", model_id="m"))
    return entries


sizes = st.sampled_from(["x", "x" * 40, "x" * 4000])
budgets = st.sampled_from([0, 5, 30, 1000, 3000, 20_000])


def well_formed(seen: Sequence[Message]) -> bool:
    """Tell whether a provider takes these messages: each call's results follow it at once, and there are no others."""
    waiting: list[str] = []
    for message in seen:
        if isinstance(message, ToolResultMessage):
            if not waiting or waiting.pop(0) != message.tool_call_id:
                return False
        elif waiting:
            return False
        elif isinstance(message, AssistantMessage):
            waiting = [call.id for call in message.tool_calls]
    return not waiting


@given(sessions(), budgets)
@examples(300)
def test_nothing_is_lost_whatever_is_compacted(entries: list[Entry], keep: int) -> None:
    """Both lists are all messages but the summary; afterwards the model gets the new summary and the kept ones."""
    seen = conversation(entries)
    assert well_formed(seen)
    try:
        event = before(entries, keep)
    except SessionError:
        assert not [each for each in seen if each.content and "<summary>" not in str(each.content)]
        return
    dropped, kept = lists(event)
    assert (*dropped, *kept) == (seen[1:] if event.previous_summary is not None else seen)
    assert well_formed(dropped)
    assert well_formed(kept)
    assert kept
    assert isinstance(entries[first_kept(event)], MessageEntry)

    new = compacted("new", first_kept(event))
    assert conversation([*entries, new]) == (summary_message(new), *kept)
    assert [*entries, new][: len(entries)] == entries


@given(sessions())
def test_a_hook_may_cut_anywhere(entries: list[Entry]) -> None:
    """At every index that a hook may give, the messages for the model are well formed."""
    for index in range(1, len(entries) + 1):
        assert well_formed(conversation([*entries, compacted("theirs", index)]))


@given(sessions(), st.sampled_from([1000, 3000]))
def test_what_is_kept_is_no_more_than_the_budget_unless_it_is_one_step(entries: list[Entry], keep: int) -> None:
    """When there is a choice, at least one message is summarised."""
    try:
        event = before(entries, keep)
    except SessionError:
        return
    dropped, kept = lists(event)
    steps = sum(not isinstance(each, ToolResultMessage) for each in kept)
    earlier = [each for each in dropped if not isinstance(each, ToolResultMessage)]
    assert sum(map(estimate_tokens, kept)) <= keep or steps == 1 or out_of_order(entries)
    assert earlier or steps == 1 or out_of_order(entries)


def out_of_order(entries: Sequence[Entry]) -> bool:
    """Tell whether a message comes between a call and its results."""
    return list(conversation(entries)) != messages(entries)


# ---- whose summary


def two_prompts() -> list[Entry]:
    return [
        HEADER,
        user("first"),
        says("thinks", "1"),
        result("1", "long " * 1000),
        says("one"),
        user("second"),
        says("two"),
    ]


@pytest.mark.anyio
async def test_the_model_is_asked_for_the_default_summary() -> None:
    """The request has the conversation as data, the last summary, the person's instructions, and no tools."""
    entries: list[Entry] = [*two_prompts()[:3], compacted("earlier things", 1), *two_prompts()[3:]]
    model = Summarist(TextPiece(" a summ"), TextPiece("ary\n"), EndPiece())
    event = prepare(entries, model=model, custom_instructions="only the file names")
    made = await summarize(event, model)
    assert (made.summary, made.first_kept_entry_index, made.from_hook) == ("a summary", first_kept(event), False)
    assert made.tokens_before == event.tokens_before
    assert made.timestamp.endswith("Z")

    [request] = model.requests
    assert request.tools == ()
    assert "summarise" in request.system[0]
    [question] = request.messages
    assert isinstance(question, UserMessage)
    text = question.content[0].text  # type: ignore[union-attr]
    assert text.startswith("The summary of the messages before it")
    assert "<summary>\nearlier things\n</summary>" in text
    assert text.endswith("The person's instructions for this summary: only the file names")
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert [line["role"] for line in lines] == ["user", "assistant", "toolResult", "assistant"]
    assert lines[2]["content"][0]["text"].endswith("… (3,000 more characters)")
    assert conversation([*entries, made])[1:] == tuple(messages(entries)[-2:])


@pytest.mark.anyio
async def test_the_summarising_model_is_spared_what_no_summary_needs() -> None:
    """Images, files, thoughts and details are many tokens and add little to a summary."""
    png = Attachment(kind="image", file_name="shot.png", mime_type="image/png", content="aGkh")
    doc = Attachment(kind="document", file_name="d.txt", mime_type="text/plain", content="", extracted_text="y" * 3000)
    blocks: list[AssistantBlock] = [
        ThinkingContent("secret thought", "sig"),
        ToolCallContent("1", "read", {"path": "x"}, signature="sig"),
    ]
    picture = entry(
        ToolResultMessage(
            tool_call_id="1",
            tool_name="read",
            content=[ImageContent("aGkh", "image/png"), TextContent("ok")],
            details={"secret": 1},
            timestamp=0,
        )
    )
    entries: list[Entry] = [
        HEADER,
        entry(UserMessage(content=[ImageContent("aGkh", "image/png")], timestamp=0, attachments=(png, doc))),
        entry(AssistantMessage(content=blocks, timestamp=0, provider="p", model="m", usage=Usage(input_tokens=3))),
        picture,
        user("next"),
        says(),
    ]
    model = Summarist(TextPiece("s"))
    await summarize(prepare(entries, model=model), model)
    text = str(model.requests[0].messages[0].content)
    for spared in ("aGkh", "secret", "sig", "inputTokens"):
        assert spared not in text
    for told in ("shot.png", "(image/png)", "y" * 2000 + "… (1,000 more", '"path":"x"'):
        assert told in text


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ([ModelError("no network")], "no network"),
        ([TextPiece("half a summ"), ModelError("broke off")], "broke off"),
        ([TextPiece("  \n")], "the model test:summarist gave an empty summary; the session is as it was"),
        ([TextPiece("half"), EndPiece("length")], "gave a summary that was cut off"),
    ],
)
async def test_a_summary_that_fails_makes_no_entry(pieces: list[Any], error: str) -> None:
    """The caller gets the error, and the entries are unchanged."""
    entries = two_prompts()
    model = Summarist(*pieces)
    event = prepare(entries, model=model)
    with pytest.raises((ModelError, SessionError), match=error):
        await summarize(event, model)
    assert entries == two_prompts()


@pytest.mark.anyio
async def test_a_single_message_is_nothing_to_summarise() -> None:
    """A hook may answer with an entry; the default summary is an error."""
    model = Summarist(TextPiece("s"))
    with pytest.raises(SessionError, match="the conversation is one message"):
        await summarize(prepare([HEADER, user()], model=model), model)
    assert model.requests == []


@pytest.mark.anyio
async def test_a_hooks_entry_is_used_as_it_is() -> None:
    """Only a missing time is filled in."""
    entries = two_prompts()
    given = Compaction("theirs", 7, 12)
    runner, errors = runner_of(hook_on("session", lambda event, ctx: given))
    answer = await runner.emit(before(entries))
    assert isinstance(answer, Compaction)
    made = accept(answer)
    assert (made.summary, made.first_kept_entry_index, made.tokens_before, made.from_hook) == ("theirs", 7, 12, True)
    assert made.timestamp.endswith("Z")
    assert accept(Compaction("s", 1, 1, "2026-02-03T04:05:06Z")).timestamp == "2026-02-03T04:05:06Z"
    assert len(conversation([*entries, made])) == 1
    assert errors == []


WRONG: list[tuple[Any, str]] = [
    (Compaction("  ", 1, 1), "summary wants a text with words in it, not '  '"),
    (Compaction(None, 1, 1), "summary wants"),  # type: ignore[arg-type]
    (Compaction("s", 0, 1), r"first_kept_entry_index wants 1 to 7 \(keep nothing\), not 0"),
    (Compaction("s", 8, 1), "first_kept_entry_index wants 1 to 7"),
    (Compaction("s", True, 1), "first_kept_entry_index wants 1 to 7"),
    (Compaction("s", 1, -1), "tokens_before wants a number from 0 up, not -1; event.tokens_before is it"),
    (Compaction("s", 1, 1.5), "tokens_before wants"),  # type: ignore[arg-type]
    (Compaction("s", 1, 1, "yesterday"), "timestamp wants ISO 8601 text, not 'yesterday'"),
    (Compaction("s", 1, 1, 5), "timestamp wants"),  # type: ignore[arg-type]
    ({"compactionEntry": {"summary": "s", "firstKeptEntryIndex": 99, "tokensBefore": 1}}, "first_kept_entry_index"),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("answer", "error"), WRONG, ids=lambda value: str(value)[:60])
async def test_a_wrong_entry_is_a_failure_of_its_handler(answer: Any, error: str) -> None:
    """The error names the field, and an earlier handler's entry counts."""
    runner, errors = runner_of(hook_on("session", lambda event, ctx: answer, path="wrong.py"))
    assert await runner.emit(before(two_prompts())) is None
    assert [each.hook_path for each in errors] == ["wrong.py"]
    assert re.search(f"the compaction entry is rejected: {error}", errors[0].error)

    good = Compaction("good", 3, 1)
    both, _ = runner_of(hook_on("session", lambda event, ctx: good, lambda event, ctx: answer))
    assert await both.emit(before(two_prompts())) == good


@pytest.mark.anyio
async def test_a_program_that_gives_no_entries_gets_any_index() -> None:
    """An embedding program may keep its conversation elsewhere; index 0 is still its header."""
    runner, errors = runner_of(hook_on("session", lambda event, ctx: Compaction("s", event.tokens_before, 1)))
    assert await runner.emit(SessionEvent(reason="before_compact", tokens_before=99)) == Compaction("s", 99, 1)
    assert await runner.emit(SessionEvent(reason="before_compact", tokens_before=0)) is None
    assert "first_kept_entry_index wants a number from 1 up" in errors[0].error


# ---- keys


@pytest.mark.anyio
async def test_a_handler_can_ask_for_the_key_of_any_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from the environment, like the models' own; a model without a key has none."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", " key-of-a ")
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-g")
    keys: list[str | None] = []

    async def ask(event: SessionEvent, ctx: Any) -> None:
        assert event.model is not None
        for provider in (event.model.provider, "anthropic", "google", "openai", "puppet"):
            keys.append(await event.resolve_api_key(ModelRef(provider=provider, id="x")))

    runner, errors = runner_of(hook_on("session", ask))
    await runner.emit(before(two_prompts()).with_keys(find_key))
    assert errors == []
    assert keys == [None, "key-of-a", "key-of-g", None, None]


@pytest.mark.anyio
async def test_a_key_is_in_nothing_that_is_written() -> None:
    """It is not on a wire, in a file, in a log or in a copy."""
    event = before(two_prompts()).with_keys(lambda provider: "sk-secret")
    assert await event.resolve_api_key(Summarist()) == "sk-secret"
    written = [
        repr(event),
        str(event),
        to_json(event).decode(),
        str(msgspec.to_builtins(event)),
        str(pickle.dumps(event)),
    ]
    assert not [text for text in written if "sk-secret" in text or "find_key" in text]
    for other in (pickle.loads(pickle.dumps(event)), copy.copy(event), msgspec.structs.replace(event)):
        assert other == event
        assert await other.resolve_api_key(Summarist()) is None
    assert "find_key" not in json.dumps(msgspec.json.schema(SessionEvent))
