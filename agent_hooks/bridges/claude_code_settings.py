"""The part of the bridge to Claude Code that handles its settings files: it adds, finds and removes our entries."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace

from agent_hooks.bridges.base.installation import LOOPBACK, Address, EventRow, Facts, Hindrance, Installed
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.command_settings import MARK, Found
from agent_hooks.bridges.tables import Layout
from agent_hooks.errors import shown
from agent_hooks.values.events import TRIAL

CONFIG = "CLAUDE_CONFIG_DIR"
_AGENT = "claude-code"
# An entry that posts is ours if its URL has this path.
_POSTED = f"/agent-hooks/{_AGENT}/"
_LAST_PORT = 65535
_TRUSTED = "hasTrustDialogAccepted"
# Where Claude Code finds plugins, which of them it loads, and which of them are first in each chain.
_MARKETS, _ENABLED, _FIRST = "extraKnownMarketplaces", "enabledPlugins", "prependPlugins"
_SEAT = "agent-hooks@agent-hooks"
# The plugin from the marketplace file of the repository.  It only tells how to install.
_UNKEYED = "agent-hooks@agent-hooks-source"
_MANAGED = (
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
)


class ClaudeCodeSettings(CommandBridge, ABC):
    """The half of the bridge to Claude Code that handles its settings files."""

    title, program, tested = "Claude Code", "claude", "2.1.332"
    layout = Layout(
        files={
            "local": ".claude/settings.local.json",
            "project": ".claude/settings.json",
            "user": "{home}/settings.json",
        },
        home=(CONFIG, "~/.claude"),
        args="args",
        gate={"onFailure": "block"},
        mark="statusMessage",
        off=("disableAllHooks",),
    )

    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        """Return the facts for a check of an installation."""
        own = environment.get(CONFIG)
        common = {"session_id": TRIAL, "transcript_path": "", "cwd": project, "permission_mode": "default"}
        call = {"command": "true", "description": TRIAL}
        named = {"tool_name": "Bash", "tool_input": call, "tool_use_id": TRIAL}
        return Facts(
            program=self.program,
            tested=self.tested,
            files=(*_MANAGED, f"{own}/.claude.json" if own else "~/.claude.json"),
            environment={
                "CLAUDECODE": "1",
                "CLAUDE_PROJECT_DIR": project,
                "CLAUDE_CODE_ENTRYPOINT": "cli",
                "CLAUDE_CODE_SESSION_ID": TRIAL,
            },
            sample={**common, "hook_event_name": "PreToolUse", **named},
            event="PreToolUse",
            hookless=("--bare",),
        )

    def hindrances(
        self, path: str, found: Mapping[str, Any], project: str, posted: Collection[str] = ()
    ) -> Sequence[Hindrance]:
        """Return the settings that switch hooks off; `.claude.json` holds the directories that the person trusts."""
        hindrances = [*super().hindrances(path, found, project, posted)]
        # This key has no effect in other files.
        if path in _MANAGED and found.get("allowManagedHooksOnly") is True:
            hindrances.append(Hindrance("allowManagedHooksOnly is on: Claude Code runs hooks of managed settings only"))
        allowed = found.get("allowedHttpHookUrls")
        if isinstance(allowed, list) and not all(
            any(fnmatchcase(url, str(each)) for each in allowed) for url in posted
        ):
            text = f"allowedHttpHookUrls leaves out {LOOPBACK}: Claude Code posts no event there"
            hindrances.append(Hindrance(text, remedy=f'add "http://{LOOPBACK}:*", or install with --no-http'))
        # These keys of plugins have no effect in the settings of a project.
        if not path.startswith(f"{project}/"):
            hindrances += self._above(found)
        projects = found.get("projects")
        if isinstance(projects, dict):
            # Imported here, because only `doctor` comes here.
            from pathlib import PurePath

            above = (project, *map(str, PurePath(project).parents))
            if not any(isinstance(each := projects.get(path), dict) and each.get(_TRUSTED) for path in above):
                text = "you were not asked yet whether you trust this directory"
                then = "until you say yes, only `claude -p` runs hooks"
                remedy = "start `claude` here once, and say yes"
                hindrances.append(Hindrance(f"{text}; {then}", always=False, remedy=remedy))
        return hindrances

    def _above(self, found: Mapping[str, Any]) -> Iterator[Hindrance]:
        """Yield the mods that can overrule our hooks."""
        enabled, first = found.get(_ENABLED), found.get(_FIRST)
        loaded = [name for name, on in enabled.items() if on] if isinstance(enabled, dict) else []
        others = [name for name in loaded if name not in (_SEAT, _UNKEYED)]
        listed = [str(name) for name in first] if isinstance(first, list) else []
        above = listed[: listed.index(_SEAT)] if _SEAT in listed else [*listed, *others]
        if above:
            text = f"these plugins come before agent-hooks, so their mods can overrule your hooks: {', '.join(above)}"
            yield Hindrance(text, always=False, remedy=f"run agent-hooks install {_AGENT}")
        before = loaded[: loaded.index(_SEAT)] if _SEAT in loaded else []
        if namesakes := [name for name in before if name.partition("@")[0] == self.mod_name]:
            text = f"of plugins with one name the first is loaded, so our mod is not: {', '.join(namesakes)}"
            yield Hindrance(text, always=False, remedy=f"run agent-hooks install {_AGENT}")

    mod = "claude-code"
    mod_name = "agent-hooks"
    mod_keys = (_MARKETS, _ENABLED, _FIRST)
    managed = _MANAGED

    def seated(self, settings: Mapping[str, Any], directory: str) -> dict[str, Any]:
        found = self.unseated(settings)
        source = {"source": {"source": "directory", "path": directory}}
        # Of several plugins with one name, Claude Code loads the first one.
        for key, members in ((_MARKETS, {self.mod_name: source}), (_ENABLED, {_SEAT: True})):
            known = found.get(key, {})
            if not isinstance(known, dict):
                raise BridgeError(f"{key} must be an object, not {shown(known)}")
            found[key] = {**members, **known}
        first = found.get(_FIRST, [])
        if not isinstance(first, list):
            raise BridgeError(f"{_FIRST} must be a list, not {shown(first)}")
        found[_FIRST] = [_SEAT, *first]
        return found

    def unseated(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(settings)
        for key, name in ((_MARKETS, self.mod_name), (_ENABLED, _SEAT)):
            known = found.get(key)
            if isinstance(known, dict) and name in known:
                found[key] = {each: value for each, value in known.items() if each != name}
                if not found[key]:
                    del found[key]
        first = found.get(_FIRST)
        if isinstance(first, list) and _SEAT in first:
            found[_FIRST] = [each for each in first if each != _SEAT]
            if not found[_FIRST]:
                del found[_FIRST]
        return found

    def unkeyed(self, settings: Mapping[str, Any]) -> str:
        enabled = settings.get(_ENABLED)
        return _UNKEYED if isinstance(enabled, dict) and enabled.get(_UNKEYED) else ""

    def variables(self, settings: Mapping[str, Any]) -> Sequence[str]:
        """Return the names in `env`."""
        found = settings.get("env")
        return list(found) if isinstance(found, dict) else []

    def _mark(self) -> str:
        """Return the text that Claude Code shows while the hooks run."""
        return f"{MARK} running your hooks"

    def is_ours(self, entry: Any) -> bool:
        """Return whether an entry is ours; one that posts is known by its URL."""
        posts = isinstance(entry, dict) and entry.get("type") == "http" and _POSTED in str(entry.get("url", ""))
        return posts or super().is_ours(entry)

    def _entry(self, row: EventRow, command: Sequence[str], address: Address | None) -> dict[str, Any]:
        entry = super()._entry(row, command, address)
        if address is None or not row.decides_nothing:
            return entry
        url, headers = address.url(_AGENT, row.name), {"Authorization": f"Bearer {address.token}"}
        rest = {key: value for key, value in entry.items() if key not in ("type", "command", "args")}
        return {"type": "http", "url": url, "headers": headers, **rest}

    def _command(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        if entry.get("type") == "http":
            return (str(entry.get("url", "")),)
        return super()._command(entry)

    def _installed(self, found: Found) -> Installed:
        return replace(super()._installed(found), address=_address(found.entry))

    def _limits(self, group: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
        limits = {key: entry.get(key) for key in ("if", "once", "async")}
        return super()._limits(group, entry) | {
            key: value for key, value in limits.items() if value not in (*self.layout.every_tool, False)
        }


def _address(entry: Mapping[str, Any]) -> Address | None:
    """Return the address to which an entry posts, if it has the form that `_entry` gives it."""
    headers = entry.get("headers")
    authorization = str(headers.get("Authorization")) if isinstance(headers, dict) else ""
    # A stranger's settings must not make `doctor` post anything else to a program of this machine.
    url = re.fullmatch(
        rf"http://{re.escape(LOOPBACK)}:([1-9][0-9]{{0,4}}){re.escape(_POSTED)}\w+", str(entry.get("url"))
    )
    token = re.fullmatch(r"Bearer ([!-~]+)", authorization)
    if entry.get("type") != "http" or url is None or token is None or int(url[1]) > _LAST_PORT:
        return None
    return Address(int(url[1]), token[1])
