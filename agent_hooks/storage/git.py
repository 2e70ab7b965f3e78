"""The one way to call git: the program, its arguments and its environment, safe from the caller and from the repository.

git passes `GIT_DIR` and others on to the programs that it starts, hooks for example; a git call that inherits them works
on another repository.  The configuration of a repository may name programs, which git would run; a repository from
elsewhere may bring any configuration along.  So each key that can name a program gets a value here, on the command line,
which outweighs every file: included ones too, and those of a worktree.

Three kinds of programs have no key with a fixed name, and the calls of this package avoid them:

1. Filters and diff drivers run when git converts contents.  `checkpoints` uses a git directory of its own for that.
2. Transports run when git fetches a missing object from a promisor remote.  Every transport is forbidden.
3. Hooks of the configuration (git 2.54) have names of their own; `without_hooks` switches those off.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from agent_hooks.storage.programs import find_program, safe_path

# The person sets these for all of git; every other GIT_* is for one call.
KEPT = (
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
)
"""The variables of the environment that hold for every git call."""
FIXED = "AGENT_HOOKS_GIT"
"""The variable with the path of git, which an installed client sets: there the PATH may be a project's."""
# A program that does nothing but fail.
_NONE = "false"
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.editor": _NONE,
    "sequence.editor": _NONE,
    "core.sshCommand": _NONE,
    "core.gitProxy": _NONE,
    "core.askPass": _NONE,
    "core.alternateRefsCommand": _NONE,
    "credential.helper": "",
    "gpg.program": _NONE,
    "diff.external": _NONE,
    "interactive.diffFilter": _NONE,
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "all",
    "maintenance.auto": "false",
    "gc.auto": "0",
    # A directory that has the form of a bare repository may be any directory of a working tree.
    "safe.bareRepository": "explicit",
    # git 2.55 switches off by event as well.
    "hook.reference-transaction.enabled": "false",
    "hook.post-index-change.enabled": "false",
}
NO_PROGRAMS = ("--no-pager", *(word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")))
"""Arguments before git's subcommand: it runs no program that the repository names."""


def git_program(directory: str) -> str | None:
    """Return the path of git for calls in `directory`, or `None` without git; never a program of a project there."""
    fixed = os.environ.get(FIXED)
    if fixed:
        return fixed if os.path.isabs(fixed) and os.path.isfile(fixed) and os.access(fixed, os.X_OK) else None
    return find_program("git", outside=directory)


def git_environment(directory: str | None = None) -> dict[str, str]:
    """Return the environment for a git call in `directory`: messages in English, no optional locks, no questions.

    Nothing is fetched: not even a missing object of a partial clone.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in KEPT}
    return {
        **kept,
        "PATH": safe_path(directory),
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        # No transport is in this list; older versions of git know only this variable.
        "GIT_ALLOW_PROTOCOL": "",
    }


def without_hooks(keys: Iterable[str]) -> dict[str, str]:
    """Return the part of the environment that switches off the hooks that a configuration with these keys defines.

    A name may hold any character, an equals sign too, so the command line cannot carry these.
    """
    names = dict.fromkeys(key[5:].rpartition(".")[0] for key in keys if key.startswith("hook."))
    pairs = [(f"hook.{name}.enabled", "false") for name in names]
    values = {f"GIT_CONFIG_KEY_{at}": key for at, (key, _) in enumerate(pairs)}
    values |= {f"GIT_CONFIG_VALUE_{at}": value for at, (_, value) in enumerate(pairs)}
    return {**values, "GIT_CONFIG_COUNT": str(len(pairs))} if pairs else {}
