"""`agent-hooks install`: let another agent run our hooks, by entries in its settings file."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import click
from msgspec.structs import replace

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import LOOPBACK, Address, Bridge
from agent_hooks.bridges.driver import listened_to, needed_events
from agent_hooks.cli.commands.serve import let_look
from agent_hooks.cli.setup import Setup, count, set_up, short, unused_hooks
from agent_hooks.cli.stdout import ReservedStdout
from agent_hooks.errors import SettingsError
from agent_hooks.installs.edits import Edit, edit, undo
from agent_hooks.installs.git_ignore import how_to_ignore
from agent_hooks.installs.places import (
    PROGRAM,
    Place,
    Target,
    entry_command,
    install_line,
    places,
    targets,
    twice,
    uninstall_line,
)
from agent_hooks.server.stub import write_stub
from agent_hooks.storage.files import StorageError

_WHERE = {
    "local": "In .claude/settings.local.json of this directory: this project, for you only.",
    "project": "In .claude/settings.json of this directory, for everybody who works on this project.",
    "user": "In your own settings, for every project.",
}

_FIRST_PORT, _PORTS = 20000, 12000  # below those that Linux (32768) and macOS (49152) give to outgoing connections


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what says which agent and which settings file are meant, and that nothing is to be written."""
    function = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")(function)
    for name, text in reversed(_WHERE.items()):
        function = click.option(f"--{name}", "target", flag_value=name, help=text)(function)
    return click.argument("agent", type=click.Choice(list(BRIDGES)))(function)


@click.command("install")
@target_options
@click.option("--all-events", is_flag=True, help="Also those events that none of your hooks listens to now.")
@click.option(
    "--http/--no-http",
    "by_http",
    default=None,
    help="With --local: post the events that decide nothing to the resident server, without a process for each.",
)
def command(agent: str, target: str | None, dry_run: bool, all_events: bool, by_http: bool | None) -> None:
    """Let AGENT run your hooks: adds entries to its settings, and keeps everything else that is there.

    Without an option, for this project and you only. Gates are installed always, most others as hooks need them.
    """
    bridge, name, cwd = open_bridge(agent), target or "local", os.getcwd()
    if by_http and name != "local":
        raise click.UsageError("--http goes with --local: its port and token are those of one project and one person")
    with ReservedStdout():
        setup = anyio.run(set_up, cwd, ())
    known, before = targets(bridge, cwd), places(bridge, cwd)
    if name == "local" and (shared := _of(before, known["project"])) and shared.entries:
        click.echo(f"{short(shared.target.path)} runs your hooks already, for everybody who works here")
        click.echo("nothing was changed: in both files each event would fire twice")
        _warn_of_the_rest(bridge, cwd, before)
        return
    address = _address(_of(before, known["local"]), by_http) if name == "local" else None
    edits = _edits(bridge, setup, name, before, address, all_events=all_events)
    path = edits[0].path
    unignored = how_to_ignore(os.path.realpath(path), short) if name == "local" else None
    if address is not None and unignored is not None:
        raise SettingsError(f"{short(path)}: git would take the port and the token along; first: {unignored}")
    for each in edits:
        if each.changes:
            click.echo(f"{diff_of(bridge, each)}\n")
    if not dry_run:
        _write(bridge, edits, generated=name != "project")
        let_look(cwd)
    click.echo(f"{short(path)}: {_done(bridge, edits[0], dry_run=dry_run)}")
    for each in edits:
        if each.path != path and each.changes:
            click.echo(f"{short(each.path)}: {'would be ' * dry_run}taken out, or each event would fire twice")
        if each.keep:
            click.echo(f"{short(each.backup)}: {'would be ' * dry_run}written, as the file was")
    if address is not None:
        click.echo(_posted(bridge, edits[0], address))
    click.echo(f"to remove it: {uninstall_line(bridge, name)}")
    _warn_of_the_rest(bridge, cwd, before if dry_run else places(bridge, cwd))
    for error in setup.errors:
        _warn(f"{error}; until it is mended, calls are denied")
    if name == "project" and shutil.which(PROGRAM) is None:
        _warn(
            f"there is no {PROGRAM} on the PATH, so every tool call here would be denied; for others too: put it there"
        )
    if unignored is not None:
        _warn(f"git does not ignore {short(path)}; to let it: {unignored}")


def _address(own: Place | None, by_http: bool | None) -> Address | None:
    """Return where events are to be posted; what is there stays, unless something else was asked for."""
    there = next((entry.address for entry in own.entries if entry.address is not None), None) if own else None
    if by_http is None:
        return there
    return (there or new_address()) if by_http else None


