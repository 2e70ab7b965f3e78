"""Run git for checkpoints: the person's repository is read, and a private git directory beside it is written.

The private directory, `agent-hooks/` in the person's git directory, shares the object store and has an index, attributes
and a configuration of its own.  That has three effects:

1. The person's filters, line-ending rules and hooks do not change the bytes that are saved.
2. The person's index does not matter; it may be locked, sparse, or in the middle of a merge.
3. From the second checkpoint on, untracked files are as quick as tracked ones.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import anyio

from agent_hooks.checkpoints.private import open_lock, prepare
from agent_hooks.concurrency import process
from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.storage.git import NO_PROGRAMS, git_environment, git_program, without_hooks
from agent_hooks.storage.locks import try_lock

_QUIET = (*NO_PROGRAMS, "-c", "core.logAllRefUpdates=false")
_BIT_BY_BIT = (
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.attributesFile=/dev/null"),
    *("-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.bare=false", "-c", "core.quotePath=false"),
    *("-c", "core.sparseCheckout=false", "-c", "core.splitIndex=false"),
    # Any name that the disk takes is saved.  macOS would take some names for `.git`, so those are not restored there.
    *("-c", "core.protectNTFS=false", "-c", f"core.protectHFS={str(sys.platform == 'darwin').lower()}"),
    *("-c", "core.checkStat=default", "-c", "core.trustctime=true"),
    *("-c", "submodule.recurse=false", "-c", "i18n.commitEncoding=UTF-8"),
)
# The person's settings that hold for checkpoints too.
_FOLLOWED = re.compile(r"core\.(ignorecase|precomposeunicode|excludesfile)")
# Seconds between two tries to take a lock: a file lock has no event to wait for.
_POLL = 0.02


class CheckpointError(AgentHooksError):
    """A checkpoint cannot be made or restored; the text gives the reason and the remedy."""


class Output(NamedTuple):
    """The exit code and output of a git command."""

    code: int
    out: bytes
    err: str

    def need(self) -> bytes:
        """Return the output; raises `CheckpointError` with git's own error when the command failed."""
        if self.code:
            raise CheckpointError(f"git failed: {self.err.strip() or f'exit code {self.code}'}")
        return self.out


