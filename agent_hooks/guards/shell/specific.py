"""One question names one thing: of several questions about one program, the more specific ones speak alone.

`gh secret delete TOKEN` loses a secret, and it changes a service.  The person is asked about the secret.

1. Only questions give way, and only to questions: a wall, or a finding that is not certain, stays as it is.
2. Both are about the same program with the same words.
3. An exception or a kept answer for the specific rule lets the program pass; the general rule says no more about it.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_hooks.guards.base import Finding
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.table import QUESTIONS

_SERVICE = ("cloud", "services")
# A specific rule, and the general ones that say nothing more about the same program.
_SPEAKS_FOR: dict[str, tuple[str, ...]] = {
    "access": (*_SERVICE, "publish", "windows"),
    "backup": (*_SERVICE, "send-out"),
    "broker": _SERVICE,
    "ci": _SERVICE,
    "find-delete": ("rm-rf",),
    "git-history": ("rm-rf", "git-worktree"),
    "http-delete": _SERVICE,
    "iac": _SERVICE,
    "machine-state": _SERVICE,
    "monitoring": _SERVICE,
    "payment": _SERVICE,
    "persistence": _SERVICE,
    "publish": _SERVICE,
    "secret-store": (*_SERVICE, "access", "ci"),
    "sql": (*_SERVICE, "broker"),
}


def most_specific(findings: list[Finding]) -> list[Finding]:
    """Return the findings without the questions that a more specific one makes needless, in their order."""
    if len(findings) < 2:
        return findings
    answered = set(_answered(findings))
    return [
        each for each in findings if not _is_question(each) or (each.subject, each.words, each.rule) not in answered
    ]


def _answered(findings: Iterable[Finding]) -> Iterable[tuple[str, tuple[str, ...], str]]:
    for each in findings:
        if _is_question(each):
            for rule in _SPEAKS_FOR.get(each.rule, ()):
                yield each.subject, each.words, rule


def _is_question(finding: Finding) -> bool:
    """Return whether a finding is a certain question about a program that is known."""
    known = bool(finding.subject) and finding.subject != UNKNOWN
    return known and finding.rule in QUESTIONS and not finding.wall and not finding.undecidable
