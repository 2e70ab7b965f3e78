"""The options by which programs that mostly read name a file that they write."""

from __future__ import annotations

from collections.abc import Iterator

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.words import Word, marked

# Long options whose value is a file or a directory that the program writes; some programs spell them with one dash.
_LONG = lazy_pattern(
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
