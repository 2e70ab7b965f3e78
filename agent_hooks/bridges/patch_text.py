"""The patches of `apply_patch`, which begin with `*** Begin Patch`, as calls of our tools.

Several programs apply them, and each reads odd spacing in its own way.  Where two readings are possible, this module
takes both: each path that any of the programs could mean is in a part.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from agent_hooks.bridges.base.happenings import Part
from agent_hooks.guards.patches import BLANKS, HEADER, MARKER, readings

MOST_PARTS = 1000
"""The most parts of one call.  A call with more has parts that are unread."""
_BEGINS = re.compile(rf"^[{BLANKS}]*\*\*\*[ \t]*begin[ \t]+patch", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r"\*\*\*[ \t]*end[ \t]+patch", re.IGNORECASE)


class _Section:
    """One header of a patch with the lines below it."""

    def __init__(self, verb: str, path: str) -> None:
        self.verb = verb
        self.paths = readings(path)
        self.moves: list[str] = []
        self.old: list[str] = []
        self.new: list[str] = []

    def add(self, lines: Sequence[str]) -> None:
        """Add lines of hunks; lines that begin otherwise are none."""
        self.old += [line[1:] for line in lines if line[:1] in ("-", " ", "")]
        self.new += [line[1:] for line in lines if line[:1] in ("+", " ", "")]

    def parts(self) -> Iterator[Part]:
        for path in self.paths:
            if self.verb == "add":
                yield Part("write", {"path": path, "content": "".join(f"{line}\n" for line in self.new)})
            elif self.verb == "delete":
                yield from deletion(path)
            else:
                yield edit(path, self.old, self.new)
        for target in self.moves:
            yield Part("write", {"path": target, "content": "".join(f"{line}\n" for line in self.new)})
            for path in self.paths:
                yield move(path, target)


def parts_of(text: str) -> tuple[Part, ...]:
    """Return a patch in the format of `apply_patch` as calls of our tools, none for a text that is no such patch.

    A text that begins like a patch, and names no file, gives unread parts.
    """
    parts: list[Part] = []
    for section in _sections(text):
        parts += section.parts()
        if len(parts) > MOST_PARTS:
            return (*parts[:MOST_PARTS], *unread(f"the patch has more than {MOST_PARTS:,} parts"))
    if not parts and _BEGINS.search(text):
        return unread("the patch names no file that can be read")
    return tuple(parts)


def unread(reason: str) -> tuple[Part, ...]:
    """Return the parts of a call that may write any file.  `reason`: the sentence after "because"."""
    return Part("write", {}, reason), Part("edit", {}, reason)


def deletion(path: str) -> tuple[Part, ...]:
    """Return the parts that delete a file: gates of paths judge the `write`, and gates of commands the `rm`."""
    return Part("write", {"path": path, "content": ""}), Part("bash", {"command": shlex.join(("rm", "--", path))})


def move(path: str, target: str) -> Part:
    """Return the part that takes a file away from its path, beside a `write` of the new one."""
    return Part("bash", {"command": shlex.join(("mv", "--", path, target))})


def edit(path: str, old: Sequence[str], new: Sequence[str]) -> Part:
    """Return the part that changes lines of a file."""
    return Part("edit", {"path": path, "oldText": "\n".join(old), "newText": "\n".join(new)})


def _sections(text: str) -> Iterator[_Section]:
    """Yield the sections of a patch, each when it is complete.

    An indented header may be a line of the hunk above it.  Both readings are kept: `outer` is the section for which it is
    such a line, and `inner` the one that begins with it.
    """
    outer: _Section | None = None
    inner: _Section | None = None
    after = 0
    for marker in MARKER.finditer(text):
        _add(text[after : marker.start()], outer, inner)
        after = marker.end() + 1
        header = HEADER.fullmatch(marker[0])
        if header is None:
            if marker[0].startswith("***") and _END.match(marker[0]):
                yield from _complete(outer, inner)
                outer = inner = None
            continue
        indent, verb, path = header.groups()
        if verb is None and (latest := inner or outer):
            latest.moves += readings(path)
        elif not indent or outer is None:
            yield from _complete(outer, inner)
            outer, inner = _Section((verb or "").lower(), path), None
            continue
        else:
            yield from _complete(inner)
            inner = _Section((verb or "").lower(), path)
        if indent:
            _add(f"{marker[0]}\n", outer)
    _add(f"{text[after:]}\n", outer, inner)
    yield from _complete(outer, inner)


def _add(body: str, *sections: _Section | None) -> None:
    """Add whole lines, each with its end, to sections."""
    if not body or sections == (None, None):
        return
    lines = body.replace("\r\n", "\n").split("\n")[:-1]
    for section in sections:
        if section is not None:
            section.add(lines)


def _complete(*sections: _Section | None) -> Iterator[_Section]:
    return (section for section in sections if section is not None and (section.paths or section.moves))
