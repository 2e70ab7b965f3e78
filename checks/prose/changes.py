"""Find the text that is new: the lines and the commits after the commit that added the check.

A line that was in some file at that commit is not new, because it may have moved.

The base is the commit that brought the check into this branch, along the first parents: a merge for example. The lines
are read from the working tree, with uncommitted and untracked files. Commits that do not descend from the base are
skipped.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

MARK = "checks/prose/patterns.py"
"""The file whose first commit is the base."""


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


def resolved(root: Path, commit: str) -> str:
    """Return the hash of a commit. Raise `NoBaseError` if there is no such commit."""
    return _git(root, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").strip()


def added_lines(root: Path, base: str, paths: Sequence[str]) -> dict[str, set[int]]:
    """Return the files below `paths` that have new lines, and the numbers of these lines in the working tree."""
    older = {line.strip() for line in _git(root, "grep", "-hI", "-e", "", base, "--", *paths).split("\n")}
    changed = _git(root, "diff", "--name-only", "-z", "--relative", base, "--", *paths)
    untracked = _git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *paths)
    added: dict[str, set[int]] = {}
    for name in sorted({*changed.split("\0"), *untracked.split("\0")}):
        if (root / name).is_file():
            lines = (root / name).read_text("utf-8", "surrogateescape").split("\n")
            added[name] = {number for number, line in enumerate(lines, 1) if line.strip() not in older}
    return {name: numbers for name, numbers in added.items() if numbers}


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
