"""Transcripts in the index: joined with records, redacted, and read as far as they go."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.look.index import sessions
from agent_hooks.look.index.columns import BY_ORDER, FROM_TRANSCRIPT
from agent_hooks.look.view import View
from agent_sessions import PLACES, bash, put, put_database
from recording import TOKEN, Recorded

pytestmark = pytest.mark.anyio


async def judged(recorded: Recorded, client: str, payloads: list[dict[str, Any]], event: str) -> None:
    """Let a bridge judge calls, which writes records."""
    ui = BridgeUI(attended=False)
    runner = recorded.runner(mode="bridge", ui=ui, records={"client": client})
    bridge = Bridging(runner, ui, attended=False)
    for payload in payloads:
        await bridge.answer(open_bridge(client).decode(payload, event))
    runner.end_records()


def facts(path: Path) -> dict[str, Any]:
    """Return the first line of a transcript."""
    found: dict[str, Any] = json.loads(path.read_text().splitlines()[0])
    return found


@pytest.mark.behaviour("VW10")
async def test_a_call_is_joined_with_its_record_by_the_clients_id(recorded: Recorded, tmp_path: Path) -> None:
    """One row has the record and the transcript; a call that no hook saw has a row of its own."""
    path = put(tmp_path, "codex")
    session = facts(path)["payload"]["id"]
    payload = {
        "session_id": session,
        "transcript_path": str(path),
        "cwd": "/home/dev/app",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "echo hello from the shell"},
        "tool_use_id": "call_0_0",
    }
    await judged(recorded, "codex", [payload], "PreToolUse")
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    assert [bits & (BY_ORDER | FROM_TRANSCRIPT) for bits in view.columns().flags] == [0, 32, 32]
    card = view.card(0)
    assert (card["joined"], card["verdict"]) == ("id", "pass")
    assert [source["kind"] for source in card["sources"]] == ["record", "transcript", "transcript"]
    assert "hello from the shell" in card["saw"]["text"]
    other = view.card(1)
    assert (other["joined"], other["verdict"], other["input"]) == (
        "none",
        "unjudged",
        {"command": "cat missing-file; exit 3"},
    )
    assert view.search("missing-file") == [1]


@pytest.mark.behaviour("VW10")
async def test_without_the_clients_id_calls_are_joined_in_their_order(recorded: Recorded, tmp_path: Path) -> None:
    """Gemini CLI gives hooks no id of a call; two equal calls have their own records."""
    path = put(tmp_path, "gemini-cli")
    path.write_text(path.read_text().replace("cat missing-file; exit 3", "echo hello from the shell"))
    payload = {
        "session_id": facts(path)["sessionId"],
        "transcript_path": str(path),
        "cwd": "/home/dev/app",
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-25T23:19:05.000Z",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "echo hello from the shell"},
    }
    await judged(recorded, "gemini-cli", [payload, payload], "BeforeTool")
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    assert [bits & (BY_ORDER | FROM_TRANSCRIPT) for bits in view.columns().flags] == [8, 8, 32]
    assert [view.card(row)["joined"] for row in range(3)] == ["order", "order", "none"]
    assert view.card(0)["saw"]["text"] != view.card(1)["saw"]["text"]


@pytest.mark.behaviour("VW10")
async def test_a_record_that_comes_after_its_transcript_is_the_same_call(recorded: Recorded, tmp_path: Path) -> None:
    """And a call that is seconds old waits for its record."""
    path = put(tmp_path, "codex")
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    payload = {
        "session_id": facts(path)["payload"]["id"],
        "transcript_path": str(path),
        "cwd": "/home/dev/app",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "echo hello from the shell"},
        "tool_use_id": "call_0_0",
    }
    await judged(recorded, "codex", [payload], "PreToolUse")
    changes = view.refresh()
    assert (list(changes.calls), changes.total) == ([0], 3)
    assert view.card(0)["verdict"] == "pass"


@pytest.mark.behaviour("VW11")
@pytest.mark.parametrize("client", [*PLACES, "opencode"])
async def test_everything_of_a_transcript_is_redacted(client: str, recorded: Recorded, tmp_path: Path) -> None:
    """The index, the line of a call, its input and its result."""
    if client == "opencode":
        put_database(tmp_path / ".local/share/opencode/opencode.db", [bash(f"echo {TOKEN}", output=TOKEN)])
    else:
        path = put(tmp_path, client)
        path.write_text(path.read_text().replace("hello from the shell", TOKEN))
    view = View(recorded.home, user=tmp_path)
    view.refresh()
    shown = json.dumps([view.card(0), view.command([0]), view.summary()])
    assert TOKEN not in shown
    assert shown.count("[redacted github-token]") >= 3
    view.close()
    assert all(TOKEN.encode() not in file.read_bytes() for file in (recorded.home / "look").iterdir())


@pytest.mark.behaviour("VW12")
async def test_a_large_transcript_is_read_as_a_stream_up_to_a_limit(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says that the rest was left out; a new line of another file is still taken."""
    path = put(tmp_path, "pi")
    monkeypatch.setattr(sessions, "MOST", path.stat().st_size // 2)
    view = View(recorded.home, user=tmp_path)
    assert 0 < view.refresh().total < 3
    (entry,) = view.summary()["left_out"]
    assert (entry["place"], entry["why"]) == (str(path), "only the first GB of a transcript is read")


@pytest.mark.behaviour("VW12")
async def test_only_new_lines_of_a_transcript_are_read(recorded: Recorded, tmp_path: Path) -> None:
    """A half-written line waits for its end; a transcript that is removed takes its calls with it."""
    path = put(tmp_path, "copilot-cli")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]) + lines[4][:50])
    view = View(recorded.home, user=tmp_path)
    first = view.refresh().total
    path.write_text("".join(lines))
    os.utime(path, (1_795_700_000, 1_795_700_000))
    assert (first, view.refresh().total) == (1, 3)
    path.unlink()
    view.refresh()
    assert view.summary()["calls"] == 0
