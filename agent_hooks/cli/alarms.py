"""The alarms of the tripwire: shown by `agent-hooks doctor`, and lifted by a person."""

from __future__ import annotations

import os
from datetime import datetime

from agent_hooks.cli.proving import prove_user
from agent_hooks.cli.trusting import demand_person
from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.server.journal import Alarm, alarms
from agent_hooks.ui.harmless import harmless

CLEAR = "doctor --clear-alarm"


def clear_alarms() -> list[str]:
    """Lift all alarms of this person, and return a sentence for each.

    Raises `AgentHooksError` below an agent, without a terminal, and for a file that cannot be removed.
    """
    demand_person(CLEAR)
    lifted = list[str]()
    if raised := alarms():
        prove_user(CLEAR)
    for path, alarm in raised.items():
        try:
            os.unlink(path)
        except OSError as exc:
            raise AgentHooksError(f"{path}: the alarm cannot be removed: {os_reason(exc)}") from None
        lifted.append(f"lifted: {sentence(alarm)}")
    return lifted


def sentence(alarm: Alarm) -> str:
    """Return the facts of an alarm as one sentence."""
    at = datetime.fromtimestamp(alarm.at).astimezone().isoformat(" ", "seconds")
    return harmless(f"session {alarm.session} of {alarm.agent} in {alarm.project} is stopped: at {at}, {alarm.sign}")
