"""The files that count for a place, of which a change loads the hooks again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from agent_hooks.hooks.finding import HOOKS_DIRECTORY
from agent_hooks.server.sources import Sources
from agent_hooks.settings import PROJECT_DIRECTORY, SETTINGS_FILE, agent_home
from agent_hooks.transformers.command_intercept import INTERCEPT_FILE, TRANSFORMERS_DIRECTORY
from agent_hooks.trust.own import KEPT
from agent_hooks.trust.place import Place
from agent_hooks.trust.store import STORE


def sources_at(
    place: Place,
    hooks: Sequence[str] = (),
    files: Sequence[str] = (),
    found: Iterable[str] = (),
    later: Callable[[], Iterable[str]] = tuple,
) -> Sources:
    """Return the files that count for a place: settings, hooks, transformers, the trust store, and those named here.

    An `.agent` that is made later counts too, once it holds a file of code or settings: the first session of a
    directory makes one.  `found`: the files of the projects' sets; `later`: as in `Sources`.
    """
    projects = [os.path.join(project, PROJECT_DIRECTORY) for project in place.projects]
    homes = tuple(dict.fromkeys((agent_home(), *projects)))
    listed = [os.path.join(home, name) for home in homes for name in (SETTINGS_FILE, INTERCEPT_FILE)]
    listed += [os.path.join(agent_home(), name) for name in (STORE, KEPT)]
    folders = [os.path.join(home, name) for home in homes for name in (HOOKS_DIRECTORY, TRANSFORMERS_DIRECTORY)]
    whole = [folder for folder in folders if not folder.startswith(agent_home() + os.sep)]
    for path in (*hooks, *files):
        elsewhere = not any(path.startswith(folder + os.sep) for folder in folders)
        # A hook that is a package stands for all files in its directory.
        if elsewhere:
            (folders if os.path.isdir(path) else listed).append(path)
    return Sources(dict.fromkeys((*listed, *found)), [*folders, *place.absent], whole, later)
