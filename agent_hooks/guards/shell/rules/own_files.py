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
from agent_hooks.guards.shell.languages import QUOTED, unquote
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
_READERS = frozenset(_READERS_TEXT.split())
_WRITERS = (
    "touch sponge dos2unix unix2dos mac2unix mkfifo mknod ed ex vi vim nvim emacs nano pico micro kak chattr chflags "
    "setfattr xattr umount fusermount jed joe mg"
)


def every_program(command: Command) -> None:
    """Ask about a program that is not known to read only, when one of its words names a file that controls the agent."""
    if command.name in _READERS or _only_checks(command):
        outputs(command)
        return
    _names_a_decision(command)
    for word in named_files(command.argv[1:]):
        if command.controls(word):
            command.interpreter.report("write-guard-settings", f"may be changed: {CONTROLS}", word, undecidable=True)
            return


# Programs that only check their files unless an option tells them to change them, and the words for the one or the other.
_CHECKERS = {"ruff": r"check|rule|linter", "black": r"--check|--diff", "isort": r"--check.*|-c|--diff", "eslint": r".*",
             "prettier": r"--check|-c|--list-different|-l", "biome": r"check|lint", "tsc": r"--noEmit"}  # fmt: skip


# Our command among the words of a program that may run it, a terminal for example.
_DECISION = lazy_pattern(
    rf"(?:^|[\s/'\":])agent-hooks[\s,]+(?:{'|'.join(DECISIONS)}|doctor[\s,]+--clear"
    rf"|undo|checkpoints[\s,]+(?:{'|'.join(UNDOING)}))\b"
)


# Options whose value is a text for people, and programs whose words are such texts.
_TEXT_OPTIONS = {"-m", "--message", "--title", "-t", "-b", "--body", "--description", "--notes", "--testNamePattern"}
_TEXT_PROGRAMS_LINE = "jj hg sl svn glab tea sd notify-send terminal-notifier logger wall say figlet cowsay jira bd"
_TEXT_PROGRAMS = frozenset(_TEXT_PROGRAMS_LINE.split())


def _names_a_decision(command: Command) -> None:
    """Stop our command among the words of a program, which may run it; ask where it stands within a text."""
    words = command.argv[1:]
    if command.name in _TEXT_PROGRAMS:
        return
    spoken = [
        word
        for at, word in enumerate(words)
        if not (at and words[at - 1] in _TEXT_OPTIONS) and word.partition("=")[0] not in _TEXT_OPTIONS
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
    """`touch`, `ed`, `dos2unix`, `chattr` and others change the files they name."""
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


def output_option(letters: str, *long: str, operand: int | None = None) -> Rule:
    """Return a rule for programs that write the file of an option, or the operand of that number."""

    def rule(command: Command) -> None:
        options = ParsedOptions(command.argv, letters + "kSTtsbnalC", long)
        command.writes(*options.value(*letters, *long))
        if operand is not None:
            command.writes(*options.operands[operand : operand + 1])

    return rule


def compressor(command: Command) -> None:
    """`gzip` and others put another file in the place of each."""
    options = ParsedOptions(command.argv, "SbT")
    if not options.has("c", "k", "l", "t", "--stdout", "--to-stdout", "--keep", "--list", "--test"):
        for word in options.operands:
            if command.controls(word):
                command.deletes(word)


def inplace_awk(command: Command) -> None:
    """`gawk -i inplace` edits its files, and a program may print into one."""
    options = ParsedOptions(command.argv, "Fvfi", ("--include",))
    if any(word.startswith("inplace") for word in options.value("i", "--include")):
        command.writes(*options.operands[1:])
    for program in options.operands[:1]:
        for one, two in re.findall(rf">\s*{QUOTED}", program):
            command.writes(Word(unquote(one or two)))


def mover(command: Command) -> None:
    """`trash`, `gio trash`, `rename` and `mmv` move each file away."""
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


def packer(command: Command) -> None:
    """`tar --remove-files` and `zip -m` move files into an archive."""
    words = command.argv[1:]
    name = command.name
    if (
        (name == "zip" and any(re.match(r"-\w*m|--move", word) for word in words))
        or any("--remove-files".startswith(word) and len(word) > 5 for word in words)
        or (name.startswith("7z") and "-sdel" in words)
    ):
        mover(command)


def volume(command: Command) -> None:
    """`docker run -v .agent:/x` lets a container write there."""
    for word in command.argv[1:]:
        for source, target in re.findall(r"(?:^|source=|src=)([^:,=]+)[:,](.*)", word):
            if command.controls(Word(source)) and not re.search(r"[:,](?:ro|readonly)\b", target):
                reason = f"a container may change it: {CONTROLS}"
                command.interpreter.report("write-guard-settings", reason, word, undecidable=True)


def link_into(command: Command) -> None:
    """`ln -t .agent/hooks` makes links there; `ln -sfn x .agent` puts a link in the place of another one."""
    options = ParsedOptions(command.argv, "tS", ("--target-directory",))
    command.writes(*(word for word in options.value("t", "--target-directory") if command.controls(word)))
    if options.has("n", "T", "h", "--no-dereference", "--no-target-directory"):
        for word in options.operands[1:2]:
            if command.interpreter.control.stops_removing(command.path(word)):
                command.deletes(word)


def sed_writes(command: Command) -> None:
    """`sed 's/a/b/w file'` writes a file."""
    for word in command.argv[1:]:
        _texts(command, re.findall(r"w\s+([^\s;}]+)", word))


def sources_removed(command: Command) -> None:
    """`rsync --remove-source-files` and `cp -l` or `-s` onto hooks; `rsync --delete` into a directory above them."""
    words = command.argv[1:]
    operands = [word for word in words if not word.startswith("-")]
    if "--remove-source-files" in words:
        command.deletes(*operands[:-1])


def searcher(command: Command) -> None:
    """`yq -i` edits its files; `grep -r` below the agent home reads records, as `reads` knows."""
    if command.name == "yq" and any(re.match(r"-\w*i|--inplace", word) for word in command.argv[1:]):
        mover(command)


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of(_WRITERS, writer),
    "sort": (output_option("o", "--output"),),
    "uniq": (output_option("", operand=1),),
    "xxd": (output_option("", operand=1),),
    "iconv": (output_option("o", "--output"),),
    **rules_of("split csplit", output_option("f", "--prefix", operand=1)),
    **rules_of("gzip gunzip bzip2 bunzip2 xz unxz lzma zstd lz4 pigz compress uncompress", compressor),
    **rules_of("awk gawk mawk", inplace_awk),
    **rules_of("trash trash-put rmtrash gio rename prename mmv vidir qmv", mover),
    **rules_of("mount bindfs mergerfs", mount),
    **rules_of("chmod chown chgrp setfacl", rights),
    **rules_of("tar bsdtar zip 7z 7za 7zz", packer),
    "rsync": (sources_removed,),
    "ln": (link_into,),
    "sed": (sed_writes,),
    **rules_of("docker podman nerdctl", volume),
    "yq": (searcher,),
}
CARRIERS: dict[str, Rule] = dict.fromkeys(("bwrap", "proot", "unshare"), mount)
