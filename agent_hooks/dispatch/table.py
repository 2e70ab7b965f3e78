"""The differences between events, as data: one row per event, which the one loop reads.

A row names the answers that an event takes, how their mapping form is read, how answers combine, the deadline, the policy
for a failing handler, and the lane in which the event waits for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs, to_builtins
from msgspec.structs import replace

from agent_hooks.dispatch.points import POINTS, AtPoint, Changed
from agent_hooks.errors import shown
from agent_hooks.values.answers import (
    AddContext,
    Answer,
    Ask,
    Block,
    Cancel,
    Cause,
    Compaction,
    Continue,
    Replace,
    Rewrite,
    SkipConversationRestore,
    Stop,
)
from agent_hooks.values.content import CompactionEntry
from agent_hooks.values.events import BeforeToolCall, Event, ToolResult
from agent_hooks.values.frozen import freeze, items_of
from agent_hooks.values.wire import camel

OnError = Literal["block", "continue"]


class Folding(Protocol):
    """The part of a dispatch that a fold may read and change."""

    event: Any
    outcome: Any

    def conflict(self, text: str) -> None:
        """Report that two handlers answered differently."""


Fold = Callable[[Folding, Any], bool]


class EventSpec(Struct, frozen=True):
    """One row of the table.

    `answers`: the classes a handler may return; `forms`: the same as a handler author writes them, for error texts;
    `wire`: reads the mapping form; `fold`: takes one answer into `run.outcome` (and `run.event`, which the next handler
    sees) and says whether the dispatch ends; `deadline`: the setting that limits a handler, or `total` seconds for all
    of them; `on_error`: the default policy for a failing handler; `lane`: dispatches of one lane run one after another;
    `cause`: the cause that the block of a handler names;
    `settles`: the answers settle a question to the person, so a failing handler ends the dispatch without an answer.
    """

    answers: tuple[type[Answer], ...] = ()
    forms: str = ""
    wire: type[Wire] | None = None
    fold: Fold = lambda run, answer: False
    deadline: Literal["hook_timeout", "tool_call_timeout"] | None = "hook_timeout"
    total: float | None = None
    on_error: OnError = "continue"
    lane: Literal["life", "calls"] | None = None
    cause: Cause = "hook"
    settles: bool = False

    @property
    def can_block(self) -> bool:
        """Whether a handler can stop the action that the event announces."""
        return Block in self.answers or Cancel in self.answers


# ---- the mapping form of answers -------------------------------------------------------------------------------------


class Wire(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Base of the mapping forms; `read` gives the answers one stands for."""

    def read(self) -> list[Answer]:
        """Return the answers; an empty list is "no opinion"."""
        raise NotImplementedError


class AskWire(Struct, forbid_unknown_fields=True):
    """`{"title": …, "message"?: …, "remember"?: false}`."""

    title: str
    message: str = ""
    remember: bool = True


class StopWire(Wire):
    """`{"stop": "why"}`."""

    stop: str | None = None

    def read(self) -> list[Answer]:
        return [] if self.stop is None else [Stop(self.stop)]


class ContextWire(Wire):
    """`{"addContext": "text"}`."""

    add_context: str | None = None

    def read(self) -> list[Answer]:
        return [] if self.add_context is None else [AddContext(self.add_context)]


class GateWire(StopWire):
    """`{"block": true, "reason"?: …}`, `{"ask": {…}}` or `{"stop": "why"}`, which beats the others."""

    block: bool | UnsetType = UNSET
    reason: str | None = None
    block_reason: str | None = None
    ask: AskWire | None = None

    def read(self) -> list[Answer]:
        if self.reason is not None and self.block_reason is not None:
            raise ValueError("'reason' and 'blockReason' are the same key; give one of them")
        if self.block is UNSET and (self.reason is not None or self.block_reason is not None):
            raise ValueError('a reason needs {"block": true} beside it')
        if self.stop is not None:
            return super().read()
        if self.block is True:
            return [Block(self.reason or self.block_reason or "")]
        if self.ask is None:
            return []
        return [Ask(self.ask.title, self.ask.message, remember=self.ask.remember)]


class CallWire(GateWire):
    """The same, or `{"params": {…}}`; a block or a stop beside it counts."""

    params: dict[str, Any] | None = None

    def read(self) -> list[Answer]:
        answers = super().read()
        if self.params is not None and self.block is not True and self.stop is None:
            answers.append(Rewrite(self.params))
        return answers


