"""The step that asks before a tool writes a mark of redaction over a secret."""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

from agent_hooks.guards.base import path_of
from agent_hooks.pipeline.call import JudgedCall
from agent_hooks.values.answers import Ask

RULE = "redaction-mark"
"""The rule that questions and blocks of this step name."""
BEGIN = "[redacted "
# Bytes of a file whose marks count as present.
_LARGEST = 16 * 1024 * 1024


def ask_about_marks(call: JudgedCall) -> JudgedCall:
    """Ask about a call that would write a mark which the file does not hold yet."""
    began = perf_counter()
    if not isinstance(call.input, dict) or not _may_hold_marks(call.input):
        return call
    # Imported here, because few calls hold a mark, and redaction takes long to load.
    from agent_hooks.redaction.marks import marks_of

    if (marks := marks_of(call.tool.name, call.input)) is None:
        return call
    path = path_of(call.input)
    present = None if path is None else _text_of(os.path.join(call.surroundings.cwd, os.path.expanduser(path)))
    if not (found := marks.over_secrets(present)):
        return call
    title = (
        f"{call.tool.name} would write {', '.join(found)} over a secret, because the agent has not seen the secret: "
        "change only the text around it, or let the person make this change"
    )
    ask = Ask(title, by="redaction", rule=RULE)
    if call.trail is not None:
        call.trail.add("guards", "redaction", began, ask)
    return call.asking(ask)


def _may_hold_marks(value: Any) -> bool:
    """Return whether the beginning of a mark stands in a text of the input."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            if BEGIN in each:
                return True
        elif isinstance(each, dict):
            left.extend(each.values())
        elif isinstance(each, list | tuple):
            left.extend(each)
    return False


def _text_of(path: str) -> str:
    """Return the text of a file; empty for one that is not there, cannot be read, or is too large."""
    try:
        if os.path.isfile(path) and os.path.getsize(path) <= _LARGEST:
            with open(path, "rb") as file:
                return file.read().decode("utf-8", "replace")
    except (OSError, ValueError):
        # The tool names the reason when it runs; a mark counts as new.
        pass
    return ""
