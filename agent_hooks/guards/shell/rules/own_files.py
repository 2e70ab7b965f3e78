"""Rules that keep the files which control the agent (`control`) from every program, also from unknown ones.

The other modules judge programs that often write.  This module adds programs that seldom do, and judges every program at
last: one that is known to read only may name such a file, and about an unknown one the person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.names import DECISIONS, UNDOING
from agent_hooks.guards.shell.options import ParsedOptions, named_files
from agent_hooks.guards.shell.output_options import outputs
from agent_hooks.guards.shell.words import Word

# Programs that read the files they name, or only their names and rights.
_READERS_TEXT = (
    "ls ll la tree stat file du df readlink realpath basename dirname test find gfind fd fdfind locate eza exa lsd "
    "cat tac head tail less more bat batcat nl od xxd hexdump hd strings base64 base32 uuencode view cut sort uniq "
    "paste fold fmt diff cmp colordiff delta difft comm join column pr expand unexpand rev look wc md5sum sha1sum "
    "sha256sum sha512sum shasum cksum b3sum yq jq ccat glow most sdiff jless pbcopy xclip pg grep egrep fgrep zgrep "
    "rg ag ack awk gawk mawk pcregrep sed tr tee split iconv csplit echo printf mkdir cd pushd man apropos which "
    "whereis whatis type code subl open pytest py.test mypy pyright basedpyright dmypy flake8 pylint pyflakes bandit "
    "vulture radon shellcheck agent-hooks git g gh hub make gmake ninja tox nox pre-commit coverage cloc tokei scc "
    "ctags watch entr hyperfine xargs gxargs parallel ssh curl wget http https xh fetch docker podman kubectl su "
    "runuser script expect tmux screen rm rimraf del-cli srm grm unlink rmdir truncate shred wipe cp mv install scp "
    "gcp pax cpio ditto rsync ln dd patch tar bsdtar zip 7z 7za 7zz unzip rar unrar ar gzip gunzip bzip2 xz unxz zstd "
    "lz4 pigz chmod chown chgrp claude codex gemini qwen copilot opencode pi openclaw kill pkill killall pgrep fuser "
    "lsof inotifywait fswatch dpkg rpm security gpg gpg2 openssl strace ltrace getfacl getfattr lsattr export declare "
    "local readonly typeset alias pip pip3 uv pipx uvx poetry npx npm pnpm yarn bun mount findmnt vim vi nvim ed ex "
    "emacs nano"
)
READERS = frozenset(_READERS_TEXT.split())


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


# Options whose value is a text for people, and programs whose words are such texts.
TEXT_OPTIONS = {"-m", "--message", "--title", "-t", "-b", "--body", "--description", "--notes", "--testNamePattern"}
_TEXT_PROGRAMS_LINE = "jj hg sl svn glab tea sd notify-send terminal-notifier logger wall say figlet cowsay jira bd"
TEXT_PROGRAMS = frozenset(_TEXT_PROGRAMS_LINE.split())


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
