"""The edits that install and uninstall a bridge, planned before any of them is made.

Make the planned edits of one command together: all of them, or none.

Where an agent trusts entries by their position, its settings and its trust must change together: a change of one file
alone would take the trust from the entries of other programs.  So the plan is noted before the first write.  When a
command is killed between two writes, the next `install` or `uninstall` finishes what it began.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.installation import LOOPBACK, Address
from agent_hooks.bridges.driver import needed_events
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import Edit, edit, undo
from agent_hooks.installs.generated import stub_path
from agent_hooks.installs.places import Installation, Target, at_target, entry_command, targets
from agent_hooks.installs.seat import seated, seating
from agent_hooks.installs.trusts import distrusting, trusting
from agent_hooks.redaction import Redactor
from agent_hooks.settings_file import read_file
from agent_hooks.storage.files import StorageError, remove_drafts, write_atomically
from agent_hooks.storage.links import inside_tree

if TYPE_CHECKING:
    from pathlib import Path

# Below the ports that Linux (from 32768) and macOS (from 49152) give to outgoing connections.
_FIRST_PORT, _PORTS = 20000, 12000


def choose_address(own: Installation | None, by_http: bool | None) -> Address | None:
    """Return the address for events by HTTP, `None` for no HTTP; with `by_http` `None`, the installed one stays."""
    installed = next((entry.address for entry in own.entries if entry.address is not None), None) if own else None
    if by_http is None:
        return installed
    return (installed or new_address()) if by_http else None


def new_address() -> Address:
    """Return a free address: no program listens at its port, and no outgoing connection gets that port."""
    while True:
        port = _FIRST_PORT + secrets.randbelow(_PORTS)
        with socket.socket() as trial, suppress(OSError):
            trial.bind((LOOPBACK, port))
            return Address(port, secrets.token_urlsafe())


def installing(
    bridge: Bridge,
    project: str,
    name: str,
    installed: Sequence[Installation],
    *,
    listened: Collection[str],
    address: Address | None = None,
    all_events: bool = False,
) -> list[Edit]:
    """Return the edits that install into the settings file `name`, the one of this file first.

    The same entries come out of the local file.  Where the agent needs it, our entries become trusted.

    `listened`: the events that hooks listen to; events that are installed already stay.  Raises `SettingsError`.
    """
    rows, known = bridge.describe(), targets(bridge, project)
    target, local = known[name], known.get("local")
    events = {row.name for row in rows} if all_events else set(needed_events(rows, listened))
    own = at_target(installed, target)
    moved = at_target(installed, local) if local is not None else None
    moved = moved if moved != own else None
    for each in (own, moved):
        events |= {entry.event for entry in each.entries} if each is not None else set()
    command = entry_command(bridge, name)
    check_links(target, project)
    first = own is None or not own.entries

    def change(settings: Mapping[str, Any]) -> dict[str, Any]:
        found = bridge.install(settings, command, events, address)
        return seated(bridge, found) if bridge.mod and name == "user" else found

    added = edit(
        target.path,
        change,
        format=target.format,
        keep=first,
        plain=not bridge.reads_mark,
    )
    edits = [replace(added, secret=address is not None), *trusting(bridge, added)]
    if bridge.mod and name == "local":
        edits.append(seating(bridge, project))
    if moved is not None and moved.entries:
        check_links(moved.target, project)
        edits += uninstalling(bridge, moved)
    return edits


def uninstalling(bridge: Bridge, installation: Installation, *, unseats: bool = False) -> list[Edit]:
    """Return the edits that take our entries out of a settings file, this file's first.  Raises `SettingsError`.

    `unseats`: the mod goes too.
    """
    target = installation.target
    command = entry_command(bridge, target.name)
    events = {entry.event for entry in installation.entries}

    def back(settings: Mapping[str, Any]) -> dict[str, Any]:
        found = bridge.uninstall(settings)
        return bridge.unseated(found) if unseats else found

    def forth_and_back(settings: Mapping[str, Any]) -> dict[str, Any]:
        found = bridge.install(settings, command, events)
        return back(seated(bridge, found) if unseats else found)

    removed = undo(target.path, back, forth_and_back, format=target.format)
    return [removed, *distrusting(bridge, removed)]


def check_links(target: Target, project: str) -> None:
    """Raise `SettingsError` when a link leads a settings file of the project somewhere else.

    A project from elsewhere may bring the link along.
    """
    if target.name != "user":
        try:
            inside_tree(target.path, project)
        except StorageError as exc:
            raise SettingsError(f"{exc}; nothing was changed") from None


def diff_of(bridge: Bridge, planned: Edit) -> str:
    """Return an edit as a unified diff; `…` stands for each token of the HTTP entries."""
    entries = [entry for settings in planned.settings() for entry in bridge.installed(settings)]
    diff = planned.diff()
    for token in {entry.address.token for entry in entries if entry.address is not None}:
        diff = diff.replace(token, "…")
    # Settings of agents hold keys, which stand in the lines around a change.
    return Redactor().hide(diff)


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
