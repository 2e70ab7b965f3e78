"""Text for a terminal whose locale has no UTF-8: each character becomes one of ASCII that is as wide.

Because the widths stay, a line that fits, and a cursor that stands somewhere in it, are right with the fallbacks too.
"""

from __future__ import annotations

import os
from functools import cache

# Our own marks, lines and quotes.  After a command, `>` for an arrow would look like a part of it.
_FALLBACKS = str.maketrans("⏎•→←↑↓…·─━│┃▌▏┌┐└┘├┤┬┴┼“”‘’–—×✓✗", "|*=<^v~.--||||+++++++++\"\"''--x+x")  # noqa: RUF001  # they are meant


@cache
def shows_utf8() -> bool:
    """Tell whether the locale of this process has UTF-8; without any locale it has, as today's terminals do."""
    name = os.environ.get("LC_ALL") or _given_ctype() or os.environ.get("LANG") or ""
    language, _, charset = name.partition(".")
    if charset:
        return charset.partition("@")[0].replace("-", "").casefold() == "utf8"
    return language not in ("C", "POSIX")


def _given_ctype() -> str:
    """Return `LC_CTYPE` as this process got it: in the locale C, Python sets it to UTF-8 for itself (PEP 538)."""
    value = os.environ.get("LC_CTYPE", "")
    if value and os.environ.get("LANG", "C") in ("C", "POSIX"):
        try:
            with open("/proc/self/environ", "rb") as file:
                given = file.read().split(b"\0")
        # Other systems do not tell.
        except OSError:
            return value
        return value if f"LC_CTYPE={value}".encode() in given else ""
    return value


def shown_in(text: str) -> str:
    """Return a text as the terminal can show it."""
    return text if text.isascii() or shows_utf8() else fallback(text)


def fallback(text: str) -> str:
    """Return a text in ASCII: a letter without its accents, our own marks by similar ones, all others as `?`."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else _similar(char) for char in text.translate(_FALLBACKS))


def _similar(char: str) -> str:
    # Imported here, because most terminals have UTF-8.
    import unicodedata

    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return ""
    first = unicodedata.normalize("NFKD", char)[0]
    if unicodedata.east_asian_width(char) in "WF":
        return "??"
    return first if first.isascii() and first.isprintable() else "?"
