"""The table of events: the mapping form of an answer, how answers combine, and the check of a compaction entry."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agent_hooks import (
    AddContext,
    Ask,
    Block,
    Cancel,
    Compaction,
    Interceptor,
    InterceptorRegistry,
    Replace,
    Rewrite,
    Stop,
)
from agent_hooks.dispatch.folds import fold_compaction, fold_point
from agent_hooks.dispatch.handlers import refuses_two
from agent_hooks.dispatch.reading import read_answer
from agent_hooks.dispatch.table import POINT_SPECS, SPECS
from agent_hooks.values.answers import Answer, Continue, SkipConversationRestore
from agent_hooks.values.content import CompactionEntry
from agent_hooks.values.events import ToolCall
from support import hook_on, runner_of

ENTRY = {"summary": "s", "firstKeptEntryIndex": 1, "tokensBefore": 2}
VALUE = CompactionEntry(timestamp="2026-01-01T00:00:00Z", summary="s", first_kept_entry_index=1, tokens_before=2)


@pytest.mark.parametrize(
    ("event", "answer", "expected"),
    [
        ("tool_call", {"block": True, "reason": "no"}, [Block("no")]),
        ("tool_call", {"block": True, "blockReason": "no"}, [Block("no")]),
        ("tool_call", {"block": True, "block_reason": "no"}, [Block("no")]),
        ("tool_call", {"block": False, "reason": "why"}, []),
        ("tool_call", {"ask": {"title": "t", "message": "m"}}, [Ask("t", "m")]),
        ("tool_call", {}, []),
        ("tool_call", Block("no"), [Block("no")]),
        ("before_tool_call", {"params": {"a": 1}}, [Rewrite({"a": 1})]),
        ("before_tool_call", {"params": {"a": 1}, "block": True}, [Block("")]),
        ("before_tool_call", {"params": {"a": 1}, "ask": {"title": "t"}}, [Ask("t"), Rewrite({"a": 1})]),
        ("tool_result", {"content": "x", "isError": True}, [Replace(content="x", is_error=True)]),
        ("tool_result", {}, []),
        ("session:before_clear", {"cancel": True, "reason": "why"}, [Cancel("why")]),
        ("session:before_clear", {"cancel": False, "reason": "why"}, []),
        ("session:before_branch", {"skipConversationRestore": False}, [SkipConversationRestore(False)]),
        ("session:before_branch", {"skipConversationRestore": True, "cancel": True}, [Cancel()]),
        ("session:before_branch", {}, []),
        ("session:before_compact", {"compactionEntry": ENTRY}, [Compaction("s", 1, 2)]),
        ("session:before_compact", {"compactionEntry": ENTRY, "cancel": True}, [Cancel()]),
        ("session:before_compact", {"compactionEntry": VALUE}, [Compaction("s", 1, 2, "2026-01-01T00:00:00Z")]),
        ("session:before_compact", {"compaction_entry": VALUE}, [Compaction("s", 1, 2, "2026-01-01T00:00:00Z")]),
        ("session:before_compact", {}, []),
        ("agent_end", {"continue": "go on"}, [Continue("go on")]),
        ("agent_end", {}, []),
    ],
)
def test_each_mapping_form_is_read(event: str, answer: Any, expected: list[Any]) -> None:
    """Both spellings of a key count."""
    assert read_answer(event, SPECS[event], answer) == expected


def test_the_keys_inside_of_a_compaction_entry_have_both_spellings() -> None:
    """The keys inside of `params` stay as they are."""
    entry = {"summary": "s", "first_kept_entry_index": 1, "tokens_before": 2, "from_hook": True, "type": "compaction"}
    spec = SPECS["session:before_compact"]
    assert read_answer("session", spec, {"compaction_entry": entry}) == [Compaction("s", 1, 2)]
    answer = {"params": {"first_kept": 1}}
    assert read_answer("x", SPECS["before_tool_call"], answer) == [Rewrite({"first_kept": 1})]


@pytest.mark.parametrize(
    ("event", "answer", "text"),
    [
        ("tool_call", {"block": True, "reason": "a", "blockReason": "b"}, "are the same key; give one of them"),
        ("tool_call", {"reason": "a"}, 'a reason needs {"block": true} beside it'),
        ("tool_call", {"blockReason": "a"}, 'a reason needs {"block": true} beside it'),
        ("tool_call", {"block": True, 7: 1}, "keys of an answer are strings, not 7"),
        ("tool_call", {"blockReason": "a", "block_reason": "b"}, "'blockReason' is there twice, once in each spelling"),
        ("tool_call", {"params": {}}, "a Rewrite belongs in a before_tool_call handler"),
        ("tool_call", Rewrite({}), "a Rewrite belongs in a before_tool_call handler"),
        ("tool_call", AddContext("x"), "; an AddContext belongs in a session, agent_start or tool_result handler"),
        ("tool_call", {"addContext": "x"}, "; an AddContext belongs in a session, agent_start or tool_result handler"),
        ("tool_result", Block("x"), "; a Block belongs in a before_tool_call or tool_call handler"),
        ("agent_end", Stop("x"), "; a Stop belongs in a turn_end, before_tool_call, tool_call or tool_result handler"),
        ("after_tool_call", Stop("x"), "; a Stop belongs in a turn_end, "),
        ("tool_call", {"continue": "x"}, "; a Continue belongs in an agent_end handler"),
        ("tool_call", Answer(), "handlers return Block("),
        ("tool_call", "yes", "tool_call handlers return Block"),
        ("session:before_clear", {"reason": "a"}, 'a reason needs {"cancel": true} beside it'),
        ("turn_start", 7, "turn_start handlers return nothing, not 7"),
        ("turn_start", {"block": True}, "turn_start handlers return nothing"),
        ("agent_start", 7, 'agent_start handlers return AddContext("text") or {"addContext": "text"}, or None'),
        ("turn_end", {"stop": True}, 'return Stop("why") or {"stop": "why"}, or None'),
    ],
)
def test_an_answer_of_a_wrong_shape_is_refused(event: str, answer: Any, text: str) -> None:
    """The error text names the mistake."""
    with pytest.raises(TypeError) as raised:
        read_answer(event, SPECS[event], answer)
    assert text in str(raised.value)


@pytest.mark.parametrize("answer", ["yes", {"block": True}])
def test_only_an_answer_to_before_tool_call_may_rewrite(answer: Any) -> None:
    """The hint about `Rewrite` comes with an attempt to rewrite only."""
    for event in ("tool_result", "session:before_clear"):
        with pytest.raises(TypeError) as raised:
            read_answer(event, SPECS[event], answer)
        assert "Rewrite" not in str(raised.value)


class Run(SimpleNamespace):
    """The part of a dispatch that folds change."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"event": None, "outcome": None, **fields})
        self.conflicts: list[str] = []

    def conflict(self, text: str) -> None:
        """Keep the text."""
        self.conflicts.append(text)


