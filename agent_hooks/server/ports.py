"""The ports on which events arrive by HTTP: those that the settings of this project, for this person, name.

Above: server.  Below: http, lines, sources, settings, bridges.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from functools import partial

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import LOOPBACK, Address
from agent_hooks.errors import SettingsError, log
from agent_hooks.server.lines import Lines
from agent_hooks.server.sources import State, state
from agent_hooks.settings import read_file

_MOST = 64  # connections to a port at once


class Ports:
    """Listens on the ports that settings files name now: `look()` opens and closes them.

    `project`: the directory whose settings those are.
    """

    def __init__(self, lines: Lines, project: str) -> None:
        self._lines = lines
        self._open: dict[Address, socket.socket] = {}
        self._taken: set[Address] = set()  # which was said
        self._read: list[State] = []
        self._named: set[Address] = set()
        self._files = {
            os.path.join(project, bridge.settings_files({})["local"]): bridge for bridge in map(open_bridge, BRIDGES)
        }

    @property
    def numbers(self) -> list[int]:
        """Those that are open."""
        return sorted(address.port for address in self._open)

    def look(self) -> None:
        """Open what is named and not open yet, close what is not named any more."""
        read = [state(path) for path in self._files]
        if read != self._read:
            with suppress(SettingsError):  # it cannot be read for the moment: what it said holds
                self._named, self._read = self._find(), read
        for address in self._open.keys() - self._named:
            self._lines.shut(self._open.pop(address))
        for address in self._named - self._open.keys():
            self._listen(address)

    def _find(self) -> set[Address]:
        """Return what the files name; one that makes no sense names nothing.  Raises `SettingsError`."""
        found = set()
        for path, bridge in self._files.items():
            data = read_file(path) or b"{}"
            try:
                settings = json.loads(data)
            except (ValueError, RecursionError):
                continue
            if isinstance(settings, dict):
                found |= {entry.address for entry in bridge.installed(settings) if entry.address is not None}
        return found

    def _listen(self, address: Address) -> None:
        try:
            from agent_hooks.server.http import HttpConnection  # here, for most projects need none

            listening = socket.create_server((LOOPBACK, address.port), backlog=_MOST)
        except OSError as exc:
            if address not in self._taken:
                self._taken.add(address)
                why = os.strerror(exc.errno or 0)  # its own words name the address a second time
                log().warning("port %d: %s; events that are posted there are not heard", address.port, why)
            return
        self._taken.discard(address)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # those that connect inherit it
        self._lines.listen(listening, partial(HttpConnection, token=address.token), most=_MOST)
        self._open[address] = listening
