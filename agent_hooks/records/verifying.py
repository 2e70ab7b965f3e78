"""Compares record files with their chains and with the heads that the index, or a person, kept.

    report = verify(records_directory(agent_home()), heads=[Kept("9f86d0…")])
    for problem in report.problems:
        print(problem)

1. Each line of a file bears the hash of the line before, so a changed, added or missing line breaks the chain there.
2. A head in the index tells the number of lines and the last hash of a file at one moment; so a file that was cut at its
   end, written anew or removed differs from its heads.  A tombstone stands for a file that `prune` or `forget` removed.
3. The lines after the last head are unproven: no head would differ if they were cut off.
4. A head that a person kept elsewhere is the hash of a line; that line, and all before it, are as they were if a line
   still has this hash.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from agent_hooks.errors import count
from agent_hooks.records.files import INDEX, record_files
from agent_hooks.records.lines import AnyLine, Head, Note, Tombstone
from agent_hooks.records.reading import Damage, check_chain, decode_line, raw_lines, read_index, tail
from agent_hooks.records.writer import is_written
from agent_hooks.storage.digests import line_hash
from agent_hooks.storage.files import StorageError

_SHORT = 12


class Kept(Struct, frozen=True):
    """A head that a person kept: the hash of a line, and the file's name if it was kept too."""

    head: str
    file: str = ""


class Problem(Struct, frozen=True):
    """A place where a file is not as it was written; `line`: its number, from 1, `None` for the whole file."""

    file: str
    line: int | None
    text: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.text}"


class Report(Struct):
    """The outcome of `verify`: problems, and facts that are none.

    `notes`: stretches that are unproven, unfinished lines, lost lines, as sentences with their place.
    """

    files: int = 0
    lines: int = 0
    removed: int = 0
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)


def verify(directory: str, heads: Iterable[Kept] = ()) -> Report:
    """Check the index and all record files of a directory; raises `StorageError` when it cannot be listed."""
    return _Verifying(directory, heads).run()


def current_heads(directory: str) -> list[tuple[str, int, str]]:
    """Return the name, the number of lines and the head of each record file, and of the index as the first.

    Raises `StorageError` when a file cannot be read.
    """
    found = []
    for path in [os.path.join(directory, INDEX), *_listed(directory)]:
        if os.path.lexists(path):
            data, _, _ = tail(path)
            line = decode_line(data)
            found.append((os.path.basename(path), 0 if line is None else line.n, line_hash(data[:-1]) if data else ""))
    return found


def _listed(directory: str) -> list[str]:
    try:
        return record_files(directory)
    except OSError as exc:
        raise StorageError(f"{directory} cannot be read: {exc.strerror}") from None


