"""The sources of a project: its settings, hooks, guards and transformers, found and loaded for a command.

Each event of another agent pays for the imports here, so the rarely used ones are made where they are used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_hooks.guards import BUILTIN, builtin_guards
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import GuardSettings, read_sections
from agent_hooks.hooks.imports import files_of
from agent_hooks.hooks.loader import HOOKS_DIRECTORY, FoundHooks, LoadError, LoadResult, find_hooks, load_found
from agent_hooks.installs.generated import DIRECTORY
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.sources import Sources
from agent_hooks.settings import PROJECT_DIRECTORY, SETTINGS_FILE, Settings, agent_home, load_settings, project_home
from agent_hooks.transformers.command_intercept import (
    INTERCEPT_FILE,
    TRANSFORMERS_DIRECTORY,
    Transformers,
    load_transformers,
)

if TYPE_CHECKING:
    from agent_hooks.dispatch.context import Mode
    from agent_hooks.redaction import Redactor
    from agent_hooks.transformers.base import ConfiguredTransformer
    from agent_hooks.ui.base import UI


class Setup(Struct, frozen=True):
    """The loaded sources that a command works with; `cwd` and `hook_files` are absolute."""

    cwd: str
    settings: Settings
    loaded: LoadResult
    hook_files: tuple[str, ...]
    transformers: Transformers

    @property
    def redactor(self) -> Redactor | None:
        """The redactor that the settings ask for, `None` when redaction is off."""
        if not (settings := self.settings.redaction).enabled:
            return None
        # Imported here, because compiling its patterns takes a while.
        from agent_hooks.redaction import Redactor

        return Redactor(patterns=settings.patterns, report_only=settings.report_only)

    @property
    def guard_settings(self) -> GuardSettings:
        """The guards' section of the settings; raises `SettingsError`."""
        return read_sections(self.settings.guards, tuple(BUILTIN))

    @property
    def errors(self) -> list[LoadError]:
        """The hooks and then the transformers that failed to load."""
        return [*self.loaded.errors, *self.transformers.errors]

    def source(self, path: str) -> str:
        """Tell where a hook or transformer comes from: `global`, `project`, `settings` or `--hook`."""
        directory = os.path.dirname(path)
        if directory in (os.path.join(agent_home(), HOOKS_DIRECTORY), agent_home()):
            return "global"
        project = os.path.join(self.cwd, PROJECT_DIRECTORY)
        if directory in (os.path.join(project, HOOKS_DIRECTORY), project):
            return "project"
        return "--hook" if path in self.hook_files else "settings"

    def warnings(self) -> list[str]:
        """Return a sentence for hooks above the directory, and for each expired guard rule; raises `SettingsError`."""
        # Imported here, because few commands warn.
        from datetime import date

        from agent_hooks.guards.config import expired

        unused = unused_hooks(self.cwd)
        return [*([unused] if unused else []), *expired(self.guard_settings, date.today())]


class FoundSources(Struct, frozen=True):
    """The settings, and the hook files that were found but not loaded."""

    cwd: str
    settings: Settings
    hook_files: tuple[str, ...]
    hooks: FoundHooks


def find_sources(cwd: str, hook_files: Sequence[str]) -> FoundSources:
    """Read the settings and find all hooks; raises `SettingsError`.

    `hook_files` are relative to the shell's directory, not to `cwd`.
    """
    cwd = os.path.abspath(cwd)
    files = tuple(os.path.abspath(file) for file in hook_files)
    settings = load_settings(cwd=cwd)
    return FoundSources(cwd, settings, files, find_hooks([*settings.hooks, *files], cwd=cwd))


async def load(found: FoundSources) -> Setup:
    """Load the hooks and the transformers."""
    loaded = await load_found(found.hooks, cwd=found.cwd)
    return Setup(found.cwd, found.settings, loaded, found.hook_files, load_transformers(cwd=found.cwd))


async def set_up(cwd: str, hook_files: Sequence[str]) -> Setup:
    """Find and load all sources; the arguments are those of `find_sources`.  Raises `SettingsError`."""
    return await load(find_sources(cwd, hook_files))


