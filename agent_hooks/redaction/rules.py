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
Finder = Callable[[str], Iterable[Span]]
"""Returns the spans of the secrets in a text, in order and without overlaps."""


class SecretRule(Struct, frozen=True):
    """How one kind of secret is found.

    `literals`: a text that holds none of them has no such secret; empty when the rule must always be tried.
    `end`, `before`, `sign`: a shortcut.  Each literal holds the rare character `end`, after one of the characters
    `before`; `sign` is a pattern for the text at `end`.  One search for `end` then shows whether any rule with this
    `end` can match.
    """

    kind: str
    literals: tuple[str, ...]
    find: Finder
    end: str = ""
    before: str = ""
    sign: str = ""


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
