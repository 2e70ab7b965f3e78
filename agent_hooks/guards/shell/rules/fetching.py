"""Rules about files that one command line fetches and then runs: clones, archives and packages from elsewhere."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.fetched import TREE, fetched
from agent_hooks.guards.shell.grammar import parse
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import TYPED, Text, Word

_SAVED = frozenset({"saved-download"})


def _keep(command: Command, word: Word) -> None:
    command.shell.files[command.path(word) + TREE] = Text(None, _SAVED)


def clone(command: Command) -> None:
    """`git clone URL DIRECTORY` fetches a directory."""
    words = command.argv[1:]
    if "clone" not in words[:5]:
        return
    at = words.index(Word("clone"))
    operands = ParsedOptions(
        words[at:], "bocju", ("--branch", "--depth", "--origin", "--config", "--jobs", "--filter", "--reference")
    ).operands
    if operands and re.match(r"(?:https?|git|ssh)://|[\w.-]+@[\w.-]+:|[\w.-]+/[\w.-]+$", operands[0]):
        named = (
            operands[1] if len(operands) > 1 else Word(operands[0].rstrip("/").rpartition("/")[2].removesuffix(".git"))
        )
        _keep(command, named)


def unpack(command: Command) -> None:
    """`curl … | tar xz -C DIRECTORY`, and `unzip` of a fetched archive: the directory is fetched too."""
    words = command.argv[1:]
    inputs = [word for word in words if not word.startswith("-")]
    if not ("download" in command.stdin.taint or any(fetched(command, word) for word in inputs)):
        return
    directory = next(
        (words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-C", "-d", "--directory", "-o")), Word(".")
    )
    joined = next((Word(word.partition("=")[2]) for word in words if word.startswith("--directory=")), directory)
    _keep(command, joined)


def copied(command: Command) -> None:
    """`scp host:x.sh .`, and `cp` or `mv` of a fetched file: the copy is fetched too."""
    operands = ParsedOptions(command.argv, "PiFoS" if command.name == "scp" else "tS").operands
    if len(operands) < 2:
        return
    sources = (
        [word for word in operands[:-1] if re.match(r"(?:[\w.-]+@)?[\w.-]{2,}:", word)]
        if command.name in ("scp", "rsync")
        else operands[:-1]
    )
    for word in sources:
        if command.name in ("scp", "rsync") or fetched(command, word):
            command.shell.files[command.path(operands[-1])] = Text(None, _SAVED)


def runs(command: Command) -> None:
    """`bash x/install.sh`, `python3 x/setup.py`: a script in a fetched directory."""
    operands = ParsedOptions(command.argv, "oOmWX", stop_early=True)
    if "m" in operands.flags or "n" in operands.flags or "c" in operands.flags:
        return
    if operands.operands and "http" not in operands.operands[0] and _in_tree(command, operands.operands[0]):
        command.report("download-exec", "a fetched file is run unseen")


def _in_tree(command: Command, word: Word) -> bool:
    path = command.path(word)
    return any(path.startswith(key.removesuffix(TREE) + "/") for key in command.shell.files if key.endswith(TREE))


def saves(command: Command) -> None:
    """`wget -P DIRECTORY URL`, `aria2c URL`: the file has the last part of its address as its name."""
    options = ParsedOptions(command.argv, "OPotTwQUeaid", ("--directory-prefix", "--dir", "--out", "--output-document"))
    top = next(iter(options.value("P", "d", "--directory-prefix", "--dir")), None)
    names = options.value("o", "--out") if command.name == "aria2c" else []
    for url in options.operands:
        name = names[0] if names else Word(url.rstrip("/").rpartition("/")[2])
        command.shell.files[command.path(Word(f"{top}/{name}") if top else name)] = Text(None, _SAVED)


def descriptors(command: Command) -> None:
    """`sh /dev/fd/3 3<<< 'script'`: a descriptor holds the script."""
    for word in command.argv[1:]:
        if re.fullmatch(r"/(?:dev|proc/self)/fd/\d+", word) and command.stdin.text is not None:
            command.shell_code(command.stdin)


def opens(command: Command) -> None:
    """`exec 3<<< 'text'`: the descriptors of the shell may hold this text from now on."""
    if len(command.argv) == 1 and (command.stdin.text or command.stdin.taint):
        for number in range(3, 20):
            command.shell.files[f"/dev/fd/{number}"] = command.stdin


_DOES = {
    "rm",
    "dd",
    "shred",
    "bash",
    "sh",
    "zsh",
    "dash",
    "git",
    "curl",
    "wget",
    "nc",
    "chmod",
    "chown",
    "mv",
    "truncate",
    "python3",
    "perl",
}


def pipe(command: Command) -> None:
    """`mkfifo p`: whatever is written to the pipe later is read from it."""
    for word in command.argv[1:]:
        if not word.startswith("-"):
            command.shell.files[command.path(word)] = Text(None, TYPED)


def renames(command: Command) -> None:
    """`cp /bin/rm x; x -rf …`: a program under another name."""
    operands = ParsedOptions(command.argv, "tSm").operands
    if len(operands) != 2:
        return
    head, _, name = operands[0].rpartition("/")
    if name in _DOES and (not head or re.fullmatch(r"(?:/usr)?(?:/local)?/s?bin", head)):
        body = parse(f'{name} "$@"')
        for each in (str(operands[1]), operands[1].rpartition("/")[2]):
            command.shell.functions[each] = body


def program(command: Command) -> None:
    """`./install.sh` in a fetched directory, and `npx https://host/package.tgz`."""
    if re.match(r"(?:git\+)?https?://", command.argv[0]):
        command.report("download-exec", "a fetched package is run unseen")
    if "/" in command.argv[0] and _in_tree(command, command.argv[0]):
        command.report("download-exec", "a fetched file is run unseen")


# Words that only show or unpack a package.
_LOOKS = lazy_pattern(
    r"-I|--info|-c|--contents|-x|-X|--v?extract|-e|--control|-f|--field|-q\w*|--query|-K|--checksig|-V|--verify|--check-signature|--payload-files|"
    r"--expand\S*|imageinfo|verify"
)


def installs(command: Command) -> None:
    """`dpkg -i`, `rpm -i`, `installer -pkg` of a fetched package."""
    if command.name in ("dpkg", "rpm", "pkgutil", "hdiutil") and any(map(_LOOKS.fullmatch, command.argv[1:])):
        return
    if any(fetched(command, word) for word in command.argv[1:] if not word.startswith("-")):
        command.report("download-exec", "a fetched package is installed unseen")


def trusts(command: Command) -> None:
    """`curl … | tee /etc/apt/sources.list.d/x`: a source of packages is taken from elsewhere."""
    if "download" in command.stdin.taint and any(
        re.match(r"/etc/(?:apt|yum|dnf|zypp|pacman|apk|cron|systemd|sudoers|profile)", command.path(word))
        for word in command.argv[1:]
    ):
        command.report("download-exec", "downloaded text becomes a setting of the system")


_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    {"git": (clone,), "gh": (clone,)},
    rules_of("tar bsdtar unzip 7z cpio gunzip", unpack),
    rules_of("scp rsync cp mv install", copied),
    rules_of("dpkg rpm installer apt apt-get yum dnf pkgutil hdiutil alien snap flatpak adb msiexec", installs),
    {"tee": (trusts,)},
    rules_of("cp ln mv install", renames),
    {"mkfifo": (pipe,)},
)
RULES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}
for _name in ("wget", "aria2c"):
    RULES[_name] = (*RULES.get(_name, ()), saves)
