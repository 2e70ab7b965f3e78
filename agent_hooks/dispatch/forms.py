"""The mapping forms of answers: the dictionaries that a handler may return in the place of an answer's class.

A form is read with its keys in camel case; `reading` calls its `read`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agent_hooks.values.answers import (
    AddContext,
    Answer,
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
