"""Plain names of programs: without directory, in small letters, with look-alikes of ASCII as ASCII."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.words import Word

SHELLS = {"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh"}
LANGUAGES = lazy_pattern(
    r"(python|pypy|perl|ruby|node|nodejs|php|lua|deno|bun|osascript|tclsh|rscript|pwsh|powershell)[\d.]*"
)
DECISIONS = ("trust", "untrust", "unlock", "install", "uninstall", "new", "disable", "enable")
"""The verbs of our command that are decisions of a person."""
UNDOING = ("undo", "restore", "prune")
"""The verbs of `agent-hooks checkpoints` that change files or forget checkpoints."""
# The Unicode categories of invisible characters.
_HIDDEN = {"Cf", "Zs", "Zl", "Zp", "Cc", "Co", "Cn"}
# Cyrillic letters, Greek letters and dashes that look like ASCII.
_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u04cf\u051b\u051d"
    "\u0261\u03b1\u03bf\u03bd\u03c1\u03c4\u03c5\u03ba\u217c\u2215\u2010\u2011\u2013\u2014\u2212",
    "aeopcyxijsdhlqwgaovptukl/-----",
)


@lru_cache(1024)
def is_language(name: str) -> bool:
    """Return whether a plain name is that of a language whose code is judged."""
    return LANGUAGES.fullmatch(name) is not None


def plain_name(word: Word) -> tuple[str, bool]:
    """Return the plain name of the program that a command word runs, and whether the word disguises it."""
    name, disguised = word.rpartition("/")[2] if "/" in word else str(word), False
    if not name.isascii() and UNKNOWN not in name:
        plain = unicodedata.normalize("NFKC", name).lower().translate(_ALIKE)
        hidden = "".join(char for char in plain if unicodedata.category(char) not in _HIDDEN)
        disguised = hidden != plain or (hidden != name.lower() and hidden.isascii())
        name = hidden
    return name.lower().removesuffix(".exe"), disguised
