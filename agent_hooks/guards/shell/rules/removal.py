"""Rules about removal: trees, single files, and the files that `find` deletes."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from msgspec.structs import replace

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN, normalise
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.listings import EVERY, all_data, all_sources, is_output
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.searches import lost_root
from agent_hooks.guards.shell.words import NOTHING, Text, Word, below, marked

_NAME_TESTS = {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"}
_OTHER_TESTS = {
    "-empty",
    "-newermt",
    "-newerct",
    "-anewer",
    "-cnewer",
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
        if recursive and not force and _was_moved(command, word):
            command.tree(word)
        if recursive and (force or command.level == "strict"):
            if not _is_built_again(command, word, options.operands):
                command.tree(word)
        elif recursive and command.is_root(word):
            reason = "removes a root of the system, of a home or of the project"
            command.report("rm-rf", reason, word, wall=command.is_machine(word))
        command.loses(word, tree=recursive)


def _was_moved(command: Command, word: Word) -> bool:
    """Return whether a path of a temporary directory has a tree that this command line has moved there."""
    place = normalise(word, cwd=command.shell.cwd, home=command.interpreter.directories.home)
    return command.interpreter.directories.in_temp(place) and place != command.path(word)


def moved(command: Command) -> None:
    """`mv ~/work /tmp/x; rm -r /tmp/x`: a tree that is moved to a temporary directory is not temporary."""
    operands = ParsedOptions(command.argv, "tS", ("--target-directory", "--suffix")).operands
    directories = command.interpreter.directories
    if len(operands) < 2 or not command.interpreter.judging:
        return
    target = command.path(operands[-1])
    into = operands[-1].endswith("/") or len(operands) > 2 or target in directories.temp
    temporary = directories.in_temp(target) or target in directories.temp
    for word in operands[:-1] if temporary else ():
        path = command.path(word)
        if UNKNOWN not in path + target and not directories.removable(path, command.level):
            command.shell.links[f"{target}/{path.rpartition('/')[2]}" if into else target] = path


def emptied(command: Command) -> None:
    """`cp /dev/null "$f"` and `tee src/*.py < /dev/null` leave nothing of a file."""
    operands = ParsedOptions(command.argv, "tS" if command.name == "cp" else "").operands
    if command.name == "cp" and operands[:1] == ["/dev/null"]:
        command.loses(*operands[1:])
    elif command.name == "tee" and command.stdin.file == "/dev/null":
        _empties(command, operands)


def _empties(command: Command, words: list[Word]) -> None:
    """Report a glob for all files of a directory, or for all source files of a language."""
    for word in words:
        folder, _, name = command.path(word).rpartition("/")
        every = bool(re.fullmatch(r"[*?.]+", name)) or all_sources([name])
        if (
            word.pattern
            and every
            and lost_root(command, [Word(folder or "/")], named=False, narrowed=False) is not None
        ):
            command.report(
                "find-delete", "empties all files of a directory", wall=command.is_machine(Word(folder or "/"))
            )


# What makes `bin` and `vendor` again, behind the removal.
_BUILDS = lazy_pattern(
    r"(?:&&|;|\n)\s*(?:make|gmake|just|task|cmake|ninja|go (?:build|install|mod vendor|generate)|dotnet (?:build|restore)"
    r"|composer (?:install|update)|bundle (?:install|update)|cargo (?:build|vendor)|npm (?:run build|install|ci)"
    r"|mvn|gradle|\./gradlew|\./build\.sh|mix deps\.get)\b"
)
_LONGEST = 4000


def _is_built_again(command: Command, word: Word, words: list[Word]) -> bool:
    """Return whether `bin`, `vendor` or `deps` of the project is made again by what follows.

    A build or a fetch follows, or the output that belongs to it is removed too: `obj`, or `_build`.  Alone, each may hold
    scripts or changed sources that no program makes again.
    """
    if command.level != "project" or command.path(word).rpartition("/")[0] != command.interpreter.directories.project:
        return False
    name = command.path(word).rpartition("/")[2]
    others = {each.rstrip("/").removeprefix("./") for each in words}
    if (name == "bin" and "obj" in others) or (name == "deps" and "_build" in others):
        return True
    text = command.interpreter.text[:_LONGEST]
    return name in ("bin", "vendor", "deps") and bool(_BUILDS.search(text, max(text.find("rm "), 0)))


def unlink(command: Command) -> None:
    """`unlink`, `rmdir`, `truncate`, `shred` and others remove or empty files."""
    options = ParsedOptions(command.argv, "sniN", ("--size", "--iterations", "--reference"))
    command.loses(*options.operands)
    if command.name in ("truncate", "shred"):
        _empties(command, options.operands)


def remove_item(command: Command) -> None:
    """PowerShell's `Remove-Item -Recurse` and its aliases remove trees."""
    argv = command.argv
    given = [
        word
        for at, word in enumerate(argv)
        if at and not word.startswith(("-", "/s")) and not _TAKES_VALUE.fullmatch(argv[at - 1])
    ]
    words = (
        [Word(part) for word in given for part in word.split(",") if part] if any("," in w for w in given) else given
    )
    flags = " ".join(word.lower() for word in command.argv[1:] if word[:1] in "-/")
    if re.search(r"-r(ec\w*)?\b|/s\b", flags):
        command.tree(
            *(word for word in words if not (_is_built_again(command, word, words) or _is_packed(command, word)))
        )


