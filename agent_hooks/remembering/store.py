"""The file of the answers for good: `remembered.json` in the agent home.

The file is sealed: no agent writes it, also while hooks are unlocked.  Every doubt counts as no answer: a file that is
no JSON, of another version, of another user or open to others, and an answer whose digest does not fit.  Such an answer
stays in the file, and has a sentence in `problems`, until a person revokes it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import msgspec
from msgspec import Struct

from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.remembering import EXCEPTIONS, FILE, LOCK
from agent_hooks.remembering.kept import About, Kept, Project, kept_for, project_of
from agent_hooks.storage.files import StorageError, write_atomically
from agent_hooks.storage.locks import wait_for_lock

VERSION = 1
MOST = 1000
"""The answers that the file holds at most."""
LOCK_TIMEOUT = 5.0
"""Seconds to wait for another process that changes the file."""
_MOST_BYTES = 16 * 1024 * 1024


class RememberingError(AgentHooksError):
    """An answer cannot be kept or revoked; the text names the file, the reason and the remedy."""


class Found(Struct, frozen=True):
    """The contents of the file.

    `kept`: the answers as they were written, in the order of their numbers; `problems`: a sentence for each answer that
    was changed, or the one reason why the file cannot be used; `usable`: whether the file can be used.
    """

    kept: tuple[Kept, ...] = ()
    problems: tuple[str, ...] = ()
    usable: bool = True


class Store:
    """The answers for good of one person.  `home`: the agent home; `today`: returns the date, for tests."""

    def __init__(self, home: str, today: Callable[[], date] = date.today) -> None:
        self.path = os.path.join(home, FILE)
        self.today = today
        self._home = home
        # The contents, and the file that they were read from.
        self._found = Found()
        self._read: tuple[int, ...] | None = None

    def find(self) -> Found:
        """Return the contents of the file as it is now."""
        try:
            seen = _identity(os.lstat(self.path))
        except FileNotFoundError:
            return Found()
        except OSError as exc:
            return self._unusable(f"cannot be read: {os_reason(exc)}")
        if seen != self._read:
            self._found = self._load()
            self._read = seen
        return self._found

    def recall(self, about: About, place: Project) -> Kept | None:
        """Return the answer that allows a call, `None` without one."""
        today = self.today()
        for each in self.find().kept:
            if each.about.key == about.key and each.place == place and not each.idle(today):
                return each
        return None

    def kept_in(self, cwd: str) -> list[Kept]:
        """Return the answers of the project of a directory.

        Those of a project that was at its path before are among them, and those from before the project was moved.
        """
        if not (kept := self.find().kept):
            return []
        try:
            project = project_of(cwd)
        except (OSError, ValueError):
            return []
        return [
            each
            for each in kept
            if each.project == project.path or (each.inode == project.inode and not os.path.lexists(each.project))
        ]

    def doubts(self, cwd: str) -> list[str]:
        """Return the problems of the file, and a sentence for each answer of a project that does not count any more."""
        today = self.today()
        return [
            *self.find().problems,
            *(
                f"answer {each.number} does not count: {idle}; end it: {EXCEPTIONS} --revoke {each.number}"
                for each in self.kept_in(cwd)
                if (idle := each.idle(today))
            ),
        ]

    def add(self, about: About, place: Project) -> Kept:
        """Keep an answer, and return it; raises `RememberingError`."""
        with self._changing() as raw:
            today = self.today()
            numbers = [number for each in raw["answers"] if (number := _number(each)) is not None]
            number = max([raw["next"], *(each + 1 for each in numbers)])
            if len(raw["answers"]) >= MOST:
                raise RememberingError(f"{self.path} holds {MOST} answers; revoke some: {EXCEPTIONS}")
            made = kept_for(number, about, place, today)
            raw["answers"].append(msgspec.to_builtins(made))
            raw["next"] = number + 1
        return made

    def revoke(self, number: int) -> Kept | None:
        """Remove an answer, and return it; `None` for one that was changed by hand.  Raises `RememberingError`."""
        with self._changing() as raw:
            gone = [each for each in raw["answers"] if _number(each) == number]
            if not gone:
                raise RememberingError(f"there is no answer {number}; to list them: {EXCEPTIONS}")
            raw["answers"] = [each for each in raw["answers"] if each not in gone]
        return _decoded(gone[0])

    # ---- the file

    def _load(self) -> Found:
        try:
            raw = self._raw()
        except RememberingError as exc:
            return Found((), (str(exc),), usable=False)
        kept: list[Kept] = []
        problems: list[str] = []
        for index, each in enumerate(raw["answers"], 1):
            found = _decoded(each)
            if found is not None and found.number not in [other.number for other in kept]:
                kept.append(found)
                continue
            number = _number(each)
            name = f"the entry at place {index}" if number is None else f"answer {number}"
            remedy = "remove it there" if number is None else f"end it: {EXCEPTIONS} --revoke {number}"
            problems.append(f"{name} in {self.path} was changed by hand, so it does not count; {remedy}")
        return Found(tuple(sorted(kept, key=lambda each: each.number)), tuple(problems))

    def _unusable(self, reason: str) -> Found:
        return Found((), (self._problem(reason),), usable=False)

    def _problem(self, reason: str) -> str:
        return f"{self.path} {reason}; no remembered answer counts until you mend or remove the file"

    def _raw(self) -> dict[str, Any]:
        """Return the JSON of the file with its keys checked, but not its answers; raises `RememberingError`."""
        # Imported here, because most processes find no file.
        import json

        data = self._bytes()
        if data is None:
            return {"version": VERSION, "next": 1, "answers": []}
        try:
            raw = json.loads(data)
        except (ValueError, RecursionError):
            raise RememberingError(self._problem("is no JSON")) from None
        if not isinstance(raw, dict) or set(raw) != {"version", "next", "answers"}:
            raise RememberingError(self._problem("does not have the keys version, next and answers"))
        if raw["version"] != VERSION:
            raise RememberingError(self._problem(f"is of version {raw['version']!r}, and not {VERSION}"))
        if type(raw["next"]) is not int or not isinstance(raw["answers"], list):
            raise RememberingError(self._problem("has a wrong value for next or answers"))
        return raw

    def _bytes(self) -> bytes | None:
        """Return the bytes of the file, `None` without one; raises `RememberingError` for one that is not private."""
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise RememberingError(self._problem(f"cannot be read: {os_reason(exc)}")) from None
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
                raise RememberingError(self._problem("is no regular file of a usual size"))
            if found.st_uid != os.geteuid():
                raise RememberingError(self._problem("belongs to another user"))
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise RememberingError(self._problem("can be written by other users (chmod 600)"))
            with os.fdopen(file, "rb", closefd=False) as reader:
                return reader.read()
        except OSError as exc:
            raise RememberingError(self._problem(f"cannot be read: {os_reason(exc)}")) from None
        finally:
            os.close(file)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Hold the lock, give the JSON as it is now, and write it after the block; raises `RememberingError`."""
        try:
            os.makedirs(self._home, exist_ok=True)
            lock = os.open(os.path.join(self._home, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise RememberingError(f"cannot write {self.path}: {os_reason(exc)}") from None
        try:
            if not wait_for_lock(lock, LOCK_TIMEOUT):
                raise RememberingError(f"another process holds the lock of {self.path}; try again")
            raw = self._raw()
            yield raw
            self._write(raw)
        except OSError as exc:
            raise RememberingError(f"cannot write {self.path}: {os_reason(exc)}") from None
        except StorageError as exc:
            raise RememberingError(str(exc)) from None
        finally:
            os.close(lock)

    def _write(self, raw: dict[str, Any]) -> None:
        import json  # here, as above

        write_atomically(self.path, json.dumps(raw, indent=1).encode() + b"\n", secret=True, durable=True)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    """Return the facts of a file that change when it is replaced or written."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode, found.st_uid


def _number(each: object) -> int | None:
    number = each.get("number") if isinstance(each, dict) else None
    return number if type(number) is int and number > 0 else None


def _decoded(each: object) -> Kept | None:
    """Return an answer as it was written, `None` for one that was changed."""
    try:
        found = msgspec.convert(each, Kept)
    except (msgspec.ValidationError, ValueError, RecursionError):
        return None
    return found if found.number > 0 and found.is_intact() else None
