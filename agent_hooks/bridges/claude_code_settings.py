"""The part of the bridge to Claude Code that handles its settings files: it adds, finds and removes our entries."""

from __future__ import annotations

import re
import sys
from abc import ABC
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

from agent_hooks.bridges.base import LOOPBACK, OURS, Address, Bridge, BridgeError, EventRow, Facts, Hindrance, Installed

CONFIG = "CLAUDE_CONFIG_DIR"
_AGENT = "claude-code"
# An entry is ours if its status message begins with the mark, if its arguments hold the words of `agent-hooks bridge`, if
# it runs the generated file, or if its URL has this path.
_MARK = f"{OURS}:"
_STATUS = f"{_MARK} your hooks (to remove: agent-hooks uninstall claude-code, or delete each entry with this text)"
_BRIDGE = ("bridge", _AGENT)
_FILE = "/bridges/agent-hooks-claude-code.py"
_POSTED = f"/agent-hooks/{_AGENT}/"
_LAST_PORT = 65535
# An integer in JSON may be larger than any float.
_LARGEST = sys.float_info.max
# The session and the description in the call of a check.
_DOCTOR = "agent-hooks doctor"
_TRUSTED = "hasTrustDialogAccepted"
_MANAGED = (
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
)
# Copilot and Cursor read .claude/settings.json too.
_READERS = (".github/hooks/*.json", ".cursor/hooks.json", "~/.copilot/hooks/*.json", "~/.cursor/hooks.json")
# The matchers that match every tool.
_EVERY_TOOL = (None, "", "*")


