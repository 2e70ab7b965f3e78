"""The text of the question whether a set counts: the facts, then the code or the changes, and the manifest's digest.

Everything that comes from the set is marked (see `marked`), and stands behind a margin.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import groupby

from msgspec import Struct

from agent_hooks.cli.screen.marked import decoded, one_line, wrapped
from agent_hooks.cli.streams import at_words
from agent_hooks.errors import count
from agent_hooks.trust.fact import KINDS, Fact, Kind
from agent_hooks.trust.facts import FileFacts, Role, set_facts
from agent_hooks.trust.manifest import ProjectSet, SetFile

MOST_FILES = 200
"""A set with more files is summarised, and approved only by name."""
MOST_BYTES = 1 << 20
"""A set with more bytes is summarised, and approved only by name."""
MOST_LINES = 20_000
"""A set with more lines is summarised, and approved only by name."""
# Blank lines in a row that are shown as they are.
_MOST_BLANK = 10
# Lines of a text above which its changes are not looked for, because that may take minutes.
_LONGEST_DIFF = 4000
_MARGIN = 7
# The column in which the facts begin.
_FACTS = 26
_NOT_COVERED = "Not covered: files elsewhere that a hook reads or runs, packages that it imports, and dotfiles."
_ROLES: dict[Role, str] = {
    "hook": "a hook, which is loaded",
    "module": "a module that hooks may import",
    "transformer": "a transformer, if command_intercept.yaml names it",
    "settings": "settings, which are obeyed",
    "intercept": "settings of transformers, which are obeyed",
    "lock": "the packages of the hook beside it",
    "unused": "a file that is never imported",
    "data": "data that hooks may read",
}
# The kinds of facts that a summary counts, and those that it names.
_NAMED: tuple[Kind, ...] = ("loosens", "names", "unknown", "refused")


class Look(Struct, frozen=True):
    """The way in which a text is shown: the columns of the screen, and whether marks are coloured.

    `words`: lines that are no code are broken between words, as a terminal needs it and a file does not.
    """

    columns: int = 80
    colour: bool = False
    words: bool = False

    def line(self, text: str) -> str:
        """Return a text of the set as one line without harm."""
        return one_line(text, colour=self.colour)

    def fitted(self, line: str, indent: int = 2) -> list[str]:
        """Return a line that is no code as lines of the screen."""
        # A mark in colour is longer than it looks.
        return at_words(line, self.columns, indent) if self.words and "\x1b" not in line else [line]


def is_large(found: ProjectSet) -> bool:
    """Tell whether a set is too large for a person to read at once."""
    lines = sum(file.data.count(b"\n") + file.data.count(b"\r") for file in found.files)
    return len(found.files) > MOST_FILES or found.size > MOST_BYTES or lines > MOST_LINES


def set_text(
    found: ProjectSet,
    approved: Mapping[str, bytes] | None,
    look: Look,
    *,
    named: Collection[str] | None = None,
) -> Iterator[str]:
    """Yield the lines that show a set: facts, code or changes, and the files that do not belong to it.

    `approved`: the last approved files by name, for the changes, `None` without any; `named`: the files to show in full,
    the others are summarised; without it all are shown, or, of a large set, all are summarised.
    """
    changed = _changed(found, approved)
    if named is None:
        named = [] if is_large(found) else [file.name for file in changed]
    wanted = set(named)
    inside = [file for file in changed if file.name in wanted]
    rest = [file for file in changed if file.name not in wanted]
    facts = {each.name: each for each in set_facts(found, [file.name for file in changed])}
    for file in inside:
        yield from _facts_text(file, facts[file.name], look)
    if rest:
        yield from _summary([facts[file.name] for file in rest], rest, look)
    removed = sorted(set(approved or ()) - {file.name for file in found.files})
    yield from (f"- {look.line(name)}: removed" for name in removed)
    same = len(found.files) - len(changed)
    if same:
        yield f"  {count(same, 'file')} as approved before"
    yield from (f"! {look.line(each)}" for each in found.left_out)
    for file in inside:
        yield ""
        yield from _contents(file, None if approved is None else approved.get(file.name), look)
    yield ""
    yield from look.fitted(_NOT_COVERED)


def changes_text(found: ProjectSet, approved: Mapping[str, bytes], look: Look) -> Iterator[str]:
    """Yield the lines that show the changes of a set only, without facts."""
    for file in _changed(found, approved):
        yield from _contents(file, approved.get(file.name), look)
    for name in sorted(set(approved) - {file.name for file in found.files}):
        yield f"---- {look.line(name)}: removed"


def _changed(found: ProjectSet, approved: Mapping[str, bytes] | None) -> list[SetFile]:
    if approved is None:
        return list(found.files)
    return [file for file in found.files if approved.get(file.name) != file.data]


# ---- facts -----------------------------------------------------------------------------------------------------------


def _facts_text(file: SetFile, facts: FileFacts, look: Look) -> Iterator[str]:
    yield f"* {look.line(file.name)} ({_size(file)}): {_ROLES[facts.role]}"
    if facts.target is not None:
        yield f"    {'IS A LINK to':<22}{look.line(facts.target)}, outside of the project"
    for line in fact_lines(facts.facts, look.line):
        yield from look.fitted(line, _FACTS)


def fact_lines(facts: Collection[Fact], line: Callable[[str], str]) -> Iterator[str]:
    """Yield the facts under their headings; `line` makes a text of the set harmless."""
    for kind, heading in KINDS.items():
        texts = [line(fact.text) + _places(fact) for fact in facts if fact.kind == kind]
        if kind == "imports" and texts:
            texts = [", ".join(line(fact.text) for fact in facts if fact.kind == kind)]
        for number, text in enumerate(texts):
            yield f"    {heading if number == 0 else '':<{_FACTS - 4}}{text}"


def _places(fact: Fact) -> str:
    if not fact.lines:
        return ""
    more = f" and {len(fact.lines) - 8} more" if len(fact.lines) > 8 else ""
    word = "line" if len(fact.lines) == 1 else "lines"
    return f"  ({word} {', '.join(map(str, fact.lines[:8]))}{more})"


def _summary(facts: Collection[FileFacts], files: Collection[SetFile], look: Look) -> Iterator[str]:
    """Yield the number of files and facts for each directory, and in full the facts that loosen protection."""
    size = sum(len(file.data) for file in files)
    yield f"* {count(len(files), 'file')} in summary, {_bytes(size)}"
    directories: dict[str, int] = {}
    for file in files:
        directory = os.path.dirname(file.name)
        directories[directory] = directories.get(directory, 0) + 1
    for directory, number in sorted(directories.items())[:MOST_FILES]:
        yield f"    {look.line(directory)}: {count(number, 'file')}"
    if len(directories) > MOST_FILES:
        yield f"    and {len(directories) - MOST_FILES} more directories"
    for kind, heading in KINDS.items():
        found = [(each, fact) for each in facts for fact in each.of(kind)]
        if found and kind not in _NAMED:
            with_it = {each.name for each, _ in found}
            yield f"    {heading:<22}{count(len(found), 'fact')} in {count(len(with_it), 'file')}"
        elif found:
            for each, fact in found[:MOST_FILES]:
                yield f"    {heading:<22}{look.line(each.name)}: {look.line(fact.text)}"
            if len(found) > MOST_FILES:
                yield f"    {heading:<22}and {len(found) - MOST_FILES} more"
    for each in facts:
        if each.target is not None:
            yield f"    {'IS A LINK':<22}{look.line(each.name)} to {look.line(each.target)}"


def _size(file: SetFile) -> str:
    lines = file.data.count(b"\n") + (not file.data.endswith(b"\n") and bool(file.data))
    return f"{count(lines, 'line')}, {_bytes(len(file.data))}"


def _bytes(number: int) -> str:
    return count(number, "byte") if number < 10_000 else f"{number / 1024:.0f} KiB"


# ---- contents --------------------------------------------------------------------------------------------------------


def _contents(file: SetFile, before: bytes | None, look: Look) -> Iterator[str]:
    """Yield the code of a file, or its changes."""
    if before is not None and (changes := _diff(before, file.data)) is not None:
        yield f"---- changes of {look.line(file.name)}"
        yield from _folded([(f"{sign:>{_MARGIN - 2}}", text) for sign, text in changes], look)
        return
    yield f"---- {look.line(file.name)}"
    if _is_binary(file):
        yield from _behind_margin("", f"binary data, {_bytes(len(file.data))}, SHA-256 {file.digest}", look)
        return
    yield from _folded([(f"{number:>{_MARGIN - 2}}", text) for number, text in enumerate(_lines(file.data), 1)], look)


def _folded(lines: list[tuple[str, str]], look: Look) -> Iterator[str]:
    """Yield labelled lines; of many blank ones in a row only the number, because they would hide the code between."""
    for blank, group in groupby(lines, key=lambda line: not line[1].strip(" \t\f\r")):
        run = list(group)
        if blank and len(run) > _MOST_BLANK:
            yield f"{run[0][0]}| ({count(len(run), 'blank line')})"
        else:
            for label, text in run:
                yield from _behind_margin(label, text, look)


def _is_binary(file: SetFile) -> bool:
    """Tell whether a file is data that no person reads; code and settings never count as such."""
    read = file.name.endswith((".py", ".json", ".yaml"))
    return not read and b"\0" in file.data


def _lines(data: bytes) -> list[str]:
    """Return the lines of a text; only a newline ends a line, so that a lone carriage return is shown."""
    lines = decoded(data).split("\n")
    if lines[-1] == "":
        lines.pop()
    # The line ends of another system are no change of the text.
    return [line.removesuffix("\r") for line in lines] if all(line.endswith("\r") for line in lines) else lines


def _diff(before: bytes, after: bytes) -> list[tuple[str, str]] | None:
    """Return the changed lines with a sign each, `None` when the texts are too long to be compared."""
    old, new = decoded(before).split("\n"), decoded(after).split("\n")
    if len(old) > _LONGEST_DIFF or len(new) > _LONGEST_DIFF:
        return None
    lines = list(difflib.unified_diff(old, new, lineterm="", n=3))[2:]
    return [("", line) if line.startswith("@@") else (line[:1], line[1:]) for line in lines]


def _behind_margin(label: str, text: str, look: Look) -> Iterator[str]:
    room = max(look.columns - _MARGIN, 20)
    for number, piece in enumerate(wrapped(text, room, colour=look.colour)):
        yield f"{label if number == 0 else '':<{_MARGIN - 2}}| {piece}"
