"""Reads the rows of the table; each row is read when its program is met for the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib import import_module
from typing import NamedTuple

from agent_hooks.guards.lazy import lazy_pattern, read_once, warming

_PARTS = ("files", "git", "packages", "code", "network", "systems")
_VERSION = lazy_pattern(r"-?\d[\d.]*$")
_ALIASES = {
    "podman": "docker",
    "nerdctl": "docker",
    "docker-compose": "docker compose",
    "podman-compose": "docker compose",
    "k": "kubectl",
    "oc": "kubectl",
    "g": "git",
    "pip3": "pip",
    "mvnw": "mvn",
    "gradlew": "gradle",
    "nodejs": "node",
    "bundler": "bundle",
    "ripgrep": "rg",
}
"""Programs that take the words of another one."""
# The role behind the names of an option: `=w`, `?=_`, `=_2`.
_ROLE = lazy_pattern(r"(.*?)(\?)?=([\w@/>]2?)")


class Change(NamedTuple):
    """The changes that an option makes: one of its names, with its value if that counts, and the changes."""

    names: tuple[str, ...]
    changes: tuple[str, ...]


class Operand(NamedTuple):
    """The role of operands: `number` is `*` for any number, `?` for at most one; `default` counts without one."""

    role: str
    number: str = ""
    default: str = ""


class Row:
    """One row of the table.

    `short`, `optional`, `long`, `flags`: the options as `ParsedOptions` takes them; `pairs`: the options that take two
    values; `roles`: the role of each option's value; `changes`, `assigns`, `operands`, `facts`: the rest of the row.
    """

    def __init__(self, text: str) -> None:
        self.short = self.optional = ""
        self.long: list[str] = []
        self.flags: list[str] = []
        self.pairs: set[str] = set()
        self.roles: dict[str, str] = {}
        self.changes: list[Change] = []
        self.assigns: dict[str, str] = {}
        self.operands: list[Operand] = []
        self.facts: list[tuple[str, str]] = []
        words = text.split()
        dash = "@dash" in words
        for word in words:
            if word[0] == "@" and len(word) > 1:
                name, _, value = word[1:].partition("=")
                self.facts.append((name, value))
            elif word[0] == "-":
                self._option(word, dash=dash)
            elif "==" in word:
                name, _, role = word.partition("==")
                self.assigns[name] = role
            else:
                self.operands.append(operand(word))
        # Whether the row has a fact of this name: a row is read once, and asked for each command.
        self.has: Callable[[str], bool] = frozenset(name for name, _ in self.facts).__contains__

    @property
    def names_files(self) -> bool:
        """Whether a word of the program may be a file: by its role, by a function, or by the row of a verb."""
        roles = {*self.roles.values(), *self.assigns.values(), *(each.role for each in self.operands)}
        facts = {name for name, _ in self.facts}
        changed = any(set(change) - set("_*+!^.") for each in self.changes for change in each.changes)
        return changed or not roles <= set("_kcs/") or bool(facts & {"verbs", "do"})

    def with_options_of(self, other: Row) -> Row:
        """Return the row with the options of another one beside its own."""
        both = Row("")
        both.operands, both.facts, both.assigns, both.has = self.operands, self.facts, self.assigns, self.has
        both.roles = {**other.roles, **self.roles}
        both.short = self.short + "".join(
            each for each in other.short if each not in self.optional + "".join(self.flags)
        )
        both.optional = self.optional + other.optional
        both.long, both.flags = [*self.long, *other.long], [*self.flags, *other.flags]
        both.pairs = self.pairs | other.pairs
        both.changes = [*other.changes, *self.changes]
        return both

    def _option(self, word: str, *, dash: bool) -> None:
        head, _, then = word.partition(":")
        found = _ROLE.fullmatch(head)
        given, joined, role = found.groups() if found else (head, None, "")
        names = tuple(_name(each, dash=dash) for each in given.split(","))
        # A long name with one dash, as `-std` of a compiler, is read as letters by the parser of options.
        names = tuple(name for name in names if len(name) == 1 or name[0] == "-")
        if then:
            self.changes.append(Change(names, tuple(then.split("&"))))
        for name in names:
            plain = name.partition("=")[0]
            if role:
                self.roles[name] = role[0]
            if role.endswith("2"):
                self.pairs.add(plain)
            elif plain.startswith("--"):
                (self.long if role and not joined else self.flags).append(plain)
            elif joined:
                self.optional += plain
            elif role:
                self.short += plain
            else:
                self.flags.append(plain)


def _name(option: str, *, dash: bool) -> str:
    """Return an option as `ParsedOptions` names it: a letter, or a long name with two dashes."""
    if option.startswith("--"):
        return option
    return f"-{option}" if dash else option[1:]


@lru_cache(512)
def operand(word: str) -> Operand:
    """Return the operand that a word of a row stands for."""
    role, rest = word[0], word[1:]
    if rest and not (rest[0] in "*?=" and len(word) < 32):
        raise ValueError(word)
    count = rest[:1] if rest[:1] in ("*", "?") else ""
    return Operand(role, count, rest[len(count) + 1 :] if rest[len(count) :].startswith("=") else "")


@read_once
def _texts() -> dict[str, str]:
    """Return the text of each row by its name; the last row of a name counts."""
    rows: dict[str, str] = {}
    for part in _PARTS:
        for names, text in lines_of(import_module(f"{__package__}.{part}").TABLE):
            rows.update(dict.fromkeys(names.split(", "), text))
    return rows


def lines_of(table: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the text of each row of a part of the table."""
    for line in table.strip("\n").replace("\n ", " ").split("\n"):
        names, _, text = line.partition(" : ")
        yield names, text


@cache
def _globs(program: str) -> tuple[tuple[int, str], ...]:
    """Return the names of a program's rows that have wildcards, each after the number of its words."""
    return tuple((name.count(" "), name) for name in _texts() if "*" in name and name.startswith(f"{program} "))


def names() -> tuple[str, ...]:
    """Return the names of all rows."""
    return tuple(_texts())


def row_of(name: str) -> Row | None:
    """Return the row of a program, `None` when the table has none; `name`: with the verb, if there is one."""
    return _row(name) if name in _texts() else None


@cache
def _row(name: str) -> Row:
    with warming():
        return Row(_texts()[name])


@lru_cache(1024)
def program_of(name: str) -> str:
    """Return the name by which the table knows a program: without a version, as `python3.12` and `gcc-13`."""
    name = _ALIASES.get(name, name)
    plain = name if name in _texts() else _VERSION.sub("", name)
    return _ALIASES.get(plain, plain)


def verb_row(program: str, words: list[str]) -> tuple[str, int]:
    """Return the name of the row of a program's verb and the number of words that it takes, or an empty name."""
    return _verb_row(program, *words[:3])


@lru_cache(1024)
def _verb_row(program: str, *words: str) -> tuple[str, int]:
    for count in range(len(words), 0, -1):
        name = " ".join([program, *words[:count]])
        if name in _texts():
            return name, count
        for blanks, glob in _globs(program):
            if blanks == count and fnmatchcase(name, glob):
                return glob, count
    return "", 0
