"""The table of the built-in guards: one row per guard, with every fact that other modules need before a guard is loaded.

A guard's module is imported at its first call, because most programs judge no call before they wait for one.  The rule
ids and packs that settings may name therefore stand in the row, and a test compares them with the code.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from msgspec import Struct

from agent_hooks.guards.base import Finder, GuardOptions

SECRETS = (
    *("account-file", "agent-token", "cloud-credentials", "environment-file", "keyring", "package-token"),
    *("private-key", "process-memory", "shell-profile", "ssh-keys"),
)
"""The kinds of secret files; a rule of that id, or of `read-` or `write-` and that id, protects each."""


class GuardRow(Struct, frozen=True, kw_only=True):
    """One built-in guard.

    `module`, `finder`: the module and its class, which takes `GuardOptions`; `rules`: the ids of its findings, which
    exceptions may name; `packs`: the extended packs of rules that settings may switch on, each of which is also the id
    of its findings.
    """

    module: str
    finder: str
    rules: tuple[str, ...]
    packs: tuple[str, ...] = ()

    def make(self, options: GuardOptions) -> Finder:
        """Import the guard's module and return the guard."""
        finder: Finder = getattr(import_module(self.module), self.finder)(options)
        return finder


BUILTIN: dict[str, GuardRow] = {
    "builtin:command-safety-guard": GuardRow(
        module="agent_hooks.guards.shell",
        finder="CommandSafetyGuard",
        rules=(
            *("chmod-root", "disk", "docker", "download-exec", "dynamic-code", "encoded-exec", "find-delete"),
            *("fork-bomb", "git-history", "git-hooks", "git-remote", "git-worktree", "invisible-characters", "rm-rf"),
            *("rsync-delete", "setuid", "shell-on-socket", "system-file", "too-long", "unreadable", "world-writable"),
            *("read-records", "write-guard-settings"),
            *(verb + each for verb in ("read-", "write-") for each in SECRETS),
        ),
        packs=("cloud", "kubernetes", "iac", "sql", "services"),
    ),
    "builtin:security-audit": GuardRow(
        module="agent_hooks.guards.paths",
        finder="SecurityAudit",
        rules=("guard-settings", "records", "system-file", *SECRETS),
    ),
}


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


PACKS = _distinct(pack for row in BUILTIN.values() for pack in row.packs)
"""All packs that `guards.packs` may name."""
RULES = _distinct(rule for row in BUILTIN.values() for rule in (*row.rules, *row.packs))
"""The ids of all rules of the built-in guards, which `guards.exceptions` may name."""
