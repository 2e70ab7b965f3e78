"""The places where hooks run: each drives the same calls through its own door, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable

from chaos.cells import Cell
from chaos.places import host, server, wrapped
from chaos.scene import Scene

RUN: dict[str, Callable[[Cell, Scene], None]] = {"wrapped": wrapped.run, "host": host.run, "server": server.run}
"""Runs the calls of a cell; each ends the process."""
