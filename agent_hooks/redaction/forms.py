"""The forms of credentials: functions that return rules for tokens, for secrets behind a label, and for other forms."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from agent_hooks.redaction.rules import SecretRule, spans_of

_COLOURS = (r"\x1b\[m", r"\x1b\[K", r"\x1b\[\dm", r"\x1b\[\d\dm", r"\x1b\[\d;\d\dm", r"\x1b\[\d\d;\d\dm")
_WORD = r"[A-Za-z0-9_-]*+"
# Tokens differ from words of prose and code: they have a digit.
DIGIT = r"(?=[A-Za-z._~+/=-]{0,64}[0-9])"
URL_SAFE = "A-Za-z0-9_-"
BASE64 = r"[A-Za-z0-9+/_=-]*+"
# The sign between a name and a value.
IS = r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
# An `@` with a password before it.  All rules for such passwords have this sign, so its first place shows them all.
BEFORE_AT = r"""(?<=[^\s/"']@)"""
# The secret of an example: `ghp_xxxxxxxx`.
_NO_MASK = "(?!x{8}|X{8})"
# The next characters of a token, which is long in all its forms.
_LONG = r"(?=[\w+/=%@.~-]{16})"


def tokens(
    kind: str, literals: Sequence[str], body: str, of: str = "", *, anchor: str = "", rest: str = _WORD
) -> SecretRule:
    """Return the rule for tokens that begin with a literal.

    `body`: the pattern of the rest; `of`: the characters that the body may have, letters and digits unless given;
    `anchor`: the rare character or text that each literal holds, its last character unless given; `rest`: the rest of the
    token's word, which is hidden too.  Behind an anchor that is the last character, the body has 16 characters of `of`.
    """
    characters = of or "A-Za-z0-9"
    patterns = (
        f"{re.escape(each)}{_not_within(characters, re.escape(each))}{_NO_MASK}{body}{rest}" for each in literals
    )
    rule = SecretRule(kind, tuple(literals), spans_of(patterns))
    if anchor or literals[0][-1] not in "_-.":
        return anchored(rule, anchor, _LONG)
    end = literals[0][-1]
    ahead = f"[{of or ('A-Za-z0-9' if end == '_' else URL_SAFE)}]{{16}}"
    return replace(rule, end=end, ahead=ahead)


def anchored(rule: SecretRule, anchor: str, sign: str = "") -> SecretRule:
    """Return the rule, whose literals are found at their first `anchor`, with `sign` behind; the same without one."""
    return replace(rule, end=anchor, sign=sign) if anchor else rule


def labelled(kind: str, literals: Sequence[str], rest: str, *, anchor: str, sign: str = "") -> SecretRule:
    """Return the rule for secrets that follow a label, one of the literals; only the group in `rest` is hidden.

    `anchor`: the rare character or text that each literal holds; `sign`: the first part of `rest`, where labels without
    a secret are common.
    """
    find = spans_of(f"{re.escape(literal)}{rest}" for literal in literals)
    return anchored(SecretRule(kind, tuple(literals), find), anchor, sign)


def found(kind: str, literals: Sequence[str], pattern: str, anchor: str, ahead: str = "", sign: str = "") -> SecretRule:
    """Return the rule for secrets whose form has no fixed beginning.

    `ahead`: the pattern for the text behind the `anchor`, empty where each literal holds the anchor; `sign`: a pattern
    for the text around.
    """
    return SecretRule(kind, tuple(literals), spans_of([pattern]), anchor, "", ahead, sign)


def begins(characters: str) -> str:
    """Return a pattern that matches where a word of some characters begins: also behind the end of a colour code."""
    return f"(?:(?<![{characters}])|{'|'.join(f'(?<={colour})' for colour in _COLOURS)})"


def _not_within(kind: str, literal: str) -> str:
    """Return a pattern that matches behind `literal` when the literal begins a word.

    That is: before it stands no character of `kind`, or the end of a colour code.
    """
    before = "|".join(f"(?<={colour}{literal})" for colour in _COLOURS)
    return f"(?:(?<![{kind}]{literal})|{before})"
