"""Run git for checkpoints: the person's repository is read, and a git directory of our own is written.

That directory, the store of the working tree, lies below the agent home (see `stores`).  It has objects, refs, an index,
attributes and a configuration of its own.  That has four effects:

1. The person's filters, line-ending rules and hooks do not change the bytes that are saved.
2. The person's index does not matter; it may be locked, sparse, or in the middle of a merge.
3. From the second checkpoint on, untracked files are as quick as tracked ones.
4. No push of the repository sends checkpoints, and neither its cleaning nor its deletion loses them.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import NamedTuple

import anyio
import anyio.to_thread

from agent_hooks.checkpoints.facts import Facts, circumstances, former, remember, remembered, sources
from agent_hooks.checkpoints.faults import failure, number_in, reason_against
from agent_hooks.checkpoints.pipes import Pipes
from agent_hooks.checkpoints.private import format_of, open_lock, prepare
from agent_hooks.checkpoints.stores import lost_tree, top_of
from agent_hooks.concurrency import process
from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.storage.files import StorageError, flush, read_regular
from agent_hooks.storage.git import NO_PROGRAMS, git_environment, git_program, without_hooks
from agent_hooks.storage.locks import try_lock
from agent_hooks.turn_notes import store_of, working_tree

# Objects and refs are handed to the disk; `flush` waits for it once, at the end.
_TO_DISK = ("-c", "core.fsync=loose-object,pack,pack-metadata,reference", "-c", "core.fsyncMethod=writeout-only")
_QUIET = (*NO_PROGRAMS, *_TO_DISK, "-c", "core.logAllRefUpdates=false")
_BIT_BY_BIT = (
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.attributesFile=/dev/null"),
    *("-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.bare=false", "-c", "core.quotePath=false"),
    *("-c", "core.sparseCheckout=false", "-c", "core.splitIndex=false"),
    # Any name that the disk takes is saved.  macOS would take some names for `.git`, so those are not restored there.
    *("-c", "core.protectNTFS=false", "-c", f"core.protectHFS={str(sys.platform == 'darwin').lower()}"),
    *("-c", "core.checkStat=default", "-c", "core.trustctime=true"),
    *("-c", "submodule.recurse=false", "-c", "i18n.commitEncoding=UTF-8"),
)
# The user's settings that apply to checkpoints too.
_FOLLOWED = re.compile(r"core\.(precomposeunicode|excludesfile)")
LIMIT = 60.0
"""Seconds that one git command may take."""
# Seconds that git may take for a question about the user's repository, which is ignored without an answer.
ASKING = 2.0
# A file of the store that is there once the first checkpoint has all of its objects.
_WHOLE = "whole"
# Bytes of a file of ignored paths that are read.
_MOST_EXCLUDED = 1 << 20
# Seconds between two tries to take a lock: a file lock has no event to wait for.
_POLL = 0.02
# The file that tells of a process which waits for the lock.
_WAITING = "waiting"


class CheckpointError(AgentHooksError):
    """A checkpoint cannot be made or restored; the text gives the reason and the remedy."""


class GitTimeoutError(CheckpointError):
    """git, or a whole checkpoint, took too long."""


class Output(NamedTuple):
    """The exit code and output of a git command."""

    code: int
    out: bytes
    err: str
    # The store on which git ran, empty for the person's repository.
    store: str = ""

    def need(self) -> bytes:
        """Return the output; raises `CheckpointError` with git's own error when the command failed."""
        if not self.code:
            return self.out
        text = f"git failed: {self.err.strip() or f'exit code {self.code}'}"
        if not self.store:
            raise CheckpointError(text)
        raise CheckpointError(failure(self.store, number_in(self.store, self.code, self.err), text))


