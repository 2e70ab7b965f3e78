"""The names of files that programs print, as far as effects need them: a pattern stands for the files of a tree.

`xargs`, `while read` and `$(…)` get such names as operands, so that their effects stay below the directory of the search.
"""

from __future__ import annotations

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Text, Word, marked

_TESTS = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename")
OPERATORS = ("-", "(", "!", ",")
"""The first characters of the words of `find` that are no directories."""
_KEEP = frozenset(("grep", "egrep", "fgrep", "rg", "head", "tail", "sort", "uniq", "tac", "shuf", "cat", "tee"))
_LISTS_NAMES = (
    "-l",
    "-L",
    "--files-with-matches",
    "--files-without-match",
    "--files",
    "-rl",
    "-rlE",
    "-lr",
    "-Rl",
    "-ril",
)


def found_words(argv: list[Word]) -> list[Word]:
    """Return the words for all files that a `find` may find, at any depth; a name that is tested for narrows them."""
    words = argv[1:]
    while words and words[0] in ("-H", "-L", "-P"):
        words = words[1:]
    first = next((at for at, word in enumerate(words) if word[:1] in OPERATORS), len(words))
    roots, tests = words[:first] or [Word(".")], words[first:]
    names = [
        tests[at + 1]
        for at, word in enumerate(tests[:-1])
        if word in _TESTS and tests[at - 1 : at] not in (["!"], ["-not"])
    ]
    # Alternatives beside a name may be anything.
    narrowed = bool(names) and all(at > 0 and tests[at + 1 : at + 2] and tests[at + 1] in _TESTS
                                   for at, word in enumerate(tests) if word in ("-o", "-or"))  # fmt: skip
    found: list[Word] = []
    for root in roots:
        for name in names if narrowed else [Word("")]:
            path = name.rpartition("/")[2] if "/" in name else name
            word = marked(f"{root.rstrip('/')}/{UNKNOWN}{path}", root)
            word.pattern = word.pattern or any(char in path for char in "*?[")
            found.append(word)
    return found


def listed_text(command: Command) -> Text | None:
    """Return the names that a program prints, `None` when it prints no names of files that can be told."""
    name, words = command.name, command.argv
    if name in _KEEP and command.stdin.text is not None and UNKNOWN in command.stdin.text and name != "tee":
        return Text(command.stdin.text, command.stdin.taint)
    roots = _roots(name, words)
    return Text("".join(f"{root.rstrip('/')}/{UNKNOWN}\n" for root in roots)) if roots else None


def _roots(name: str, words: list[Word]) -> list[Word]:
    """Return the directories below which the printed names lie."""
    if name in ("grep", "egrep", "fgrep", "rg", "ag", "ack") and any(word in _LISTS_NAMES for word in words):
        operands = ParsedOptions(
            words, "efmABCgtTj", ("--include", "--glob", "--type", "--exclude", "--exclude-dir")
        ).operands
        return operands[0 if "--files" in words else 1 :] or [Word(".")]
    if name in ("fd", "fdfind"):
        return ParsedOptions(words, "dtjcSEoe", ("--type", "--extension", "--exclude")).operands[1:] or [Word(".")]
    if name == "git" and {"ls-files", "--name-only", "-l", "--files-with-matches"}.intersection(words):
        at = words.index(Word("-C")) if "-C" in words[:-1] else None
        return [Word(".") if at is None else words[at + 1]]
    return []
