"""The environment that an installation fixes for the server, and for the process that judges one event.

Another agent gives its own environment to the commands of its hooks, with the variables that the settings of a project
set.  So the variables that lead to files of the person, to another configuration of git or to another temporary directory
are those of the moment in which the person installed.  The programs that hooks start find everything else as the agent
has it, its PATH too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from agent_hooks.errors import SettingsError
from agent_hooks.installs.generated import DIRECTORY
from agent_hooks.settings import agent_home, user_home
from agent_hooks.storage.git import FIXED as GIT
from agent_hooks.storage.git import KEPT, git_program
from agent_hooks.storage.programs import system_program

_DIRECTORIES = ("CACHE_HOME", "CONFIG_DIRS", "CONFIG_HOME", "DATA_DIRS", "DATA_HOME", "STATE_HOME")
# An empty value stands for a variable that is not set.
_NAMES = (*(f"XDG_{name}" for name in _DIRECTORIES), "TMPDIR", "TEMP", "TMP", *KEPT)
REMOVED = ("OTEL_",)
"""The beginnings of the names of variables that are not passed on: they would send our traces to another address."""


def fixed_here() -> dict[str, str]:
    """Return the fixed variables as they are in this process, which a person has started; `""` stands for none."""
    home = agent_home()
    return {
        **{name: os.environ.get(name, "") for name in _NAMES},
        "HOME": user_home(),
        "AGENT_HOME": home,
        "AGENT_HOOKS_CACHE": os.path.join(home, DIRECTORY),
        GIT: git_program(os.getcwd()) or os.devnull,
    }


def fixed_for_account() -> dict[str, str]:
    """Return the fixed variables for this user, from the password database and the system only.

    Raises `SettingsError` when the user has no entry there.
    """
    # Imported here, because only a command that a project shares needs it.
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        text = f"user {os.getuid()} is not in the password database, so a shared installation knows no home"
        raise SettingsError(f"{text}; install with --user") from None
    return {
        **dict.fromkeys(_NAMES, ""),
        "HOME": home,
        "AGENT_HOME": agent_home(home),
        "AGENT_HOOKS_CACHE": os.path.join(agent_home(home), DIRECTORY),
        GIT: system_program("git") or os.devnull,
    }


def fixed_in(path: str) -> dict[str, str] | None:
    """Return the fixed variables in a generated file, `None` if there is no such file or it is of an older version."""
    # Imported here, because a process for one event does not read the file.
    from ast import literal_eval

    try:
        with open(path, encoding="utf-8") as file:
            line = next(line for line in file if line.startswith("#|    'fixed': "))
        found = literal_eval(line.partition(": ")[2].rstrip(",\n"))
    except (OSError, StopIteration, ValueError, SyntaxError):
        return None
    right = isinstance(found, dict) and all(isinstance(each, str) for pair in found.items() for each in pair)
    return found if right and found.keys() == {*_NAMES, "HOME", "AGENT_HOME", "AGENT_HOOKS_CACHE", GIT} else None


def settle(fixed: Mapping[str, str]) -> None:
    """Give this process the fixed variables."""
    for name in [name for name in os.environ if name.startswith(REMOVED)]:
        del os.environ[name]
    for name, value in fixed.items():
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)
