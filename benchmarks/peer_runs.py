"""Run the peers' scripts in environments of their own, and give their costs in bare awaits of their own process.

A peer that is not installed is a line of text.  `python -m checks.peers` makes the environments, under `.bench/`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
HOME = ROOT / ".bench"
PEERS = ("pluggy", "blinker", "google_adk", "strands", "pydantic_ai", "pi")
TIMEOUT = 120


class Peers:
    """The results of the peers, which run when the first result is needed."""

    def __init__(self, *, quick: bool, runs: int) -> None:
        self.lines: list[str] = []
        self.problems: dict[str, str] = {}
        self._runs: dict[str, list[dict[str, Any]]] = {}
        self._quick = quick
        self._count = runs
        self._done = False

    def floors(self, kind: str, count: int) -> dict[str, float]:
        """Return, by peer, the cost of a `kind` of call with `count` hooks, in bare awaits."""
        self._measure()
        return {
            name: median(run[kind][str(count)] / run["floor"] for run in runs)
            for name, runs in self._runs.items()
            if str(count) in runs[0].get(kind, {})
        }

    def seconds(self, kind: str, count: int) -> dict[str, float]:
        """Return the same in seconds."""
        self._measure()
        return {
            name: median(run[kind][str(count)] for run in runs)
            for name, runs in self._runs.items()
            if str(count) in runs[0].get(kind, {})
        }

    def problem(self, name: str) -> str:
        """Return the reason why a peer has no results."""
        self._measure()
        return f"{name}: {self.problems.get(name, 'did not measure this')}"

    def _measure(self) -> None:
        if self._done:
            return
        self._done = True
        for name in PEERS:
            found = [_run(name, quick=self._quick)]
            if isinstance(found[0], dict):
                found += [_run(name, quick=self._quick) for _ in range(self._count - 1)]
            good = [each for each in found if isinstance(each, dict)]
            if good:
                self._runs[name] = good
                self.lines.append(f"{name}: {good[0]['version']}, a bare await is {good[0]['floor'] * 1e6:.3f} µs")
            else:
                self.problems[name] = str(found[0])
                self.lines.append(f"{name}: {found[0]}")


def _run(name: str, *, quick: bool) -> dict[str, Any] | str:
    if name == "pi":
        command = ["node", str(Path(__file__).parent / "peers" / "pi.mjs"), str(HOME / "pi")]
    else:
        command = [str(HOME / name / "bin" / "python"), "-W", "ignore", "-m", f"benchmarks.peers.{name}"]
    if not (HOME / name / "ready").exists():
        return "not installed (python -m checks.peers)"
    try:
        done = subprocess.run(
            [*command, *(["--quick"] if quick else [])],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return f"did not run: {exc}"
    if done.returncode:
        return f"did not run (python -m checks.peers): {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
