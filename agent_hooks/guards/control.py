"""The files that control an agent: hooks and their settings, and the state of this program.

They are judged by their names and by lists of absolute paths; nothing is opened.  There are three kinds:

1. Hooks, transformers and settings of any `.agent` directory, also of one that does not exist yet.  A person may unlock
   them for a limited time.
2. Sealed files, which no agent writes at any time: the trust store, records, the unlock state, the remembered answers,
   the checkpoints, the generated clients, the packages of hooks, the cache of bytecode, this package and its command.
3. Records, the files that `agent-hooks look` makes of them, and the lines that the user typed at the prompt.  These are
   sealed, and no agent reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

from agent_hooks.guards.base import DEFAULT_OPTIONS, GuardOptions
from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN

FOLDER = ".agent"
"""The directory of a project that holds its hooks and settings."""
HOOK_NAMES = ("hooks", "transformers", "settings.json", "command_intercept.yaml")
"""The names in `.agent` of the hooks, transformers and settings."""
RECORDS = "records"
"""The name in the agent home of the directory with the records."""
UNREAD_NAMES = (RECORDS, "look", "prompt_history", "server.key", "mods")
"""The names in the agent home of what no agent reads either: records, the lines that the user typed, and keys."""
SEALED_NAMES = (
    *("trust.json", "trust", *UNREAD_NAMES, "unlock.json", "bridges", "environments", "calls"),
    *("remembered.json", "remembered.lock", "checkpoints"),
)
"""The names in the agent home of the files that no agent writes."""
# Our package where pip puts it, and our command where pip, pipx and uv put it.
_PACKAGE = lazy_pattern(
    r".*/(?:site|dist)-packages/agent_hooks(?:_runtime)?(?:[-.][^/]*)?(?:/.*)?|.*/bin/agent-hooks"
    # The environments that uv and pipx make for our command.
    r"|.*/(?:uv/tools|pipx/venvs)/agent[-_]hooks(?:-runtime)?(?:/.*)?"
    # Python runs these files before our own.
    r"|.*/python[\d.]*/(?:(?:site|dist)-packages/)?(?:user|site)customize\.py"
    r"|.*/(?:site|dist)-packages/[^/]*\.(?:pth|egg-link|start)"
)
# Where the resident server keeps its sockets and locks.
_SOCKETS = lazy_pattern(r"/(?:(?:var/)?tmp/agent-hooks-\d+|(?:var/)?run/user/[^/]+/agent-hooks(?:-[^/]*)?)(?:/.*)?")
# Files by which Python finds itself and its library: next to its executable, above it, and in `lib`.
_BINARY = lazy_pattern(r"python[\d.]*|pyvenv\.cfg|pybuilddir\.txt")
_LIBRARY = lazy_pattern(r"python\d+\.zip|libpython[\w.]+")
_GLOB = lazy_pattern(rf"[*?\[{UNKNOWN}]")


class ControlFiles:
    """The files that control the agent of one call.

    `options`: the lists of absolute paths; `unlocked`: the directories whose hooks and settings the person lets the agent
    change at present.

    Each plain spelling of such a file holds one of `names`.
    """

    def __init__(self, options: GuardOptions = DEFAULT_OPTIONS, unlocked: Iterable[str] = ()) -> None:
        self._home = options.agent_home.lower()
        self._protected = tuple(path.lower() for path in options.protected)
        # The settings may name hooks by patterns: a file that fits one is a hook, also a new one.
        self._patterns = tuple(path for path in self._protected if _GLOB.search(path))
        self._sealed = tuple(path.lower() for path in options.sealed)
        self._records = tuple(path.lower() for path in options.records)
        self._unlocked = tuple(path.lower() for path in unlocked)
        self.python = options.python
        # As they are written on the disk; the package and the command are no part of a project.
        self._files = (*options.protected, *(path for path in options.sealed if not _PACKAGE.fullmatch(path)))
        self.names = _names(self._protected, self._sealed, self._records)

    def stops_writing(self, path: str) -> bool:
        """Return whether the agent may not write a normalised path, which may be a glob or partly unknown."""
        path = path.lower()
        kind = _kind(path)
        if kind == "sealed" or self._is_sealed(path):
            return True
        ours = kind == "hooks" or any(_inside(path, own) for own in self._protected)
        return (ours or any(covers(own, path) for own in self._patterns)) and not self._is_unlocked(path)

    def stops_removing(self, path: str) -> bool:
        """Return whether the agent may not remove or move a tree: it is or holds such a file."""
        if self.stops_writing(path):
            return True
        path = path.lower()
        return any(covers(path, own) for own in (*self._sealed, *self._records)) or any(
            covers(path, own) for own in self._protected if not self._is_unlocked(own)
        )

    def below(self, path: str) -> list[str]:
        """Return the listed hooks, settings and sealed files in a tree that the agent may not change."""
        tree = path.lower()
        return [own for own in self._files if covers(tree, own.lower()) and not self._is_unlocked(own.lower())]

    def stops_reading(self, path: str) -> bool:
        """Return whether the agent may not read a path, because it is a record or the directory above the records."""
        path = path.lower()
        return _kind(path, records=True) == "sealed" or any(
            _inside(path, own) or path == own.rpartition("/")[0] for own in self._records
        )

    def is_socket(self, path: str) -> bool:
        """Return whether a path is, or as a glob may be, in the directory of the resident server's sockets."""
        path = path.lower()
        return bool(_SOCKETS.fullmatch(path)) or any(
            _inside(path, own) for own in self._sealed if _SOCKETS.fullmatch(own)
        )

    def stops_changing_python(self, path: str, *, tree: bool = False) -> bool:
        """Return whether a normalised path is a part of the Python that judges, or with `tree` a directory with one.

        Programs may name and run such files, so only a known write or removal asks this.
        """
        own, path = self.python, path.lower()
        if not own.prefix or UNKNOWN in path:
            return False
        if any(_is_program(path, folder.lower()) for folder in own.programs):
            return True
        for folder in map(str.lower, own.packages):
            if path == folder:
                return True
            if _inside(path, folder):
                top = path.split("/")[folder.count("/") + 1].partition(".")[0]
                return top in own.required() or any(_may_be(top, name) for name in own.required() if _GLOB.search(top))
        if any(_inside(path, folder.lower()) for folder in own.standard):
            return not re.search(r"/(?:site|dist)-packages(?:/|$)", path)
        return tree and any(covers(path, each.lower()) for each in (*own.programs, *own.packages, *own.standard))

    def _is_sealed(self, path: str) -> bool:
        own = _PACKAGE.fullmatch(path) or _SOCKETS.fullmatch(path)
        return own is not None or any(_inside(path, own) for own in (*self._sealed, *self._records))

    def _is_unlocked(self, path: str) -> bool:
        """Return whether the person has unlocked a path; the agent home is never part of a project."""
        at_home = bool(self._home) and _inside(path, self._home)
        return any(
            _inside(path, root) and (not at_home or _inside(root, self._home)) for root in self._unlocked if root
        )


