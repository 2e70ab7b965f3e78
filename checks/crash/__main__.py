"""`python -m checks.crash`: kill each scenario's command at each write and at random moments, and check its promises.

strace kills the process at the entry of its N-th write, rename, unlink …; without strace only the random moments are
tried.  A line for each kill is kept in `.bench/crash`, so that `--resume` passes over the kills that were tried.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from checks.crash.place import WRITES, Place
from checks.crash.scenarios import SCENARIOS

KEPT = Path(".bench/crash/tried.jsonl")
_CALL = re.compile(rf"^(\d+) +({'|'.join(WRITES)})\(", re.MULTILINE)
# Which kills of the same system call are tried, when one process has more: these first ones, then every tenth.
_FIRST = 25


class Kill(NamedTuple):
    """One kill: at the `number`-th system call `name` of a process, or after a part of the command's time."""

    scenario: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.scenario}/{self.name}/{self.number}"


def kills_of(scenario: str, place: Place, moments: int) -> list[Kill]:
    """Run a scenario once without a kill, and return the kills to try."""
    line = place.line(*SCENARIOS[scenario].line)
    found = [Kill(scenario, "moment", number) for number in range(moments)]
    if shutil.which("strace"):
        trace = place.directory / "trace"
        place.traced(line, trace)
        most: Counter[str] = Counter()
        for (_, name), count in Counter(_CALL.findall(trace.read_text(errors="replace"))).items():
            most[name] = max(most[name], count)
        for name, count in most.items():
            numbers = [number for number in range(1, count + 1) if number <= _FIRST or number % 10 == 0]
            found += [Kill(scenario, name, number) for number in numbers]
        place.reset()
    return found


def problems_of(kill: Kill, place: Place, seed: int, seconds: float) -> list[str]:
    """Carry out one kill, and return the promises that it broke."""
    scenario = SCENARIOS[kill.scenario]
    line = place.line(*scenario.line)
    place.reset()
    if kill.name == "moment":
        place.killed(line, Random(f"{seed} {kill}").random() * seconds)  # noqa: S311  # a moment, not a secret
    else:
        inject = f"inject={kill.name}:signal=KILL:when={kill.number}"
        place.traced(line, place.directory / "trace", "-e", inject)
    return list(scenario.check(place))


class Crashing:
    """Tries the kills of scenarios, and notes each in the file of the tried ones."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.tried: list[dict[str, Any]] = []
        self._chosen = chosen
        self._lock = Lock()
        if chosen.resume and KEPT.exists():
            self.tried = [json.loads(line) for line in KEPT.read_text().splitlines()]
        elif not chosen.only:
            KEPT.parent.mkdir(parents=True, exist_ok=True)
            KEPT.write_text("")
        self._known = {each["kill"] for each in self.tried}

    def scenario(self, name: str) -> None:
        """Try all kills of one scenario, one after another."""
        directory = Path(tempfile.mkdtemp(prefix=f"agent-hooks-crash-{name}-"))
        try:
            place = Place(directory)
            SCENARIOS[name].prepare(place)
            place.keep()
            # The first run fills the caches; the second one tells the time.
            for _ in range(2):
                seconds = place.duration(place.line(*SCENARIOS[name].line))
                place.reset()
            for kill in self._selected(kills_of(name, place, self._chosen.moments)):
                self._note(kill, problems_of(kill, place, self._chosen.seed, seconds))
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _selected(self, kills: list[Kill]) -> list[Kill]:
        if self._chosen.only:
            return [kill for kill in kills if str(kill) == self._chosen.only]
        part = Random(self._chosen.seed).sample(kills, -(-len(kills) // self._chosen.part))  # noqa: S311  # a sample
        return [kill for kill in part if str(kill) not in self._known]

    def _note(self, kill: Kill, problems: list[str]) -> None:
        line = {"kill": str(kill), "problems": problems}
        with self._lock:
            self.tried.append(line)
            # One kill that is tried again is no part of a run that goes on.
            if not self._chosen.only:
                with KEPT.open("a") as file:
                    file.write(json.dumps(line) + "\n")


def main() -> int:
    """Try the kills, print a table, and return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m checks.crash", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"one of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--part", type=int, default=1, metavar="N", help="try one kill of N")
    parser.add_argument("--moments", type=int, default=60, help="random moments of each scenario")
    parser.add_argument("--seed", type=int, help="a number, to try the same kills again")
    parser.add_argument("--only", metavar="KILL", help="try one kill, for example restore/rename/3")
    parser.add_argument("--resume", action="store_true", help="pass over the kills that were tried")
    chosen = parser.parse_args()
    if unknown := set(chosen.scenarios) - set(SCENARIOS):
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    if chosen.seed is None:
        chosen.seed = int.from_bytes(os.urandom(4))
    if not shutil.which("strace"):
        print("strace is not installed: only random moments are tried")
    names = [chosen.only.partition("/")[0]] if chosen.only else chosen.scenarios or list(SCENARIOS)
    crashing = Crashing(chosen)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(crashing.scenario, names))
    return _print(crashing.tried, chosen.seed)


def _print(tried: list[dict[str, Any]], seed: int) -> int:
    table = Table("scenario", "at writes", "at moments", "broken promises")
    for name in SCENARIOS:
        kills = [each for each in tried if each["kill"].startswith(f"{name}/")]
        moments = sum("/moment/" in each["kill"] for each in kills)
        table.add_row(name, str(len(kills) - moments), str(moments), str(sum(bool(each["problems"]) for each in kills)))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    broken = [each for each in tried if each["problems"]]
    for each in broken:
        print(f"{each['kill']}: {'; '.join(each['problems'])}")
        print(f"    python -m checks.crash --only {each['kill']} --seed {seed}")
    print(f"seed {seed}, kills: {len(tried)}, with broken promises: {len(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
