"""The facts about a set that a person wants before they approve it: subscriptions, imports, programs, connections.

The facts come from the syntax of the files.  Nothing is imported, compiled or run.  Where the syntax leaves something
open, the fact is `unknown`: the facts may say more than the code does, and never less.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from agent_hooks.hook_entries import names_in
from agent_hooks.settings import PROJECT_DIRECTORY, SETTINGS_FILE
from agent_hooks.trees import NO_FILE, ApprovedFile, SourceTree
from agent_hooks.trust.fact import KINDS, Fact, Kind
from agent_hooks.trust.header import LOCK, has_header
from agent_hooks.trust.manifest import ProjectSet, absolute, named_in_settings

Role = Literal["hook", "module", "transformer", "settings", "intercept", "lock", "unused", "data"]
"""The use that the runtime makes of a file.

`hook`: it is loaded; `module`: a hook may import it; `transformer`: it rewrites inputs if `intercept` names it;
`settings`, `intercept`: it is obeyed; `lock`: it fixes the packages of the hook beside it; `unused`: it is code that is
never imported; `data`: a hook may read it.
"""
MOST_READ = 4 << 20
"""The most bytes of a set whose syntax is read; a syntax tree takes a hundred times the room of its text."""
TOO_LARGE = Fact("unknown", "all of it: the set is too large to be read")
_PYTHON = ".py"
_INTERCEPT = "command_intercept.yaml"
_UNUSED = (".so", ".pyc", ".pyo", ".pyd", ".dylib", ".dll", ".zip", ".egg", ".whl", ".pth")


class FileFacts(Struct, frozen=True):
    """The facts about one file; `target`: the real path when a link leads out of the project."""

    name: str
    role: Role
    facts: tuple[Fact, ...]
    target: str | None = None

    def of(self, kind: Kind) -> list[Fact]:
        """Return the facts of one kind."""
        return [fact for fact in self.facts if fact.kind == kind]


def set_facts(found: ProjectSet, only: Iterable[str] | None = None) -> tuple[FileFacts, ...]:
    """Return the facts about each file of a set, or about the files whose names are in `only`; raises nothing."""
    wanted = None if only is None else set(only)
    roles = _Roles(found)
    facts: list[FileFacts] = []
    read = 0
    for file in found.files:
        if wanted is None or file.name in wanted:
            read += len(file.data)
            known = _facts(file.data, roles, file.name) if read <= MOST_READ else [TOO_LARGE]
            facts.append(FileFacts(file.name, roles.of(file.name), grouped(known), file.target))
    return tuple(facts)


def grouped(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return each fact once, with all its lines, in the order of `KINDS`."""
    lines: dict[tuple[Kind, str], dict[int, None]] = {}
    for fact in facts:
        lines.setdefault((fact.kind, fact.text), {}).update(dict.fromkeys(fact.lines))
    order: Sequence[Kind] = [*KINDS]
    found = [Fact(kind, text, tuple(sorted(places))) for (kind, text), places in lines.items()]
    return tuple(sorted(found, key=lambda fact: (order.index(fact.kind), fact.lines[:1], fact.text)))


def _facts(data: bytes, roles: _Roles, name: str) -> Iterable[Fact]:
    role = roles.of(name)
    if role in ("hook", "module", "transformer"):
        # Imported here, because few processes show facts.
        from agent_hooks.trust.python_facts import python_facts

        return python_facts(data, beside=roles.beside(name), hook=role == "hook")
    if role in ("settings", "intercept") and data.startswith(NO_FILE):
        reason = data.removeprefix(NO_FILE).decode(errors="replace")
        return [Fact("refused", f"it {reason}; once it is approved, it blocks every tool call")]
    if role in ("settings", "intercept"):
        from agent_hooks.trust.settings_facts import intercept_facts, settings_facts  # here, as above

        return settings_facts(data) if role == "settings" else intercept_facts(data)
    if role == "lock":
        from agent_hooks.trust.lock_facts import lock_facts  # here, as above

        return lock_facts(data)
    if role == "unused":
        return [Fact("refused", "only .py files are imported; this file never is")]
    return ()


def _approved(found: ProjectSet) -> dict[str, ApprovedFile]:
    """Return the files of a set by their absolute paths."""
    paths = ((absolute(found.project, file.name), file.data) for file in found.files)
    return {path: ApprovedFile(data, path) for path, data in paths}


class _Roles:
    """The role of each file of a set, from its name and from the hooks that the settings name."""

    def __init__(self, found: ProjectSet) -> None:
        self._agent = PROJECT_DIRECTORY + os.sep
        self._hooks = os.path.join(PROJECT_DIRECTORY, "hooks")
        self._transformers = os.path.join(PROJECT_DIRECTORY, "transformers")
        self._names = [file.name for file in found.files]
        settings = next((file for file in found.files if file.name == self._agent + SETTINGS_FILE), None)
        directory = os.path.join(found.project, PROJECT_DIRECTORY)
        names = names_in(SourceTree(directory, found.project, _approved(found)))
        named = set() if settings is None else set(named_in_settings(settings.data, directory, names))
        self._project = found.project
        self._hook_files = named
        self._headed = {file.name for file in found.files if has_header(file.data)}
        self._modules = _modules_by_directory(self._names)
        self._named = {
            name
            for name in self._names
            if (path := absolute(found.project, name)) in named or os.path.dirname(path) in named
        }

    def of(self, name: str) -> Role:
        """Return the role of a file."""
        if name in (self._agent + SETTINGS_FILE, self._agent + _INTERCEPT):
            return "settings" if name.endswith(SETTINGS_FILE) else "intercept"
        base = os.path.basename(name)
        if name.endswith(LOCK) and name.removesuffix(LOCK) in self._headed:
            return "lock"
        # A file that the settings name is a hook for the loader, with any suffix.
        if name in self._named and (base.endswith(_PYTHON) or absolute(self._project, name) in self._hook_files):
            return "hook"
        if not base.endswith(_PYTHON):
            return "unused" if base.endswith(_UNUSED) else "data"
        directory = os.path.dirname(name)
        if directory == self._transformers:
            return "transformer"
        # A package is a hook if its `__init__.py` binds `register`; to count each as one says more, and never less.
        package = base == "__init__.py" and os.path.dirname(directory) == self._hooks
        single = directory == self._hooks and not base.startswith("_")
        if name in self._named or package or single:
            return "hook"
        return "module"

    def beside(self, name: str) -> frozenset[str]:
        """Return the names of the modules that a file can import from its set."""
        directories = {os.path.dirname(name), self._hooks, self._transformers}
        return frozenset(module for directory in directories for module in self._modules.get(directory, ()))


def _modules_by_directory(names: Iterable[str]) -> dict[str, set[str]]:
    """Return the modules and packages of each directory of a set."""
    found: dict[str, set[str]] = {}
    for name in names:
        directory, base = os.path.split(name)
        if base.endswith(_PYTHON):
            found.setdefault(directory, set()).add(base.removesuffix(_PYTHON))
        while directory and (above := os.path.dirname(directory)) != directory:
            found.setdefault(above, set()).add(os.path.basename(directory))
            directory = above
    return found