class Worktree:
    """A working tree: `top` is its directory, `store` the git directory of its checkpoints.

    `repository`: the person's git directory, `None` when it is gone; `objects`: its objects; `exclude`: the text of its
    own file of ignored paths, `None` when the one of the store stays.
    """

    def __init__(
        self, top: str, object_format: str, repository: str | None = None, objects: str = "", exclude: str | None = None
    ) -> None:
        self.top = top
        self.store = store_of(top)
        self.index = os.path.join(self.store, "index")
        self.object_format = object_format
        self.exclude = exclude
        self.settings: tuple[str, ...] = ()
        self.repository = repository
        # The directories of objects from which the first checkpoint borrows.
        self.lenders = [objects] if objects else []
        # Whether a git command has a deadline.
        self.is_hurried = True
        self.pipes = Pipes(top, *([os.path.join(repository, "info", "exclude")] if repository else ()))
        # Git's answers about the repository, which are written to the store with the next checkpoint.  They are `None`
        # if the store has them already, or if they must not be kept.
        self.facts: Facts | None = None
        self._ignores_case: bool | None = None
        # Switches off the hooks in the configuration of the repository.
        self.no_hooks: dict[str, str] = {}
        self._environment = {
            **git_environment(top),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_DIR": self.store,
            "GIT_WORK_TREE": top,
            "GIT_INDEX_FILE": self.index,
            # A third smaller, so it is read and written in less time.
            "GIT_INDEX_VERSION": "4",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "agent_hooks",
            "GIT_AUTHOR_EMAIL": "agent-hooks@localhost",
            "GIT_COMMITTER_NAME": "agent_hooks",
            "GIT_COMMITTER_EMAIL": "agent-hooks@localhost",
        }

    async def git(
        self,
        *args: str,
        stdin: bytes = b"",
        receive: Callable[[bytes], object] | None = None,
        borrowing: bool = False,
        index: str | None = None,
        limit: float | None = LIMIT,
    ) -> Output:
        """Run git on the store, without any conversion of contents; `receive` gets the output as it comes.

        `borrowing`: objects of the user's repository are present too.  `index`: replaces the store's own index.  `limit`:
        the seconds that git may take.
        """
        settings = (*_BIT_BY_BIT, *self.settings, "-c", f"core.ignoreCase={str(self.ignores_case).lower()}")
        environment = self._environment
        if borrowing and self.lenders:
            # git takes quotes for those of C, and a path with them is not borrowed from.
            lenders = ":".join(_quoted(each) for each in self.lenders if _can_lend(each))
            environment = {**environment, "GIT_ALTERNATE_OBJECT_DIRECTORIES": lenders}
        if index is not None:
            environment = {**environment, "GIT_INDEX_FILE": index}
        limit = limit if self.is_hurried else None
        run = partial(
            run_git, *settings, *args, cwd=self.top, env=environment, stdin=stdin, receive=receive, limit=limit
        )
        return (await self.pipes.passed(run))._replace(store=self.store)

    async def theirs(self, *args: str, stdin: bytes = b"") -> Output:
        """Run git on the user's repository, which it never changes.  It fails when the repository is gone or damaged."""
        if self.repository is None:
            return Output(1, b"", "the repository is gone or damaged")
        env = {**git_environment(self.top), **self.no_hooks}
        run = partial(run_git, *args, cwd=self.top, env=env, stdin=stdin, limit=ASKING)
        try:
            return await self.pipes.passed(run)
        except GitTimeoutError as exc:
            return Output(1, b"", str(exc))

    @property
    def ignores_case(self) -> bool:
        """Whether the file system takes small and capital letters for the same, whatever the repository says."""
        if self._ignores_case is None:
            self._ignores_case = _ignores_case(self.top)
        return self._ignores_case

    def leave_irregular_excludes(self) -> None:
        """Do not read the user's own ignore file when that is a pipe or a device."""
        path = self.excludes
        if os.path.exists(path) and not os.path.isfile(path):
            self.settings = (*self.settings, "-c", f"core.excludesFile={os.devnull}")
            self.pipes.irregular.append(path)

    @property
    def excludes(self) -> str:
        """The path of the user's own ignore file."""
        name = "core.excludesfile="
        own = [each[len(name) :] for each in self.settings if each.lower().startswith(name)]
        if own:
            return os.path.join(self.top, os.path.expanduser(own[-1]))
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
        return os.path.join(base, "git", "ignore")

    @property
    def rule_files(self) -> list[str]:
        """The files outside of the working tree that decide what is ignored, and the directory of the repository's."""
        own = ("info", "info/exclude") if self.repository is not None else ()
        return [self.excludes, *(os.path.join(self.repository or "", each) for each in own)]

    @property
    def has_store(self) -> bool:
        """Whether a checkpoint was ever begun here; raises `CheckpointError` if this user cannot look into the store."""
        try:
            os.lstat(os.path.join(self.store, "HEAD"))
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise self.failed(exc) from None
        return True

    @property
    def is_whole(self) -> bool:
        """Whether the store has all objects that its index names; the first checkpoint borrows some until its end."""
        return os.path.exists(os.path.join(self.store, _WHOLE))

    def become_whole(self) -> None:
        """Note that the store has all objects that its index names."""
        try:
            with open(os.path.join(self.store, _WHOLE), "xb"):
                pass
        except OSError as exc:
            raise self.failed(exc) from None

    async def flush(self, ref: str) -> None:
        """Wait until a ref, and the objects that were written before it, are on the disk."""
        await anyio.to_thread.run_sync(_flush, os.path.join(self.store, ref))

    @asynccontextmanager
    async def locked(self, *, wait: bool = True) -> AsyncIterator[None]:
        """Lock the store, and make it when it is missing: one checkpoint at a time, in all processes.

        Without `wait`, a store that is locked raises `CheckpointError`.
        """
        if (reason := reason_against(self.store)) is not None:
            raise CheckpointError(reason)
        try:
            lock = open_lock(self.store)
        except OSError as exc:
            raise self.failed(exc) from None
        try:
            if not try_lock(lock):
                if not wait:
                    raise CheckpointError(f"{self.store}: another process uses it")
                # A removal in the background sees it, and gives way.
                _make(os.path.join(self.store, _WAITING))
                while not try_lock(lock):
                    await anyio.sleep(_POLL)
            try:
                prepare(self.store, self.top, self.exclude, self.object_format)
            except OSError as exc:
                raise self.failed(exc) from None
            if self.facts is not None:
                remember(self.store, self.facts)
            # A killed git process has left the file: no other git can be running, because we hold our own lock.
            with suppress(FileNotFoundError):
                os.unlink(f"{self.index}.lock")
            yield
        finally:
            os.close(lock)

    @property
    def has_waiters(self) -> bool:
        """Whether a process has begun to wait for the lock since `forget_waiters`."""
        return os.path.exists(os.path.join(self.store, _WAITING))

    def forget_waiters(self) -> None:
        """Forget the processes that have waited for the lock before."""
        with suppress(OSError):
            os.unlink(os.path.join(self.store, _WAITING))

    def failed(self, exc: OSError | StorageError) -> CheckpointError:
        """Return the error for a file of the store that cannot be read or written."""
        # A `StorageError` is a text that was made from the error of the system, which is its context.
        cause = exc.__context__ if isinstance(exc, StorageError) else exc
        number = cause.errno if isinstance(cause, OSError) else None
        return CheckpointError(failure(self.store, number, os_reason(exc) if isinstance(exc, OSError) else str(exc)))