def new_address() -> Address:
    """Return an address that nobody has: a port at which nobody listens now, and which no outgoing connection gets."""
    while True:
        port = _FIRST_PORT + secrets.randbelow(_PORTS)
        with socket.socket() as trial, suppress(OSError):
            trial.bind((LOOPBACK, port))
            return Address(port, secrets.token_urlsafe())


def _edits(
    bridge: Bridge, setup: Setup, name: str, before: list[Place], address: Address | None, *, all_events: bool
) -> list[Edit]:
    """Return the edit of the file that is meant, then that of a local one which would do the same a second time."""
    rows = bridge.describe()
    listened = listened_to(setup.loaded.hooks, setup.transformers.configured, setup.redactor)
    events = {row.name for row in rows} if all_events else set(needed_events(rows, listened))
    known = targets(bridge, setup.cwd)
    own, local = _of(before, known[name]), _of(before, known["local"])
    moved = local if local != own else None
    for place in (own, moved):
        events |= {entry.event for entry in place.entries} if place is not None else set()
    run, path = entry_command(bridge, name), known[name].path
    first = own is None or not own.entries
    added = edit(path, lambda found: bridge.install(found, run, events, address), keep=first)
    edits = [replace(added, secret=address is not None)]
    if moved is not None and moved.entries:
        edits.append(uninstalling(bridge, moved))
    return edits


def _done(bridge: Bridge, made: Edit, *, dry_run: bool) -> str:
    """Return in words what an edit does to our entries."""
    if not made.changes:
        return "is installed already"
    before, after = ({entry.event for entry in bridge.installed(found)} for found in made.settings())
    added, removed = after - before, before - after
    done = f"{'would be ' * dry_run}installed, {count(len(added), 'event')} added, {len(removed)} removed"
    return done if added or removed else f"{done}, what was there brought up to date"


def diff_of(bridge: Bridge, made: Edit) -> str:
    """Return the change as a unified diff, without the tokens of what is posted."""
    entries = [entry for found in made.settings() for entry in bridge.installed(found)]
    diff = made.diff()
    for token in {entry.address.token for entry in entries if entry.address is not None}:
        diff = diff.replace(token, "…")
    return diff


def _posted(bridge: Bridge, made: Edit, address: Address) -> str:
    """Return in words what is posted from now on."""
    if posted := [entry.event for entry in bridge.installed(made.settings()[1]) if entry.address is not None]:
        return f"by HTTP, to port {address.port} of this machine: {', '.join(posted)}"
    again = f"{PROGRAM} install {bridge.name} --http"
    return f"by HTTP: no event so far; once hooks listen to one that may be posted, again: {again}"


def uninstalling(bridge: Bridge, place: Place) -> Edit:
    """Return the edit that takes our entries out of a file; raises `SettingsError`."""
    run, events = entry_command(bridge, place.target.name), {entry.event for entry in place.entries}

    def forth_and_back(settings: Mapping[str, Any]) -> dict[str, Any]:
        return bridge.uninstall(bridge.install(settings, run, events))

    return undo(place.target.path, bridge.uninstall, forth_and_back)


def _of(found: list[Place], target: Target) -> Place | None:
    """Return what is in a file; in the home directory, the project's is the person's."""
    path = os.path.realpath(target.path)
    return next((place for place in found if os.path.realpath(place.target.path) == path), None)


def _write(bridge: Bridge, edits: list[Edit], *, generated: bool) -> None:
    """Write the generated file, then the settings that name it."""
    try:
        if generated:
            write_stub(bridge)
    except StorageError as exc:
        raise SettingsError(f"{exc}; nothing was changed") from None
    for each in edits:
        if each.changes:
            each.make()


def _warn_of_the_rest(bridge: Bridge, cwd: str, found: list[Place]) -> None:
    """Name hooks that nobody reads, what fires twice, and what cannot be read."""
    if unused := unused_hooks(cwd, "cd {} first"):
        _warn(unused)
    for place in found:
        if place.problem:
            _warn(place.problem)
    for text in twice_told(bridge, found):
        _warn(text)


def twice_told(bridge: Bridge, found: list[Place]) -> list[str]:
    """Return a sentence for each two files that run our hooks in two ways."""
    pairs = [(one, other) for index, one in enumerate(found) for other in found[:index] if twice(one, other)]
    return [
        f"events fire twice here: {short(one.target.path)} and {short(other.target.path)} run your hooks by different "
        f"commands; take one out: {_one_way(bridge, one.target.name, other.target.name)}"
        for one, other in pairs
    ]


def _one_way(bridge: Bridge, *names: str) -> str:
    """Return the command after which one of two files is left; what is shared stays."""
    if "project" not in names:
        return install_line(bridge, "user")
    return uninstall_line(bridge, next(name for name in names if name != "project"))


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)
