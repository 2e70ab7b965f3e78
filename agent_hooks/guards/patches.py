"""The names of the files that a patch changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

# `patch` accepts a patch that is indented, by blanks or by X.
_HEADER = re.compile(
    r"^[ \tX]*(---|\+\+\+|\*\*\*|Index:|rename (?:from|to)|copy (?:from|to)|diff --git)[ \t]+(.+?)[ \t\r]*$",
    re.MULTILINE,
)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")


def patched_names(text: str) -> tuple[str, ...]:
    """Return the names of the files in the headers of a patch, with the prefixes that `-p1` leaves out."""
    found: dict[str, None] = {}
    for header, rest in _HEADER.findall(text):
        names = _pieces(rest if header == "diff --git" else rest.split("\t")[0])
        # The names of a rename have no prefix.
        found.update((f"a/{name}" if header[0] in "rc" else name, None) for name in names)
    return tuple(found)


def _pieces(text: str) -> Iterator[str]:
    """Yield the names in a header: quoted ones, or the words."""
    for quoted in _QUOTED.findall(text):
        with suppress(ValueError):
            yield _ESCAPE.sub(lambda found: chr(int(found[1], 8) & 255) if found[1].isdigit() else found[1], quoted)
    yield from _QUOTED.sub(" ", text).split()
