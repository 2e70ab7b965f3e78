"""Load hooks, inside of the agent or in processes of their own: the entry points of programs and of the commands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from agent_hooks.concurrency.stepping import event_loop
from agent_hooks.errors import (
    AgentHooksError,
    HookUsageError,
    SettingsError,
    describe,
    traceback_text,
)
from agent_hooks.hook_packages import INIT, is_package
from agent_hooks.hooks.api import FORMER, HookAPI
from agent_hooks.hooks.bytecode import contents
from agent_hooks.hooks.choosing import leave_out
from agent_hooks.hooks.finding import (
    FoundHooks,
    approved_bytes,
    approved_hook,
    find_hooks,
    inspect_path,
    label_of,
    named_by_projects,
)
from agent_hooks.hooks.imports import refresh_builtins
from agent_hooks.hooks.loaded import LoadedHook, LoadError, LoadResult, stem
from agent_hooks.hooks.registering import failed_load, load_module, take_back
from agent_hooks.isolation.mode import IsolationError, mode_of
from agent_hooks.settings import (
    Approvals,
    HookIsolation,
    IsolationSettings,
    agent_home,
    disabled_hooks,
    resolve_path,
    source_trees,
    user_home,
)
from agent_hooks.trees import SourceTree
from agent_hooks.trust.header import LOCK, Header, HeaderError, header_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_hooks.isolation.dependencies import Dependencies
    from agent_hooks.isolation.launch import Launch, Limits

NOT_APPROVED = (
    "the project's settings name it, and it is not among the approved files; read and approve: agent-hooks trust"
)
MIB = 1 << 20


async def discover_and_load_hooks(
    configured_paths: Iterable[str | Path] = (),
    *,
    cwd: str | Path = ".",
    home: str | Path | None = None,
    trust: Approvals | None = None,
    isolation: IsolationSettings = IsolationSettings(),  # noqa: B008  # it is frozen
) -> LoadResult:
    """Load the hooks of the agent home, of the project at `cwd`, and `configured_paths`, in that order.

    Without arguments, the project is the working directory.  A file that is listed twice, directly or through a
    symlink, is loaded once, at its first position.  `~` stands for `home`.  A hook's mistake raises nothing; it becomes
    an entry of `errors`; so do settings of the person that cannot be read.  A hook that they disable is left out, and
    stands in `disabled` of the result.  `trust`: only approved projects count, all of those that `cwd` is in; without
    it, the calling program vouches for `<cwd>/.agent`.  `isolation`: which hooks get a process of their own, beside
    those that ask for it in their file; `Settings` has the person's.
    """
    trees = source_trees(cwd, home) if trust is None else tuple(trust.trees(cwd))
    found = find_hooks(configured_paths, trees)
    try:
        found = leave_out(found, disabled_hooks(trees, home))
    except SettingsError as exc:
        # The directory of the settings may be that of the hooks, and then it is named already.
        found.errors.extend([] if found.errors else [LoadError(exc.path, exc.problem, exc.line)])
    loaded = await load_found(found, cwd=cwd, home=home, isolation=isolation)
    return replace(loaded, disabled=found.disabled)


async def load_found(
    found: FoundHooks,
    *,
    cwd: str | Path,
    home: str | Path | None = None,
    isolation: IsolationSettings = IsolationSettings(),  # noqa: B008  # it is frozen
    former: bool = False,
) -> LoadResult:
    """Load the hooks that were found.  Without any, this does not suspend.

    `former`: they are former versions.
    """
    return await _load(
        found.paths, found.errors, cwd=cwd, home=home, trees=found.trees, isolation=isolation, former=former
    )


async def load_hooks(
    paths: Iterable[str | Path],
    *,
    cwd: str | Path = ".",
    isolation: IsolationSettings = IsolationSettings(),  # noqa: B008  # it is frozen
) -> LoadResult:
    """Load the hooks at `paths`; a relative path starts at `cwd`.  See `discover_and_load_hooks`."""
    if isinstance(paths, str | os.PathLike):
        raise HookUsageError(f"load_hooks wants a list of paths: load_hooks([{str(paths)!r}], cwd=…)")
    return await _load([str(path) for path in paths], [], cwd=cwd, home=None, isolation=isolation)


async def _load(
    paths: Iterable[str],
    errors: list[LoadError],
    *,
    cwd: str | Path,
    home: str | Path | None,
    trees: Sequence[SourceTree] = (),
    isolation: IsolationSettings,
    former: bool = False,
) -> LoadResult:
    refresh_builtins()
    hooks: list[LoadedHook] = []
    seen: dict[str, bytes | None] = {}
    directories: dict[str, str] = {}
    base = os.path.abspath(cwd)
    named = named_by_projects(trees)
    roots = [(base + os.sep, ""), (os.path.abspath(home or user_home()) + os.sep, "~/")]
    for path in paths:
        if path.startswith("module:"):
            # Imported here, because few settings name a module.
            from agent_hooks.hook_entries import why_no_module

            errors.append(LoadError(path, why_no_module(path)))
            continue
        try:
            found = resolve_path(path, base=base, home=home)
            approved = approved_hook(found, trees)
            if approved is None and found in named:
                errors.append(LoadError(path, NOT_APPROVED))
                continue
            if approved is None:
                found, resolved, problem = inspect_path(found, directories)
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
        files = None if approved is None else approved_bytes(trees)
        label, wanted = label_of(found, roots), isolation.of(found, resolved, real)
        name, label = (f"{path} (former version)", f"{FORMER}{label}") if former else (path, label)
        try:
            loaded = await _load_one(
                name, resolved, files, label=label, isolation=wanted, cwd=base, home=agent_home(home)
            )
        # Ctrl-C or a cancellation: nothing of the other hooks may stay behind either.
        except BaseException:
            await take_all_back(hooks)
            raise
        if isinstance(loaded, LoadedHook):
            loaded.former_of = path if former else ""
            hooks.append(loaded)
        else:
            errors.append(loaded)
    return LoadResult(hooks, errors)


async def take_all_back(hooks: Sequence[LoadedHook]) -> None:
    """Unload hooks that no runner has got."""
    for hook in reversed(hooks):
        await take_back(hook.api, hook.module)
        if hook.process is not None:
            hook.process.abandon()


async def _load_one(
    path: str,
    resolved: str,
    files: Mapping[str, bytes] | None,
    *,
    label: str,
    isolation: HookIsolation,
    cwd: str,
    home: str,
) -> LoadedHook | LoadError:
    """Import one hook and register it; return a `LoadError` for each way in which that can fail."""
    header = None
    try:
        source = contents(resolved) if files is None else files[resolved]
        isolated = mode_of(source, isolation.mode) == "process"
        if isolated:
            header = header_of(source)
    except (IsolationError, HeaderError) as exc:
        return LoadError(path, str(exc), exc.line)
    except OSError:
        # The import names the reason.
        isolated = isolation.mode == "process"
    # The parser may fail on a strange file in any way.  Its author reads of it, and the file blocks every tool call.
    except Exception as exc:
        return LoadError(path, f"its mode and its header cannot be read: {describe(exc)}", None, traceback_text(exc))
    api = HookAPI(path, label)
    if isolated:
        needed = None if header is None else Needed(header, cwd, home)
        return await _load_isolated(api, path, resolved, files, isolation, needed)
    loaded = await load_module(api, resolved, files)
    if loaded.failure is not None:
        return failed_load(loaded.failure, path, resolved)
    return LoadedHook(path, resolved, stem(path), api, loaded.module)


class Needed(NamedTuple):
    """The header of a hook, the working directory of the agent, and the agent home."""

    header: Header
    cwd: str
    home: str


async def _launch_of(
    resolved: str, files: Mapping[str, bytes] | None, limits: Limits, needed: Needed | None
) -> tuple[Launch, Dependencies | None]:
    """Return how the process of a hook is started, and its dependencies; raises `AgentHooksError`."""
    from agent_hooks.isolation.launch import own_launch

    if needed is None:
        return own_launch(limits), None
    from agent_hooks.isolation.dependencies import dependencies_of, launch_with, lock_beside

    lock = lock_beside(resolved) if files is None else files.get(resolved + LOCK)
    dependencies = dependencies_of(resolved, needed.header, lock, needed.home)
    return await launch_with(dependencies, limits=limits, cwd=needed.cwd), dependencies


async def _load_isolated(
    api: HookAPI,
    path: str,
    resolved: str,
    files: Mapping[str, bytes] | None,
    isolation: HookIsolation,
    needed: Needed | None,
) -> LoadedHook | LoadError:
    """Start the process of a hook, and register stand-ins for its registrations there."""
    # Imported here and below, because most hooks run inside of the agent.
    from agent_hooks.isolation.failures import RemoteError
    from agent_hooks.isolation.launch import Limits
    from agent_hooks.isolation.loading import Source
    from agent_hooks.isolation.process import HookProcess
    from agent_hooks.isolation.proxies import Proxies

    proxies = Proxies(api)
    source = Source(path, resolved, api.label, None if files is None else dict(files))
    memory = None if isolation.memory is None else isolation.memory * MIB
    limits = Limits(memory, isolation.cpu, isolation.files)
    try:
        how, dependencies = await _launch_of(resolved, files, limits, needed)
        process = HookProcess(how, source, lambda found: proxies.update(process, found))
        await process.load()
    except RemoteError as exc:
        text, traceback, file, line = exc.failure.text, exc.failure.traceback, exc.failure.file, exc.failure.line
        return LoadError(path, text, line, traceback, file)
    except AgentHooksError as exc:
        return LoadError(path, str(exc))
    # Limits, a lock file or an environment may fail in any way: as in `_load_one`.
    except Exception as exc:
        return LoadError(path, f"its process cannot be started: {describe(exc)}", None, traceback_text(exc))
    return LoadedHook(path, resolved, stem(path), api, None, process, dependencies=dependencies)
