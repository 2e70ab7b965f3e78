"""The effects of one program, by its row in the table of programs."""

from __future__ import annotations

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.names import SHELLS, is_language
from agent_hooks.guards.shell.programs import Deed, deeds_of


def record_program(command: Command) -> bool:
    """Record the effects of a program, and return whether they are all known.

    A program that the table has no row for is not known.
    """
    if "/" in command.argv[0]:
        command.effect("execute", command.argv[0])
    found = deeds_of(command.name, command.argv, command.stdin)
    if found is None:
        return False
    deeds, known = found
    # The judges of code record the effects of its calls.
    command.recorded = command.name not in SHELLS and not is_language(command.name)
    for deed in deeds:
        known = _record(command, deed) and known
    return known


def _record(command: Command, deed: Deed) -> bool:
    """Record a deed, and return whether nothing else may follow from it."""
    kind, word = deed.kind, deed.word
    match kind:
        case "read" | "write" | "delete" | "list" | "execute":
            if not deed.member or command.interpreter.may_hold(word, command.shell):
                command.effect(kind, word, tree=deed.tree)
            # A text that this command line has written is followed when it runs.
            return kind != "execute" or command.path(word) in command.shell.files
        case "in" | "out":
            command.transfers(kind, None if UNKNOWN in word else word, deed.what)
        case "device":
            command.effect("write", word)
        case "discard":
            command.discards(word)
        case "install":
            command.installs(word)
        case "kill":
            command.kills(word)
        case "gain":
            command.gains(word)
        case "code":
            pass
    return True
