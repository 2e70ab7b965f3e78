"""Text from hooks, tools and models, made fit for a terminal.  Above: ui, cli.  Below: nothing."""

from __future__ import annotations

import re

# compiled when first used, which takes longer than to judge an event
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"


def harmless(text: str) -> str:
    r"""Return text with control characters as escapes (`\x1b`), but for tab and newline.

    What a tool printed must not drive the terminal, and what turns the direction of writing must not dress up a command.
    """
    return re.sub(_CONTROL, lambda match: match[0].encode("unicode_escape").decode(), text)
