"""The corpora: every row has its verdict at every level, and so have commands written before any guard ran."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from agent_hooks.guards.base import LEVELS, Level
from guard_corpus import answer, path_rules, rows, rules

TOOLS = {"r": "read", "w": "write", "e": "edit"}


@pytest.mark.parametrize("level", LEVELS)
def test_every_command_has_its_verdict_with_all_packs(level: Level) -> None:
    """A rule with an id stops each harmful command, and no rule stops a harmless one."""
    wrong = [
        row["command"] for row in rows("commands.tsv") if bool(rules(row["command"], level)) != (row[level] == "deny")
    ]
    assert wrong == []


@pytest.mark.parametrize("level", LEVELS)
def test_the_core_rows_need_no_pack(level: Level) -> None:
    """Packs are off by default; the rows that need one are of another tier."""
    core = [row for row in rows("commands.tsv") if row["tier"] == "core"]
    assert [row["command"] for row in core if bool(rules(row["command"], level)) != (row[level] == "deny")] == []


def test_every_path_has_its_verdict() -> None:
    """Each path is judged for each of its tools."""
    wrong = [
        (op, row["path"])
        for row in rows("paths.tsv")
        for op in row["ops"]
        if bool(path_rules(TOOLS[op], row["path"])) != (row["expected"] == "deny")
    ]
    assert wrong == []


@pytest.mark.parametrize("corpus", ["held_out.tsv", "held_out_2.tsv"])
@pytest.mark.parametrize(("expected", "least"), [("deny", 97.0), ("allow", 99.0)])
def test_commands_written_before_any_guard_ran_have_their_verdict(
    corpus: str, expected: Literal["deny", "allow"], least: float
) -> None:
    """At least 97 % of the harmful commands are stopped, and 99 % of the harmless ones pass."""
    own = [row for row in rows(corpus) if row["expected"] == expected]
    right = [row for row in own if bool(rules(row["command"])) == (expected == "deny")]
    assert len(own) > 100
    assert 100 * len(right) / len(own) >= least


@pytest.mark.parametrize("corpus", ["calls.tsv", "calls_2.tsv"])
def test_calls_of_tools_with_other_names_and_arguments_have_their_answer(corpus: str) -> None:
    """A shell or a file tool of another program is judged, an input that cannot be read is asked about, others pass."""
    wrong = [
        (row["tool"], row["input"])
        for row in rows(corpus)
        if answer(row["tool"], **json.loads(row["input"])) != row["expected"]
    ]
    assert wrong == []


def test_a_tree_is_not_removed_in_other_words() -> None:
    """A list of every file that goes to a program that removes files is stopped, and a list that is narrowed passes."""
    wrong = [
        row["command"] for row in rows("held_out_3.tsv") if bool(rules(row["command"])) != (row["expected"] == "deny")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "input", [{"jobs": [{"n": 1}] * 1200}, {"input": json.dumps({"pad": "x" * 140_000})}], ids=["objects", "json"]
)
def test_an_input_that_is_too_large_to_search_for_commands_is_asked_about_for_a_shell_only(
    input: dict[str, Any],
) -> None:
    """A shell's input with too many objects or too long a JSON text is undecidable; other tools may send more data."""
    assert answer("mcp__sh__exec", **input) == "ask"
    assert answer("mcp__any__send_report", **input) == "allow"


ROWS = [{"name": f"n{number}", "day": "x"} for number in range(1200)]


def nested(depth: int) -> dict[str, Any]:
    """Return objects within objects."""
    return {"x": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("input", "expected"),
    [
        ({"rows": ROWS, "last": "/home/dev/.ssh/id_rsa"}, "ask"),
        ({"rows": ROWS, "path": ".env"}, "ask"),
        ({"rows": [*ROWS, {"path": ".env"}]}, "ask"),
        ({"rows": [*ROWS, {"command": "rm -rf /"}]}, "deny"),
        ({"rows": ["x"] * 800, "last": "/home/dev/.agent/records/r.jsonl"}, "deny"),
        ({"first": nested(10), "rows": ROWS}, "allow"),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"command": "rm -rf /"}}}}}}}}}}, "deny"),
        ({"rows": ["a/b"] * 4000}, "ask"),
        ({"rows": ["x"] * 40_000}, "ask"),
        ({"rows": [{}] * 25_000}, "ask"),
        ({"rows": [{"command": "ls"}] * 1100}, "ask"),
        (nested(70), "ask"),
        ({"data": json.dumps({"x": "y" * (1 << 20)}), "given": "{" + " " * (1 << 20)}, "ask"),
    ],
)
def test_no_part_of_a_large_input_passes_unread(input: dict[str, Any], expected: str) -> None:
    """The input of a tool that is not known is read whole, and beyond the limits the person is asked."""
    assert answer("mcp__any__thing", **input) == expected


@pytest.mark.parametrize(
    ("tool", "input", "expected"),
    [
        ("mcp__fs__read_file", {"path": "/home/dev/.ssh/id_rsa", "owner": "o", "repo": "r"}, "deny"),
        ("mcp__fs__read_file", {"path": "~/.aws/credentials", "repo": "r"}, "deny"),
        ("mcp__fs__read_file", {"path": "src/../../.aws/credentials", "project_id": "p"}, "deny"),
        ("mcp__fs__read_file", {"path": ".env", "owner": "o", "repo": "r"}, "ask"),
        ("mcp__fs__read_file", {"request": {"path": ".env", "repo": "r"}}, "ask"),
        ("mcp__fs__read_file", {"files": [{"path": ".env", "repo": "r"}]}, "deny"),
        ("mcp__fs__read_file", {"path": "src/main.py", "owner": "o", "repo": "r"}, "allow"),
        ("mcp__github__get_file_contents", {"path": ".env", "owner": "o", "repo": "r"}, "allow"),
        ("mcp__github__get_file_contents", {"path": "/home/dev/.ssh/id_rsa", "owner": "o", "repo": "r"}, "deny"),
        ("mcp__any__thing", {"place": "/home/dev/.ssh/id_rsa", "repo": "r"}, "ask"),
        ("read", {"path": ".env", "owner": "o", "repo": "r"}, "deny"),
    ],
)
def test_the_name_of_a_repository_does_not_spare_a_file_of_this_machine(
    tool: str, input: dict[str, Any], expected: str
) -> None:
    """A tool may ignore the argument; only a relative path of a server that is known to keep repositories passes."""
    assert answer(tool, **input) == expected


@pytest.mark.parametrize(
    ("tool", "input", "expected"),
    [
        ("exec", {"program": "rm", "args": [], "arguments": ["-rf", "/"]}, "deny"),
        ("exec", {"program": "rm", "args": ["x"], "arguments": ["-rf", "/"]}, "deny"),
        ("exec", {"program": "rm", "args": ["-rf", "/"], "params": ["--help"]}, "deny"),
        ("exec", {"program": "ls", "args": [], "arguments": ["-l"]}, "allow"),
        ("get_command_output", {"command": "rm -rf /"}, "deny"),
        ("get_command_output", {"command": "npm test"}, "allow"),
        ("mcp__fs__read_file", {"path": {"x": 1}, "other": "/home/dev/.agent/records/r.jsonl"}, "deny"),
        ("mcp__any__thing", {"a": "/home/dev/.ssh/id_rsa", "b": "/home/dev/.agent/records/r.jsonl"}, "deny"),
    ],
)
def test_the_gravest_finding_about_a_call_counts(tool: str, input: dict[str, Any], expected: str) -> None:
    """Each argument with words may be the one that the tool reads, and a certain finding goes before a question."""
    assert answer(tool, **input) == expected
