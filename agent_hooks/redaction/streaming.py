"""Redaction of a text that comes in pieces and is kept as a whole: the file with the full output of a program."""

from __future__ import annotations

import codecs

from agent_hooks.redaction.redacting import Redactor

_LONGEST = 1024 * 1024
"""Characters of an unfinished line that are held back."""
_CARRY = 64 * 1024
"""Characters at the end of a longer line that stay held back, because a secret may begin there."""


class RedactedStream:
    """Takes the pieces of a text as bytes and returns the part that can be written, without secrets.

    A line without its end is held back, and so is an unfinished private key.  Bytes that are no UTF-8 stay as they are.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        """Return the bytes that can be written now; `final`: nothing follows, so nothing is held back."""
        text = self._held + self._decoder.decode(data, final)
        at = len(text) if final else self._redactor.unfinished(text)
        if len(text) - at > _LONGEST:
            at = self._place_in(text)
        self._held = text[at:]
        return self._redactor.redact(text[:at])[0].encode("utf-8", "surrogateescape")

    def _place_in(self, text: str) -> int:
        """Return an index near the end of a long text that no secret crosses."""
        at = len(text) - _CARRY
        _, secrets = self._redactor.redact(text)
        return next((each.start for each in secrets if each.start < at < each.end), at)
