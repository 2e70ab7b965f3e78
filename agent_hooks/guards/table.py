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


OUTSIDE = (
    *("access", "backup", "broker", "ci", "exhaustion", "hidden-code", "http-delete", "log-removal", "machine-state"),
    *("monitoring", "packages", "payment", "persistence", "print-secret", "publish", "search-engine", "secret-store"),
    *("send-out", "windows"),
)
"""The rules about losses outside of the project: services, the running system, content that leaves the machine."""


class GuardRow(Struct, frozen=True, kw_only=True):
    """One built-in guard.

    `module`, `finder`: the module and its class, which takes `GuardOptions`; `walls`, `questions`: the ids of its
    findings, which exceptions may name.  A wall blocks: the call destroys the machine, hands out secrets, or changes the
    files that guard the agent.  A question is put to a person, because a person may well want such a call; without a
    person it blocks.  `packs`: groups of rules about services, each of which is also the id of its findings, and a
    question.
    """

    module: str
    finder: str
    walls: tuple[str, ...]
    questions: tuple[str, ...]
    packs: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of all findings, without the packs."""
        return (*self.walls, *self.questions)

    def make(self, options: GuardOptions) -> Finder:
        """Import the guard's module and return the guard."""
        finder: Finder = getattr(import_module(self.module), self.finder)(options)
        return finder


BUILTIN: dict[str, GuardRow] = {
    "builtin:command-safety-guard": GuardRow(
        module="agent_hooks.guards.shell",
        finder="CommandSafetyGuard",
        walls=(
            *("chmod-root", "disk", "encoded-exec", "fork-bomb", "invisible-characters", "read-records"),
            *("shell-on-socket", "system-file", "write-guard-settings"),
            *(verb + each for verb in ("read-", "write-") for each in SECRETS),
        ),
        questions=(
            *(
                "client-code",
                "docker",
                "download-exec",
                "dynamic-code",
                "find-delete",
                "git-history",
                "git-hooks",
                "git-remote",
            ),
            *("git-worktree", "rm-rf", "rsync-delete", "setuid", "too-long", "typed-commands", "unreadable"),
            "world-writable",
            *OUTSIDE,
        ),
        packs=("cloud", "kubernetes", "iac", "sql", "services"),
    ),
    "builtin:security-audit": GuardRow(
        module="agent_hooks.guards.paths",
        finder="SecurityAudit",
        walls=("guard-settings", "invisible-characters", "records", "system-file", *SECRETS),
        questions=("client-code", "unreadable"),
    ),
}


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


PACKS = _distinct(pack for row in BUILTIN.values() for pack in row.packs)
"""All packs; `guards.packs` may name them, although they hold without it."""
RULES = _distinct(rule for row in BUILTIN.values() for rule in (*row.rules, *row.packs))
"""The ids of all rules of the built-in guards, which `guards.exceptions` may name."""
QUESTIONS = frozenset(rule for row in BUILTIN.values() for rule in (*row.questions, *row.packs))
"""The rules of the built-in guards that a person is asked about; all others are walls."""
