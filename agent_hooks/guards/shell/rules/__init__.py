"""What is known of programs: one module per subject, joined into one book.  Above: the guard.  Below: command."""

from __future__ import annotations

from collections.abc import Mapping

from agent_hooks.guards.shell.builtins import BUILTINS
from agent_hooks.guards.shell.command import Book, Rule
from agent_hooks.guards.shell.rules import code, files, git, packs, system

__all__ = ["BOOK"]


def _joined(*tables: Mapping[str, tuple[Rule, ...]]) -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, tuple[Rule, ...]] = {}
    for table in tables:
        for program, its in table.items():
            rules[program] = (*rules.get(program, ()), *its)
    return rules


BOOK = Book(
    rules=_joined(files.RULES, git.RULES, system.RULES, code.RULES, packs.RULES),
    builtins=BUILTINS,
    carriers=system.CARRIERS,
    interpreter=code.interpreter,
)
