"""Edit the text of a TOML file: add, change and remove whole tables; all other lines stay as they are.

The standard library reads TOML, and a table can be added and removed without any knowledge of the other lines.  The
result is read again: if its value is not the wanted one, because the file has the table in another form, nothing is
written.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADER = re.compile(r"\s*\[")
_BLANK = re.compile(r"\s*(?:#.*)?")


def parse(text: str) -> dict[str, Any]:
    """Return the value of a text.  Raises `ValueError` or `RecursionError`."""
    return tomllib.loads(text)


def edited(text: str, new: Mapping[str, Any]) -> str:
    """Return `text` with the tables of `new`.  Raises `ValueError` if a table has a form that is not understood."""
    old_tables, new_tables = dict(_tables(parse(text))), dict(_tables(new))
    lines = _LINE.findall(text)
    end = "\r\n" if "\r\n" in text else "\n"
    for path in old_tables.keys() - new_tables.keys():
        _remove(lines, path)
    for path, table in new_tables.items():
        if path not in old_tables:
            _append(lines, path, table, end)
        elif table != old_tables[path]:
            _change(lines, path, old_tables[path], table, end)
    changed = "".join(lines)
    if dict(_tables(parse(changed))) != new_tables:
        raise ValueError("a table has a form that cannot be edited here")
    return changed


def _tables(value: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each table that has values of its own, with its path: a list of tables is a value."""
    if own := {key: each for key, each in value.items() if not isinstance(each, Mapping)}:
        yield path, own
    for key, each in value.items():
        if isinstance(each, Mapping):
            yield from _tables(each, (*path, key))


def _remove(lines: list[str], path: Path) -> None:
    """Remove a table, with one empty line before it; comments behind it stay."""
    first, last = _section(lines, path)
    if first > 0 and not lines[first - 1].strip():
        first -= 1
    del lines[first:last]


def _append(lines: list[str], path: Path, table: Mapping[str, Any], end: str) -> None:
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end
    header = ".".join(map(_key, path))
    lines += [end] * bool(lines)
    lines += [f"[{header}]{end}", *(f"{_key(key)} = {_written(value)}{end}" for key, value in table.items())]


def _change(lines: list[str], path: Path, old: Mapping[str, Any], new: Mapping[str, Any], end: str) -> None:
    """Change the lines of the keys whose values differ."""
    for key in [*old, *(each for each in new if each not in old)]:
        if key in old and key in new and old[key] == new[key]:
            continue
        first, last = _section(lines, path)
        at = next((at for at in range(first + 1, last) if _key_in(lines[at]) == key), last)
        written = [f"{_key(key)} = {_written(new[key])}{end}"] if key in new else []
        lines[at : at + (at < last)] = written


def _section(lines: list[str], path: Path) -> tuple[int, int]:
    """Return the numbers of a table's first line, and of the line behind its last value.  Raises `ValueError`."""
    headers = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    first = next((number for number in headers if _path_in(lines[number]) == path), None)
    if first is None:
        raise ValueError(f"the table [{'.'.join(map(_key, path))}] has no header of its own")
    last = next((number for number in headers if number > first), len(lines))
    while _BLANK.fullmatch(lines[last - 1].rstrip("\r\n")):
        last -= 1
    return first, last


def _path_in(line: str) -> Path | None:
    """Return the path in the header of a table; `None` for any other line."""
    try:
        found: Any = tomllib.loads(line)
    except ValueError:
        return None
    path: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        [(key, found)] = found.items()
        path.append(key)
    return tuple(path) if found == {} else None


def _key_in(line: str) -> str | None:
    """Return the key of a line; `None` for a line that is no value on its own."""
    try:
        return next(iter(tomllib.loads(line)), None)
    except ValueError:
        return None


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _written(key)


def _written(value: Any) -> str:
    """Return a text, a number, a truth value, or a list of these."""
    if isinstance(value, str):
        # A basic string has the escapes of JSON.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise ValueError(f"{type(value).__name__} cannot be written as TOML")
