"""The texts that people keep in files for the model: their directories, the reading of one, and its head.

The person's come first, so that no project takes their names.  A project from elsewhere may bring links along, so a file
of a project counts only where it lies in the project.
"""

from __future__ import annotations

import os
import re

from agent_hooks.guards.sensitive import sensitive
from agent_hooks.settings import PROJECT_DIRECTORY
from agent_hooks.storage.files import StorageError, check_regular, read_regular, refusing

_CLAUDE = ".claude"
_HEAD = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)


def directories_of(name: str, home: str, top: str, cwd: str) -> tuple[list[str], list[str]]:
    """Return the directories called `name` of the person, and those of the project; those of Claude Code count too.

    `home`: the agent home; `top`, `cwd`: the top of the project, and the agent's directory in it.
    """
    own = [os.path.join(each, name) for each in (home, os.path.join(os.path.expanduser("~"), _CLAUDE))]
    tops = dict.fromkeys((cwd, top))
    return own, [os.path.join(each, inner, name) for each in tops for inner in (PROJECT_DIRECTORY, _CLAUDE)]


def read_kept(path: str, top: str, most: int, *, own: bool) -> bytes:
    """Return the first bytes of a file; `own`: the person's, which may be a link to anywhere.

    Raises `StorageError` when it cannot be read, or is a link out of the project or to a file with secrets.
    """
    with refusing("read", path):
        check_regular(os.stat(path), path)
    if not own and not inside(path, top):
        raise StorageError(f"{path} is a link out of {top}")
    real = os.path.realpath(path)
    if not own and sensitive(real) and not sensitive(os.path.abspath(path)):
        raise StorageError(f"{path} is a link to {real}, which holds secrets")
    return read_regular(path, path, most)


def inside(path: str, top: str) -> bool:
    """Return whether a file lies below a directory, with all links followed."""
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(top), ""))


def parted(text: str) -> tuple[str, str]:
    """Return the head of a text, empty where it has none, and the rest."""
    match = _HEAD.match(text)
    return (match[1], text[match.end() :].strip()) if match else ("", text)


def value(head: str, key: str) -> str:
    """Return the value of a key on one line, without its quotes; empty where it is missing.

    A value of several lines, which begins with `>` or `|`, is its first paragraph as one line.
    """
    match = re.search(rf"^{re.escape(key)}:[ \t]*(.*(?:\n[ \t]+.+)*)", head, re.MULTILINE)
    if match is None:
        return ""
    return " ".join(match[1].lstrip("|>-+ \t").split()).strip("\"'")
