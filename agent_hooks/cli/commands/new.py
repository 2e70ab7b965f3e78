"""`agent-hooks new`: write a starter hook that works, and approve it."""

from __future__ import annotations

import os
import re

import click

from agent_hooks.cli.options import cwd_option
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.streams import echo
from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.hooks.finding import HOOKS_DIRECTORY
from agent_hooks.settings import PROJECT_DIRECTORY, agent_home, user_home
from agent_hooks.storage.files import create_atomically
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.trust.manifest import ProjectSet, read_set
from agent_hooks.trust.policy import REMEDY, ProjectTrust, Trust, judge

STARTER = '''\
"""{name}: stops commands that delete trees by force."""

from __future__ import annotations

from agent_hooks import Block, HookAPI, HookContext, ToolCall


def register(api: HookAPI) -> None:
    """Subscribe the handlers; agent-hooks calls this once, when it loads the hook."""

    @api.on("tool_call", tool="bash")
    async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        """Judge a command before it runs: a block stops it, and `None` has no objection."""
        if "rm -rf" in event.input["command"]:
            return Block("deleting a tree needs a person")
        return None
'''


@click.command("new")
@click.argument("name")
@click.option("--user", is_flag=True, help="Write it to ~/.agent/hooks, for all your projects.")
@cwd_option
def command(name: str, user: bool, cwd: str) -> None:
    """Write a hook to .agent/hooks/NAME.py of the project, and approve it: a gate to change as you like.

    It is approved if the rest of the project's hooks and settings is; otherwise run `agent-hooks trust`.
    """
    refuse_below_an_agent("new")
    name = name.removesuffix(".py")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,60}", name):
        raise click.UsageError(f"{name!r} is no name for a hook; it has letters, digits, - and _, as in no-force-push")
    if user:
        path = _write(agent_home(), name)
        echo(f"{short(path)}: written; it counts in all your projects")
        return
    project = _project(os.path.abspath(cwd))
    trust = Trust()
    store = trust.store()
    before = judge(store, project)
    path = _write(os.path.join(project, PROJECT_DIRECTORY), name)
    after = read_set(project)
    if before.state == "always":
        echo(f"{short(path)}: written; it counts from now on")
    elif store.problem is None and _adds_only(before, after, os.path.relpath(path, project)):
        store.approve(before.key, after, by="new")
        echo(f"{short(path)}: written and approved; it counts from now on")
    else:
        echo(f"{short(path)}: written; other hooks or settings here wait for your approval, so run: {REMEDY}")


def _project(cwd: str) -> str:
    """Return the project that gets the hook: the innermost one here, else the top of the working tree."""
    place = Trust().sources(cwd).place
    project = place.projects[-1] if place.projects else place.top
    if os.path.join(project, PROJECT_DIRECTORY) == agent_home() or project == os.path.realpath(user_home()):
        raise click.UsageError(f"{project} is your home directory, which is no project; add --user")
    return project


def _write(directory: str, name: str) -> str:
    """Write the starter hook below an `.agent` directory, and return its path; raises `AgentHooksError`."""
    path = os.path.join(directory, HOOKS_DIRECTORY, f"{name}.py")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        create_atomically(path, STARTER.format(name=name).encode())
    except FileExistsError:
        raise AgentHooksError(f"{short(path)} exists already; choose another name") from None
    except OSError as exc:
        raise AgentHooksError(f"cannot write {short(path)}: {os_reason(exc)}") from None
    return path


def _adds_only(before: ProjectTrust, after: ProjectSet, name: str) -> bool:
    """Tell whether a set is an approved or empty one and the starter hook, as it was written, and nothing else."""
    if before.state not in ("approved", "empty") or after.problem is not None or after.left_out:
        return False
    old = {file.name: file.data for file in before.found.files}
    new = {file.name: file.data for file in after.files}
    written = STARTER.format(name=os.path.basename(name).removesuffix(".py")).encode()
    return new == {**old, name: written}
