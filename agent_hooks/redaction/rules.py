"""The two values of redaction: a secret that was found, and a rule that finds secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial

from msgspec import Struct


class Secret(Struct, frozen=True):
    """The kind and the place of one secret in a text, without the secret itself."""

    kind: str
    start: int
    end: int


Span = tuple[int, int]
EDGE = "\0"
Finder = Callable[[str], Iterable[Span]]
"""Returns the spans of the secrets in a text, in order and without overlaps."""


class SecretRule(Struct, frozen=True):
    """How one kind of secret is found.

    `literals`: a text that holds none of them has no such secret; empty when the rule must always be tried.
    `end`, `before`, `ahead`, `sign`: a shortcut (`signs`).  `end` is the anchor, a rare character or short text.  Either
    each literal holds it, and `sign` is a pattern for the text behind the literal; or one of the characters `before`
    stands in front of it, a match of the pattern `ahead` behind it, and `sign` looks around.
    `framed`: the rule depends on the text around a secret, so it is tried on the whole text, in which the character
    `EDGE` stands for each character of the secrets that are known already.  Any other rule is tried on each part of the
    text between those.
    """

    kind: str
    literals: tuple[str, ...]
    find: Finder
    end: str = ""
    before: str = ""
    ahead: str = ""
    sign: str = ""
    framed: bool = False


def pattern_rule(kind: str, literals: tuple[str, ...], pattern: str) -> SecretRule:
    """Return the rule whose secrets are the whole matches of a pattern, which is compiled when it is first needed."""
    compiled = cache(partial(re.compile, pattern))
    return SecretRule(kind, literals, lambda text: (match.span() for match in compiled().finditer(text)))


def spans_of(patterns: Iterable[str]) -> Finder:
    """Return the finder for some patterns: their groups, or whole matches where a pattern has no group.

    The patterns are compiled when they are first needed, because most processes meet few kinds of secrets.
    """
    sources = tuple(patterns)

    @cache
    def compiled() -> list[re.Pattern[str]]:
        return [re.compile(source, re.ASCII) for source in sources]

    def find(text: str) -> list[Span]:
        return sorted(match.span(match.lastindex or 0) for pattern in compiled() for match in pattern.finditer(text))

    return find


def searchable(text: str) -> bytes:
    """Return a text as bytes of the same length, with `?` for each wide character."""
    return text.encode("ascii", "replace")
