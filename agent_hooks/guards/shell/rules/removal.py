"""Rules about removal: trees, single files, and the files that `find` deletes."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from msgspec.structs import replace

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Text, Word, below

_NAME_TESTS = {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"}
_OTHER_TESTS = {
    "-empty",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-size",
    "-user",
    "-group",
    "-inum",
    "-xtype",
    "-perm",
    "-samefile",
    "-links",
}


def rm(command: Command) -> None:
    """`rm`, `rimraf` remove trees and files: by force, roots, or of the system."""
    options = ParsedOptions(command.argv)
    recursive = options.has("r", "R", "--recursive") or command.name in ("rimraf", "del-cli")
    force = options.has("f", "--force") or command.name in ("rimraf", "del-cli")
    for word in options.operands:
        if recursive and (force or command.level == "strict"):
            command.tree(word)
        elif recursive and command.is_root(word):
            command.report("rm-rf", "removes a root of the system, of a home or of the project", word)
        command.deletes(word)


def unlink(command: Command) -> None:
    """`unlink`, `rmdir`, `truncate`, `shred` and others remove or empty files."""
    options = ParsedOptions(command.argv, "sniN", ("--size", "--iterations", "--reference"))
    command.deletes(*options.operands)


def remove_item(command: Command) -> None:
    """PowerShell's `Remove-Item -Recurse` and its aliases remove trees."""
    words = [word for word in command.argv[1:] if not word.startswith("-") and not word.startswith("/s")]
    flags = " ".join(word.lower() for word in command.argv[1:] if word[:1] in "-/")
    if re.search(r"-r(ec\w*)?\b|/s\b", flags):
        command.tree(*words)


def find(command: Command) -> None:
    """`find … -delete` and `-exec rm` remove the files that are found.

    A test narrows the search: a name, an age, a size.  A name that matches every file does not.
    """
    words = command.argv[1:]
    while words and words[0] in ("-H", "-L", "-P"):
        words = words[1:]
    first = next((at for at, word in enumerate(words) if word[:1] in ("-", "(", "!") and len(word) > 0), len(words))
    roots = words[:first] or [Word(".")]
    tests = words[first:]
    names = [tests[at + 1] for at, word in enumerate(tests[:-1]) if word in _NAME_TESTS and not _negated(tests, at)]
    names = [name for name in names if not re.fullmatch(r"[*./]*", name)]
    narrowed = bool(names) or any(word in _OTHER_TESTS for word in tests)
    found = [below(root, name) for root in roots for name in names] or [below(root, "*") for root in roots]
    own = _own_files(command, roots, tests, names)
    if "-delete" in tests:
        command.deletes(*own, *(root for root in roots if command.controls(root)))
        _find_deletes(command, roots, found, named=bool(names), narrowed=narrowed)
    at = 0
    while at < len(tests):
        if tests[at] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(at, len(tests)) if tests[i] in (";", "\\;", "+")), len(tests))
            carried = tests[at + 1 : end]
            if (
                carried
                and carried[0].rpartition("/")[2] in ("rm", "unlink", "shred")
                and not _stays_here(command, roots)
            ):
                command.report("find-delete", "removes files that are found in a root of the system or a home")
            for path in dict.fromkeys([*found[:16], *(root for root in roots if command.controls(root))]):
                command.runs([_filled(word, path) for word in carried])
            before = len(command.interpreter.findings)
            for path in own[:16]:
                command.runs([_filled(word, path) for word in carried])
            _name_remedy(command, before)
            at = end
        at += 1
    found += own
    ends = "\0" if "-print0" in tests else "\n"
    text = ends.join(found) if names else None
    command.output = Text(text)


def _name_remedy(command: Command, before: int) -> None:
    """Add to new findings about own files how the search leaves them out; `before`: the number of older findings."""
    findings = command.interpreter.findings
    for at, finding in enumerate(findings[before:], before):
        if finding.rule == "write-guard-settings":
            findings[at] = replace(finding, reason=f"{finding.reason}; to leave them out: -not -path './.agent/*'")


def _own_files(command: Command, roots: list[Word], tests: list[Word], names: list[Word]) -> list[Word]:
    """Return the files which control the agent, exist, and are found by name."""
    passed_over = [
        tests[at + 1].removeprefix("./").strip("*").rstrip("/")
        for at, word in enumerate(tests[:-1])
        if word in _NAME_TESTS and (_negated(tests, at) or "-prune" in tests)
    ]
    own: list[Word] = []
    for path in command.interpreter.call.present:
        for root in roots:
            place = command.path(root)
            if not path.startswith(f"{place.rstrip('/')}/") or any(part and part in path for part in passed_over):
                continue
            inside = path[len(place.rstrip("/")) :]
            spelled = (path.rpartition("/")[2], f"{root}{inside}", path)
            if any(fnmatchcase(each.lower(), name.lower()) for each in spelled for name in names) or (
                not names and not _OTHER_TESTS.intersection(tests)
            ):
                own.append(Word(path))
    return own


def _stays_here(command: Command, roots: list[Word]) -> bool:
    project = command.interpreter.directories.project
    return not any(command.is_root(root) and command.path(root) != project for root in roots)


def _negated(tests: list[Word], at: int) -> bool:
    return at > 0 and tests[at - 1] in ("!", "-not")


def _filled(word: Word, path: str) -> Word:
    """Return a word of `-exec` with the path of a found file in the place of `{}`."""
    if "{}" not in word:
        return word
    put = Word(word.replace("{}", path))
    put.taint, put.unsure, put.pattern = word.taint, word.unsure, True
    return put


def _find_deletes(command: Command, roots: list[Word], found: list[Word], *, named: bool, narrowed: bool) -> None:
    # Empty files and directories are no loss.
    empty = "-empty" in command.argv
    for root in roots:
        path = command.path(root)
        directories = command.interpreter.directories
        if directories.in_temp(path) or (path in directories.temp and narrowed):
            continue
        outside = UNKNOWN in path or not (path == directories.project or directories.in_project(path))
        if named and not outside:
            continue
        if outside and (named or narrowed) and not command.is_root(root):
            continue
        if narrowed and (empty or not command.is_root(root)):
            continue
        if not directories.removable(path, command.level):
            command.report("find-delete", "removes all files that are found", f"find {root} … -delete")
    if named:
        command.deletes(*found)


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("rm rimraf del-cli srm grm", rm),
    **rules_of("unlink rmdir truncate shred wipe", unlink),
    **rules_of("remove-item ri rd erase", remove_item),
    "find": (find,),
    "gfind": (find,),
}