def _ignores_case(top: str) -> bool:
    """Return whether a name of the working tree leads to the same file with the other case."""
    with suppress(OSError):
        for name in sorted(os.listdir(top)):
            if name.swapcase() != name:
                one = os.lstat(os.path.join(top, name))
                with suppress(FileNotFoundError):
                    other = os.lstat(os.path.join(top, name.swapcase()))
                    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
                return False
    return False


def _make(path: str) -> None:
    """Make an empty file, where that is possible."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))


def _can_lend(objects: str) -> bool:
    """Return whether git can read a directory of objects without opening a pipe, which could hold it up."""
    files = [os.path.join(objects, "info", "alternates")]
    with suppress(OSError):
        files += (each.path for each in os.scandir(os.path.join(objects, "pack")))
    return all(os.path.isfile(each) or not os.path.exists(each) for each in files)


def _quoted(path: str) -> str:
    """Return a path for a list of paths that git reads."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if {*path} & {'"', "\\", ":"} else path


def _flush(ref: str) -> None:
    for path in (ref, os.path.dirname(ref)):
        # The ref of another backend of git than that of files is in no file of its own.
        with suppress(OSError):
            flush(path)


async def run_git(
    *args: str,
    cwd: str,
    env: dict[str, str],
    stdin: bytes = b"",
    receive: Callable[[bytes], object] | None = None,
    limit: float | None = LIMIT,
) -> Output:
    """Run git and return its output; raises `CheckpointError` when git or the directory is missing.

    `receive`: gets the output as it comes, which is then not returned.  `limit`: the seconds after which git is ended,
    and `GitTimeoutError` raised.
    """
    out, err = bytearray(), process.Capture()
    git, began = git_program(cwd), anyio.current_time()
    if git is None:
        raise CheckpointError("git is not installed, and checkpoints need it")
    # A pipe as stdin would need a task that writes to it.
    with tempfile.TemporaryFile() if stdin else nullcontext() as file:
        if file is not None:
            file.write(stdin)
            file.seek(0)
        try:
            code, killed = await process.stream(
                [git, *_QUIET, *args],
                cwd=cwd,
                env=env,
                timeout=limit,
                stdin=None if file is None else file.fileno(),
                stdout=out.extend if receive is None else receive,
                stderr=err,
            )
        except OSError as exc:
            if not os.path.isdir(cwd):
                raise CheckpointError(_missing_directory(cwd)) from None
            raise CheckpointError(f"{git} cannot be run: {os_reason(exc)}") from None
    if killed and limit is not None and anyio.current_time() - began >= limit:
        raise GitTimeoutError(f"{cwd}: git took longer than {limit:g} s")
    return Output(code, bytes(out), err.text())


