"""The `guards` section of settings files: the level, the undecidable, own rules, exceptions.

Own rules and the patterns of exceptions are the user's regular expressions, so they are searched with a time limit.  An
own rule whose pattern takes too long blocks; an exception whose pattern takes too long allows nothing.
"""

# No `from __future__ import annotations`: msgspec would have to compile each annotation of these structs at every start.
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from agent_hooks.errors import HookUsageError, SettingsError, did_you_mean
from agent_hooks.guards.base import Finding, GuardedCall, Level, Undecidable, subject
from agent_hooks.guards.table import BUILTIN, PACKS, RULES
from agent_hooks.patterns import LIMIT, compile_pattern
from agent_hooks.validation import convert_section


class OwnRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule of the user's own: a call whose command or path contains a match of `pattern` is blocked.

    `tool`: only calls of that tool; `expires`: the last day on which the rule holds.
    """

    id: str
    pattern: str
    reason: str
    tool: str | None = None
    expires: date | None = None


class GuardException(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Calls that a rule does not stop: those whose whole command or path matches `pattern`, or all calls without one.

    `id`: the rule's; `tool`: only calls of that tool; `expires`: the last day on which the exception holds; `once`: for
    one call of a run.
    """

    id: str
    reason: str
    pattern: str | None = None
    tool: str | None = None
    expires: date | None = None
    once: bool = False


class GuardsSection(Struct, forbid_unknown_fields=True, kw_only=True):
    """The section of one file, as written; every key is optional."""

    level: Level | UnsetType = UNSET
    undecidable: Undecidable | UnsetType = UNSET
    packs: list[str] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    rules: list[OwnRule] = field(default_factory=list)
    exceptions: list[GuardException] = field(default_factory=list)


class GuardSettings(Struct, frozen=True, kw_only=True):
    """The sections of all files, merged; see docs/guards.md."""

    level: Level = "project"
    undecidable: Undecidable = "ask"
    packs: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    rules: tuple[OwnRule, ...] = ()
    exceptions: tuple[GuardException, ...] = ()

    def are_off(self, guards: Collection[str]) -> bool:
        """Return whether no call needs to be judged: all of these guards are disabled, and there are no own rules."""
        return not self.rules and set(guards) <= set(self.disabled)


def read_sections(
    sections: Sequence[tuple[str, Mapping[str, Any]]], guards: Sequence[str] = tuple(BUILTIN)
) -> GuardSettings:
    """Merge the `guards` sections of the settings files, each given with its file's path.

    The lists of all files apply; of a single value, the last file's counts.  `guards`: the names that `disabled` may
    hold.  An exception may name one of `RULES` or a rule of any of the files.
    Raises `SettingsError` with file, key, expected and found.
    """
    together: dict[str, Any] = {"packs": [], "disabled": [], "rules": [], "exceptions": []}
    lifted: list[tuple[str, list[str]]] = []
    for path, raw in sections:
        section = convert_section(raw, GuardsSection, path, "guards")
        for key in ("level", "undecidable"):
            if (value := getattr(section, key)) is not UNSET:
                together[key] = value
        for key, known in (("packs", PACKS), ("disabled", guards)):
            _check_names(getattr(section, key), known, path, key)
        both: list[OwnRule | GuardException] = [*section.rules, *section.exceptions]
        for index, rule in enumerate(both):
            if rule.pattern is not None:
                key = "rules" if index < len(section.rules) else "exceptions"
                _compile(rule.pattern, f"key 'guards.{key}', id {rule.id!r}", path)
        for key in ("packs", "disabled", "rules", "exceptions"):
            together[key] += getattr(section, key)
        lifted.append((path, [each.id for each in section.exceptions]))
    rules = (*RULES, *(rule.id for rule in together["rules"]))
    for path, names in lifted:
        _check_names(names, rules, path, "exceptions")
    return msgspec.convert(together, GuardSettings)


def _check_names(names: Sequence[str], known: Sequence[str], path: str, key: str) -> None:
    for name in names:
        if name not in known:
            raise SettingsError(f"key 'guards.{key}': unknown name {name!r}{did_you_mean(name, known)}", path)


def expired(settings: GuardSettings, today: date) -> list[str]:
    """Return one sentence for each rule and each exception whose last day has passed."""
    both: list[OwnRule | GuardException] = [*settings.rules, *settings.exceptions]
    old = [each for each in both if each.expires is not None and each.expires < today]
    return [f"guards: {each.id!r} has expired on {each.expires} and no longer counts" for each in old]


def _compile(pattern: str, key: str, path: str = "") -> Any:
    try:
        return compile_pattern(pattern)
    except HookUsageError as exc:
        raise SettingsError(f"{key}: {exc}", path) from None


class Exceptions:
    """The user's exceptions; one with `once` is used up by the first call that it lets through."""

    def __init__(self, settings: GuardSettings, today: Callable[[], date]) -> None:
        self._today = today
        self._left = [
            (each, None if each.pattern is None else _compile(each.pattern, f"exception {each.id!r}"))
            for each in settings.exceptions
        ]

    def remaining(self, findings: list[Finding], call: GuardedCall) -> list[Finding]:
        """Return the findings that no exception covers.

        Each finding needs an exception of its own, so that one harmless part of a command never excuses another.
        """
        if not self._left:
            return findings
        covered = [(finding, self._cover(finding, call)) for finding in findings]
        rest = [finding for finding, exception in covered if exception is None]
        if not rest:
            used = [exception for _, exception in covered if exception is not None and exception.once]
            self._left = [each for each in self._left if not any(each[0] is exception for exception in used)]
        return rest

    def _cover(self, finding: Finding, call: GuardedCall) -> GuardException | None:
        for exception, pattern in self._left:
            if exception.id != finding.rule or exception.tool not in (None, call.tool_name):
                continue
            if exception.expires is not None and exception.expires < self._today():
                continue
            if pattern is None:
                return exception
            try:
                if pattern.fullmatch(subject(call), timeout=LIMIT):
                    return exception
            except TimeoutError:
                # A pattern that takes too long allows nothing.
                continue
        return None


class OwnRules:
    """The guard that applies the user's own rules."""

    name = "settings:guards.rules"
    tools: tuple[str, ...] = ()

    def __init__(self, settings: GuardSettings, today: Callable[[], date]) -> None:
        self._today = today
        self._rules = [(rule, _compile(rule.pattern, f"rule {rule.id!r}")) for rule in settings.rules]

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return a finding for each rule whose pattern matches or takes longer than the limit."""
        found: list[Finding] = []
        text = subject(call) or msgspec.json.encode(dict(call.input), enc_hook=str).decode()
        for rule, pattern in self._rules:
            if rule.tool not in (None, call.tool_name) or (rule.expires is not None and rule.expires < self._today()):
                continue
            try:
                if pattern.search(text, timeout=LIMIT):
                    found.append(Finding(rule.id, rule.reason))
            except TimeoutError:
                text = f"the pattern took longer than {LIMIT:g} s; simplify {rule.pattern!r}"
                found.append(Finding(rule.id, text))
        return found
