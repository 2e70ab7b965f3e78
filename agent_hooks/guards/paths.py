"""`builtin:security-audit`: keeps file tools away from secrets, and from the settings of guards and hooks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_hooks.guards.base import DEFAULT_OPTIONS, Finding, GuardedCall, GuardOptions, path_of
from agent_hooks.guards.control import ControlFiles
from agent_hooks.guards.sensitive import normalise, sensitive, sensitive_glob, system_path

REASONS = {
    "ssh-keys": "holds private SSH keys",
    "cloud-credentials": "holds credentials",
    "package-token": "holds tokens of a registry or a host",
    "agent-token": "holds tokens of a coding agent",
    "keyring": "is a key store",
    "private-key": "is a private key",
    "environment-file": "is an environment file, which holds secrets",
    "shell-profile": "is a shell profile or history, which holds exported keys",
    "account-file": "is an account file of the system",
    "process-memory": "shows the memory or the environment of a process",
    "guard-settings": "decides which calls are allowed; only a person changes it",
    "records": "is a record of decisions, which only a person reads",
    "system-file": "belongs to the operating system",
}


class SecurityAudit:
    """Judges the path of a file tool, both as given and with all symlinks followed."""

    name = "builtin:security-audit"
    tools = ("read", "write", "edit", "grep")

    def __init__(self, options: GuardOptions = DEFAULT_OPTIONS) -> None:
        self._options = options

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return one finding at most."""
        given = path_of(call.input)
        glob = call.input.get("glob") if call.tool_name == "grep" else None
        if given is None and isinstance(glob, str):
            # A search that names no directory begins in the current one.
            given = "."
        if given is None:
            return []
        paths = [normalise(given, cwd=call.cwd, home=call.home)]
        if call.real_path and call.real_path != paths[0]:
            paths.append(normalise(call.real_path, cwd=call.cwd, home=call.home))
        globbed = list(_globbed(glob, paths[0], call.home)) if isinstance(glob, str) else []
        control = ControlFiles(self._options, call.unlocked)
        write = call.tool_name in ("write", "edit")
        for path in [*paths, *globbed]:
            reached = sensitive_glob(path, home=call.home) if path is not paths[0] and "*" in path else None
            if rule := reached or _rule(path, control, write=write):
                return [Finding(rule, f"{glob if path in globbed else given} {REASONS[rule]}")]
        return []


def _rule(path: str, control: ControlFiles, *, write: bool) -> str | None:
    """Return the rule that a normalised path meets, if any."""
    if write and control.stops_writing(path):
        return "guard-settings"
    if not write and control.stops_reading(path):
        return "records"
    if rule := sensitive(path, write=write):
        return rule
    return "system-file" if write and system_path(path) else None


def _globbed(glob: str, directory: str, home: str) -> Iterator[str]:
    """Yield the normalised paths of a search's globs: agents give several at once, and alternatives in braces."""
    for each in re.split(r"[\s,{}]+", glob):
        if each and not each.startswith("!"):
            for end in dict.fromkeys((each, each.rpartition("/")[2])):
                if end:
                    yield normalise(end, cwd=directory, home=home)
