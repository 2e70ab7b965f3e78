"""Guards: pure vetoes of tool calls.

To add a guard:

1. Write a module here with a class that has `name`, `tools`, `__init__(options)` and `find(call)` (`base.Finder`).
2. Add its row to `table.BUILTIN`: the module, the class, the ids of its rules.
3. Add rows to a corpus in `tests/guards`.  Settings, exceptions and the command line read the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agent_hooks.guards.base import Finder, Finding, Guard, GuardedCall, GuardOptions, remedy
from agent_hooks.guards.table import BUILTIN
from agent_hooks.values.answers import Ask, Block

if TYPE_CHECKING:
    from datetime import date

    from agent_hooks.guards.config import Exceptions, GuardSettings

__all__ = ["BUILTIN", "builtin_guards"]


def builtin_guards(
    settings: GuardSettings | None = None,
    *,
    protected: Sequence[str] = (),
    sealed: Sequence[str] = (),
    records: Sequence[str] = (),
    agent_home: str = "",
    today: Callable[[], date] | None = None,
) -> list[Guard]:
    """Return the built-in guards, and the user's own rules if there are any, for `HookRunner(guards=…)`.

    `protected`: absolute paths of hooks and settings that only a person may change, or the agent while a person has
    unlocked them; `sealed`: absolute paths that the agent never changes; `records`: those that it does not read either;
    `agent_home`: the person's own directory, which is never part of a project.
    """
    # Imported here, because a program without guards needs neither.
    from datetime import date

    from agent_hooks.guards.config import Exceptions, GuardSettings, OwnRules

    settings, today = settings or GuardSettings(), today or date.today
    options = GuardOptions(
        level=settings.level,
        packs=settings.packs,
        protected=tuple(protected),
        sealed=tuple(sealed),
        records=tuple(records),
        agent_home=agent_home,
    )
    exceptions = Exceptions(settings, today)
    guards: list[Guard] = [
        PolicyGuard(name, lambda row=row: row.make(options), settings, exceptions)  # type: ignore[misc]  # a lambda's default has no type
        for name, row in BUILTIN.items()
        if name not in settings.disabled
    ]
    if settings.rules:
        own = OwnRules(settings, today)
        guards.append(PolicyGuard(own.name, lambda: own, settings, exceptions))
    return guards


class PolicyGuard:
    """Turns a guard's findings into an answer, by the settings.

    Findings that an exception covers are dropped.  The setting `undecidable` decides about a finding that the guard
    cannot be sure of.  `make` is called once, at the first call.
    """

    def __init__(self, name: str, make: Callable[[], Finder], settings: GuardSettings, exceptions: Exceptions) -> None:
        self.name = name
        self._make = make
        self._finder: Finder | None = None
        self._undecidable = settings.undecidable
        self._exceptions = exceptions

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that the guard found in the last command."""
        return getattr(self._finder, "programs", ())

    def judge(self, call: GuardedCall) -> Block | Ask | None:
        """Return a block or a question about the gravest finding."""
        finding = self.decide(call)
        return None if finding is None else self.answer(finding)

    def decide(self, call: GuardedCall) -> Finding | None:
        """Return the first finding that exceptions and settings leave, if any is left."""
        if self._finder is None:
            self._finder = self._make()
        if self._finder.tools and call.tool_name not in self._finder.tools:
            return None
        findings = self._exceptions.remaining(self._finder.find(call), call)
        return next((each for each in findings if not each.undecidable or self._undecidable != "allow"), None)

    def answer(self, finding: Finding) -> Block | Ask:
        """Return the block or the question that a finding calls for."""
        rule, allowing = finding.rule, remedy(finding.rule)
        if finding.undecidable and self._undecidable == "ask":
            return Ask(str(finding), by=self.name, rule=rule, remedy=allowing)
        return Block(str(finding), self.name, "guard", rule, allowing)
