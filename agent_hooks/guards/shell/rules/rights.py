"""Rules about rights: world-writable, setuid, and roots that change their owner or their rights."""

from __future__ import annotations

import re

from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.modes import judge_modes
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Word


def chmod(command: Command) -> None:
    """`chmod` makes files world-writable or setuid, changes roots, or switches hooks off."""
    words = command.argv[1:]
    mode_at = next((at for at, word in enumerate(words) if _is_mode(word)), None)
    if mode_at is None:
        return
    rest = words[:mode_at] + words[mode_at + 1 :]
    options = ParsedOptions([command.argv[0], *rest])
    judge_modes(command, [words[mode_at]])
    operands = options.operands
    if options.has("R", "--recursive") and any(_system_root(command, word) for word in operands):
        command.report("chmod-root", "changes the rights of a root of the system or of a home")
    for word in operands:
        path = command.path(word)
        if "/.git/hooks/" in path and re.search(r"-[rwst]*x|^[0-7]*[0246]{3}$", words[mode_at]):
            command.report("git-hooks", "switches a hook of the repository off", word)


def _is_mode(word: str) -> bool:
    return bool(re.fullmatch(r"[0-7]{1,5}|([ugoa]*[-+=][rwxXstugo]*,?)+", word)) and not re.fullmatch(r"-[Rvfc]+", word)


def make_directory(command: Command) -> None:
    """`mkdir -m 777` makes a world-writable directory."""
    judge_modes(command, ParsedOptions(command.argv, "m", ("--mode",)).value("m", "--mode"))


def chown(command: Command) -> None:
    """`chown -R` hands over a root."""
    options = ParsedOptions(command.argv, "", ("--from", "--reference"))
    operands = options.operands[0 if options.has("--reference") else 1 :]
    if options.has("R", "--recursive") and any(_system_root(command, word) for word in operands):
        command.report("chmod-root", "hands over a root of the system or a home")


def _system_root(command: Command, word: Word) -> bool:
    """Return whether a word names a root other than the project, whose rights the user may change."""
    directories = command.interpreter.directories
    return command.is_root(word) and not (directories.own and command.path(word) == directories.project)


def setfacl(command: Command) -> None:
    """`setfacl -m o::rwx` makes a file world-writable."""
    if any(re.search(r"\bo(ther)?::?[rx-]*w", word) for word in command.argv[1:]):
        command.report("world-writable", "lets everybody write")


RULES: dict[str, tuple[Rule, ...]] = {
    "chmod": (chmod,),
    "mkdir": (make_directory,),
    **rules_of("chown chgrp", chown),
    "setfacl": (setfacl,),
}
