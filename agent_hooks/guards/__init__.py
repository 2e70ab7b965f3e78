"""Guards: pure vetoes of tool calls.

To add a guard:

1. Write a module here with a class that has `name`, `tools`, `__init__(options)` and `find(call)` (`base.Finder`).
2. Add its row to `table.BUILTIN`: the module, the class, the ids of its rules.
3. Add rows to a corpus in `tests/guards`.  Settings, exceptions and the command line read the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agent_hooks.guards.base import (
    DEFAULT_OPTIONS,
    Finder,
    Finding,
    Guard,
    GuardedCall,
    GuardOptions,
    OwnPython,
    Run,
    remedy,
)
from agent_hooks.guards.table import BUILTIN, QUESTIONS
from agent_hooks.values.answers import Ask, Block

if TYPE_CHECKING:
    from datetime import date

    from agent_hooks.guards.config import Exceptions, GuardSettings
    from agent_hooks.values.effects import Effects, Place

__all__ = ["BUILTIN", "builtin_guards", "effects_of_call", "runs_of"]


def builtin_guards(
    settings: GuardSettings | None = None,
    *,
    protected: Sequence[str] = (),
    sealed: Sequence[str] = (),
    records: Sequence[str] = (),
    agent_home: str = "",
    python: OwnPython | None = None,
    today: Callable[[], date] | None = None,
) -> list[Guard]:
    """Return the built-in guards, and the user's own rules if there are any, for `HookRunner(guards=…)`.

    `protected`: absolute paths of hooks and settings that only a person may change, or the agent while a person has
    unlocked them; `sealed`: absolute paths that the agent never changes; `records`: those that it does not read either;
    `agent_home`: the person's own directory, which is never part of a project.

    `python` is the Python that runs the guards. The agent does not change it either.
    """
    # Imported here, because a program without guards needs neither.
    from datetime import date

    from agent_hooks.guards.config import Exceptions, GuardSettings, OwnRules

    settings, today = settings or GuardSettings(), today or date.today
    options = GuardOptions(
        level=settings.level,
        protected=tuple(protected),
        sealed=tuple(sealed),
        records=tuple(records),
        agent_home=agent_home,
        python=python or OwnPython(),
    )
    exceptions = Exceptions(settings, today)
    guards: list[Guard] = [
        PolicyGuard(name, lambda row=row: row.make(options), settings, exceptions, QUESTIONS)  # type: ignore[misc]  # a lambda's default has no type
        for name, row in BUILTIN.items()
        if name not in settings.disabled
    ]
    if settings.rules:
        own = OwnRules(settings, today, lambda call: _programs(options, call))
        asking = frozenset(rule.id for rule in settings.rules if rule.ask)
        guards.append(PolicyGuard(own.name, lambda: own, settings, exceptions, asking))
    return guards


def _programs(options: GuardOptions, call: GuardedCall) -> list[tuple[str, tuple[str, ...]]]:
    """Return the programs that a call would run, as exceptions see them, each with its words."""
    finder = BUILTIN["builtin:command-safety-guard"].make(options)
    lines: list[tuple[str, tuple[str, ...]]] = getattr(finder, "lines")(call)  # noqa: B009  # no other guard has it
    return lines


def runs_of(
    tool_name: str, input: Mapping[str, Any], cwd: str, home: str, files: Mapping[str, str]
) -> list[Run] | None:
    """Return the programs that the commands of a call would run, `None` when a command cannot be read.

    `cwd`, `home`: absolute paths; `files`: the known texts of files, by absolute path.
    """
    finder = BUILTIN["builtin:command-safety-guard"].make(GuardOptions())
    call = GuardedCall(tool_name=tool_name, input=input, cwd=cwd, home=home, files=files)
    runs: list[Run] | None = getattr(finder, "runs")(call)  # noqa: B009  # no other guard has it
    return runs


def effects_of_call(call: GuardedCall, place: Place) -> Effects:
    """Return what a call would do; `place`: the directories that globs are relative to."""
    # Imported here, because most programs ask for no effects.
    from agent_hooks.guards.recorder import Recorder
    from agent_hooks.guards.tool_effects import record_tool

    recorder = Recorder()
    if not getattr(_finder(), "record")(call, recorder):  # noqa: B009  # no other guard has it
        record_tool(call, recorder)
    return recorder.effects(place)


@cache
def _finder() -> Finder:
    """Return a guard of commands that follows calls and judges none."""
    return BUILTIN["builtin:command-safety-guard"].make(DEFAULT_OPTIONS)


def carry_over(old: Iterable[Guard], new: Iterable[Guard]) -> None:
    """Let an exception that holds once stay used up, when the guards of a run are made again."""
    former = {id(each.exceptions): each.exceptions.used for each in old if isinstance(each, PolicyGuard)}
    used = [exception for each in former.values() for exception in each]
    for exceptions in {id(each.exceptions): each.exceptions for each in new if isinstance(each, PolicyGuard)}.values():
        exceptions.use_up(used)


class PolicyGuard:
    """Turns a guard's findings into an answer, by the settings.

    Findings that an exception covers are dropped.  The setting `undecidable` decides about a finding that the guard
    cannot be sure of.  `questions`: the ids of the rules that a person is asked about.  `make` is called once, at the
    first call.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Finder],
        settings: GuardSettings,
        exceptions: Exceptions,
        questions: Collection[str] = (),
    ) -> None:
        self.name = name
        self._questions = questions
        self._make = make
        self._finder: Finder | None = None
        self.undecidable = settings.undecidable
        self.exceptions = exceptions

    @property
    def finder(self) -> Finder:
        """The guard that makes the findings."""
        if self._finder is None:
            self._finder = self._make()
        return self._finder

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that the guard found in the last command."""
        return getattr(self._finder, "programs", ())

    def judge(self, call: GuardedCall) -> Block | Ask | None:
        """Return a block because of the gravest finding, or else the questions about all findings as one."""
        findings = self._left(call)
        walls = [each for each in findings if not self._asks(each, call)]
        if walls:
            return self._block(walls[0])
        if not findings:
            return None
        first, *rest = map(self._question, findings)
        return replace(first, also=tuple(rest))

    def _left(self, call: GuardedCall) -> list[Finding]:
        """Return the findings that exceptions and settings leave."""
        finder = self.finder
        if finder.tools and call.tool_name not in finder.tools:
            return []
        findings = self.exceptions.remaining(finder.find(call), call)
        return [each for each in findings if not each.undecidable or self.undecidable != "allow"]

    def _asks(self, finding: Finding, call: GuardedCall) -> bool:
        """Return whether a finding is a question: an undecidable one always, any other only where a person is."""
        if finding.undecidable:
            return self.undecidable == "ask"
        return call.attended and finding.rule in self._questions and not finding.wall

    def _block(self, finding: Finding) -> Block:
        return Block(str(finding), self.name, "guard", finding.rule, remedy(finding.rule))

    def _question(self, finding: Finding) -> Ask:
        """Return the question about a finding; an answer to an undecidable one is never kept."""
        words = () if finding.undecidable else finding.words
        allowing = remedy(finding.rule)
        return Ask(str(finding), by=self.name, rule=finding.rule, remedy=allowing, remember=bool(words), words=words)
