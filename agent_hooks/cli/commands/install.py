"""`agent-hooks install`: let another agent run our hooks, by entries in its settings file."""

from __future__ import annotations

import os
import shutil

import anyio
import click

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.base import Address, Bridge
from agent_hooks.bridges.driver import listened_to
from agent_hooks.cli.options import installation_options
from agent_hooks.cli.screen.wording import short
from agent_hooks.cli.setup import set_up
from agent_hooks.cli.streams import ReservedStdout
from agent_hooks.cli.trusting import settle
from agent_hooks.errors import SettingsError, count
from agent_hooks.installs.edits import Edit
from agent_hooks.installs.git_ignore import how_to_ignore
from agent_hooks.installs.places import (
    PROGRAM,
    Installation,
    at_target,
    doubled,
    installations,
    runs_gates,
    targets,
    uninstall_line,
)
from agent_hooks.installs.plan import choose_address, diff_of, installing
from agent_hooks.server.control import refresh_ports
from agent_hooks.server.fixed import fixed_here
from agent_hooks.server.stub import write_stub
from agent_hooks.storage.files import StorageError
from agent_hooks.trust.policy import Trust


@click.command("install")
@installation_options
@click.option("--all-events", is_flag=True, help="Also install the events that none of your hooks listens to now.")
@click.option(
    "--http/--no-http",
    "by_http",
    default=None,
    help="With --local: post the events that decide nothing to the resident server, without a process for each.",
)
def command(agent: str, target: str | None, dry_run: bool, all_events: bool, by_http: bool | None) -> None:
    """Let AGENT run your hooks: adds entries to its settings, and keeps everything else that is there.

    Without an option, for this project and you only. Gates are always installed, most other events only if a hook
    listens to them.
    """
    bridge, name, cwd = open_bridge(agent), target or "local", os.getcwd()
    if by_http and name != "local":
        raise click.UsageError("--http goes with --local: its port and token are those of one project and one person")
    sources = settle(Trust(), cwd)
    with ReservedStdout():
        setup = anyio.run(set_up, cwd, (), sources)
    known, before = targets(bridge, cwd), installations(bridge, cwd)
    if name == "local" and (shared := at_target(before, known["project"])) and runs_gates(bridge, shared):
        click.echo(f"{short(shared.target.path)} runs your hooks already, for everybody who works here")
        click.echo("nothing was changed: with entries in both files, each event would fire twice")
        _warn_of_the_rest(bridge, cwd, before)
        return
    address = choose_address(at_target(before, known["local"]), by_http) if name == "local" else None
    listened = listened_to(setup.loaded.hooks, setup.transformers.configured, setup.redactor)
    edits = installing(bridge, cwd, name, before, listened=listened, address=address, all_events=all_events)
    path = edits[0].path
    unignored = how_to_ignore(os.path.realpath(path), short) if name == "local" else None
    if address is not None and unignored is not None:
        raise SettingsError(f"{short(path)}: git would commit the port and the token; first run: {unignored}")
    for each in edits:
        if each.changes:
            click.echo(f"{diff_of(bridge, each)}\n")
    if not dry_run:
        _make(bridge, edits, generated=name != "project")
        refresh_ports(cwd)
    _report(bridge, edits, address, dry_run=dry_run)
    click.echo(f"to remove it: {uninstall_line(bridge, name)}")
    _warn_of_the_rest(bridge, cwd, before if dry_run else installations(bridge, cwd))
    for error in setup.errors:
        _warn(f"{error}; until it is mended, calls are denied")
    if name == "project" and shutil.which(PROGRAM) is None:
        _warn(f"there is no {PROGRAM} on the PATH, so every tool call here is denied; everybody here needs it there")
    if unignored is not None:
        _warn(f"git does not ignore {short(path)}; to make it ignore the file: {unignored}")


def _make(bridge: Bridge, edits: list[Edit], *, generated: bool) -> None:
    """Write the generated file, and then the settings that name it."""
    try:
        if generated:
            write_stub(bridge, fixed_here())
    except StorageError as exc:
        raise SettingsError(f"{exc}; nothing was changed") from None
    for each in edits:
        if each.changes:
            each.make()


def _report(bridge: Bridge, edits: list[Edit], address: Address | None, *, dry_run: bool) -> None:
    """Print a line for each changed file and each backup, and one for the events by HTTP."""
    first, would_be = edits[0], "would be " * dry_run
    click.echo(f"{short(first.path)}: {_outcome(bridge, first, would_be)}")
    for each in edits:
        if each is not first and each.changes:
            click.echo(f"{short(each.path)}: {would_be}taken out, because each event would fire twice")
        if each.keep:
            click.echo(f"{short(each.backup)}: {would_be}written, with the old text of the file")
    if address is not None:
        click.echo(_posted_events(bridge, first, address))


def _outcome(bridge: Bridge, planned: Edit, would_be: str) -> str:
    """Return in words how an edit changes our entries."""
    if not planned.changes:
        return "is installed already"
    before, after = ({entry.event for entry in bridge.installed(settings)} for settings in planned.settings())
    added, removed = after - before, before - after
    done = f"{would_be}installed, {count(len(added), 'event')} added, {len(removed)} removed"
    return done if added or removed else f"{done}, the entries brought up to date"


def _posted_events(bridge: Bridge, planned: Edit, address: Address) -> str:
    """Return in words which events come by HTTP from now on."""
    if posted := [entry.event for entry in bridge.installed(planned.settings()[1]) if entry.address is not None]:
        return f"by HTTP, to port {address.port} of this machine: {', '.join(posted)}"
    again = f"{PROGRAM} install {bridge.name} --http"
    return f"by HTTP: no event so far; once hooks listen to one that may be posted, again: {again}"


def _warn_of_the_rest(bridge: Bridge, cwd: str, found: list[Installation]) -> None:
    """Warn of unreadable settings files, and of events that fire twice."""
    for each in found:
        if each.problem:
            _warn(each.problem)
    for pair in doubled(bridge, found):
        _warn(f"{pair.text(short)}; take one out: {pair.remedy}")


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)
