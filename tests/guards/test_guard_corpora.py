"""The corpora: every row has its verdict at every level, and so have commands written before any guard ran."""

from __future__ import annotations

from typing import Literal

import pytest

from agent_hooks.guards.base import LEVELS, Level
from guard_corpus import path_rules, rows, rules

TOOLS = {"r": "read", "w": "write", "e": "edit"}


@pytest.mark.behaviour("G1")
@pytest.mark.parametrize("level", LEVELS)
def test_every_command_has_its_verdict_with_all_packs(level: Level) -> None:
    """A rule with an id stops each harmful command, and no rule stops a harmless one."""
    wrong = [
        row["command"]
        for row in rows("commands.tsv")
        if bool(rules(row["command"], level, packs=True)) != (row[level] == "deny")
    ]
    assert wrong == []


@pytest.mark.behaviour("G1")
@pytest.mark.parametrize("level", LEVELS)
def test_the_core_rows_need_no_pack(level: Level) -> None:
    """Packs are off by default; the rows that need one are of another tier."""
    core = [row for row in rows("commands.tsv") if row["tier"] == "core"]
    assert [row["command"] for row in core if bool(rules(row["command"], level)) != (row[level] == "deny")] == []


@pytest.mark.behaviour("G1")
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
