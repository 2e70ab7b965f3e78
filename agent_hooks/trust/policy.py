"""Whether a project's set counts: `Trust` finds the projects of a directory and decides about each of them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from agent_hooks.errors import SettingsError, count, os_reason
from agent_hooks.settings import PROJECT_DIRECTORY, agent_home
from agent_hooks.settings_file import read_settings_file
from agent_hooks.storage.rights import check_owner
from agent_hooks.trees import ApprovedFile, SourceTree
from agent_hooks.trust.manifest import DIRECTORIES, ProjectSet, TrustError, absolute, read_set
from agent_hooks.trust.own import former_tree
from agent_hooks.trust.place import Place, find_place
from agent_hooks.trust.store import Approval, Origin, TrustStore

TrustState = Literal["approved", "always", "empty", "new", "refused", "changed", "lost", "unknown"]
"""The state of a project.

- `approved`: the user approved this set.
- `always`: any set is trusted.
- `empty`: there is nothing to approve.
- `new`: no set was ever approved.
- `refused`: the user refused this set.
- `changed`: the last approved set is in force, from its kept bytes.
- `lost`: it should be, but its bytes are gone.
- `unknown`: the store is damaged, and this set may be approved.
"""
REMEDY = "agent-hooks trust"
"""The command with which a person reads and approves; every message about trust ends with it."""
TOLD = 86400.0
"""Seconds for which each session tells of an approval at a terminal that was opened while an agent worked."""

# The files that a sentence names, and the characters of each.
_MOST_NAMES, _LONGEST_NAME = 3, 80


class ProjectTrust(Struct, frozen=True):
    """A project, its set as it is now, and the part of it that counts.

    `project`: the directory that contains `.agent`; `key`: its key in the store; `found`: the set as it is now;
    `approval`: the approval in force; `files`: the approved files by their absolute paths, `None` when nothing of the
    project counts; `later`: the last approved set, where an older one is in force; `blocks`: every tool call is denied.
    """

    project: str
    key: str
    state: TrustState
    found: ProjectSet
    approval: Approval | None = None
    files: Mapping[str, ApprovedFile] | None = None
    later: Approval | None = None
    blocks: bool = False

    @property
    def directory(self) -> str:
        """The `.agent` directory."""
        return os.path.join(self.project, PROJECT_DIRECTORY)

    @property
    def digest(self) -> str | None:
        """The digest of the set in force, `None` without one."""
        if self.state == "always":
            return self.found.digest
        return None if self.files is None or self.approval is None else self.approval.digest

    @property
    def newest(self) -> bool:
        """Whether no later set of the project was approved than the one in force."""
        return self.later is None

    @property
    def waits(self) -> bool:
        """Whether the set, as it is now, waits for a person's decision."""
        return self.state in ("new", "refused", "changed", "lost", "unknown")

    @property
    def message(self) -> str | None:
        """The sentence for the person about a set that waits, with the remedy; `None` for one that does not."""
        if not self.waits:
            return None
        calls = "; every tool call is blocked" if self.blocks else ""
        action = "rebuild it at a terminal" if self.state == "unknown" else "read and approve"
        return f"{self.directory}: {_reason(self)}{calls}; {action}: {REMEDY}"

    @property
    def doubt(self) -> str | None:
        """The sentence for the user about an approval that an agent may have given, with the remedy.

        A user may well open a terminal while an agent works, so such an approval is told of for a day only.
        """
        if self.approval is None or (origin := self.approval.origin) is None:
            return None
        words = _doubted(origin, self.approval.at)
        return words and f"{self.directory}: approved {words}; to confirm or refuse it: {REMEDY}"

    @property
    def note(self) -> str | None:
        """The sentence for the person where an older set than the last approved one is in force, with the remedy.

        A change of the branch brings an older set back, and so does an agent that removes the newest hook.
        """
        if self.later is None or self.approval is None:
            return None
        older = "an older set than the last approved one is in force"
        differences = _differences(self.approval.files, self.later.files)
        return f"{self.directory}: {older}, {differences}; to keep or refuse it: {REMEDY}"


