"""Write a whole run: all rows into `results.json`, and a few of them into `docs/performance.md`, between two marks."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.harness import Row

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "results.json"
BEGIN, END = "<!-- last run -->", "<!-- end -->"
HEADLINES = (
    "emit, deadline, 1 async",
    "emit, 1 plain def, 2 cores",
    "wrapped tool, no hooks",
    "wrapped tool, 10+10 async",
    "load 100 hook files again",
    "import agent_hooks",
    "resume of 100,000 entries",
    "checkpoint, 20,000 files",
    "redact, log",
    "a command, p99",
    "a command that asks the server, bare",
    "the server, p50, bare",
)
SYSTEMS = {"Darwin": "macOS"}


def run_of(rows: dict[str, list[Row]], peers: list[str]) -> dict[str, Any]:
    """Return the results of a run, with general facts about the machine. `peers` has a line for each peer."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": _commit(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": SYSTEMS.get(platform.system(), platform.system()),
        "architecture": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "peers": peers,
        "rows": [{"benchmark": name, **row.as_dict()} for name, group in rows.items() for row in group],
    }


def write(run: dict[str, Any]) -> None:
    """Replace the results and the table of the last run."""
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in run["rows"])
    head = json.dumps({**run, "rows": []}, ensure_ascii=False, indent=1).removesuffix("[]\n}")
    RESULTS.write_text(f"{head}[\n{rows}\n]}}\n")
    PAGE.write_text(written(PAGE.read_text(), run))


def written(page: str, run: dict[str, Any]) -> str:
    """Return a page with the table of a run between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no table to replace: it lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{_section(run)}\n\n{END}{after}"


def number(value: float | None) -> str:
    """Return a number with three digits, and an empty text for `None`."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _section(run: dict[str, Any]) -> str:
    rows = run["rows"]
    missed = {target: [row for row in rows if f"{target} missed" in row["verdict"]] for target in ("must", "goal")}
    absent = sum(row["measured"] is None for row in rows)
    machine = f"{run['python']} on {run['system']} ({run['architecture']}), {run['cores']} shared cores"
    above = f"{len(missed['must'])} above the must, {len(missed['goal'])} above the goal"
    lines = [
        f"{run['date']}, {machine}, commit {run['commit'] or 'unknown'}. Missed targets are bold.",
        "",
        "| row | measured | must | goal | compared |",
        "|---|---|---|---|---|",
        *(_line(row) for row in rows if row["name"] in HEADLINES),
        "",
        f"{len(rows)} rows: {above}, {absent} without a number.",
    ]
    if missed["must"]:
        lines += ["Above the must:", ""]
        lines += [f"- {_cell(row['name'])}: {_measured(row)}, must {number(row['must'])}" for row in missed["must"]]
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    cells = (row["name"], _measured(row), _target(row, "must"), _target(row, "goal"), row["note"].partition(";")[0])
    return f"| {' | '.join(map(_cell, cells))} |"


def _target(row: dict[str, Any], target: str) -> str:
    """Return a target, in bold type if it is missed."""
    text = number(row[target])
    return f"**{text}**" if f"{target} missed" in row["verdict"] else text


def _measured(row: dict[str, Any]) -> str:
    return row["problem"] if row["measured"] is None else f"{number(row['measured'])} {row['unit']}"


def _cell(text: str) -> str:
    """Return a text that does not leave its table cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def _commit() -> str:
    """Return the commit, with `-dirty` if files have changed, and an empty text outside of a clone."""
    try:
        command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
