"""Judges the files that a program reads, writes, deletes, runs or sends, by its row in the table of programs.

The table says how a program treats the files that its words name; this module asks of each whether the agent may.

1. A file that is read is judged as one whose content is shown, copied or sent: a file with secrets, a record.
2. A file that the program only uses, as `ssh -i key` does, is judged as a record alone.
3. A file that is run is used too; but a shell tells the lines that it cannot run, so a key or a list of tokens is read.
4. A file that is written, deleted or moved away is judged as one that is changed.  Of a file whose rights alone change,
   only one that controls the agent counts; `rules.rights` and `rules.own_files` know the modes.
5. The program's own files, which no word names, are not judged.
"""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.inspector import Inspector
from agent_hooks.guards.shell.names import SHELLS, is_language
from agent_hooks.guards.shell.programs import Deed, deeds_of, is_harmless, names_files
from agent_hooks.guards.shell.state import Shell
from agent_hooks.guards.shell.words import Word, below


def judge_program(command: Command) -> None:
    """Judge the files of a program; of a program without a row, nothing is known."""
    if command.name == "rm":
        # Its rule judges each operand, as a tree or as a file.
        command.told = True
        return
    if not names_files(command.name):
        command.told = is_harmless(command.name)
        return
    found = deeds_of(command.name, command.argv, command.stdin)
    if found is None:
        return
    deeds, command.told = found
    deeds = [deed for deed in deeds if deed.word and deed.manner != "own"]
    if command.name in _SEARCHERS:
        deeds = [deed for deed in deeds if not _is_setting(command, deed)]
    written = [deed for deed in deeds if deed.kind == "write"]
    spared = _spared(command, deeds, written) if written else ()
    # A file that is lost or changed is graver than one that is read.
    for deed in sorted(deeds, key=lambda deed: deed.kind == "read"):
        if deed not in spared:
            _judge(command.interpreter, deed, command.shell)


def _spared(command: Command, deeds: list[Deed], written: list[Deed]) -> list[Deed]:
    """Return the written files that nobody loses anything by."""
    read = [deed.word for deed in deeds if deed.kind == "read"]
    if any(deed.kind == "delete" for deed in deeds):
        return []
    to_environment = all(deed.member or _ENVIRONMENT.fullmatch(deed.word) for deed in written)
    if len(read) == 1 and _SAMPLE.fullmatch(read[0]) and to_environment:
        # A project's sample of an environment file is copied to the environment file.
        return written
    if command.name in ("openssl", "ssh-keygen"):
        return [deed for deed in written if _is_new_key(command, deed.word)]
    names = {_name(word) for word in read if command.controls(word)}
    # Copies of one's own hooks in a temporary directory control nothing.
    temporary = command.interpreter.directories.in_temp
    return [deed for deed in written if _name(deed.word) in names and temporary(command.path(deed.word))]


_SEARCHERS = ("grep", "egrep", "fgrep", "rg", "ag")
_PROFILE = lazy_pattern(r"(?:.*/)?\.(?:bashrc|bash_profile|bash_aliases|profile|zshrc|zprofile|zshenv)")
# Lines of a profile that hold no secret, whatever their values are.
_SETTING = lazy_pattern(
    r"(?:[\^\\|()$ =.*\"'<>b?+-]|export|alias(?:es)?|PATH|EDITOR|PAGER|LANG|source|eval|nvm|pyenv|rbenv|conda|"
    r"cargo|brew|starship|PS1|HISTSIZE"
    r"|SHELL|JAVA_HOME|GOPATH|function|setopt|plugins|theme|prompt|completion|asdf|mise|direnv|fzf|zoxide)+",
    re.IGNORECASE,
)
_EVERY_LINE = lazy_pattern(r"(?:[\^\\|()$ =.*\"'<>?+-]|export|b)*", re.IGNORECASE)


def _is_setting(command: Command, deed: Deed) -> bool:
    """Return whether a search shows only settings of a shell's profile, as `grep alias ~/.bashrc` does."""
    if deed.kind != "read" or not _PROFILE.fullmatch(deed.word):
        return False
    if any(re.fullmatch(r"-\w*[vABC]\w*|-\d+|--(?:invert|after|before|context).*", word) for word in command.argv[1:]):
        return False
    pattern = next((word for word in command.argv[1:] if not word.startswith("-")), "")
    return bool(_SETTING.fullmatch(pattern)) and not _EVERY_LINE.fullmatch(pattern)


def _name(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]


def _judge(inspector: Inspector, deed: Deed, shell: Shell) -> None:
    word = deed.word
    match deed.kind, deed.manner:
        case "read", "used":
            inspector.judge_use(word, shell)
        case ("read", _) | ("list", "named"):
            inspector.judge_read(word, shell)
        case "execute", _:
            inspector.judge_run(word, shell)
        case "write", "used" | "made":
            # The container decides; `rules.own_files` asks about the files that control the agent.
            pass
        case "write", "rights":
            if inspector.controls(word, shell):
                inspector.judge_write(word, shell)
        case "write", manner:
            inspector.judge_write(word, shell, overwrite=manner != "added")
            if manner == "filled":
                # Any file may be among those of a whole directory.
                inspector.judge_write(below(word, "settings.json"), shell)
        case "delete", _:
            inspector.judge_delete(word, shell)


_ENVIRONMENT = lazy_pattern(r"(?:.*/)?\.env(\.\w+)?")
_SAMPLE = lazy_pattern(r"(?:.*/)?\.env(\.\w+)?\.(example|sample|template|dist)")


# The names of keys and certificates that a program makes; a new file of another name may decide something for an agent.
_KEY_NAME = lazy_pattern(r".*\.(?:pem|key|crt|cer|csr|der|pub|p12|pfx)", re.IGNORECASE)


def _is_new_key(command: Command, word: Word) -> bool:
    """Return whether a word names a key that is made: of the project, temporary, or by `ssh-keygen`."""
    path, directories = command.path(word), command.interpreter.directories
    if command.name == "ssh-keygen":
        return not command.controls(word) and not command.interpreter.call.machine.exists(path)
    if not _KEY_NAME.fullmatch(word):
        return False
    inside = (directories.own and directories.in_project(path)) or directories.in_temp(path)
    known = not word.taint and not command.controls(word)
    return inside and known and not command.interpreter.call.machine.exists(path)


# ---- the effects of a program --------------------------------------------------------------------------------------


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