class TrustedSources(Struct, frozen=True):
    """The source trees that count for a directory.

    `place`: the projects that apply; `home`: the tree of the agent home; `projects`: the outermost first; `problem`: the
    reason why the trust store cannot be used; `loosened`: a sentence for each command that a user has to confirm.
    """

    place: Place
    home: SourceTree
    projects: tuple[ProjectTrust, ...]
    problem: str | None = None
    loosened: tuple[str, ...] = ()

    @property
    def trees(self) -> tuple[SourceTree, ...]:
        """The trees in the order in which they apply: the agent home, then the projects, outermost first."""
        found = [
            SourceTree(each.directory, each.project, each.files) for each in self.projects if each.files is not None
        ]
        return (self.home, *found)

    @property
    def sessions_home(self) -> str:
        """The directory whose `.agent` gets the session files: that of the outermost set that counts, else the top."""
        return next((each.project for each in self.projects if each.files is not None), self.place.top)

    @property
    def messages(self) -> list[str]:
        """A sentence for each project whose set waits or is an older one, and for each directory that does not apply."""
        found = [text for each in self.projects for text in (each.message or each.note, each.doubt) if text]
        return [*([self.problem] if self.problem else []), *self.loosened, *found, *map(str, self.place.skipped)]


class Trust:
    """The approvals of a person, applied: `Trust().sources(cwd)` returns the source trees that count there.

    `home` stands for `~` in tests; `required`: where a set was never approved, tool calls are denied, not only its hooks
    left out; the person's setting `trust.required` says the same.
    """

    def __init__(self, home: str | os.PathLike[str] | None = None, *, required: bool = False) -> None:
        self.agent_home = agent_home(None if home is None else os.fspath(home))
        self._home = None if home is None else os.fspath(home)
        self._required = required

    def store(self) -> TrustStore:
        """Read the store.  Raises `TrustError` when another user can change it."""
        store = TrustStore(self.agent_home)
        # A store that cannot be used trusts nothing, and says why.
        for path in (self.agent_home, store.path, store.kept) if store.problem is None else ():
            _check_owner(path)
        return store

    def sources(self, cwd: str | os.PathLike[str], *more: str) -> TrustedSources:
        """Return the source trees that count for `cwd`, and for `more` directories where the agent works.

        Raises `SettingsError` when the person's settings cannot be read, and `TrustError` when a directory cannot be
        one, or when another user can change the agent home, the store, or files of which any content counts.
        """
        store = self.store()
        try:
            place = find_place(os.fspath(cwd), *more, home=self._home, known=store.judges)
        # The directory was removed, or there is a null character in its name.
        except (OSError, ValueError) as exc:
            reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
            raise TrustError(
                f"cannot find the project of {os.fspath(cwd)!r}: {reason}; give another directory"
            ) from None
        home = SourceTree(self.agent_home)
        if not place.projects:
            return TrustedSources(place, home, (), store.problem, loosenings(store))
        required = self._required or self._requires()
        projects = tuple(judge(store, project, required=required) for project in place.projects)
        for each in projects:
            if each.state == "always":
                _check_rights(each)
        return TrustedSources(place, home, projects, store.problem, loosenings(store))

    def trees(self, cwd: str | os.PathLike[str]) -> tuple[SourceTree, ...]:
        """Return the trees of `sources(cwd)`, for a program that asks for nothing else.

        Raises `TrustError` also where a project denies every call: without its gates, no call may run.
        """
        found = self.sources(cwd)
        if message := next((each.message for each in found.projects if each.blocks), None):
            raise TrustError(message)
        return found.trees

    def _requires(self) -> bool:
        path = os.path.join(self.agent_home, "settings.json")
        # The former settings apply until a user takes the change up.
        files = [read_settings_file(path)]
        if (before := former_tree(self.agent_home)) is not None:
            # Settings that were wrong wished for nothing.
            with suppress(SettingsError):
                files.append(read_settings_file(path, before))
        return any(each is not None and each.trust.required for each in files)


def loosenings(store: TrustStore) -> tuple[str, ...]:
    """Return a sentence for each command that loosened something and that a user has to confirm, with the remedy."""
    words = ((each.command, _doubted(each.origin, each.at)) for each in store.loosened)
    return tuple(f"agent-hooks {command} was run {doubt}; to confirm it: {REMEDY}" for command, doubt in words if doubt)


def _doubted(origin: Origin, at: float) -> str | None:
    """Return where and when a command was run that a user has to confirm, and by which processes.

    `None` for a command that is no longer told of.
    """
    if origin.terminal and time.time() > at + TOLD:
        return None
    where = "at a terminal that was opened while an agent worked" if origin.terminal else "without a terminal"
    processes = " < ".join(f"{each.name} ({each.pid})" for each in origin.processes)
    return f"{where} on {time.strftime('%Y-%m-%d %H:%M', time.localtime(at))}, by {processes}"


