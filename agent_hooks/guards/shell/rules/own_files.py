"""Rules that keep the files which control the agent (`control`) from every program, also from unknown ones.

The other modules judge programs that often write.  This module adds programs that seldom do, and judges every program at
last: one that is known to read only may name such a file, and about an unknown one the person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.names import DECISIONS, UNDOING
from agent_hooks.guards.shell.options import ParsedOptions, named_files
from agent_hooks.guards.shell.readers import READERS, TEXT_OPTIONS, TEXT_PROGRAMS
from agent_hooks.guards.shell.words import Word, marked


def every_program(command: Command) -> None:
    """Ask about a program that is not known to read only, when one of its words names a file that controls the agent."""
    reads = command.name in READERS or _only_checks(command)
    if not reads:
        _names_a_decision(command)
    if reads or command.told:
        outputs(command)
        return
    for word in named_files(command.argv[1:]):
        if command.controls(word):
            command.interpreter.report("write-guard-settings", f"may be changed: {CONTROLS}", word, undecidable=True)
            return


# Programs that only check their files unless an option tells them to change them, and the words for the one or the other.
_CHECKERS = {"ruff": r"check|rule|linter", "black": r"--check|--diff", "isort": r"--check.*|-c|--diff", "eslint": r".*",
             "prettier": r"--check|-c|--list-different|-l", "biome": r"check|lint", "tsc": r"--noEmit"}  # fmt: skip


# Our command among the words of a program that may run it, a terminal for example.
_DECISION = lazy_pattern(
    rf"(?:^|[\s/'\":])agent-hooks[\s,]+(?:{'|'.join(DECISIONS)}|doctor[\s,]+--clear|examples[\s,]+add"
    rf"|undo|checkpoints[\s,]+(?:{'|'.join(UNDOING)}))\b"
)


def _names_a_decision(command: Command) -> None:
    """Stop our command among the words of a program, which may run it; ask where it stands within a text."""
    words = command.argv[1:]
    if command.name in TEXT_PROGRAMS:
        return
    spoken = [
        word
        for at, word in enumerate(words)
        if not (at and words[at - 1] in TEXT_OPTIONS) and word.partition("=")[0] not in TEXT_OPTIONS
    ]
    reason = "only a person decides about hooks and their settings"
    # A word with blanks is a text of its own.
    separate = " ".join("\0" if " " in word else word for word in spoken)
    begins = any(_DECISION.match(re.sub(r"^\s*(?:\w+:)?(?:\S*/)?", " ", word)) for word in spoken if " " in word)
    if begins or _DECISION.search(separate):
        command.report("write-guard-settings", reason)
    elif _DECISION.search(" ".join(spoken)):
        command.interpreter.report("write-guard-settings", reason, command, undecidable=True)


def _only_checks(command: Command) -> bool:
    words = command.argv[1:]
    checks = any(re.fullmatch(_CHECKERS.get(command.name, r"(?!)"), word) for word in words)
    return checks and not any(re.match(r"--(?:\w+-)*(?:fix|write|apply)|-w$|format$", word) for word in words)


def writer(command: Command) -> None:
    """An editor changes the files that its words or its own commands name; `umount` uncovers another tree."""
    for word in named_files(command.argv[1:]):
        if command.controls(word):
            command.writes(word)
    if command.name in ("vi", "vim", "nvim", "ex", "ed", "emacs"):
        for word in [*command.argv[1:], Word(command.stdin.text or "")]:
            # An editor's own command, as in `+'w! .agent/hooks/gate.py'`.
            _texts(command, word.split())


def _texts(command: Command, texts: Iterable[str]) -> None:
    for text in texts:
        if command.controls(path := Word(text.strip("'\"();,"))):
            command.writes(path)


def mover(command: Command) -> None:
    """`gio trash`, `mmv` and others move each file away."""
    for word in named_files(command.argv[1:]):
        if command.interpreter.control.stops_removing(command.path(word)):
            command.deletes(word)


def mount(command: Command) -> None:
    """`mount --bind x .agent` and `bwrap --bind x .agent` put another tree over it."""
    for word in named_files(command.argv[1:]):
        path = command.path(word)
        if path.count("/") > 1 and command.interpreter.control.stops_removing(path):
            command.report("write-guard-settings", f"puts another tree over it: {CONTROLS}", word)


def rights(command: Command) -> None:
    """`chmod`, `chown` and `setfacl` decide whether hooks can be read."""
    words = command.argv[1:]
    closing = any(re.fullmatch(r"0*[0-3][0-7]{2}|0+|[ua]*-[wst]*[rx][rwxst]*|[ua]*=[wst]*", word) for word in words)
    for word in named_files(words):
        if command.controls(word) or (closing and command.interpreter.control.stops_removing(command.path(word))):
            command.report("write-guard-settings", f"changes rights: {CONTROLS}", word)


def volume(command: Command) -> None:
    """`docker run -v .agent:/x` lets a container write there."""
    for word in command.argv[1:]:
        for source, target in re.findall(r"(?:^|source=|src=)([^:,=]+)[:,](.*)", word):
            if command.controls(Word(source)) and not re.search(r"[:,](?:ro|readonly)\b", target):
                reason = f"a container may change it: {CONTROLS}"
                command.interpreter.report("write-guard-settings", reason, word, undecidable=True)


def link_into(command: Command) -> None:
    """`ln -sfn x .agent` puts a link in the place of a directory."""
    options = ParsedOptions(command.argv, "tS", ("--target-directory",))
    if options.has("n", "T", "h", "--no-dereference", "--no-target-directory"):
        for word in options.operands[1:2]:
            if command.interpreter.control.stops_removing(command.path(word)):
                command.deletes(word)


# Long options with a file or directory that the program writes. Some programs spell them with one dash.
_LONG = lazy_pattern(
    r"--?(?!report-ident)(?:out(?:put|file|dir|form)?|export|log|junit|report|save|dump|trace|write|keyout|results|joblog|cookie-jar|"
    r"stderr|cache-dir|basetemp|target|dest|pack-destination|index-file|Logfile)[\w-]*"
)
_NO_LETTERS = (
    "ls ll la find gfind grep egrep fgrep zgrep rg ag ack awk gawk mawk git g ps lsof mount xargs pytest py.test ssh "
    "tar bsdtar zip unzip cp mv install scp chmod chown set docker podman file pgrep kill cut"
)
# Letters of short options with a file that the program writes. Other programs have only `-o`.
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


RULES: dict[str, tuple[Rule, ...]] = {
    "ln": (link_into,),
    **rules_of("ed ex vi vim nvim emacs umount fusermount", writer),
    **rules_of("gio mmv vidir qmv", mover),
    **rules_of("mount bindfs mergerfs", mount),
    **rules_of("chmod chown chgrp setfacl", rights),
    **rules_of("docker podman nerdctl", volume),
}
# These carry another command; some of them write a report after it.
CARRIERS: dict[str, Rule] = {
    **dict.fromkeys(("bwrap", "proot", "unshare"), mount),
    **dict.fromkeys(("perf", "valgrind"), outputs),
}
