"""`agent-hooks list --available`: the hooks that installed packages offer, and whether the settings name them."""

from __future__ import annotations

import json

from agent_hooks.cli.screen.wording import console, plain_table
from agent_hooks.cli.streams import echo, echo_json
from agent_hooks.hooks.offered import OfferedHook, offered_hooks
from agent_hooks.settings import agent_home, merge_settings
from agent_hooks.trees import SourceTree


def print_available(*, as_json: bool) -> None:
    """Print the hooks that packages offer; raises `SettingsError` when the person's settings cannot be read."""
    settings = merge_settings([SourceTree(agent_home())])
    offered = offered_hooks()
    used = {each.entry: each.path in settings.hooks and each.path not in settings.disabled_hooks for each in offered}
    if as_json:
        echo_json(json.dumps({"available": [_row(each, used=used[each.entry]) for each in offered]}))
        return
    if not offered:
        echo("no installed package offers hooks (entry-point group agent_hooks)")
        return
    table = plain_table("hook", "entry", "package", "state")
    for each in offered:
        state = "its module is missing" if each.path is None else "counts" if used[each.entry] else "not used"
        table.add_row(each.name, each.entry, f"{each.package} {each.version}", state)
    console().print(table)
    if not all(used.values()):
        echo(f"to use one, put its entry into hooks in {agent_home()}/settings.json")


def _row(hook: OfferedHook, *, used: bool) -> dict[str, object]:
    return {
        "hook": hook.name,
        "entry": hook.entry,
        "package": hook.package,
        "version": hook.version,
        "path": hook.path,
        "used": used,
    }
