"""The effects of tools that run no command: our file tools by their input, a patch by its headers, all others unknown.

A bridge has put the names of another agent's tools and arguments into our words, and has divided a call that amounts to
several of ours.  So this table has our tools only, and the patch tools, which have no other name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agent_hooks.guards.base import GuardedCall
from agent_hooks.guards.patches import HEADER, MARKER, patched_names, readings
from agent_hooks.guards.recorder import Recorder, spelled
from agent_hooks.values.effects import Access, PathEffect


class FileTool(NamedTuple):
    """The effects of a tool on the file that its `path` names.

    `tree`: with everything inside; `default`: the path of a call that names none, empty when each call has to.
    """

    access: tuple[Access, ...]
    tree: bool = False
    default: str = ""


_TOOLS: dict[str, FileTool] = {
    "read": FileTool(("read",)),
    "write": FileTool(("write",)),
    "edit": FileTool(("read", "write")),
    "grep": FileTool(("read",), tree=True, default="."),
    "find": FileTool(("list",), tree=True, default="."),
    "ls": FileTool(("list",), default="."),
}
_PATCH_TOOLS = frozenset(("apply_patch", "applypatch", "patch"))
_PATHS = ("path", "file_path")


def record_tool(call: GuardedCall, recorder: Recorder) -> None:
    """Record the effects of the call of a tool that runs no command."""
    name = call.tool_name
    if (tool := _TOOLS.get(name)) is not None:
        _record_file(call, tool, recorder)
    elif name.lower() in _PATCH_TOOLS:
        _record_patch(call, recorder)
    else:
        recorder.unknown("opaque", name, "the effects of this tool are not known")


def _record_file(call: GuardedCall, tool: FileTool, recorder: Recorder) -> None:
    given = [call.input[key] for key in _PATHS if call.input.get(key) is not None] or [tool.default]
    for path in given:
        if not isinstance(path, str) or not path:
            recorder.unknown("unparsed", call.tool_name, "the call names no file")
            continue
        for access in tool.access:
            _record(call, recorder, access, path, tree=tool.tree)


def _record_patch(call: GuardedCall, recorder: Recorder) -> None:
    texts = [value for value in call.input.values() if isinstance(value, str)]
    found = [each for text in texts for each in patch_effects(text)]
    if not found:
        recorder.unknown("unparsed", call.tool_name, "the patch names no file")
    for access, path in found:
        _record(call, recorder, access, path)


def patch_effects(text: str) -> Iterator[tuple[Access, str]]:
    """Yield the effects of a patch of `apply_patch` or of a diff: each path in each of its readings."""
    paths: list[str] = []
    applied = False
    for marker in MARKER.finditer(text) if "***" in text else ():
        header = HEADER.fullmatch(marker[0])
        if header is None:
            continue
        applied = True
        verb, named = (header[2] or "").lower(), readings(header[3])
        if not verb:
            # The file of the header before is moved or copied to this name.
            for path in paths:
                yield "delete", path
        for path in named:
            yield ("delete" if verb == "delete" else "write"), path
        paths = named
    if applied:
        return
    for name in patched_names(text):
        if name != "/dev/null":
            plain = re.sub(r"^[abciow]/", "", name)
            for path in dict.fromkeys((plain, name)):
                yield "write", path
            if re.search(
                rf"^rename from {re.escape(plain)}$|^--- (?:a/)?{re.escape(plain)}\b.*\n\+\+\+ /dev/null",
                text,
                re.MULTILINE,
            ):
                yield "delete", plain


def _record(call: GuardedCall, recorder: Recorder, access: Access, path: str, *, tree: bool = False) -> None:
    absolute = spelled(path, call.cwd, call.home)
    recorder.path(PathEffect(absolute, call.machine.real(absolute), access, call.tool_name, tree=tree))