async def open_worktree(cwd: str | os.PathLike[str]) -> Worktree:
    """Find the working tree around `cwd`, and raise `CheckpointError` without one.

    git is asked about the repository.  Where it fails, takes too long, or names another directory, the repository is
    damaged or gone, and the store alone is used.
    """
    where = os.path.abspath(os.fspath(cwd))
    known = remembered(where)
    if known is not None and lost_tree(where, above=known.top) is None:
        worktree = Worktree(known.top, known.object_format, known.repository, known.objects, _text_of(known.exclude))
        worktree.settings, worktree.no_hooks = known.settings, known.hooks
    else:
        worktree = await _asked(where)
    worktree.leave_irregular_excludes()
    return worktree


async def _asked(where: str) -> Worktree:
    ask = ("--show-toplevel", "--absolute-git-dir", "--git-path", "objects", "--git-path", "info/exclude")
    try:
        found = await run_git(
            "rev-parse", *ask, "--show-object-format", cwd=where, env=git_environment(where), limit=ASKING
        )
    except GitTimeoutError as exc:
        found = Output(1, b"", str(exc))
    answers = os.fsdecode(found.out).splitlines()
    if not found.code and len(answers) != 5:
        raise CheckpointError(f"{where}: checkpoints need a repository whose path has no line break")
    top, repository, objects, exclude, object_format = answers if not found.code else [""] * 5
    own = lost_tree(where, above=top or None)
    if own is None and found.code:
        own = _own_tree(where, found.err)
        if own is None:
            raise CheckpointError(_missing_worktree(where, found.err))
    if own is None and not _belongs(top, repository):
        # git follows `core.worktree` of the repository.  A restore there could write outside of the project.
        own = working_tree(where)
        if own is None:
            raise CheckpointError(f"{where}: {repository} names {top} as its working tree, and is not in it")
    if own is not None:
        return _alone(os.path.realpath(own))
    objects, exclude = os.path.join(where, objects), os.path.join(where, exclude)
    kept = format_of(store_of(top), object_format)
    # git cannot borrow objects that are named by another hash.
    borrowed = objects if kept == object_format else ""
    worktree = Worktree(top, kept, repository, borrowed, _text_of(exclude))
    return await _with_settings(worktree, borrowed, exclude)


