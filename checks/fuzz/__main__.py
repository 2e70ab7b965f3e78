"""`python -m checks.fuzz`: run each target on changed inputs, and print the executions and findings.

Two drivers: Hypothesis changes the seeds, and makes an input that fails small.  Atheris, where it can be installed, looks
for inputs that reach new code.  The input of a finding is kept in `.bench/fuzz`, and `--repeat FILE` runs it again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from checks.fuzz.targets import TARGETS, Target

KEPT = Path(".bench/fuzz")
# Changes that are made to one seed.
_MOST_CHANGES = 6
# Seconds over its time after which a run of Atheris is ended.
_PATIENCE = 60
# Inputs in one round of Hypothesis.
_ROUND = 300
_PHASES = (Phase.generate, Phase.shrink)


class Result(NamedTuple):
    """The outcome of one target with one driver; `finding`: the exception and the file with its input, or nothing."""

    executions: int
    seconds: float
    finding: str = ""


def changed(target: Target) -> st.SearchStrategy[bytes]:
    """Return a strategy of inputs: seeds with pieces cut, doubled, replaced and inserted, and bytes of any kind."""
    found = target.seeds()
    piece = st.one_of(st.sampled_from(target.words), st.binary(max_size=4)) if target.words else st.binary(max_size=8)
    change = st.tuples(st.sampled_from(["cut", "double", "replace", "insert"]), st.floats(0, 1), st.floats(0, 1), piece)
    several = st.lists(change, max_size=_MOST_CHANGES)
    return st.one_of(st.builds(_apply, st.sampled_from(found), several), st.binary(max_size=200))


def _apply(data: bytes, changes: list[tuple[str, float, float, bytes]]) -> bytes:
    for kind, start, length, piece in changes:
        at = int(start * len(data))
        # Short stretches are more frequent.
        end = at + int(length**4 * (len(data) - at)) + 1
        put = {"cut": b"", "double": data[at:end] * 2, "replace": piece, "insert": piece + data[at:end]}[kind]
        data = data[:at] + put + data[end:]
    return data


def by_hypothesis(name: str, seconds: float, seed: int) -> Result:
    """Run a target on changed seeds, in rounds, until so many seconds are over."""
    began, count = time.monotonic(), 0
    inputs = changed(TARGETS[name])
    while (took := time.monotonic() - began) < seconds:
        tried, finding = round_of(name, inputs, seed + count)
        count += tried
        if finding:
            return Result(count, time.monotonic() - began, finding)
    return Result(count, took)


def round_of(name: str, inputs: st.SearchStrategy[bytes], seed: int, most: int = _ROUND) -> tuple[int, str]:
    """Run a target `most` times; return the number of inputs, and the finding or an empty text."""
    tried: list[bytes] = []

    @seeded(seed)
    @settings(max_examples=most, deadline=None, database=None, phases=_PHASES, suppress_health_check=list(HealthCheck))
    @given(inputs)
    def check(data: bytes) -> None:
        tried.append(data)
        TARGETS[name].read(data)

    try:
        check()
    except KeyboardInterrupt:
        raise
    # A finding: Hypothesis raises the exception of the smallest input, which it ran last.
    except BaseException as exc:
        return len(tried), _keep(name, tried[-1], f"{type(exc).__name__}: {exc}")
    return len(tried), ""


def _keep(name: str, data: bytes, text: str) -> str:
    """Keep the input of a finding, and return the text with its place."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return f"{text[:300]} (python -m checks.fuzz --repeat {path})"


def by_atheris(name: str, seconds: float, seed: int) -> Result:
    """Run a target in a process of its own, guided by the code that its inputs reach."""
    corpus = KEPT / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for data in TARGETS[name].seeds():
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    options = [f"-max_total_time={max(1, round(seconds))}", f"-seed={seed}", "-rss_limit_mb=4096"]
    options += ["-max_len=8192", f"-artifact_prefix={KEPT}/{name}-"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "checks.fuzz.guided", name, str(corpus), *options],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds + _PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return Result(0, time.monotonic() - began, f"it did not end {_PATIENCE} s after its time")
    count = max([0, *map(int, re.findall(r"^(?:#|Done )(\d+)", done.stderr, re.MULTILINE))])
    took = time.monotonic() - began
    if done.returncode == 0 and count:
        return Result(count, took)
    kept = re.search(r"written to (\S+)", done.stderr)
    errors = re.findall(r"^(?:[\w.]+(?:Error|Exception|Finding)\b.*|.*ERROR: libFuzzer.*)", done.stderr, re.MULTILINE)
    text = errors[0] if errors else done.stderr[-300:]
    return Result(count, took, f"{text} (python -m checks.fuzz --repeat {kept[1]})" if kept else text)


def main() -> int:
    """Run the chosen targets with the drivers, print a table, and return 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m checks.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"one of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each target and driver")
    parser.add_argument("--seed", type=int, help="a number, to run the same inputs again")
    parser.add_argument(
        "--repeat", type=Path, metavar="FILE", help="run one kept input; its name begins with its target"
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.targets) - set(TARGETS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if chosen.repeat:
        return _repeat(chosen.repeat)
    seed = int.from_bytes(os.urandom(4)) if chosen.seed is None else chosen.seed
    drivers = {"hypothesis": by_hypothesis}
    if find_spec("atheris"):
        drivers["atheris"] = by_atheris
    else:
        print("atheris is not installed, and cannot be on this version of Python: Hypothesis runs alone")
    table, findings = Table("target", "driver", "executions", "a second", "finding"), 0
    for name in chosen.targets or TARGETS:
        for driver, run in drivers.items():
            result = run(name, chosen.seconds, seed)
            findings += bool(result.finding)
            rate = f"{result.executions / result.seconds:,.0f}"
            table.add_row(name, driver, f"{result.executions:,}", rate, result.finding or "none")
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    print(f"seed {seed}, findings: {findings}")
    return 1 if findings else 0


def _repeat(path: Path) -> int:
    name = next((name for name in sorted(TARGETS, key=len, reverse=True) if path.name.startswith(f"{name}-")), None)
    if name is None:
        print(f"{path}: the name of the file does not begin with a target", file=sys.stderr)
        return 2
    TARGETS[name].read(path.read_bytes())
    print(f"{path}: no finding")
    return 0


if __name__ == "__main__":
    sys.exit(main())
