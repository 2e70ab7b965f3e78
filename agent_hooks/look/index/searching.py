"""Searches the texts of calls: the rows that hold all words, in any case, anywhere.

The index knows the groups of three letters in each text.  It gives the rows that have all groups of the words, and the
few of them in which the groups stand apart are left out by a look at their text.
"""

from __future__ import annotations

import json
import sqlite3
from itertools import islice

from agent_hooks.look.index.book import searchable

_GROUP = 3
# Rows whose texts are looked at in one question, and at most.
_STEP = 200
_MOST = 20_000
_TEXTS = "SELECT row, command, more FROM calls WHERE row IN (SELECT value FROM json_each(?))"
# Bytes of a search that count.
_LONGEST = 400


def search(connection: sqlite3.Connection, text: str, limit: int) -> list[int]:
    """Return the rows whose command, tool, reason or hook holds all words of `text`, the newest row first."""
    words = list(dict.fromkeys(text.lower()[:_LONGEST].split()))
    query = _query(words)
    if not words or limit <= 0:
        return []
    if not query:
        rows = connection.execute("SELECT row FROM calls ORDER BY row DESC")
    else:
        rows = connection.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC", (query,))
    found: list[int] = []
    looked = 0
    while looked < _MOST and len(found) < limit and (part := [row for (row,) in islice(rows, _STEP)]):
        looked += len(part)
        texts = connection.execute(_TEXTS, (json.dumps(part),))
        known = {row: searchable(command, more) for row, command, more in texts}
        found += [row for row in part if all(word in known.get(row, "") for word in words)]
    return found[:limit]


def _query(words: list[str]) -> str:
    """Return the question for the groups of letters; words of one letter have none."""
    parts: dict[str, None] = {}
    for word in words:
        if len(word) == _GROUP - 1:
            # Alone, or at the beginning or the end of a word.
            parts[f"({_quoted(f' {word}')} OR {_quoted(f'{word} ')})"] = None
        for at in range(len(word) - _GROUP + 1):
            parts[_quoted(word[at : at + _GROUP])] = None
    return " AND ".join(parts)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
