"""The set of a project: the files that a person approves together, and their digest.

The set is read once, and the bytes that were hashed are kept: they are shown, compiled and obeyed, so nothing can change
between the check and the use.  Only regular files are opened, without ever blocking.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from agent_hooks.errors import AgentHooksError, SettingsError, count, os_reason
from agent_hooks.hook_entries import MODULE, escaped, is_glob, matching
from agent_hooks.hook_packages import INIT
from agent_hooks.settings import PROJECT_DIRECTORY, SETTINGS_FILE, resolve_path
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, read_regular
from agent_hooks.storage.spelling import existing
from agent_hooks.trees import NO_FILE
from agent_hooks.trust.header import LOCK, has_header

DIRECTORIES = ("hooks", "transformers")
"""The directories of `.agent` whose files belong to the set."""
FILES = (SETTINGS_FILE, "command_intercept.yaml")
"""The files of `.agent` that belong to the set."""
_UNUSED = ", and is never used"
MOST_FILES = 5_000
"""The most files that a set may have; a person can read no more."""
MOST_BYTES = 32 << 20
"""The most bytes that all files of a set may have."""
MOST_ENTRIES = 20_000
"""The most entries that the directories of a set may have, those that do not count included."""
MOST_DIRECTORIES = 2_000
"""The most directories that a set may have, on all paths."""
MOST_LEVELS = 50
"""The most directories that may contain one another."""


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


def read_set(project: str, name: str = PROJECT_DIRECTORY, kinds: tuple[str, ...] = ()) -> ProjectSet:
    """Read the set of a project.  An entry that cannot be read is the `problem` of the set, and raises nothing.

    - `name`: the directory in the project
    - `kinds`: read only files whose names end so
    """
    reader = _Reader(project, name, kinds)
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
    """Reads the files of a set, up to the limits.

    The walk follows links, so it is limited by the entries that it meets: a link may lead to `/`, and links between
    directories may give a few of them more paths than there is time for.
    """

    def __init__(self, project: str, name: str, kinds: tuple[str, ...]) -> None:
        self.files: dict[str, SetFile] = {}
        self.left_out: list[str] = []
        self._project = project
        self._agent = name
        self._kinds = kinds
        self._real = os.path.realpath(project).rstrip(os.sep) + os.sep
        self._bytes = 0
        self._entries = 0
        self._directories = 0

    def read(self) -> None:
        """Read all files; raises `StorageError` and `OSError`."""
        agent = os.path.join(self._project, self._agent)
        for directory in DIRECTORIES:
            path = os.path.join(agent, directory)
            if os.path.isdir(path):
                self._read_directory(path)
            elif os.path.lexists(path):
                self._leave_out(path, "is no directory")
        for name in FILES:
            self._read_obeyed(os.path.join(agent, name))
        settings = self.files.get(os.path.join(self._agent, SETTINGS_FILE))
        if settings is not None:
            for path in named_in_settings(settings.data, agent, self._listed):
                self._read_named(path)

    def _read_obeyed(self, path: str) -> None:
        """Read a file of settings; an entry that cannot be one belongs to the set too, and blocks once it is approved."""
        before = len(self.left_out)
        self._read_file(path)
        if len(self.left_out) > before:
            name = self._name(path)
            reason = self.left_out.pop().removeprefix(f"{name} ").removesuffix(_UNUSED)
            data = NO_FILE + reason.encode()
            self.files[name] = SetFile(name, data, sha256(data))

    def _read_named(self, path: str) -> None:
        """Read a file, a package or a directory of hooks that the settings name."""
        self._count()
        if not os.path.isdir(path):
            # The loader finds the file under the name in the settings, however it is spelled on the disk.
            self._read_file(existing(path), name=self._name(path))
            self._read_lock(path)
        elif any(name.endswith(".py") or os.path.isfile(os.path.join(path, name, INIT)) for name in self._listed(path)):
            # A package, or a directory of hooks; all that they may import beside them belongs to the set.
            self._read_directory(path)
        else:
            self._leave_out(path, "is a directory without hooks")

    def _read_lock(self, path: str) -> None:
        """Read the lock file of a hook with a header that the settings name; the directories hold theirs anyway."""
        hook = self.files.get(self._name(path))
        if hook is not None and has_header(hook.data):
            self._read_file(existing(path + LOCK), name=self._name(path + LOCK))

    def _read_directory(self, top: str) -> None:
        """Read the files below a directory."""
        # Each directory has the identities of those around it, against loops of links.
        waiting: list[tuple[str, tuple[tuple[int, int], ...]]] = [(top, ())]
        while waiting:
            directory, above = waiting.pop()
            status = os.stat(directory)
            identity = (status.st_dev, status.st_ino)
            if identity in above:
                self._leave_out(directory, "is a link to a directory above it")
                continue
            if len(above) == MOST_LEVELS:
                raise StorageError(f"its directories are nested more than {MOST_LEVELS} deep; move data out of .agent")
            self._count_directory()
            real = None
            for name, is_link in sorted(self._names(directory)):
                path = os.path.join(directory, name)
                if os.path.isdir(path):
                    waiting.append((path, (*above, identity)))
                    continue
                if self._kinds and not name.endswith(self._kinds):
                    continue
                real = os.path.realpath(directory) if real is None else real
                self._read_file(path, None if is_link else os.path.join(real, name))

    def _listed(self, directory: str) -> list[str]:
        """Return the names in a directory that a glob of the settings goes through; each counts."""
        try:
            names = os.listdir(directory)
        except OSError:
            return []
        for _ in names:
            self._count()
        return names

    def _names(self, directory: str) -> Iterator[tuple[str, bool]]:
        """Yield the names that count in a directory, and whether each is a link."""
        with os.scandir(directory) as entries:
            for entry in entries:
                self._count()
                if not entry.name.startswith(".") and entry.name != "__pycache__":
                    yield entry.name, entry.is_symlink()

    def _read_file(self, path: str, real: str | None = None, name: str | None = None) -> None:
        """Read a file, if there is one; `real`: its path without links, if known; `name`: another name in the set."""
        name = self._name(path) if name is None else name
        if name in self.files:
            return
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
        self._check(status.st_size)
        data = read_regular(path, path, MOST_BYTES + 1)
        self._bytes += len(data)
        self._check(0)
        real = os.path.realpath(path) if real is None else real
        self.files[name] = SetFile(name, data, sha256(data), None if real.startswith(self._real) else real)

    def _count(self) -> None:
        """Count an entry of a directory; raise `StorageError` when there are too many."""
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            raise StorageError(f"its directories have more than {MOST_ENTRIES} entries; move data out of .agent")

    def _count_directory(self) -> None:
        self._directories += 1
        if self._directories > MOST_DIRECTORIES:
            raise StorageError(f"it has more than {MOST_DIRECTORIES} directories; move data out of .agent")

    def _check(self, more: int) -> None:
        """Raise `StorageError` when the set has too many files, or would have too many bytes."""
        if len(self.files) >= MOST_FILES:
            raise StorageError(f"it has more than {count(MOST_FILES, 'file')}; move data out of .agent")
        if self._bytes + more > MOST_BYTES:
            raise StorageError(f"its files have more than {MOST_BYTES >> 20} MiB; move data out of .agent")

    def _name(self, path: str) -> str:
        above = self._project.rstrip(os.sep) + os.sep
        return path[len(above) :] if path.startswith(above) else path

    def _leave_out(self, path: str, reason: str) -> None:
        self.left_out.append(f"{self._name(path)} {reason}{_UNUSED}")


def named_in_settings(
    data: bytes, directory: str, names: Callable[[str], Iterable[str]] | None = None
) -> Iterator[str]:
    """Yield the absolute path of each hook that the text of a settings file names; a damaged text names none.

    `names`: returns the names in a directory, for the files and packages that fit a glob; without it, globs yield none.

    The text is read by the parser of `read_settings_file`: a text with two meanings would show other files than count.
    `directory`: the one that contains the settings file.
    """
    for hook in _hooks_in(data):
        try:
            path = resolve_path(hook, base=directory)
            pattern = resolve_path(hook, base=escaped(directory)) if is_glob(hook) else ""
        except (SettingsError, ValueError):
            continue
        if hook.startswith(MODULE):
            # A module of an installed package is no file of the project.
            continue
        if not pattern or os.path.lexists(path):
            yield path
        elif names is not None:
            # A superset of the hooks: helpers whose names begin with `_` may be imported by them.
            found = matching(pattern, names)
            yield from (each for each in found if each.endswith(".py") or INIT in names(each))


def _hooks_in(data: bytes) -> Iterable[str]:
    try:
        found = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return ()
    hooks = found.get("hooks") if isinstance(found, dict) else None
    return [hook for hook in hooks if isinstance(hook, str) and "\0" not in hook] if isinstance(hooks, list) else ()
