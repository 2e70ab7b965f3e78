"""Write into the records that a person has unlocked hooks or locked them again, and what was changed meanwhile."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from agent_hooks.cli.streams import complain
from agent_hooks.errors import AgentHooksError, HookError
from agent_hooks.records import Records
from agent_hooks.records.lines import HookFile, Unlock
from agent_hooks.records.recorder import CallRecorder
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import Settings, load_settings
from agent_hooks.trust.contents import Edit
from agent_hooks.trust.policy import Trust
from agent_hooks.trust.unlocked import Unlocked


def record(state: Unlocked, event: Literal["begin", "end"], edits: Sequence[Edit] = ()) -> None:
    """Write the begin or the end of an unlocking, unless the person's settings turn records off.

    A line that cannot be written is told on stderr, and hinders nothing.
    """
    settings = _settings(state.project)
    own = settings.records
    if not own.enabled:
        return
    records = Records(
        client="agent-hooks",
        days=own.days,
        bytes=own.bytes,
        patterns=settings.redaction.patterns,
        project=state.project,
    )
    runner = HookRunner([], cwd=state.project, records=records)
    runner.on_error(_tell)
    runner.record_edits(edits, state.directories)
    recorder = runner.engine.recorder
    assert isinstance(recorder, CallRecorder), "the runner was made with records"
    fields = {
        "event": event,
        "until": datetime.fromtimestamp(state.until, UTC),
        "user": _user(),
        "edits": tuple(HookFile(path=each.path, sha256=each.after) for each in edits),
    }
    recorder.line(Unlock, fields)
    runner.end_records()


def _settings(project: str) -> Settings:
    try:
        return load_settings(cwd=project, trust=Trust())
    except AgentHooksError:
        # Settings that cannot be read turn nothing off.
        return Settings()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A user without a name.
        return ""


def _tell(error: HookError) -> None:
    complain(str(error))
