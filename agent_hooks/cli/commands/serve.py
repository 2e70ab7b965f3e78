"""`agent-hooks serve`: the resident process that answers another agent's events, and what there is to know of it."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.cli.lifetime import leave_soon
from agent_hooks.cli.opening import Opening
from agent_hooks.cli.options import cwd_option, json_option
from agent_hooks.cli.setup import count
from agent_hooks.errors import AgentHooksError
from agent_hooks.server import client
from agent_hooks.server.log_file import shorten
from agent_hooks.server.stub import config_of, refresh_stubs

_PATIENCE = 3.0  # seconds for a server to say how it is
_LEFT_BEHIND = 86400.0  # seconds after which files of a server that is gone are removed


@click.command("serve")
@click.option("--at", "path", hidden=True, help="Where its files lie, without a suffix; what the agent's command says.")
@click.option(
    "--idle", type=click.FloatRange(min=0.1), help="Seconds without an event or an agent until it ends [1800]."
)
@click.option("--status", "what", flag_value="status", help="Show the servers that run.")
@click.option("--stop", "what", flag_value="stop", help="End this project's server; --all: those of all.")
@click.option("--log", "what", flag_value="log", help="Print the log of this project's server.")
@click.option("--all", "everywhere", is_flag=True, help="With --stop: the servers of all your projects.")
@cwd_option
@json_option
def command(path: str | None, idle: float | None, what: str | None, everywhere: bool, cwd: str, as_json: bool) -> None:
    """Answer the events of another agent in one process, in which hooks keep their state.

    The agent's first event starts it, and it ends by itself; started by hand it runs in the foreground.
    """
    project = os.path.abspath(cwd)
    if what == "status":
        _show(list(_servers()), as_json=as_json)
    elif what == "stop":
        own = place_of(project)
        _stop([each for each in _servers() if everywhere or own == each["path"]], project)
    elif what == "log":
        log = Path(f"{path or place_of(project)}.log")
        click.echo(log.read_text(errors="replace") if log.exists() else f"there is no log: {log}", nl=False)
    else:
        _serve(path or place_of(project), project, idle)


def place_of(project: str) -> str:
    """Return the path, without a suffix, of the files of a project's server."""
    bridge = open_bridge(next(iter(BRIDGES)))
    directory, name = client.place(config_of(bridge), project)
    return f"{directory}/{name}"


def let_look(project: str) -> list[int]:
    """Let the server of a project look at the ports that the settings name now; return those that it has, if it runs."""
    with suppress(OSError):  # there is none, or it looks by itself soon
        ports: list[int] = _request(f"{place_of(project)}.socket", {"do": "look"}).get("ports", [])
        return ports
    return []


def _serve(path: str, project: str, idle: float | None) -> None:
    from agent_hooks.server.server import IDLE, Server  # here, so that `--status` does not load it

    if not client.is_private(os.path.dirname(path)):
        raise AgentHooksError(f"{os.path.dirname(path)}: is not a directory that only you can look into")
    _tidy(Path(path))
    shorten(f"{path}.log")
    refresh_stubs()  # an update of agent_hooks leaves the old one's behind
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    os.chdir(project)  # the agent may have been started by somebody who is elsewhere
    server = Server(path, project, Opening, idle=IDLE if idle is None else idle)
    if not server.serve():
        click.echo(f"another process serves {project} already", err=True)
    leave_soon(0)


def _tidy(own: Path) -> None:
    """Remove what other servers than this one left behind that have not run for a day."""
    directory = own.parent
    for lock in directory.glob("*.lock"):
        if lock.stem == own.name:  # we write to its log
            continue
        with suppress(OSError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody serves
            newest = max(each.stat().st_mtime for each in directory.glob(f"{lock.stem}.*"))
            if time.time() - newest > _LEFT_BEHIND:
                for each in directory.glob(f"{lock.stem}.*"):
                    each.unlink()


def _servers() -> Iterator[dict[str, Any]]:
    """Yield the status of each server of this user and home."""
    directory, _, home = place_of("").rpartition("-")[0].rpartition("/")
    for path in sorted(Path(directory).glob(f"{home}-*.socket")) if client.is_private(directory) else []:
        try:
            yield _request(str(path), {"do": "status"})
        except OSError as exc:
            if not isinstance(exc, ConnectionRefusedError):  # it left its socket behind
                base = path.with_suffix("")
                yield {"project": "?", "path": str(base), "pid": _holder(base), "error": f"does not answer: {exc}"}


def _holder(path: Path) -> int | None:
    """Return the process that holds a server's lock."""
    try:
        with path.with_suffix(".lock").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read())
    except (OSError, ValueError):  # it has ended meanwhile, or could not write its number down
        pass
    return None


def _request(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        connection.connect(path)
        connection.sendall(json.dumps([request, None]).encode() + b"\n")
        with connection.makefile("rb") as answers:
            answers.readline()  # its version
            said: dict[str, Any] = json.loads(answers.readline() or b"{}")
    return said


def _show(servers: list[dict[str, Any]], *, as_json: bool) -> None:
    for each in servers:
        if as_json:
            click.echo(json.dumps(each))
        elif "error" in each:
            click.echo(f"{each['path']}: {each['error']}")
        else:
            click.echo(
                f"{each['project']}: process {each['pid']}, agent_hooks {each['version']}, "
                f"{count(each['sessions'], 'session')}, {count(each['events'], 'event')}, for {each['seconds']} s"
            )
    if not servers and not as_json:
        click.echo("no server runs; the next event of an agent starts one")


def _stop(servers: list[dict[str, Any]], project: str) -> None:
    for each in servers:
        if "error" not in each:
            _request(f"{each['path']}.socket", {"do": "stop"})
            click.echo(f"{each['project']}: stopped")
        elif each["pid"] is not None:
            os.kill(each["pid"], signal.SIGKILL)
            click.echo(f"{each['path']}: {each['error']}; ended by force, its hooks did not hear of it")
    if not servers:
        click.echo(f"no server runs for {project}")
