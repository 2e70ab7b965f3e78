"""The checks of what lasts beyond a session: unlocked hooks, the user's answers, and the alarms of the tripwire."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime

from agent_hooks.cli import remembered
from agent_hooks.cli.doctor.base import Case, Diagnosis
from agent_hooks.cli.proving import prove_loosening
from agent_hooks.cli.reports import unlocking
from agent_hooks.cli.trusting import demand_person
from agent_hooks.errors import AgentHooksError, os_reason
from agent_hooks.remembering import EXCEPTIONS
from agent_hooks.server.journal import Alarm, alarms
from agent_hooks.settings import Settings
from agent_hooks.trust.unlock import edits
from agent_hooks.trust.unlocked import read_state, state_path
from agent_hooks.ui.harmless import harmless

CLEAR = "doctor --clear-alarm"


def unlocked(case: Case) -> Iterator[Diagnosis]:
    """Tell that hooks are unlocked, and after that time which files have changed."""
    path = state_path()
    if not os.path.lexists(path):
        return
    state = read_state(path)
    if state is None:
        text = f"{path} cannot be read, belongs to another user, or is of another version; all hooks are locked"
        yield Diagnosis("warning", "unlock", text, "agent-hooks unlock --end")
    elif state.is_in_force():
        text = f"{unlocking.sentence(state)}; {unlocking.summary(edits(state))}"
        yield Diagnosis("warning", "unlock", text, "agent-hooks unlock --end")
    else:
        text = f"the time is over, and hooks are locked again; {unlocking.summary(edits(state))}"
        yield Diagnosis("warning", "unlock", text, "agent-hooks unlock --end shows the changes")


def answers(case: Case) -> Iterator[Diagnosis]:
    """Tell how many answers count in the project, and which ones do not count any more."""
    store = remembered.store()
    for problem in store.find().problems:
        yield Diagnosis("warning", "answers", problem)
    hooks, settings = (None, Settings()) if case.setup is None else (case.setup.loaded.hooks, case.setup.settings)
    rows = remembered.rows_at(case.cwd, store, settings, hooks)
    if rows:
        yield Diagnosis("ok", "answers", remembered.summary(rows))
    for row in rows:
        if row["idle"]:
            text = f"answer {row['number']} does not count: {row['idle']}"
            yield Diagnosis("warning", "answers", text, f"{EXCEPTIONS} --revoke {row['number']}")


def raised(case: Case) -> Iterator[Diagnosis]:
    """Tell which sessions are stopped, because a call of theirs was never judged."""
    for alarm in alarms().values():
        remedy = f"find the cause with agent-hooks doctor {alarm.agent}, then: agent-hooks {CLEAR}"
        yield Diagnosis("problem", "tripwire", sentence(alarm), remedy)


def clear_alarms() -> list[str]:
    """Lift all alarms of this person, and return a sentence for each.

    Raises `AgentHooksError` below an agent, without a terminal, and for a file that cannot be removed.
    """
    demand_person(CLEAR)
    lifted = list[str]()
    if raised := alarms():
        prove_loosening(CLEAR)
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