class ResultWire(StopWire):
    """`{"content"?, "details"?, "isError"?, "addContext"?, "stop"?}`."""

    content: Any = UNSET
    details: Any = UNSET
    is_error: Any = UNSET
    add_context: str | None = None

    def read(self) -> list[Answer]:
        answer = Replace(content=self.content, details=self.details, is_error=self.is_error)
        replaces: list[Answer] = [answer] if answer.changes() else []
        context: list[Answer] = [] if self.add_context is None else [AddContext(self.add_context)]
        return [*replaces, *context, *super().read()]


class CancelWire(Wire):
    """`{"cancel": true, "reason"?: …}`."""

    cancel: bool | UnsetType = UNSET
    reason: str | None = None

    def read(self) -> list[Answer]:
        if self.cancel is UNSET and self.reason is not None:
            raise ValueError('a reason needs {"cancel": true} beside it')
        return [Cancel(self.reason)] if self.cancel is True else []


class BranchWire(CancelWire):
    """The same, or `{"skipConversationRestore": …}`."""

    skip_conversation_restore: bool | None = None

    def read(self) -> list[Answer]:
        answers = super().read()
        if not answers and self.skip_conversation_restore is not None:
            answers.append(SkipConversationRestore(self.skip_conversation_restore))
        return answers


class CompactionWire(Struct, rename="camel", forbid_unknown_fields=True):
    """A compaction entry as a hook writes it; `type` may stand there, and `fromHook`, which is true anyway."""

    summary: str
    first_kept_entry_index: int
    tokens_before: int
    timestamp: str | None = None
    type: Literal["compaction"] = "compaction"
    from_hook: bool = True


class CompactWire(CancelWire):
    """The same, or `{"compactionEntry": {…}}`."""

    compaction_entry: CompactionWire | None = None

    def read(self) -> list[Answer]:
        answers = super().read()
        entry = self.compaction_entry
        if not answers and entry is not None:
            answers.append(
                Compaction(entry.summary, entry.first_kept_entry_index, entry.tokens_before, entry.timestamp)
            )
        return answers


class ContinueWire(Wire):
    """`{"continue": "text"}`."""

    text: str | None = msgspec.field(default=None, name="continue")

    def read(self) -> list[Answer]:
        return [] if self.text is None else [Continue(self.text)]


# The answer that each key of a mapping form stands for.
_KEYS: dict[str, type[Answer]] = {
    "params": Rewrite,
    "block": Block,
    "ask": Ask,
    "stop": Stop,
    "addContext": AddContext,
    "add_context": AddContext,
    "content": Replace,
    "cancel": Cancel,
    "continue": Continue,
}


def misplaced(spec: EventSpec, answer: object) -> str:
    """Return the events whose handlers may give this answer, as a sentence part; empty for one that fits or is none."""
    if isinstance(answer, dict):
        kind = next((kind for key, kind in _KEYS.items() if key in answer), None)
    else:
        kind = type(answer) if isinstance(answer, Answer) else None
    if kind is None or issubclass(kind, spec.answers):
        return ""
    events = dict.fromkeys(name.partition(":")[0] for name, row in SPECS.items() if issubclass(kind, row.answers))
    if not events:
        return ""
    *others, last = events
    names = f"{', '.join(others)} or {last}" if others else last
    return f"; {_with_article(kind.__name__)} belongs in {_with_article(names)} handler"


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'Aa' else 'a'} {name}"


