"""The marks of redaction in the input of a tool that writes.

A model that read `[redacted github-token]` knows no secret that it could write back: it would write the mark over it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

_MARK = re.compile(r"\[redacted [\w.:-]{1,100}\]")
_BEGIN = "[redacted "
_WRITES = re.compile(r"write|edit|create|patch|append|replace|insert|save|put|update|modify|store")
_SHELLS = re.compile(r"bash|shell|exec|command|terminal|run|powershell")
# A command that writes a file: a redirection, except to a descriptor or to /dev/null, or a program that writes its input.
_WRITING = re.compile(
    r"(?<![-=])>(?!&|\s*/dev/(?:null|stderr|stdout))|\btee\b|\b(?:sed|perl|ruby)\b[^\n|;]*? -\w*i|patch|\bdd\b|open\("
)
_OLD = re.compile(r"(?:^|_)old(?:_|[A-Z]|$)|^(?:search|find|before|target|anchor)$")
_PATCH = re.compile(r"^(?:\*\*\* Begin Patch|\+\+\+ |@@)", re.MULTILINE)
_DEEPEST = 8


class Marks(Struct):
    """The marks in the input of a tool that writes.

    `new`: those that the tool would write; `old`: those in the text that it would replace; `replaces`: the input names
    such a text.
    """

    new: Counter[str]
    old: Counter[str]
    replaces: bool = False

    def over_secrets(self, present: str | None) -> list[str]:
        """Return the marks that are neither in the replaced text nor in the file.

        `present`: the text of the file, `None` when it is not known; then the tool itself compares the old text.
        """
        if present is None:
            kept = self.old
        else:
            there = Counter(_MARK.findall(present))
            kept = self.old & there if self.replaces else there
        return sorted(self.new - kept)


def marks_of(tool_name: str, input: Mapping[str, Any]) -> Marks | None:
    """Return the marks that a call would write, `None` when it writes none."""
    writes, shell = _kind_of(tool_name)
    if not (writes or shell):
        return None
    marks = Marks(Counter(), Counter())
    for key, text in _texts(input, "", 0):
        replaced = bool(_OLD.search(key))
        marks.replaces = marks.replaces or replaced
        if _BEGIN not in text:
            continue
        if _PATCH.search(text):
            _add_patch(marks, text)
        elif replaced:
            marks.old.update(_MARK.findall(text))
        elif writes or _WRITING.search(_MARK.sub("", text)):
            marks.new.update(_MARK.findall(text))
    return marks if marks.new else None


@cache
def _kind_of(tool_name: str) -> tuple[bool, bool]:
    """Return whether a tool's name says that it writes, and that it runs commands."""
    verb = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool_name).rpartition("__")[2].lower()
    return bool(_WRITES.search(verb)), bool(_SHELLS.search(verb))


def _add_patch(marks: Marks, text: str) -> None:
    """Add the marks of a patch: its added lines are new, all others must be in the file already."""
    for line in text.split("\n"):
        found = _MARK.findall(line)
        if found and line.startswith("+"):
            marks.new.update(found)
        elif found:
            marks.old.update(found)


def _texts(value: object, key: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif depth < _DEEPEST and isinstance(value, Mapping):
        for name, each in value.items():
            yield from _texts(each, str(name), depth + 1)
    elif depth < _DEEPEST and isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, key, depth + 1)