class ClaudeCodeSettings(Bridge, ABC):
    """The half of the bridge to Claude Code that handles its settings files."""

    def settings_files(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the paths of `settings.local.json`, and of `settings.json` of the project and of the person."""
        own = environment.get(CONFIG) or "~/.claude"
        return {
            "local": ".claude/settings.local.json",
            "project": ".claude/settings.json",
            "user": f"{own}/settings.json",
        }

    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        """Return the facts for a check of an installation."""
        own = environment.get(CONFIG)
        common = {"session_id": _DOCTOR, "transcript_path": "", "cwd": project, "permission_mode": "default"}
        call = {"command": "true", "description": _DOCTOR}
        named = {"tool_name": "Bash", "tool_input": call, "tool_use_id": _DOCTOR}
        return Facts(
            program="claude",
            tested="2.1.329",
            files=(*_MANAGED, f"{own}/.claude.json" if own else "~/.claude.json"),
            others=_READERS,
            environment={
                "CLAUDECODE": "1",
                "CLAUDE_PROJECT_DIR": project,
                "CLAUDE_CODE_ENTRYPOINT": "cli",
                "CLAUDE_CODE_SESSION_ID": _DOCTOR,
            },
            sample={**common, "hook_event_name": "PreToolUse", **named},
        )

    def hindrances(
        self, path: str, found: Mapping[str, Any], project: str, posted: Collection[str] = ()
    ) -> Sequence[Hindrance]:
        """Return the settings that switch hooks off; `.claude.json` holds the directories that the person trusts."""
        hindrances = []
        if found.get("disableAllHooks") is True:
            hindrances.append(Hindrance("disableAllHooks is on: Claude Code runs no hook"))
        # This key has no effect in other files.
        if path in _MANAGED and found.get("allowManagedHooksOnly") is True:
            hindrances.append(Hindrance("allowManagedHooksOnly is on: Claude Code runs hooks of managed settings only"))
        allowed = found.get("allowedHttpHookUrls")
        if isinstance(allowed, list) and not all(
            any(fnmatchcase(url, str(each)) for each in allowed) for url in posted
        ):
            text = f"allowedHttpHookUrls leaves out {LOOPBACK}: Claude Code posts no event there"
            hindrances.append(Hindrance(text, remedy=f'add "http://{LOOPBACK}:*", or install with --no-http'))
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

    def variables(self, settings: Mapping[str, Any]) -> Sequence[str]:
        """Return the names in `env`."""
        found = settings.get("env")
        return list(found) if isinstance(found, dict) else []

    def install(
        self,
        settings: Mapping[str, Any],
        command: Sequence[str],
        events: Collection[str],
        address: Address | None = None,
    ) -> dict[str, Any]:
        """Return the settings with our entries; everything else keeps its place.  Raises `BridgeError`."""
        hooks = dict(_hooks(settings))
        for row in self.describe():
            if row.name in events:
                hooks[row.name] = _with_ours(hooks.get(row.name, []), _entry(row, command, address))
        return {**settings, "hooks": hooks}

    def uninstall(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings without our entries, and without groups and keys that held nothing else.

        Raises `BridgeError`.
        """
        hooks = _hooks(settings)
        left = {}
        for event, groups in hooks.items():
            kept = [each for group in groups for each in _left_of(group)]
            if kept or not groups:
                left[event] = kept
        if hooks and not left:
            return {key: value for key, value in settings.items() if key != "hooks"}
        return {key: left if key == "hooks" else value for key, value in settings.items()}

    def installed(self, settings: Mapping[str, Any]) -> Sequence[Installed]:
        """Return our entries; parts of the settings that have a wrong form are skipped."""
        hooks = settings.get("hooks")
        return [] if not isinstance(hooks, dict) else list(_entries(hooks))


def _hooks(settings: Mapping[str, Any]) -> dict[str, list[Any]]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise BridgeError("key 'hooks' must be an object of lists")
    return hooks


def _entry(row: EventRow, command: Sequence[str], address: Address | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "command", "command": command[0], "args": [*command[1:], row.name]}
    if address is not None and row.decides_nothing:
        url, headers = address.url(_AGENT, row.name), {"Authorization": f"Bearer {address.token}"}
        entry = {"type": "http", "url": url, "headers": headers}
    if row.timeout is not None:
        entry["timeout"] = row.timeout
    if row.gate:
        entry["onFailure"] = "block"
    return {**entry, "statusMessage": _STATUS}


def _with_ours(groups: Sequence[Any], entry: dict[str, Any]) -> list[Any]:
    """Return an event's groups with our entry once.

    It takes the place of an earlier entry of ours in a group that matches every tool, else it gets a group of its own.
    """
    done: list[Any] = []
    placed = False
    for group in groups:
        if placed or not _has_ours(group) or group.get("matcher") not in _EVERY_TOOL:
            done += _left_of(group)
            continue
        first = next(each for each in group["hooks"] if _is_ours(each))
        kept = [entry if each is first else each for each in group["hooks"] if each is first or not _is_ours(each)]
        done.append({**group, "hooks": kept})
        placed = True
    return done if placed else [*done, {"hooks": [entry]}]


def _has_ours(group: Any) -> bool:
    return isinstance(group, dict) and isinstance(group.get("hooks"), list) and any(map(_is_ours, group["hooks"]))


def _left_of(group: Any) -> list[Any]:
    """Return a group without our entries, or nothing if it held only those.  A value that is no group stays."""
    if not _has_ours(group):
        return [group]
    kept = [entry for entry in group["hooks"] if not _is_ours(entry)]
    return [{**group, "hooks": kept}] if kept else []


def _is_ours(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    if str(entry.get("statusMessage", "")).startswith(_MARK):
        return True
    words = _command(entry)
    if entry.get("type") == "http":
        return _POSTED in words[0]
    return _BRIDGE in pairwise(words) or any(word.endswith(_FILE) for word in words)


def _command(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words of an entry's command line; the URL of an entry that posts."""
    if entry.get("type") == "http":
        return (str(entry.get("url", "")),)
    args = entry.get("args")
    if isinstance(args, list):
        return (str(entry.get("command", "")), *map(str, args))
    return tuple(str(entry.get("command", "")).split())


def _entries(hooks: Mapping[str, Any]) -> Iterator[Installed]:
    for event, groups in hooks.items():
        for group in groups if isinstance(groups, list) else ():
            for entry in group["hooks"] if _has_ours(group) else ():
                if _is_ours(entry):
                    yield Installed(
                        event,
                        _command(entry),
                        fails_closed=entry.get("onFailure") == "block",
                        timeout=_timeout(entry),
                        limits=_limits(group, entry),
                        address=_address(entry),
                    )


def _timeout(entry: Mapping[str, Any]) -> float | None:
    seconds = entry.get("timeout")
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool) and abs(seconds) <= _LARGEST
    return seconds if known else None


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


def _limits(group: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, by key, that keep an entry from running at each such event."""
    limits = {"matcher": group.get("matcher"), **{key: entry.get(key) for key in ("if", "once", "async")}}
    return {key: value for key, value in limits.items() if value not in (*_EVERY_TOOL, False)}