def _alone(top: str) -> Worktree:
    """Return a working tree whose repository is not used, with the user's settings at the last checkpoint."""
    worktree = Worktree(top, format_of(store_of(top)))
    known = former(worktree.store)
    worktree.settings = () if known is None else known.settings
    return worktree


def _own_tree(where: str, err: str) -> str | None:
    """Return the directory around `where` with a `.git` that git finds but cannot use, `None` for any other error."""
    top = working_tree(where)
    if top is None or "not a git repository" in err or "dubious ownership" in err:
        return None
    return None if f"{os.sep}.git{os.sep}" in f"{where}{os.sep}" else top


async def _with_settings(worktree: Worktree, objects: str, exclude: str) -> Worktree:
    """Give a working tree the user's settings that apply to checkpoints too."""
    environment = git_environment(worktree.top)
    settings = await run_git("config", "--list", "--show-origin", "-z", cwd=worktree.top, env=environment)
    if settings.code:
        return _alone(worktree.top)
    fields = names_in(settings.out)
    pairs = [(name, value) for name, _, value in (each.partition("\n") for each in fields[1::2])]
    for name, value in pairs:
        if _FOLLOWED.fullmatch(name):
            worktree.settings += ("-c", f"{name}={value}")
    worktree.no_hooks = without_hooks(name for name, _ in pairs)
    if worktree.repository is not None and not any(name.startswith(("include.", "includeif.")) for name, _ in pairs):
        origins = {each.removeprefix("file:") for each in fields[::2] if each.startswith("file:")}
        worktree.facts = Facts(
            worktree.top,
            worktree.repository,
            objects,
            exclude,
            worktree.object_format,
            worktree.settings,
            worktree.no_hooks,
            sources(worktree.top, worktree.repository, origins),
            circumstances(worktree.top),
        )
    return worktree


def _text_of(exclude: str) -> str:
    """Return the repository's own file of ignored paths, empty if there is none."""
    try:
        if not os.path.isfile(exclude):
            return ""
        return read_regular(exclude, exclude, _MOST_EXCLUDED).decode("utf-8", "surrogateescape")
    except (OSError, StorageError):
        return ""


def _belongs(top: str, private: str) -> bool:
    """Tell whether the `.git` of a working tree is this git directory, or names it.

    A repository from elsewhere could name the home directory as its working tree, and bring checkpoints of it along.
    """
    return os.path.realpath(private_directory(os.path.join(top, ".git"))) == os.path.realpath(private)


def private_directory(own: str) -> str:
    """Return the git directory that a `.git` is or names."""
    # The file of a linked working tree or a submodule holds one line, the path of the git directory.
    with suppress(OSError, StorageError):
        line = os.fsdecode(read_regular(own, own, 65536).removeprefix(b"gitdir: ").rstrip(b"\r\n"))
        return os.path.join(os.path.dirname(own), line)
    return own


def _missing_directory(where: str) -> str:
    """Return the error text for a directory that is gone; its checkpoints may still be there."""
    here = where
    while here != os.path.dirname(here) and not os.path.isdir(here):
        if top_of(store_of(here)) is not None:
            return f"{here} is gone, and its checkpoints are kept: `mkdir` it, and `agent-hooks undo` works in it"
        here = os.path.dirname(here)
    return f"{where}: there is no such directory"


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
