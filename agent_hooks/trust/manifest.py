"""The set of a project: the files that a person approves together, and their digest.

The set is read once, and the bytes that were hashed are kept: they are shown, compiled and obeyed, so nothing can change
between the check and the use.  Only regular files are opened, without ever blocking.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from agent_hooks.errors import AgentHooksError, SettingsError, count, os_reason
from agent_hooks.settings import PROJECT_DIRECTORY, SETTINGS_FILE, resolve_path
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, open_regular

DIRECTORIES = ("hooks", "transformers")
"""The directories of `.agent` whose files belong to the set."""
FILES = (SETTINGS_FILE, "command_intercept.yaml")
"""The files of `.agent` that belong to the set."""
MOST_FILES = 5_000
"""The most files that a set may have; a person can read no more."""
MOST_BYTES = 32 << 20
"""The most bytes that all files of a set may have."""


class TrustError(AgentHooksError):
    """A project's set, or the trust store, cannot be used; the text names the file, the reason and the remedy."""


class SetFile(Struct, frozen=True):
    """One file of a set.

    `name`: its path, relative to the project, or absolute for a file outside of it that the settings name; `target`: the
    real path when a link leads out of the project, `None` otherwise.
    """

    name: str
    data: bytes
    digest: str
    target: str | None = None


class ProjectSet(Struct, frozen=True):
    """The set of a project as its files are now.

    `project`: the directory that contains `.agent`; `files`: sorted by name; `left_out`: a sentence for each entry that
    is no regular file and so does not belong to the set; `problem`: the reason why the set cannot be approved at all.
    """

    project: str
    files: tuple[SetFile, ...]
    left_out: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def digest(self) -> str:
        """The digest of the manifest, which is the path and the SHA-256 of each file."""
        return manifest_digest({file.name: file.digest for file in self.files})

    @property
    def size(self) -> int:
        """The number of bytes of all files."""
        return sum(len(file.data) for file in self.files)


def manifest_digest(files: Mapping[str, str]) -> str:
    """Return the digest of a manifest, given as the SHA-256 of each file by its name."""
    lines = b"".join(b"%s  %s\0" % (files[name].encode(), os.fsencode(name)) for name in sorted(files))
    return sha256(b"agent-hooks manifest 1\0" + lines)


def read_set(project: str) -> ProjectSet:
    """Read the set of a project; an entry that cannot be read is the `problem` of the set, and raises nothing."""
    reader = _Reader(project)
    try:
        reader.read()
    except (StorageError, OSError) as exc:
        reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
        return ProjectSet(project, (), tuple(reader.left_out), f"the set of {project} cannot be approved: {reason}")
    files = sorted(reader.files.values(), key=lambda file: file.name)
    return ProjectSet(project, tuple(files), tuple(reader.left_out))


def absolute(project: str, name: str) -> str:
    """Return the absolute path of a name in a project's set."""
    return os.path.join(project, name)


class _Reader:
    """Reads the files of a set, up to the limits."""

    def __init__(self, project: str) -> None:
        self.files: dict[str, SetFile] = {}
        self.left_out: list[str] = []
        self._project = project
        self._real = os.path.realpath(project) + os.sep
        self._bytes = 0

    def read(self) -> None:
        """Read all files; raises `StorageError` and `OSError`."""
        agent = os.path.join(self._project, PROJECT_DIRECTORY)
        for directory in DIRECTORIES:
            self._read_directory(os.path.join(agent, directory), ())
        for name in FILES:
            self._read_file(os.path.join(agent, name))
        settings = self.files.get(os.path.join(PROJECT_DIRECTORY, SETTINGS_FILE))
        for path in named_in_settings(settings.data, agent) if settings is not None else ():
            if os.path.isdir(path):
                self._read_directory(path, ())
            else:
                self._read_file(path)

    def _read_directory(self, directory: str, above: tuple[tuple[int, int], ...]) -> None:
        """Read the files below a directory; `above` holds the identities of those around it, against loops of links."""
        try:
            status = os.stat(directory)
            names = sorted(os.listdir(directory))
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(directory):
                self._leave_out(directory, "is no directory")
            return
        identity = (status.st_dev, status.st_ino)
        if identity in above:
            self._leave_out(directory, "is a link to a directory above it")
            return
        for name in names:
            path = os.path.join(directory, name)
            if name.startswith(".") or name == "__pycache__":
                continue
            if os.path.isdir(path):
                self._read_directory(path, (*above, identity))
            else:
                self._read_file(path)

    def _read_file(self, path: str) -> None:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(path):
                self._leave_out(path, "is a link to a missing file")
            return
        # A loop of links, for example.
        except OSError as exc:
            self._leave_out(path, f"cannot be opened: {os_reason(exc)}")
            return
        if not stat.S_ISREG(status.st_mode):
            self._leave_out(path, "is not a regular file")
            return
        name = self._name(path)
        if name in self.files:
            return
        self._check(status.st_size)
        with open_regular(path, path) as file:
            data = file.read(MOST_BYTES + 1)
        self._bytes += len(data)
        self._check(0)
        real = os.path.realpath(path)
        self.files[name] = SetFile(name, data, sha256(data), None if real.startswith(self._real) else real)

    def _check(self, more: int) -> None:
        """Raise `StorageError` when the set has too many files, or would have too many bytes."""
        if len(self.files) >= MOST_FILES:
            raise StorageError(f"it has more than {count(MOST_FILES, 'file')}; move data out of .agent")
        if self._bytes + more > MOST_BYTES:
            raise StorageError(f"its files have more than {MOST_BYTES >> 20} MiB; move data out of .agent")

    def _name(self, path: str) -> str:
        inside = path.startswith(self._project.rstrip(os.sep) + os.sep)
        return os.path.relpath(path, self._project) if inside else path

    def _leave_out(self, path: str, reason: str) -> None:
        self.left_out.append(f"{self._name(path)} {reason}, and is never used")


def named_in_settings(data: bytes, directory: str) -> Iterator[str]:
    """Yield the absolute path of each hook that the text of a settings file names; a damaged text names none.

    `directory`: the one that contains the settings file.
    """
    for hook in _hooks_in(data):
        try:
            yield resolve_path(hook, base=directory)
        except (SettingsError, ValueError):
            continue


def _hooks_in(data: bytes) -> Iterable[str]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return ()
    hooks = found.get("hooks") if isinstance(found, dict) else None
    return [hook for hook in hooks if isinstance(hook, str) and "\0" not in hook] if isinstance(hooks, list) else ()
