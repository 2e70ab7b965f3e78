"""What several commands share: where to work, which hooks there are, and where they came from."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_hooks.guards import BUILTIN, builtin_guards
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import GuardSettings, read_sections
from agent_hooks.hooks.imports import files_of
from agent_hooks.hooks.loader import HOOKS_DIRECTORY, FoundHooks, LoadError, LoadResult, find_hooks, load_found
from agent_hooks.installs.generated import DIRECTORY
from agent_hooks.server.sources import Sources
from agent_hooks.settings import PROJECT_DIRECTORY, SETTINGS_FILE, Settings, agent_home, load_settings, project_home
from agent_hooks.transformers.command_intercept import (
    INTERCEPT_FILE,
    TRANSFORMERS_DIRECTORY,
    Transformers,
    load_transformers,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from agent_hooks.redaction import Redactor


class Setup(Struct, frozen=True):
    """What a command works with."""

    cwd: str
    settings: Settings
    loaded: LoadResult
    hook_files: tuple[str, ...]
    transformers: Transformers

    @property
    def redactor(self) -> Redactor | None:
        """What hides secrets in results, as the settings say."""
        if not (settings := self.settings.redaction).enabled:
            return None
        from agent_hooks.redaction import Redactor  # here, because its patterns take a while

        return Redactor(patterns=settings.patterns, report_only=settings.report_only)

    @property
    def errors(self) -> list[LoadError]:
        """What could not be loaded, hooks and then transformers."""
        return [*self.loaded.errors, *self.transformers.errors]

    def source(self, path: str) -> str:
        """Tell where a hook was named, or a transformer: `global`, `project`, `settings` or `--hook`."""
        directory = os.path.dirname(path)
        if directory in (os.path.join(agent_home(), HOOKS_DIRECTORY), agent_home()):
            return "global"
        project = os.path.join(self.cwd, PROJECT_DIRECTORY)
        if directory in (os.path.join(project, HOOKS_DIRECTORY), project):
            return "project"
        return "--hook" if path in self.hook_files else "settings"


class Found(Struct, frozen=True):
    """What `load` makes a `Setup` of."""

    cwd: str
    settings: Settings
    hook_files: tuple[str, ...]
    hooks: FoundHooks


def find(cwd: str, hook_files: Sequence[str]) -> Found:
    """Read the settings and find all hooks; raises `SettingsError`.

    `hook_files` are relative to the shell's directory, not to `cwd`.
    """
    cwd = os.path.abspath(cwd)
    files = tuple(os.path.abspath(file) for file in hook_files)
    settings = load_settings(cwd=cwd)
    return Found(cwd, settings, files, find_hooks([*settings.hooks, *files], cwd=cwd))


async def load(found: Found) -> Setup:
    """Load the hooks, and the transformers."""
    loaded = await load_found(found.hooks, cwd=found.cwd)
    return Setup(found.cwd, found.settings, loaded, found.hook_files, load_transformers(cwd=found.cwd))


async def set_up(cwd: str, hook_files: Sequence[str]) -> Setup:
    """Read the settings and load all hooks and transformers, as `find` finds them; raises `SettingsError`."""
    return await load(find(cwd, hook_files))


def sources_of(setup: Setup) -> Sources:
    """Return the files that hooks, settings and transformers come from, there or not yet."""
    files = [file for hook in setup.loaded.hooks if hook.module is not None for file in files_of(hook.module)]
    return sources_at(setup.cwd, setup.settings.hooks, [*files, *(error.path for error in setup.loaded.errors)])


def sources_at(cwd: str, hooks: Sequence[str] = (), files: Sequence[str] = ()) -> Sources:
    """Return the files of hooks, settings and transformers in `cwd` and the agent home, and what else is named."""
    homes = tuple(dict.fromkeys((agent_home(), os.path.join(cwd, PROJECT_DIRECTORY))))
    listed = [os.path.join(home, name) for home in homes for name in (SETTINGS_FILE, INTERCEPT_FILE)]
    folders = [os.path.join(home, name) for home in homes for name in (HOOKS_DIRECTORY, TRANSFORMERS_DIRECTORY)]
    for path in (*hooks, *files):  # a package is all that is in its directory
        elsewhere = not any(path.startswith(folder + os.sep) for folder in folders)
        if elsewhere:
            (folders if os.path.isdir(path) else listed).append(path)
    return Sources(dict.fromkeys(listed), folders)


def guard_settings(cwd: str) -> GuardSettings:
    """Return the guards' section of the settings; raises `SettingsError`."""
    return read_sections(load_settings(cwd=cwd).guards, tuple(BUILTIN))


def agent_guards(
    settings: GuardSettings, cwd: str, hook_files: Sequence[str] = (), *, hooks: Sequence[str] | None = None
) -> list[Guard]:
    """Return the guards of an agent that works in `cwd`; they also keep what it is run with from being changed.

    That is its settings, hooks, transformers and what other agents run; `hook_files`: absolute paths of more hooks;
    `hooks`: those that the settings name, where they are known.
    """
    names = (HOOKS_DIRECTORY, SETTINGS_FILE, INTERCEPT_FILE, TRANSFORMERS_DIRECTORY)
    own = [os.path.join(folder, name) for folder in (agent_home(), project_home(cwd)) for name in names]
    own += [
        os.path.join(agent_home(), DIRECTORY),
        *(load_settings(cwd=cwd).hooks if hooks is None else hooks),
        *hook_files,
    ]
    return builtin_guards(settings, protected=list(dict.fromkeys([*own, *map(os.path.realpath, own)])))


def console() -> Console:
    """Return a console for tables on stdout: as wide as the terminal, and wide enough when there is none."""
    from rich.console import Console  # here, for it is large, and most commands need none

    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 200)


def count(number: int, thing: str) -> str:
    """Return `1 handler`, `2 handlers`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def unused_hooks(cwd: str, remedy: str = "add --cwd {}") -> str | None:
    """Return a warning when hooks lie above `cwd`, where nobody reads them, and none in it; `{}` is where they lie."""
    import shlex  # here, for no event of an agent needs them
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


def short(path: str | Path) -> str:
    """Return a path as a person would write it: relative to the current directory when it lies below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