def judge(store: TrustStore, project: str, *, required: bool = False) -> ProjectTrust:
    """Decide about one project, from the store as it was read."""
    key, found = store.key(project), read_set(project)
    entry = store.entries.get(key)
    if store.problem is not None:
        # It is not known which sets were approved, so each one is denied where any was.
        known = store.known(project) or (store.keeps_sets and bool(found.files or found.problem))
        empty = not found.files and found.problem is None and not known
        state: TrustState = "empty" if empty else "unknown" if known else "new"
        return ProjectTrust(project, key, state, found, blocks=not empty and (known or required))
    if entry is not None and entry.always:
        if not os.path.isdir(project):
            # The directory was renamed or removed while an agent works in it, and its gates have gone with it.
            return ProjectTrust(project, key, "lost", found, blocks=True)
        if found.problem is None and store.is_always(project, key):
            last = entry.approved[-1] if entry.approved else None
            return ProjectTrust(project, key, "always", found, last, _as_found(found))
        if not entry.approved:
            return ProjectTrust(project, key, "lost", found, blocks=True)
    approval = None if entry is None or found.problem is not None else entry.approval(found.digest)
    if entry is not None and approval is not None:
        last = entry.approved[-1]
        later = None if approval is last else last
        return ProjectTrust(project, key, "approved", found, approval, _as_found(found), later)
    if entry is not None and entry.approved:
        last = entry.approved[-1]
        files = store.kept_files(project, last)
        return ProjectTrust(
            project, key, "lost" if files is None else "changed", found, last, files, blocks=files is None
        )
    if not found.files and found.problem is None:
        return ProjectTrust(project, key, "empty", found)
    refused = entry is not None and entry.refused == found.digest
    return ProjectTrust(project, key, "refused" if refused else "new", found, blocks=required)


def _differences(old: Mapping[str, str], last: Mapping[str, str]) -> str:
    """Return what an older set has otherwise than the last one; both are digests by the name of a file."""
    found = {
        "without": [name for name in last if name not in old],
        "with another": [name for name in old if old[name] != last.get(name, old[name])],
        "with": [name for name in old if name not in last],
    }
    return " and ".join(f"{word} {few(names)}" for word, names in found.items() if names)


def few(names: list[str]) -> str:
    """Return the first names of many, and the number of the others."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    # A name in a project from elsewhere may be as long as a page.
    short = (name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in names[:_MOST_NAMES])
    return ", ".join(short) + more


def _as_found(found: ProjectSet) -> dict[str, ApprovedFile]:
    paths = ((absolute(found.project, file.name), file.data) for file in found.files)
    return {path: ApprovedFile(data, path) for path, data in paths}


def _check_rights(project: ProjectTrust) -> None:
    """Raise `TrustError` when another user can change files of a project of which any content counts."""
    above = os.path.dirname(project.directory)
    paths = dict.fromkeys([project.directory, *(os.path.join(project.directory, name) for name in DIRECTORIES)])
    for file in project.found.files:
        path = absolute(project.project, file.name)
        paths[path] = None
        # A user who can change a directory can replace the files in it.
        while (path := os.path.dirname(path)) not in paths and path != above:
            paths[path] = None
            if not path.startswith(project.directory + os.sep):
                break
    for path in paths:
        _check_owner(path)


def _check_owner(path: str) -> None:
    if (reason := check_owner(path)) is not None:
        raise TrustError(f"nothing is trusted, because another user could change it: {reason}")


def _reason(project: ProjectTrust) -> str:
    files = count(len(project.found.files), "file")
    names = few([file.name for file in project.found.files])
    match project.state:
        case "changed" if project.found.problem is not None:
            return f"{project.found.problem}; the last approved files count"
        case "changed":
            return f"{_changed(project)}; until the change is approved, the last approved ones count"
        case "lost" if not os.path.isdir(project.project):
            return "its directory was renamed or removed, and its hooks with it"
        case "lost":
            return "its hooks or settings were changed, and the approved ones are gone"
        case "unknown":
            return "it may be approved, but the trust store is damaged"
        case "refused":
            return f"{files} not used, because you said no: {names}"
    if project.found.problem is not None:
        return project.found.problem
    return f"{files} not used, because no person has approved them: {names}"


def _changed(project: ProjectTrust) -> str:
    """Return that a set was changed, with the names of the files that are other ones, new or gone."""
    old = {} if project.approval is None else project.approval.files
    now = {file.name: file.digest for file in project.found.files}
    names = [name for name in sorted({*old, *now}) if old.get(name) != now.get(name)]
    return f"its hooks or settings were changed ({few(names)})"
