"""Finds the row that a transcript made for a call whose record comes later.

The person may answer a question minutes after the agent wrote the call into its transcript, for example.  The record then
joins that row, by the client's id of the call; without one by the tool and the digest of the input, as in `sessions`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from agent_hooks.look.index.book import Book
from agent_hooks.look.index.columns import FROM_TRANSCRIPT

_ROWS = "SELECT row, call, digest FROM calls WHERE file = 0 AND lane IN (SELECT value FROM json_each(?)) ORDER BY row"


class Alone:
    """The rows of one session that only its transcript has.

    `digest_of`: returns the digest of a row's input, for the rows of a time at which there was no key for digests.
    """

    def __init__(self, book: Book, client: str, session: str, digest_of: Callable[[int], int | None]) -> None:
        self._digest_of = digest_of
        self._columns = book.columns
        # Rows with the client's id of a call, in order.  A model may use an id again.
        self._by_call: dict[str, list[int]] = {}
        self._digests: dict[int, int | None] = {}
        lanes = book.lanes_of(client, session)
        for row, call, digest in book.connection.execute(_ROWS, (json.dumps(lanes),)) if lanes else ():
            if book.columns.flags[row] & FROM_TRANSCRIPT:
                self._by_call.setdefault(call, []).append(row)
                self._digests[row] = digest

    def __len__(self) -> int:
        return len(self._digests)

    def by_call(self, call: str) -> int | None:
        """Return and forget the first row with the client's id of a call."""
        rows = self._by_call.get(call) if call else None
        if not rows:
            return None
        del self._digests[rows[0]]
        return rows.pop(0)

    def by_input(self, tool: int, digest: int | None, time: float) -> int | None:
        """Return and forget the row with the same tool and input; of several the one that is nearest in time."""
        if digest is None:
            return None
        rows = [row for row in self._digests if self._columns.tool[row] == tool and self._has(row, digest)]
        row = min(rows, key=lambda each: abs(self._columns.time[each] - time), default=None)
        if row is not None:
            del self._digests[row]
            for rows in self._by_call.values():
                if row in rows:
                    rows.remove(row)
        return row

    def _has(self, row: int, digest: int) -> bool:
        if self._digests[row] is None:
            self._digests[row] = self._digest_of(row)
        return self._digests[row] == digest
