"""Benchmarks run, print the promised rows, and lose no row to another one that fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agent_hooks.bridges import BRIDGES
from benchmarks.bridge_commands import command_bridges, entry
from benchmarks.bridge_plugins import plugin_bridges
from benchmarks.soaks.flatness import Run, growth, table

ROOT = Path(__file__).parent.parent
PAGE = "# Title\n\n<!-- begin: written by make bench -->\nold\n<!-- end: written by make bench -->\n\nProse.\n"


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
    assert set(missing.values()) == {"pluggy: not installed (make bench-peers)"}
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


@pytest.mark.behaviour("SP2")
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
    assert row["verdict"] == "not installed: Claude Code (make clients)"


@pytest.mark.behaviour("SP2")
def test_each_agent_that_runs_a_command_has_an_entry_to_measure() -> None:
    """The benchmark takes the list of agents from the table of bridges, and runs an entry as its agent does."""
    bridges = command_bridges()
    assert {bridge.name for bridge in [*bridges, *plugin_bridges()]} == set(BRIDGES)
    for bridge in bridges:
        event = bridge.facts("/project", {}).event
        words = entry(bridge, ["/python", f"/bridges/agent-hooks-{bridge.name}.py"], event)
        assert words[0] in ("/python", "/bin/sh"), words
        assert event in words[-1]


def test_a_quick_run_and_a_part_of_the_benchmarks_write_no_page(tmp_path: Path) -> None:
    """The tables of a page come from one whole run."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    program = "from benchmarks import __main__, growth; growth.run = lambda *args: []; __main__.main({})"
    for options in (["--quick", "growth"], ["growth"]):
        done = run("-c", program.format([*options, "--write", str(page)]))
        assert "is left as it is" in done.stderr
    assert page.read_text() == PAGE


def test_a_whole_run_writes_the_tables_and_all_that_is_missed_into_the_page(tmp_path: Path) -> None:
    """The prose outside of the marks stays; the section has each row, each missed target, and no name of the machine."""
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    program = dedent("""
        import sys
        from benchmarks import __main__, growth, imports
        from benchmarks.harness import NotHereError, Row
        def second(effort, peers):
            yield Row("two | bars", 1, "µs", must=1, goal=0.5)
            raise NotHereError("not installed: node")
        growth.run = lambda *args: [Row("one", 3, must=2, goal=1)]
        imports.run = second
        __main__.BENCHMARKS = ("growth", "imports")
        __main__.main(["--write", sys.argv[1]])
    """)
    run("-c", program, str(page))
    text = page.read_text()
    before, _, rest = text.partition("<!-- begin: written by make bench -->")
    section, _, after = rest.partition("<!-- end: written by make bench -->")
    assert (before, after) == ("# Title\n\n", "\n\nProse.\n")
    assert "old" not in section
    assert "### Missed: must\n\n- one: 3 ×, the must is 2\n" in section  # noqa: RUF001  # the sign is meant
    assert "### Missed: goal\n\n- one: 3 ×, the goal is 1\n- two \\| bars: 1 µs, the goal is 0.5\n" in section  # noqa: RUF001  # as above
    assert "### Not measured\n\n- imports: not installed: node\n" in section
    assert "| two \\| bars | 1 | 0.5 | 1 µs | must met, goal missed |" in section
    assert "with " in section.splitlines()[2]


def test_the_page_of_the_project_has_a_section_to_write() -> None:
    """`make bench` finds its marks in docs/performance.md."""
    program = "from benchmarks.page import written; print(written(open('docs/performance.md').read(), {}, []))"
    assert "### Missed: must\n\n- none\n" in run("-c", program).stdout


def test_a_long_session_has_as_many_entries_as_the_row_says() -> None:
    """The benchmark counts the entries that the new process reads."""
    rows = rows_of("-m", "benchmarks", "--quick", "--json", "sessions")
    assert rows["resume of 3,000 entries"]["measured"] > 0


def test_the_soak_prints_a_slope() -> None:
    """A short soak, limited by events, prints the slope of the memory."""
    done = run("-m", "benchmarks.soak", "--events", "4000", "--seconds", "1")
    assert "slope per 100,000 events: " in done.stdout


@pytest.mark.slow
@pytest.mark.behaviour("SV8")
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
