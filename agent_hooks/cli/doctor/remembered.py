"""The check of the person's answers for good."""

from __future__ import annotations

from collections.abc import Iterator

from agent_hooks.cli import remembered
from agent_hooks.cli.doctor.base import Case, Diagnosis
from agent_hooks.remembering import EXCEPTIONS
from agent_hooks.settings import Settings


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