def _is_packed(command: Command, word: Word) -> bool:
    """Return whether a tree is `artifacts` of the project, where the builds of .NET put their packages."""
    return command.level == "project" and command.path(word) == f"{command.interpreter.directories.project}/artifacts"


_TAKES_VALUE = lazy_pattern(
    r"-(?:erroraction|ea|warningaction|wa|filter|include|exclude|confirm|stream)", re.IGNORECASE
)


def find(command: Command) -> None:
    """`find … -delete` and `-exec rm` remove the files that are found.

    A test narrows the search: a name, an age, a size.  A name that matches every file does not.
    """
    words = command.argv[1:]
    while words and words[0] in ("-H", "-L", "-P"):
        words = words[1:]
    first = next((at for at, word in enumerate(words) if word[:1] in ("-", "(", "!") and len(word) > 0), len(words))
    roots = words[:first] or [Word(".")]
    tests = _acting(words[first:])
    names = [tests[at + 1] for at, word in enumerate(tests[:-1]) if word in _NAME_TESTS and not _negated(tests, at)]
    names = [name for name in names if not re.fullmatch(r"[*./]*", name)]
    narrowed = bool(names) or any(word in _OTHER_TESTS for word in tests)
    named = bool(names)
    if all_sources(names) and not any(word in _OTHER_TESTS for word in tests):
        # The search loses every source file of a language.
        narrowed = named = False
    if _finds_data(command, tests, names, roots):
        narrowed = named = False
    found = [below(root, name) for root in roots for name in names] or [below(root, "*") for root in roots]
    if not command.interpreter.judging:
        found = [_at_any_depth(root, name) for root in roots for name in names or [Word("*")]]
    # The star of `-name` matches a leading dot too.
    found += [
        below(root, name[1:])
        for root in roots
        for name in names
        if name.startswith("*.") and command.interpreter.judging
    ]
    own = _own_files(command, roots, tests, names)
    every = NOTHING
    if lost_root(command, roots, named=named, narrowed=narrowed) is not None:
        every = EVERY
        for path in found:
            path.taint = EVERY
    if "-delete" in tests:
        command.deletes(*own, *(root for root in roots if command.controls(root)))
        _find_deletes(command, roots, found, named=named, narrowed=narrowed)
    at = 0
    while at < len(tests):
        if tests[at] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(at, len(tests)) if tests[i] in (";", "\\;", "+")), len(tests))
            carried = tests[at + 1 : end]
            if (
                carried
                and carried[0].rpartition("/")[2] in ("rm", "unlink", "shred")
                and not _stays_here(command, roots)
                and not (narrowed and all(command.path(root) in command.interpreter.directories.temp for root in roots))
            ):
                reason = "removes files that are found in a root of the system or a home"
                command.report("find-delete", reason, wall=command.is_machine(*roots))
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
    text = ends.join(found) if names or command.recorded else None
    command.output = Text(text, every)


def _finds_data(command: Command, tests: list[Word], names: list[Word], roots: list[Word]) -> bool:
    """Return whether a search finds all data of a kind: by its endings alone, and not among the output of programs."""
    narrow = _OTHER_TESTS | {"-maxdepth", "-path", "-ipath", "-wholename", "-regex", "-iregex"}
    narrowed = any(word in narrow and not _negated(tests, at) for at, word in enumerate(tests))
    return not narrowed and bool(names) and all_data(names) and not any(is_output(command.path(root)) for root in roots)


