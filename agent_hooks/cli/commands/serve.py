"""`agent-hooks serve`: run the resident server of a project, or ask the running ones."""

from __future__ import annotations

import json
import logging
import os
import traceback
from pathlib import Path

import click

from agent_hooks.cli.lifetime import FAILED, OK, leave_soon
from agent_hooks.cli.opening import Opening
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.streams import echo, echo_data, echo_json, tell
from agent_hooks.errors import AgentHooksError, count, describe
from agent_hooks.server import client
from agent_hooks.server.control import Status, place_of, remove_left_files, servers, stop
from agent_hooks.server.files import shorten
from agent_hooks.server.journal import remove_old
from agent_hooks.server.plugin_file import refresh_plugins
from agent_hooks.server.stub import refresh_stubs


@click.command("serve")
@click.option("--at", "path", hidden=True, help="The path of its files, without a suffix; the client gives it.")
@click.option(
    "--idle",
    type=click.FloatRange(min=0.1),
    help="Seconds without an event and without a running agent, after which it ends [1800].",
)
@click.option("--status", "action", flag_value="status", help="Show the servers that run.")
@click.option("--stop", "action", flag_value="stop", help="End this project's server; --all: those of all.")
@click.option("--log", "action", flag_value="log", help="Print the log of this project's server.")
@click.option("--all", "everywhere", is_flag=True, help="With --stop: the servers of all your projects.")
@cwd_option
@json_option
def command(
    path: str | None, idle: float | None, action: str | None, everywhere: bool, cwd: str, as_json: bool
) -> None:
    """Answer the events of another agent in one process, in which hooks keep their state.

    The agent's first event starts it, and it ends when it is idle; started by hand, it runs in the foreground.
    """
    project = os.path.abspath(cwd)
    if as_json and action != "status":
        raise click.UsageError("--json goes with --status")
    if action == "status":
        _show(list(servers()), as_json=as_json)
    elif action == "stop":
        own = place_of(project)
        _stop([each for each in servers() if everywhere or own == each["path"]], project)
    elif action == "log":
        log = Path(f"{path or place_of(project)}.log")
        echo_data(log.read_text(errors="replace") if log.exists() else f"there is no log: {log}\n")
    elif path is None:
        _serve(place_of(project), project, idle)
    else:
        _serve_for_client(path, project, idle)


def _serve_for_client(path: str, project: str, idle: float | None) -> None:
    """Serve as the process that a client has started at an event; stderr is the log of the server."""
    try:
        _serve(path, project, idle)
    # A bug of ours, or damaged files of this package.  The client tells the person, `doctor` shows the last line of the
    # log, and no report is written, because the next event starts the server again.
    except Exception as exc:
        if not isinstance(exc, AgentHooksError):
            traceback.print_exc()
        echo(f"the server cannot start: {describe(exc)}", err=True)
        raise click.exceptions.Exit(FAILED) from None


def _serve(path: str, project: str, idle: float | None) -> None:
    # Imported here, so that `--status` does not load it.
    from agent_hooks.server.server import IDLE, Server

    if not client.is_private(os.path.dirname(path)):
        raise AgentHooksError(f"{os.path.dirname(path)}: is not a directory that only you can look into")
    remove_left_files(path)
    shorten(f"{path}.log")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    _refresh()
    remove_old()
    # The starting client may have run in another directory.
    os.chdir(project)
    server = Server(path, project, Opening, idle=IDLE if idle is None else idle)
    if not server.serve():
        echo(f"another process serves {project} already", err=True)
    leave_soon(OK)


def _refresh() -> None:
    """Update the generated files of an earlier version; one that cannot be written is no reason not to serve."""
    try:
        refresh_stubs()
        refresh_plugins()
    except AgentHooksError as exc:
        logging.getLogger("agent_hooks").warning("%s", exc)


def _show(found: list[Status], *, as_json: bool) -> None:
    if as_json:
        echo_json(json.dumps({"servers": found}))
        return
    for each in found:
        if "error" in each:
            echo(f"{each['path']}: {each['error']}")
        else:
            echo(
                f"{each['project']}: process {each['pid']}, agent_hooks {each['version']}, "
                f"{count(each['sessions'], 'session')}, {count(each['events'], 'event')}, for {each['seconds']} s"
            )
    if not found:
        echo("no server runs; the next event of an agent starts one")


def _stop(found: list[Status], project: str) -> None:
    for each in found:
        by_force = stop(each)
        if "error" not in each:
            tell(f"{each['project']}: stopped")
        elif by_force:
            echo(f"{each['path']}: {each['error']}; ended by force, so its hooks had no shutdown")
    if not found:
        echo(f"no server runs for {project}")
