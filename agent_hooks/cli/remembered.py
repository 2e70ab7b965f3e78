"""The user's answers for good, as the commands list and end them, and lines in the records about such a command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agent_hooks.cli.screen.marked import one_line
from agent_hooks.cli.screen.wording import plain_table
from agent_hooks.cli.setup import hiding
from agent_hooks.cli.streams import complain
from agent_hooks.errors import AgentHooksError, HookError, count
from agent_hooks.hooks.loaded import LoadedHook
from agent_hooks.host import CLIENT
from agent_hooks.records import Records
from agent_hooks.records.recorder import CallRecorder
from agent_hooks.remembering import EXCEPTIONS
from agent_hooks.remembering.kept import About, Kept, Project
from agent_hooks.remembering.memory import fields_of
from agent_hooks.remembering.store import Store
from agent_hooks.runner.runner import HookRunner
from agent_hooks.settings import Settings, agent_home, load_settings
from agent_hooks.trust.policy import Trust

if TYPE_CHECKING:
    from rich.table import Table


def store() -> Store:
    """Return the store of the agent home."""
    return Store(agent_home())


def rows_at(
    cwd: str, found: Store, settings: Settings, hooks: Sequence[LoadedHook] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of the project of a directory, as `Store.kept_in` finds them."""
    return rows(found.kept_in(cwd), found, settings, hooks)


def rows(
    kept: Iterable[Kept], found: Store, settings: Settings, hooks: Sequence[LoadedHook] | None = None
) -> list[dict[str, Any]]:
    """Return a row for each answer, without secrets.

    `hooks`: the loaded ones, which tell whether a hook has changed.
    """
    hide = hiding(settings)
    return [
        {
            "number": each.number,
            "question": hide(str(each.about)),
            "rule": each.rule or None,
            "words": list(map(hide, each.words)),
            "hook": each.hook or None,
            "sha256": each.sha256 or None,
            "title": hide(each.title) or None,
            "tool": each.tool,
            "project": each.project,
            "directory": each.directory,
            "written": each.written.isoformat(),
            "expires": each.expires.isoformat(),
            "idle": each.idle(found.today()) or _changed(each, hooks) or None,
        }
        for each in kept
    ]


def _changed(kept: Kept, hooks: Sequence[LoadedHook] | None) -> str:
    """Return why an answer to a hook does not count, as a sentence part; empty for any other answer."""
    if not kept.hook:
        return ""
    if not os.path.isfile(kept.hook):
        return "its hook is gone"
    digests = [hook.digest for hook in hooks or () if hook.path == kept.hook]
    return "its hook has changed" if digests and kept.sha256 not in digests else ""


def table(found: Sequence[dict[str, Any]]) -> Table:
    """Return the rows as a table."""
    made = plain_table("answer", "allows", "tool", "project", "in", "written", "until")
    for row in found:
        cells = [row["question"], row["tool"], row["project"].removesuffix("/.git"), row["directory"]]
        until = f"does not count: {row['idle']}" if row["idle"] else row["expires"]
        made.add_row(str(row["number"]), *map(one_line, cells), row["written"], until)
    return made


def summary(found: Sequence[dict[str, Any]]) -> str:
    """Return how many answers count, and how they are listed and ended."""
    idle = sum(row["idle"] is not None for row in found)
    rest = f"; {idle} more that no longer {'counts' if idle == 1 else 'count'}" if idle else ""
    return f"{count(len(found) - idle, 'remembered answer')}{rest}; to list and end them: {EXCEPTIONS}"


def revoke(number: int, cwd: str) -> str:
    """End an answer, write that into the records, and return a sentence about it; raises `RememberingError`."""
    gone = store().revoke(number)
    settings = person_settings(cwd)
    # The answer of a line that was changed by hand is not known.
    about = About(tool="", by="") if gone is None else gone.about

    def write(runner: HookRunner, recorder: CallRecorder) -> None:
        place = Project("", 0, "") if gone is None else gone.place
        fields = fields_of("revoked", about, place) | {"scope": "always", "number": number}
        recorder.remembered(fields, runner.engine.surroundings)

    note(cwd, settings, write)
    return f"ended: answer {number}" if gone is None else f"ended: answer {number}: {hiding(settings)(str(about))}"


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
