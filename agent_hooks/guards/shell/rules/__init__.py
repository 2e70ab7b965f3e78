"""The rules for programs: one module per subject, joined into one book.

A program may stand in several modules.  Its rules are applied in the order of the modules, and the first finding counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_hooks.guards.shell.builtins import BUILTINS
from agent_hooks.guards.shell.command import Book, Rule
from agent_hooks.guards.shell.rules import (
    code,
    containers,
    files,
    git,
    own_commands,
    own_files,
    own_links,
    own_outputs,
    packs,
    removal,
    rights,
    scripts,
    system,
    unpacking,
)

__all__ = ["BOOK"]

_SUBJECTS = (
    own_commands,
    own_files,
    own_outputs,
    unpacking,
    removal,
    files,
    rights,
    git,
    containers,
    scripts,
    system,
    code,
    packs,
    own_links,
)


def _joined(*tables: Mapping[str, tuple[Rule, ...]]) -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, tuple[Rule, ...]] = {}
    for table in tables:
        for program, its_rules in table.items():
            rules[program] = (*rules.get(program, ()), *its_rules)
    return rules


BOOK = Book(
    rules=_joined(*(subject.RULES for subject in _SUBJECTS)),
    builtins=BUILTINS,
    carriers={**scripts.CARRIERS, **own_files.CARRIERS, **own_outputs.CARRIERS},
    interpreter=code.interpreter,
    every=own_files.every_program,
)
