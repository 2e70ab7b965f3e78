"""The ports on which events arrive by HTTP: those that the settings of this project, for this person, name.

Above: server.  Below: http, lines, bridges.
"""

from __future__ import annotations

import json
import os
import socket
from functools import partial

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Address
from agent_hooks.errors import log, os_reason
from agent_hooks.server.lines import Lines

_MOST = 64  # connections to a port at once: whoever has no token can have no more
_LOOPBACK = "127.0.0.1"


class Ports:
    """Listens on the ports that settings files name now: `look()` opens and closes them.

    `project`: the directory whose settings those are.
    """

    def __init__(self, lines: Lines, project: str) -> None:
        self._lines = lines
        self._open: dict[Address, socket.socket] = {}
        self._taken: set[Address] = set()  # which was said
        self._read: list[tuple[int, int] | None] = []
        self._named: set[Address] = set()
        self._files = {
            os.path.join(project, bridge.settings_files({})["local"]): bridge for bridge in map(open_bridge, BRIDGES)
        }

    def look(self) -> None:
        """Open what is named and not open yet, close what is not named any more."""
        read = [_state(path) for path in self._files]
        if read != self._read:
            self._read, self._named = read, self._find()
        for address in self._open.keys() - self._named:
            self._lines.stop_listening(self._open.pop(address))
        for address in self._named - self._open.keys():
            self._listen(address)

    def _find(self) -> set[Address]:
        """Return what the files name; one that cannot be read names nothing."""
        found = set()
        for path, bridge in self._files.items():
            try:
                with open(path, "rb") as file:
                    settings = json.load(file)
            except (OSError, ValueError, RecursionError):
                continue
            if isinstance(settings, dict):
                found |= {entry.address for entry in bridge.installed(settings) if entry.address is not None}
        return found

    def _listen(self, address: Address) -> None:
        from agent_hooks.server.http import HttpConnection  # here, for most projects need none

        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # or a server could not follow another one
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # those that connect inherit it
            listening.bind((_LOOPBACK, address.port))
            listening.listen(_MOST)
        except OSError as exc:
            listening.close()
            if address not in self._taken:
                self._taken.add(address)
                log().warning("port %d: %s; events that are posted there are not heard", address.port, os_reason(exc))
            return
        self._taken.discard(address)
        self._lines.listen(listening, partial(HttpConnection, token=address.token), most=_MOST)
        self._open[address] = listening


def _state(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
