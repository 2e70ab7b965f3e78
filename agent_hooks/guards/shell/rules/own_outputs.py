"""Rules for programs that mostly read, but write a file that an option, a verb or the first operand names.

`every_program` (`own_files`) lets such programs name the files that control the agent; these rules find the output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.rules.unpacking import tar_archives
from agent_hooks.guards.shell.words import Word, marked

# Long options whose value is a file or a directory that the program writes; some programs spell them with one dash.
_LONG = re.compile(
    r"--?(?!report-ident)(?:out(?:put|file|dir|form)?|export|log|junit|report|save|dump|trace|write|keyout|results|joblog|cookie-jar|"
    r"stderr|cache-dir|basetemp|target|dest|pack-destination|index-file|Logfile)[\w-]*"
)
_NO_LETTERS = (
    "ls ll la find gfind grep egrep fgrep zgrep rg ag ack awk gawk mawk git g ps lsof mount xargs pytest py.test ssh "
    "tar bsdtar zip unzip cp mv install scp chmod chown set docker podman file pgrep kill cut"
)
# Letters of short options whose value is a file that the program writes; other programs have only `-o`.
_LETTERS: dict[str, str] = {
    **dict.fromkeys(_NO_LETTERS.split(), ""),
    "curl": "oDc",
    "wget": "oOaP",
    "ssh": "E",
    "ctags": "fo",
    "less": "oO",
    "cpio": "OF",
    "gh": "OD",
    "pip": "td",
    "pip3": "td",
}


def outputs(command: Command) -> None:
    """Judge the values of output options, which name a file that the program writes."""
    for word in _values(command.name, command.argv):
        if command.controls(word):
            command.writes(word)


def _values(name: str, argv: list[Word]) -> Iterator[Word]:
    letters = _LETTERS.get(name, "o")
    verbs = {"format-patch", "archive"} & set(argv[1:])
    if (name in ("git", "g") and verbs) or (name in ("docker", "podman") and "save" in argv[1:]):
        letters = "o"
    for at, word in enumerate(argv[1:], 1):
        if word[:1] != "-" or len(word) < 2:
            continue
        option, equals, value = word.partition("=")
        following = argv[at + 1 : at + 2]
        if _LONG.fullmatch(option):
            yield from [marked(value, word)] if equals else following
        elif word[1] != "-" and letters:
            if word[-1] in letters:
                yield from following
            if word[1] in letters and len(word) > 2:
                yield marked(word[2:].removeprefix("="), word)


# ---- archives --------------------------------------------------------------------------------------------------------


def _writes(command: Command, words: list[Word]) -> None:
    command.writes(*(word for word in words if command.controls(word)))


def _packs(words: list[Word]) -> bool:
    """Return whether `tar` makes or changes an archive."""
    letters = next((word for word in words if not word.startswith("--")), Word(""))
    return bool(re.match(r"-?[a-zA-Z]*[crAu]", letters)) or any(
        re.match(r"--(?:cre|app|upd|cat|conc|del)", word) for word in words
    )


def packed(command: Command) -> None:
    """`tar c`, `zip`, `7z a` and `ar r` write the archive."""
    words = command.argv[1:]
    if command.name in ("tar", "bsdtar"):
        if _packs(words):
            _writes(command, tar_archives(command))
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


def container_copy(command: Command) -> None:
    """`docker cp` and `kubectl cp` write their last operand."""
    if "cp" in command.argv[1:]:
        _writes(command, command.argv[-1:])


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("tar bsdtar zip 7z 7za 7zz rar ar", packed),
    "git": (git_outputs,),
    "script": (recorded,),
    **rules_of("docker podman kubectl", container_copy),
}
# These carry another command, after which they write a report.
CARRIERS: dict[str, Rule] = dict.fromkeys(("strace", "ltrace", "time", "perf", "valgrind"), outputs)
