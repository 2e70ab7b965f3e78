"""Expansion of braces and extended globs: the words that `a{b,c}`, `{1..3}` and `.@(a|b)` become."""

from __future__ import annotations

import re

from agent_hooks.guards.shell.scan import backtick_end, balanced, dollar_end, string_end
from agent_hooks.guards.shell.script import Unreadable

# How many words one word may become.
MAX_BRACES = 256
# How many opening braces one word may have.
MAX_OPEN = 16


def braces(raw: str) -> list[str]:
    """Return the words that a word with braces becomes, still quoted as written.

    Raises `Unreadable` when there are too many.
    """
    done: list[str] = []
    todo = [raw]
    while todo:
        text = todo.pop(0)
        parts = _first_brace(text)
        if parts is None:
            done.append(text)
        else:
            before, choices, after = parts
            todo = [f"{before}{choice}{after}" for choice in choices] + todo
        if len(done) + len(todo) > MAX_BRACES:
            raise Unreadable("braces that become too many words")
    return done


def extended(raw: str) -> str:
    """Return a word whose extended globs are braces or `*`.  Other shells refuse it.

    `@(a|b)` is one of its choices.  `?(a)` may be empty, and the others match about anything.
    """
    at = 0
    while at < len(raw):
        if raw[at + 1 : at + 2] == "(" and raw[at] in "@?+*!<>":
            end = balanced(raw, at + 1)
            if raw[at] not in "<>":
                inner = raw[at + 2 : end - 1].replace("|", ",")
                choices = {"@": f"{{{inner}}}" if "," in inner else inner, "?": f"{{{inner},}}"}.get(raw[at], "*")
                raw, end = raw[:at] + choices + raw[end:], at
                if choices == "*":
                    end += 1
            at = end
        else:
            at = _over(raw, at)
    return raw


def _first_brace(text: str) -> tuple[str, list[str], str] | None:
    at, met = 0, 0
    while at < len(text):
        if text[at] == "{":
            met += 1
            if met > MAX_OPEN:
                raise Unreadable("too many braces in one word")
            if found := _choices(text, at):
                return text[:at], found[0], text[found[1] :]
        at = _over(text, at)
    return None


def _over(text: str, at: int) -> int:
    """Return the index behind the character at `at`, or behind the quoted or expanded part that begins there."""
    char = text[at]
    if char == "\\":
        return at + 2
    if char == "'":
        return text.find("'", at + 1) + 1 or len(text)
    if char == '"':
        return string_end(text, at)
    if char == "$":
        return dollar_end(text, at)
    return backtick_end(text, at) if char == "`" else at + 1


def _choices(text: str, at: int) -> tuple[list[str], int] | None:
    """Return the alternatives of the brace at `at` and the index behind it; `None` for a brace without alternatives."""
    depth, start = 0, at + 1
    parts: list[str] = []
    while at < len(text):
        char = text[at]
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                parts.append(text[start:at])
                break
        elif char == "," and depth == 1:
            parts.append(text[start:at])
            start = at + 1
        at = _over(text, at)
    else:
        return None
    if len(parts) > 1:
        return parts, at + 1
    if match := re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z])", parts[0]):
        first, last = (int(match[1]), int(match[2])) if match[1] else (ord(match[3]), ord(match[4]))
        if abs(last - first) > MAX_BRACES:
            raise Unreadable("braces that become too many words")
        numbers = range(first, last + 1) if first <= last else range(first, last - 1, -1)
        return [str(number) if match[1] else chr(number) for number in numbers], at + 1
    return None
