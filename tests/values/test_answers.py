"""The reading of the mapping form of an answer, for every row of the dispatch table."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import (
    AddContext,
    Answer,
    Ask,
    BeforeToolCall,
    Block,
    Cancel,
    Compaction,
    Continue,
    Replace,
    Rewrite,
    SessionEvent,
    SkipConversationRestore,
    ToolResult,
)
from agent_hooks.dispatch.reading import read_answer
from agent_hooks.dispatch.table import EVENT_NAMES, SPECS, TOOL_EVENTS, rows_of, spec_name
from agent_hooks.values.frozen import freeze

GATES = ["tool_call", "before_tool_call"]
BEFORE = ["session:before_switch", "session:before_clear", "session:before_branch", "session:before_compact"]
SILENT = [name for name, spec in SPECS.items() if not spec.answers]
ENTRY = {"summary": "s", "firstKeptEntryIndex": 3, "tokensBefore": 9}
ENTRY_PYTHON = {"summary": "s", "first_kept_entry_index": 3, "tokens_before": 9}

KEYS = [
    "block",
    "reason",
    "blockReason",
    "block_reason",
    "ask",
    "params",
    "content",
    "details",
    "isError",
    "is_error",
    "cancel",
    "continue",
    "stop",
    "addContext",
    "add_context",
    "skipConversationRestore",
    "skip_conversation_restore",
    "compactionEntry",
    "compaction_entry",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
LIKELY = st.sampled_from(
    [{"title": "t"}, {"title": "t", "message": "m"}, {"title": 1}, ENTRY, ENTRY_PYTHON, {**ENTRY, "x": 1}, "text", True]
)
ANSWERS = st.one_of(
    JSON,
    st.dictionaries(st.sampled_from(KEYS) | st.text(), LIKELY | JSON, max_size=4),
    st.dictionaries(st.integers() | st.none() | st.sampled_from(KEYS), JSON, max_size=3),
    st.sampled_from(
        [
            Block(),
            Ask("t"),
            Rewrite({}),
            Replace(),
            Cancel(),
            Continue("t"),
            SkipConversationRestore(),
            Compaction("s", 1, 1),
            object(),
        ]
    ),
)


def read(name: str, answer: Any) -> list[Answer]:
    """Read `answer` as the answer of a handler of the row `name`."""
    return read_answer(name.partition(":")[0], SPECS[name], answer)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ({"block": True}, Block()),
        ({"block": True, "reason": "no"}, Block("no")),
        ({"block": True, "blockReason": "no"}, Block("no")),
        ({"block": True, "block_reason": "no"}, Block("no")),
        ({"block": True, "reason": None}, Block()),
        ({"block": True, "ask": {"title": "t"}}, Block()),
        ({"ask": {"title": "t"}}, Ask("t")),
        ({"ask": {"title": "t", "message": "m"}}, Ask("t", "m")),
        ({"block": False, "ask": {"title": "t"}}, Ask("t")),
        (MappingProxyType({"block": True}), Block()),
        (freeze({"ask": {"title": "t"}}), Ask("t")),
        (Block("no"), Block("no")),
        (Ask("t"), Ask("t")),
    ],
    ids=repr,
)
def test_gates_take_blocks_and_asks_in_every_form(name: str, answer: Any, meant: Answer) -> None:
    """Classes, mappings and both spellings of the reason work; a block beside an ask wins."""
    assert read(name, answer) == [meant]


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ({"params": {"a": [1]}}, [Rewrite({"a": [1]})]),
        ({"params": {}}, [Rewrite({})]),
        ({"params": freeze({"a": [1]})}, [Rewrite({"a": [1]})]),
        ({"block": False, "params": {"a": 1}}, [Rewrite({"a": 1})]),
        ({"block": True, "params": {"a": 1}}, [Block()]),
        ({"ask": {"title": "t"}, "params": {"a": 1}}, [Ask("t"), Rewrite({"a": 1})]),
        ({"params": {"is_error": 1, "isError": 2}}, [Rewrite({"is_error": 1, "isError": 2})]),
        (Rewrite({"a": 1}), [Rewrite({"a": 1})]),
    ],
    ids=repr,
)
def test_before_tool_call_takes_rewrites_and_a_block_beside_one_counts(answer: Any, meant: list[Answer]) -> None:
    """`params` has the keys of the tool, so they keep their spelling."""
    assert read("before_tool_call", answer) == meant


@pytest.mark.parametrize(
    ("answer", "changes"),
    [
        ({"content": "x"}, {"content": "x"}),
        ({"content": [{"type": "text", "text": "x"}]}, {"content": "x"}),
        ({"details": None}, {"details": None}),
        ({"details": {"is_error": 1}}, {"details": {"is_error": 1}}),
        ({"isError": True}, {"is_error": True}),
        ({"is_error": False}, {"is_error": False}),
        ({"content": "x", "details": 5, "isError": True}, {"content": "x", "details": 5, "is_error": True}),
    ],
    ids=repr,
)
def test_tool_result_takes_any_of_its_fields(answer: Any, changes: dict[str, Any]) -> None:
    """A field that is given is a change, `details: None` too; a field that is left out stays."""
    assert read("tool_result", answer) == [Replace(**changes)]


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ({"cancel": True}, Cancel()),
        ({"cancel": True, "reason": "busy"}, Cancel("busy")),
        (Cancel("busy"), Cancel("busy")),
    ],
    ids=repr,
)
def test_every_before_event_takes_a_cancel(name: str, answer: Any, meant: Answer) -> None:
    """A cancel is a class or a mapping, with or without a reason."""
    assert read(name, answer) == [meant]


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ({"skipConversationRestore": True}, SkipConversationRestore()),
        ({"skip_conversation_restore": True}, SkipConversationRestore()),
        ({"skipConversationRestore": False}, SkipConversationRestore(skip=False)),
        ({"cancel": False, "skipConversationRestore": True}, SkipConversationRestore()),
        ({"cancel": True, "skipConversationRestore": True}, Cancel()),
        (SkipConversationRestore(skip=False), SkipConversationRestore(skip=False)),
    ],
    ids=repr,
)
def test_before_branch_takes_the_word_about_the_conversation(answer: Any, meant: Answer) -> None:
    """False is an answer too; a cancel beside it wins."""
    assert read("session:before_branch", answer) == [meant]


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ({"compactionEntry": ENTRY}, Compaction("s", 3, 9)),
        ({"compaction_entry": ENTRY_PYTHON}, Compaction("s", 3, 9)),
        ({"compactionEntry": {**ENTRY, "type": "compaction", "timestamp": "t"}}, Compaction("s", 3, 9, "t")),
        ({"compactionEntry": {**ENTRY, "fromHook": True}}, Compaction("s", 3, 9)),
        ({"cancel": True, "compactionEntry": ENTRY}, Cancel()),
        (Compaction("s", 3, 9), Compaction("s", 3, 9)),
    ],
    ids=repr,
)
def test_before_compact_takes_an_entry_in_both_spellings(answer: Any, meant: Answer) -> None:
    """The keys of the entry, and those around it, work in both spellings."""
    assert read("session:before_compact", answer) == [meant]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        *[(name, {}) for name, spec in SPECS.items() if spec.answers],
        *[(name, {"block": False}) for name in GATES],
        *[(name, {"block": False, "reason": "ignored"}) for name in GATES],
        *[(name, {"block": False, "blockReason": "ignored"}) for name in GATES],
        *[(name, {"cancel": False}) for name in BEFORE],
        *[(name, {"cancel": False, "reason": "ignored"}) for name in BEFORE],
        ("before_tool_call", {"params": None}),
        ("session:before_branch", {"skipConversationRestore": None}),
    ],
)
def test_some_forms_are_no_opinion(name: str, answer: Any) -> None:
    """An empty mapping and a "no", with or without a reason, are no opinion."""
    assert read(name, answer) == []


@pytest.mark.parametrize(
    ("name", "answer", "told"),
    [
        ("tool_call", {"reason": "no"}, "a reason needs"),
        ("tool_call", {"block_reason": "no"}, "a reason needs"),
        ("before_tool_call", {"params": {}, "reason": "no"}, "a reason needs"),
        ("session:before_clear", {"reason": "no"}, "a reason needs"),
        ("tool_call", {"blok": True}, "blok"),
        ("tool_call", {"block": True, "isError": True}, "isError"),
        ("tool_call", {"block": "yes"}, "bool"),
        ("tool_call", {"block": 1}, "bool"),
        ("tool_call", {"block": None}, "bool"),
        ("tool_call", {"block": True, "reason": 5}, "reason"),
        ("tool_call", {"block": True, "reason": "a", "blockReason": "b"}, "the same key"),
        ("tool_call", {"block": True, "blockReason": "a", "block_reason": "b"}, "twice"),
        ("tool_call", {"ask": "really?"}, "ask"),
        ("tool_call", {"ask": {"message": "m"}}, "title"),
        ("tool_call", {"ask": {"title": "t", "titel": "t"}}, "titel"),
        ("tool_call", {"params": {}}, "before_tool_call"),
        ("tool_call", Rewrite({}), "before_tool_call"),
        ("before_tool_call", {"params": "ls"}, "params"),
        ("before_tool_call", {"params": {1: 2}}, "str"),
        ("before_tool_call", {1: 2}, "keys of an answer are strings"),
        ("tool_result", {"isError": True, "is_error": False}, "twice"),
        ("tool_result", {"isError": None}, "is_error"),
        ("tool_result", {"content": None}, "content"),
        ("tool_result", {"content": [{"type": "video"}]}, "block"),
        ("tool_result", Block("no"), "Replace"),
        ("session:before_switch", {"skipConversationRestore": True}, "skipConversationRestore"),
        ("session:before_switch", SkipConversationRestore(), "Cancel"),
        ("session:before_branch", {"skipConversationRestore": "yes"}, "bool"),
        ("session:before_branch", {"skipConversationRestore": True, "skip_conversation_restore": True}, "twice"),
        ("session:before_compact", {"compactionEntry": {"summary": "s"}}, "firstKeptEntryIndex"),
        ("session:before_compact", {"compactionEntry": {**ENTRY, "tokensBefore": "9"}}, "tokensBefore"),
        ("session:before_compact", {"compactionEntry": {**ENTRY, "tokens_before": 9}}, "twice"),
        ("session:before_compact", {"compactionEntry": "s"}, "compactionEntry"),
        ("agent_end", {"continue": False}, "continue"),
        ("agent_end", {"continue": " "}, "text with words in it"),
        ("agent_end", {"continue": "x", "block": True}, "block"),
        ("agent_end", "run the tests", "return Continue"),
        ("agent_end", Block("no"), "return Continue"),
        ("agent_start", Continue("more"), "return AddContext"),
        ("agent_start", {"addContext": " "}, "a text with words in it"),
        ("turn_end", {"addContext": "x"}, "addContext"),
        ("turn_end", AddContext("x"), "return Stop"),
        ("tool_call", {"stop": True}, "stop"),
        ("tool_call", {"addContext": "x"}, "addContext"),
        ("tool_result", {"stop": 3}, "stop"),
        ("session:shutdown", AddContext("x"), "return nothing"),
        ("session:before_switch", AddContext("x"), "return Cancel"),
        *[(name, answer, "return") for name in GATES for answer in (True, False, "yes", 0, [], ["block"], object())],
        *[(name, answer, "return nothing") for name in SILENT for answer in (True, {}, {"block": True}, Block())],
    ],
)
def test_a_wrong_shape_is_refused_and_the_text_helps(name: str, answer: Any, told: str) -> None:
    """Unknown keys, wrong types and a key given twice raise a `TypeError` that names the key and the right form."""
    with pytest.raises(TypeError, match=told):
        read(name, answer)


@pytest.mark.parametrize("name", GATES)
def test_the_refusal_on_a_gate_shows_the_right_form(name: str) -> None:
    """An answer with a misspelled `block` raises a text with the right spelling."""
    with pytest.raises(TypeError, match=r'Block\("why"\) or \{"block": True, "reason": "why"\}'):
        read(name, {"blok": True})


@given(st.sampled_from(sorted(SPECS)), ANSWERS)
def test_reading_gives_an_answer_of_the_row_or_a_type_error(name: str, answer: Any) -> None:
    """Reading any value gives one of these two."""
    try:
        answers = read(name, answer)
    except TypeError:
        return
    assert all(isinstance(each, SPECS[name].answers) for each in answers)


# ---- the table


def test_each_event_finds_its_rows() -> None:
    """`session` has a row per reason, every other event has one."""
    assert len(rows_of("session")) == 10
    assert all(len(rows_of(name)) == 1 for name in EVENT_NAMES if name != "session")
    assert set(EVENT_NAMES) > TOOL_EVENTS
    assert spec_name(SessionEvent(reason="start")) == "session:start"
    assert spec_name(BeforeToolCall(tool_name="t", params={})) == "before_tool_call"


class Run:
    """The part of a dispatch that a fold needs."""

    def __init__(self, event: Any) -> None:
        self.event = event
        self.outcome: Any = None
        self.conflicts: list[str] = []

    def conflict(self, text: str) -> None:
        """Keep the report."""
        self.conflicts.append(text)

    def fold(self, *answers: Answer) -> list[bool]:
        """Fold the answers, and return for each whether it ends the dispatch."""
        spec = SPECS[spec_name(self.event)]
        return [spec.fold(self, answer) for answer in answers]


def test_an_observed_event_folds_nothing() -> None:
    """A row without answers continues with the next handler."""
    run = Run(SessionEvent(reason="shutdown"))
    assert run.fold(Cancel()) == [False]
    assert run.outcome is None


def test_rewrites_chain_and_asks_are_collected_beside_them() -> None:
    """Each rewriter signs once, each ask is kept, and the last rewrite comes with them."""
    run = Run(BeforeToolCall(tool_name="t", params={"a": 0}))
    rewrites = [Rewrite({"a": 1}, ("x",)), Rewrite({"a": 2}, ("y",)), Rewrite({}, ("y",))]
    run.fold(rewrites[0], Ask("one", by="x"), rewrites[1], Ask("two", by="y"), rewrites[2])
    assert run.event.params == {}
    first: Any = run.outcome
    assert [ask.title for ask in (first, *first.also)] == ["one", "two"]
    assert first.rewrite.input == {}
    assert "y" in first.rewrite.by
    assert run.fold(Block("no")) == [True]
    assert isinstance(run.outcome, Block)


def test_replacements_add_up_field_by_field() -> None:
    """The last handler that sets a field wins, and a field that no handler sets stays."""
    run = Run(ToolResult(tool_name="t", tool_call_id="1", input={}, content="old", details={"k": 1}))
    run.fold(Replace(content="new"), Replace(is_error=True), Replace(content="newer"))
    assert run.outcome == Replace(content="newer", is_error=True)
    assert (run.event.details, run.event.is_error) == ({"k": 1}, True)


def test_differing_words_about_a_branch_are_reported_and_the_later_counts() -> None:
    """Two equal answers are no conflict, and a cancel ends the dispatch without one."""
    run = Run(SessionEvent(reason="before_branch"))
    assert run.fold(SkipConversationRestore(), SkipConversationRestore(), SkipConversationRestore(skip=False)) == [
        False,
        False,
        False,
    ]
    assert len(run.conflicts) == 1
    assert run.fold(Cancel()) == [True]
    assert len(run.conflicts) == 1
    assert run.outcome == Cancel()