def _wire_keys(answer: Mapping[Any, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, value in items_of(answer):
        if not isinstance(key, str):
            raise TypeError(f"keys of an answer are strings, not {shown(key)}")
        if (wire_key := camel(key)) in keys:
            raise ValueError(f"{wire_key!r} is there twice, once in each spelling")
        if wire_key == "compactionEntry" and isinstance(value, CompactionEntry):
            value = to_builtins(value)
        if wire_key == "compactionEntry" and isinstance(value, Mapping):
            # These keys are ours too; the keys inside of params, content and details are not.
            value = _wire_keys(value)
        # A copy, because a foreign class may have no end, which the conversion would not notice.
        keys[wire_key] = freeze(value)
    return keys


def read_answer(name: str, spec: EventSpec, answer: Any) -> list[Answer]:
    """Turn the value that a handler of `name` returned into answers; an empty list is "no opinion".

    Raises `TypeError` that shows the right form when `answer` has the wrong shape: on a gate that blocks.
    """
    if isinstance(answer, spec.answers):
        return [answer]
    if isinstance(answer, Mapping) and spec.wire is not None:
        try:
            return msgspec.convert(_wire_keys(answer), spec.wire, strict=True).read()
        except (msgspec.ValidationError, ValueError, TypeError) as exc:
            hint = misplaced(spec, answer)
            raise TypeError(f"wrong answer {shown(answer)}: {exc}; return {spec.forms} or None{hint}") from None
    hint = misplaced(spec, answer)
    if not spec.answers:
        raise TypeError(f"{name} handlers return nothing, not {shown(answer)}; the value is ignored{hint}")
    raise TypeError(f"wrong answer {shown(answer)}: {name} handlers return {spec.forms} or None{hint}")


# ---- how answers combine ---------------------------------------------------------------------------------------------


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


# ---- the table -------------------------------------------------------------------------------------------------------

_OBSERVE = EventSpec(lane="life")
_STOP_FORMS = 'Stop("why") or {"stop": "why"},'
_CONTEXT_FORMS = 'AddContext("text") or {"addContext": "text"},'
_CONTEXT = EventSpec((AddContext,), _CONTEXT_FORMS, ContextWire, fold_context, lane="life")
_GATE_FORMS = f'Block("why") or {{"block": True, "reason": "why"}}, Ask("title"), {_STOP_FORMS}'
_CANCEL = EventSpec((Cancel,), 'Cancel() or {"cancel": True},', CancelWire, fold_session, lane="life")

SPECS: dict[str, EventSpec] = {
    "session:start": _CONTEXT,
    "session:before_switch": _CANCEL,
    "session:switch": _CONTEXT,
    "session:before_clear": _CANCEL,
    "session:clear": _CONTEXT,
    "session:before_branch": EventSpec(
        (Cancel, SkipConversationRestore),
        'Cancel() or {"cancel": True}, SkipConversationRestore() or {"skipConversationRestore": True},',
        BranchWire,
        fold_session,
        lane="life",
    ),
    "session:branch": _CONTEXT,
    "session:before_compact": EventSpec(
        (Cancel, Compaction),
        'Cancel() or {"cancel": True}, Compaction(summary, first_kept_entry_index, tokens_before),',
        CompactWire,
        fold_compaction,
        deadline=None,
        lane="life",
    ),
    "session:compact": _CONTEXT,
    "session:shutdown": EventSpec(deadline=None, total=5.0),
    "agent_start": _CONTEXT,
    "agent_end": EventSpec(
        (Continue,), 'Continue("text") or {"continue": "text"},', ContinueWire, fold_first, lane="life"
    ),
    "turn_start": _OBSERVE,
    "turn_end": EventSpec((Stop,), _STOP_FORMS, StopWire, fold_first, lane="life"),
    "before_tool_call": EventSpec(
        (Rewrite, Block, Ask),
        f'Rewrite({{...}}) or {{"params": {{...}}}}, {_GATE_FORMS}',
        CallWire,
        fold_call,
        deadline=None,
        on_error="block",
        lane="calls",
    ),
    "tool_call": EventSpec(
        (Block, Ask),
        _GATE_FORMS,
        GateWire,
        fold_gate,
        deadline="tool_call_timeout",
        on_error="block",
        lane="calls",
    ),
    "tool_result": EventSpec(
        (Replace, AddContext, Stop),
        f'Replace(content=...) or {{"content": ...}}, {_CONTEXT_FORMS} {_STOP_FORMS}',
        ResultWire,
        fold_result,
    ),
    "after_tool_call": EventSpec(),
}

POINT_SPECS: dict[str, EventSpec] = {
    point.name: EventSpec(
        (Block, Changed) if point.blocks else (Changed,),
        fold=fold_permission if point.name == "permission.ask" else fold_point,
        on_error="block" if point.blocks else "continue",
        lane="calls" if point.name == "tool.before" else None,
        cause="interceptor",
        settles=point.name == "permission.ask",
    )
    for point in POINTS.values()
}

EVENT_NAMES: tuple[str, ...] = tuple(dict.fromkeys(name.partition(":")[0] for name in SPECS))
TOOL_EVENTS = frozenset({"before_tool_call", "tool_call", "tool_result", "after_tool_call"})


def rows_of(event_name: str) -> list[EventSpec]:
    """Return the rows of an event: one, or one per reason for `session`."""
    return [spec for name, spec in SPECS.items() if name.partition(":")[0] == event_name]


def spec_name(event: Event[Any]) -> str:
    """Return the name of the row of `event`: its type, with the reason for `session`."""
    route = event.route
    return route if isinstance(route, str) else route[0]
