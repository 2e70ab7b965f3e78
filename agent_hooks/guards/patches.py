"""The names of the files that a patch changes: a diff, or a patch of `apply_patch`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_hooks.guards.lazy import lazy_pattern

BLANKS = (
    " \t\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that a program which applies patches drops at the ends of a line."""
MARKER = lazy_pattern(rf"^[{BLANKS}]*\*\*\*.*$", re.MULTILINE)
"""Matches each line that may be a header of `apply_patch`."""
HEADER = lazy_pattern(
    rf"([{BLANKS}]*)\*\*\*[ \t]*(?:(\w+)[ \t]+file|(?:move|rename|copy)[ \t]+to)[ \t]*:(.*)", re.IGNORECASE | re.DOTALL
)
"""Matches a header that names a file: the blanks before it, the verb, `None` for a move, and the rest of the line."""
# `patch` accepts a patch that is indented, by blanks or by X.
_HEADER = lazy_pattern(
    r"^[ \tX]*(---|\+\+\+|\*\*\*|Index:|rename (?:from|to)|copy (?:from|to)|diff --git)[ \t]+(\S.*)$",
    re.MULTILINE,
)
# It matches at each quote, also at one that is never closed, so that no text is read twice.
_QUOTED = lazy_pattern(r'"((?:[^"\\]|\\.)*+)("?)')


def patched_names(text: str) -> tuple[str, ...]:
    """Return the names of the files in the headers of a patch, with the prefixes that `-p1` leaves out."""
    found: dict[str, None] = {}
    for header, rest in _HEADER.findall(text):
        names = (
            (*_halves(rest), *_pieces(rest))
            if header == "diff --git"
            else (whole_name(rest), *_pieces(rest.split("\t", 1)[0]))
        )
        # The names of a rename have no prefix.
        found.update((f"a/{name}" if header[0] in "rc" else name, None) for name in names)
    return (*found, *applied_names(text))


def applied_names(text: str) -> tuple[str, ...]:
    """Return the paths in the headers of a patch of `apply_patch`, in each reading."""
    if "***" not in text:
        return ()
    headers = (HEADER.fullmatch(marker[0]) for marker in MARKER.finditer(text))
    return tuple(dict.fromkeys(path for header in headers if header for path in readings(header[3])))


def readings(path: str) -> list[str]:
    """Return the paths that the text after a header's colon may mean; some programs end a path at its own colon."""
    whole = path.strip(BLANKS)
    short = whole.partition(":")[0].strip(BLANKS)
    return [each for each in dict.fromkeys((whole, short)) if each]


def whole_name(rest: str) -> str:
    """Return the name in the rest of a header that holds one name, which may have blanks."""
    quoted = _QUOTED.match(rest)
    return _unquoted(quoted[1]) if quoted and quoted[2] else rest.split("\t", 1)[0].rstrip()


def _unquoted(text: str) -> str:
    data = re.sub(
        rb"\\(?:([0-7]{1,3})|(.))",
        lambda found: bytes([int(found[1], 8) & 255]) if found[1] else found[2],
        text.encode("utf-8", "surrogatepass"),
        flags=re.DOTALL,
    )
    return data.decode("utf-8", "surrogateescape")


def _halves(text: str) -> tuple[str, ...]:
    """Return the two names in a header that may have blanks; git tells them apart if they differ in their prefix only."""
    text = "" if text.startswith('"') else text.rstrip("\r")
    half = len(text) // 2
    old, blank, new = text[:half], text[half : half + 1], text[half + 1 :]
    return (old, new) if blank == " " and old.partition("/")[2] == new.partition("/")[2] != "" else ()


def _pieces(text: str) -> Iterator[str]:
    """Yield the names in a header: quoted ones, or the words."""
    words, at = [], 0
    for quoted in _QUOTED.finditer(text):
        words += [text[at : quoted.start()], "" if quoted[2] else quoted[1]]
        at = quoted.end()
        if quoted[2]:
            yield _unquoted(quoted[1])
    yield from " ".join([*words, text[at:]]).split()
