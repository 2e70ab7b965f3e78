"""Secrets, the rules that find them, and the signs of rules: one search of a long text shows which rules can match.

An anchor is a rare character, or a short text, that the literals of some rules hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property, partial

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


# Characters of a text for each place of an anchor that is tried singly; with more places, one search is faster.
_RARE = 4096
# Characters of a text that is long enough for that.
_LONG = 16 * 1024
# Fewer characters in front of an anchor rule many of its places out.
_FEW = 40
# Frequent characters, the rarer ones first.  All others are rarer still.
_FREQUENCY = "/=5439uhpdgmc:lsrniaote "
_NONE: frozenset[int] = frozenset()


class Sign:
    """The signs of all rules with one anchor.

    `end`: the anchor.  The pattern begins with it, because `re` finds a single character fastest; it is compiled when it
    is first needed.  It searches the bytes of a text, in which one `?` stands for each wide character.
    """

    def __init__(self, end: str, rules: Sequence[SecretRule]) -> None:
        self.end = end.encode()
        self._rarest = min(end, key=_FREQUENCY.find).encode()
        mine = [(number, rule) for number, rule in enumerate(rules) if rule.end == end]
        runs = [(number, rule) for number, rule in mine if rule.ahead.endswith("{16}")]
        # Of the patterns ahead, the one for a long word is the same for several rules, and rules all of them out at once.
        self._runs = [
            (number, f"(?<={re.escape(before)}){rule.sign}()")
            for number, rule in runs
            for before, _ in _places_of(rule)
        ]
        # The signs that only look around stand behind those of literals.
        others = sorted(mine, key=lambda each: _places_of(each[1]) == [(end, "")])
        self._others = [
            (number, sign) for number, rule in others if (number, rule) not in runs for sign in _signs_of(rule)
        ]
        pairs = [before[:-1][-2:] for _, rule in runs for before, _ in _places_of(rule)]
        two = _one_of(pair[:1] for pair in pairs) + _one_of(pair[1:] for pair in pairs)
        self._two_before = f"(?<={two}{re.escape(end)})" if all(len(pair) == 2 for pair in pairs) else ""
        self._characters = "".join(sorted({rule.ahead[1:-5].rstrip("-") for _, rule in runs})) + "-"
        self._numbers = {number for number, _ in mine}
        # The characters before the anchor; an empty one when some rule needs none.
        self._before = {char for _, rule in mine for char in _before(rule)}
        # A match shows the first rule whose sign is at a place, so each rule stands for later ones there.
        places = {number: _places_of(rule) for number, rule in mine}
        order = [number for number, _ in (*self._runs, *self._others)]
        self._found = [
            {other for other in order[at:] if _meet(places[number], places[other])} for at, number in enumerate(order)
        ]

    @cached_property
    def source(self) -> str:
        """The pattern, which begins with the anchor."""
        alternatives, end = [sign for _, sign in self._others], re.escape(self.end.decode())
        if self._runs:
            here = "|".join(sign for _, sign in self._runs)
            alternatives.insert(0, f"{self._two_before}(?=[{self._characters}]{{16}})(?:{here})")
        few = "" not in self._before and len(self._before) < _FEW
        before = f"(?<={_one_of(self._before)}{end})" if few else ""
        return f"{end}{before}(?:{'|'.join(alternatives)})"

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(self.source.encode())

    def numbers_in(self, data: bytes) -> AbstractSet[int]:
        """Return the numbers of the rules that a text has a sign of; `data`: the text, as `searchable` returns it."""
        # For one character `find` is much faster than a pattern.
        at = data.find(self._rarest)
        if at < 0:
            return _NONE
        if len(data) > _LONG and len(self.end) == 1:
            return self._in_long(data, at)
        at = max(0, at - len(self.end))
        return self._from(data, at) if self._pattern.search(data, at) else _NONE

    def _from(self, data: bytes, at: int) -> set[int]:
        found: set[int] = set()
        for match in self._pattern.finditer(data, at):
            found |= self._found[(match.lastindex or 1) - 1]
            if found == self._numbers:
                break
        return found

    def _in_long(self, data: bytes, at: int) -> set[int]:
        """Return the numbers for a long text, in which the places of a rare character are tried one by one."""
        found: set[int] = set()
        for _ in range(len(data) // _RARE):
            if match := self._pattern.match(data, at):
                found |= self._found[(match.lastindex or 1) - 1]
            at = data.find(self.end, at + 1)
            if at < 0:
                return found
        return found | self._from(data, at)


def _places_of(rule: SecretRule) -> list[tuple[str, str]]:
    """Return the parts of a rule's literals up to the anchor and behind it."""
    long = len(rule.end)
    last = all(literal.endswith(rule.end) for literal in rule.literals) and rule.ahead.endswith("{16}")
    places = [
        (each, (each.rindex if last else each.index)(rule.end) + long) for each in rule.literals if rule.end in each
    ]
    return [(literal[:at], literal[at:]) for literal, at in places] or [(rule.end, "")]


def _meet(some: Iterable[tuple[str, str]], others: Iterable[tuple[str, str]]) -> bool:
    """Tell whether two rules can have a sign at the same place: one literal continues the other on both sides."""
    return any(
        (before.endswith(other) or other.endswith(before)) and (behind.startswith(rest) or rest.startswith(behind))
        for before, behind in some
        for other, rest in others
    )


def _one_of(characters: Iterable[str]) -> str:
    """Return a pattern for one of some characters."""
    return f"[{re.escape(''.join(sorted(set(characters))))}]"


def _before(rule: SecretRule) -> set[str]:
    """Return the characters before a rule's anchor, with an empty one when it needs none."""
    if rule.before or (rule.ahead and not rule.ahead.endswith("{16}")):
        return set(rule.before) or {""}
    return {before[: -len(rule.end)][-1:] for before, _ in _places_of(rule)}


def _signs_of(rule: SecretRule) -> list[str]:
    """Return the patterns for the signs of a rule behind its anchor, each with an empty group at its end.

    The text behind the anchor comes first, because `re` skips an alternative whose first character does not fit.
    """
    if rule.ahead or rule.before:
        before = f"(?<=[{re.escape(rule.before)}]{re.escape(rule.end)})" if rule.before else ""
        return [f"{before}(?={rule.ahead}){rule.sign}()"]
    return [
        re.escape(behind) + (f"(?<={re.escape(before + behind)})" if before != rule.end else "") + f"{rule.sign}()"
        for before, behind in _places_of(rule)
    ]
