"""The figures of a process over a long run, and whether they stay flat.

The first part of a run fills caches and does not count.  Of the rest, the median of the last third is compared with the
median of the first third.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ALLOWED = 0.05
"""The growth that counts as flat, as a part of the figure."""
WARM_UP = 0.2
"""The part of the figures that does not count."""
SLACK = {"threads": 1.0, "descriptors": 1.0, "modules": 2.0}
"""The growth that also counts as flat, because some figures are small numbers."""


@dataclass
class Run:
    """One long run: its name, the figures by name, and remarks to print below them."""

    name: str
    figures: dict[str, list[float]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def note(self, figures: Mapping[str, float]) -> None:
        """Add one value of each figure."""
        for name, value in figures.items():
            self.figures.setdefault(name, []).append(value)

    def growths(self) -> dict[str, tuple[float, float, bool]]:
        """Return the first and the last median of each figure, and whether it is flat."""
        return {name: growth(values, SLACK.get(name, 0.0)) for name, values in self.figures.items()}


def growth(values: list[float], slack: float = 0.0) -> tuple[float, float, bool]:
    """Return the first and the last median of some values in the order of time, and whether they are flat."""
    counted = values[int(len(values) * WARM_UP) :]
    third = max(len(counted) // 3, 1)
    first, last = median(counted[:third]), median(counted[-third:])
    return first, last, last - first <= max(first * ALLOWED, slack)


def figures_of(pid: int | str = "self") -> dict[str, float]:
    """Return memory in MiB, descriptors and threads of a process, from the files of Linux."""
    folder = Path(f"/proc/{pid}")
    pages = int((folder / "statm").read_text().split()[1])
    return {
        "memory": pages * resource.getpagesize() / (1 << 20),
        "descriptors": len(list((folder / "fd").iterdir())),
        "threads": len(list((folder / "task").iterdir())),
    }


def table(runs: Iterable[Run]) -> tuple[list[str], bool]:
    """Return the lines of the table, and whether all figures are flat."""
    lines = ["| run | figure | first | last | growth | |", "|---|---|---|---|---|---|"]
    all_flat = True
    for run in runs:
        for name, (first, last, flat) in run.growths().items():
            all_flat &= flat
            share = (last - first) / first if first else 0.0
            unit = " MiB" if name == "memory" else ""
            verdict = "flat" if flat else "NOT FLAT"
            lines.append(f"| {run.name} | {name} | {first:.1f}{unit} | {last:.1f}{unit} | {share:+.1%} | {verdict} |")
        lines += [f"| {run.name} | {remark} | | | | |" for remark in run.remarks]
    return lines, all_flat
