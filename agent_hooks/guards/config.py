"""The `guards` section of settings files: the level, the undecidable, own rules, exceptions.

Own rules and the patterns of exceptions are the user's regular expressions, so they are searched with a time limit.  An
own rule whose pattern takes too long blocks; an exception whose pattern takes too long allows nothing.
"""

# No `from __future__ import annotations`: msgspec would have to compile each annotation of these structs at every start.
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from agent_hooks.errors import HookUsageError, SettingsError, did_you_mean
from agent_hooks.guards.base import Finding, GuardedCall, Level, Undecidable
from agent_hooks.guards.path_arguments import texts_of
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.table import BUILTIN, PACKS, RULES
from agent_hooks.guards.tools import use_of
from agent_hooks.patterns import LIMIT, compile_pattern
from agent_hooks.validation import convert_section


class OwnRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule of the user's own: a call whose command or path contains a match of `pattern` is blocked.

    `tool`: only calls of that tool; `expires`: the last day on which the rule holds; `ask`: a person is asked about the
    call, and without a person it is blocked.
    """

    id: str
    pattern: str
    reason: str
    tool: str | None = None
    expires: date | None = None
    ask: bool = False


class GuardException(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Programs and paths that a rule does not stop: those that `pattern` fits in full, or all calls without a pattern.

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
        # The exceptions that held once.
        self.used: list[GuardException] = []

    def use_up(self, used: Iterable[GuardException]) -> None:
        """Drop exceptions that were used before the settings were read again."""
        for exception in used:
            self.used.append(exception)
            same = next((each for each in self._left if each[0] == exception), None)
            self._left = [each for each in self._left if each is not same]

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
            self.used += {id(each): each for each in used}.values()
            self._left = [each for each in self._left if not any(each[0] is exception for exception in used)]
        return rest

    def _cover(self, finding: Finding, call: GuardedCall) -> GuardException | None:
        for exception, pattern in self._left:
            if exception.id != finding.rule or exception.tool not in (None, call.tool_name):
                continue
            if exception.expires is not None and exception.expires < self._today():
                continue
            whole = "\n".join(texts_of(call.tool_name, call.input, call.cwd))
            if pattern is None or _spells(pattern.pattern, whole):
                return exception
            text = finding.subject or whole
            try:
                if UNKNOWN not in text and pattern.fullmatch(text, timeout=LIMIT):
                    return exception
            except TimeoutError:
                # A pattern that takes too long allows nothing.
                continue
        return None


def tight(text: str) -> str:
    """Return the pattern that fits one text only, with as few backslashes as possible."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def _spells(pattern: str, command: str) -> bool:
    """Return whether a pattern is a whole command letter by letter, so that it fits nothing else in it."""
    return bool(command) and re.sub(r"\\(\W)", r"\1", pattern) == command


class OwnRules:
    """The guard that applies the user's own rules.

    `programs`: returns the programs of a call, as exceptions see them, each with its words.
    """

    name = "settings:guards.rules"
    tools: tuple[str, ...] = ()

    def __init__(
        self,
        settings: GuardSettings,
        today: Callable[[], date],
        programs: Callable[[GuardedCall], list[tuple[str, tuple[str, ...]]]],
    ) -> None:
        self._today = today
        self._programs = programs
        self._rules = [(rule, _compile(rule.pattern, f"rule {rule.id!r}")) for rule in settings.rules]
        # The rules whose exceptions, or whose answers, hold for single programs.
        self._lifted = {each.id for each in settings.exceptions if each.pattern is not None}
        self._lifted |= {rule.id for rule in settings.rules if rule.ask}

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return a finding for each rule whose pattern matches or takes longer than the limit."""
        found: list[Finding] = []
        texts = _searched(call)
        for rule, pattern in self._rules:
            if rule.tool not in (None, call.tool_name) or (rule.expires is not None and rule.expires < self._today()):
                continue
            try:
                if any(pattern.search(text, timeout=LIMIT) for text in texts):
                    lines = self._programs(call) if rule.id in self._lifted else []
                    met = [each for each in lines if pattern.search(each[0], timeout=LIMIT)]
                    if not met:
                        met = [("", _certain(texts) if rule.ask and not lines else ())]
                    found += [
                        Finding(rule.id, rule.reason, subject=line, words=words, wall=not rule.ask)
                        for line, words in met
                    ]
            except TimeoutError:
                reason = f"the pattern took longer than {LIMIT:g} s; simplify {rule.pattern!r}"
                found.append(Finding(rule.id, reason, wall=True))
        return found


def _certain(texts: list[str]) -> tuple[str, ...]:
    """Return the texts of a call, empty when a shell would compute a part of one: the same text may then run another."""
    return () if any(mark in text for text in texts for mark in "$`*?[<") else tuple(texts)


def _searched(call: GuardedCall) -> list[str]:
    """Return the texts of a call in which own rules are searched: its commands or paths, or else all of its input."""
    texts = texts_of(call.tool_name, call.input, call.cwd)
    if texts and (use_of(call.tool_name) != "file" or call.tool_name in _OWN_FILE_TOOLS):
        return texts
    return [*texts, msgspec.json.encode(dict(call.input), enc_hook=str).decode()]


# The content that they write is not searched.
_OWN_FILE_TOOLS = ("read", "write", "edit", "grep")
