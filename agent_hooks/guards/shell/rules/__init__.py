"""The rules for programs: one module per subject, joined into one book.

A program may stand in several modules.  Its rules are applied in the order of the modules, and the first finding counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent_hooks.guards.shell.builtins import BUILTINS
from agent_hooks.guards.shell.command import Book, Command, Rule
from agent_hooks.guards.shell.inspector import Inspector
from agent_hooks.guards.shell.names import SHELLS, is_language
from agent_hooks.guards.shell.program_judging import judge_program, record_program
from agent_hooks.guards.shell.rules import (
    access,
    applying,
    backups,
    boards,
    clouds,
    clusters,
    code,
    consoles,
    containers,
    databases,
    evaluators,
    exhaustion,
    fetching,
    file_tools,
    files,
    git,
    images,
    injection,
    kernel,
    last_net,
    messaging,
    outside,
    own_commands,
    own_files,
    own_links,
    packages,
    packs,
    publishing,
    remote,
    removal,
    repositories,
    requests,
    rights,
    scripts,
    secret_stores,
    sending,
    services,
    statements,
    system,
    terminals,
    unlisted,
    unpacking,
    windows,
)
from agent_hooks.guards.shell.words import Text

__all__ = ["BOOK"]

Builtin = Callable[[Command], Text]

_SUBJECTS = (
    own_commands,
    own_files,
    unpacking,
    removal,
    file_tools,
    files,
    rights,
    git,
    containers,
    scripts,
    remote,
    evaluators,
    system,
    code,
    packs,
    own_links,
    fetching,
    applying,
    injection,
    kernel,
    images,
    repositories,
    sending,
    secret_stores,
    requests,
    publishing,
    access,
    messaging,
    backups,
    services,
    clusters,
    databases,
    clouds,
    packages,
    windows,
    exhaustion,
    boards,
    terminals,
    unlisted,
)

# They judge and find no effect that the table of programs does not know.
_JUDGES = (
    *(
        access,
        applying,
        backups,
        boards,
        clouds,
        clusters,
        databases,
        exhaustion,
        images,
        messaging,
        own_files,
        own_links,
    ),
    *(packages, packs, publishing, requests, rights, services, terminals, unlisted),
)


def _joined(*tables: Mapping[str, tuple[Rule, ...]]) -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, tuple[Rule, ...]] = {}
    for table in tables:
        for program, its_rules in table.items():
            rules[program] = rules[program] + its_rules if program in rules else its_rules
    return rules


def _builtin(name: str, *rules: Rule) -> Builtin:
    """Return a builtin of the shell with rules that judge it first."""

    def builtin(command: Command) -> Text:
        for rule in rules:
            rule(command)
        return BUILTINS[name](command)

    return builtin


def _opened(command: Command) -> None:
    sending.redirected(command)
    fetching.opens(command)


def _every(command: Command) -> None:
    kernel.environment(command)
    fetching.program(command)
    own_commands.installed_client(command)
    sending.redirected(command)
    own_files.every_program(command)
    statements.any_program(command)
    if command.name not in _BOOK_RULES:
        unlisted.program(command)
    secret_stores.shows_list(command)


def _interpreter(command: Command) -> None:
    kernel.environment(command)
    code.interpreter(command)
    terminals.code(command)
    own_commands.installed_client(command)
    fetching.runs(command)
    fetching.descriptors(command)
    outside.modules(command)
    injection.module(command)
    sending.serves(command)
    if command.name in ("pwsh", "powershell"):
        windows.powershell(command)
    elif command.name not in SHELLS:
        sending.code(command)
        exhaustion.code(command)
    # The book does not apply the rules for languages by itself.
    if is_language(command.name):
        for rule in _BOOK_RULES.get(command.name, ()):
            rule(command)


def _script(inspector: Inspector, text: str) -> None:
    exhaustion.judge_script(inspector, text)
    files.judge_script(inspector, text)


_BOOK_RULES = _joined(*(subject.RULES for subject in _SUBJECTS))
BOOK = Book(
    rules=_BOOK_RULES,
    builtins={
        **BUILTINS,
        **{name: _builtin(name, kernel.exported) for name in ("export", "declare", "typeset", "readonly")},
        "printf": _builtin("printf", secret_stores.echo),
        "unset": _builtin("unset", kernel.unset),
    },
    carriers={
        **scripts.CARRIERS,
        **own_commands.CARRIERS,
        **own_files.CARRIERS,
        **secret_stores.CARRIERS,
        **terminals.CARRIERS,
        "exec": _opened,
    },
    interpreter=_interpreter,
    every=_every,
    consoles=consoles.console,
    effects=record_program,
    files=judge_program,
    followers=_joined(*(subject.RULES for subject in _SUBJECTS if subject not in _JUDGES)),
    script=_script,
    net=last_net.judge,
    evaluated=last_net.evaluated,
)
