"""The user's own hooks and settings: the version that was taken up last, and the files now.

A session judges with both versions until a user takes the change up, and the stricter verdict applies.  So an agent that
replaces a gate of its user switches nothing off.  One sealed file of the agent home keeps code and settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from agent_hooks.errors import os_reason
from agent_hooks.storage.files import StorageError, open_regular, write_atomically
from agent_hooks.trees import ApprovedFile, SourceTree
from agent_hooks.trust.header import LOCK
from agent_hooks.trust.manifest import DIRECTORIES, FILES, ProjectSet, TrustError, absolute, read_set

KEPT = os.path.join("trust", "own.json")
"""The file of the kept bytes, below the agent home."""
TAKE_UP = "agent-hooks trust"
"""The command that takes a change up."""
_KINDS = (".py", LOCK, *FILES)
_VERSION = 1
# A module that is imported by a name that the text does not show.
_DYNAMIC = re.compile(rb"import_module|__import__|exec_module|run_path|run_module")
_IMPORTS = re.compile(rb"\b(?:from|import)\b[^\n(]*(?:\([^)]*\))?")
_WORD = re.compile(rb"[^\s.,;()#]+")
# The last good contents of each file that this process has read: a session that runs knows its gates.
_LAST: dict[str, dict[str, bytes]] = {}


class _Kept(Struct):
    version: int
    # The names as bytes in Latin-1, because not every name is UTF-8.
    files: dict[str, bytes]


class Own(Struct, frozen=True):
    """The own files of an agent home.

    - `found`: the files now
    - `taken`: the bytes that were taken up by name, `None` before the first time
    - `problem`: the reason why the kept bytes cannot be used
    """

    home: str
    found: ProjectSet
    taken: Mapping[str, bytes] | None = None
    problem: str | None = None

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of the files that are other ones than those taken up, new or gone."""
        taken = self.taken or {}
        if self.found.problem is not None:
            # It is not known which files are the same.
            return tuple(sorted(taken))
        now = {file.name: file.data for file in self.found.files}
        return tuple(name for name in sorted({*taken, *now}) if taken.get(name) != now.get(name))

    @property
    def tree(self) -> SourceTree:
        """The agent home as it was taken up."""
        return _tree(self.home, self.taken or {})

    def is_current(self, path: str) -> bool:
        """Return whether the file at a path is unchanged."""
        return os.path.relpath(path, self.found.project) not in self.changed

    def take_up(self, paths: Iterable[str] | None = None) -> None:
        """Keep the files as they were found, or only those at `paths`.  Raises `TrustError`."""
        if self.found.problem is not None:
            raise TrustError(self.found.problem)
        files = {file.name: file.data for file in self.found.files}
        if paths is not None:
            chosen, former = {os.path.relpath(path, self.found.project) for path in paths}, self.taken or {}
            others = {name: data for name, data in former.items() if name not in chosen}
            files = others | {name: files[name] for name in chosen if name in files}
        path = os.path.join(self.home, KEPT)
        kept = _Kept(_VERSION, {os.fsencode(name).decode("latin-1"): data for name, data in files.items()})
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            write_atomically(path, msgspec.json.encode(kept), secret=True)
        except (OSError, StorageError) as exc:
            reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
            raise TrustError(f"your own hooks cannot be kept in {path}: {reason}") from None
        _LAST[path] = files

    def depending(self) -> frozenset[str]:
        """Return the absolute paths of the files that changed, were added or are gone, or that may import one of these.

        An import by a computed name may import any file.
        """
        texts = {file.name: file.data for file in self.found.files} | dict(self.taken or {})
        imports = {name: _imported(data) for name, data in texts.items() if name.endswith(".py")}
        touched = set(self.changed)
        while True:
            modules = {word for name in touched for word in self._modules(name)}
            more = {
                name
                for name, words in imports.items()
                if name not in touched
                and ((modules and words is None) or not modules.isdisjoint(words or ()) or self._within(name, touched))
            }
            if not more:
                return frozenset(absolute(self.found.project, name) for name in touched)
            touched |= more

    @staticmethod
    def _modules(name: str) -> Iterable[bytes]:
        """Yield the names by which code may import a file: its own name and its packages."""
        parts = name.split(os.sep)
        if name.endswith(".py"):
            place = max((at for at, part in enumerate(parts) if part == DIRECTORIES[0]), default=len(parts) - 2)
            yield from (os.fsencode(part.removesuffix(".py")) for part in parts[place + 1 :] if part != "__init__.py")

    @staticmethod
    def _within(name: str, touched: Iterable[str]) -> bool:
        """Return whether a changed file belongs to the package whose `__init__.py` has this name."""
        above, _, file = name.rpartition(os.sep)
        return file == "__init__.py" and any(each.startswith(above + os.sep) for each in touched)


def _imported(code: bytes) -> set[bytes] | None:
    """Return the words of all imports in a text, `None` where a name may be computed."""
    if _DYNAMIC.search(code):
        return None
    clauses = _IMPORTS.findall(code.replace(b"\\\n", b" "))
    return {word for clause in clauses for word in _WORD.findall(clause)}


def own_files(home: str) -> Own:
    """Read the own files of an agent home, as they are and as they were taken up."""
    found = read_set(os.path.dirname(home), os.path.basename(home), _KINDS)
    try:
        return Own(home, found, _kept(home))
    except TrustError as exc:
        return Own(home, found, problem=str(exc))


def former_tree(home: str) -> SourceTree | None:
    """Return an agent home as it was taken up, `None` if that is missing or cannot be read."""
    try:
        taken = _kept(home)
    except TrustError:
        return None
    return None if taken is None else _tree(home, taken)


def _kept(home: str) -> dict[str, bytes] | None:
    """Return the bytes that were taken up by name, `None` before the first time.  Raises `TrustError`."""
    path = os.path.join(home, KEPT)
    try:
        with open_regular(path, path) as file:
            kept = msgspec.json.decode(file.read(), type=_Kept)
        if kept.version != _VERSION:
            raise ValueError(f"its version is {kept.version}")
        taken = {os.fsdecode(name.encode("latin-1")): data for name, data in kept.files.items()}
    except (OSError, StorageError, ValueError) as exc:
        if path in _LAST or not os.path.lexists(path):
            return _LAST.get(path)
        reason = os_reason(exc) if isinstance(exc, OSError) else str(exc)
        raise TrustError(
            f"your own hooks as they were taken up cannot be read from {path} ({reason}); to take them up as they are: "
            f"{TAKE_UP}"
        ) from None
    _LAST[path] = taken
    return taken


def _tree(home: str, taken: Mapping[str, bytes]) -> SourceTree:
    paths = ((absolute(os.path.dirname(home), name), data) for name, data in taken.items())
    return SourceTree(home, None, {path: ApprovedFile(data, path) for path, data in paths})
