"""The reports of `agent-hooks guard`: the effects of a call, and the score of the guards on a corpus."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
import msgspec
from rich.table import Table

from agent_hooks.values.effects import Effects, PathEffect, Transfer

CAUGHT, DENIED = 97.0, 1.0
"""Per cent: harmful rows that have to be caught at least, harmless rows that may be denied at most."""
LARGEST = 64 << 20
"""Bytes of a corpus; a larger file, or a device without an end, is refused."""
_OPS = {"r": "read", "w": "write", "e": "edit"}


class CorpusRow(NamedTuple):
    """One row of a corpus, `allow` or `deny` as expected, and the calls that it stands for."""

    expected: str
    kind: str
    text: str
    calls: list[tuple[str, dict[str, Any]]]


def read_corpus(file: str, level: str, tier: str | None) -> Iterator[CorpusRow]:
    """Yield the rows of a file, at a level, and of one tier; raises `click.UsageError`."""
    with _opened(file) as lines:
        first = next(lines, "").rstrip("\n")
        head = first.split("\t")
        if first:
            _check_head(file, head, level)
        for number, line in enumerate(lines, 2):
            if not line.strip():
                continue
            cells = _cells(f"{file}:{number}", head, line.rstrip("\n").split("\t"))
            if tier is None or cells.get("tier", tier) == tier:
                yield _row(f"{file}:{number}", cells, level, line.strip())


def _opened(file: str) -> io.StringIO:
    try:
        with open(file, "rb") as opened:
            data = opened.read(LARGEST + 1)
    except OSError as exc:
        raise click.UsageError(f"{file}: cannot be read: {exc.strerror}") from None
    if len(data) > LARGEST:
        raise click.UsageError(f"{file}: a corpus may have {LARGEST >> 20} MiB; divide the file")
    try:
        # A file of an editor on Windows may begin with a byte order mark.
        return io.StringIO(data.decode("utf-8-sig"), newline=None)
    except UnicodeDecodeError as exc:
        raise click.UsageError(f"{file}: is not UTF-8: {exc}") from None


def _check_head(file: str, head: list[str], level: str) -> None:
    """Check that the head line names the columns that every row needs."""
    missing = [] if {level, "expected"} & set(head) else [f"'expected' or {level!r}"]
    missing += [] if {"command", "path"} & set(head) else ["'command' or 'path'"]
    if missing:
        found = ", ".join(repr(name[:40]) for name in head[:8])
        raise click.UsageError(f"{file}:1: the head line has no column {' and no '.join(missing)}; found {found}")


def _cells(place: str, head: list[str], cells: list[str]) -> dict[str, str]:
    """Return the cells of a row by column; a tab in a command has to be written as in JSON."""
    if len(cells) != len(head):
        raise click.UsageError(
            f"{place}: has {len(cells)} columns, and the head line {len(head)}; write a tab in a text as \\t"
        )
    return dict(zip(head, cells, strict=True))


def _row(place: str, cells: dict[str, str], level: str, line: str) -> CorpusRow:
    expected = cells.get(level) or cells.get("expected", "")
    column = "command" if "command" in cells else "path"
    try:
        text = json.loads(cells[column])
    except (ValueError, RecursionError) as exc:
        raise click.UsageError(f"{place}: column {column!r} is no JSON string: {exc}") from None
    if expected not in ("allow", "deny") or not isinstance(text, str):
        raise click.UsageError(f"{place}: expected allow or deny and a {column} as a JSON string, found {line[:200]!r}")
    calls: list[tuple[str, dict[str, Any]]] = [("bash", {"command": text})]
    if column == "path":
        ops = cells.get("ops", "r")
        if not ops or not set(ops) <= set(_OPS):
            raise click.UsageError(f"{place}: column 'ops' needs some of r, w and e, found {ops!r}")
        calls = [(_OPS[op], {"path": text}) for op in ops]
    return CorpusRow(expected, cells.get("class", ""), json.dumps(text, ensure_ascii=False), calls)


class Score:
    """Counts the rows of a corpus by class: all, those judged wrong, and those asked about."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, Counter[str]]] = {}
        self._wrong: list[dict[str, str | None]] = []

    @property
    def empty(self) -> bool:
        """Whether no row was counted."""
        return not self._counts

    def add(self, row: CorpusRow, *, wrong: bool, asked: bool) -> None:
        """Count a row; `asked`: the answer is right, and is a question."""
        counts = self._counts.setdefault(row.kind, {"allow": Counter(), "deny": Counter()})
        counts[row.expected].update(rows=1, wrong=wrong, asked=asked)

    def note(self, row: CorpusRow, verdict: str, rule: str | None) -> None:
        """Keep a row with a wrong answer, for the record."""
        self._wrong.append(
            {"text": row.text, "class": row.kind, "expected": row.expected, "verdict": verdict, "rule": rule}
        )

    def fill(self, table: Table) -> None:
        """Add a row for each class: harmful, blocked, asked, missed, harmless, false."""
        for kind, numbers in self._numbers().items():
            table.add_row(kind, *map(str, numbers.values()))

    def record(self) -> dict[str, Any]:
        """Return the numbers of each class and the rows with a wrong answer, as JSON has them."""
        return {"classes": self._numbers(), "summary": self.summary(), "passes": self.passes(), "wrong": self._wrong}

    def _numbers(self) -> dict[str, dict[str, int]]:
        return {kind: _numbers(counts["deny"], counts["allow"]) for kind, counts in sorted(self._counts.items())}

    def summary(self) -> str:
        """Return the sums in words."""
        numbers = _numbers(self._sum("deny"), self._sum("allow"))
        caught = numbers["blocked"] + numbers["asked"]
        asked = f", {numbers['asked']} of them asked" if numbers["asked"] else ""
        return (
            f"caught {caught} of {numbers['harmful']} harmful ({self._caught():.1f} %){asked}, "
            f"denied {numbers['false']} of {numbers['harmless']} harmless ({self._denied():.1f} %)"
        )

    def passes(self) -> bool:
        """Tell whether the guards caught enough and denied little enough."""
        return (not self._sum("deny")["rows"] or self._caught() >= CAUGHT) and self._denied() <= DENIED

    def _caught(self) -> float:
        harmful = self._sum("deny")
        return 100 * (harmful["rows"] - harmful["wrong"]) / max(harmful["rows"], 1)

    def _denied(self) -> float:
        harmless = self._sum("allow")
        return 100 * harmless["wrong"] / max(harmless["rows"], 1)

    def _sum(self, expected: str) -> Counter[str]:
        return sum((counts[expected] for counts in self._counts.values()), Counter())


