"""The sources of a project: its settings, hooks, guards and transformers, found and loaded for a command.

Each event of another agent pays for the imports here, so the rarely used ones are made where they are used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.cli.protection import guards_of
from agent_hooks.cli.watched import sources_at
from agent_hooks.errors import AgentHooksError, SettingsError
from agent_hooks.guards import BUILTIN
from agent_hooks.guards.base import Guard
from agent_hooks.guards.config import GuardSettings, read_sections
from agent_hooks.hook_packages import INIT
from agent_hooks.hooks.choosing import chosen, leave_out
from agent_hooks.hooks.finding import HOOKS_DIRECTORY, FoundHooks, find_hooks
from agent_hooks.hooks.imports import files_of
from agent_hooks.hooks.loaded import LoadError, LoadResult
from agent_hooks.hooks.loader import load_found, take_all_back
from agent_hooks.pipeline import saving
from agent_hooks.runner.runner import HookRunner
from agent_hooks.server.sources import Sources
from agent_hooks.settings import (
    SETTINGS_FILE,
    Settings,
    agent_home,
    merge_settings,
)
from agent_hooks.settings_file import read_file
from agent_hooks.storage.digests import sha256
from agent_hooks.transformers.command_intercept import (
    INTERCEPT_FILE,
    Transformers,
    load_transformers,
)
from agent_hooks.trees import SourceTree
from agent_hooks.trust.header import LOCK, MADE
from agent_hooks.trust.manifest import TrustError, absolute
from agent_hooks.trust.own import TAKE_UP, Own, own_files
from agent_hooks.trust.policy import Trust, TrustedSources, few
from agent_hooks.trust.unlocked import unlocked_directories

if TYPE_CHECKING:
    from agent_hooks.dispatch.context import Mode
    from agent_hooks.records import Records, TrustFacts
    from agent_hooks.redaction import Redactor
    from agent_hooks.runner.reloaded import Reloaded
    from agent_hooks.ui.base import Dialogs
    from agent_hooks.values.content import Entry


FORMER_SETTINGS = " (former settings)"
"""The end of a guard's name, for a guard from settings before a change that no user has taken up."""
# A file in a traceback.
_FILE = re.compile(r'^  File "(.*?)", line', re.MULTILINE)


class Former(Struct, frozen=True):
    """The user's own hooks and settings that were taken up, as far as they are other ones now.

    - `waits`: the paths of new versions and new hooks
    - `trees`: the source trees with the former agent home, if the configuration of transformers changed
    """

    hooks: FoundHooks
    settings: Settings
    waits: frozenset[str]
    trees: tuple[SourceTree, ...]

    def judges(self, settings: Settings) -> bool:
        """Return whether something of it judges too; `settings`: the new ones."""
        same = settings.guards == self.settings.guards and _stricter(settings, self.settings) == settings
        return bool(self.hooks.paths or self.trees or not same)


