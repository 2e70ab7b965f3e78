"""How the answers of several handlers combine: a fold takes one answer into the outcome of the dispatch.

A fold returns whether the dispatch ends.  A row of the table names the fold of its event.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from msgspec import structs
from msgspec.structs import replace

from agent_hooks.dispatch.points import AtPoint, Changed
from agent_hooks.errors import shown
from agent_hooks.values.answers import (
    AddContext,
    Ask,
    Block,
    Cancel,
    Compaction,
    Continue,
    Replace,
    Rewrite,
    SkipConversationRestore,
    Stop,
)
from agent_hooks.values.events import BeforeToolCall, ToolResult


class Folding(Protocol):
    """The part of a dispatch that a fold may read and change."""

    event: Any
    outcome: Any

    def conflict(self, text: str) -> None:
        """Report that two handlers answered differently."""


Fold = Callable[[Folding, Any], bool]


def _collect_ask(run: Folding, answer: Ask) -> None:
    first = run.outcome
    if isinstance(first, Ask):
        run.outcome = replace(first, also=(*first.also, answer))
    else:
        run.outcome = replace(answer, rewrite=first)


def _each_once(*names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))


def fold_gate(run: Folding, answer: Block | Ask) -> bool:
    """The first block ends it; asks are collected."""
    if isinstance(answer, Block):
        run.outcome = answer
        return True
    _collect_ask(run, answer)
    return False


def fold_call(run: Folding, answer: Block | Ask | Rewrite) -> bool:
    """Rewrites chain, each handler seeing the one before; otherwise as a gate."""
    if not isinstance(answer, Rewrite):
        return fold_gate(run, answer)
    event: BeforeToolCall = run.event
    run.event = event.rewritten(answer.input)
    before = run.outcome.rewrite if isinstance(run.outcome, Ask) else run.outcome
    if before is not None:
        answer = replace(answer, by=_each_once(before.by, answer.by))
    run.outcome = replace(run.outcome, rewrite=answer) if isinstance(run.outcome, Ask) else answer
    return False


def fold_result(run: Folding, answer: Replace | AddContext | Stop) -> bool:
    """Combine field by field: the field that a later handler sets wins, a field that none sets stays.

    Texts to add are collected, and the first stop counts.  Later handlers get the result all the same: one of them may
    have to hide something in it.
    """
    so_far: Replace = run.outcome or Replace()
    match answer:
        case AddContext():
            run.outcome = replace(so_far, context=(*so_far.context, answer))
        case Stop():
            run.outcome = replace(so_far, stop=so_far.stop or answer)
        case _:
            event: ToolResult = run.event
            run.event = replace(event, **answer.changes())
            run.outcome = replace(so_far, **answer.changes())
    return False


def fold_context(run: Folding, answer: AddContext) -> bool:
    """Collect the texts of all handlers in one answer, in their order."""
    before: AddContext | None = run.outcome
    if before is not None:
        by = ", ".join(dict.fromkeys((before.by, answer.by)))
        answer = AddContext(f"{before.text}\n\n{answer.text}", by)
    run.outcome = answer
    return False


def fold_session(run: Folding, answer: Cancel | SkipConversationRestore | Compaction) -> bool:
    """The first cancel ends it; of the rest the last one wins, and a difference is reported."""
    if run.outcome is not None and not isinstance(answer, Cancel) and run.outcome != answer:
        run.conflict(f"answers {shown(answer)} after another hook answered {shown(run.outcome)}; the later one counts")
    run.outcome = answer
    return isinstance(answer, Cancel)


def fold_first(run: Folding, answer: Continue | Stop) -> bool:
    """The first one wins; every handler gets the event all the same."""
    run.outcome = run.outcome or answer
    return False


def fold_point(run: Folding, answer: Block | Changed[Any]) -> bool:
    """Outputs chain, each interceptor seeing the one before; the first block ends it."""
    if isinstance(answer, Changed):
        event: AtPoint[Any] = run.event
        run.event = replace(event, output=answer.output)
        if run.outcome is not None:
            answer = replace(answer, by=_each_once(run.outcome.by, answer.by))
    run.outcome = answer
    return isinstance(answer, Block)


def fold_permission(run: Folding, answer: Changed[Any]) -> bool:
    """As `fold_point`, but a denial is final: no later interceptor turns it into a permission."""
    fold_point(run, answer)
    return bool(answer.output.status == "deny")


def fold_compaction(run: Folding, answer: Cancel | Compaction) -> bool:
    """As `fold_session`, once the entry has been checked: a wrong one is a failure of its handler, so it cannot count."""
    if isinstance(answer, Compaction):
        _check_compaction(answer, len(run.event.entries))
    return fold_session(run, answer)


def _check_compaction(answer: Compaction, entries: int) -> None:
    summary, index, tokens, timestamp = structs.astuple(answer)
    if not isinstance(summary, str) or not summary.strip():
        raise _wrong("summary", "a text with words in it", summary)
    # An embedding program may give no entries.
    if type(index) is not int or index < 1 or (entries and index > entries):
        most = f"1 to {entries} (keep nothing)" if entries else "a number from 1 up"
        raise _wrong(
            "first_kept_entry_index", most, index, "event.cut_point.first_kept_entry_index keeps the recent entries"
        )
    if type(tokens) is not int or tokens < 0:
        raise _wrong("tokens_before", "a number from 0 up", tokens, "event.tokens_before is it")
    try:
        if timestamp is not None:
            datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        raise _wrong("timestamp", "ISO 8601 text", timestamp, "leave it out") from None


def _wrong(name: str, wanted: str, found: object, remedy: str = "") -> TypeError:
    return TypeError(
        f"the compaction entry is rejected: {name} wants {wanted}, not {shown(found)}{remedy and f'; {remedy}'}"
    )
