"""Find hook files and packages, import them, and call their `register(api)`.

A file loads whole or not at all: one that fails leaves no handler, task or module behind, only an error with file, line
and traceback.
"""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agent_hooks.concurrency.deadlines import cancelled_class
from agent_hooks.concurrency.stepping import event_loop
from agent_hooks.dispatch.context import HookContext
from agent_hooks.dispatch.handlers import Handler
from agent_hooks.errors import HookUsageError, SettingsError, at, describe, os_reason, place_in, shown, traceback_text
from agent_hooks.hooks.api import HookAPI
from agent_hooks.hooks.imports import forget_module, import_hook, refresh_builtins
from agent_hooks.hooks.packages import INIT, is_hook_package, is_package
from agent_hooks.settings import (
    DEFAULT_TIMEOUT,
    SETTINGS_FILE,
    Approvals,
    dangling_link,
    resolve_path,
    source_trees,
    user_home,
)
from agent_hooks.storage.spelling import existing
from agent_hooks.trees import ApprovedFile, SourceTree, approved_file
from agent_hooks.values.answers import Block
from agent_hooks.values.events import ToolCall
from agent_hooks.values.tool import Tool

if TYPE_CHECKING:
    from pathlib import Path

HOOKS_DIRECTORY = "hooks"
NOT_APPROVED = (
    "the project's settings name it, and it is not among the approved files; read and approve: agent-hooks trust"
)
# Seconds for all `on_unload` functions of a hook that could not be loaded.
UNDO_TIMEOUT = 5.0


class LoadedHook(Struct, eq=False):
    """One loaded hook: `path` as given, `resolved_path` without symlinks, and the api it registered through."""

    path: str
    resolved_path: str
    name: str
    api: HookAPI
    module: ModuleType | None = None

    def __repr__(self) -> str:
        """Return the path only; the api and the module would be pages."""
        return f"LoadedHook({self.path!r})"

    @property
    def handlers(self) -> dict[str, list[Handler]]:
        """The subscribed handlers by event, in registration order."""
        return self.api.handlers

    @property
    def tools(self) -> list[Tool]:
        """The tools the hook offers."""
        return self.api.tools


class LoadError(Struct, frozen=True):
    """A hook that could not be loaded.

    `line` is the line that failed.  It is a line of `file`, one of a package's files, or of `path` if `file` is `None`.
    """

    path: str
    error: str
    line: int | None = None
    traceback: str = ""
    file: str | None = None

    def __str__(self) -> str:
        """Return `path:line: error`."""
        return f"{at(self.file or self.path, self.line)}: {self.error}"


class LoadResult(Struct, frozen=True):
    """The hooks that were loaded, and the errors of those that were not."""

    hooks: list[LoadedHook]
    errors: list[LoadError]

    def fail_closed(self) -> list[LoadedHook]:
        """Return the hooks, and for each that could not be loaded a gate that blocks every tool call.

        A broken file may have been meant to stop any of them.
        """
        return [*self.hooks, *(_gate_for(error) for error in self.errors)]


class FoundHooks(Struct, frozen=True):
    """The paths of hooks, the errors of directories that could not be read, and the trees that were searched."""

    paths: list[str]
    errors: list[LoadError]
    trees: tuple[SourceTree, ...] = ()


async def discover_and_load_hooks(
    configured_paths: Iterable[str | Path] = (),
    *,
    cwd: str | Path,
    home: str | Path | None = None,
    trust: Approvals | None = None,
) -> LoadResult:
    """Load the hooks of the agent home, of the project, and `configured_paths`, in that order.

    A file that is listed twice, directly or through a symlink, is loaded once, at its first position.  `~` stands for
    `home`.  A hook's mistake raises nothing; it becomes an entry of `errors`.  `trust`: only approved projects count, all
    of those that `cwd` is in; without it, the calling program vouches for `<cwd>/.agent`.
    """
    trees = source_trees(cwd, home) if trust is None else tuple(trust.trees(cwd))
    return await load_found(find_hooks(configured_paths, trees), cwd=cwd, home=home)


def find_hooks(configured_paths: Iterable[str | Path], trees: Iterable[SourceTree]) -> FoundHooks:
    """Return the paths of the hooks of `trees`, in that order, and then `configured_paths`."""
    trees = tuple(trees)
    errors: list[LoadError] = []
    paths = [path for tree in trees for path in _hook_files(tree, errors)]
    return FoundHooks([*paths, *map(str, configured_paths)], errors, trees)


