"""The examples and templates that travel with the package, and how a copy of one becomes a hook.

A wheel has them in `agent_hooks/examples`; a clone, which an editable install runs, has them beside the package.
"""

from __future__ import annotations

import ast
import os
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

import click

import agent_hooks
from agent_hooks.cli.proving import prove_user
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.streams import echo, tell
from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.hooks.finding import HOOKS_DIRECTORY
from agent_hooks.settings import PROJECT_DIRECTORY, agent_home, user_home
from agent_hooks.storage.files import create_atomically
from agent_hooks.storage.links import inside_tree
from agent_hooks.trust.manifest import ProjectSet, read_set
from agent_hooks.trust.policy import REMEDY, ProjectTrust, Trust, judge

Kind = Literal["hooks", "templates"]


def shipped(kind: Kind) -> dict[str, str]:
    """Return the texts of all examples (`hooks`) or `templates`, by their names without `.py`, sorted."""
    folder: Traversable = files("agent_hooks") / "examples" / kind
    if not folder.is_dir():
        folder = Path(agent_hooks.__file__).parent.parent / "examples" / kind
    if not folder.is_dir():
        raise AgentHooksError(f"this installation has no {kind}; install the package again")
    found = [each for each in folder.iterdir() if each.name.endswith(".py") and each.name[0] not in "._"]
    return {each.name.removesuffix(".py"): each.read_text(encoding="utf-8") for each in sorted(found, key=_name)}


def _name(file: Traversable) -> str:
    return file.name


def summary(text: str) -> str:
    """Return the first sentence of a hook's docstring, in one line."""
    first = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
    return " ".join(re.split(r"(?<=\.)\s", first, maxsplit=1)[0].split())


def add(name: str, text: str, *, user: bool, cwd: str, by: str) -> None:
    """Write a hook to `hooks/NAME.py` of the project or of the person, and approve it if all the rest is approved.

    `by`: the command, for the record of the approval.  Raises `AgentHooksError` where there is such a file or no user,
    and `click.UsageError` in the home directory.
    """
    if user:
        path = _write(agent_home(), name, text)
        tell(f"{short(path)}: written; it counts in all your projects")
        return
    project = _project(os.path.abspath(cwd))
    store = Trust().store()
    before = judge(store, project)
    approves = store.problem is None and before.state in ("approved", "empty")
    origin = prove_user(by) if approves else None
    path = _write(os.path.join(project, PROJECT_DIRECTORY), name, text)
    after = read_set(project)
    if before.state == "always":
        tell(f"{short(path)}: written; it counts from now on")
    elif approves and _adds_only(before, after, os.path.relpath(path, project), text):
        store.approve(before.key, after, by=by, origin=origin)
        tell(f"{short(path)}: written and approved; it counts from now on")
    else:
        # A warning, because the hook does not count yet.
        echo(f"{short(path)}: written; other hooks or settings here wait for your approval, so run: {REMEDY}")


def _project(cwd: str) -> str:
    """Return the project that gets the hook: the innermost one here, else the top of the working tree."""
    place = Trust().sources(cwd).place
    project = place.projects[-1] if place.projects else place.top
    if os.path.join(project, PROJECT_DIRECTORY) == agent_home() or project == os.path.realpath(user_home()):
        raise click.UsageError(f"{project} is your home directory, which is no project; add --user")
    return project


def _write(directory: str, name: str, text: str) -> str:
    """Write a hook below an `.agent` directory, and return its path; raises `AgentHooksError`."""
    path = os.path.join(directory, HOOKS_DIRECTORY, f"{name}.py")
    # The links in the agent home are the user's own.
    if directory != agent_home():
        inside_tree(path, os.path.dirname(directory))
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        create_atomically(path, text.encode())
    except FileExistsError:
        raise AgentHooksError(f"{short(path)} exists already; choose another name") from None
    except OSError as exc:
        raise AgentHooksError(f"cannot write {short(path)}: {os_reason(exc)}") from None
    return path


def _adds_only(before: ProjectTrust, after: ProjectSet, name: str, text: str) -> bool:
    """Tell whether a set is an approved or empty one and the new hook, as it was written, and nothing else."""
    if after.problem is not None or after.left_out:
        return False
    old = {file.name: file.data for file in before.found.files}
    new = {file.name: file.data for file in after.files}
    return new == {**old, name: text.encode()}


def refuse_a_wrong_name(name: str) -> str:
    """Return the name of a hook without `.py`; raises `click.UsageError` for one that no hook can have."""
    name = name.removesuffix(".py")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,60}", name):
        raise click.UsageError(f"{name!r} is no name for a hook; it has letters, digits, - and _, as in no-force-push")
    return name
