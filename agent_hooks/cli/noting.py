"""Write lines into the records from a command in which no agent works."""

from __future__ import annotations

from collections.abc import Callable

from agent_hooks.cli.streams import complain
from agent_hooks.errors import AgentHooksError, HookError
from agent_hooks.host import CLIENT
from agent_hooks.records import Records
from agent_hooks.records.recorder import CallRecorder
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import Settings, load_settings
from agent_hooks.trust.policy import Trust


def person_settings(cwd: str) -> Settings:
    """Return the settings of a directory, the defaults where they cannot be read: those turn nothing off."""
    try:
        return load_settings(cwd=cwd, trust=Trust())
    except AgentHooksError:
        return Settings()


def note(cwd: str, settings: Settings, write: Callable[[HookRunner, CallRecorder], object]) -> None:
    """Let `write` add lines to the records of a directory, unless the person's settings turn records off.

    A line that cannot be written is told on stderr, and hinders nothing.
    """
    own = settings.records
    if not own.enabled:
        return
    records = Records(client=CLIENT, days=own.days, bytes=own.bytes, patterns=settings.redaction.patterns, project=cwd)
    runner = HookRunner([], cwd=cwd, records=records)
    runner.on_error(_tell)
    recorder = runner.engine.recorder
    assert isinstance(recorder, CallRecorder), "the runner was made with records"
    write(runner, recorder)
    runner.end_records()


def _tell(error: HookError) -> None:
    complain(str(error))
