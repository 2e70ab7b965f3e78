"""Find the faults of a commit's subject: its length, its form and its mood.

The mood is a heuristic: the first word after the colon must not look like another form of a verb, or be an article.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LENGTH = 72
_FORM = re.compile(r"[\w./*-]+(?:(?:, | and | )[\w./*-]+)?: (\S+)")
_GENERATED = re.compile(r'Revert "|(?:fixup|squash|amend)! ')
# fmt: off
_BASE_FORMS = frozenset({
    "alias", "bias", "bring", "canvas", "cling", "embed", "exceed", "feed", "focus", "heed", "need", "ping", "proceed",
    "ring", "seed", "shed", "speed", "spring", "string", "succeed", "swing", "weed",
})
# fmt: on


def faults(subject: str) -> Iterator[tuple[str, str]]:
    """Yield each fault by name, with the form to write instead. Subjects that git generates have none."""
    if _GENERATED.match(subject):
        return
    if len(subject) > LENGTH:
        yield "subject-length", f"at most {LENGTH} characters, not {len(subject)}"
    if ";" in subject:
        yield "subject-semicolon", "two commits, or one fact"
    form = _FORM.match(subject)
    if form is None:
        yield "subject-form", "area: what changes, for example: guards: allow rm of build output"
    elif not _is_imperative(form[1].lower()):
        yield "subject-mood", f"the imperative, as in: guards: allow rm of build output (not {form[1]!r})"


def _is_imperative(word: str) -> bool:
    if word in ("the", "a", "an"):
        return False
    return word in _BASE_FORMS or word.endswith("ss") or not re.fullmatch(r"[a-z]+(?:s|ed|ing)", word)
