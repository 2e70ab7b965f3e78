"""A call that the transcript has, and that no hook was asked about, is an alarm."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.server.witness import Witness
from server.test_server_protocol import CALL, request, serving, stdout_of
from support import hook_on

pytestmark = pytest.mark.usefixtures("home")
CLAUDE = open_bridge("claude-code")


def line(kind: str, block: dict[str, Any], time: datetime | None = None) -> str:
    """Return a line of a transcript with one block, recorded now."""
    moment = (time or datetime.now(UTC) + timedelta(seconds=1)).isoformat().replace("+00:00", "Z")
    message = {"id": "m", "content": [block]}
    return json.dumps({"type": kind, "message": message, "sessionId": "s", "timestamp": moment}) + "\n"


def called(identity: str, tool: str = "Bash", time: datetime | None = None) -> str:
    """Return the line of a call."""
    return line("assistant", {"type": "tool_use", "id": identity, "name": tool, "input": {"command": "ls"}}, time)


def ended(identity: str, *, is_error: bool = False) -> str:
    """Return the line of a result."""
    return line("user", {"type": "tool_result", "tool_use_id": identity, "is_error": is_error, "content": "listed"})


class TestWitness:
    """The transcript alone."""

    def ran(self, witness: Witness, path: Path) -> list[str]:
        """Return the ids of the calls that ran since the last time."""
        return [call.tool_call_id for call in witness.ran(str(path))]

    def test_each_call_is_told_once_when_its_result_is_there(self, tmp_path: Path) -> None:
        """The client may have written half of a line."""
        path, witness = tmp_path / "s.jsonl", Witness(CLAUDE)
        assert self.ran(witness, path) == []
        result = ended("a")
        path.write_text(called("a") + result[:20])
        assert self.ran(witness, path) == []
        path.write_text(called("a") + result + called("b"))
        assert self.ran(witness, path) == ["a"]
        path.write_text(path.read_text() + ended("b"))
        assert self.ran(witness, path) == ["b"]
        assert self.ran(witness, path) == []

    def test_only_calls_of_known_tools_that_ran_count(self, tmp_path: Path) -> None:
        """A blocked call has failed, and a tool that is not in the table may have no event at all."""
        path, witness = tmp_path / "s.jsonl", Witness(CLAUDE)
        witness.follow(str(path))
        lines = called("a") + ended("a", is_error=True) + called("b", "Odd") + ended("b") + "{}\nno json\n" + ended("c")
        path.write_text(lines)
        assert self.ran(witness, path) == []

    def test_what_was_there_before_does_not_count(self, tmp_path: Path) -> None:
        """A session that is resumed has a long transcript, and a fork begins with a copy of the other one."""
        path, fork, witness = tmp_path / "s.jsonl", tmp_path / "f.jsonl", Witness(CLAUDE)
        path.write_text(called("a") + ended("a"))
        assert self.ran(witness, path) == []
        witness.follow(str(fork))
        fork.write_text(called("a", time=datetime.now(UTC) - timedelta(hours=1)) + ended("a"))
        assert self.ran(witness, fork) == []

    def test_a_transcript_that_is_no_file_is_left_alone(self, tmp_path: Path) -> None:
        """It may be missing, a directory, or belong to a client that keeps none."""
        assert self.ran(Witness(CLAUDE), tmp_path) == []


class TestServer:
    """A whole session."""

    @pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit"])
    async def test_a_call_that_no_hook_saw_stops_the_session(self, tmp_path: Path, event: str) -> None:
        """The user is told when the agent rests, and at the next prompt at the latest."""
        path = tmp_path / "s.jsonl"
        common = {"session_id": "s", "transcript_path": str(path)}
        start = {**common, "hook_event_name": "SessionStart", "source": "startup"}
        rest = {**common, "hook_event_name": event, "prompt": "go on"}
        async with serving(tmp_path, hook_on("tool_call", lambda event, ctx: None)) as server:
            await server.handle(request(start, "SessionStart"))
            await server.handle(request({**CALL, **common, "tool_use_id": "a"}))
            path.write_text(called("a") + ended("a"))
            assert "tripwire" not in str(stdout_of(await server.handle(request(rest, event))))
            path.write_text(path.read_text() + called("b") + ended("b"))
            told = stdout_of(await server.handle(request(rest, event)))
            stopped = stdout_of(await server.handle(request({**CALL, **common, "tool_use_id": "c"})))
        assert "Bash ran without having been judged" in str(told)
        assert "the tripwire has stopped this session" in str(stopped)
