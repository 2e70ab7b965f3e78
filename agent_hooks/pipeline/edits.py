"""The diff of an edit that a person is asked about: of the file as it is, and as the call would leave it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from agent_hooks.effects import LocalMachine
from agent_hooks.storage.files import StorageError, check_regular, read_regular

_MOST_BYTES = 256 * 1024
# With more lines, difflib takes long, and no person reads them.
_MOST_LINES = 400
_CONTEXT = 3
_HUNK = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@$", re.MULTILINE)


SHOWN_BY_DIFF = {"write": ("content",), "edit": ("oldText", "newText")}
"""The arguments of a tool that its diff shows whole."""


def is_whole(diff: str) -> bool:
    """Return whether a diff has all lines of the change, and is no note about their number."""
    return diff.startswith("--- ")


def diff_of(tool: str, input: Mapping[str, Any], cwd: str) -> str:
    """Return the unified diff of a call of `write` or `edit`, empty for other calls and for a file that cannot be shown.

    An `edit` whose old text is not once in the file is shown by its two texts alone, and the diff says that it fails.
    """
    path = input.get("path")
    if not isinstance(path, str):
        return ""
    if tool == "edit":
        return _edited(path, _text_of(path, cwd), input.get("oldText"), input.get("newText"))
    if tool == "write":
        return _unified(path, _text_of(path, cwd), input.get("content"))
    return ""


def _edited(path: str, text: str | None, old: object, new: object) -> str:
    """Return the diff of a replacement in a text, with the lines around it."""
    if not text or not isinstance(old, str) or not isinstance(new, str) or not old or text.count(old) != 1:
        return _HUNK.sub("@@ the old text is not in the file once, so this edit will fail @@", _unified(path, old, new))
    at = text.index(old)
    rows, line = text.split("\n"), text.count("\n", 0, at)
    # The part of the text that a diff shows.
    first = max(line - _CONTEXT, 0)
    part = "\n".join(rows[first : line + old.count("\n") + 1 + _CONTEXT])
    at -= sum(len(row) + 1 for row in rows[:first])
    diff = _unified(path, part, part[:at] + new + part[at + len(old) :])

    def moved(head: re.Match[str]) -> str:
        return f"@@ -{int(head[1]) + first}{head[2]} +{int(head[3]) + first}{head[4]} @@"

    return _HUNK.sub(moved, diff)


def _text_of(path: str, cwd: str) -> str | None:
    """Return the text of a file, empty when there is none; `None` when it is no short text, or may not answer."""
    if "\0" in path:
        return None
    machine = LocalMachine(cwd, cwd, os.path.expanduser("~"))
    real = machine.real(os.path.join(cwd, os.path.expanduser(path)))
    if not machine.answers(real):
        return None
    try:
        check_regular(os.stat(real), path)
        data = read_regular(real, path, _MOST_BYTES + 1)
        return None if len(data) > _MOST_BYTES else data.decode()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, StorageError):
        return None


def _unified(path: str, before: object, after: object) -> str:
    if not isinstance(before, str) or not isinstance(after, str):
        return ""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > _MOST_LINES:
        return f"{len(old)} lines become {len(new)} lines"
    # Imported here, because few calls are asked about.
    import difflib

    return "\n".join(difflib.unified_diff(old, new, path, path, lineterm=""))
