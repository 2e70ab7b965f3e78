"""`builtin:security-audit`: keeps file tools away from secrets, and from the guards' own settings.

Above: guards.  Below: base, sensitive.
"""

from __future__ import annotations

import re

from agent_hooks.guards.base import Finding, GuardedCall, path_of
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
    "guard-settings": "decides what is allowed; only a person changes it",
    "system-file": "belongs to the operating system",
}


class SecurityAudit:
    """Judges the path of a file tool, as given and with all symlinks followed."""

    name = "builtin:security-audit"
    tools = ("read", "write", "edit", "grep")

    def __init__(self, protected: tuple[str, ...] = ()) -> None:
        self._protected = protected  # absolute paths of hooks and settings that lie elsewhere

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return one finding at most."""
        given = path_of(call.input)
        glob = call.input.get("glob") if call.tool_name == "grep" else None
        if given is None and isinstance(glob, str):
            given = "."  # where a search begins that names no directory
        if given is None:
            return []
        write = call.tool_name in ("write", "edit")
        paths = [normalise(given, cwd=call.cwd, home=call.home)]
        if call.real_path and call.real_path != paths[0]:
            paths.append(normalise(call.real_path, cwd=call.cwd, home=call.home))
        globbed: list[str] = []
        if isinstance(glob, str):
            for each in re.split(r"[\s,{}]+", glob):  # agents take several, and alternatives in braces
                if each and not each.startswith("!"):
                    ends = dict.fromkeys((each, each.rpartition("/")[2]))
                    globbed += [normalise(end, cwd=paths[0], home=call.home) for end in ends if end]
        for path in [*paths, *globbed]:
            reach = sensitive_glob(path, home=call.home) if path is not paths[0] and "*" in path else None
            rule = reach or sensitive(path, write=write)
            if rule is None and write:
                if any(path == own or path.startswith(f"{own}/") for own in self._protected):
                    rule = "guard-settings"
                elif system_path(path):
                    rule = "system-file"
            if rule is not None:
                return [Finding(rule, f"{glob if path in globbed else given} {REASONS[rule]}")]
        return []
