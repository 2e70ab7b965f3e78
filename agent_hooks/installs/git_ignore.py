"""Find out whether git would commit a file that belongs to one person, and how to keep git from it."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable

from agent_hooks.storage.git import NO_PROGRAMS, git_environment, git_program

# Seconds for one git call.
_PATIENCE = 10


def how_to_ignore(path: str, shorten: Callable[[str], str] = str) -> str | None:
    """Return the command that makes git ignore a file, or `None` if git ignores it already or no repository is here.

    `shorten` shortens the paths in the command, so that a person can run it in the current directory.
    """
    directory = os.path.dirname(path)
    # The installation has yet to make the directory.
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    if _git(directory, "check-ignore", "--quiet", path)[0] != 1:
        return None
    exclude = os.path.join(directory, _git(directory, "rev-parse", "--git-path", "info/exclude")[1])
    ignore = f"echo {shlex.quote(f'{os.path.basename(path)}*')} >> {shlex.quote(shorten(os.path.normpath(exclude)))}"
    if _git(directory, "ls-files", "--error-unmatch", path)[0] != 0:
        return ignore
    # The file may belong to another repository than the current directory.
    return f"git -C {shlex.quote(shorten(directory))} rm --cached {shlex.quote(os.path.basename(path))}; {ignore}"


def _git(directory: str, *args: str) -> tuple[int | None, str]:
    """Return the exit code of git in a directory, `None` if git cannot be run, and the text that it prints."""
    program = git_program(directory)
    if program is None:
        return None, ""
    try:
        done = subprocess.run(
            [program, *NO_PROGRAMS, *args],
            cwd=directory,
            env=git_environment(directory),
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ""
    return done.returncode, done.stdout.removesuffix("\n")
