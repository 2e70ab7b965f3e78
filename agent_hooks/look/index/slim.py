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
    steps: tuple[SlimStep, ...] = ()
    ms: float = 0.0


class SlimResult(SlimLine, tag="result", kw_only=True):
    """The end of a call."""

    tool: str
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
_FAILURES = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@cache
def _decoder() -> msgspec.json.Decoder[Slim]:
    return msgspec.json.Decoder(Slim)


class _Head(Struct):
    kind: str = ""
    v: int = 0


@cache
def _heads() -> msgspec.json.Decoder[_Head]:
    return msgspec.json.Decoder(_Head)


PLAIN_RESULT = b'{"kind":"result","v":%d,' % VERSION
"""The beginning of the lines that `plain_result` takes."""
_ID = b'"id":"'


def plain_result(data: bytes) -> str:
    """Return the id of a result as our writer writes it, if it has neither steps nor secrets; else an empty text.

    This takes a tenth of the time of decoding, and half of all lines are such results.
    """
    if b'"steps":' in data or b'"redacted":' in data or not data.endswith(b"}\n"):
        return ""
    begin = data.find(_ID) + len(_ID)
    call = data[begin : data.find(b'"', begin)]
    return call.decode() if begin >= len(_ID) and call.isalnum() else ""


def slim_line(data: bytes) -> Slim | str:
    """Return a line; `bad` for a text that is none, `newer` for a later version, `other` for another kind."""
    try:
        line = _decoder().decode(data)
    except _FAILURES:
        return _reason(data)
    return line if line.v <= VERSION else "newer"


def _reason(data: bytes) -> str:
    try:
        head = _heads().decode(data)
    except _FAILURES:
        return "bad"
    if head.v > VERSION:
        return "newer"
    return "other" if head.kind in _OTHERS else "bad"


_OTHERS = frozenset({"note", "edit", "unlock", "remembered", "tombstone", "head"})
