"""The contents of hooks and settings at two times, and the edits between them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, open_regular
from agent_hooks.trust.manifest import DIRECTORIES, FILES

# The contents of a larger file are not kept; its hash shows a change.
_LARGEST = 1024 * 1024
_HASHED = "sha256:"


class Edit(Struct, frozen=True):
    """A file that was changed, and the change as a unified diff.

    `before`, `after`: the SHA-256 of the contents, empty where there was no file; `what`: `settings`, `hook` or
    `transformer`.
    """

    path: str
    diff: str
    before: str = ""
    after: str = ""
    what: str = ""


def contents(directories: Iterable[str]) -> dict[str, str]:
    """Return the contents of the hooks, transformers and settings in `.agent` directories, by path."""
    return dict(each for directory in directories for path in paths_in(directory) for each in _content(path))


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[Edit]:
    """Return the files that differ, by path."""
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    return [_edit(path, before.get(path), after.get(path)) for path in changed]


def _edit(path: str, before: str | None, after: str | None) -> Edit:
    folders = path.split("/")[:-1]
    what = "hook" if "hooks" in folders else "transformer" if "transformers" in folders else "settings"
    return Edit(path, _diff(path, before, after), _digest(before), _digest(after), what)


def _digest(text: str | None) -> str:
    if text is None:
        return ""
    return text.removeprefix(_HASHED) if text.startswith(_HASHED) else sha256(text.encode("latin-1", "replace"))


def paths_in(directory: str) -> Iterator[str]:
    """Yield the paths of the settings, hooks and transformers in an `.agent` directory; the settings may not exist."""
    yield from (os.path.join(directory, name) for name in FILES)
    for name in DIRECTORIES:
        for folder, inner, names in os.walk(os.path.join(directory, name)):
            inner[:] = sorted(each for each in inner if each != "__pycache__")
            yield from (os.path.join(folder, each) for each in sorted(names))


def _content(path: str) -> Iterator[tuple[str, str]]:
    """Yield a path and its contents, one character per byte; the target of a link, or a hash, where that is shorter."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            yield path, f"link to {os.readlink(path)}"
        elif stat.S_ISREG(found.st_mode):
            with open_regular(path, path) as file:
                data = file.read()
            yield path, data.decode("latin-1") if len(data) <= _LARGEST else f"{_HASHED}{sha256(data)}"
    except (OSError, StorageError):
        # A file that is missing or unreadable has no contents.
        return


def _diff(path: str, before: str | None, after: str | None) -> str:
    # Imported here, because few processes find a difference.
    import difflib

    names = ("/dev/null" if before is None else path), ("/dev/null" if after is None else path)
    lines = difflib.unified_diff(_lines(before), _lines(after), *names, lineterm="")
    return "\n".join(lines)


def _lines(text: str | None) -> list[str]:
    return (text or "").encode("latin-1", "replace").decode("utf-8", "replace").splitlines()
