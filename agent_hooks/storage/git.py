"""The environment and the arguments for git calls, safe from the caller's environment and from the repository.

git passes `GIT_DIR` and others on to the programs that it starts, hooks for example; a git call that inherits them works
on another repository.  The configuration of a repository may name programs, which git would run.
"""

from __future__ import annotations

import os

# The person sets these for all of git; every other GIT_* is for one call.
_KEPT = {
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
}
NO_PROGRAMS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Arguments before git's subcommand: it runs no program that the repository names."""


def git_environment() -> dict[str, str]:
    """Return the environment for a git call: messages in English, no optional locks, no questions."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
    return {**kept, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