class Setup(Struct, frozen=True):
    """The loaded sources that a command works with; `cwd` and `hook_files` are absolute.

    `without`: the absolute paths of hooks that the run goes without; `disabled`: of those that are here, and that the
    person's settings leave out.
    """

    cwd: str
    sources: TrustedSources
    settings: Settings
    loaded: LoadResult
    hook_files: tuple[str, ...]
    transformers: Transformers
    # The files that count for the place, as they were before they were read.
    before: Sources | None = None
    without: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    former: Former | None = None
    notes: tuple[str, ...] = ()

    @property
    def redactor(self) -> Redactor | None:
        """The redactor that the settings ask for, `None` when redaction is off."""
        return redactor_of(self.settings)

    @property
    def guard_settings(self) -> GuardSettings:
        """The guards' section of the settings; raises `SettingsError`."""
        return read_sections(self.settings.guards, tuple(BUILTIN))

    def guards(self, settings: GuardSettings | None = None, sealed: Sequence[str] | None = None) -> list[Guard]:
        """Return the guards of an agent that works here.

        `settings`: in the place of those of the settings files; `sealed`: as for `agent_guards`.  Raises `SettingsError`.
        """
        section = self.guard_settings if settings is None else settings
        made = guards_of(self.settings, section, self.sources.place, self.hook_files, sealed=sealed)
        if self.guards_before is None:
            return made
        before = self.guards_before
        once = tuple(each for each in section.exceptions if each.once)
        before = replace(before, exceptions=(*once, *before.exceptions))
        former = guards_of(self.settings, before, self.sources.place, self.hook_files, sealed=sealed)
        for guard in former:
            guard.name = f"{guard.name}{FORMER_SETTINGS}"  # type: ignore[misc]  # a guard of the package
        return [*made, *former]

    @property
    def guards_before(self) -> GuardSettings | None:
        """The guards' section as it was taken up, `None` where it is the same."""
        if self.former is None or self.former.settings.guards == self.settings.guards:
            return None
        return read_sections(self.former.settings.guards, tuple(BUILTIN))

    @property
    def errors(self) -> list[LoadError]:
        """The hooks and then the transformers that failed to load."""
        return [*self.loaded.errors, *self.transformers.errors]

    def isolation(self, path: str) -> str:
        """Tell where the hook at a path runs: `inline` or `process`."""
        return next((hook.isolation for hook in self.loaded.hooks if hook.path == path), "inline")

    def source(self, path: str) -> str:
        """Tell where a hook or transformer comes from: `global`, `project`, `settings` or `--hook`."""
        directory = os.path.dirname(path)
        for tree in self.sources.trees:
            if directory in (os.path.join(tree.directory, HOOKS_DIRECTORY), tree.directory):
                return "global" if tree.project is None else "project"
        return "--hook" if path in self.hook_files else "settings"

    @property
    def messages(self) -> list[str]:
        """A sentence without harm for each project that waits for approval, or of which an older set is in force.

        A stranger may have named its directory.
        """
        if not (found := [*self.sources.messages, *self.notes]):
            return []
        # Imported here, because most projects have nothing that waits.
        from agent_hooks.cli.screen.marked import one_line

        return list(map(one_line, found))

    def warnings(self) -> list[str]:
        """Return the sentences of `messages`, and one for each ignored section, expired guard rule, wrong answer.

        Raises `SettingsError`.
        """
        # Imported here, because few commands warn.
        from datetime import date

        from agent_hooks.guards.config import expired
        from agent_hooks.remembering.store import Store

        answers = Store(agent_home()).doubts(self.cwd)
        return [*self.messages, *self.settings.ignored, *expired(self.guard_settings, date.today()), *answers]