async def load_found(found: FoundHooks, *, cwd: str | Path, home: str | Path | None = None) -> LoadResult:
    """Load the hooks that were found; if there are none, this does not suspend."""
    return await _load(found.paths, found.errors, cwd=cwd, home=home, trees=found.trees)


async def load_hooks(paths: Iterable[str | Path], *, cwd: str | Path) -> LoadResult:
    """Load the hooks at `paths`; a relative path starts at `cwd`.  See `discover_and_load_hooks`."""
    if isinstance(paths, str | os.PathLike):
        raise HookUsageError(f"load_hooks wants a list of paths: load_hooks([{str(paths)!r}], cwd=…)")
    return await _load([str(path) for path in paths], [], cwd=cwd, home=None)


# ---- finding ---------------------------------------------------------------------------------------------------------


def _hook_files(tree: SourceTree, errors: list[LoadError]) -> list[str]:
    """Return the hook files and packages of a tree, sorted; a name that starts with `.` or `_` is no hook."""
    directory = os.path.join(tree.directory, HOOKS_DIRECTORY)
    try:
        names = tree.names(directory)
    except FileNotFoundError:
        if link := dangling_link(directory):
            text = f"the hook directory cannot be read: {link} is a symlink to a missing file"
            errors.append(LoadError(directory, text))
        return []
    except OSError as exc:
        errors.append(LoadError(directory, f"the hook directory cannot be read: {os_reason(exc)}"))
        return []
    names = [name for name in names if name[0] not in "._"]
    paths = (os.path.join(directory, name) for name in names)
    return [path for path in paths if path.endswith(".py") or is_hook_package(path, tree)]


def _label(path: str, roots: list[tuple[str, str]]) -> str:
    """Return a path as a person would write it: relative to the project's directory, or with `~`."""
    for root, sign in roots:
        if path.startswith(root):
            return sign + path[len(root) :]
    return path


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _inspect(path: str, directories: dict[str, str]) -> tuple[str, str, str | None]:
    """Return `path` as it is spelled on disk, its real path, and the reason why it cannot be a hook, if there is one.

    `directories` caches the real paths of directories.
    """
    try:
        plain = stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        path, plain = existing(path), False
    if not plain:
        return path, os.path.realpath(path), _why_not_a_file(path)
    directory, name = os.path.split(path)
    if directory not in directories:
        directories[directory] = os.path.realpath(directory)
    return path, os.path.join(directories[directory], name), None


def _why_not_a_file(path: str) -> str | None:
    if os.path.islink(path) and not os.path.exists(path):
        return f"is a symlink to {os.readlink(path)}, which does not exist"
    if not os.path.exists(path):
        return "no such file"
    if os.path.isdir(path):
        if not is_package(path):
            return f"is a directory; a hook is a .py file, or a directory with an {INIT}"
        return "is a directory; its name must not end in .py" if path.endswith(".py") else None
    return None if os.path.isfile(path) else "is not a regular file; a hook is a .py file"


# ---- loading ---------------------------------------------------------------------------------------------------------


async def _load(
    paths: Iterable[str],
    errors: list[LoadError],
    *,
    cwd: str | Path,
    home: str | Path | None,
    trees: Sequence[SourceTree] = (),
) -> LoadResult:
    refresh_builtins()
    hooks: list[LoadedHook] = []
    seen: dict[str, bytes | None] = {}
    directories: dict[str, str] = {}
    base = os.path.abspath(cwd)
    named = _named_by_projects(trees)
    roots = [(base + os.sep, ""), (os.path.abspath(home or user_home()) + os.sep, "~/")]
    for path in paths:
        try:
            found = resolve_path(path, base=base, home=home)
            approved = _approved_hook(found, trees)
            if approved is None and found in named:
                errors.append(LoadError(path, NOT_APPROVED))
                continue
            if approved is None:
                found, resolved, problem = _inspect(found, directories)
            else:
                resolved, problem = approved.place, None
        # There is no such user, or there is a NUL in the name.
        except (SettingsError, ValueError) as exc:
            errors.append(LoadError(path, describe(exc)))
            continue
        if approved is None and not resolved.endswith(".py") and is_package(resolved):
            resolved = os.path.realpath(os.path.join(resolved, INIT))
        # The path of an approved file may lead over symlinks.
        real, data = (resolved, None) if approved is None else (os.path.realpath(approved.place), approved.data)
        # A file that becomes a link to another one after its approval is still the one that was approved.
        if real in seen and (data is None or seen[real] in (None, data)):
            continue
        seen[real] = data
        if problem is not None:
            errors.append(LoadError(path, problem))
            continue
        # A hook may need the event loop as soon as it is imported.
        await event_loop()
        files = None if approved is None else _bytes_of(trees)
        loaded = await _load_one(path, resolved, files, label=_label(found, roots))
        if isinstance(loaded, LoadedHook):
            hooks.append(loaded)
        else:
            errors.append(loaded)
    return LoadResult(hooks, errors)


