"""The `edit` tool: replace a text that occurs exactly once in a file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

from anyio import to_thread

from agent_hooks.host.tools.base import (
    BuiltinTool,
    Refused,
    clean,
    cut_head,
    object_schema,
    text_schema,
    with_line,
)
from agent_hooks.storage.files import open_regular, refusing, write_atomically
from agent_hooks.values.content import ToolOutput
from agent_hooks.values.tool import OnUpdate

EDIT_LIMIT = 10 * 1024 * 1024
"""The most bytes of a file that can be edited."""
DIFF_LIMIT = 2000
"""The most lines of a diff's two sides together: with more, difflib takes seconds."""
# The unchanged lines of a diff on each side of a change.
_CONTEXT = 3


class EditTool(BuiltinTool):
    """Replaces a text that occurs exactly once in a file."""

    name = "edit"
    description = (
        "Replace oldText by newText in a file. oldText must occur exactly once, with its white space; the answer is a "
        "diff."
    )
    input_schema = object_schema(
        ["path", "oldText", "newText"],
        path=text_schema("The file, absolute or relative to the working directory"),
        # An empty oldText passes the schema, so that the tool's own error can name the next step.
        oldText={"type": "string", "description": "The text to replace, exactly as it is in the file"},
        newText={"type": "string", "description": "The text to put in its place"},
    )

    async def run(self, input: dict[str, Any], on_update: OnUpdate | None) -> ToolOutput:
        path, old, new = input["path"], input["oldText"], input["newText"]
        if not old:
            raise Refused("oldText is empty; give the text to replace, or use write for a new file")
        if old == new:
            raise Refused("oldText and newText are the same; nothing to do")
        try:
            f"{old}{new}".encode()
        except UnicodeEncodeError:
            raise Refused("the text contains half a surrogate pair; write the whole character") from None
        return ToolOutput(await to_thread.run_sync(_edit, self.resolve(path), path, old, new))


def _edit(path: str, label: str, old: str, new: str) -> str:
    text = _load(path, label)
    pattern = _pattern(old, text)
    places = list(_places(pattern, text))
    if not places:
        raise Refused(f"oldText was not found in {label}; read the file and copy the text exactly")
    if len(places) > 1:
        raise Refused(f"oldText was found {len(places)} times in {label}; give more context, so that it occurs once")
    start, end = places[0]
    after = text[:start] + _with_endings(new, old, text, text[start:end]) + text[end:]
    # Surrogates stand for bytes that are not UTF-8; they are written back as those bytes.
    write_atomically(path, after.encode("utf-8", "surrogateescape"), label)
    return _diff(label, text, after, start, end)


def _load(path: str, label: str) -> str:
    with open_regular(path, label) as file, refusing("read", label):
        data = file.read(EDIT_LIMIT + 1)
    if len(data) > EDIT_LIMIT:
        raise Refused(f"{label} is larger than {EDIT_LIMIT // 1024 // 1024} MiB; use bash to change it")
    if b"\0" in data:
        raise Refused(f"{label} is a binary file")
    return data.decode("utf-8", "surrogateescape")


def _pattern(old: str, text: str) -> re.Pattern[str]:
    r"""Return a pattern for `old`; its `\n` match `\r\n` too, unless `old` has `\r` of its own."""
    if "\r" in old or "\r\n" not in text:
        return re.compile(re.escape(old))
    # It never matches only the second half of \r\n, which would count as another place.
    return re.compile(r"(?:\r\n|(?<!\r)\n)".join(map(re.escape, old.split("\n"))))


def _places(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the places where `pattern` occurs; they may overlap, because overlapping places are ambiguous too."""
    match = pattern.search(text)
    while match:
        yield match.span()
        match = pattern.search(text, match.start() + 1)


def _with_endings(new: str, old: str, text: str, found: str) -> str:
    r"""Return `new` with the line endings of the replaced text, or of the file when that text has none."""
    if "\r" in old or "\r" in new:
        return new
    sample = found if "\n" in found else text
    return new.replace("\n", "\r\n") if "\r\n" in sample else new


def _diff(label: str, before: str, after: str, start: int, end: int) -> str:
    """Return a unified diff of the lines around the change; difflib is too slow for whole files."""
    first = before.count("\n", 0, start)
    last = before.count("\n", 0, end)
    old, new = before.split("\n"), after.split("\n")
    # The empty text after the last newline is not a line.
    if old[-1] == new[-1] == "":
        old, new = old[:-1], new[:-1]
    low, below = max(first - _CONTEXT, 0), max(len(old) - last - 1 - _CONTEXT, 0)
    old, new = old[low : len(old) - below], new[low : len(new) - below]
    if len(old) + len(new) > DIFF_LIMIT:
        return f"edited {label}: {len(old)} lines from line {low + 1} on are {len(new)} lines now"
    lines = difflib.unified_diff(_cleaned(old), _cleaned(new), label, label, n=_CONTEXT, lineterm="")
    text, cut = cut_head("\n".join(_moved(line, low) for line in lines))
    if cut is None:
        return text
    kept = f"the first {cut.output_bytes} of {cut.total_bytes} bytes of the diff"
    return with_line(text, f"[cut: {kept}; use read to see the rest of the edited file]")


def _cleaned(lines: list[str]) -> list[str]:
    return [clean(line) for line in lines]


def _moved(line: str, by: int) -> str:
    """Return a line of a diff; in the head of a hunk, the line numbers are moved."""
    if not line.startswith("@@ "):
        return line
    return re.sub(r"(?<= [-+])\d+", lambda number: str(int(number[0]) + by), line)
