"""Find the text that is new: the lines and the commits after the commit that added the check.

The base is the commit that brought the check into this branch, along the first parents: a merge for example. The lines
are read from the working tree, with uncommitted and untracked files. Commits that do not descend from the base are
skipped.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

MARK = "checks/prose/patterns.py"
"""The file whose first commit is the base."""
_EVERY_LINE = range(1, 10**9)
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_DIFF = (
    *(
        "diff",
        "--unified=0",
        "--inter-hunk-context=0",
        "--find-renames",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
    ),
    *("--relative", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules"),
)


class NoBaseError(Exception):
    """The base cannot be found, so it is unknown which text is new. The message has the reason and the remedy."""


def base_of(root: Path) -> str:
    """Return the commit that added the check. Raise `NoBaseError` without git, or when the history is too short."""
    base = _git(root, "log", "--first-parent", "-m", "--diff-filter=A", "-1", "--format=%H", "--", MARK).strip()
    if not base:
        raise NoBaseError(f"no commit has added {MARK} here: commit it, or check out the project's own history")
    shallow = _git(root, "rev-parse", "--is-shallow-repository").strip() == "true"
    if shallow and not _git(root, "log", "-1", "--format=%P", base).strip():
        raise NoBaseError(
            f"this clone is shallow, and its history may not reach the commit that added {MARK}: git fetch --unshallow"
        )
    return base


def added_lines(root: Path, base: str, paths: Sequence[str]) -> dict[str, Container[int]]:
    """Return the files below `paths` that have new lines, and the numbers of these lines in the working tree."""
    added: dict[str, Container[int]] = {}
    lines: set[int] = set()
    rest = iter(_git(root, *_DIFF, base, "--", *paths).split("\n"))
    for line in rest:
        if line.startswith("+++ "):
            lines = set()
            added[_name(line[4:])] = lines
        elif hunk := _HUNK.match(line):
            removed, first, count = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
            lines.update(range(first, first + count))
            # The lines of a hunk may look like a header.
            for _ in range(removed + count):
                next(rest)
    untracked = _git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *paths).split("\0")
    added.update(dict.fromkeys(untracked, _EVERY_LINE))
    return {name: lines for name, lines in added.items() if lines and (root / name).is_file()}


def _name(field: str) -> str:
    """Return the path of a line `+++ b/path`. Git quotes unusual names as C does, and ends names with blanks by a tab."""
    text = str(ast.literal_eval(field)) if field.startswith('"') else field.rstrip("\t")
    return text.removeprefix("b/")


def messages(root: Path, base: str) -> Iterator[tuple[str, str]]:
    """Yield the short name and the message of each commit that was made on top of the base, merges left out."""
    log = _git(root, "log", "--no-merges", "--ancestry-path", "--format=%h%n%B%x00", f"{base}..HEAD")
    for entry in log.split("\0"):
        name, _, message = entry.strip().partition("\n")
        if message:
            yield name, message


def _git(root: Path, *arguments: str) -> str:
    try:
        command = ["git", "-c", "core.quotePath=false", *arguments]
        # Bytes, because text mode would turn the carriage returns of a diff into line breaks.
        done = subprocess.run(command, cwd=root, check=True, capture_output=True)
        return done.stdout.decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise NoBaseError("git is not installed, and only git knows which text is new") from None
    except subprocess.CalledProcessError as error:
        raise NoBaseError(f"git {arguments[0]} failed: {error.stderr.decode('utf-8', 'replace').strip()}") from None
