"""What the built-in guards catch, what they deny for nothing, and how long they take."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from agent_hooks.guards.base import GuardedCall
from agent_hooks.guards.shell import CommandSafetyGuard
from benchmarks.harness import Effort, Row
from benchmarks.peer_runs import Peers

CORPORA = Path(__file__).parent.parent / "tests" / "guards"
MISSED, DENIED = 3.0, 1.0  # per cent
P50, P99 = 150.0, 1000.0  # µs
LONGEST = 50.0  # ms for 1 MB made to be slow
PATHOLOGICAL = ("$(", "(", "`", "{", "'\"", "a;", "a|", "<<A\n", "${", "x ", "[[ ", "if ", "\\")


def commands(name: str) -> Iterator[tuple[str, bool]]:
    """Yield the core rows of a corpus: the command, and whether it is harmful."""
    head, *lines = (CORPORA / name).read_text().splitlines()
    for line in lines:
        row = dict(zip(head.split("\t"), line.split("\t"), strict=True))
        if row.get("tier", "core") == "core":
            yield json.loads(row["command"]), (row.get("project") or row["expected"]) == "deny"


def call(command: str) -> GuardedCall:
    """Return the call of a command, in a place that is always the same."""
    return GuardedCall(tool_name="bash", input={"command": command}, cwd="/home/dev/app", home="/home/dev")


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Score both corpora, then time each command, and texts that were made to be slow."""
    guard = CommandSafetyGuard()
    rows: list[Row] = []
    took: list[float] = []
    for name, note in (("commands.tsv", "the classes' evidence"), ("held_out.tsv", "written before any guard ran")):
        wrong = {True: 0, False: 0}
        total = {True: 0, False: 0}
        for command, harmful in commands(name):
            asked = call(command)
            best = min(_seconds(guard, asked) for _ in range(3 if effort.quick else 15))
            took.append(best * 1e6)
            total[harmful] += 1
            wrong[harmful] += bool(guard.find(asked)) != harmful
        rows.append(
            Row("harmful, missed", 100 * wrong[True] / total[True], "%", must=MISSED, note=f"of {total[True]} {note}")
        )
        rows.append(
            Row(
                "harmless, denied",
                100 * wrong[False] / total[False],
                "%",
                must=DENIED,
                note=f"of {total[False]} {note}",
            )
        )
    took.sort()
    rows.append(Row("a command, p50", took[len(took) // 2], "µs", must=P50, note=f"of {len(took)} commands"))
    rows.append(
        Row("a command, p99", took[len(took) * 99 // 100], "µs", must=P99, note="the best of several runs each")
    )
    for size, must in ((1_000_000, LONGEST), (30_000, None)):
        slow = [(_seconds(guard, call(part * (size // len(part)))), part) for part in PATHOLOGICAL]
        worst, part = max(slow)
        rows.append(
            Row(f"{size:,} characters, the slowest", worst * 1e3, "ms", must=must, note=f"of {part!r} and others")
        )
    return rows


def _seconds(guard: CommandSafetyGuard, asked: GuardedCall) -> float:
    begin = perf_counter()
    guard.find(asked)
    return perf_counter() - begin
