"""The ports on which events arrive by HTTP: the ports that this person's settings of this project name."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from functools import partial

from agent_hooks.bridges import usable_bridges
from agent_hooks.bridges.base.installation import LOOPBACK, Address
from agent_hooks.errors import SettingsError, log
from agent_hooks.server.lines import LineServer
from agent_hooks.server.sources import State, state
from agent_hooks.settings_file import read_file

_MOST = 64
"""The number of connections to a port at once."""


class Ports:
    """The open ports of a project: `refresh()` opens and closes them by the present settings files.

    `project`: the project's directory.
    """

    def __init__(self, server: LineServer, project: str) -> None:
        self._server = server
        self._listeners: dict[Address, socket.socket] = {}
        # Addresses that another program uses, and that were logged.
        self._logged: set[Address] = set()
        # The addresses in the settings files, and the state of those files when they were read.
        self._named: set[Address] = set()
        self._states: list[State] = []
        self._files = {
            os.path.join(project, file): bridge
            for bridge in usable_bridges()
            if (file := bridge.settings_files({}).get("local"))
        }

    @property
    def numbers(self) -> list[int]:
        """The numbers of the open ports, sorted."""
        return sorted(address.port for address in self._listeners)

    def refresh(self) -> None:
        """Open each port that the settings name, and close each port that they no longer name."""
        states = [state(path) for path in self._files]
        if states != self._states:
            # While a file cannot be read, its former content counts.
            with suppress(SettingsError):
                self._named, self._states = self._read_addresses(), states
        for address in self._listeners.keys() - self._named:
            self._server.close_listener(self._listeners.pop(address))
        for address in self._named - self._listeners.keys():
            self._open(address)

    def _read_addresses(self) -> set[Address]:
        """Return the addresses in the files.  A file that is no JSON names none.  Raises `SettingsError`."""
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

    def _open(self, address: Address) -> None:
        try:
            # Imported here, because most projects need no HTTP.
            from agent_hooks.server.http import HttpConnection

            listener = socket.create_server((LOOPBACK, address.port), backlog=_MOST)
        except OSError as exc:
            self._log_once(address, exc)
            return
        self._logged.discard(address)
        # The accepted connections inherit this option.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server.listen(listener, partial(HttpConnection, token=address.token), most=_MOST)
        self._listeners[address] = listener

    def _log_once(self, address: Address, exc: OSError) -> None:
        if address not in self._logged:
            self._logged.add(address)
            # The text of the exception would name the address a second time.
            reason = os.strerror(exc.errno or 0)
            log().warning("port %d: %s; events that are posted there are lost", address.port, reason)
