"""The `guards` section of settings files: the level, what to do when undecided, own rules, exceptions.

Own rules and the patterns of exceptions are the user's regular expressions; one that takes too long counts as a failure
and so blocks.  Above: the table of guards.  Below: base, patterns, settings.
"""

# no `from __future__ import annotations`: msgspec would compile each annotation of what it decodes, at every start
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from agent_hooks.errors import HookUsageError, SettingsError, did_you_mean
from agent_hooks.guards.base import Finding, GuardedCall, Level, Undecidable, subject
from agent_hooks.patterns import LIMIT, compile_pattern
from agent_hooks.settings import convert_section

PACKS = ("cloud", "kubernetes", "iac", "sql", "services")
_SECRETS = (
    *("account-file", "agent-token", "cloud-credentials", "environment-file", "keyring", "package-token"),
    *("private-key", "process-memory", "shell-profile", "ssh-keys"),
)
# what the built-in guards' findings are called; listed here, for their modules are imported once a call is judged
RULES = (
    *("chmod-root", "disk", "docker", "download-exec", "dynamic-code", "encoded-exec", "find-delete", "fork-bomb"),
    *("git-history", "git-hooks", "git-remote", "git-worktree", "invisible-characters", "rm-rf", "rsync-delete"),
    *("setuid", "shell-on-socket", "system-file", "too-long", "unreadable", "world-writable"),
    *("guard-settings", "write-guard-settings"),
    *(verb + each for verb in ("", "read-", "write-") for each in _SECRETS),
    *PACKS,
)


class OwnRule(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A rule of the user's: calls in whose command or path `pattern` is found are blocked.

    `tool`: only calls of that tool; `expires`: the last day it holds.
    """

    id: str
    pattern: str
    reason: str
    tool: str | None = None
    expires: date | None = None


class GuardException(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a rule does not stop: calls whose whole command or path fits `pattern`, all of them without one.

    `id`: the rule's; `tool`: only calls of that tool; `expires`: the last day it holds; `once`: for one call of a run.
    """

    id: str
    reason: str
    pattern: str | None = None
    tool: str | None = None
    expires: date | None = None
    once: bool = False


class GuardsSection(Struct, forbid_unknown_fields=True, kw_only=True):
    """The section as written; every key is optional."""

    level: Level | UnsetType = UNSET
    undecidable: Undecidable | UnsetType = UNSET
    packs: list[str] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    rules: list[OwnRule] = field(default_factory=list)
    exceptions: list[GuardException] = field(default_factory=list)


class GuardSettings(Struct, frozen=True, kw_only=True):
    """The sections of all files together; see docs/guards.md."""

    level: Level = "project"
    undecidable: Undecidable = "ask"
    packs: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    rules: tuple[OwnRule, ...] = ()
    exceptions: tuple[GuardException, ...] = ()

    def are_off(self, guards: Collection[str]) -> bool:
        """Tell whether there is nothing to ask: all of these guards are disabled, and there are no own rules."""
        return not self.rules and set(guards) <= set(self.disabled)


def read_sections(sections: Sequence[tuple[str, Mapping[str, Any]]], guards: Sequence[str]) -> GuardSettings:
    """Return the guards' settings out of the sections of the settings files, each with its file's name.

    Lists of all apply; of a single value the last one counts.  `guards`: the names there are, for `disabled`; exceptions
    are for `RULES` and the rules of any file.
    Raises `SettingsError` that names file, key, expected and found.
    """
    together: dict[str, Any] = {"packs": [], "disabled": [], "rules": [], "exceptions": []}
    lifted: list[tuple[str, list[str]]] = []
    for path, raw in sections:
        section = convert_section(raw, GuardsSection, path, "guards")
        for key in ("level", "undecidable"):
            if (value := getattr(section, key)) is not UNSET:
                together[key] = value
        for key, known in (("packs", PACKS), ("disabled", guards)):
            _check_names(getattr(section, key), known, f"{path}: key 'guards.{key}'")
        both: list[OwnRule | GuardException] = [*section.rules, *section.exceptions]
        for index, rule in enumerate(both):
            if rule.pattern is not None:
                key = "rules" if index < len(section.rules) else "exceptions"
                _compiled(rule.pattern, f"{path}: key 'guards.{key}', id {rule.id!r}")
        for key in ("packs", "disabled", "rules", "exceptions"):
            together[key] += getattr(section, key)
        lifted.append((path, [each.id for each in section.exceptions]))
    rules = (*RULES, *(rule.id for rule in together["rules"]))
    for path, names in lifted:
        _check_names(names, rules, f"{path}: key 'guards.exceptions'")
    return msgspec.convert(together, GuardSettings)


def _check_names(names: Sequence[str], known: Sequence[str], where: str) -> None:
    for name in names:
        if name not in known:
            raise SettingsError(f"{where}: unknown name {name!r}{did_you_mean(name, known)}")


def expired(settings: GuardSettings, today: date) -> list[str]:
    """Return a sentence for each rule and exception whose last day has passed."""
    both: list[OwnRule | GuardException] = [*settings.rules, *settings.exceptions]
    old = [each for each in both if each.expires is not None and each.expires < today]
    return [f"guards: {each.id!r} has expired on {each.expires} and does not count any more" for each in old]


def _compiled(pattern: str, where: str) -> Any:
    try:
        return compile_pattern(pattern)
    except HookUsageError as exc:
        raise SettingsError(f"{where}: {exc}") from None


class Exceptions:
    """Tells which findings a user has allowed; an exception for one call is used up by a call that it lets through."""

    def __init__(self, settings: GuardSettings, today: Callable[[], date]) -> None:
        self._today = today
        self._left = [
            (each, None if each.pattern is None else _compiled(each.pattern, f"exception {each.id!r}"))
            for each in settings.exceptions
        ]

    def remaining(self, findings: list[Finding], call: GuardedCall) -> list[Finding]:
        """Return the findings that no exception covers; one safe part never excuses another."""
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
            except TimeoutError:  # a pattern that takes too long allows nothing
                continue
        return None


class OwnRules:
    """The user's own rules, as a guard."""

    name = "settings:guards.rules"
    tools: tuple[str, ...] = ()

    def __init__(self, settings: GuardSettings, today: Callable[[], date]) -> None:
        self._today = today
        self._rules = [(rule, _compiled(rule.pattern, f"rule {rule.id!r}")) for rule in settings.rules]

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return a finding for each rule whose pattern is found, or takes too long to say so."""
        found: list[Finding] = []
        text = subject(call) or msgspec.json.encode(dict(call.input), enc_hook=str).decode()
        for rule, pattern in self._rules:
            if rule.tool not in (None, call.tool_name) or (rule.expires is not None and rule.expires < self._today()):
                continue
            try:
                if pattern.search(text, timeout=LIMIT):
                    found.append(Finding(rule.id, rule.reason))
            except TimeoutError:
                found.append(
                    Finding(
                        rule.id,
                        f"the pattern took longer than {LIMIT:g} s; simplify {rule.pattern!r}",
                    )
                )
        return found
