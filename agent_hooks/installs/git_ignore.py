"""Whether git would take a file along that is this person's only.  Above: install, agent_checks.  Below: common."""

from __future__ import annotations

import os
import shlex
import subprocess

from agent_hooks.cli.setup import short


def how_to_ignore(path: str) -> str | None:
    """Return the command that keeps git from taking a file along, if git would."""
    directory = os.path.dirname(path)
    while not os.path.isdir(directory):  # it may be made only now
        directory = os.path.dirname(directory)
    if _git(directory, "check-ignore", "--quiet", path)[0] != 1:
        return None
    exclude = os.path.join(directory, _git(directory, "rev-parse", "--git-path", "info/exclude")[1])
    ignore = f"echo '{os.path.basename(path)}*' >> {shlex.quote(short(os.path.normpath(exclude)))}"
    has_it = _git(directory, "ls-files", "--error-unmatch", path)[0] == 0
    elsewhere = "" if short(directory) != directory else f"-C {shlex.quote(directory)} "  # perhaps another repository
    return f"git {elsewhere}rm --cached {shlex.quote(short(path))}; {ignore}" if has_it else ignore


def _git(directory: str, *args: str) -> tuple[int | None, str]:
    """Return git's exit code in a directory, `None` where it cannot be run, and what it says."""
    try:
        done = subprocess.run(
            ["git", *args],  # noqa: S607  # the git of the person's own PATH
            cwd=directory,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ""
    return done.returncode, done.stdout.removesuffix("\n")
