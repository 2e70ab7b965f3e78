"""The one plain line about the risk of a call, taken from its effects.

The line names the losses first, then the content that leaves the machine, then the rest.  Where git can tell quickly, it
says in how many files work would be lost.  git reads no content for that, so it runs no filter of the repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_hooks.values.effects import Discard, Effects

# Seconds that git gets to count files.
_PATIENCE = 1.0
# Files and hosts that are named, and parts of the line.
_NAMED, _PARTS = 2, 3
_COUNTS = {
    "uncommitted changes": ("diff-index", "--name-only", "--no-renames", "-z", "HEAD", "--"),
    "untracked files": ("ls-files", "--others", "--exclude-standard", "-z", "--"),
}


async def risk_of(effects: Effects, cwd: str) -> str:
    """Return the risk of a call with these effects, empty when they are harmless or not known."""
    parts = [await _discarded(each, effects, cwd) for each in effects.discards]
    parts += _deleted(effects, cwd)
    parts += [f"writes to the device {each.path}" for each in effects.devices if each.access == "write"]
    parts += [f"sends {each.what} to {_host(each.host)}" for each in effects.transfers if each.direction == "out"]
    parts += [f"ends the process {each.target}" for each in effects.kills]
    parts += [
        f"runs as {each.what}" if each.what == "root" else f"gives rights: {each.what}" for each in effects.privileges
    ]
    parts += [f"installs {each.name or 'packages'}" for each in effects.installs]
    if not parts:
        parts = _written(effects, cwd) or [f"runs code that is not known: {each.text}" for each in effects.unknown]
    return _joined(parts, _PARTS, " effects")


async def _discarded(discard: Discard, effects: Effects, cwd: str) -> str:
    """Return the work that is lost, with the number of files where git tells it."""
    places = [
        each
        for each in effects.paths
        if each.program == "git" and each.certain and not each.elsewhere and each.access in ("write", "delete")
    ]
    question = _COUNTS.get(discard.what)
    if question is None or not places or _ignored(effects):
        return f"discards {discard.what}"
    count = await _count([*question, *(each.path for each in places)], cwd)
    if count is None:
        return f"discards {discard.what}"
    files = f"{count} file{'' if count == 1 else 's'}"
    return (
        f"discards {discard.what} in {files}"
        if "changes" in discard.what
        else f"deletes {files} that git does not know"
    )


def _ignored(effects: Effects) -> bool:
    """Return whether ignored files are lost too, whose number says little."""
    return any(
        word.startswith("-") and "x" in word.lower()
        for each in effects.programs
        if each.name == "git" and "clean" in each.argv
        for word in each.argv
    )


async def _count(question: list[str], cwd: str) -> int | None:
    """Return the number of files that git names, `None` when it names them not at all or too late."""
    # Imported here, because few calls are asked about.
    from agent_hooks.concurrency.process import Capture, stream
    from agent_hooks.storage.git import NO_PROGRAMS, git_environment, git_program

    git = git_program(cwd)
    if git is None:
        return None
    output = Capture()
    try:
        code, killed = await stream(
            [git, *NO_PROGRAMS, "--literal-pathspecs", *question],
            cwd=cwd,
            env=git_environment(cwd),
            timeout=_PATIENCE,
            stdout=output,
            stderr=Capture(),
        )
    except OSError:
        return None
    return None if code or killed else output.text().count("\0")


def _deleted(effects: Effects, cwd: str) -> list[str]:
    """Return the deleted trees and files; the deletions of git are among the discarded work."""
    gone = [
        each for each in effects.paths if each.access == "delete" and not (effects.discards and each.program == "git")
    ]
    trees = [each.path for each in gone if each.tree and each.certain]
    files = [each.path for each in gone if not each.tree and each.certain]
    parts = [f"deletes everything in {_named(trees, cwd)}"] if trees else []
    parts += [f"deletes {_named(files, cwd)}"] if files else []
    return parts or (["deletes files that are not named"] if gone else [])


def _written(effects: Effects, cwd: str) -> list[str]:
    files = [each.path for each in effects.paths if each.access == "write" and each.certain]
    return [f"writes {_named(files, cwd)}"] if files else []


def _named(paths: Iterable[str], cwd: str) -> str:
    return _joined([_short(path, cwd) for path in paths], _NAMED)


def _short(path: str, cwd: str) -> str:
    """Return a path as the person reads it, in one line."""
    inside = path == cwd or path.startswith(f"{cwd.rstrip('/')}/")
    name = os.path.relpath(path, cwd) if inside else path
    return name if name.isprintable() else repr(name)


def _host(host: str | None) -> str:
    return "another machine" if host is None else host


def _joined(texts: Iterable[str], most: int, thing: str = "") -> str:
    """Join at most `most` different texts, and count the others."""
    parts = list(dict.fromkeys(texts))
    if len(parts) > most + 1:
        parts = [*parts[:most], f"{len(parts) - most} more{thing}"]
    return " and ".join([*([", ".join(parts[:-1])] if len(parts) > 1 else []), *parts[-1:]])
