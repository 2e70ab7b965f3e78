"""The differences between events, as data: one row per event, which the one loop reads.

A row names the answers that an event takes, how their mapping form is read, how answers combine, the deadline, the policy
for a failing handler, and the lane in which the event waits for others.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from agent_hooks.dispatch.folds import (
    Fold,
    fold_call,
    fold_compaction,
    fold_context,
    fold_first,
    fold_gate,
    fold_permission,
    fold_point,
    fold_result,
    fold_session,
)
from agent_hooks.dispatch.forms import (
    BranchWire,
    CallWire,
    CancelWire,
    CompactWire,
    ContextWire,
    ContinueWire,
    GateWire,
    ResultWire,
    StopWire,
    Wire,
)
from agent_hooks.dispatch.points import POINTS, Changed
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
from agent_hooks.values.events import Event

OnError = Literal["block", "continue"]


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


def judges(name: str, spec: EventSpec) -> bool:
    """Return whether the answers of a row stop something, or take something out of a result."""
    return spec.can_block or spec.settles or Replace in spec.answers or name == "tool.after"


def rows_of(event_name: str) -> list[EventSpec]:
    """Return the rows of an event: one, or one per reason for `session`."""
    return [spec for name, spec in SPECS.items() if name.partition(":")[0] == event_name]


def spec_name(event: Event[Any]) -> str:
    """Return the name of the row of `event`: its type, with the reason for `session`."""
    route = event.route
    return route if isinstance(route, str) else route[0]