def make_runner(
    setup: Setup,
    mode: Mode,
    *,
    ui: UI | None,
    guards: Iterable[Guard],
    transformers: Iterable[ConfiguredTransformer] | None = None,
    redactor: Redactor | None = None,
    cwd: str | None = None,
    session_file: str | None = None,
    session_id: str | None = None,
) -> HookRunner:
    """Return the runner of the loaded hooks, with the deadlines of the settings.

    A hook that failed to load blocks every tool call.  `transformers`, `cwd`: in the place of those of `setup`; the
    other arguments are those of `HookRunner`.
    """
    return HookRunner(
        setup.loaded,
        cwd=setup.cwd if cwd is None else cwd,
        timeout=setup.settings.hook_timeout,
        tool_call_timeout=setup.settings.tool_call_timeout,
        ui=ui,
        mode=mode,
        session_file=session_file,
        session_id=session_id,
        guards=guards,
        transformers=setup.transformers.configured if transformers is None else transformers,
        redactor=redactor,
    )


def sources_of(setup: Setup) -> Sources:
    """Return the files that the sources were loaded from, and those where a source may appear later."""
    files = [file for hook in setup.loaded.hooks if hook.module is not None for file in files_of(hook.module)]
    return sources_at(setup.cwd, setup.settings.hooks, [*files, *(error.path for error in setup.loaded.errors)])


def sources_at(cwd: str, hooks: Sequence[str] = (), files: Sequence[str] = ()) -> Sources:
    """Return the files for settings, hooks and transformers in `cwd` and the agent home, and those named here."""
    homes = tuple(dict.fromkeys((agent_home(), os.path.join(cwd, PROJECT_DIRECTORY))))
    listed = [os.path.join(home, name) for home in homes for name in (SETTINGS_FILE, INTERCEPT_FILE)]
    folders = [os.path.join(home, name) for home in homes for name in (HOOKS_DIRECTORY, TRANSFORMERS_DIRECTORY)]
    for path in (*hooks, *files):
        elsewhere = not any(path.startswith(folder + os.sep) for folder in folders)
        # A hook that is a package stands for all files in its directory.
        if elsewhere:
            (folders if os.path.isdir(path) else listed).append(path)
    return Sources(dict.fromkeys(listed), folders)


def agent_guards(
    settings: GuardSettings, cwd: str, hook_files: Sequence[str] = (), *, hooks: Sequence[str] | None = None
) -> list[Guard]:
    """Return the guards of an agent that works in `cwd`; they also protect the files that control it.

    Protected are its settings, hooks, transformers and the generated files; `hook_files`: absolute paths of more
    hooks; `hooks`: the hooks that the settings name, if the caller has read them.
    """
    names = (HOOKS_DIRECTORY, SETTINGS_FILE, INTERCEPT_FILE, TRANSFORMERS_DIRECTORY)
    own = [os.path.join(folder, name) for folder in (agent_home(), project_home(cwd)) for name in names]
    own += [
        os.path.join(agent_home(), DIRECTORY),
        *(load_settings(cwd=cwd).hooks if hooks is None else hooks),
        *hook_files,
    ]
    return builtin_guards(settings, protected=list(dict.fromkeys([*own, *map(os.path.realpath, own)])))


def unused_hooks(cwd: str, remedy: str = "add --cwd {}") -> str | None:
    """Return a warning when a directory above `cwd` has hooks and `cwd` has none: only those of `cwd` are loaded.

    `{}` in `remedy` becomes the directory above.
    """
    # Imported here, because no event of an agent needs them.
    import shlex
    from pathlib import Path

    here = Path(cwd)
    home = Path.home()
    if (here / PROJECT_DIRECTORY / HOOKS_DIRECTORY).is_dir():
        return None
    for parent in here.parents:
        if parent != home and (parent / PROJECT_DIRECTORY / HOOKS_DIRECTORY).is_dir():
            there = shlex.quote(os.path.relpath(parent))
            return f"the hooks of {parent} are not used here; to work there, {remedy.format(there)}"
    return None
