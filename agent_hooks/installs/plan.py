"""The edits that install and uninstall a bridge, planned before any of them is made."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.installation import LOOPBACK, Address
from agent_hooks.bridges.driver import needed_events
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import Edit, edit, undo
from agent_hooks.installs.places import Installation, Target, at_target, entry_command, targets
from agent_hooks.installs.trusts import distrusting, trusting
from agent_hooks.redaction import Redactor
from agent_hooks.storage.files import StorageError
from agent_hooks.storage.links import inside_tree

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
    added = edit(
        target.path,
        lambda settings: bridge.install(settings, command, events, address),
        format=target.format,
        keep=first,
        plain=not bridge.reads_mark,
    )
    edits = [replace(added, secret=address is not None), *trusting(bridge, added)]
    if moved is not None and moved.entries:
        check_links(moved.target, project)
        edits += uninstalling(bridge, moved)
    return edits


def uninstalling(bridge: Bridge, installation: Installation) -> list[Edit]:
    """Return the edits that take our entries out of a settings file, this file's first.  Raises `SettingsError`."""
    target = installation.target
    command = entry_command(bridge, target.name)
    events = {entry.event for entry in installation.entries}

    def forth_and_back(settings: Mapping[str, Any]) -> dict[str, Any]:
        return bridge.uninstall(bridge.install(settings, command, events))

    removed = undo(target.path, bridge.uninstall, forth_and_back, format=target.format)
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
