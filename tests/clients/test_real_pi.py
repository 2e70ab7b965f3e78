"""The real pi: the calls that a script of its code mode makes are judged one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clients.cases.table import told
from clients.drivers import Pi
from clients.seat import Seat

pytestmark = pytest.mark.client


@pytest.fixture
def seat(project: Path, home: Path) -> Iterator[Seat]:
    """Give pi in a project, with a model that is offered the code mode alone."""
    with closing(Pi(project, home)) as pi:
        pi.write(".pi/agent/settings.json", {"defaultTools": ["+codemode"], "codemode": {"mode": "only"}})
        yield Seat(pi)


def test_each_call_of_a_script_is_judged(seat: Seat) -> None:
    """A hook blocks a command within a script, and replaces the result of another one."""
    seat.ready()
    run = seat.shell("echo deploy; touch denied", "echo cus_12345678; touch fine")
    assert not run.script.missing
    assert not seat.has("denied")
    assert seat.has("fine"), run.output[-2000:]
    told(run, "deploying is for people")
    assert "cus_12345678" not in "\n".join(run.results)
    events = [(line["event"], line["tool"]) for line in seat.log() if line["event"] == "tool_call"]
    assert events.count(("tool_call", "codemode")) == 2, events
    assert events.count(("tool_call", "bash")) == 2, events
