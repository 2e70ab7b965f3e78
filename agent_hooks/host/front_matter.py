"""The head of a Markdown file, between two lines `---`, and its `description`."""

from __future__ import annotations

import re

_HEAD = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)


def parted(text: str) -> tuple[str, str]:
    """Return the head of a text, empty where it has none, and the rest."""
    match = _HEAD.match(text)
    return (match[1], text[match.end() :].strip()) if match else ("", text)


def value(head: str, key: str) -> str:
    """Return the value of a key on one line, without its quotes; empty where it is missing.

    A value of several lines, which begins with `>` or `|`, is its first paragraph as one line.
    """
    match = re.search(rf"^{re.escape(key)}:[ \t]*(.*(?:\n[ \t]+.+)*)", head, re.MULTILINE)
    if match is None:
        return ""
    return " ".join(match[1].lstrip("|>-+ \t").split()).strip("\"'")
