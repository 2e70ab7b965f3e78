"""Losses outside the machine: the table's form, and the words of a command that its patterns are searched in.

A service has no undo: a deleted bucket, a published package or a granted right stays.  Each subject has a module with
rows; a row names programs and a pattern.  A command that only shows help or tries out, and data with blanks, meet no row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule
from agent_hooks.guards.shell.origins import SECRET
from agent_hooks.guards.shell.words import Text, Word

_TRIES = lazy_pattern(
    r"(?:^|\s)(?:--?dry-?run(?:=(?!none|false)\S*)?|--help|--version|--?what-?if|--check|--just-print|--plan|--preview"
    r"|--preview-only|--simulate|--snapshot|--no-act)(?=\s|$)|^\S+ help(?=\s|$)|^\S+(?: [\w-]+){0,2} -h$| help$",
    re.IGNORECASE,
)
_LONGEST = 4000
# A name of test data, or of something temporary: `app_test`, `tmp_import`, `config.settings.test`, `test.db`.
_TEST_WORD = r"(?:tests?|testing|tmp|temp|scratch|sandbox|e2e)"
_TEST_NAME = lazy_pattern(rf"(?:.*[_./-])?{_TEST_WORD}(?:\d*|[_-][\w-]*)(?:\.\w+)?", re.IGNORECASE)
_ENVIRONMENTS = lazy_pattern(r"(?:RAILS|RACK|NODE|APP|MIX|HANAMI|FLASK|DJANGO)_ENV|DJANGO_SETTINGS_MODULE")
_TEST_OPTION = lazy_pattern(
    rf"(?:^|\s)(?:\w+_ENV=|--(?:env|environment|settings)[= ]|-e )(?:[\w.-]*[_.-])?{_TEST_WORD}(?=\s|$)"
)
LOCAL_CLUSTER = (
    r"--(?:kube-)?context[= ](?:kind-\S+|k3d-\S+|minikube|docker-desktop|rancher-desktop|colima|orbstack)(?=\s|$)"
)
"""The option for a cluster of this machine, which can be made again."""


class Loss(NamedTuple):
    """One kind of loss.

    `rule`: the id of the findings; `programs`: names, separated by blanks; `harmful`, `excuse`: patterns that are
    searched in the command's words, joined by blanks; `whole`: words with blanks and stdin are searched too; `spare`: a
    pattern for the parts of the words that are not searched; `wall`: it destroys the machine, so no person is asked.
    """

    rule: str
    programs: str
    harmful: str
    reason: str
    excuse: str = ""
    whole: bool = False
    spare: str = ""
    wall: bool = False


def names_test(name: str) -> bool:
    """Return whether a name is one of test data, or of something temporary."""
    return bool(_TEST_NAME.fullmatch(name))


def on_test_data(command: Command) -> bool:
    """Return whether a command works on test data by its environment: `RAILS_ENV=test rails db:drop`."""
    assigned = dict(command.environment)
    for line in (*command.interpreter.around, command.interpreter.line):
        if line is not None:
            assigned.update({**line.exports, **line.assigns})
    given = any(_ENVIRONMENTS.fullmatch(name) and names_test(value) for name, value in assigned.items())
    return given or bool(_TEST_OPTION.search(" ".join(command.argv[1:])))


def only_tries(command: Command) -> bool:
    """Return whether a command shows its help, or tells the actions that it would take."""
    return bool(_TRIES.search(plain_text(command)))


def earlier(command: Command) -> list[str]:
    """Return the words of the commands before this one in its pipeline."""
    words = list(map(str, command.interpreter.pipeline_words))
    return words[: words.index(command.argv[0])] if command.argv[0] in words else words


def plain_text(command: Command, *, whole: bool = False) -> str:
    """Return a command as one line; without `whole`, words that hold a blank are left out, because they are data."""
    words = [word for word in command.argv[1:] if whole or not (" " in word or "\n" in word)]
    text = " ".join([command.name, *words])[:_LONGEST]
    return f"{text}\n{command.stdin.text[:_LONGEST]}" if whole and command.stdin.text else text


def _rule(row: Loss) -> Rule:
    patterns = (row.harmful, row.excuse, row.spare)
    harmful, excuse, spare = (lazy_pattern(text, re.IGNORECASE | re.DOTALL) for text in patterns)

    def rule(command: Command) -> None:
        text = plain_text(command, whole=row.whole)
        if row.spare:
            text = spare.sub(" ", text)
        if not harmful.search(text) or only_tries(command) or (row.excuse and excuse.search(text)):
            return
        if row.rule == "sql" and on_test_data(command):
            return
        if row.rule == "print-secret" and _unseen(command):
            command.output = Text(None, SECRET)
        else:
            command.report(row.rule, row.reason, wall=row.wall)

    return rule


def _unseen(command: Command) -> bool:
    """Return whether a word, a program that signs in, or nothing takes the output of a command."""
    line = command.interpreter.line
    return command.interpreter.taken or (line is not None and (">", "/dev/null") in line.redirects)


def losses(rows: Iterable[Loss]) -> dict[str, tuple[Rule, ...]]:
    """Return the rules of some rows, by the program's name."""
    rules: dict[str, tuple[Rule, ...]] = {}
    for row in rows:
        rule = _rule(row)
        for program in row.programs.split():
            rules[program] = (*rules.get(program, ()), rule)
    return rules


_MODULES = {
    "twine",
    "celery",
    "alembic",
    "flask",
    "django",
    "ansible",
    "flit",
    "hatch",
    "poetry",
    "maturin",
    "mkdocs",
    "awscli",
    "dbt",
    "airflow",
}


def modules(command: Command) -> None:
    """`python -m twine upload` is `twine upload`, and `python manage.py flush` is `manage.py flush`."""
    words = command.argv[1:]
    if len(words) > 1 and words[0] == "-m" and words[1] in _MODULES:
        command.runs([Word(words[1]), *words[2:]])
    elif words and words[0].rpartition("/")[2] == "manage.py":
        command.runs([Word("manage.py"), *words[1:]], command.stdin)