def _approved_hook(path: str, trees: Iterable[SourceTree]) -> ApprovedFile | None:
    """Return the approved hook file at a path, or the `__init__.py` of the approved package there, if there is one."""
    return approved_file(trees, path) or approved_file(trees, os.path.join(path, INIT))


def _named_by_projects(trees: Iterable[SourceTree]) -> set[str]:
    """Return the paths that the settings of approved projects name: a file that is not approved must not count there."""
    settings = [
        (tree.directory, file.data)
        for tree in trees
        if tree.files is not None and (file := tree.files.get(os.path.join(tree.directory, SETTINGS_FILE)))
    ]
    if not settings:
        return set()
    # Imported here, because most projects have no settings.
    from agent_hooks.trust.manifest import named_in_settings

    return {path for directory, data in settings for path in named_in_settings(data, directory)}


def _bytes_of(trees: Iterable[SourceTree]) -> dict[str, bytes]:
    """Return the bytes of all approved files by their paths and by their places."""
    return {
        name: file.data
        for tree in trees
        if tree.files is not None
        for path, file in tree.files.items()
        for name in (path, file.place)
    }


async def _load_one(
    path: str, resolved: str, files: Mapping[str, bytes] | None, *, label: str
) -> LoadedHook | LoadError:
    """Import one hook and register it; return a `LoadError` for each way in which that can fail."""
    api = HookAPI(path, label)
    module: ModuleType | None = None
    try:
        with api.adopting():
            module = import_hook(resolved, files)
            await _register(_register_of(module), api)
    # A hook may raise anything, and its author reads of it in the `LoadError`; SystemExit must not end the agent.
    except BaseException as exc:
        await _undo(api, module)
        if isinstance(exc, (KeyboardInterrupt, cancelled_class())):
            raise
        package = os.path.basename(resolved) == INIT
        file, line = place_in(exc, os.path.dirname(resolved) if package else resolved)
        return LoadError(path, _load_text(exc), line, traceback_text(exc), file if package else None)
    return LoadedHook(path, resolved, _stem(path), api, module)


def _register_of(module: ModuleType) -> Callable[[HookAPI], Any]:
    register = getattr(module, "register", None)
    if callable(register):
        return register  # type: ignore[no-any-return]  # `_register` checks the result
    found = "register is not callable" if hasattr(module, "register") else "there is no register"
    raise HookUsageError(f"{found}: a hook defines `def register(api): ...`")


async def _register(register: Callable[[HookAPI], Any], api: HookAPI) -> None:
    result = register(api)
    if result is None or not inspect.isawaitable(result):
        return
    # Imported here, because it is large, and few hooks have anything to wait for.
    import anyio

    with anyio.move_on_after(DEFAULT_TIMEOUT) as deadline:
        await result
    if deadline.cancelled_caught:
        raise HookUsageError(f"register did not end within {DEFAULT_TIMEOUT:g} s; start long work with api.start_task")


async def _undo(api: HookAPI, module: ModuleType | None) -> None:
    """Remove everything that a failed hook had set up."""
    api.handlers.clear()
    api.queued_tasks.clear()
    if api.unload_callbacks:
        # Imported here, as in `_register`.
        import anyio

        # The author reads only the first failure, the one that made the hook fail.
        await api.unload(_ignore, deadline=anyio.current_time() + UNDO_TIMEOUT, seconds=UNDO_TIMEOUT)
    if module is not None:
        forget_module(module)


def _ignore(callback: object, failure: BaseException) -> None:
    """Ignore a failure while a hook is taken back."""


def _load_text(exc: BaseException) -> str:
    if isinstance(exc, SyntaxError):
        return f"{type(exc).__name__}: {exc.msg}"
    if isinstance(exc, SystemExit):
        code = "" if exc.code is None else shown(exc.code)
        return f"called sys.exit({code}) while loading; a hook must not end the agent"
    return describe(exc)


def _gate_for(error: LoadError) -> LoadedHook:
    api = HookAPI(error.path)

    def could_not_be_loaded(event: ToolCall, ctx: HookContext) -> Block:
        return Block(f"this hook could not be loaded, and might have blocked the call: {error}; mend or remove it")

    api.on("tool_call", could_not_be_loaded, inline=True)
    return LoadedHook(error.path, error.path, _stem(error.path), api)
