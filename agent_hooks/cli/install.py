"""`agent-hooks install` and `uninstall`: let another agent run our hooks, by an entry in its settings file."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge, BridgeError
from agent_hooks.cli.common import short
from agent_hooks.errors import SettingsError, shown
from agent_hooks.host.tools.base import Refused, write_atomically
from agent_hooks.settings import read_file


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says which settings file is meant."""
    agent = click.argument("agent", type=click.Choice(list(BRIDGES)))
    project = click.option(
        "--project",
        "target",
        flag_value="project",
        default="project",
        help="In the settings of this directory (the default).",
    )
    user = click.option("--user", "target", flag_value="user", help="In your own settings, for every project.")
    return agent(project(user(function)))


@click.command("install")
@target_options
def command(agent: str, target: str) -> None:
    """Let AGENT run your hooks: adds entries to its settings, and keeps everything else that is there."""
    bridge = open_bridge(agent)
    # -P: a file of the project must not pass for a module of ours
    run = [sys.executable, "-P", "-m", "agent_hooks", "bridge", agent]
    path = _path(bridge, target)
    changed = _edit(path, lambda settings: bridge.install(settings, run))
    click.echo(f"{short(path)}: {'installed' if changed else 'is installed already'}; it runs {sys.executable}")
    click.echo(f"to remove it: agent-hooks uninstall {agent} --{target}")


def _path(bridge: Bridge, target: str) -> str:
    return os.path.abspath(os.path.expanduser(bridge.settings_file(os.environ, user=target == "user")))


def uninstall_from(agent: str, target: str) -> None:
    """Take our entries out, and say so."""
    bridge = open_bridge(agent)
    path = _path(bridge, target)
    changed = _edit(path, bridge.uninstall)
    click.echo(f"{short(path)}: {'uninstalled' if changed else 'nothing of agent_hooks is in it'}")


def _edit(path: str, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> bool:
    """Change a settings file in one step, in the form it has; return whether anything changed.

    Raises `SettingsError`, and then the file is as it was.
    """
    text = read_file(Path(path))
    try:
        settings: object = json.loads(text) if text is not None and text.strip() else {}
    except (ValueError, RecursionError) as exc:
        raise SettingsError(f"{path}: is not JSON: {exc}; mend it first, nothing was changed") from None
    if not isinstance(settings, dict):
        raise SettingsError(f"{path}: expected a JSON object, found {shown(settings)}; nothing was changed")
    try:
        changed = change(settings)
    except BridgeError as exc:
        raise SettingsError(f"{path}: {exc}; nothing was changed") from None
    if json.dumps(changed) == json.dumps(settings):
        return False
    indent = re.search(rb"^([ \t]+)\S", text or b"", re.MULTILINE)
    form: Any = indent[1].decode() if indent else 2
    try:
        write_atomically(path, (json.dumps(changed, indent=form, ensure_ascii=False) + "\n").encode(), path)
    except Refused as exc:
        raise SettingsError(str(exc)) from None
    return True
