"""The check of hooks that a person has unlocked for the agent."""

from __future__ import annotations

import os
from collections.abc import Iterator

from agent_hooks.cli.doctor.base import Case, Diagnosis
from agent_hooks.cli.reports.unlocking import sentence, summary
from agent_hooks.trust.unlock import edits
from agent_hooks.trust.unlocked import read_state, state_path


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
        yield Diagnosis("warning", "unlock", f"{sentence(state)}; {summary(edits(state))}", "agent-hooks unlock --end")
    else:
        text = f"the time is over, and hooks are locked again; {summary(edits(state))}"
        yield Diagnosis("warning", "unlock", text, "agent-hooks unlock --end shows the changes")