class _Verifying:
    """One run of `verify`."""

    def __init__(self, directory: str, heads: Iterable[Kept]) -> None:
        self._directory = directory
        self._report = Report()
        self._kept = list(heads)
        self._wanted = {kept.head for kept in self._kept}
        # The kept heads that a line has, with the line's file and number.
        self._met: dict[str, tuple[str, int]] = {}
        self._heads: defaultdict[str, list[Head]] = defaultdict(list)
        self._removed: set[str] = set()
        self._removed_heads: set[str] = set()
        self._index_was_compacted = False

    def run(self) -> Report:
        paths = _listed(self._directory)
        self._read_index(bool(paths))
        for path in paths:
            self._check_file(path)
        present = {os.path.basename(path) for path in paths}
        for name, heads in self._heads.items():
            if name not in present and name not in self._removed:
                self._problem(
                    name, None, f"is missing; the index knows {heads[-1].lines} lines of it, {_at(heads[-1])}"
                )
        for kept in self._kept:
            self._check_kept(kept)
        return self._report

    # ---- the index

    def _read_index(self, has_files: bool) -> None:
        path = os.path.join(self._directory, INDEX)
        if not os.path.lexists(path):
            if has_files:
                self._problem(INDEX, None, "is missing, so nothing proves that the record files are whole")
            return
        try:
            damage = check_chain(path, self._meet(INDEX), anchored=False)
            lines = read_index(self._directory)
        except StorageError as exc:
            self._problem(INDEX, None, str(exc))
            return
        self._add_damage(INDEX, damage)
        for line in lines:
            self._add_index_line(line)
        self._index_was_compacted = bool(lines) and lines[0].prev != line_hash(os.fsencode(INDEX))
        if self._index_was_compacted and lines[0].prev in self._wanted:
            # The first line of a compacted index bears the last hash of the index before.
            self._met[lines[0].prev] = INDEX, 0

    def _add_index_line(self, line: AnyLine) -> None:
        if isinstance(line, Head):
            self._heads[line.file].append(line)
        elif isinstance(line, Tombstone):
            self._report.removed += len(line.files)
            self._removed |= {removed.file for removed in line.files}
            self._removed_heads |= {removed.head for removed in line.files}

    # ---- a record file

    def _check_file(self, path: str) -> None:
        name = os.path.basename(path)
        meet = self._meet(name)
        # The heads of the file by their number of lines; those that were checked leave.
        heads = {head.lines: head for head in self._heads.get(name, ()) if head.lines}
        last = max(heads, default=0)
        rebuilt: list[int] = []
        lines = 0

        def seen(number: int, head: str) -> None:
            nonlocal lines
            lines = number
            meet(number, head)
            known = heads.pop(number, None)
            if known is not None and known.head != head:
                rebuilt.append(number)

        self._report.files += 1
        try:
            damage = check_chain(path, seen)
            self._add_notes(path)
        except StorageError as exc:
            self._problem(name, None, str(exc))
            return
        self._report.lines += lines
        self._add_damage(name, damage)
        if rebuilt:
            self._problem(
                name, rebuilt[0], "is not the line that the index knows; this line or one before was replaced"
            )
        elif heads and (damage is None or damage.kind == "unfinished"):
            text = f"the file ends here, and the index knows {last} lines of it, {_at(heads[last])}"
            self._problem(name, lines, text)
        elif damage is None or damage.kind == "unfinished":
            self._add_unproven(path, last, lines)

    def _add_damage(self, name: str, damage: Damage | None) -> None:
        if damage is None:
            return
        place = f"(from byte {damage.offset})"
        if damage.kind == "unfinished":
            self._note(name, damage.line, f"is not a whole line {place}; its writer was ended in the middle of it")
        elif damage.line == 1:
            self._problem(name, 1, f"is not the first line that was written to this file {place}")
        else:
            text = "does not follow the line before: one of the two was changed, or a line was added or removed"
            self._problem(name, damage.line, f"{text} {place}")

    def _add_unproven(self, path: str, last: int, lines: int) -> None:
        """Note the lines after the last head."""
        if lines <= last:
            return
        name = os.path.basename(path)
        written = ", and is being written" if _is_being_written(path) else ""
        if name not in self._heads:
            self._note(name, None, f"is not in the index{written}; its {count(lines, 'line')} cannot be proven")
        else:
            stretch = f"line {lines} is" if lines == last + 1 else f"lines {last + 1} to {lines} are"
            self._note(name, None, f"{stretch} unproven: after the last head{written}")

    def _add_notes(self, path: str) -> None:
        """Take over the notes of a writer about lost lines."""
        for _, data in raw_lines(path):
            # Few lines are notes, so the others are not decoded once more.
            line = decode_line(data) if b'"lost"' in data else None
            if isinstance(line, Note) and line.about == "lost":
                text = f"{count(line.lines, 'line')} before it could not be written: {line.reason}"
                self._note(os.path.basename(path), line.n, text)

    # ---- heads that a person kept

    def _meet(self, name: str) -> Callable[[int, str], None]:
        """Return a function that takes the lines of a file, and finds the kept heads among them."""

        def seen(number: int, head: str) -> None:
            if head in self._wanted:
                self._met[head] = name, number

        return seen

    def _check_kept(self, kept: Kept) -> None:
        if kept.head in self._met:
            name, number = self._met[kept.head]
            self._note(
                name, number or None, f"has the head {kept.head[:_SHORT]}…; all lines up to there are as they were"
            )
        elif kept.head in self._removed_heads or kept.file in self._removed:
            self._note(kept.file or kept.head[:_SHORT], None, "was removed by `records prune` or `records forget`")
        elif self._index_was_compacted and kept.file == INDEX:
            self._note(INDEX, None, "was written anew when files were removed, so its older head cannot be compared")
        else:
            text = f"no line has the head {kept.head}, so a line up to it was changed or removed"
            self._problem(kept.file or self._directory, None, text)

    def _problem(self, file: str, line: int | None, text: str) -> None:
        self._report.problems.append(Problem(file, line, text))

    def _note(self, file: str, line: int | None, text: str) -> None:
        self._report.notes.append(Problem(file, line, text))


def _at(head: Head) -> str:
    return f"since {head.time:%Y-%m-%d %H:%M:%S %Z}".rstrip()


def _is_being_written(path: str) -> bool:
    try:
        return is_written(path)
    except OSError:
        # The file was removed meanwhile, or the file system has no locks.
        return False
