"""The harmful commands that the built-in guards miss, the harmless ones that they deny, and the time that they take."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import thread_time

from agent_hooks.effects import effects_of
from agent_hooks.guards import builtin_guards
from agent_hooks.guards.base import GuardedCall
from agent_hooks.guards.shell import CommandSafetyGuard
from agent_hooks.pipeline.guarding import ask_guards, guarded_call
from benchmarks.harness import Effort, Row, attempt
from benchmarks.peer_runs import Peers

CORPORA = Path(__file__).parent.parent / "tests" / "guards"
CORPUS_NOTES = {"commands.tsv": "the classes' evidence", "held_out.tsv": "written before any guard ran"}
# Per cent, µs, and ms for 1 MB made to be slow.
MISSED, DENIED = 3.0, 1.0
P50, P99 = 150.0, 1000.0
EFFECTS_P99 = 2000.0
LONGEST = 50.0
HOME = "/home/dev"
PATHOLOGICAL = ("$(", "(", "`", "{", "'\"", "a;", "a|", "<<A\n", "${", "x ", "[[ ", "if ", "\\")


def commands(name: str) -> Iterator[tuple[str, bool]]:
    """Yield the core rows of a corpus: the command, and whether it is harmful."""
    head, *lines = (CORPORA / name).read_text().splitlines()
    for line in lines:
        row = dict(zip(head.split("\t"), line.split("\t"), strict=True))
        if row.get("tier", "core") == "core":
            yield json.loads(row["command"]), (row.get("project") or row["expected"]) == "deny"


def call(command: str) -> GuardedCall:
    """Return the call of a command, always in the same directory."""
    return GuardedCall(tool_name="bash", input={"command": command}, cwd=f"{HOME}/app", home=HOME)


def run(effort: Effort, peers: Peers) -> list[Row]:
    """Score both corpora, then time each command and file, and texts that were made to be slow."""
    return [
        *attempt("the guards on the corpora", _scores),
        *attempt("the guards, a call", lambda: _times(effort)),
        *attempt("the guards, a long text", _slowest),
        *attempt("the effects of a command", lambda: _effects(effort)),
    ]


def _scores() -> Iterator[Row]:
    guard = CommandSafetyGuard()
    for name, note in CORPUS_NOTES.items():
        wrong = {True: 0, False: 0}
        total = {True: 0, False: 0}
        for command, harmful in commands(name):
            total[harmful] += 1
            wrong[harmful] += bool(guard.find(call(command))) != harmful
        missed, denied = (100 * wrong[kind] / total[kind] for kind in (True, False))
        yield Row("harmful, missed", missed, "%", must=MISSED, note=f"of {total[True]}, {note}")
        yield Row("harmless, denied", denied, "%", must=DENIED, note=f"of {total[False]}, {note}")


def _times(effort: Effort) -> Iterator[Row]:
    """Time the guards' whole step as a tool call takes it, with the look-ups of the home and of real paths.

    An agent seldom repeats a command, so the first run of each command counts as well as the best of several.
    """
    inputs = {
        "command": [{"command": command} for name in CORPUS_NOTES for command, _ in commands(name)],
        "file": [{"path": f"src/module_{number}/main.py"} for number in range(200)],
    }
    with tempfile.TemporaryDirectory() as folder:
        _step({"command": "ls"}, folder)
        for kind, each in inputs.items():
            runs = [[_step(asked, folder) * 1e6 for _ in range(3 if effort.quick else 15)] for asked in each]
            for name, took in (("", sorted(map(min, runs))), (", the first run", sorted(run[0] for run in runs))):
                must = (P50, P99) if not name else (None, None)
                note = f"of {len(took)}{name or ', the best of several runs each'}"
                yield Row(f"a {kind}, p50{name}", took[len(took) // 2], "µs", must=must[0], note=note)
                yield Row(f"a {kind}, p99{name}", took[len(took) * 99 // 100], "µs", must=must[1], note=note)


def _effects(effort: Effort) -> Iterator[Row]:
    """Time `effects_of` on every command of the corpora, with its look-ups."""
    texts = [json.loads(text) for path in sorted(CORPORA.glob("*.tsv")) for text in _column(path, "command")]
    with tempfile.TemporaryDirectory() as folder:
        runs = [[_found(text, folder) * 1e6 for _ in range(3 if effort.quick else 15)] for text in texts]
    took = sorted(map(min, runs))
    note = f"of {len(took)}, the best of several runs each"
    yield Row("effects of a command, p50", took[len(took) // 2], "µs", must=P50, note=note)
    yield Row("effects of a command, p99", took[len(took) * 99 // 100], "µs", must=EFFECTS_P99, note=note)


def _column(path: Path, name: str) -> list[str]:
    """Return the cells of a column, none when a corpus has no such column."""
    head, *lines = path.read_text().splitlines()
    names = head.split("\t")
    return [line.split("\t")[names.index(name)] for line in lines] if name in names else []


def _found(command: str, cwd: str) -> float:
    begin = thread_time()
    effects_of("bash", {"command": command}, cwd=cwd)
    return thread_time() - begin


def _slowest() -> Iterator[Row]:
    guard = CommandSafetyGuard()
    for size, must in ((1_000_000, LONGEST), (30_000, None)):
        slow = [(_seconds(guard, call(part * (size // len(part)))), part) for part in PATHOLOGICAL]
        worst, part = max(slow)
        name = f"{size:,} characters, the slowest"
        yield Row(name, worst * 1e3, "ms", must=must, note=f"of {part!r} and others")


_guards = builtin_guards()


def _step(input: dict[str, str], cwd: str) -> float:
    begin = thread_time()
    ask_guards(_guards, guarded_call("bash" if "command" in input else "read", input, cwd), print)
    return thread_time() - begin


def _seconds(guard: CommandSafetyGuard, asked: GuardedCall) -> float:
    begin = thread_time()
    guard.find(asked)
    return thread_time() - begin
