"""Rules about files that are lost by a copy or a move, and about stores of keys.

The files that a program reads and writes are judged by the table of programs (`program_judging`).
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.inspector import Inspector
from agent_hooks.guards.shell.modes import judge_modes
from agent_hooks.guards.shell.options import ParsedOptions


def rsync(command: Command) -> None:
    """`rsync --delete` removes files of the destination that the source lacks."""
    options = ParsedOptions(command.argv, "efTB", ("--exclude", "--include", "--rsh", "--files-from", "--filter"))
    for shell in options.value("e", "--rsh"):
        command.shell_code(shell)
    operands = options.operands
    if not operands or options.has("n", "--dry-run"):
        return
    if any(flag.startswith("--del") for flag in options.flags):
        path = command.path(operands[-1])
        directories = command.interpreter.directories
        if not ((directories.own and directories.in_project(path)) or directories.in_temp(path)) or ":" in operands[-1]:
            reason, wall = "removes files of the destination, outside of the project", command.is_machine(operands[-1])
            command.report("rsync-delete", reason, operands[-1], wall=wall)
        elif any(re.search(r"(?:^|/)(?:empty|blank|void|nothing|null)[\w.-]*/?$", word) for word in operands[:-1]):
            command.report("rsync-delete", "makes the destination as empty as the source", operands[-1])


# A directory that is made and not filled before its files replace those of another.
_FROM_EMPTY = lazy_pattern(
    r"\bmkdir\s+(?:-\w+\s+)*(['\"]?)(?P<made>[^\s'\";&|]+?)/?\1\s*(?:&&|;|\n)\s*rsync\b[^\n;&|]*\s--del[^\n;&|]*?\s['\"]?(?P=made)/"
    r"|\brsync\b[^\n;&|]*\s--del[^\n;&|]*\$\(mktemp\s+-d[^)]*\)/"
)


def judge_script(inspector: Inspector, text: str) -> None:
    """Report `mkdir e && rsync -a --delete e/ src/`: the destination becomes as empty as the source."""
    if "rsync" in text and (found := _FROM_EMPTY.search(text)):
        inspector.report("rsync-delete", "makes the destination as empty as the source", found[0])


def copy(command: Command) -> None:
    """`cp /dev/null file` and `mv dir /dev/null` lose files; `mv` may move a root away, and `install -m` opens files."""
    options = ParsedOptions(
        command.argv, "tmogSiFPocJlZ" if command.name in ("scp", "install") else "tS", ("--target-directory",)
    )
    into = options.value("t", "--target-directory")
    sources, targets = (options.operands, into) if into else (options.operands[:-1], options.operands[-1:])
    if command.name == "install":
        judge_modes(command, options.value("m", "--mode"))
    if "/dev/null" in sources:
        command.loses(*targets)
    if command.name != "mv":
        return
    if any(command.path(target) == "/dev/null" for target in targets):
        command.report("rm-rf", "moves files into nothing")
        command.loses(*sources)
    for source in sources:
        if command.is_root(source):
            reason = "moves a root of the system, of a home or of the project away"
            command.report("rm-rf", reason, source, wall=command.is_machine(source))


def keychain(command: Command) -> None:
    """`security find-generic-password -w` and other programs print secrets from a key store."""
    text = str(command)
    if re.search(
        r"^security .*(find-(generic|internet)-password .*-[wg]|dump-keychain)|^secret-tool (lookup|search)"
        r"|^gpg2? .*--export-secret|^pass show|^keyring get|^op (read|item get)",
        text,
    ):
        command.report("read-keyring", "prints secrets from a key store")


RULES: dict[str, tuple[Rule, ...]] = {
    "rsync": (rsync,),
    **rules_of("cp mv install scp gcp pax cpio ditto", copy),
    **rules_of("security secret-tool gpg gpg2 pass keyring op", keychain),
}