def compact(answer: Any, entries: int = 3) -> Run:
    """Return the run after the fold of one answer to `session:before_compact`."""
    run = Run(event=SimpleNamespace(entries=[None] * entries))
    assert fold_compaction(run, answer) == isinstance(answer, Cancel)
    assert run.outcome is answer
    return run


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (Compaction("", 1, 0), "summary wants a text with words in it, not ''"),
        (Compaction(" \n", 1, 0), "summary wants a text with words in it"),
        (Compaction(7, 1, 0), "summary wants a text with words in it, not 7"),  # type: ignore[arg-type]
        (Compaction("s", 0, 0), "first_kept_entry_index wants 1 to 3 (keep nothing), not 0; event.cut_point"),
        (Compaction("s", 4, 0), "first_kept_entry_index wants 1 to 3 (keep nothing), not 4"),
        (Compaction("s", True, 0), "first_kept_entry_index wants 1 to 3 (keep nothing), not True"),
        (Compaction("s", 1, -1), "tokens_before wants a number from 0 up, not -1; event.tokens_before is it"),
        (Compaction("s", 1, 1.5), "tokens_before wants a number from 0 up, not 1.5"),  # type: ignore[arg-type]
        (Compaction("s", 1, 0, "noon"), "timestamp wants ISO 8601 text, not 'noon'; leave it out"),
        (Compaction("s", 1, 0, 7), "timestamp wants ISO 8601 text, not 7"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_compaction_entry_is_refused(entry: Compaction, text: str) -> None:
    """The error text names the field, the wanted value and the remedy."""
    with pytest.raises(TypeError) as raised:
        compact(entry)
    assert str(raised.value).startswith("the compaction entry is rejected: ")
    assert text in str(raised.value)


def test_a_right_compaction_entry_is_taken() -> None:
    """Without known entries any index from 1 up is right."""
    assert compact(Compaction("s", 3, 0, "2026-01-01T00:00:00Z")).conflicts == []
    compact(Compaction("s", 99, 0), entries=0)
    compact(Cancel())
    with pytest.raises(TypeError, match="wants a number from 1 up, not 0"):
        compact(Compaction("s", 0, 0), entries=0)


def test_a_block_at_a_point_ends_it_and_keeps_the_event() -> None:
    """The outcome is the block alone."""
    event = object()
    run = Run(event=event, outcome=None)
    assert fold_point(run, Block("no"))
    assert (run.event, run.outcome) == (event, Block("no"))
    assert Block in POINT_SPECS["tool.before"].answers


# ---- subscriptions ---------------------------------------------------------------------------------------------------


def test_a_function_without_a_known_signature_is_not_refused() -> None:
    """Python does not know the signature of some builtin classes."""
    assert refuses_two(dict) is None
    assert refuses_two(lambda event: None) is not None
    assert refuses_two(lambda event, ctx, *, more: None) is not None
    assert refuses_two(len) is not None


def test_the_same_interceptor_may_be_added_twice() -> None:
    """It is there once, and each undo removes it."""
    registry = InterceptorRegistry()
    one = Interceptor("one", "tool.before", lambda given, output: None)
    first, second = registry.add(one), registry.add(one)
    assert registry.list() == [one]
    second()
    assert registry.list() == []
    first()
    assert registry.list() == []


def test_a_tool_call_has_a_plan_for_its_own_tool_only() -> None:
    """The plan of another tool has no handler."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None, tool="bash"))
    assert runner.engine.listens(("tool_call", "bash"))
    assert not runner.engine.listens(("tool_call", "read"))
    assert ToolCall(tool_name="read", tool_call_id="1", input={}).route == ("tool_call", "read")
