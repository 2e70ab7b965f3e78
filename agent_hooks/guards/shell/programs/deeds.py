"""From the words of a program to its deeds: the effect on each word, by the program's row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.programs.reading import Deed, Reading, inside
from agent_hooks.guards.shell.programs.rows import Row, program_of, row_of, verb_row
from agent_hooks.guards.shell.programs.special import FUNCTIONS
from agent_hooks.guards.shell.words import EMPTY, Text, Word

__all__ = ["Deed", "deeds_of", "is_harmless", "names_files"]

# The words of a command that asks for help; in a longer one, `--help` may belong to something else.
_LONGEST_HELP = 4


def deeds_of(name: str, argv: Sequence[Word], stdin: Text = EMPTY) -> tuple[list[Deed], bool] | None:
    """Return the deeds of a command, and whether they are all; `None` when the table has no row for it.

    `name`: the plain name of the program; `argv`: its words; `stdin`: the text that it reads.
    """
    program = program_of(name)
    row = row_of(program)
    if row is None:
        return None
    if _prints_help(row, argv):
        return [], True
    words, directory, shared = list(argv), None, None
    while row.has("verbs"):
        found = _verb(program, row, words)
        if found is None:
            break
        program, rest, directory = found[0], found[1], found[2] or directory
        inner = row_of(program)
        if inner is None:
            break
        shared = row if row.has("global") else shared
        row, words = inner, rest
    reading = Reading(program, words, row if shared is None else _shared(row, shared), stdin, FUNCTIONS)
    reading.directory = directory
    return reading.read(), reading.known


@lru_cache(512)
def _shared(row: Row, other: Row) -> Row:
    return row.with_options_of(other)


@lru_cache(1024)
def is_harmless(name: str) -> bool:
    """Return whether a program runs no code that is not known, and none of its words names a file."""
    row = row_of(program_of(name))
    return row is not None and not row.names_files and not row.has("opaque")


@lru_cache(1024)
def names_files(name: str) -> bool:
    """Return whether the words of a program may name files, as far as its row tells."""
    row = row_of(program_of(name))
    return row is not None and row.names_files


def _verb(program: str, row: Row, words: list[Word]) -> tuple[str, list[Word], Word | None] | None:
    """Return the name of the verb's row, the words behind the verb, and the directory that an option before it names."""
    everywhere = row.has("global")
    if len(words) > 1 and words[1].startswith("-") and (found := verb_row(program, list(map(str, words[1:2]))))[0]:
        return found[0], words[1:], None
    options = ParsedOptions(words, row.short, row.long, stop_early=not everywhere, single_dash=row.has("dash"))
    verbs = [str(word) for word in options.operands[:3]]
    name, count = verb_row(program, verbs)
    if not name:
        return None
    if everywhere:
        rest, left = [words[0]], list(verbs[:count])
        for word in words[1:]:
            if left and word == left[0]:
                del left[0]
            else:
                rest.append(word)
        return name, rest, None
    rest = [words[0], *options.operands[count:]]
    given = [word for each, role in row.roles.items() if role == "/" for word in options.value(each)]
    directory = None
    for word in given:
        directory = word if directory is None else inside(directory, word)
    return name, rest, directory


def _prints_help(row: Row, argv: Sequence[Word]) -> bool:
    """Return whether a command would only print its help or its version."""
    if len(argv) < 2 or argv[-1] not in ("--help", "--version") or row.has("early") or len(argv) > _LONGEST_HELP:
        return False
    return not {"--", "run", "exec", "x", "dlx"}.intersection(argv)
