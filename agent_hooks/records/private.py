"""Redacts and cuts the texts of a record, and describes rewrites as patches.

The redactor sees more of a text than is kept, so that a secret that crosses the limit is hidden whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from agent_hooks.errors import text_of
from agent_hooks.records.lines import Change
from agent_hooks.values.wire import to_json

if TYPE_CHECKING:
    from agent_hooks.redaction import Redactor, Secret

INPUT_LIMIT = 16 * 1024
"""Characters of an input that a line holds."""
TEXT_LIMIT = 2000
"""Characters of a reason, an answer or an error."""
# Characters behind the limit that the redactor sees.
_BEYOND = 16 * 1024
_CUT = "…"
# Characters at the end of an entry's name that the redactor sees with the entry's text.
_NAME = 100
# Levels of nesting of an input that are written.
_DEEPEST = 32
# Keys that are remembered.
_MOST_KEYS = 256
# Operations of one patch.
_MOST_CHANGES = 50
_encode = msgspec.json.Encoder(enc_hook=text_of).encode


class Cleaner:
    """Prepares texts and values for a record.

    `redactor`: finds the secrets, `None` keeps them; `limit`: characters of an input that are kept; `own`: the redactor
    has patterns of the person's own, which may match only at the beginning of a text.
    """

    def __init__(self, redactor: Redactor | None, limit: int = INPUT_LIMIT, *, own: bool = False) -> None:
        self._redactor = redactor
        self._own = own
        self.limit = limit
        # Keys of inputs in which no secret was found; tools have few.
        self._keys: set[str] = set()

    def text(self, text: str, limit: int = TEXT_LIMIT) -> str:
        """Return a text without its secrets, at most `limit` characters and a mark of the cut.

        A value of any other type counts as its text.
        """
        if type(text) is not str:
            text = text_of(text)
        if not text:
            return text
        text = _encodable(text)
        if self._redactor is None:
            return text if len(text) <= limit else text[:limit] + _CUT
        piece = text if len(text) <= limit else text[: limit + _BEYOND]
        redacted, secrets = self._redactor.redact(piece)
        if len(text) <= limit:
            return redacted
        parts, end = [], 0
        for secret in secrets:
            if secret.start >= limit:
                break
            parts += [piece[end : secret.start], f"[redacted {secret.kind}]"]
            end = secret.end
        rest = piece[end : max(limit, end)]
        # A key whose end is out of sight.
        begin = rest.find("-----BEGIN ")
        return "".join([*parts, rest if begin < 0 else rest[:begin], _CUT])

    def named(self, name: str, text: str, limit: int) -> str:
        """Return the text of an entry without its secrets; some are known only by the entry's name."""
        if self._redactor is None or not name or not text:
            return self.text(text, limit)
        begin = f"{name[-_NAME:]}="
        cleaned = self.text(begin + text, len(begin) + limit)
        if not cleaned.startswith(begin):
            return self.text(text, limit)
        rest = cleaned[len(begin) :]
        return self.text(rest, len(rest)) if self._own else rest

    def lines(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return a list without the secrets that cover several of its texts, one text a line.

        The end of a long list with such a secret is left out, because the secret may go on there.
        """
        if self._redactor is None or len(items) < 2:
            return items
        texts = list(self._first_texts(items))
        whole = "\n".join(texts)
        _, secrets = self._redactor.redact(whole)
        spans = [secret for secret in secrets if "\n" in whole[secret.start : secret.end]]
        return _without(items, texts, spans) if spans else items

    def _first_texts(self, items: Sequence[Any]) -> Iterator[str]:
        size = 0
        for item in items:
            yield _encodable(item[: self.limit + _BEYOND]) if isinstance(item, str) else ""
            size += len(item) + 1 if isinstance(item, str) else 1
            if size > self.limit + _BEYOND:
                return

    def hides(self, text: str) -> bool:
        """Tell whether a text holds a secret."""
        return self._redactor is not None and bool(self._redactor.redact(_encodable(text))[1])

    def json(self, value: Any, whole: bytes) -> tuple[bytes, bool]:
        """Return JSON data without its secrets, as JSON, and whether it was cut; `whole`: the data as JSON."""
        cleaned, cut = self.value(value)
        return (whole if not cut and cleaned == value else as_json(cleaned)), cut

    def value(self, value: Any) -> tuple[Any, bool]:
        """Return JSON data without its secrets, and whether it was cut to the limit."""
        if len(value) == 1 and isinstance(value, dict):
            # The commonest input of all: one text.
            ((key, only),) = value.items()
            if type(key) is str and type(only) is str and len(only) <= self.limit:
                return {(name := self._key(key)): self.named(name, only, self.limit)}, False
        walk = _Walk(self, self.limit)
        cleaned = walk.clean(value, 0)
        return cleaned, walk.cut

    def _key(self, key: str) -> str:
        if key in self._keys:
            return key
        cleaned = self.text(key)
        if cleaned == key and len(self._keys) < _MOST_KEYS:
            self._keys.add(key)
        return cleaned

    def patch(self, before: Any, after: Any) -> tuple[Change, ...]:
        """Return the operations that make `before` into `after`, their values redacted and cut."""
        changes = []
        for number, (op, path, value) in enumerate(_changes(before, after, "")):
            if number >= _MOST_CHANGES:
                changes.append(Change(op="replace", path="", value=_CUT))
                break
            cleaned = None if op == "remove" else _Walk(self, TEXT_LIMIT).named(path[path.rfind("/") + 1 :], value)
            changes.append(Change(op=op, path=self.text(path), value=cleaned))
        return tuple(changes)


class _Walk:
    """Cleans one value; all of its texts share the limit."""

    def __init__(self, cleaner: Cleaner, left: int) -> None:
        self._cleaner = cleaner
        self._left = left
        self.cut = False

    def clean(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            self._left -= 8
            return value
        if self._left <= 0 or depth > _DEEPEST:
            self.cut = True
            return _CUT
        if isinstance(value, Mapping):
            return dict(self._entry(key, each, depth) for key, each in self._some(value.items()))
        if isinstance(value, list | tuple):
            lines = self._cleaner.lines(value)
            self.cut = self.cut or len(lines) < len(value)
            return [self.clean(each, depth + 1) for each in self._some(lines)]
        return self._text(text_of(value))

    def named(self, name: str, value: Any) -> Any:
        """Return the clean value of an entry."""
        return self._text(value, name) if isinstance(value, str) else self.clean(value, 0)

    def _entry(self, key: object, value: Any, depth: int) -> tuple[str, Any]:
        name = self._key(key)
        return name, self._text(value, name) if isinstance(value, str) else self.clean(value, depth + 1)

    def _some(self, items: Any) -> Iterator[Any]:
        for item in items:
            if self._left <= 0:
                self.cut = True
                return
            self._left -= 4
            yield item

    def _text(self, text: str, name: str = "") -> str:
        limit = max(self._left, 0)
        self._left -= len(text)
        if len(text) > limit:
            self.cut = True
        return self._cleaner.named(name, text, limit)

    def _key(self, key: object) -> str:
        return self._text(key if isinstance(key, str) else text_of(key))


def _without(items: Sequence[Any], texts: list[str], secrets: list[Secret]) -> list[Any]:
    """Return a list whose texts lack their parts of some secrets; `texts`: the first items as they were joined."""
    kept, start = list(items[: len(texts)]), 0
    for index, text in enumerate(texts):
        parts, end = [], start
        for secret in secrets:
            if secret.start < start + len(text) and secret.end > start:
                parts += [text[end - start : max(secret.start - start, 0)], f"[redacted {secret.kind}]"]
                end = min(secret.end, start + len(text))
        if parts:
            kept[index] = "".join([*parts, text[end - start :]])
        start += len(text) + 1
    return kept


def as_json(value: Any) -> bytes:
    """Return the whole of an input as JSON, for its size and digest; odd parts become text."""
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return to_json(value)


def _encodable(text: str) -> str:
    """Return a text that UTF-8 can express; half of a surrogate pair becomes a question mark."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def _changes(before: Any, after: Any, path: str) -> Iterator[tuple[Any, str, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                yield "remove", f"{path}/{_pointer(key)}", None
        for key, value in after.items():
            if key not in before:
                yield "add", f"{path}/{_pointer(key)}", value
            else:
                yield from _changes(before[key], value, f"{path}/{_pointer(key)}")
    elif before != after or type(before) is not type(after):
        yield "replace", path, after


def _pointer(key: object) -> str:
    return text_of(key).replace("~", "~0").replace("/", "~1")
