"""Make text from hooks, tools and models safe for a terminal.

`harmless` shows every control character, for text that a person judges.  `uncoloured` and `coloured` are for text that a
person reads: the sequences that only set colours do nothing to a terminal, so they are dropped or kept instead of shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Compiled at its first use, because that takes longer than judging an event.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
# SGR, ECMA-48 8.3.117: colours and the weight of letters, and nothing else.
_COLOURS = r"\x1b\[([0-9;:]*)m"
# Bold, dim, italic, underlined, struck, and the ends of these; the colours of letters.
_KEPT = {*range(5), 9, *range(22, 25), 29, *range(30, 38), 39, *range(90, 98)}


def harmless(text: str) -> str:
    r"""Return text with control characters as escapes (`\x1b`), except tab and newline.

    The output of a tool must not control the terminal, and characters that change the direction of writing must not
    disguise a command.
    """
    return re.sub(_CONTROL, lambda match: match[0].encode("unicode_escape").decode(), text)


def uncoloured(text: str) -> str:
    """Return text without its colours, and otherwise harmless."""
    return harmless(re.sub(_COLOURS, "", text) if "\x1b" in text else text)


def coloured(text: str) -> str:
    """Return text with the colours of its letters, and otherwise harmless.

    Backgrounds, blinking and concealed letters are dropped, because they can make text invisible.
    """
    if "\x1b" not in text:
        return harmless(text)
    return "".join(f"\x1b[{each}m" if is_colour else harmless(each) for is_colour, each in _parts(text))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a text: the kept parameters of a colour, or the text between two of them."""
    for index, part in enumerate(re.split(_COLOURS, text)):
        if index % 2 == 0:
            yield False, part
        elif kept := _kept(part):
            yield True, kept


def _kept(parameters: str) -> str:
    """Return the parameters of a colour sequence that are kept, empty when none is."""
    kept: list[str] = []
    numbers = re.split("[;:]", parameters)
    while numbers:
        number = numbers.pop(0)
        if number in ("38", "48"):
            # A colour of the table has one more number, a colour by its parts has three.
            length = {"5": 2, "2": 4}.get(numbers[0] if numbers else "", 0)
            extended, numbers = numbers[:length], numbers[length:]
            if number == "38" and length and len(extended) == length:
                kept += [number, *(each[:3] for each in extended)]
        elif not number or int(number[:4]) in _KEPT:
            kept.append(number or "0")
    return ";".join(kept)


def overwritten(line: str) -> str:
    """Return a line as a terminal would show it after its carriage returns: the text after the last one."""
    return line.rstrip("\r").rpartition("\r")[2]
