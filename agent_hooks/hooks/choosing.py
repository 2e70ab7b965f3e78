"""Find hooks by the names that people give them, and leave out those that must not count.

A hook has three names: its path, its file's name, and that name without `.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from agent_hooks.errors import AgentHooksError
from agent_hooks.hooks.finding import FoundHooks
from agent_hooks.hooks.loaded import stem

# The names in an error text.
_MOST = 10


def leave_out(found: FoundHooks, disabled: Iterable[str], without: Iterable[str] = ()) -> FoundHooks:
    """Return the hooks that were found, but for those at the paths given; symlinks to them are left out too.

    `disabled`: the paths in the person's settings; `without`: those that one run goes without.
    """
    off, now = _places(disabled), _places(without)
    if not off and not now:
        return found
    kept: list[str] = []
    left: list[str] = []
    for path in found.paths:
        places = _places([path])
        if places & off:
            left.append(path)
        elif not places & now:
            kept.append(path)
    return replace(found, paths=kept, disabled=tuple(dict.fromkeys(left)))


def _places(paths: Iterable[str]) -> set[str]:
    """Return absolute paths, as they are and without symlinks."""
    return {place for path in paths for place in (path, os.path.realpath(path))}


def chosen(name: str, paths: Sequence[str], *, cwd: str) -> str:
    """Return the one path that a name stands for; raises `AgentHooksError` with the nearest names, or the paths."""
    full = os.path.abspath(os.path.join(cwd, os.path.expanduser(name)))
    exact = [path for path in paths if path == full or os.path.realpath(path) == os.path.realpath(full)]
    found = list(dict.fromkeys(exact or [path for path in paths if name in (os.path.basename(path), stem(path))]))
    if len(found) > 1:
        raise AgentHooksError(f"{name!r} is the name of {len(found)} hooks; say which: {', '.join(found)}")
    if not found:
        raise AgentHooksError(f"there is no hook {name!r}{_nearest(name, paths)}")
    return found[0]


def _nearest(name: str, paths: Sequence[str]) -> str:
    """Return the end of a sentence, with the names that are most like a wrong one."""
    # Imported here, because few programs need it.
    from difflib import get_close_matches

    names = sorted({stem(path) for path in paths})
    if not names:
        return "; there are no hooks here"
    near = get_close_matches(stem(name), names, n=3)
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    more = f" and {len(names) - _MOST} more (agent-hooks list)" if len(names) > _MOST else ""
    return f"; the hooks here are: {', '.join(names[:_MOST])}{more}"
