"""Make text from hooks, tools and models safe for a terminal."""

from __future__ import annotations

import re

# Compiled at its first use, because that takes longer than judging an event.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"


def harmless(text: str) -> str:
    r"""Return text with control characters as escapes (`\x1b`), except tab and newline.

    The output of a tool must not control the terminal, and characters that change the direction of writing must not
    disguise a command.
    """
    return re.sub(_CONTROL, lambda match: match[0].encode("unicode_escape").decode(), text)
