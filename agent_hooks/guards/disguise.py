"""Names of files that look like other names: invisible characters, changes of direction, letters of another script."""

from __future__ import annotations

import re
import unicodedata

from agent_hooks.guards.lazy import lazy_pattern

# Formats, controls, separators and private characters; a blank is the only separator that a name may hold.
_HIDDEN = {"Cf", "Cc", "Zl", "Zp", "Co"}
# The joiner and the selectors of emoji and of scripts that need them.
_JOINING = lazy_pattern("[\u200c\u200d\ufe00-\ufe0f]")
# Blanks that systems put into names: before the half of the day in a screenshot's, and behind an ideograph.
_USUAL = lazy_pattern("(?<=[0-9])\u202f(?=[AaPp]\\.?[Mm])|(?<=[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af])\u3000")
# Cyrillic and Greek letters that look like Latin ones.
_ALIKE = lazy_pattern(
    "[\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u0410\u0412\u0415\u041a\u041c"
    "\u041d\u041e\u0420\u0421\u0422\u0425\u03b1\u03bf\u03bd\u03c1\u0391\u0392\u0395\u0396\u0397\u0399\u039a"
    "\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7]"
)


def disguised(path: str) -> bool:
    """Return whether a path holds a character that cannot be seen, or a letter that only looks like a Latin one."""
    if path.isascii():
        return any((char < " " and char != "\n") or char == "\x7f" for char in path)
    path = _USUAL.sub("", path)
    if any(_is_hidden(char, path[at - 1] if at else "") for at, char in enumerate(path)):
        return True
    return any(_ALIKE.search(word) and re.search("[A-Za-z]", word) for word in re.findall(r"\w+", path))


def _is_hidden(char: str, before: str) -> bool:
    if char.isascii():
        return char < " " or char == "\x7f"
    kind = unicodedata.category(char)
    if _JOINING.match(char):
        return before.isascii()
    if kind in _HIDDEN or kind == "Zs":
        return True
    # A full-width or a mathematical letter is another one's double.
    return kind[0] == "L" and unicodedata.normalize("NFKC", char).isascii() and kind != "Lm"
