"""Record that a person has unlocked hooks or locked them again, and the changes that were made meanwhile."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from agent_hooks.cli.noting import note, person_settings
from agent_hooks.records.lines import HookFile, Unlock
from agent_hooks.records.recorder import CallRecorder
from agent_hooks.runner.runner import HookRunner
from agent_hooks.trust.contents import Edit
from agent_hooks.trust.unlocked import Unlocked


def record(state: Unlocked, event: Literal["begin", "end"], edits: Sequence[Edit] = ()) -> None:
    """Write the begin or the end of an unlocking, unless the person's settings turn records off.

    A line that cannot be written is told on stderr, and hinders nothing.
    """

    def write(runner: HookRunner, recorder: CallRecorder) -> None:
        runner.record_edits(edits, state.directories)
        fields = {
            "event": event,
            "until": datetime.fromtimestamp(state.until, UTC),
            "user": _user(),
            "edits": tuple(HookFile(path=each.path, sha256=each.after) for each in edits),
        }
        recorder.line(Unlock, fields)

    note(state.project, person_settings(state.project), write)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A user without a name.
        return ""
