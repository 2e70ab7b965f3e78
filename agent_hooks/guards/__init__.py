"""Guards: pure vetoes of tool calls.  `BUILTIN` is the table; a guard's module is imported at its first call.

Above: cli.  Below: base, config, settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from agent_hooks.guards.base import Finder, Finding, Guard, GuardedCall, remedy
from agent_hooks.values.answers import Ask, Block

if TYPE_CHECKING:
    from datetime import date

    from agent_hooks.guards.config import Exceptions, GuardSettings

__all__ = ["BUILTIN", "builtin_guards"]

# name → module, class; what a guard is made with
BUILTIN: dict[str, tuple[str, str]] = {
    "builtin:command-safety-guard": ("agent_hooks.guards.shell", "CommandSafetyGuard"),
    "builtin:security-audit": ("agent_hooks.guards.paths", "SecurityAudit"),
}


def builtin_guards(
    settings: GuardSettings | None = None, *, protected: Sequence[str] = (), today: Callable[[], date] | None = None
) -> list[Guard]:
    """Return the built-in guards, and the user's own rules if there are any, for `HookRunner(guards=…)`.

    `protected`: absolute paths of hooks and settings that only a person may change.
    """
    from datetime import date  # here, with the rest: a program without guards needs neither

    from agent_hooks.guards.config import Exceptions, GuardSettings, OwnRules

    settings, today = settings or GuardSettings(), today or date.today
    make: dict[str, Callable[[type[Finder]], Finder]] = {
        "builtin:command-safety-guard": lambda kind: kind(settings.level, settings.packs, tuple(protected)),  # type: ignore[call-arg]
        "builtin:security-audit": lambda kind: kind(tuple(protected)),  # type: ignore[call-arg]
    }
    exceptions = Exceptions(settings, today)
    guards: list[Guard] = [
        PolicyGuard(name, lambda name=name: make[name](_load(name)), settings, exceptions)  # type: ignore[misc]
        for name in BUILTIN
        if name not in settings.disabled
    ]
    if settings.rules:
        own = OwnRules(settings, today)
        guards.append(PolicyGuard(own.name, lambda: own, settings, exceptions))
    return guards


def _load(name: str) -> type[Finder]:
    module, kind = BUILTIN[name]
    return getattr(import_module(module), kind)  # type: ignore[no-any-return]  # by the table


class PolicyGuard:
    """Makes an answer of what a guard finds: exceptions taken off, the undecidable as the settings say."""

    def __init__(self, name: str, load: Callable[[], Finder], settings: GuardSettings, exceptions: Exceptions) -> None:
        self.name = name
        self._load = load
        self._finder: Finder | None = None
        self._undecidable = settings.undecidable
        self._exceptions = exceptions

    def judge(self, call: GuardedCall) -> Block | Ask | None:
        """Return a block or a question about the gravest finding."""
        finding = self.decide(call)
        if finding is None:
            return None
        by = f"{self.name} ({finding.rule})"
        if finding.undecidable and self._undecidable == "ask":
            return Ask(str(finding), f"{finding}; {remedy(finding.rule)}", by)
        return Block(f"{finding}; {remedy(finding.rule)}", by, "guard")

    def decide(self, call: GuardedCall) -> Finding | None:
        """Return the finding that counts, if any does."""
        if self._finder is None:
            self._finder = self._load()
        if self._finder.tools and call.tool_name not in self._finder.tools:
            return None
        findings = self._exceptions.remaining(self._finder.find(call), call)
        for finding in findings:
            if not finding.undecidable or self._undecidable != "allow":
                return finding
        return None