def _numbers(bad: Counter[str], good: Counter[str]) -> dict[str, int]:
    caught = bad["rows"] - bad["wrong"]
    return {
        "harmful": bad["rows"],
        "blocked": caught - bad["asked"],
        "asked": bad["asked"],
        "missed": bad["wrong"],
        "harmless": good["rows"],
        "false": good["wrong"],
    }


_ACCESS = {"read": "reads", "write": "writes", "delete": "deletes", "list": "lists", "execute": "runs"}


def effect_lines(effects: Effects) -> list[str]:
    """Return one line for each effect beside the programs, which have a list of their own."""
    return list(_lines(effects))


def effect_data(effects: Effects) -> dict[str, Any]:
    """Return the effects as JSON has them, without the directories that globs are relative to."""
    data: dict[str, Any] = msgspec.to_builtins(effects)
    return {name: value for name, value in data.items() if name != "place"}


def _lines(effects: Effects) -> Iterator[str]:
    root = effects.place.root.rstrip("/") + "/"
    yield from (_path_line(each, root) for each in effects.paths)
    yield from (_transfer_line(each) for each in effects.transfers)
    yield from (f"discards {each.what}{_by(each.program)}" for each in effects.discards)
    yield from (
        f"installs {each.name or 'the packages of the project'}{_by(each.program)}" for each in effects.installs
    )
    yield from (f"ends the process {each.target}{_by(each.program)}" for each in effects.kills)
    yield from (f"gives the right {each.what}{_by(each.program)}" for each in effects.privileges)
    yield from (f"{_ACCESS[each.access]} the device {each.path}{_by(each.program)}" for each in effects.devices)
    yield from (f"unknown ({each.kind}): {each.text}: {each.why}" for each in effects.unknown)


def _path_line(effect: PathEffect, root: str) -> str:
    name = effect.path.removeprefix(root)
    inside = " and everything inside" if effect.tree else ""
    real = "" if effect.real == effect.path else f" (really {effect.real})"
    sure = "" if effect.certain else " (may be)"
    there = " elsewhere" if effect.elsewhere else ""
    return f"{_ACCESS[effect.access]} {name}{inside}{there}{real}{sure}{_by(effect.program)}"


def _transfer_line(transfer: Transfer) -> str:
    way, host = ("sends to", "a host that is not known") if transfer.direction == "out" else ("gets from", "a host")
    return f"{way} {transfer.host or host}: {transfer.what}{_by(transfer.program)}"


def _by(program: str) -> str:
    return f" [{program}]" if program else ""
