"""Make the planned edits of one command together: all of them, or none.

Where an agent trusts entries by their position, its settings and its trust must change together: a change of one file
alone would take the trust from the entries of other programs.  So the plan is noted before the first write.  When a
command is killed between two writes, the next `install` or `uninstall` finishes what it began.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import Edit
from agent_hooks.installs.generated import stub_path
from agent_hooks.settings_file import read_file
from agent_hooks.storage.files import StorageError, remove_drafts, write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def make_all(bridge: Bridge, edits: Sequence[Edit]) -> None:
    """Make the edits in their order; raises `SettingsError`, and then each file is as it was."""
    wanted = [each for each in edits if each.changes]
    if not wanted:
        return
    try:
        # The settings of agents hold keys.
        write_atomically(str(_plan_path(bridge)), msgspec.json.encode(wanted), secret=True)
    except StorageError as exc:
        raise SettingsError(f"{exc}; nothing was changed") from None
    made: list[Edit] = []
    try:
        for each in wanted:
            each.make()
            made.append(each)
    except SettingsError:
        for each in reversed(made):
            _take_back(each)
        raise
    finally:
        _remove(str(_plan_path(bridge)))


def finish(bridge: Bridge) -> list[str]:
    """Finish the edits of a command that was killed, and remove its drafts; return the paths of the changed files.

    A plan is dropped if none of its files was changed.  A file that changed in another way since stays as it is.
    Raises `SettingsError`.
    """
    plan = _plan_path(bridge)
    remove_drafts(str(plan.parent))
    try:
        edits = msgspec.json.decode(plan.read_bytes(), type=list[Edit])
    except (OSError, msgspec.DecodeError):
        return []
    found = [read_file(each.path) for each in edits]
    is_begun = any(data == each.after for data, each in zip(found, edits, strict=True))
    changed = []
    for data, each in zip(found, edits, strict=True):
        remove_drafts(os.path.dirname(os.path.realpath(each.path)))
        if data == each.after:
            each.clean_up()
        elif is_begun and data == each.before:
            each.make()
            changed.append(each.path)
        elif each.keep:
            _drop_backup(each)
    _remove(str(plan))
    return changed


def _plan_path(bridge: Bridge) -> Path:
    """Return the path of the noted plan; as a generated file of the bridge, it goes with the last installation."""
    return stub_path(bridge).with_suffix(".unfinished")


def _take_back(edit: Edit) -> None:
    """Undo an edit that was made.  A file that cannot be written any more stays, and the first error names the reason."""
    with suppress(SettingsError, StorageError):
        if edit.spent and edit.after is not None:
            write_atomically(edit.backup, edit.after, like=edit.path)
        replace(edit, before=edit.after, after=edit.before, keep=False, spent=False).make()
        _drop_backup(edit)


def _drop_backup(edit: Edit) -> None:
    """Remove the backup that an edit made, unless it holds another text."""
    with suppress(SettingsError):
        if edit.keep and read_file(edit.backup) == edit.before:
            _remove(edit.backup)


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
