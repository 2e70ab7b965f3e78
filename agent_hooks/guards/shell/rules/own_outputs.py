"""Rules for programs that mostly read, but write a file that a verb or the first operand names.

`every_program` (`own_files`) lets such programs name the files that control the agent; these rules find the output.
The module `output_options` has those that an option names.
"""

from __future__ import annotations

import re

from agent_hooks.guards.patches import patched_names
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import TAR_VALUES, ParsedOptions, spelled_out
from agent_hooks.guards.shell.output_options import outputs
from agent_hooks.guards.shell.words import Word

# ---- archives --------------------------------------------------------------------------------------------------------


def _writes(command: Command, words: list[Word]) -> None:
    command.writes(*(word for word in words if command.controls(word)))


def _packed_by_tar(command: Command) -> list[Word]:
    """Return the archives that `tar` makes or changes."""
    options = ParsedOptions(spelled_out(command.argv, TAR_VALUES), TAR_VALUES, ("--file", "--directory"))
    long = ("--create", "--append", "--update", "--catenate", "--concatenate", "--delete")
    return options.value("f", "--file") if options.has("c", "r", "u", "A", *long) else []


def packed(command: Command) -> None:
    """`tar c`, `zip`, `7z a` and `ar r` write the archive."""
    words = command.argv[1:]
    if command.name in ("tar", "bsdtar"):
        _writes(command, _packed_by_tar(command))
    elif command.name == "zip":
        _writes(command, ParsedOptions(command.argv, "bnPtixO", ("--out", "--output-file")).operands[:1])
    elif words and re.match(r"-?(?:a|u|d|rn|m|r|q|[a-z]*[rq][a-z]*)$", words[0]):
        _writes(command, [word for word in words[1:] if not word.startswith("-")][:1])


def git_outputs(command: Command) -> None:
    """`git bundle create` writes a file; `git hash-object -w` copies a file to where it can be read."""
    words = command.argv[1:]
    if "bundle" in words and "create" in words:
        _writes(command, words[words.index(Word("create")) + 1 :])
    if "hash-object" in words:
        command.reads(*(word for word in words if not word.startswith("-")))


def recorded(command: Command) -> None:
    """`script file` writes all output to the file."""
    operands = ParsedOptions(command.argv, "cEImOoBTt", ("--command",), stop_early=False).operands
    _writes(command, operands[:1])
    _writes(command, ParsedOptions(command.argv, "cEImOoBTt", ("--command",)).value("I", "O", "B", "T", "m"))


def apply_patch(command: Command) -> None:
    """`apply_patch` changes the files that its text names."""
    text = "\n".join([*command.argv[1:], command.stdin.text or ""])
    _writes(command, [Word(name) for name in patched_names(text)])


def container_copy(command: Command) -> None:
    """`docker cp` and `kubectl cp` write their last operand."""
    if "cp" in command.argv[1:]:
        _writes(command, command.argv[-1:])


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("tar bsdtar zip 7z 7za 7zz rar ar", packed),
    "git": (git_outputs,),
    "script": (recorded,),
    **rules_of("apply_patch applypatch", apply_patch),
    **rules_of("docker podman kubectl", container_copy),
}
# These carry another command, after which they write a report.
CARRIERS: dict[str, Rule] = dict.fromkeys(("strace", "ltrace", "time", "perf", "valgrind"), outputs)
