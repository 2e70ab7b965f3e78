"""The effects of a call: as lines for a person, and as data for another program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from agent_hooks.values.effects import Effects, PathEffect, Transfer

_ACCESS = {"read": "reads", "write": "writes", "delete": "deletes", "list": "lists", "execute": "runs"}


def effect_lines(effects: Effects) -> list[str]:
    """Return one line for each effect beside the programs, which have a list of their own."""
    return list(_lines(effects))


def effect_data(effects: Effects) -> dict[str, Any]:
    """Return the effects as JSON has them, without the directories that globs are relative to."""
    data: dict[str, Any] = msgspec.to_builtins(effects)
    return {name: value for name, value in data.items() if name != "place"}


def _lines(effects: Effects) -> Iterator[str]:
    root = effects.place.root.rstrip("/") + "/"
    yield from (_path_line(each, root) for each in effects.paths)
    yield from (_transfer_line(each) for each in effects.transfers)
    yield from (f"discards {each.what}{_by(each.program)}" for each in effects.discards)
    yield from (
        f"installs {each.name or 'the packages of the project'}{_by(each.program)}" for each in effects.installs
    )
    yield from (f"ends the process {each.target}{_by(each.program)}" for each in effects.kills)
    yield from (f"gives the right {each.what}{_by(each.program)}" for each in effects.privileges)
    yield from (f"{_ACCESS[each.access]} the device {each.path}{_by(each.program)}" for each in effects.devices)
    yield from (f"unknown ({each.kind}): {each.text}: {each.why}" for each in effects.unknown)


def _path_line(effect: PathEffect, root: str) -> str:
    name = effect.path.removeprefix(root)
    inside = " and everything inside" if effect.tree else ""
    real = "" if effect.real == effect.path else f" (really {effect.real})"
    sure = "" if effect.certain else " (may be)"
    there = " elsewhere" if effect.elsewhere else ""
    return f"{_ACCESS[effect.access]} {name}{inside}{there}{real}{sure}{_by(effect.program)}"


def _transfer_line(transfer: Transfer) -> str:
    way, host = ("sends to", "a host that is not known") if transfer.direction == "out" else ("gets from", "a host")
    return f"{way} {transfer.host or host}: {transfer.what}{_by(transfer.program)}"


def _by(program: str) -> str:
    return f" [{program}]" if program else ""
