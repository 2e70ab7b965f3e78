"""The search of one text: each rule is tried on the parts of the text that the rules before it have left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent_hooks.redaction.rules import EDGE, Secret, SecretRule, Span


class Search:
    """The secrets that are found in a text.

    `marks`: the spans of the marks of an earlier redaction, in which no rule is tried.
    """

    def __init__(self, text: str, marks: Iterable[Span]) -> None:
        self._text = text
        self._taken = list(marks)
        self._secrets: list[Secret] = []

    def secrets(self) -> tuple[Secret, ...]:
        """Return the secrets, in order."""
        return tuple(sorted(self._secrets, key=lambda secret: secret.start))

    def add(self, rule: SecretRule) -> None:
        """Add the secrets of a rule."""
        spans = list(self._spans(rule, 0, self._masked()) if rule.framed else self._in_pieces(rule))
        if spans:
            self._secrets += [Secret(rule.kind, start, end) for start, end in spans]
            self._taken = sorted([*self._taken, *spans])

    def _in_pieces(self, rule: SecretRule) -> Iterator[Span]:
        """Yield the spans of a rule's secrets in each part of the text that is left."""
        for offset, piece in self._pieces():
            if not rule.literals or not self._taken or any(literal in piece for literal in rule.literals):
                yield from self._spans(rule, offset, piece)

    def _spans(self, rule: SecretRule, offset: int, piece: str) -> Iterator[Span]:
        last = 0
        for start, end in rule.find(piece):
            # Two literals of one rule: the second lies within the match of the first.
            if start >= last:
                yield offset + start, offset + end
                last = end

    def _pieces(self) -> Iterator[tuple[int, str]]:
        """Yield the parts of the text that are left, each with its place."""
        last = 0
        for start, end in [*self._taken, (len(self._text), 0)]:
            if last < start:
                yield last, self._text[last:start]
            last = end

    def _masked(self) -> str:
        """Return the text with `EDGE` in place of each character that is a secret already."""
        parts, last = [], 0
        for start, end in self._taken:
            parts += [self._text[last:start], EDGE * (end - start)]
            last = end
        return "".join([*parts, self._text[last:]]) if parts else self._text
