"""List the files that git would not ignore, and choose among them by globs; for find and grep.

git lists the files when it is installed and the directory is in a work tree.  Otherwise a walk of our own lists them, and
`pathspec` reads the `.gitignore` files; it differs from git only after rare lines like `!**`.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from anyio import from_thread, to_thread
from pathspec import GitIgnoreSpec

from agent_hooks.concurrency.process import stream
from agent_hooks.errors import count
from agent_hooks.host.tools.base import Refused
from agent_hooks.storage.files import StorageError, open_regular
from agent_hooks.storage.git import NO_PROGRAMS, git_environment, git_program

_MOST_ALTERNATIVES = 1000
_ALL_BELOW = re.compile(r"/\*\*(/?)[ \r]*\Z")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


async def list_files(directory: str, pattern: str | None = None, left_out: Excluding | None = None) -> list[str]:
    """Return the files and symlinks below `directory` that git does not ignore, sorted; relative to `directory`.

    `pattern`: a glob that the files have to fit; `left_out`: the files and directories to leave out.  An ignored
    directory is listed when it is `directory` itself.  Directories that cannot be read are left out.  Raises `Refused`
    for a glob with too many braces.
    """
    fits = glob(pattern) if pattern is not None else lambda _: True
    names = await _list(directory)
    out = left_out or Excluding(())
    return await to_thread.run_sync(lambda: sorted(name for name in names if fits(name) and not out(name)))


async def _list(directory: str) -> list[str]:
    names = await _git_files(directory)
    if names is None:
        return await to_thread.run_sync(lambda: list(_walk(directory)))
    files, repositories = await to_thread.run_sync(_sort_out, directory, names)
    # git lists a nested repository as one entry.
    for inner in repositories:
        files += [f"{inner}/{name}" for name in await _list(os.path.join(directory, inner))]
    return files


def _sort_out(directory: str, names: set[str]) -> tuple[list[str], list[str]]:
    """Return the files and the directories among `names`; a file that is in the index but deleted is left out."""
    files, directories = [], []
    for name in names:
        with suppress(OSError):
            mode = os.lstat(os.path.join(directory, name)).st_mode
            if stat.S_ISDIR(mode):
                directories.append(name.rstrip("/"))
            elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                files.append(name)
    return files, directories


# ---- git -------------------------------------------------------------------------------------------------------------


async def _git_files(directory: str) -> set[str] | None:
    """Return the names that git lists below `directory`.

    `None` when git is missing, the directory is in no work tree, or git ignores the directory.
    """
    git = git_program(directory)
    if git is None or await _git(git, directory, "check-ignore", "-q", ".") != (1, b""):
        # Exit code 0: the directory itself is ignored; 128: no work tree.
        return None
    code, output = await _git(git, directory, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    return {os.fsdecode(name) for name in output.split(b"\0") if name} if code == 0 else None


async def _git(git: str, directory: str, *args: str) -> tuple[int, bytes]:
    output = bytearray()
    argv = [git, *NO_PROGRAMS, "-C", directory, *args]
    env = git_environment(directory)
    code, _ = await stream(argv, cwd="/", stdout=output.extend, stderr=lambda _: None, env=env)
    return code, bytes(output)


# ---- our own walk ----------------------------------------------------------------------------------------------------


class _Ignore:
    """One `.gitignore` file: its directory and its patterns."""

    def __init__(self, directory: str, spec: GitIgnoreSpec) -> None:
        self._prefix = directory.rstrip("/") + "/"
        self._spec = spec

    def ignores(self, path: str) -> bool | None:
        """Tell whether `path` (absolute, a directory's ends with `/`) is ignored; `None` when no line matches it."""
        return self._spec.check_file(path.removeprefix(self._prefix)).include


def _walk(directory: str) -> Iterator[str]:
    todo = [(directory, _above(directory))]
    while todo:
        # A tree can be endless, and the call may have been aborted.
        from_thread.check_cancelled()
        here, ignores = todo.pop()
        ignores = [*_ignore_file(here), *ignores]
        for entry in _scan(here):
            is_directory = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or _ignored(entry.path + "/" * is_directory, ignores):
                continue
            if is_directory:
                todo.append((entry.path, ignores))
            elif entry.is_symlink() or entry.is_file():
                yield os.path.relpath(entry.path, directory)


def _scan(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    # No permission, or removed a moment ago; the other directories are listed all the same.
    except OSError:
        return []


def _ignored(path: str, ignores: list[_Ignore]) -> bool:
    """Tell whether `path` is ignored: the nearest `.gitignore` file with a matching line decides."""
    return next((ignored for each in ignores if (ignored := each.ignores(path)) is not None), False)


def _above(directory: str) -> list[_Ignore]:
    """Return the `.gitignore` files above `directory`, nearest first, up to the one beside `.git`."""
    found: list[_Ignore] = []
    here = directory
    while not os.path.lexists(os.path.join(here, ".git")):
        here, below = os.path.dirname(here), here
        if here == below:
            # No repository, so no directory above counts.
            return []
        found += _ignore_file(here)
    # When `directory` itself is ignored, the model asked for an ignored directory: then its files are listed.
    return [] if _ignored(directory + "/", found) else found


def _ignore_file(directory: str) -> list[_Ignore]:
    path = os.path.join(directory, ".gitignore")
    try:
        with open_regular(path, path) as file:
            # For pathspec, `a/**` matches the directory a/ itself too; for git it does not.  Both read `a/**/*` alike.
            lines = [_ALL_BELOW.sub(r"/**/*\1", line) for line in os.fsdecode(file.read()).split("\n")]
    # There is no such file, or git could not read it either.
    except (StorageError, OSError):
        return []
    return [_Ignore(directory, GitIgnoreSpec.from_lines(line for line in lines if _is_valid(line)))]


def _is_valid(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    # git ignores such a line too.
    except ValueError:
        return False
    return True


# ---- globs -----------------------------------------------------------------------------------------------------------


def glob(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether a relative path fits `pattern`: `*.py`, `src/**/*.py`, `*.{js,ts}`, `[ab]?`.

    `*` stays in one name, `**` spans any number of directories; a pattern without `/` matches the name alone.
    """
    alternatives = [_path_glob(each) for each in _alternatives(pattern)]
    return lambda path: any(fits(path) for fits in alternatives)


class Excluding:
    """The files to leave out: call it with a path.  `count`: how many files were left out.

    `patterns`: globs as in `glob`, for a file or a directory and all files in it; with a `/` at the end, for a directory
    only.  `below`: the searched directory, relative to the working directory: the patterns match its own path too.
    """

    def __init__(self, patterns: Sequence[str], below: str = "") -> None:
        self._patterns = [(glob(pattern.rstrip("/")), pattern.endswith("/")) for pattern in patterns]
        self._directories = {"": False}
        self._below = below
        self.count = 0

    def __call__(self, path: str) -> bool:
        """Tell whether a file is left out."""
        path = f"{self._below}/{path}".strip("/")
        left_out = bool(self._patterns) and (
            self._directory(os.path.dirname(path)) or self._fits(path, is_directory=False)
        )
        self.count += left_out
        return left_out

    def _directory(self, path: str) -> bool:
        todo = []
        while path not in self._directories:
            todo.append(path)
            path = os.path.dirname(path)
        left_out = self._directories[path]
        for each in reversed(todo):
            left_out = self._directories[each] = left_out or self._fits(each, is_directory=True)
        return left_out

    def _fits(self, path: str, *, is_directory: bool) -> bool:
        return any(fits(path) for fits, for_directories in self._patterns if is_directory or not for_directories)

    def note(self) -> str:
        """Return a line with the number of files that were left out, empty for none."""
        return f"[{count(self.count, 'file')} left out by exclude]" if self.count else ""


def excluding(patterns: Sequence[str], top: str, cwd: str) -> Excluding:
    """Return the files to leave out below `top`; the names of `cwd` and the directories above it are not matched."""
    top, cwd = os.path.realpath(top), os.path.realpath(cwd)
    return Excluding(patterns, "" if top == cwd else top.removeprefix(cwd.rstrip("/") + "/"))


def _alternatives(pattern: str) -> list[str]:
    done: list[str] = []
    todo = [pattern]
    while todo:
        if len(done) + len(todo) > _MOST_ALTERNATIVES:
            raise Refused(f"the glob {pattern} has more than {_MOST_ALTERNATIVES} alternatives; use fewer braces")
        each = todo.pop()
        if braces := _BRACES.search(each):
            todo += [each[: braces.start()] + option + each[braces.end() :] for option in braces[1].split(",")]
        else:
            done.append(each)
    return done


def _path_glob(pattern: str) -> Callable[[str], bool]:
    pattern = pattern.removeprefix("./")
    names = ["**", pattern] if "/" not in pattern else pattern.lstrip("/").split("/")
    # One matcher for each name, `None` for `**`; they are the states of an automaton, so no pattern is slow.
    steps = [None if name == "**" else re.compile(fnmatch.translate(name)).match for name in names]

    def reach(states: set[int]) -> set[int]:
        for state in sorted(states):
            while state < len(steps) and steps[state] is None:
                state += 1
                states.add(state)
        return states

    def fits(path: str) -> bool:
        states = reach({0})
        for name in path.split("/"):
            after = set()
            for state in states:
                if state < len(steps):
                    match = steps[state]
                    if match is None:
                        after.add(state)
                    elif match(name):
                        after.add(state + 1)
            states = reach(after)
        return len(steps) in states

    return fits
