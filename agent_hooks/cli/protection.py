"""The guards of an agent, with the files that control the agent in its place."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache

import agent_hooks
from agent_hooks.guards import builtin_guards
from agent_hooks.guards.agents import moved, usual
from agent_hooks.guards.base import Guard, OwnPython
from agent_hooks.guards.config import GuardSettings
from agent_hooks.guards.control import HOOK_NAMES, SEALED_NAMES, UNREAD_NAMES
from agent_hooks.hooks.bytecode import cache_directory
from agent_hooks.server.client import directory
from agent_hooks.settings import (
    COMMANDS_DIRECTORY,
    INSTRUCTIONS_FILE,
    MCP_FILE,
    PROJECT_DIRECTORY,
    SKILLS_DIRECTORY,
    Settings,
    agent_home,
)
from agent_hooks.trust.place import Place

# These files of the user reach later sessions, so an agent does not write them.
_LASTING = (INSTRUCTIONS_FILE, COMMANDS_DIRECTORY, SKILLS_DIRECTORY, MCP_FILE)


def guards_of(
    settings: Settings,
    section: GuardSettings,
    place: Place,
    hook_files: Sequence[str] = (),
    *,
    sealed: Sequence[str] | None = None,
) -> list[Guard]:
    """Return the guards of an agent that has these settings, for the agent itself and for `agent-hooks guard`.

    `section`: the guards' section; `hook_files`: absolute paths of more hooks; `sealed`: as for `agent_guards`.
    """
    lasting = [os.path.join(agent_home(), name) for name in _LASTING]
    return agent_guards(
        section, place, [*settings.hooks, *settings.hook_patterns, *hook_files, *lasting], sealed=sealed
    )


def agent_guards(
    settings: GuardSettings, place: Place, more: Sequence[str] = (), *, sealed: Sequence[str] | None = None
) -> list[Guard]:
    """Return the guards of an agent that works in a place; they also protect the files that control it.

    Its settings, hooks and transformers are protected, unless a person unlocks them; the state of this program is sealed.
    `more`: absolute paths of more hooks; `sealed`: absolute paths of more sealed files, by default the settings files of
    other agents that hold entries of ours.
    """
    own = agent_home()
    homes = (
        own,
        *(os.path.join(project, PROJECT_DIRECTORY) for project in dict.fromkeys((*place.projects, place.top))),
    )
    if sealed is None:
        sealed = _installations(place)
    hooks = [*(os.path.join(home, name) for home in homes for name in HOOK_NAMES), *more, *_of_agents(place, sealed)]
    state = [os.path.join(own, name) for name in SEALED_NAMES if name not in UNREAD_NAMES]
    return builtin_guards(
        settings,
        protected=_with_targets(hooks),
        sealed=_with_targets([*state, *_installed(place), *sealed]),
        records=_with_targets(os.path.join(own, name) for name in UNREAD_NAMES),
        agent_home=own,
        python=_own_python(place),
    )


def _of_agents(place: Place, hooked: Sequence[str]) -> Iterable[str]:
    """Yield the files and trees by which agents decide: of those that run our hooks, and where a variable has them.

    Those of other agents are known by their names.
    """
    tops = dict.fromkeys((*place.projects, place.top, os.path.expanduser("~")))
    for folder, names in (*usual(tops, hooked), *moved(os.environ)):
        path = os.path.abspath(os.path.expanduser(folder))
        yield from (os.path.join(path, name) for name in names)


def _with_targets(paths: Iterable[str]) -> list[str]:
    """Return paths and, of links, their targets."""
    paths = list(paths)
    return list(dict.fromkeys([*paths, *map(os.path.realpath, paths)]))


def _installations(place: Place) -> list[str]:
    """Return the settings files of other agents that run our hooks, or that cannot be read."""
    # Imported here, because the process of one event knows its own files.
    from agent_hooks.bridges import usable_bridges
    from agent_hooks.installs.places import installations

    return [each.target.path for bridge in usable_bridges() for each in installations(bridge, place.top)]


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


def _own_python(place: Place) -> OwnPython:
    """Return the Python that runs this program. A call that touches its packages looks the requirements up."""
    programs, base = _python_files()
    standard = os.path.dirname(os.__file__)
    venv = os.environ.get("VIRTUAL_ENV")
    inside = f"{sys.prefix}/".startswith(f"{place.top.rstrip('/')}/")
    return OwnPython(
        prefix=sys.prefix,
        programs=programs,
        packages=tuple(
            dict.fromkeys(each for path in _package_directories() for each in (path, os.path.realpath(path)))
        ),
        standard=(standard,) if os.access(standard, os.W_OK) else (),
        usual=inside or (venv == sys.prefix if venv else base),
        required=_required,
    )


@cache
def _python_files() -> tuple[tuple[str, ...], bool]:
    """Return the directories with the executable and with links to it, and whether there is no virtual environment."""
    path, paths = sys.executable, list[str]()
    while path and path not in paths:
        paths.append(path)
        if os.path.islink(path):
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    folders = [os.path.dirname(each) for each in (*paths, os.path.realpath(sys.executable))]
    return tuple(dict.fromkeys((*folders, *map(os.path.realpath, folders)))), sys.prefix == sys.base_prefix


def _package_directories() -> list[str]:
    found = [path for path in sys.path if path.endswith(("/site-packages", "/dist-packages"))]
    # A Python that judges one event starts without `site`, and its path has all directories that it uses.
    site = sys.modules.get("site")
    return [*found, site.getusersitepackages()] if site is not None and site.ENABLE_USER_SITE else found


@cache
def _required() -> frozenset[str]:
    """Return the distributions that this program needs, and their modules, by name."""
    # Imported here, because few calls touch the packages.
    from importlib.metadata import PackageNotFoundError, distribution

    names, waiting = set[str](), ["agent-hooks-runtime"]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in names:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            # Another platform or an older Python needs it.
            continue
        names.add(name)
        tops = (line.split(",")[0].split("/")[0] for line in (found.read_text("RECORD") or "").splitlines())
        names.update(top.partition(".")[0].lower() for top in tops if not top.endswith(("-info", ".pth", "..")))
        waiting += [re.split(r"[^\w.-]", each)[0] for each in found.requires or () if "extra ==" not in each]
    return frozenset(names - {"", "__pycache__"})