def _is_program(path: str, programs: str) -> bool:
    """Return whether a path is the executable of Python in a directory, or a file by which it finds its library."""
    folder, _, name = path.rpartition("/")
    above = programs.rpartition("/")[0]
    if folder == programs:
        globbed = _GLOB.search(name) and any(_may_be(name, each) for each in ("python", "python3"))
        return bool(globbed or _BINARY.fullmatch(name))
    return (folder == above and name == "pyvenv.cfg") or (folder == f"{above}/lib" and bool(_LIBRARY.fullmatch(name)))


@lru_cache(16)
def _names(*lists: tuple[str, ...]) -> tuple[str, ...]:
    """Return short texts: each plain spelling of such a file holds one."""
    found = [FOLDER, "agent-hooks", "agent_hooks"]
    for path in (path for paths in lists for path in paths):
        last = next((part for part in reversed(path.split("/")) if part and not _GLOB.search(part)), "")
        if f"/{FOLDER}/" not in path and last and not any(name in last for name in found):
            found.append(last)
    return tuple(found)


@lru_cache(maxsize=512)
def _kind(path: str, *, records: bool = False) -> str | None:
    """Return the kind of a path by the names in it: `hooks`, `sealed`, or `None`; `records`: only records count."""
    parts = path.split("/")
    for at, part in enumerate(parts):
        if not _may_be(part, FOLDER):
            continue
        rest = parts[at + 1 :]
        if records:
            if rest and rest[0] in UNREAD_NAMES:
                return "sealed"
        elif not rest or any(_may_be(rest[0], name) for name in HOOK_NAMES):
            return "hooks"
        elif any(_may_be(rest[0], name) for name in SEALED_NAMES):
            return "sealed"
    return None


def _may_be(part: str, name: str) -> bool:
    """Return whether a component of a path is a name, or a glob or a partly unknown text that may become it."""
    if part == name:
        return True
    if not name or not _GLOB.search(part) or (name[0] == "." and part[0] != "."):
        # In a glob, only a dot matches a leading dot; a text that is unknown from its beginning may be anything.
        return False
    return fnmatchcase(name, part.replace(UNKNOWN, "*").replace("[^", "[!"))


def _inside(path: str, tree: str) -> bool:
    """Return whether a path, or one that a glob may become, lies in a tree."""
    if path == tree or path.startswith(f"{tree}/"):
        return True
    if not _GLOB.search(path) or path.startswith(UNKNOWN):
        return False
    parts, trees = path.split("/"), tree.split("/")
    return len(parts) >= len(trees) and all(map(_may_be, parts, trees))


def covers(pattern: str, path: str) -> bool:
    """Return whether `path` lies in a tree that `pattern`, a path or a glob, matches."""
    trees, parts = pattern.split("/"), path.split("/")
    return len(trees) <= len(parts) and all(map(_fits, parts, trees))


def _fits(name: str, pattern: str) -> bool:
    """Return whether a glob matches a name; only a dot matches a leading dot."""
    return name == pattern or ((name[:1] != "." or pattern[:1] == ".") and fnmatchcase(name, pattern))
