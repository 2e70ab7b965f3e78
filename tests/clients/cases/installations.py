"""Hooks that are installed twice, and hooks that are uninstalled."""

from __future__ import annotations

from collections.abc import Mapping

from clients.cases.table import case
from clients.seat import Seat


@case("installed twice, an event is judged once")
def installed_twice(seat: Seat) -> bool:
    seat.ready()
    seat.client.install()
    seat.client.hooks("install", seat.client.name, "--user")
    run = seat.shell("touch made")
    assert seat.has("made"), run.output[-2000:]
    assert seat.events().count("tool_call") == 1, seat.events()
    return True


@case("once uninstalled, no hook runs and no file of ours is left", core=True)
def uninstalled(seat: Seat) -> bool:
    before = _tree(seat)
    seat.ready()
    seat.client.uninstall()
    assert _tree(seat) == before
    run = seat.shell("echo deploy; touch made")
    assert seat.has("made"), run.output[-2000:]
    assert seat.log() == []
    return True


def _tree(seat: Seat) -> Mapping[str, str]:
    """Return the files of the client's settings, without those of agent_hooks itself."""
    found = {}
    for folder in seat.client.folders:
        for place in (seat.project, seat.client.home):
            for path in sorted((place / folder).rglob("*")):
                if path.is_file() and "node_modules" not in path.parts:
                    found[str(path)] = path.read_text(errors="replace")
    return found
