"""An agent that may type into a running command, past all hooks, does not get a program that runs the text."""

from __future__ import annotations

from agent_hooks.guards.base import Finding
from agent_hooks.guards.shell import CommandSafetyGuard
from guard_corpus import call, rows


def typed(command: str, *, stays_open: bool = True) -> list[Finding]:
    """Return the findings about typed text in a command of a tool whose stdin stays open, or does not."""
    from msgspec.structs import replace

    found = CommandSafetyGuard().find(replace(call("bash", command=command), stays_open=stays_open))
    return [each for each in found if each.rule == "typed-commands"]


def test_each_command_has_its_answer_where_the_agent_may_type_into_it() -> None:
    """A shell, a language or a console that reads stdin is undecidable; a script, inline code or a known text passes."""
    wrong = [row["command"] for row in rows("typed.tsv") if bool(typed(row["command"])) != (row["expected"] == "ask")]
    assert wrong == []


def test_the_finding_is_undecidable() -> None:
    """The setting `undecidable` decides, because the agent may never type anything."""
    assert [each.undecidable for each in typed("python3")] == [True]


def test_a_tool_that_gives_no_stdin_may_start_every_console() -> None:
    """Where the agent cannot type into a command, the same commands pass."""
    assert [row["command"] for row in rows("typed.tsv") if typed(row["command"], stays_open=False)] == []


def test_an_open_stdin_makes_no_other_finding_certain() -> None:
    """Commands that pass by their stdin being empty have no certain finding when it stays open."""
    from msgspec.structs import replace

    guard = CommandSafetyGuard()
    for row in rows("typed.tsv"):
        if row["expected"] == "pass":
            given = call("bash", command=row["command"])
            found = guard.find(replace(given, stays_open=True))
            assert [each.rule for each in found] == [each.rule for each in guard.find(given)], row["command"]
