"""Checks of values that a person wrote into a file: a value of the right type, or a `SettingsError`.  Does no I/O.

msgspec does the checking.  It reports a mistake only as a text, "Expected `x`, got `y` - at `$.key[0]`", so only this
module parses the text.
"""

from __future__ import annotations

import math
import re
from os import PathLike
from typing import Any, NamedTuple, TypeVar

import msgspec

from agent_hooks.errors import SettingsError, did_you_mean, shown

T = TypeVar("T")
# PATH_MAX of Linux, in bytes; other systems allow less.
_ENDLESS = 10**9  # seconds
LONGEST_PATH = 4096
TOO_LONG = f"is longer than any path can be, which is {LONGEST_PATH:,} characters"
# Plain words for msgspec's names of types.
_WORDS = {
    "float | null": "a number or null",
    "int | null": "a whole number or null",
    "int": "a whole number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "str": "a text",
    "str | null": "a text or null",
}


class Mismatch(NamedTuple):
    """One mistake that msgspec found: its text, and the place in the value as text (`.key[0]`) and as steps."""

    text: str
    place: str
    steps: list[str | int]


def mismatch(exc: msgspec.ValidationError) -> Mismatch:
    """Parse the text of msgspec's error."""
    text, _, place = str(exc).partition(" - at `$")
    place = place.removesuffix("`")
    steps: list[str | int] = [name or int(index) for name, index in re.findall(r"([\w-]+)|\[(\d+)\]", place)]
    return Mismatch(text, place, steps)


def convert_section(value: Any, kind: type[T], path: str | PathLike[str], key: str = "") -> T:
    """Return `value` as `kind`.

    `key`: the section of the settings file `path` that the value is; all of the file unless given.
    Raises `SettingsError` with file, key, expected and found.
    """
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as exc:
        raise SettingsError(_problem(mismatch(exc), value, key), path) from None


def _problem(found: Mismatch, value: Any, section: str) -> str:
    """Return `key 'a.b[0]': expected …, found …`; msgspec's own text if it has another form."""
    key = (section + found.place).removeprefix(".")
    match = re.fullmatch(r"Expected `(?P<type>.*)`(?P<range> >= 0|, got `.*`)", found.text)
    if match is None:
        return f"{found.text} - at `$.{key}`" if key else found.text
    for step in found.steps:
        value = value[step]
    expected = _WORDS.get(match["type"], match["type"]) + (" from 0 up" if ">=" in match["range"] else "")
    return f"key {key!r}: expected {expected}, found {shown(value)}"


def check_keys(value: dict[str, Any], kind: type[msgspec.Struct], path: str | PathLike[str], prefix: str = "") -> None:
    """Raise `SettingsError` with the nearest known name for a key that `kind` does not have."""
    known = kind.__struct_encode_fields__
    for key in value:
        if key not in known:
            raise SettingsError(f"unknown key {prefix + key!r}{did_you_mean(key, known)}", path)


def milliseconds_problem(seconds: object) -> str | None:
    """Return the error for a number of seconds that is meant as milliseconds; `None` for any other value.

    A whole number of thousands is one; `5000.0` says that the seconds are no accident.
    """
    if type(seconds) is not int or not 1000 <= seconds < _ENDLESS or seconds % 1000:
        return None
    short = f"{seconds / 1000:g}"
    return f"{seconds} seconds are {seconds / 60:.0f} min; for {short} s write {short}, and for {seconds} s {seconds}.0"


def check_timeout(value: object, where: str, *, unit: str = "seconds", path: str | PathLike[str] = "") -> float | None:
    """Return `value` if it can be a deadline: a finite number above 0, or `None` for no limit.

    `where`, `path`: the key or argument and its file, for the `SettingsError` that is raised otherwise.
    """
    if value is None:
        return None
    if unit == "seconds" and (problem := milliseconds_problem(value)):
        raise SettingsError(f"{where}: {problem}", path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        no_limit = "null" if unit == "milliseconds" else "None"
        raise SettingsError(f"{where}: expected {unit} above 0, or {no_limit} for no limit; found {shown(value)}", path)
    try:
        return float(value)
    except OverflowError:
        raise SettingsError(f"{where}: {shown(value)} is too large; use null for no limit", path) from None
