"""The trust store: the sets that a person has approved, in `trust.json` of the agent home, and their bytes beside it.

The bytes are kept in `trust/sets/DIGEST`, so that a project whose files were changed is still judged by the approved
ones, and so that a change can be shown as a diff.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from msgspec import Struct, field

from agent_hooks.errors import os_reason
from agent_hooks.storage.digests import sha256
from agent_hooks.storage.files import StorageError, open_regular, write_atomically
from agent_hooks.storage.locks import try_lock
from agent_hooks.trees import ApprovedFile
from agent_hooks.trust.manifest import ProjectSet, TrustError, absolute, manifest_digest

STORE = "trust.json"
"""The file of the store, below the agent home."""
VERSION = 1
MOST_APPROVALS = 20
"""The approvals that are kept per project, so that changing a branch or a worktree asks nothing."""
LOCK_TIMEOUT = 10.0
"""Seconds to wait for another process that changes the store."""
_WHERE = "trust"
_SETS = "sets"


class Approval(Struct, omit_defaults=True):
    """One approved set.

    `at`: seconds since 1970; `files`: the SHA-256 of each file by its name; `by`: how it was approved, `trust`,
    `question`, `follow` or `new`.
    """

    digest: str
    at: float
    files: dict[str, str]
    by: str = "trust"


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


class TrustStore:
    """The store below an agent home.  Nothing is read before the first use, and never twice.

    `problem`: the reason why the store cannot be used, with the remedy; then no project is trusted.
    """

    def __init__(self, home: str) -> None:
        self.home = home
        self.path = os.path.join(home, STORE)
        self.problem: str | None = None
        self.entries: dict[str, Entry] = {}
        self._text = ""
        self._read()

    def known(self, key: str) -> bool:
        """Tell whether a damaged store names a project, which was approved or refused then."""
        return json.dumps(key) in self._text

    # ---- changes

    def approve(self, key: str, found: ProjectSet, *, by: str = "trust") -> Approval:
        """Approve a set, and keep its bytes; raises `TrustError`."""
        if found.problem is not None:
            raise TrustError(found.problem)
        approval = Approval(found.digest, time.time(), {file.name: file.digest for file in found.files}, by)
        with self._changing():
            self._keep(found, approval.digest)
            entry = self.entries.setdefault(key, Entry(found.project))
            entry.root, entry.refused = found.project, None
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
        """Keep the person's no to a set, so that they are asked again only about another one; raises `TrustError`."""
        with self._changing():
            self.entries.setdefault(key, Entry(found.project)).refused = found.digest

    def remove(self, key: str) -> bool:
        """Forget a project, and return whether the store knew it; raises `TrustError`."""
        with self._changing():
            return self.entries.pop(key, None) is not None

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
        return os.path.join(self.home, _WHERE, _SETS, digest, inside, name.lstrip(os.sep))

    def _keep(self, found: ProjectSet, digest: str) -> None:
        """Write the bytes of a set; the directory gets its name when it is whole."""
        final = os.path.join(self.home, _WHERE, _SETS, digest)
        if os.path.isdir(final):
            shutil.rmtree(final)
        os.makedirs(os.path.join(self.home, _WHERE, _SETS), mode=0o700, exist_ok=True)
        for file in found.files:
            place = self._place(digest, file.name)
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            write_atomically(place, file.data, secret=True)

    def _sweep(self) -> None:
        """Remove the bytes of sets that no approval names any more."""
        named = {each.digest for entry in self.entries.values() for each in entry.approved}
        directory = os.path.join(self.home, _WHERE, _SETS)
        with suppress(OSError):
            for name in set(os.listdir(directory)) - named:
                shutil.rmtree(os.path.join(directory, name), ignore_errors=True)

    # ---- the file

    def _read(self) -> None:
        self.problem, self.entries, self._text = None, {}, ""
        try:
            with open_regular(self.path, self.path) as file:
                self._text = file.read().decode("utf-8", "replace")
        except StorageError as exc:
            # `open_regular` also says so of a file that is missing.
            if os.path.lexists(self.path):
                self.problem = str(exc)
            return
        except OSError as exc:
            self.problem = f"cannot read {self.path}: {os_reason(exc)}"
            return
        try:
            self.entries = _entries(json.loads(self._text))
        except (ValueError, RecursionError, msgspec.ValidationError) as exc:
            self.problem = f"the trust store {self.path} cannot be used: {exc}; mend it, or remove it and approve again"

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock, read the store as it is now, and write it after the block; raises `TrustError`."""
        try:
            os.makedirs(self.home, exist_ok=True)
            os.makedirs(os.path.join(self.home, _WHERE), mode=0o700, exist_ok=True)
            lock = os.open(os.path.join(self.home, _WHERE, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise TrustError(f"cannot change the trust store {self.path}: {os_reason(exc)}") from None
        try:
            self._wait_for(lock)
            self._read()
            if self.problem is not None:
                raise TrustError(self.problem)
            yield
            self._write()
            self._sweep()
        except (OSError, StorageError) as exc:
            reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
            raise TrustError(f"cannot change the trust store {self.path}: {reason}") from None
        finally:
            os.close(lock)

    def _wait_for(self, lock: int) -> None:
        until = time.monotonic() + LOCK_TIMEOUT
        while not try_lock(lock):
            if time.monotonic() > until:
                raise TrustError(f"another process holds the lock of the trust store {self.path}; try again")
            time.sleep(0.02)

    def _write(self) -> None:
        projects = {key: msgspec.to_builtins(entry) for key, entry in self.entries.items()}
        # `json` escapes the surrogates of names that are no UTF-8; msgspec refuses them.
        text = json.dumps({"version": VERSION, "projects": projects}, indent=1)
        write_atomically(self.path, text.encode() + b"\n", secret=True)


def _entries(found: Any) -> dict[str, Entry]:
    """Return the entries of a store's JSON; raises `ValueError` for a newer version, and `ValidationError`."""
    version = found.get("version") if isinstance(found, Mapping) else None
    if not isinstance(version, int):
        raise ValueError("it has no version")  # noqa: TRY004  # one kind of error for a damaged file
    if version > VERSION:
        raise ValueError(f"it was written by a newer agent-hooks (version {version}); update agent-hooks")
    return msgspec.convert(found.get("projects"), dict[str, Entry])