class Worktree:
    """A working tree: `top` is its directory, `private` the private git directory."""

    def __init__(self, top: str, private: str, objects: str, exclude: str, object_format: str) -> None:
        self.top = top
        self.private = private
        self.index = os.path.join(private, "index")
        self.object_format = object_format
        self.exclude = exclude
        self.settings: tuple[str, ...] = ()
        # Switches off the hooks in the configuration of the repository.
        self.no_hooks: dict[str, str] = {}
        self._environment = {
            **git_environment(top),
            "GIT_DIR": private,
            "GIT_WORK_TREE": top,
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_INDEX_FILE": self.index,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "agent_hooks",
            "GIT_AUTHOR_EMAIL": "agent-hooks@localhost",
            "GIT_COMMITTER_NAME": "agent_hooks",
            "GIT_COMMITTER_EMAIL": "agent-hooks@localhost",
        }

    async def git(self, *args: str, stdin: bytes = b"") -> Output:
        """Run git on the private index, without any conversion of contents."""
        return await run_git(*_BIT_BY_BIT, *self.settings, *args, cwd=self.top, env=self._environment, stdin=stdin)

    async def theirs(self, *args: str, stdin: bytes = b"") -> Output:
        """Run git on the person's repository; it never changes anything there but our refs."""
        return await run_git(*args, cwd=self.top, env={**git_environment(self.top), **self.no_hooks}, stdin=stdin)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Lock the private directory, and make it when it is missing: one checkpoint at a time, in all processes."""
        try:
            lock = open_lock(self.private)
        except OSError as exc:
            raise self._unwritable(exc) from None
        try:
            while not try_lock(lock):
                await anyio.sleep(_POLL)
            try:
                prepare(self.private, self.exclude, self.object_format)
            except OSError as exc:
                raise self._unwritable(exc) from None
            # A killed git process has left the file: no other git can be running, because we hold our own lock.
            with suppress(FileNotFoundError):
                os.unlink(f"{self.index}.lock")
            yield
        finally:
            os.close(lock)

    def _unwritable(self, exc: OSError) -> CheckpointError:
        return CheckpointError(f"{self.private}: checkpoints cannot be written: {os_reason(exc)}")


async def run_git(*args: str, cwd: str, env: dict[str, str], stdin: bytes = b"") -> Output:
    """Run git and return its output; raises `CheckpointError` when git or the directory is missing."""
    out, err = bytearray(), process.Capture()
    git = git_program(cwd)
    if git is None:
        raise CheckpointError("git is not installed, and checkpoints need it")
    # A pipe as stdin would need a task that writes to it.
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        try:
            code, _ = await process.stream(
                [git, *_QUIET, *args],
                cwd=cwd,
                env=env,
                stdin=file.fileno() if stdin else None,
                stdout=out.extend,
                stderr=err,
            )
        except OSError as exc:
            if not os.path.isdir(cwd):
                raise CheckpointError(f"{cwd}: there is no such directory") from None
            raise CheckpointError(f"{git} cannot be run: {os_reason(exc)}") from None
    return Output(code, bytes(out), err.text())


async def open_worktree(cwd: str | os.PathLike[str]) -> Worktree:
    """Find the working tree that `cwd` lies in; raises `CheckpointError` when there is none."""
    where = os.path.abspath(os.fspath(cwd))
    ask = ("--show-toplevel", "--absolute-git-dir", "--git-path", "objects", "--git-path", "info/exclude")
    found = await run_git("rev-parse", *ask, "--show-object-format", cwd=where, env=git_environment(where))
    if found.code:
        raise CheckpointError(_missing_worktree(where, found.err))
    try:
        top, private, objects, exclude, object_format = os.fsdecode(found.out).splitlines()
    except ValueError:
        raise CheckpointError(f"{where}: checkpoints need a repository whose path has no line break") from None
    if not _belongs(top, private):
        text = f"{private} names {top} as its working tree, and lies elsewhere (core.worktree)"
        raise CheckpointError(f"{where}: {text}; so there are no checkpoints")
    worktree = Worktree(
        top,
        os.path.join(private, "agent-hooks"),
        os.path.join(where, objects),
        os.path.join(where, exclude),
        object_format,
    )
    settings = await worktree.theirs("config", "--list", "-z")
    pairs = [(name, value) for name, _, value in (each.partition("\n") for each in names_in(settings.out))]
    for name, value in pairs:
        if _FOLLOWED.fullmatch(name):
            worktree.settings += ("-c", f"{name}={value}")
    worktree.no_hooks = without_hooks(name for name, _ in pairs)
    return worktree


def _belongs(top: str, private: str) -> bool:
    """Tell whether the `.git` of a working tree is this git directory, or names it.

    A repository from elsewhere could name the home directory as its working tree, and bring checkpoints of it along.
    """
    own = os.path.join(top, ".git")
    # The file of a linked working tree or a submodule holds one line, the path of the git directory.
    with suppress(OSError), open(own, "rb") as file:
        line = os.fsdecode(file.read(65536).removeprefix(b"gitdir: ").rstrip(b"\r\n"))
        own = os.path.join(top, line)
    return os.path.realpath(own) == os.path.realpath(private)


def _missing_worktree(where: str, err: str) -> str:
    """Return the error text for git's own error; git has one exit code for all of them."""
    if "not a git repository" in err:
        return f"{where} is not in a git repository, so there are no checkpoints; `git init` makes it one"
    if "must be run in a work tree" in err or "cannot use bare repository" in err:
        return f"{where} has no working tree (a bare repository, or inside of .git), so there are no checkpoints"
    return f"{where}: git cannot use this repository: {err.strip()}"


def names_in(out: bytes) -> list[str]:
    """Return the names that git separated by NUL; bytes that are not UTF-8 become surrogates."""
    return [os.fsdecode(name) for name in out.split(b"\0") if name]


def listed(names: Iterable[str]) -> bytes:
    """Return names in the form that git reads with `-z --stdin`."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def real_parents(top: str, path: str, known: dict[str, bool]) -> bool:
    """Tell whether all directories above `path` (relative to `top`) are directories, and not symlinks.

    `known` keeps the results, for a series of many paths.
    """
    parent = os.path.dirname(path)
    if not parent:
        return True
    if parent not in known:
        full = os.path.join(top, parent)
        known[parent] = real_parents(top, parent, known) and os.path.isdir(full) and not os.path.islink(full)
    return known[parent]
