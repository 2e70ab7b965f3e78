"""The trust store: the sets that a person has approved, in `trust.json` of the agent home, and their bytes beside it.

The bytes are kept in `trust/sets/DIGEST`, so that a project whose files were changed is still judged by the approved
ones, and so that a change can be shown as a diff.

A damaged store must not drop a gate.  `trust/copy.json` is a second copy, which is never trusted: while the store cannot
be used, it names projects to deny, and a user at a terminal can restore it.  A store that is missing is damaged too where
a copy or approved bytes exist, or where this process has read it before.

A store that lost entries is damaged as well.  Each change writes the store, then the copy, and then removes the bytes
that no approval names.  So after a change, the store has all entries of the copy, and names all kept sets.  A change that
is killed in between leaves its mark in the lock file: the digests of the texts that the store can have then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property

import msgspec
from msgspec import Struct, field

from agent_hooks.errors import count, os_reason
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, flush, flush_tree, open_regular, write_atomically
from agent_hooks.storage.locks import wait_for_lock
from agent_hooks.trees import ApprovedFile
from agent_hooks.trust.manifest import ProjectSet, TrustError, absolute, manifest_digest
from agent_hooks.trust.repository import path_of_key, paths_in_worktrees, project_key

STORE = "trust.json"
"""The file of the store, below the agent home."""
REBUILD = "agent-hooks trust"
"""The command that rebuilds a damaged store."""
VERSION = 1
MOST_APPROVALS = 20
"""The approvals that are kept per project, so that changing a branch or a worktree asks nothing."""
MOST_LOOSENINGS = 20
"""The unconfirmed commands that are kept, the last ones."""
LOCK_TIMEOUT = 10.0
"""Seconds to wait for another process that changes the store."""
# The same for a process that only reads it, and the seconds between two looks at it.
_BRIEF, _PAUSE = 5.0, 0.02
_WHERE = "trust"
_SETS = "sets"
_COPY = "copy.json"
_LOCK = "lock"
# The last good text of each store that this process has read: a session that runs knows which projects have gates.
_LAST: dict[str, bytes] = {}


class Above(Struct, frozen=True):
    """A process above an approval: its id, the name that the system gives it, and its command line."""

    pid: int
    name: str
    command: str = ""


class Origin(Struct, frozen=True, omit_defaults=True):
    """The origin of an approval that a user has to confirm: the processes above it, the nearest first.

    `terminal`: it had a terminal, which was opened while an agent worked.
    """

    processes: tuple[Above, ...]
    terminal: bool = False


class Approval(Struct, omit_defaults=True):
    """One approved set.

    `at`: seconds since 1970; `files`: the SHA-256 of each file by its name; `by`: how it was approved, `trust`,
    `question`, `follow` or `new`; `origin`: where it came from, until a user confirms it.
    """

    digest: str
    at: float
    files: dict[str, str]
    by: str = "trust"
    origin: Origin | None = None


class Entry(Struct, omit_defaults=True):
    """All that the store knows of one project.

    `root`: the directory that contained `.agent` at the last approval; `approved`: oldest first; `always`: any content
    counts as approved; `refused`: the digest of the set to which the person said no.
    """

    root: str
    approved: list[Approval] = field(default_factory=list)
    always: bool = False
    refused: str | None = None

    def approval(self, digest: str) -> Approval | None:
        """Return the approval of the set with that digest."""
        return next((each for each in reversed(self.approved) if each.digest == digest), None)

    @property
    def judges(self) -> bool:
        """Whether something of the project counts: a person approved a set, or any content."""
        return self.always or bool(self.approved)


class Loosening(Struct, frozen=True):
    """A command that loosened something, which a user has to confirm: its words, its time and its origin.

    `at`: seconds since 1970.
    """

    command: str
    at: float
    origin: Origin


class _Stored(Struct):
    """The text of the store."""

    version: int
    projects: dict[str, Entry]
    loosened: list[Loosening] = []


class TrustStore:
    """The store below an agent home.  Nothing is read before the first use, and never twice.

    `path`: its file. `kept`: the directory with its lock and the approved bytes. `problem`: the reason why the store
    cannot be used, with the remedy. No project is trusted then. `newer`: it was written by a later version.
    `loosened`: the commands that a user has to confirm.
    """

    def __init__(self, home: str) -> None:
        self.home = home
        self.path = os.path.join(home, STORE)
        self.kept = os.path.join(home, _WHERE)
        self.problem: str | None = None
        self.newer = False
        self.entries: dict[str, Entry] = {}
        self.loosened: list[Loosening] = []
        # The texts that can name the projects of a damaged store.
        self._text = ""
        # The lock file, while this object holds the lock.
        self._lock = -1
        self._marks: list[str] = []
        # The content of a store that lost entries.
        self._left: _Stored | None = None
        self._read()

    # ---- the entry of a project

    def key(self, project: str) -> str:
        """Return the key of a project in this store.

        The path at which a set was approved comes first: neither `git init`, nor `rm -r .git`, nor a `.git` that names
        another repository may give a project other approvals than its own.
        """
        own = project_key(project)
        candidates = (self._at_approval.get(project), own, self._in_worktrees.get(project) if self.entries else None)
        judging = (key for key in candidates if key is not None and (entry := self.entries.get(key)) and entry.judges)
        return next(judging, own)

    def is_always(self, project: str, key: str) -> bool:
        """Tell whether any content of a project counts: its key must be that of its path or of its repository."""
        entry = self.entries.get(key)
        return entry is not None and entry.always and (path_of_key(key) == project or project_key(project) == key)

    def judges(self, directory: str) -> bool:
        """Tell whether a person approved the files of a directory, which may be gone; of a damaged store, by its text."""
        if self.problem is not None:
            return self.known(directory)
        if not self.entries:
            return False
        return directory in self._at_approval or directory in self._in_worktrees

    def known(self, project: str) -> bool:
        """Tell whether a damaged store names a project, which was approved or refused then."""
        if not self._text:
            return False
        # Imported here, because a store is hardly ever damaged.
        import json

        keys = {project, project_key(project), *_keys_by_path(project)}
        return any(json.dumps(key) in self._text for key in keys)

    @cached_property
    def _at_approval(self) -> dict[str, str]:
        """The keys by the paths of the projects: that of the key, which comes first, and that of the last approval."""
        judging = [key for key, entry in self.entries.items() if entry.judges]
        roots = {self.entries[key].root: key for key in judging}
        return roots | {path: key for key in judging if (path := path_of_key(key)) is not None}

    @cached_property
    def _in_worktrees(self) -> dict[str, str]:
        """The keys by the paths of the projects in linked worktrees, which share an approval."""
        return {path: key for key, entry in self.entries.items() if entry.judges for path in paths_in_worktrees(key)}

    # ---- changes

    def approve(self, key: str, found: ProjectSet, *, by: str = "trust", origin: Origin | None = None) -> Approval:
        """Approve a set, and keep its bytes; raises `TrustError`."""
        if found.problem is not None:
            raise TrustError(found.problem)
        approval = Approval(found.digest, time.time(), {file.name: file.digest for file in found.files}, by, origin)
        with self._changing():
            self._keep(found, approval)
            entry = self.entries.setdefault(key, Entry(found.project))
            entry.root, entry.refused = found.project, None
            before = entry.approval(approval.digest)
            # A set that was approved in another way stays when a followed session comes back to it, and goes on.
            if by == "follow" and before is not None:
                approval.by = before.by
            # Following begins with an approval. What a user has to confirm there is not confirmed by the next save.
            if by == "follow" and entry.approved:
                approval.origin = entry.approved[-1].origin
            # Only the last save of a followed session is kept: many saves must not push the other approvals out.
            stay = [each for each in entry.approved if each.digest != approval.digest]
            if by == "follow" and stay and stay[-1].by == "follow":
                stay.pop()
            entry.approved = [*stay, approval][-MOST_APPROVALS:]
        return approval

    def set_always(self, key: str, root: str, *, always: bool) -> None:
        """Approve any content of a project from now on, or no longer; raises `TrustError`."""
        with self._changing():
            self.entries.setdefault(key, Entry(root)).always = always

    def refuse(self, key: str, found: ProjectSet) -> None:
        """Keep the person's no to a set, so that they are asked again only about another one; raises `TrustError`.

        A set that was approved before the last one, or without a terminal, is no longer approved then.
        """
        with self._changing():
            entry = self.entries.setdefault(key, Entry(found.project))
            entry.refused = found.digest
            entry.approved = [
                each
                for each in entry.approved
                if each.digest != found.digest or (each is entry.approved[-1] and each.origin is None)
            ]

    def remove(self, key: str) -> bool:
        """Forget a project, and return whether the store knew it; raises `TrustError`."""
        with self._changing():
            return self.entries.pop(key, None) is not None

    def note(self, command: str, origin: Origin) -> None:
        """Keep a command that loosens something until a user confirms it.  Raises `TrustError`."""
        with self._changing():
            self.loosened = [*self.loosened, Loosening(command, time.time(), origin)][-MOST_LOOSENINGS:]

    def confirm(self, origin: Origin | None) -> None:
        """Forget these commands, because a user has confirmed them.  Raises `TrustError`.

        `origin`: an agent may have confirmed them, so they have this origin from now on.
        """
        with self._changing():
            now = time.time()
            self.loosened = [] if origin is None else [Loosening(each.command, now, origin) for each in self.loosened]

    # ---- the kept bytes

    def kept_files(self, project: str, approval: Approval) -> dict[str, ApprovedFile] | None:
        """Return the kept files of an approval by their absolute paths in `project`.

        `None` when a file is missing, or when its bytes are not those that were approved.
        """
        files: dict[str, ApprovedFile] = {}
        if manifest_digest(approval.files) != approval.digest:
            return None
        for name, digest in approval.files.items():
            place = self._place(approval.digest, name)
            try:
                with open_regular(place, place) as file:
                    data = file.read()
            except (StorageError, OSError):
                return None
            if sha256(data) != digest:
                return None
            files[absolute(project, name)] = ApprovedFile(data, place)
        return files

    def _place(self, digest: str, name: str) -> str:
        inside = "out" if os.path.isabs(name) else "in"
        return os.path.join(self.kept, _SETS, digest, inside, name.lstrip(os.sep))

    def _keep(self, found: ProjectSet, approval: Approval) -> None:
        """Write the bytes of a set, unless they are kept already; the directory gets its name when it is whole."""
        if self.kept_files(found.project, approval) is not None:
            return
        sets = self._sets
        os.makedirs(sets, mode=0o700, exist_ok=True)
        draft = f".{os.urandom(8).hex()}"
        os.mkdir(os.path.join(sets, draft), mode=0o700)
        for file in found.files:
            write_atomically(self._place(draft, file.name), file.data, secret=True)
        flush_tree(os.path.join(sets, draft))
        final = os.path.join(sets, approval.digest)
        if os.path.lexists(final):
            # A directory replaces an empty one only.
            os.rename(final, os.path.join(sets, f"{draft}.old"))
        os.rename(os.path.join(sets, draft), final)
        flush(sets)

    def _sweep(self) -> None:
        """Remove the bytes of sets that no approval names any more, and those of an approval that was interrupted."""
        named = {each.digest for entry in self.entries.values() for each in entry.approved}
        directory = self._sets
        with suppress(OSError):
            for name in set(os.listdir(directory)) - named:
                gone = os.path.join(directory, name)
                # Bytes that cannot be removed must not look like an approved set.
                if not name.startswith("."):
                    os.rename(gone, gone := os.path.join(directory, f".{os.urandom(8).hex()}"))
                _remove(gone)

    # ---- the file

    def _read(self) -> None:
        """Read the store, once more while another process changes it, which looks like a loss."""
        self._read_once()
        if not self._left or self._lock >= 0:
            return
        until = time.monotonic() + _BRIEF
        with suppress(OSError):
            lock = os.open(os.path.join(self.kept, _LOCK), os.O_RDWR | os.O_CLOEXEC)
            try:
                # A process that changes the store often leaves its lock free for moments only.
                while self._left and self._lock < 0 and time.monotonic() < until:
                    self._lock = lock if wait_for_lock(lock, _PAUSE) else -1
                    self._read_once()
            finally:
                self._lock = -1
                os.close(lock)

    def _read_once(self) -> None:
        self.problem, self.newer, self._text, self._left = None, False, "", None
        self.entries, self.loosened = {}, []
        for name in ("_at_approval", "_in_worktrees"):
            self.__dict__.pop(name, None)
        data = b""
        try:
            # Only a file that is missing can be an empty store: one below a directory without rights is not.
            os.lstat(self.path)
            with open_regular(self.path, f"the trust store {self.path}") as file:
                data = file.read()
            stored = _stored(data)
            if (lost := self._lost(data, stored)) is None:
                self.entries, self.loosened = stored.projects, stored.loosened
                _LAST[self.path] = data
            else:
                self._left = stored
                self.problem = f"the trust store {self.path} lost entries: {lost}"
        except FileNotFoundError:
            if self.path in _LAST or self.keeps_sets or os.path.lexists(self._copy):
                self.problem = f"the trust store {self.path} is missing"
        except OSError as exc:
            self.problem = f"cannot read the trust store {self.path}: {os_reason(exc)}"
        except StorageError as exc:
            self.problem = str(exc)
        except (ValueError, RecursionError) as exc:
            self.newer = isinstance(exc, _NewerVersionError)
            self.problem = f"the trust store {self.path} cannot be used: {exc}"
        if self.problem is not None:
            self._text = b"\n".join((data, self._copied(), _LAST.get(self.path, b""))).decode("utf-8", "replace")
            self.problem += "; update agent-hooks" if self.newer else f"; rebuild it at a terminal: {REBUILD}"

    def _lost(self, data: bytes, stored: _Stored) -> str | None:
        """Return what a store has lost since its last change, `None` for a whole one."""
        found = self._missing(data, stored)
        # A change that was interrupted left its mark.
        is_marked = found is not None and self._lock >= 0 and sha256(data).encode() in os.pread(self._lock, 256, 0)
        return None if is_marked else found

    def _missing(self, data: bytes, stored: _Stored) -> str | None:
        copied = self._copied()
        if copied != data and (gone := _entries(self._restorable()) - _entries(stored)):
            return f"{count(len(gone), 'entry')} of its copy"
        named = {each.digest for entry in stored.projects.values() for each in entry.approved}
        with suppress(OSError):
            if any(name not in named and not name.startswith(".") for name in os.listdir(self._sets)):
                return "approved files are kept, and no approval names them"
        return None

    @property
    def _sets(self) -> str:
        return os.path.join(self.kept, _SETS)

    @property
    def keeps_sets(self) -> bool:
        """Whether the bytes of approved sets are kept, or cannot be looked for."""
        try:
            return any(not name.startswith(".") for name in os.listdir(self._sets))
        except FileNotFoundError:
            return False
        except OSError:
            return True

    @property
    def _copy(self) -> str:
        return os.path.join(self.kept, _COPY)

    def _copied(self) -> bytes:
        try:
            with open_regular(self._copy, self._copy) as file:
                return file.read()
        except (StorageError, OSError):
            return b""

    def restorable(self) -> dict[str, Entry]:
        """Return the entries of the store's copy, none when it cannot be read."""
        return self._restorable().projects

    def _restorable(self) -> _Stored:
        try:
            return _stored(self._copied())
        except (ValueError, RecursionError):
            return self._left or _Stored(VERSION, {})

    def rebuild(self, entries: dict[str, Entry]) -> None:
        """Replace a damaged store by one with these entries, and rename the damaged one.  Raises `TrustError`."""
        with self._locked():
            self._read()
            if self.problem is None or self.newer:
                raise TrustError(self.problem or f"the trust store {self.path} was rebuilt by another process")
            with suppress(FileNotFoundError):
                os.rename(self.path, f"{self.path}.damaged-{time.time():.0f}")
            self.entries, self.loosened = entries, self._restorable().loosened
            self._write()
            self._sweep()
            self._read()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, read the store as it is now, and write it after the block; raises `TrustError`."""
        with self._locked():
            self._read()
            if self.problem is not None:
                raise TrustError(self.problem)
            if not os.path.lexists(self.path):
                # Kept bytes without a store would count as a damage.
                self._write()
            else:
                with open_regular(self.path, self.path) as file:
                    self._mark(file.read())
            yield
            self._write()
            self._sweep()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the store.  Raises `TrustError`, also for a file that cannot be written in the block."""
        try:
            os.makedirs(self.home, exist_ok=True)
            os.makedirs(self.kept, mode=0o700, exist_ok=True)
            lock = os.open(os.path.join(self.kept, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise TrustError(f"cannot change the trust store {self.path}: {os_reason(exc)}") from None
        try:
            if not wait_for_lock(lock, LOCK_TIMEOUT):
                raise TrustError(f"another process holds the lock of the trust store {self.path}; try again")
            self._lock, self._marks = lock, []
            yield
            os.ftruncate(lock, 0)
        except (OSError, StorageError) as exc:
            reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
            raise TrustError(f"cannot change the trust store {self.path}: {reason}") from None
        finally:
            self._lock = -1
            os.close(lock)

    def _mark(self, text: bytes) -> None:
        """Note in the lock file a text that the store may have if this change is interrupted."""
        self._marks.append(sha256(text))
        marks = "\n".join(self._marks).encode()
        os.pwrite(self._lock, marks, 0)
        os.ftruncate(self._lock, len(marks))
        os.fsync(self._lock)

    def _write(self) -> None:
        # Imported here, because a store is rarely changed.
        import json

        projects = {key: msgspec.to_builtins(entry) for key, entry in self.entries.items()}
        # `json` escapes the surrogates of names that are no UTF-8; msgspec refuses them.
        stored = {"version": VERSION, "projects": projects}
        if self.loosened:
            stored["loosened"] = msgspec.to_builtins(self.loosened)
        text = json.dumps(stored, indent=1).encode() + b"\n"
        self._mark(text)
        write_atomically(self.path, text, secret=True, durable=True)
        write_atomically(self._copy, text, secret=True, durable=True)


class _NewerVersionError(ValueError):
    """The store was written by a later version."""


def _stored(data: bytes) -> _Stored:
    """Return the content of a store's JSON.  Raises `ValueError`, also for a newer version."""
    try:
        stored = msgspec.json.decode(data, type=_Stored)
    except ValueError:
        stored = _decoded(data)
    _check_version(stored.version)
    return stored


def _entries(stored: _Stored) -> set[object]:
    """Return what a store must not lose: approvals with their origins, any content, and commands to confirm."""
    approved = {(key, each.digest, each.origin) for key, entry in stored.projects.items() for each in entry.approved}
    always = {key for key, entry in stored.projects.items() if entry.always}
    return {*approved, *always, *stored.loosened}


def _decoded(data: bytes) -> _Stored:
    """Decode a store with names that are no UTF-8, or one that is damaged."""
    # Imported here, because most stores need it not.
    import json

    found = json.loads(data.decode())
    version = found.get("version") if isinstance(found, Mapping) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise ValueError("it has no version")  # noqa: TRY004  # one kind of error for a damaged file
    _check_version(version)
    return msgspec.convert(found, _Stored)


def _check_version(version: int) -> None:
    if version > VERSION:
        raise _NewerVersionError(f"it was written by a newer agent-hooks (version {version})")


def _keys_by_path(project: str) -> Iterator[str]:
    """Yield the keys that a directory can have had, by the working trees that it can have been in."""
    top = project
    while True:
        yield f"{os.path.join(top, '.git')}//{os.path.relpath(project, top)}"
        if top == (top := os.path.dirname(top)):
            return


def _remove(path: str) -> None:
    # Imported here, because it is large, and few events remove something.
    import shutil

    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
