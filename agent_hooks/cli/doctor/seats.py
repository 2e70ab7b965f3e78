"""The check of an agent's mod: its place before all other mods, and its files."""

from __future__ import annotations

from collections.abc import Iterator

from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.cli.doctor.base import AgentCase, Diagnosis
from agent_hooks.cli.screen.wording import short
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import read_settings
from agent_hooks.installs.places import install_line
from agent_hooks.installs.seat import directory
from agent_hooks.server.mod_files import mod_problem


def seat(case: AgentCase) -> Iterator[Diagnosis]:
    """Report what the mod lacks to come before all others, and the repository's plugin, which judges nothing."""
    if not case.bridge.mod:
        return
    user = case.targets["user"]
    try:
        settings = read_settings(user.path, user.format)[1]
    except SettingsError:
        # `settings_files` reports it.
        return
    # The shared file of a project changes nobody's own settings.
    own = [each.target.name for each in case.installations if each.entries and each.target.name != "project"]
    if own:
        yield from _missing(case, settings, install_line(case.bridge, own[0]))
    if not (plugin := case.bridge.unkeyed(settings)):
        return
    if case.entries:
        text = f"{short(user.path)}: the plugin {plugin} has done its work, because the entries are installed"
        yield case.ok(text)._replace(remedy=f"to remove it: {case.facts.program} plugin uninstall {plugin}")
    else:
        text = f"{short(user.path)}: the plugin {plugin} is enabled, and it judges no call without an installation"
        yield case.problem(text, install_line(case.bridge, "local"), in_project=True)


def _missing(case: AgentCase, settings: dict[str, object], remedy: str) -> Iterator[Diagnosis]:
    path = short(case.targets["user"].path)
    try:
        seated = case.bridge.seated(settings, directory())
    except BridgeError as exc:
        yield case.problem(f"{path}: {exc}", "mend the file")
        return
    wrong = [key for key, value in seated.items() if settings.get(key) != value]
    if wrong:
        text = f"the mod of agent_hooks does not come first, so another mod can overrule your hooks: {', '.join(wrong)}"
        yield case.warning(f"{path}: {text}", remedy, in_project=True)
    if (reason := mod_problem(case.bridge)) is not None:
        text = f"the mod of agent_hooks cannot work as installed: {reason}"
        yield case.warning(text, remedy, in_project=True)
