"""List the resident servers of this user, get their status, and stop them."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_hooks.bridges import usable_bridges
from agent_hooks.server import client
from agent_hooks.server.stub import config_of
from agent_hooks.storage.locks import try_lock

Status = dict[str, Any]
"""The answer of a server to `status`; of a server that does not answer: `project`, `path`, `pid` and `error`."""

# Seconds for a server to answer.
PATIENCE = 3.0
# Seconds between two looks at a server that ends.
_PAUSE = 0.02
# Seconds until the files of an ended server go.
_LEFT_BEHIND = 86400.0


def place_of(project: str) -> str:
    """Return the path, without a suffix, of the files of a project's server."""
    bridge = usable_bridges()[0]
    directory, name = client.place(config_of(bridge), project)
    return f"{directory}/{name}"


def servers() -> Iterator[Status]:
    """Yield the status of each server of this user and home."""
    directory, _, home = place_of("").rpartition("-")[0].rpartition("/")
    for path in sorted(Path(directory).glob(f"{home}-*.socket")) if client.is_private(directory) else []:
        try:
            yield _request(str(path), {"do": "status"})
        except OSError as exc:
            # A refused connection means that the server has ended and left its socket behind.
            if not isinstance(exc, ConnectionRefusedError):
                base = path.with_suffix("")
                yield {"project": "?", "path": str(base), "pid": _holder(base), "error": f"does not answer: {exc}"}


def refresh_ports(project: str) -> list[int]:
    """Make the server of a project read the ports in the settings again, and return its ports; none if none runs."""
    # On a failure no server runs, or it is busy and reads the ports soon.
    with suppress(OSError):
        ports: list[int] = _request(f"{place_of(project)}.socket", {"do": "look"}).get("ports", [])
        return ports
    return []


def stop(server: Status) -> bool:
    """Stop a server; return whether that had to be done by force, because the server does not answer.

    A signal does it, because any program can connect.  Only the holder of the lock is signalled: another program may
    listen in the server's place.
    """
    base, by_force = Path(server["path"]), "error" in server
    pid = _holder(base)
    if pid is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL if by_force else signal.SIGTERM)
    end = time.monotonic() + PATIENCE
    while not by_force and _holder(base) == pid and time.monotonic() < end:
        time.sleep(_PAUSE)
    return by_force


def remove_left_files(own: str) -> None:
    """Remove the files of servers that ended more than a day ago; `own` is the path of this process's server."""
    directory, name = os.path.split(own)
    for lock in Path(directory).glob("*.lock"):
        # The log of this lock is the one that this process writes to.
        if lock.stem == name:
            continue
        with suppress(OSError), lock.open("rb") as file:
            if not try_lock(file.fileno()):  # its server runs
                continue
            files = list(lock.parent.glob(f"{lock.stem}.*"))
            if time.time() - max(each.stat().st_mtime for each in files) > _LEFT_BEHIND:
                for each in files:
                    each.unlink()


def _holder(path: Path) -> int | None:
    """Return the number of the process that holds a server's lock; `None` if the server has ended meanwhile."""
    try:
        with path.with_suffix(".lock").open() as file:
            return None if try_lock(file.fileno()) else int(file.read())
    except (OSError, ValueError):
        # The lock is gone, or has no number because the disk was full.
        return None


def _request(path: str, request: Mapping[str, Any]) -> Status:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(path)
        connection.sendall(json.dumps([request, None]).encode() + b"\n")
        with connection.makefile("rb") as answers:
            # The first line is the server's version.
            answers.readline()
            answer: Status = json.loads(answers.readline() or b"{}")
    return answer
