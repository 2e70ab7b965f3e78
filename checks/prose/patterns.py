"""The table of patterns: one row has a name, a regular expression, the words to write instead, and a limit.

The limits are shares of sentences. They were chosen by measuring the docstrings and comments of pytest, anyio, trio,
starlette, httpx2 and pluggy: their text passes. The verbs and the pronouns exclude innocent uses by the words around
them, so the table finds most uses and not all.

The first commit of this file is the point from which new text is judged, so its path has to stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from checks.prose.texts import TRAILING, Sentence

TOGETHER = 50
"""One sentence in so many may have a hit. Semicolons are left out of this sum: they have their own limit."""
SEMICOLON = "semicolon"


class Pattern(NamedTuple):
    """One construction to avoid, with an example in backticks. One sentence in `limit` may have it."""

    name: str
    regex: re.Pattern[str]
    wrong: str
    instead: str
    limit: int


def _row(name: str, regex: str, wrong: str, instead: str, limit: int = 200) -> Pattern:
    return Pattern(name, re.compile(regex, re.IGNORECASE), wrong, instead, limit)


_ALONE = (
    r"(?:(?: (?:again|also|as|for|from|here|if|once|only|since|then|there|too|until|when|where)\b)| ?[.,;](?:\s|$)|$)"
)
"""The end of a clause, or a word that is not the verb's object."""
_WHERE = r" (?:above|alone|at|before|behind|below|between|first|in|last|on|outside|still|there|under|where|within)\b"
_WAITS_FOR = r" (?:`|(?:a|an|at|briefly|for|forever|in|indefinitely|on|till|to|until|up|\d+)\b)"

PATTERNS = (
    _row("beside", r"\bbeside\b", "`a lock file beside the hook`", "next to, and, besides, in addition to"),
    _row(
        "in-place-of",
        r"\bin (?:the place of|(?:its|their|his) place)\b",
        "`a link in the place of a file`",
        "instead of, replaces",
    ),
    _row(
        "absolute-verb",
        "|".join(
            [
                r"\b(?:stands|stood)\b(?!-| (?:for|out|up|down|by|to)\b)",
                rf"(?<!\ba )(?<!\bthe )\bstand{_WHERE}|\b(?:lies|lie){_WHERE}",
                r"\bbears?\b(?! (?:in mind|with)\b)",
                r"\b(?:goes|go|went) on\b",
                rf"\bwaits\b(?!{_WAITS_FOR})",
                rf"\bholds(?: of\b|{_ALONE})|(?<!\bto )\bhold (?:also|for|only|too|when|where)\b",
                rf"(?<!\bthe )(?<!\bits )(?<!\ball )(?<!these )(?<!those )(?<!their )\bcounts{_ALONE}",
                rf"\b(?:not|only|still|also|that|which) count{_ALONE}",
                r"\b[a-z]+(?<!s)s count(?: (?:again|from|here|too|until|when|where)\b|[.,;](?:\s|$)|$)",
            ]
        ),
        "`the last row counts, and the rest waits`",
        "is, applies, continues, is trusted, is in force, is pending",
    ),
    _row(
        "pronoun-head",
        r"\b(?:those (?:of|that|which|whose|in|to)|that of|ones? (?:that|which|whose|in which))\b",
        "`the options are those of run`",
        "repeat the noun",
    ),
    _row(
        "is-no",
        r"(?<!\bthere )\b(?:is|are|was|were|be|been) (?-i:no\b(?!-| (?:longer|more|less|better|worse)\b)|none\b)",
        "`a file that is no transcript`",
        "is not a, has no, cannot",
    ),
    _row(
        "of-of",
        r"(?<!\binstead )\bof(?: [^\s.,:;()]+){1,4}?(?<! instead)(?<! because)(?<! outside)(?<! out) of\b(?! course)",
        "`the names of the tools of a server`",
        "the possessive 's, a compound noun, a verb",
    ),
    _row(
        "leading-of",
        r"^(?:(?-i:Of)|[\w./]+: of)\b(?! course)",
        "`Of two tools, the second wins.`",
        "begin with the subject",
    ),
    _row(SEMICOLON, r"[^\s`]; +\S|`; +[^\s`]", "`It stops; the next one runs.`", "a full stop, a list", limit=50),
    _row(
        "person",
        r"(?<!-)\b(?:persons?|people)\b",
        "`a person is asked`",
        "you in pages and printed texts, user in code",
    ),
    _row(
        "old-adverb",
        r"\b(?:anew|meanwhile|thereby|for good(?! \w)|again and again|gone on with|by (?:itself|themselves))\b",
        "`It is read anew.`",
        "again, in the meantime, permanently, resumed, alone",
    ),
    _row("tell-whether", r"^Tells? whether\b", "`Tell whether a file exists.`", "Return whether"),
    _row("ours", r"\bours\b", "`a tool of ours`", "agent_hooks', built-in"),
)


class Hit(NamedTuple):
    """A pattern in a sentence: its name, the sentence, and the words to write instead."""

    name: str
    sentence: Sentence
    instead: str


def hits(sentence: Sentence) -> Iterator[Hit]:
    """Yield the patterns of a sentence, each once."""
    if sentence.kind == "trailing":
        yield Hit("trailing", sentence, f"a comment above the line, or at most {TRAILING} characters")
        return
    for pattern in PATTERNS:
        if pattern.regex.search(sentence.masked):
            yield Hit(pattern.name, sentence, pattern.instead)
