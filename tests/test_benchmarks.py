"""Benchmarks run, print the promised rows, and lose no row to another one that fails."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_hooks.bridges import BRIDGES
from benchmarks.bridge_commands import command_bridges, entry
from benchmarks.bridge_plugins import plugin_bridges
from benchmarks.page import HEADLINES, RESULTS, written
from benchmarks.page import PAGE as PERFORMANCE
from benchmarks.soaks.flatness import Run, growth, table

ROOT = Path(__file__).parent.parent
PAGE = "# Title\n\n<!-- last run -->\nold\n<!-- end -->\n\nProse.\n"


def run(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run Python in the project's directory, check the exit code, and return the output."""
    done = subprocess.run([sys.executable, *args], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def rows_of(*args: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """Run Python as above; return the rows that it printed as JSON, by name."""
    result: dict[str, Any] = json.loads(run(*args, code=code).stdout)
    return {row["name"]: row for row in result["rows"]}


def test_a_benchmark_prints_targets_and_ratios_for_machines() -> None:
    """Each row has a name and a number, and some have targets with a verdict; a missing peer is a row that says so."""
    program = dedent("""
        from pathlib import Path
        from benchmarks import __main__, peer_runs
        peer_runs.HOME = Path("/nowhere")
        __main__.main(["--quick", "--json", "dispatch"])
    """)
    rows = rows_of("-c", program)
    missing = {name: row["verdict"] for name, row in rows.items() if row["measured"] is None}
    assert set(missing) == {f"emit, deadline, {count} async, to pluggy" for count in (1, 10)}
    assert set(missing.values()) == {"pluggy: not installed (python -m checks.peers)"}
    assert all(row["measured"] > 0 for name, row in rows.items() if name not in missing)
    assert (rows["emit, no handler"]["must"], rows["emit, no handler"]["goal"]) == (1.8, 1.5)
    words = ("must met, goal met", "must met, goal missed", "must missed, goal missed")
    assert rows["emit, no handler"]["verdict"] in words
    assert {"emit, 1 async that blocks", "emit, 1 async that raises and blocks", "emit, no handler, 1 observer"} <= set(
        rows
    )


def test_a_benchmark_that_fails_is_a_row_and_the_others_are_printed() -> None:
    """The row has the reason and the place, a part keeps the rows before it, and the exit code is 1."""
    program = dedent("""
        from benchmarks import __main__, growth, imports
        from benchmarks.harness import Row
        def fails(effort, peers):
            yield Row("before", 1)
            raise RuntimeError("as the test wants")
        imports.run = fails
        growth.run = lambda effort, peers: [Row("after", 2)]
        __main__.main(["--quick", "--json", "imports", "growth"])
    """)
    rows = rows_of("-c", program, code=1)
    assert list(rows) == ["before", "imports", "after"]
    assert rows["imports"]["verdict"] == "failed: RuntimeError: as the test wants (<string>:6)"
    table = run("-c", program.replace(', "--json"', ""), code=1).stdout
    assert "as the test wants" in table
    assert "after" in table


def test_a_part_of_a_benchmark_that_fails_leaves_the_other_parts() -> None:
    """Each part of a benchmark is guarded by itself."""
    program = dedent("""
        from benchmarks import __main__, tools
        def fails(effort):
            raise OSError("as the test wants")
        tools._guards = fails
        tools._hooks = tools._redactor = lambda *args: []
        __main__.main(["--quick", "--json", "tools"])
    """)
    rows = rows_of("-c", program, code=1)
    failed = {name for name, row in rows.items() if row["measured"] is None}
    assert failed == {"wrapped tool, guards"}
    assert rows["wrapped tool, guards, the first call"]["measured"] > 0
    assert rows["wrapped tool, 10 observers"]["measured"] > 0


def test_a_server_counts_as_listening_when_it_accepts_connections(tmp_path: Path) -> None:
    """The path of a socket is there before the server listens; the benchmark waits until it can connect."""
    server = dedent("""
        import socket, sys, time
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(sys.argv[1])
        time.sleep(0.3)
        listening.listen()
        time.sleep(60)
    """)
    program = dedent("""
        import socket, sys
        from pathlib import Path
        from benchmarks.bridge_echo import listening
        with listening([sys.executable, "-c", sys.argv[1]], Path(sys.argv[2])) as path:
            socket.socket(socket.AF_UNIX).connect(path)
            print("connected")
    """)
    assert run("-c", program, server, str(tmp_path / "socket")).stdout == "connected\n"


def test_a_client_that_is_not_installed_is_a_row_that_says_so() -> None:
    """The row names the command that installs it, and the exit code is 0."""
    program = dedent("""
        import asyncio
        from pathlib import Path
        from benchmarks import __main__, bridge, peer_runs
        from benchmarks.harness import attempt_async
        peer_runs.HOME = Path("/nowhere")
        rows = attempt_async(bridge.ROUND_TRIP, bridge.round_trip(Path("/nowhere/at/all"), None))
        bridge.run = lambda effort, peers: asyncio.run(rows)
        __main__.main(["--quick", "--json", "bridge"])
    """)
    (row,) = rows_of("-c", program).values()
    assert row["verdict"] == "not installed: Claude Code (python -m checks.agents)"


def test_each_agent_that_runs_a_command_has_an_entry_to_measure() -> None:
    """The benchmark takes the list of agents from the table of bridges, and runs an entry as its agent does."""
    bridges = command_bridges()
    assert {bridge.name for bridge in [*bridges, *plugin_bridges()]} == set(BRIDGES)
    for bridge in bridges:
        event = bridge.facts("/project", {}).event
        words = entry(bridge, ["/python", f"/bridges/agent-hooks-{bridge.name}.py"], event)
        assert words[0] in ("/python", "/bin/sh"), words
        assert event in words[-1]


WRITING = """
import sys
from pathlib import Path
from benchmarks import __main__, growth, imports, page
from benchmarks.harness import NotHereError, Row
page.PAGE, page.RESULTS = Path("{directory}", "page.md"), Path("{directory}", "results.json")
page.HEADLINES = ("one", "two | bars")
def second(effort, peers):
    yield Row("two | bars", 1, "µs", must=1, goal=0.5)
    raise NotHereError("not installed: node")
growth.run = lambda *args: [Row("one", 3, "ms", must=2, goal=1, note="to none; others"), Row("another", 1)]
imports.run = second
__main__.BENCHMARKS = ("growth", "imports")
__main__.main(sys.argv[1:])
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Return a page with a table to replace."""
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_a_quick_run_and_a_part_of_the_benchmarks_write_nothing(page: Path) -> None:
    """The results come from one whole run."""
    for options in (["--quick"], ["growth"]):
        done = run("-c", WRITING.format(directory=page.parent), "--write", *options)
        assert "nothing is written: this takes a run of all benchmarks without --quick" in done.stderr
    assert page.read_text() == PAGE
    assert list(page.parent.iterdir()) == [page]


def test_a_whole_run_writes_its_rows_as_json_and_a_table_into_the_page(page: Path) -> None:
    """The prose outside of the marks stays, the table has the chosen rows, and the machine is not named."""
    run("-c", WRITING.format(directory=page.parent), "--write")
    written = json.loads((page.parent / "results.json").read_text())
    keys = ("benchmark", "name", "measured", "unit", "must", "goal")
    assert [[row[key] for key in keys] for row in written["rows"]] == [
        ["growth", "one", 3, "ms", 2, 1],
        ["growth", "another", 1, "×", None, None],  # noqa: RUF001  # the sign of multiplication is meant
        ["imports", "two | bars", 1, "µs", 1, 0.5],
        ["imports", "imports", None, "×", None, None],  # noqa: RUF001  # as above
    ]
    assert platform.node() not in json.dumps(written)
    before, _, rest = page.read_text().partition("<!-- last run -->")
    section, _, after = rest.partition("<!-- end -->")
    assert (before, after) == ("# Title\n\n", "\n\nProse.\n")
    assert [line for line in section.splitlines() if line.startswith(("| one", "| two", "| another", "- "))] == [
        "| one | 3 ms | **2** | **1** | to none |",
        "| two \\| bars | 1 µs | 1 | **0.5** |  |",
        "- one: 3 ms, must 2",
    ]
    assert "4 rows: 1 above the must, 2 above the goal, 1 without a number." in section


def test_the_table_of_the_page_equals_the_results() -> None:
    """`make bench` writes both, so the table is not edited by hand."""
    results = json.loads(RESULTS.read_text())
    assert written(PERFORMANCE.read_text(), results) == PERFORMANCE.read_text()
    assert {row["name"] for row in results["rows"]} >= set(HEADLINES)


@pytest.mark.parametrize("name", ["performance", "reliability"])
def test_the_pages_on_costs_and_promises_are_short(name: str) -> None:
    """Each has at most 600 words, with its table. All other numbers are in the results."""
    assert len((ROOT / "docs" / f"{name}.md").read_text().split()) <= 600


def test_a_long_session_has_as_many_entries_as_the_row_says() -> None:
    """The benchmark counts the entries that the new process reads."""
    rows = rows_of("-m", "benchmarks", "--quick", "--json", "sessions")
    assert rows["resume of 3,000 entries"]["measured"] > 0


def test_the_soak_prints_a_slope() -> None:
    """A short soak, limited by events, prints the slope of the memory."""
    done = run("-m", "benchmarks.soak", "--events", "4000", "--seconds", "1")
    assert "slope per 100,000 events: " in done.stdout


@pytest.mark.slow
def test_a_part_of_the_soak_prints_its_figures() -> None:
    """Each run has its figures; whether memory is flat takes a longer run."""
    command = [sys.executable, "-m", "benchmarks.soaks", "--part", "200", "--seed", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    found = json.loads(done.stdout)
    assert [run["name"] for run in found["runs"]] == ["250 calls, asyncio", "250 calls, trio", "25 sessions"]
    for run in found["runs"]:
        assert run["figures"].keys() == {"memory", "descriptors", "threads", "modules"}
        assert growth(run["figures"]["modules"], 2)[2]
    assert "--part 200 --seed 1" in done.stderr


def test_a_figure_that_grows_is_not_flat() -> None:
    """The beginning does not count, and small numbers may change by one."""
    assert growth([1, 1, *[100] * 8])[2]
    assert not growth([100 + number for number in range(30)])[2]
    assert growth([3, 3, 3, 3, 4], 1)[2]
    run = Run("a run", {"memory": [1.0] * 6 + [2.0] * 4})
    lines, flat = table([run])
    assert not flat
    assert lines[-1] == "| a run | memory | 1.0 MiB | 2.0 MiB | +100.0% | NOT FLAT |"


def test_a_name_that_is_no_benchmark_is_told() -> None:
    """The error lists the names of all benchmarks."""
    with pytest.raises(
        AssertionError, match="there is no benchmark 'dispach'; there are dispatch, threads, isolation, tools"
    ):
        run("-m", "benchmarks", "dispach")
