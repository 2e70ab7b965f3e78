"""The lines of record files with those fields alone that the index needs; the others are not decoded.

A card reads the whole lines from the file.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_hooks.records.lines import VERSION

NO_CHANGES = Raw(b"")


class SlimStep(Struct):
    """The fields of a step that figures need."""

    stage: str = ""
    by: str = ""
    file: str = ""
    answer: str = "silent"
    ms: float = 0.0


class SlimLine(Struct, rename="camel", tag_field="kind", kw_only=True):
    """Base of the lines."""

    v: int
    time: datetime
    id: str
    session: str = ""
    agent: str = "main"
    client: str = ""
    client_call: str = ""
    project: str = ""


class SlimDecision(SlimLine, tag="decision", kw_only=True):
    """The judgement of a call."""

    tool: str
    native_tool: str = ""
    verdict: str
    reason: str = ""
    by: str = ""
    rule: str = ""
    input: Any = None
    input_cut: bool = False
    digest: str = ""
    rewrite: Raw = NO_CHANGES
    turn_id: str = ""
    may_change: bool = False
    steps: tuple[SlimStep, ...] = ()
    ms: float = 0.0


class SlimResult(SlimLine, tag="result", kw_only=True):
    """The end of a call."""

    tool: str
    status: str
    redacted: dict[str, int] = {}
    turn_id: str = ""
    steps: tuple[SlimStep, ...] = ()
    ms: float | None = None


class SlimObserved(SlimLine, tag="observed", kw_only=True):
    """The observers of a call."""

    tool: str
    steps: tuple[SlimStep, ...] = ()


class SlimQuestion(SlimLine, tag="question", kw_only=True):
    """A question; one of a handler has no tool."""

    tool: str = ""
    about: str = "call"
    to: str = "person"
    digest: str = ""


class SlimAnswer(SlimLine, tag="answer", kw_only=True):
    """The answer to a question."""

    tool: str = ""
    ms: float | None = None


class SlimHook(Struct):
    """A loaded hook."""

    path: str = ""


class SlimSession(SlimLine, tag="session", kw_only=True):
    """A session with its hooks; other events of a session name none."""

    hooks: tuple[SlimHook, ...] = ()
    guards: tuple[str, ...] = ()


class SlimTurn(SlimLine, tag="turn", kw_only=True):
    """The beginning or end of a turn, or the files that it has changed."""

    event: str = ""
    turn_id: str = ""
    files: tuple[str, ...] = ()
    marked: bool = False


class _Prompt(SlimLine, tag="prompt", kw_only=True):
    pass


class _Run(SlimLine, tag="run", kw_only=True):
    pass


class _Event(SlimLine, tag="event", kw_only=True):
    pass


Slim = (
    SlimDecision
    | SlimResult
    | SlimObserved
    | SlimQuestion
    | SlimAnswer
    | SlimSession
    | SlimTurn
    | _Prompt
    | _Run
    | _Event
)
FAILURES = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


"""The exceptions of the decoder."""


@cache
def decoder() -> msgspec.json.Decoder[Slim]:
    """Return the decoder of lines; one of a later version may be among them."""
    return msgspec.json.Decoder(Slim)


class _Head(Struct):
    kind: str = ""
    v: int = 0


@cache
def _heads() -> msgspec.json.Decoder[_Head]:
    return msgspec.json.Decoder(_Head)


def reason(data: bytes) -> str:
    """Return why a text is no line: `newer` for one of a later version, `other` for another kind, else `bad`."""
    try:
        head = _heads().decode(data)
    except FAILURES:
        return "bad"
    if head.v > VERSION:
        return "newer"
    return "other" if head.kind in _OTHERS else "bad"


_OTHERS = frozenset({"note", "edit", "unlock", "remembered", "tombstone", "head"})
