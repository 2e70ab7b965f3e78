"""Patches as calls of our tools: a call that applies a patch amounts to a `write` or an `edit` of each file.

- A file that is added is a `write`, and a file that is updated an `edit` with the lines of all its hunks.
- A file that is deleted is a `write` of nothing, and the command `rm`.
- A file that is moved is a `write` of the new path, and the command `mv`, beside the `edit` of the old path.

A patch whose paths cannot be known before it is applied gives parts that are unread (`Part.unread`).

Few calls apply a patch.  So this module only finds out whether a call may do so, and `patch_calls` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks.bridges.base.happenings import Part

# The characters by which a shell lets a name be written in other ways.
_QUOTES = str.maketrans("", "", "'\"\\")
_MOST_DEPTH = 8
NO_FILES: Mapping[str, str] = {}


def parts_of(text: str) -> tuple[Part, ...]:
    """Return a patch in the format of `apply_patch` as calls of our tools, none for a text that is no such patch.

    A text that begins like a patch, and names no file, gives unread parts.
    """
    from agent_hooks.bridges.patch_text import parts_of

    return parts_of(text)


def parts_of_call(
    tool_name: str, input: Mapping[str, Any], cwd: str | None = None, files: Mapping[str, str] = NO_FILES
) -> tuple[Part, ...]:
    """Return the parts of a call that applies a patch, none for another call.

    `tool_name`, `input`: in our vocabulary or as the agent sent them.  `cwd`: the agent's directory, an absolute path.  A
    path that the patch gives relative to another directory, by an argument or a `cd`, becomes relative to `cwd`.
    `files`: the texts of files that unread parts have named (`Part.file`), by that path.
    """
    texts = texts_in(input)
    if "patch" not in tool_name.lower() and not any(map(_may_patch, texts)):
        return ()
    from agent_hooks.bridges.patch_calls import parts_of_call

    return parts_of_call(tool_name, input, texts, cwd, files)


def _may_patch(text: str) -> bool:
    # Each call comes here, and few of them have a quotation mark.
    is_quoted = "'" in text or '"' in text or "\\" in text
    plain = text.translate(_QUOTES) if is_quoted else text
    if "patch" in plain or "apply" in plain or "*** " in plain or "hg " in plain:
        return True
    return "git" in plain and " am" in plain


def texts_in(input: Mapping[str, Any]) -> list[str]:
    """Return the texts in an input, in their order."""
    found: list[str] = []
    _collect(input, found, 0)
    return found


def _collect(value: object, found: list[str], depth: int) -> None:
    if isinstance(value, str):
        found.append(value)
    elif depth < _MOST_DEPTH and isinstance(value, list | tuple):
        for each in value:
            _collect(each, found, depth + 1)
    elif depth < _MOST_DEPTH and isinstance(value, dict | Mapping):
        for each in value.values():
            # Nearly all arguments are texts, and each call comes here.
            if isinstance(each, str):
                found.append(each)
            else:
                _collect(each, found, depth + 1)
