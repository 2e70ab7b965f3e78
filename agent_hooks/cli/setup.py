"""The sources of a project: its settings, hooks, guards and transformers, found and loaded for a command.

Each event of another agent pays for the imports here, so the rarely used ones are made where they are used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

import agent_hooks
from agent_hooks.guards import BUILTIN, builtin_guards
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import GuardSettings, read_sections
from agent_hooks.hooks.bytecode import cache_directory
from agent_hooks.hooks.imports import files_of
from agent_hooks.hooks.loader import HOOKS_DIRECTORY, FoundHooks, LoadError, LoadResult, find_hooks, load_found
from agent_hooks.installs.generated import DIRECTORY
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.client import directory
from agent_hooks.server.sources import Sources
from agent_hooks.settings import PROJECT_DIRECTORY, SETTINGS_FILE, Settings, agent_home, merge_settings, read_file
from agent_hooks.storage.digests import sha256
from agent_hooks.transformers.command_intercept import (
    INTERCEPT_FILE,
    TRANSFORMERS_DIRECTORY,
    Transformers,
    load_transformers,
)
from agent_hooks.trust.manifest import absolute
from agent_hooks.trust.place import Place
from agent_hooks.trust.policy import Trust, TrustedSources
from agent_hooks.trust.store import STORE
from agent_hooks.trust.unlocked import STATE

if TYPE_CHECKING:
    from agent_hooks.dispatch.context import Mode
    from agent_hooks.records import Records, TrustFacts
    from agent_hooks.redaction import Redactor
    from agent_hooks.transformers.base import ConfiguredTransformer
    from agent_hooks.ui.base import UI


class Setup(Struct, frozen=True):
    """The loaded sources that a command works with; `cwd` and `hook_files` are absolute."""

    cwd: str
    sources: TrustedSources
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

    def guards(self, settings: GuardSettings | None = None, sealed: Sequence[str] = ()) -> list[Guard]:
        """Return the guards of an agent that works here; `sealed`: absolute paths that it must never write either.

        `settings`: in the place of those of the settings files.  Raises `SettingsError`.
        """
        settings = self.guard_settings if settings is None else settings
        return agent_guards(settings, self.sources.place, [*self.settings.hooks, *self.hook_files], sealed=sealed)

    @property
    def errors(self) -> list[LoadError]:
        """The hooks and then the transformers that failed to load."""
        return [*self.loaded.errors, *self.transformers.errors]

    def source(self, path: str) -> str:
        """Tell where a hook or transformer comes from: `global`, `project`, `settings` or `--hook`."""
        directory = os.path.dirname(path)
        for tree in self.sources.trees:
            if directory in (os.path.join(tree.directory, HOOKS_DIRECTORY), tree.directory):
                return "global" if tree.project is None else "project"
        return "--hook" if path in self.hook_files else "settings"

    @property
    def messages(self) -> list[str]:
        """A sentence without harm for each project that waits for approval; a stranger may have named its directory."""
        if not (found := self.sources.messages):
            return []
        # Imported here, because most projects have nothing that waits.
        from agent_hooks.cli.screen.marked import one_line

        return list(map(one_line, found))

    def warnings(self) -> list[str]:
        """Return a sentence for each project that waits for approval, ignored section, and expired guard rule.

        Raises `SettingsError`.
        """
        # Imported here, because few commands warn.
        from datetime import date

        from agent_hooks.guards.config import expired

        return [*self.messages, *self.settings.ignored, *expired(self.guard_settings, date.today())]


class FoundSources(Struct, frozen=True):
    """The settings, and the hook files that were found but not loaded."""

    cwd: str
    sources: TrustedSources
    settings: Settings
    hook_files: tuple[str, ...]
    hooks: FoundHooks


def find_sources(cwd: str, hook_files: Sequence[str], sources: TrustedSources | None = None) -> FoundSources:
    """Read the settings and find all hooks; raises `SettingsError`.

    `hook_files` are relative to the shell's directory, not to `cwd`; `sources`: the trees that count, if the caller has
    asked about them.
    """
    cwd = os.path.abspath(cwd)
    files = tuple(os.path.abspath(file) for file in hook_files)
    found = Trust().sources(cwd) if sources is None else sources
    settings = merge_settings(found.trees)
    hooks = find_hooks([*settings.hooks, *files], found.trees)
    # A set that a person must have approved, and has not, blocks every tool call, as a hook that fails to load does.
    hooks.errors.extend(LoadError(each.directory, each.message or "") for each in found.projects if each.blocks)
    return FoundSources(cwd, found, settings, files, hooks)


async def load(found: FoundSources) -> Setup:
    """Load the hooks and the transformers."""
    loaded = await load_found(found.hooks, cwd=found.cwd)
    transformers = load_transformers(cwd=found.cwd, trees=found.sources.trees)
    return Setup(found.cwd, found.sources, found.settings, loaded, found.hook_files, transformers)


async def set_up(cwd: str, hook_files: Sequence[str], sources: TrustedSources | None = None) -> Setup:
    """Find and load all sources; the arguments are those of `find_sources`.  Raises `SettingsError`."""
    return await load(find_sources(cwd, hook_files, sources))


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
    records: Records | None = None,
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
        records=records,
    )


def records_of(setup: Setup, client: str, *, lasting: bool = True) -> Records | None:
    """Return the records of a runner that works for `client`; `None` if the person's settings turn them off.

    `lasting`: the process stays; one that answers a single event would wait for the endpoint, so it exports nothing.
    """
    settings = setup.settings.records
    if not settings.enabled:
        return None
    # Imported here, because few commands write records.
    from agent_hooks.records import Records

    return Records(
        client=client,
        required=settings.required,
        days=settings.days,
        bytes=settings.bytes,
        patterns=setup.settings.redaction.patterns,
        project=setup.sources.place.top,
        otlp=settings.otlp if lasting else None,
        trust=_trust_facts(setup.sources),
    )


def _trust_facts(sources: TrustedSources) -> TrustFacts:
    """Return the trust under which a runner works; of several projects, the outermost first, separated by spaces."""
    # Imported here, as in `records_of`.
    from agent_hooks.records import TrustFacts

    projects = [each for each in sources.projects if each.state != "empty"]
    files = [(os.path.join(tree.directory, SETTINGS_FILE), tree) for tree in sources.trees]
    return TrustFacts(
        state=" ".join("older" if not each.newest else each.state for each in projects) or "none",
        trusted_set=" ".join(each.digest for each in projects if each.digest is not None),
        settings=sha256(b"\0".join(read_file(path, tree) or b"" for path, tree in files)),
    )


def sources_of(setup: Setup) -> Sources:
    """Return the files that the sources were loaded from, and those where a source may appear later."""
    files = [file for hook in setup.loaded.hooks if hook.module is not None for file in files_of(hook.module)]
    files += [error.path for error in setup.loaded.errors]
    # A hook may read any file of its set, whose directories may be links.
    found = [absolute(each.project, file.name) for each in setup.sources.projects for file in each.found.files]
    return sources_at(setup.sources.place, setup.settings.hooks, files, found)


def sources_at(
    place: Place, hooks: Sequence[str] = (), files: Sequence[str] = (), found: Iterable[str] = ()
) -> Sources:
    """Return the files that count for a place: settings, hooks, transformers, the trust store, and those named here.

    An `.agent` that appears where there is none yet counts too; `found`: the files of the projects' sets.
    """
    projects = [os.path.join(project, PROJECT_DIRECTORY) for project in place.projects]
    homes = tuple(dict.fromkeys((agent_home(), *projects)))
    listed = [os.path.join(home, name) for home in homes for name in (SETTINGS_FILE, INTERCEPT_FILE)]
    listed += [os.path.join(agent_home(), STORE), *place.absent]
    folders = [os.path.join(home, name) for home in homes for name in (HOOKS_DIRECTORY, TRANSFORMERS_DIRECTORY)]
    whole = [folder for folder in folders if not folder.startswith(agent_home() + os.sep)]
    for path in (*hooks, *files):
        elsewhere = not any(path.startswith(folder + os.sep) for folder in folders)
        # A hook that is a package stands for all files in its directory.
        if elsewhere:
            (folders if os.path.isdir(path) else listed).append(path)
    return Sources(dict.fromkeys((*listed, *found)), folders, whole)


def agent_guards(
    settings: GuardSettings, place: Place, more: Sequence[str] = (), *, sealed: Sequence[str] = ()
) -> list[Guard]:
    """Return the guards of an agent that works in a place; they also protect the files that control it.

    Protected are its settings, hooks and transformers, which a person may unlock, and the state of this program, which
    stays sealed; `more`: absolute paths of more hooks; `sealed`: of more files that stay sealed.
    """
    names = (HOOKS_DIRECTORY, SETTINGS_FILE, INTERCEPT_FILE, TRANSFORMERS_DIRECTORY)
    own = agent_home()
    homes = (
        own,
        *(os.path.join(project, PROJECT_DIRECTORY) for project in dict.fromkeys((*place.projects, place.top))),
    )
    hooks = [*(os.path.join(home, name) for home in homes for name in names), *more]
    state = [os.path.join(own, name) for name in (STORE, "trust", STATE, DIRECTORY)]
    return builtin_guards(
        settings,
        protected=_with_targets(hooks),
        sealed=_with_targets([*state, *_installed(place), *sealed]),
        records=_with_targets([os.path.join(own, "records")]),
        agent_home=own,
    )


def _with_targets(paths: Iterable[str]) -> list[str]:
    """Return paths and, of links, their targets."""
    paths = list(paths)
    return list(dict.fromkeys([*paths, *map(os.path.realpath, paths)]))


def _installed(place: Place) -> Iterable[str]:
    """Yield the files of this program: its command, cache and server, and its package unless it is developed here."""
    # The name that pip and uv give the command.
    yield os.path.join(sys.prefix, "bin", "agent-hooks")
    package = os.path.dirname(agent_hooks.__file__)
    if not package.startswith(f"{place.top.rstrip('/')}/"):
        yield package
    if (cache := cache_directory()) is not None:
        yield os.path.dirname(cache)
    yield directory()
