"""Unified and context diffs, as `git apply`, `git am` and `patch` read them, as calls of our tools.

The lines of a hunk are told from headers by the numbers in the hunk's own header.  A line that could be a header names a
file also where it stands in a hunk, because programs disagree about damaged numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agent_hooks.bridges.base.happenings import Part
from agent_hooks.bridges.patch_text import MOST_PARTS, deletion, edit, move, unread
from agent_hooks.guards.patches import patched_names, whole_name

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
# The range of a file that does not exist or is empty before the change, also in a context diff.
_NONE_BEFORE = re.compile(r"@@ -0,0 |\*\*\* 0 \*\*\*\*")
_HEADERS = (
    "--- ",
    "+++ ",
    "diff --git ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "deleted file",
    "new file mode",
)
_OPPOSITES = {"--- ": "+++ ", "rename from ": "rename to ", "deleted file": "new file mode"}
_NOWHERE = "/dev/null"
# A patch whose option `-p` is not known leaves out up to so many directories.
_MOST_STRIPPED = 8


class _File:
    """The headers and hunks of one file in a diff."""

    def __init__(self) -> None:
        self.heads: dict[str, str] = {}
        self.old: list[str] = []
        self.new: list[str] = []

    def head(self, line: str) -> bool:
        """Add a header, and return whether it belongs to the same file as the headers before it."""
        kind = next(each for each in _HEADERS if line.startswith(each))
        if kind in self.heads or (kind in ("--- ", "diff --git ") and (self.old or self.new)):
            return False
        rest = line[len(kind) :].rstrip("\r")
        # The two names of this header are not told apart by blanks.
        self.heads[kind] = next(iter(patched_names(line)), "") if kind == "diff --git " else whole_name(rest)
        return True

    def reverse(self) -> None:
        """Take the change back instead of making it; a copy that is taken back is a deletion."""
        other = _OPPOSITES | {new: old for old, new in _OPPOSITES.items()}
        self.heads = {other.get(kind, kind): name for kind, name in self.heads.items()}
        self.old, self.new = self.new, self.old
        if target := self.heads.pop("copy to ", ""):
            self.heads |= {"deleted file": "", "rename from ": target}

    def parts(self, strip: int | None) -> Iterator[Part]:
        old, new = self._name("--- ", "rename from ", strip), self._name("+++ ", "rename to ", strip)
        is_added, is_gone = (self.heads.get(kind) == _NOWHERE for kind in ("--- ", "+++ "))
        if "deleted file" in self.heads or is_gone:
            for path in old or self._name("diff --git ", "", strip):
                yield from deletion(path)
        if is_added or {"copy to ", "new file mode"} & self.heads.keys():
            content = "".join(f"{line}\n" for line in self.new)
            targets = [*new, *self._name("copy to ", "", strip)] or old or self._name("diff --git ", "", strip)
            yield from (Part("write", {"path": path, "content": content}) for path in targets)
        # Other words before the headers of a change may read like a header, and do not make it another one.
        if is_added or is_gone:
            return
        for path in dict.fromkeys([*old, *new]):
            yield edit(path, self.old, self.new)
        if "rename to " in self.heads:
            for path, target in zip(old, new, strict=False):
                yield Part("write", {"path": target, "content": "".join(f"{line}\n" for line in self.new)})
                yield move(path, target)

    def _name(self, kind: str, other: str, strip: int | None) -> list[str]:
        if not (name := self.heads.get(kind)):
            # The names of renames and copies have no prefix.
            name, kind = self.heads.get(other, ""), other
        if strip and kind.startswith(("rename", "copy")):
            strip -= 1
        return [] if name in ("", _NOWHERE) else stripped(name, strip)


def parts_of_diff(text: str, strip: int | None, *, is_reversed: bool = False) -> tuple[Part, ...]:
    """Return the calls that a diff amounts to, none for a text without a diff.

    `strip`: the number of leading directories that are left out of each name, `None` when it is not known.
    `is_reversed`: the changes are taken back.
    """
    parts: list[Part] = []
    for file in _files(text):
        if is_reversed:
            file.reverse()
        parts += file.parts(strip)
        if len(parts) > MOST_PARTS:
            return (*parts[:MOST_PARTS], *unread(f"the diff has more than {MOST_PARTS:,} parts"))
    named = {part.input["path"] for part in parts if "path" in part.input}
    for name in patched_names(text):
        paths = [] if name == _NOWHERE else stripped(name, strip)
        parts += [edit(path, (), ()) for path in paths if path not in named]
        named.update(paths)
    if len(parts) > MOST_PARTS:
        return (*parts[:MOST_PARTS], *unread(f"the diff has more than {MOST_PARTS:,} parts"))
    return tuple(parts)


def stripped(name: str, strip: int | None) -> list[str]:
    """Return a name without its leading directories; each possible one, where their number is not known."""
    pieces = [piece for piece in name.split("/") if piece] if strip != 0 else [name]
    if strip is None:
        return ["/".join(pieces[at:]) for at in range(min(len(pieces), _MOST_STRIPPED))]
    return ["/".join(pieces[strip:])] if len(pieces) > strip else []


def _files(text: str) -> Iterator[_File]:
    file = _File()
    old = new = 0
    for line in text.split("\n"):
        if old > 0 or new > 0:
            first, rest = line[:1], line[1:].removesuffix("\r")
            if first in (" ", "-", ""):
                file.old.append(rest)
                old -= 1
            if first in (" ", "+", ""):
                file.new.append(rest)
                new -= 1
            if first in (" ", "-", "+", "", "\\"):
                continue
            old = new = 0
        if _NONE_BEFORE.match(line):
            file.heads["new file mode"] = ""
        if found := _HUNK.match(line):
            old, new = (1 if number is None else int(number[:9]) for number in found.groups())
        elif line.startswith(_HEADERS) and not file.head(line):
            yield file
            file = _File()
            file.head(line)
    yield file


class Applied(NamedTuple):
    """The diffs that a program applies.

    `files`: those that hold them; none stand for stdin, `?` for a diff that is somewhere else, and `=FILE` for the one
    file that is changed.  `strip`: the number of `-p`, if it is known.  `is_reversed`: the changes are taken back.
    """

    files: list[str]
    strip: int | None
    directory: str
    is_reversed: bool = False


def applied(words: Sequence[str]) -> Applied | None:
    """Return the diffs that a program applies, `None` for another program; `words`: its name and its arguments."""
    name, rest = words[0], list(words[1:])
    if name in ("patch", "gpatch"):
        return _of_patch(rest)
    if name == "git":
        return _of_git(rest)
    if (name, rest[:1]) in (("codex", ["apply"]), ("hg", ["import"]), ("svn", ["patch"])):
        return Applied(["?"], None, "")
    return None


def _of_patch(rest: list[str]) -> Applied | None:
    options, operands = _options(rest, "idopBDFVYzgr", ("--input", "--directory", "--strip", "--output"))
    if "--dry-run" in options or "--version" in options or "--help" in options:
        return None
    strip = options.get("p", options.get("--strip", ""))
    directory = options.get("d", options.get("--directory", ""))
    into = options.get("o", options.get("--output", ""))
    if operands[:1] or into:
        # The first operand is the one file that is changed, and the second one the diff.
        return Applied([f"={into or operands[0]}", *operands[1:2]], None, directory, _is_reversed(options))
    file = options.get("i", options.get("--input", "-"))
    number = int(strip) if strip.isdigit() else None
    return Applied([] if file == "-" else [file], number, directory, _is_reversed(options))


_SHOWS = {"--check", "--stat", "--numstat", "--summary", "--cached", "--abort", "--quit", "--show-current-patch"}


def _of_git(rest: list[str]) -> Applied | None:
    directory = ""
    while rest and rest[0].startswith("-"):
        if rest[0] in ("-C", "--work-tree") and rest[1:]:
            directory = f"{directory}/{rest[1]}" if directory and not rest[1].startswith("/") else rest[1]
        rest = rest[2:] if rest[0] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else rest[1:]
    if rest[:1] not in (["apply"], ["am"]) or _SHOWS & set(rest):
        return None
    options, operands = _options(rest[1:], "pCS", ("--directory", "--include", "--exclude", "--whitespace"))
    if root := options.get("--directory", ""):
        directory = f"{directory}/{root}" if directory else root
    strip = options.get("p", "1")
    number = int(strip) if strip.isdigit() else None
    return Applied([each for each in operands if each != "-"], number, directory, _is_reversed(options))


def _is_reversed(options: Mapping[str, str]) -> bool:
    # A long option may be cut off.
    return "R" in options or any(len(name) > 4 and "--reverse".startswith(name) for name in options)


def _options(words: list[str], letters: str, long: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options with their values, an empty text for one without, and the operands."""
    options: dict[str, str] = {}
    operands: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            operands += left
            break
        if word.startswith("--"):
            options[name] = value if equals or name not in long or not left else left.pop(0)
        elif len(word) < 2 or word[0] != "-":
            operands.append(word)
        else:
            at = next((at for at, letter in enumerate(word[1:], 1) if letter in letters), len(word))
            options |= dict.fromkeys(word[1:at], "")
            if at < len(word):
                options[word[at]] = word[at + 1 :] or (left.pop(0) if left else "")
    return options, operands