class FoundSources(Struct, frozen=True):
    """The settings, and the hook files that were found but not loaded."""

    cwd: str
    sources: TrustedSources
    settings: Settings
    hook_files: tuple[str, ...]
    hooks: FoundHooks
    # As in `Setup`.
    before: Sources | None = None
    without: tuple[str, ...] = ()
    former: Former | None = None
    notes: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise `SettingsError` for wrong settings of guards."""
        read_sections(self.settings.guards, tuple(BUILTIN))


def find_sources(
    cwd: str, hook_files: Sequence[str], sources: TrustedSources | None = None, *, without: Sequence[str] = ()
) -> FoundSources:
    """Read the settings and find all hooks; raises `SettingsError`.

    `hook_files` are relative to the shell's directory, not to `cwd`, and count also where settings disable them;
    `sources`: the trees that count, if the caller has asked about them; `without`: paths of hooks to leave out.
    """
    cwd = os.path.abspath(cwd)
    files = tuple(os.path.abspath(file) for file in hook_files)
    found = Trust().sources(cwd) if sources is None else sources
    settings = merge_settings(found.trees)
    _check_kinds(settings.redaction.disabled)
    hooks = leave_out(find_hooks(settings.hooks, found.trees), settings.disabled_hooks, without)
    hooks.paths.extend(files)
    # A set that a person must have approved, and has not, blocks every tool call, as a hook that fails to load does.
    hooks.errors.extend(LoadError(each.directory, each.message or "") for each in found.projects if each.blocks)
    return FoundSources(cwd, found, settings, files, hooks, without=tuple(without))


def find_watched(
    cwd: str,
    hook_files: Sequence[str],
    sources: TrustedSources,
    *,
    without: Sequence[str] = (),
    takes_up: bool = False,
) -> FoundSources:
    """Do the same for an agent that loads its hooks again when a file changes, also while it is being loaded.

    `takes_up`: a user starts a session, which takes the own hooks up.  Otherwise the former versions judge too.  Raises
    `TrustError` when these cannot be read.
    """
    before = sources_at(sources.place)
    own = own_files(agent_home())
    changed = own.changed
    # With `unlock --own`, the user has taken each change up in advance.
    takes_up = takes_up or bool(changed and own.home in unlocked_directories())
    if own.problem is not None and not takes_up:
        raise TrustError(own.problem)
    if (changed or own.problem is not None) and (takes_up or own.taken is None):
        # A read-only disk must not end all judging.
        with suppress(TrustError):
            own.take_up()
            # The kept bytes are a source too.  An edit at the same time belongs to this session.
            after = sources_at(sources.place)
            before = before if own_files(own.home).changed else after
    found = replace(find_sources(cwd, hook_files, sources, without=without), before=before)
    if own.taken is None or not changed:
        return found
    if takes_up:
        names = ", ".join(map(os.path.basename, changed))
        return replace(found, notes=(f"your own hooks or settings changed, and count from now on: {names}",))
    former = _former(found, own)
    if former is None:
        return found
    text = (
        f"your own hooks or settings changed ({few([*map(os.path.basename, changed)])}), and the former ones judge too"
    )
    notes = (f"{text} until you take the change up: {TAKE_UP}",) if former.judges(found.settings) else ()
    return replace(found, settings=_stricter(found.settings, former.settings), former=former, notes=notes)


def _former(found: FoundSources, own: Own) -> Former | None:
    """Return the former sources that judge too, `None` if there are none."""
    trees = (own.tree, *found.sources.trees[1:])
    try:
        settings = merge_settings(trees)
    # These were wrong when they were taken up, and denied every call then.
    except SettingsError:
        settings = found.settings
    touched = own.depending()
    now = set(found.hooks.paths)
    waits = {path for path in now if touched.intersection((path, os.path.join(path, INIT)))}
    # A project's hooks, too: new settings may leave them out.
    hooks = leave_out(find_hooks(settings.hooks, trees), settings.disabled_hooks, found.without)
    paths = [path for path in dict.fromkeys(hooks.paths) if path not in now or path in waits]
    transforms = any(os.path.basename(name) == INTERCEPT_FILE for name in own.changed)
    former = Former(FoundHooks(paths, [], trees), settings, frozenset(waits), trees if transforms else ())
    return former if waits or former.judges(found.settings) else None


def _stricter(new: Settings, former: Settings) -> Settings:
    """Return the new settings with the protection of the former settings.  Guards are made of both."""
    redaction, before = new.redaction, former.redaction
    return replace(
        new,
        redaction=replace(
            redaction,
            enabled=redaction.enabled or before.enabled,
            report_only=redaction.report_only and before.report_only,
            patterns={**_former_patterns(redaction.patterns, before.patterns), **redaction.patterns},
            disabled={kind: path for kind, path in redaction.disabled.items() if kind in before.disabled},
        ),
        records=replace(
            new.records,
            enabled=new.records.enabled or former.records.enabled,
            required=new.records.required or former.records.required,
        ),
        checkpoints=replace(new.checkpoints, enabled=new.checkpoints.enabled or former.checkpoints.enabled),
    )


def _former_patterns(new: Mapping[str, str], former: Mapping[str, str]) -> dict[str, str]:
    """Return the former patterns.  A pattern with another expression now gets a name of its own."""
    return {
        f"{name}.former" if new.get(name, expression) != expression else name: expression
        for name, expression in former.items()
    }


def paths_without(names: Sequence[str], cwd: str, sources: TrustedSources) -> tuple[str, ...]:
    """Return the paths of the hooks that `--without` names; raises `AgentHooksError` for a name of no hook."""
    if not names:
        return ()
    found = find_sources(cwd, (), sources).hooks
    return tuple(chosen(name, [*found.paths, *found.disabled], cwd=os.getcwd()) for name in names)


def _check_kinds(disabled: Mapping[str, str]) -> None:
    """Raise `SettingsError` when settings switch a kind of secret off that redaction does not know."""
    if disabled:
        # Imported here, because few settings do.
        from agent_hooks.redaction.kinds import kinds_problem

        for kind, path in disabled.items():
            if problem := kinds_problem((kind,)):
                raise SettingsError(f"key 'redaction.disabled': {problem}", path)


async def load(found: FoundSources) -> Setup:
    """Load the hooks and the transformers."""
    loaded = await load_found(found.hooks, cwd=found.cwd, isolation=found.settings.isolation)
    transformers = load_transformers(cwd=found.cwd, trees=found.sources.trees, our_name=our_name_of)
    if found.former is not None:
        loaded = await _with_former(loaded, found.former, found.cwd)
    if found.former is not None and found.former.trees:
        before = load_transformers(cwd=found.cwd, trees=found.former.trees, our_name=our_name_of)
        transformers = replace(transformers, auto_allow=transformers.auto_allow & before.auto_allow)
    if loaded.errors or transformers.errors:
        hide = hiding(found.settings)
        loaded = loaded.hidden(hide)
        transformers = replace(transformers, errors=tuple(error.hidden(hide) for error in transformers.errors))
    return Setup(
        found.cwd,
        found.sources,
        found.settings,
        loaded,
        found.hook_files,
        transformers,
        found.before,
        without=found.without,
        disabled=found.hooks.disabled,
        former=found.former,
        notes=found.notes,
    )


async def _with_former(loaded: LoadResult, former: Former, cwd: str) -> LoadResult:
    """Return newly loaded hooks with the former versions of changed hooks."""
    for hook in loaded.hooks:
        hook.waits = hook.path in former.waits
    if not former.hooks.paths:
        return loaded
    try:
        more = await load_found(former.hooks, cwd=cwd, isolation=former.settings.isolation, former=True)
    # A cancellation: nothing of the others may stay behind.
    except BaseException:
        await take_all_back(loaded.hooks)
        raise
    return replace(loaded, hooks=[*loaded.hooks, *more.hooks], errors=[*loaded.errors, *more.errors])


def redactor_of(settings: Settings) -> Redactor | None:
    """Return the redactor that settings ask for, `None` when redaction is off."""
    if not (section := settings.redaction).enabled:
        return None
    # Imported here, because compiling its patterns takes a while.
    from agent_hooks.redaction import Redactor

    return Redactor(patterns=section.patterns, report_only=section.report_only, disabled=section.disabled)


def hiding(settings: Settings) -> Callable[[str], str]:
    """Return a function that hides the secrets of a text as the settings ask for."""
    redactor = redactor_of(settings)
    return str if redactor is None else redactor.hide


def our_name_of(tool: str) -> str:
    """Return our name of a tool that an agent of a bridge names otherwise, or the same name."""
    # Imported here, because few projects configure transformers.
    from agent_hooks.bridges import BRIDGES, open_bridge
    from agent_hooks.bridges.base.words import our_name

    return next((ours for name in BRIDGES if (ours := our_name(open_bridge(name).tools, tool)) != tool), tool)


async def set_up(
    cwd: str, hook_files: Sequence[str], sources: TrustedSources | None = None, *, without: Sequence[str] = ()
) -> Setup:
    """Find and load all sources; the arguments are those of `find_sources`.  Raises `SettingsError`."""
    return await load(find_sources(cwd, hook_files, sources, without=without))


def make_runner(
    setup: Setup,
    mode: Mode,
    *,
    ui: Dialogs | None,
    guards: Iterable[Guard],
    redactor: Redactor | None = None,
    cwd: str | None = None,
    session_file: str | None = None,
    session_id: str | None = None,
    records: Records | None = None,
    client: str = "",
) -> HookRunner:
    """Return the runner of the loaded hooks, with the deadlines of the settings.

    A hook that failed to load blocks every tool call.  `cwd`: in the place of that of `setup`; the other arguments
    are those of `HookRunner`; `client`: the agent that works, of whose turns checkpoints are made.
    """
    runner = HookRunner(
        setup.loaded,
        cwd=setup.cwd if cwd is None else cwd,
        timeout=setup.settings.hook_timeout,
        tool_call_timeout=setup.settings.tool_call_timeout,
        ui=ui,
        mode=mode,
        session_file=session_file,
        session_id=session_id,
        guards=guards,
        transformers=setup.transformers.configured,
        redactor=redactor,
        records=records,
        answers_home=agent_home(),
    )
    keep_turns(runner, setup.settings, client)
    return runner


def keep_turns(runner: HookRunner, settings: Settings, client: str) -> None:
    """Make checkpoints of the turns of an agent, as the settings ask for; a runner that makes some goes on."""
    if not (settings.checkpoints.enabled and client):
        saving.forget_turns(runner.engine)
    elif runner.engine.keeper is None:
        saving.keep_turns(runner.engine, client)


async def put_in_force(
    setup: Setup,
    runner: HookRunner,
    *,
    guards: Callable[[Setup], Sequence[Guard]],
    client: str,
    lasting: bool = True,
    entries: Sequence[Entry] = (),
) -> tuple[Setup, Reloaded]:
    """Put newly loaded sources in the place of those of a runner; return them with the hooks that are in force.

    `guards`: makes those of an agent; `client`, `lasting`: as for `records_of`.  Raises `AgentHooksError` when the former
    sources stay; the new hooks are unloaded then.
    """
    # Imported here, because a process of one event never loads hooks again.
    from agent_hooks.runner.reloading import discard

    settings = setup.settings
    try:
        made, redactor, records = guards(setup), setup.redactor, records_of(setup, client, lasting=lasting)
    # A pattern in the settings is wrong.
    except AgentHooksError:
        await discard(runner.engine, setup.loaded.hooks)
        raise
    reloaded = await runner.reload(
        setup.loaded,
        guards=made,
        transformers=setup.transformers.configured,
        redactor=redactor,
        timeout=settings.hook_timeout,
        tool_call_timeout=settings.tool_call_timeout,
        records=records,
        entries=entries,
    )
    keep_turns(runner, settings, client)
    in_force = [hook for hook in runner.hooks if hook.error is None]
    return replace(setup, loaded=LoadResult(in_force, setup.loaded.errors)), reloaded


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
    files += [file for hook in setup.loaded.hooks if hook.process is not None for file in hook.process.files]
    files += [hook.dependencies.file + LOCK for hook in setup.loaded.hooks if hook.dependencies is not None]
    files += [path for error in setup.loaded.errors for path in _files_of_error(error)]
    if setup.loaded.errors:
        files.append(os.path.join(agent_home(), MADE))
    # A hook may read any file of its set, whose directories may be links.
    found = [absolute(each.project, file.name) for each in setup.sources.projects for file in each.found.files]
    found += _listed(setup.settings.hook_patterns)
    # The other hooks are in directories that count as a whole.
    outside = [each.module for each in setup.loaded.hooks if setup.source(each.path) in ("settings", "--hook")]
    modules = [module for module in outside if module is not None]

    def later() -> Iterable[str]:
        return [file for module in modules for file in files_of(module)]

    sources = sources_at(setup.sources.place, setup.settings.hooks, files, found, later if modules else tuple)
    return sources if setup.before is None else sources.since(setup.before)


def _listed(patterns: Iterable[str]) -> list[str]:
    """Return the directories in which a new file would be a hook of the settings."""
    if not patterns:
        return []
    # Imported here, because few settings have patterns.
    from agent_hooks.hook_entries import listed_by, names_on_disk

    return [directory for pattern in patterns for directory in listed_by(pattern, names_on_disk)]


def _files_of_error(error: LoadError) -> list[str]:
    """Return a hook that could not be loaded, and the files beside it that its traceback names."""
    beside = os.path.dirname(os.path.realpath(error.path)) + os.sep
    named = _FILE.findall(error.traceback)
    return [error.path, *dict.fromkeys(path for path in named if path.startswith(beside))]
