"""One answer for good and its project, as the file has it, with the digest that finds an edit by hand."""

from __future__ import annotations

import os
from datetime import date, timedelta
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.errors import printable
from agent_hooks.storage.digests import sha256
from agent_hooks.trust.place import find_place
from agent_hooks.trust.repository import common_directory


class Project(Struct, frozen=True):
    """A project, and a directory in it.

    `path`: git's common directory, or the working directory where there is no repository; `inode`: the number that the
    file system gave `path`, so that another directory at the same path is another project; `directory`: the working
    directory, from the top of the working tree.
    """

    path: str
    inode: int
    directory: str


def project_of(cwd: str) -> Project:
    """Return the project of a working directory; raises `OSError` and `ValueError` for one that cannot be."""
    here = os.path.realpath(cwd)
    top = find_place(here).top
    path = common_directory(top) or top
    return Project(path, os.stat(path).st_ino, os.path.relpath(here, top))


def moved(path: str, inode: int) -> str:
    """Return why a project is not where it was, as a sentence part; empty when it is there."""
    try:
        found = os.stat(path).st_ino
    except (OSError, ValueError):
        return "its project was moved or removed"
    return "" if found == inode else "another project is at the path of its project now"


LIFETIME = timedelta(days=365)
"""The time for which an answer counts."""


class About(Struct, frozen=True, kw_only=True):
    """The question that an answer is about; equal questions have equal values.

    Of a guard: its `rule` and the exact `words` of the one program, each spelled for a shell, or the path; `input`, the
    SHA-256 of the arguments that are not in the words, empty without any.
    Of a hook: the path of its file, the SHA-256 of its source files, the `title`, and the SHA-256 of the call's `input`;
    `words` is the call in one line there, for the person.
    `by`: the name of the guard or of the hook; `tool`: the name of the tool.
    """

    tool: str
    by: str
    rule: str = ""
    words: tuple[str, ...] = ()
    hook: str = ""
    sha256: str = ""
    title: str = ""
    input: str = ""

    @property
    def key(self) -> About:
        """The same without the words that are for the person only; an answer of version 0.1 has none."""
        return replace(self, words=()) if self.hook else self

    def __str__(self) -> str:
        """Return the question in one line."""
        if self.hook:
            return printable(f"{': '.join((self.title, *self.words))} ({self.by})")
        return printable(f"{' '.join(self.words)} ({self.rule})")


class Kept(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An answer for good.

    `number`: the name by which a person revokes it; `expires`: its last day; the other fields are those of `About` and
    of `Project`; `digest`: that of all other fields.
    """

    number: int
    tool: str
    by: str
    rule: str = ""
    words: tuple[str, ...] = ()
    hook: str = ""
    sha256: str = ""
    title: str = ""
    input: str = ""
    project: str
    inode: int
    directory: str
    written: date
    expires: date
    digest: str = ""

    @property
    def about(self) -> About:
        """The question that the answer is about."""
        return About(
            tool=self.tool,
            by=self.by,
            rule=self.rule,
            words=self.words,
            hook=self.hook,
            sha256=self.sha256,
            title=self.title,
            input=self.input,
        )

    @property
    def place(self) -> Project:
        """The project and the directory in which the answer counts."""
        return Project(self.project, self.inode, self.directory)

    def is_intact(self) -> bool:
        """Return whether the fields are those that were written."""
        return self.digest == _digest(self)

    def idle(self, today: date) -> str:
        """Return why the answer does not count, as a sentence part; empty when it does.

        A clock that has gone back is a reason too.
        """
        if self.expires < today:
            return f"it expired on {self.expires}"
        if self.written > today:
            return f"it was written on {self.written}, which is in the future"
        return moved(self.project, self.inode)


def kept_for(number: int, about: About, place: Project, today: date) -> Kept:
    """Return an answer that is given today."""
    made = Kept(
        number=number,
        **msgspec.structs.asdict(about),
        project=place.path,
        inode=place.inode,
        directory=place.directory,
        written=today,
        expires=today + LIFETIME,
    )
    return replace(made, digest=_digest(made))


def _digest(kept: Kept) -> str:
    return sha256(encoded({**msgspec.to_builtins(kept), "digest": ""}))


def encoded(value: Any) -> bytes:
    """Return a value as JSON in one spelling; raises `TypeError` and `ValueError` for one that JSON cannot hold."""
    # Imported here, because most processes keep no answer.  `json` escapes surrogates; msgspec refuses them.
    import json

    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
