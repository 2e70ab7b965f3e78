"""The check of the tripwire's alarms."""

from __future__ import annotations

from collections.abc import Iterator

from agent_hooks.cli.alarms import CLEAR, sentence
from agent_hooks.cli.doctor.base import Case, Diagnosis
from agent_hooks.server.journal import alarms


def raised(case: Case) -> Iterator[Diagnosis]:
    """Tell which sessions are stopped, because a call of theirs was never judged."""
    for alarm in alarms().values():
        remedy = f"find the cause with agent-hooks doctor {alarm.agent}, then: agent-hooks {CLEAR}"
        yield Diagnosis("problem", "tripwire", sentence(alarm), remedy)
