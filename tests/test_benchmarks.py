"""Benchmarks run, print what they promise, and fail for no number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def run(*args: str) -> str:
    """Run a module of the benchmarks and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", *args], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_benchmark_prints_targets_and_ratios_for_machines() -> None:
    """Every row has a name and a number; some have targets and a verdict."""
    result: dict[str, Any] = json.loads(run("benchmarks", "--quick", "--json", "dispatch"))
    rows = {row["name"]: row for row in result["rows"]}
    assert all(row["measured"] > 0 for row in rows.values())
    assert rows["emit, no handler"]["must"] == 2
    assert rows["emit, no handler"]["verdict"] in ("goal met", "must met", "not met")
    assert any(line.startswith("pluggy: ") for line in result["peers"]["lines"])


def test_another_agents_hook_is_measured_beside_an_idle_interpreter() -> None:
    """With a real server, which is gone afterwards."""
    result: dict[str, Any] = json.loads(run("benchmarks", "--quick", "--json", "bridge"))
    rows = {row["name"]: row for row in result["rows"]}
    assert rows["a command that asks the server, bare"]["must"] == 1.1
    assert all(row["measured"] > 0 for row in rows.values())


def test_the_soak_prints_a_slope() -> None:
    """Bounded by events here, by seconds in `make soak`."""
    assert "slope per 100,000 events: " in run("benchmarks.soak", "--events", "4000", "--seconds", "1")


def test_a_name_that_is_no_benchmark_is_told() -> None:
    """With the ones there are."""
    with pytest.raises(AssertionError, match="there is no benchmark 'dispach'; there are dispatch, tools"):
        run("benchmarks", "dispach")