def _at_any_depth(root: Word, name: Word) -> Word:
    """Return the word for the files of a name at any depth below a root."""
    return marked(f"{root.rstrip('/')}/{UNKNOWN}{name.lstrip('*')}", below(root, name))


def _acting(tests: list[Word]) -> list[Word]:
    """Return the alternative that acts, of tests that are joined by `-o` without parentheses."""
    if "(" in tests or not any(word in ("-o", "-or") for word in tests):
        return tests
    parts: list[list[Word]] = [[]]
    for word in tests:
        if word in ("-o", "-or"):
            parts.append([])
        else:
            parts[-1].append(word)
    acting = [part for part in parts if any(word.startswith(("-exec", "-ok", "-delete")) for word in part)]
    return acting[0] if len(acting) == 1 else tests


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


def _filled(word: Word, path: Word) -> Word:
    """Return a word of `-exec` with the path of a found file in the place of `{}`."""
    if "{}" not in word:
        return word
    put = Word(word.replace("{}", path))
    put.taint, put.unsure, put.pattern = word.taint | path.taint, word.unsure, True
    return put


def _find_deletes(command: Command, roots: list[Word], found: list[Word], *, named: bool, narrowed: bool) -> None:
    root = lost_root(command, roots, named=named, narrowed=narrowed)
    if root is not None:
        reason, wall = "removes all files that are found", command.is_machine(root)
        command.report("find-delete", reason, f"find {root} … -delete", wall=wall)
    if named:
        command.deletes(*found)


# The options of `fd` with a value, and those of them that narrow the search.
_FD_VALUES, _FD_NARROW = "dtjcSEoe", ("e", "S", "o", "--extension", "--size", "--owner", "--changed-within",
                                      "--changed-before", "--newer", "--older")  # fmt: skip
_FD_LONG = ("--type", "--max-depth", "--min-depth", "--exact-depth", "--exclude", "--threads", "--color",
            "--base-directory", "--search-path", *(name for name in _FD_NARROW if name[0] == "-"))  # fmt: skip


def fd(command: Command) -> None:
    """`fd -x rm` and `fd | xargs rm` remove the files that are found; a pattern narrows the search."""
    words = command.argv
    at = next((at for at, word in enumerate(words) if word in ("-x", "-X", "--exec", "--exec-batch")), len(words))
    options = ParsedOptions(words[:at], _FD_VALUES, _FD_LONG)
    pattern, *roots = options.operands or [Word(".")]
    if not roots and "/" in pattern:
        pattern, roots = Word("."), [pattern]
    roots = roots or options.value("--search-path", "--base-directory") or [Word(".")]
    endings = options.value("e", "--extension")
    masks = [f"*.{ending.lstrip('.')}" for ending in endings]
    data = (
        all_data(masks) and not options.has("d", "--max-depth") and not any(is_output(command.path(r)) for r in roots)
    )
    narrowed = options.has(*_FD_NARROW) and not (all_sources(masks) or data)
    if pattern not in (".", "", "*", ".*") or narrowed:
        return
    if lost_root(command, roots, named=False, narrowed=False) is None:
        return
    command.output = Text(None, EVERY)
    if at < len(words):
        path = below(roots[0], "*")
        path.taint = EVERY
        carried = [_filled(word, path) for word in words[at + 1 :]]
        command.runs(carried if any("{" in word for word in words[at + 1 :]) else [*carried, path])


def lister(command: Command) -> None:
    """`rg --files`, `tree -fi` and `du -a` print the names of all files."""
    words = command.argv[1:]
    options = ParsedOptions(command.argv, "gtTjdPI", ("--glob", "--iglob", "--type", "--max-depth"))
    narrowed = options.has("g", "t", "P", "--glob", "--iglob", "--type")
    lists = {"rg": "--files" in words, "tree": options.has("f"), "du": options.has("a", "--all")}[command.name]
    roots = options.operands or [Word(".")]
    if lists and not narrowed and lost_root(command, roots, named=False, narrowed=False) is not None:
        command.output = Text(None, EVERY)


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("rm rimraf del-cli srm grm", rm),
    **rules_of("unlink rmdir truncate shred wipe", unlink),
    **rules_of("remove-item ri rd erase", remove_item),
    "find": (find,),
    "gfind": (find,),
    "mv": (moved,),
    **rules_of("cp tee", emptied),
    **rules_of("fd fdfind", fd),
    **rules_of("rg tree du", lister),
}
