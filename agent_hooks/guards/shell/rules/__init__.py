"""What is known of programs: one module per subject, joined into one book.  Above: the guard.  Below: interpret."""

from __future__ import annotations

from agent_hooks.guards.shell.builtins import BUILTINS
from agent_hooks.guards.shell.interpret import Book, Command, Rule
from agent_hooks.guards.shell.rules import code, files, git, packs, system

__all__ = ["BOOK"]


def _joined(*tables: dict[str, tuple[Rule, ...]]) -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, tuple[Rule, ...]] = {}
    for table in tables:
        for program, its in table.items():
            rules[program] = (*rules.get(program, ()), *its)
    return rules


def _code_of_the_environment(command: Command) -> None:
    """`PAGER='rm -rf /' git log`: judged where it is assigned; here, hooks that a variable switches off."""


BOOK = Book(
    rules=_joined(files.RULES, git.RULES, system.RULES, code.RULES, packs.RULES),
    always=(),
    builtins=BUILTINS,
    carriers=system.CARRIERS,
    interpreter=code.interpreter,
)
