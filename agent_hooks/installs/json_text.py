"""Edit the text of a JSON file as a person would: equal values keep their text, the others get its style."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, NoReturn

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def parse(text: str) -> Any:
    """Return the value of a JSON text, an empty object for an empty text.  Raises `ValueError` or `RecursionError`."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse) if text.strip() else {}


def edited(text: str, new: dict[str, Any]) -> str:
    """Return `text`, a JSON object that `parse` accepts, changed so that its value is `new`."""
    before, body, after = _trimmed(text) if text.strip() else ("", "{}", "\n")
    indent = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    form = _Form(indent[1] if indent else "  ", "\r\n" if "\r\n" in text else "\n")
    return before + form.changed(body, parse(body), new, 0) + after


class _Form(NamedTuple):
    """The layout of a file: its indentation and its line ends."""

    indent: str
    newline: str

    def changed(self, text: str, old: Any, new: Any, depth: int) -> str:
        """Return `text`, the text of `old`, changed into that of `new`."""
        if _same(old, new):
            return text
        if isinstance(old, dict) and isinstance(new, dict):
            members = _members(text)
            lines = [
                f"{members[key][0]}: {self.changed(members[key][1], old[key], value, depth + 1)}"
                if key in members
                else f"{_dumped(key)}: {self.written(value, depth + 1)}"
                for key, value in new.items()
            ]
            return self._block("{", lines, "}", depth)
        if isinstance(old, list) and isinstance(new, list):
            known = list(zip(old, _items(text), strict=True))
            lines = []
            for value in new:
                at = next((at for at, (was, _) in enumerate(known) if _same(was, value)), None)
                lines.append(self.written(value, depth + 1) if at is None else known[at][1])
                known = known if at is None else known[at + 1 :]
            return self._block("[", lines, "]", depth)
        return self.written(new, depth)

    def written(self, value: Any, depth: int) -> str:
        """Return the text of a new value; a list of plain values is one line."""
        if isinstance(value, dict):
            lines = [f"{_dumped(key)}: {self.written(each, depth + 1)}" for key, each in value.items()]
            return self._block("{", lines, "}", depth)
        if isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
            return self._block("[", [self.written(each, depth + 1) for each in value], "]", depth)
        return _dumped(value)

    def _block(self, opening: str, lines: list[str], closing: str, depth: int) -> str:
        if not lines:
            return opening + closing
        start = self.newline + self.indent * (depth + 1)
        return opening + start + f",{start}".join(lines) + self.newline + self.indent * depth + closing


def _dumped(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # UTF-8 has no half of a surrogate pair.
    return json.dumps(value) if re.search("[\ud800-\udfff]", text) else text


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values have the same text; in Python, `1`, `1.0` and `True` are equal."""
    return json.dumps(one) == json.dumps(other)


def _trimmed(text: str) -> tuple[str, str, str]:
    start, end = _skip(text, 0), len(text.rstrip(" \t\r\n"))
    return text[:start], text[start:end], text[end:]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _members(text: str) -> dict[str, tuple[str, str]]:
    """Return the members of an object: key → the text of key and value."""
    members: dict[str, tuple[str, str]] = {}
    at = _skip(text, 1)
    while text[at] != "}":
        key, end = _DECODER.raw_decode(text, at)
        value_at = _skip(text, _skip(text, end) + 1)  # behind the colon
        value_end = _DECODER.raw_decode(text, value_at)[1]
        members[key] = text[at:end], text[value_at:value_end]
        at = _after_comma(text, value_end)
    return members


def _items(text: str) -> list[str]:
    """Return the texts of the items of a list."""
    items = []
    at = _skip(text, 1)
    while text[at] != "]":
        end = _DECODER.raw_decode(text, at)[1]
        items.append(text[at:end])
        at = _after_comma(text, end)
    return items


def _after_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at
