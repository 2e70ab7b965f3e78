"""Rules for programs that write many files which the command does not name: archives, patches, copies of trees.

The machine lists the files of an archive or a patch.  One that would write a file which controls the agent is stopped.
Where there is no list, as for a download in a pipe, the person is asked if there are hooks or settings to be overwritten.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from agent_hooks.guards.control import FOLDER, HOOK_NAMES
from agent_hooks.guards.patches import applied_names, patched_names
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.git_verbs import GLOBAL_WITH_VALUE
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.options import TAR_VALUES, ParsedOptions, named_files, spelled_out
from agent_hooks.guards.shell.words import Word

_RULE = "write-guard-settings"
_UNSEEN = f"unpacks files over it that cannot be listed: {CONTROLS}"
# Names in `.agent`, which an archive brings there when it is unpacked inside.
_INNER = (*HOOK_NAMES, FOLDER)
_TAR_LONG = (
    *("--file", "--directory", "--strip-components", "--transform", "--xform", "--use-compress-program"),
    *("--files-from", "--exclude", "--exclude-from", "--to-command", "--suffix", "--owner", "--group", "--mode"),
)
# Options of tar that rename members or read another format.
_TAR_OTHER = ("s", "I", "T", "--transform", "--xform", "--use-compress-program", "--to-command", "--files-from")


class Unpacking(Struct, eq=False):
    """One command that unpacks.

    `archives`: the archive, empty when it comes from a pipe; `into`: the directories that members may land in; `strip`:
    the number of leading components that are left out; `plain`: members keep their names; `only`: the members that are
    asked for, empty for all.
    """

    archives: Sequence[Word]
    into: Sequence[Word] = ()
    strip: int = 0
    plain: bool = True
    only: Sequence[Word] = ()

    def __post_init__(self) -> None:
        self.into = self.into or [Word(".")]


def archive(command: Command) -> None:
    """`tar x`, `unzip`, `7z x`, `cpio -i` may write over the files that control the agent."""
    words = command.argv[1:]
    if not _unpacks(command.name, words):
        return
    for word in named_files(words):
        if command.controls(word):
            command.writes(word)
    unpacking = _unpacking(command)
    into = unpacking.into[-1]
    if command.interpreter.directories.in_temp(command.path(into)):
        return
    before = map(Word, command.interpreter.pipeline_words)
    command.writes(*(word for word in before if command.controls(word)))
    names = _members(command, unpacking)
    if names is None or {"--recursive-unlink", "--unlink-first"} & set(words):
        _over_everything(command, words, into)
    if names is None:
        _unlisted(command, unpacking)
    else:
        _listed(command, unpacking, names)


def _unpacks(name: str, words: list[Word]) -> bool:
    if name in ("tar", "bsdtar"):
        first = words[0] if words else ""
        flags = [word for word in words if re.fullmatch(r"-[A-Za-z]+\S*", word)]
        letters = [first] if first[:1] != "-" else []
        return any("x" in word for word in [*flags, *letters]) or any(w in ("--extract", "--get") for w in words)
    if name in ("cpio", "pax"):
        return any(re.match(r"-\w*[ipr]|--extract", word) for word in words)
    if name.startswith("7z") or name in ("rar", "unrar", "ar"):
        return words[:1] in (["x"], ["e"], ["-x"])
    # `unzip -l` and the like only list or print.
    return name in ("unzip", "bsdunzip") and not any(re.match(r"-\w*[ltvzpcZ]", word) for word in words)


def _unpacking(command: Command) -> Unpacking:
    name, words = command.name, command.argv[1:]
    if name in ("tar", "bsdtar"):
        return _tar(command)
    if name in ("unzip", "bsdunzip"):
        options = ParsedOptions(command.argv, "dxP")
        return Unpacking(options.operands[:1], options.value("d"))
    if name.startswith("7z") or name in ("rar", "unrar", "ar"):
        operands = [word for word in words[1:] if not word.startswith("-")]
        into = [Word(word[2:]) for word in words if word.startswith("-o") and len(word) > 2]
        return Unpacking(operands[:1], into or [word for word in operands[1:] if word.endswith("/")])
    options = ParsedOptions(command.argv, "FDfs", ("--file", "--directory"))
    return Unpacking(options.value("f", "F", "--file"), options.value("D", "--directory"), plain=not options.has("s"))


def _tar(command: Command) -> Unpacking:
    argv = spelled_out(command.argv, TAR_VALUES)
    options = ParsedOptions(argv, TAR_VALUES, _TAR_LONG)
    # `has` would take `--file` for an abbreviation of `--files-from`.
    options.flags = [flag for flag in options.flags if flag != "--file"]
    into = Word("")
    for word in options.value("C", "--directory"):
        into = Word(UNKNOWN) if not word.known else Word(posixpath.join(into, word))
    strip = options.value("--strip-components")
    known = all(word.isdigit() for word in strip)
    plain = known and "TAR_OPTIONS" not in command.environment and not options.has(*_TAR_OTHER)
    number = int(strip[-1]) if known and strip else 0
    return Unpacking(options.value("f", "--file"), [into] if into else [], number, plain=plain, only=options.operands)


def _members(command: Command, unpacking: Unpacking) -> tuple[str, ...] | None:
    """Return the names that the archive would write below the directory, `None` when they cannot be known."""
    path = _source(command, unpacking.archives)
    if path is None or not unpacking.plain:
        return None
    names = command.interpreter.call.machine.members(path)
    if names is None and command.name == "unzip":
        names = command.interpreter.call.machine.members(f"{path}.zip")
    if names is None or not unpacking.strip:
        return names
    return tuple("/".join(parts[unpacking.strip :]) for name in names if (parts := name.split("/"))[unpacking.strip :])


def _source(command: Command, words: Sequence[Word]) -> str | None:
    """Return the path of the file that a command reads, `None` unless it is as it was before the command line."""
    if len(words) > 1 or any(not word.known or word.pattern for word in words):
        return None
    path = command.path(words[0]) if words and words[0] != "-" else command.stdin.file
    if not path or UNKNOWN in path or path in command.shell.files:
        return None
    # An earlier part of the command line may write the file, so the first mention must be that of this program.
    text = str(command.interpreter.call.input.get("command", ""))
    before, found, _ = text.partition(posixpath.basename(path))
    program = rf"(?:^|[\s/'\"(`]){re.escape(command.name)}\s"
    return path if found and re.search(program, re.split(r"[;&|\n]", before)[-1]) else None


def _listed(command: Command, unpacking: Unpacking, names: Iterable[str]) -> None:
    """Stop an archive with a member that would take the place of a file which controls the agent."""
    control, machine = command.interpreter.control, command.interpreter.call.machine
    into = unpacking.into[-1]
    unknown = not into.known or UNKNOWN in command.path(into)
    root = "" if unknown else machine.real(command.path(into))
    heads: dict[str, str] = {}
    for name in names:
        relative = posixpath.normpath(name.lstrip("/"))
        head, slash, rest = relative.partition("/")
        if head not in heads and len(heads) < 1000:
            heads[head] = machine.real(f"{root}/{head}") if slash and not unknown else f"{root}/{head}"
        paths = (f"{heads.get(head, f'{root}/{head}')}{slash}{rest}", f"{root}/{relative}")
        outside = [posixpath.normpath(name)] if name.startswith("/") else []
        if any(control.stops_writing(posixpath.normpath(path)) for path in (*paths, *outside)):
            command.report(_RULE, f"holds {name}: {CONTROLS}")
            return
    if unknown and any(posixpath.normpath(name).split("/")[0] in _INNER for name in names):
        _ask(command, into)


def _unlisted(command: Command, unpacking: Unpacking) -> None:
    """Ask about an archive without a list, where it may write over hooks or settings that are there."""
    control, into = command.interpreter.control, unpacking.into[-1]
    if unpacking.only and unpacking.plain and all(word.known and not word.pattern for word in unpacking.only):
        named = (posixpath.join(command.path(into), word) for word in unpacking.only)
        if not any(control.stops_removing(posixpath.normpath(path)) for path in named):
            return
    _ask(command, into)


def _ask(command: Command, into: Word, reason: str = _UNSEEN) -> None:
    path = command.path(into)
    if not into.known or UNKNOWN in path:
        path = command.interpreter.directories.project
    machine = command.interpreter.call.machine
    if any(machine.exists(own) for own in command.interpreter.control.below(path)):
        command.interpreter.report(_RULE, reason, command, undecidable=True)


def _over_everything(command: Command, words: list[Word], into: Word) -> None:
    """Ask about an archive that replaces whole directories which hold hooks, without a question of its own."""
    replaces = "--overwrite" in words or "--recursive-unlink" in words or "--unlink-first" in words
    if command.name == "unzip":
        replaces = any(re.match(r"-\w*o", word) for word in words)
    path, directories = command.path(into), command.interpreter.directories
    home = path in ("/", directories.home) or f"{directories.home}/".startswith(f"{path}/")
    if (replaces or home) and command.interpreter.control.stops_removing(path):
        command.interpreter.report(_RULE, _UNSEEN, into, undecidable=True)


# ---- patches ---------------------------------------------------------------------------------------------------------


def patch(command: Command) -> None:
    """`patch -d .agent` writes there; a patch names its files."""
    options = ParsedOptions(command.argv, "idopBDFVYzg", ("--input", "--output", "--directory", "--strip"))
    into = options.value("d", "--directory")
    command.writes(*(word for word in into if command.controls(word)))
    # An operand is the one file that is changed, and the second one the patch.
    if not options.operands and not options.has("--dry-run"):
        strip = _strip(options.value("p", "--strip"))
        _patches(command, options.value("i", "--input"), into[-1] if into else Word("."), strip)


_ONLY_SHOWS = ("--check", "--stat", "--numstat", "--summary", "--cached", "--index-info")
_GOES_ON = ("--continue", "--abort", "--skip", "--quit", "--show-current-patch")


def git_apply(command: Command) -> None:
    """`git apply` and `git am` write the files that a patch names."""
    words = command.argv
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] in GLOBAL_WITH_VALUE:
            at += 1
            if words[at - 1] in ("-C", "--work-tree") and at < len(words):
                command = command.inside(words[at])
        at += 1
    if words[at : at + 1] not in (["apply"], ["am"]) or {*_ONLY_SHOWS, *_GOES_ON} & set(words[at:]):
        return
    options = ParsedOptions(words[at:], "pCS", ("--directory", "--include", "--exclude", "--whitespace"))
    for word in options.operands or [Word("-")]:
        strip = options.value("p")
        _patches(command, [word], Word("."), _strip(strip) if strip else 1)


def _strip(values: Sequence[Word]) -> int | None:
    """Return the number of leading components that an option `-p` leaves out, `None` when it is not known."""
    return int(values[-1]) if values and values[-1].isdigit() else None


def _patches(command: Command, words: Sequence[Word], into: Word, strip: int | None) -> None:
    """Judge one patch: a file, or the text on stdin; `strip`: the number of leading components that are left out."""
    text = command.stdin.text
    if words and words != ["-"]:
        # The command line may have written the patch itself.
        text = command.interpreter.content(words[0], command.shell).text
    if text is not None and UNKNOWN not in text:
        names: Iterable[str] | None = patched_names(text)
    else:
        path = _source(command, words)
        names = None if path is None else command.interpreter.call.machine.patched(path)
    if names is None:
        _ask(command, into, f"a patch that cannot be read before may change it: {CONTROLS}")
        return
    for name in names:
        parts = name.split("/")
        tails = ("/".join(parts[at:]) for at in (range(min(len(parts), 8)) if strip is None else [strip]))
        if name != "/dev/null":
            _writes_named(command, into, [tail for tail in tails if tail])


def _writes_named(command: Command, into: Word, names: Iterable[str]) -> None:
    """Judge the files that a patch names, below a directory."""
    control, root = command.interpreter.control, command.path(into)
    for name in names:
        path = posixpath.normpath(posixpath.join(root, name))
        if control.stops_writing(path):
            command.report(_RULE, f"changes {name}: {CONTROLS}")
        else:
            command.writes(Word(path))


def apply_patch(command: Command) -> None:
    """`apply_patch` writes the files that its argument, or the text on stdin, names."""
    words = command.argv[1:]
    if command.name == "codex":
        if _AS_PATCH not in words:
            return
        words = words[words.index(Word(_AS_PATCH)) + 1 :]
    text = str(words[0]) if words else command.stdin.text
    names = None if text is None else applied_names(text)
    if text is None and (path := _source(command, [])) is not None:
        names = command.interpreter.call.machine.patched(path)
    known = [name for name in names or () if UNKNOWN not in name]
    _writes_named(command, Word("."), known)
    if names is None or (text is not None and UNKNOWN in text):
        _ask(command, Word("."), f"a patch that cannot be read before may change it: {CONTROLS}")


# With this option, Codex is the program that applies a patch.
_AS_PATCH = "--codex-run-as-apply-patch"


# ---- copies of trees -------------------------------------------------------------------------------------------------


def tree_copy(command: Command) -> None:
    """`cp -r evil/. .` and `rsync -a evil/ ./` bring the hooks and settings of another tree."""
    long = ("--target-directory", "--exclude", "--include", "--rsh", "--files-from", "--filter", "--suffix")
    options = ParsedOptions(command.argv, "efTB" if command.name == "rsync" else "tS", long)
    sources, targets = options.operands[:-1], options.operands[-1:]
    if into := options.value("t", "--target-directory"):
        sources, targets = options.operands, into
    recursive = command.name == "ditto" or options.has("r", "R", "a", "--recursive", "--archive")
    spared = any(".agent" in word for word in options.value("--exclude"))
    if not recursive or spared or not targets or options.has("--dry-run") or _is_dry(command, options):
        return
    whole = command.name == "ditto" or (command.name != "rsync" and options.has("T", "--no-target-directory"))
    for source in sources:
        if whole or source.endswith(("/", "/.")) or source == ".":
            _contents(command, source, targets[0])


def _is_dry(command: Command, options: ParsedOptions) -> bool:
    return command.name == "rsync" and "n" in options.flags


def _contents(command: Command, source: Word, target: Word) -> None:
    """Judge a copy of everything in a directory."""
    into = command.path(target)
    remote = command.name == "rsync" and ":" in target.partition("/")[0]
    if remote or command.interpreter.directories.in_temp(into):
        return
    if not source.known or (command.name == "rsync" and ":" in source.partition("/")[0]):
        _ask(command, target, f"a tree that is not known may hold other ones: {CONTROLS}")
        return
    root, machine = command.path(source), command.interpreter.call.machine
    for own in command.interpreter.control.below(into):
        relative = own[len(into.rstrip("/")) + 1 :]
        if root != into and machine.exists(posixpath.join(root, relative)):
            command.report(_RULE, f"holds {relative}: {CONTROLS}")
            return


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("tar bsdtar unzip bsdunzip 7z 7za 7zz cpio pax rar unrar", archive),
    **rules_of("cp gcp rsync ditto", tree_copy),
    **rules_of("patch gpatch", patch),
    **rules_of("apply_patch applypatch codex", apply_patch),
    "git": (git_apply,),
}
