"""The transcripts of real clients, beside the records of our hooks: each call is one row of look, and ended as it did."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from agent_hooks.look.view import View
from agent_hooks.transcripts import Transcript, find_standard
from agent_hooks.transcripts.base import RecordedCall, RecordedEnd
from clients.drivers import DRIVERS
from clients.seat import Seat

pytestmark = pytest.mark.client
GATE = """
    from agent_hooks import Block

    def register(api):
        @api.on("tool_call")
        def gate(event, ctx):
            return Block("not here") if "forbidden" in event.input.get("command", "") else None
"""
COMMANDS = {
    "echo allowed": "ran",
    "echo forbidden": "denied",
    "cat missing-file; exit 3": "failed",
    "echo new > made": "ran",
}
# These give hooks no id of a call, or another one than that of the transcript.
WITHOUT_IDS = ("copilot-cli", "gemini-cli", "qwen-code")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if DRIVERS[name].fast else [pytest.mark.slow])
        for name in ("codex", "copilot-cli", "gemini-cli", "opencode", "pi", "qwen-code")
    ],
)
def test_each_call_is_one_row_with_its_record_its_end_and_its_turn(name: str, project: Path, home: Path) -> None:
    """Joined by the client's id of the call, or by its input where hooks get no such id; the last one changed a file."""
    with closing(DRIVERS[name](project, home)) as client:
        seat = Seat(client)
        seat.add_hook("gate.py", GATE)
        seat.trust()
        client.install()
        run = seat.shell(*COMMANDS)
        assert seat.has("made"), run.output[-2000:]
    assert ends(home, name) == COMMANDS
    view = View(home / ".agent", user=home)
    try:
        # Calls that are seconds old wait for their records, and all of these have one.
        assert view.refresh().total == len(COMMANDS)
        cards = {card["input"]["command"]: card for card in map(view.card, range(len(COMMANDS)))}
        assert cards.keys() == COMMANDS.keys()
        joined = "order" if name in WITHOUT_IDS else "id"
        assert [card["joined"] for card in cards.values()] == [joined] * len(COMMANDS)
        assert cards["echo forbidden"]["verdict"] == "block"
        assert "allowed" in cards["echo allowed"]["saw"]["text"]
        assert cards["echo new > made"]["turn"]["files"] == ["made"]
        assert cards["echo new > made"]["turn"]["bringBack"]
        assert view.summary()["files"] > 0
    finally:
        view.close()


def ends(home: Path, name: str) -> dict[str, str]:
    """Return how each command ended, as the client's transcript has it."""
    found: dict[str, str] = {}
    for client, path in find_standard(str(home), {}, []):
        if client == name:
            commands: dict[str, str] = {}
            with Transcript(path) as transcript:
                for _, each in transcript:
                    if isinstance(each, RecordedCall):
                        commands[each.tool_call_id] = each.input["command"]
                    elif isinstance(each, RecordedEnd):
                        found[commands[each.tool_call_id]] = each.then
    return found
