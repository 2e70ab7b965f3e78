"""Transcripts in the index: joined with records, redacted, and read as far as they go."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_hooks import Ask, LoadedHook, Rewrite
from agent_hooks.bridges import open_bridge
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.look.index import sessions
from agent_hooks.look.index.columns import BY_ORDER, FROM_TRANSCRIPT, GONE
from agent_hooks.look.view import View
from agent_hooks.pipeline.order import preflight
from agent_hooks.redaction import Redactor
from agent_hooks.server.calls import Calls
from agent_hooks.testing import StandInTool, call_tool
from agent_sessions import PLACES, bash, put, put_database
from recording import TOKEN, Recorded
from support import hook_on

pytestmark = pytest.mark.anyio


async def judged(
    recorded: Recorded,
    client: str,
    payloads: list[dict[str, Any]],
    event: str,
    *hooks: LoadedHook,
    attended: bool = False,
) -> None:
    """Let a bridge judge calls, which writes records; as in a real process, a call without an id gets one."""
    ui = BridgeUI(attended=attended)
    runner = recorded.runner(*hooks, mode="bridge", ui=ui, records={"client": client})
    bridge, calls = Bridging(runner, ui, attended=attended), Calls(open_bridge(client))
    for payload in payloads:
        happening = calls.complete(open_bridge(client).decode(payload, event))
        await calls.answer(happening, bridge)
    runner.end_records()


def before_tool(path: Path, command: str = "echo hello from the shell") -> dict[str, Any]:
    """Return the payload of Gemini CLI before a command of a transcript, which has no id of the call."""
    return {
        "session_id": facts(path)["sessionId"],
        "transcript_path": str(path),
        "cwd": "/home/dev/app",
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-25T23:19:05.000Z",
        "tool_name": "run_shell_command",
        "tool_input": {"command": command},
    }


def facts(path: Path) -> dict[str, Any]:
    """Return the first line of a transcript."""
    found: dict[str, Any] = json.loads(path.read_text().splitlines()[0])
    return found


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


async def test_without_the_clients_id_calls_are_joined_in_their_order(recorded: Recorded, tmp_path: Path) -> None:
    """Gemini CLI gives hooks no id of a call; two equal calls have their own records."""
    path = put(tmp_path, "gemini-cli")
    path.write_text(path.read_text().replace("cat missing-file; exit 3", "echo hello from the shell"))
    await judged(recorded, "gemini-cli", [before_tool(path), before_tool(path)], "BeforeTool")
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    assert [bits & (BY_ORDER | FROM_TRANSCRIPT) for bits in view.columns().flags] == [8, 8, 32]
    assert [view.card(row)["joined"] for row in range(3)] == ["order", "order", "none"]
    assert view.card(0)["saw"]["text"] != view.card(1)["saw"]["text"]


async def test_where_hooks_get_another_id_than_the_transcript_the_input_counts(
    recorded: Recorded, tmp_path: Path
) -> None:
    """Qwen Code makes an id for hooks alone; both orders of coming end in one row."""
    path = put(tmp_path, "qwen-code")
    payloads = [
        {
            "session_id": facts(path)["sessionId"],
            "transcript_path": str(path),
            "cwd": "/home/dev/app",
            "hook_event_name": "PreToolUse",
            "tool_name": "run_shell_command",
            "tool_input": {"command": command},
            "tool_use_id": f"toolu_{number}",
        }
        for number, command in enumerate(("echo hello from the shell", "cat missing-file; exit 3"))
    ]
    await judged(recorded, "qwen-code", payloads[:1], "PreToolUse")
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    await judged(recorded, "qwen-code", payloads[1:], "PreToolUse")
    assert view.refresh().total == 3
    assert [view.card(row)["joined"] for row in range(3)] == ["order", "order", "none"]
    assert [view.card(row)["verdict"] for row in range(3)] == ["pass", "pass", "unjudged"]


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


async def test_a_late_record_without_the_clients_id_joins_the_row_of_the_transcript(
    recorded: Recorded, tmp_path: Path
) -> None:
    """By tool and input; it is the first record of all, so the transcript was read without a key for digests."""
    path = put(tmp_path, "gemini-cli")
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    await judged(recorded, "gemini-cli", [before_tool(path)], "BeforeTool")
    changes = view.refresh()
    assert (list(changes.calls), changes.total) == ([0], 3)
    card = view.card(0)
    assert (card["joined"], card["verdict"]) == ("order", "pass")
    assert [source["kind"] for source in card["sources"]] == ["record", "transcript"]
    assert "hello from the shell" in card["saw"]["text"]
    assert view.row_of(card["id"]) == 0
    assert view.search("hello shell") == [0]
    # Another call of the same input has no row to join, and neither has a result that has lost its decision.
    tool = StandInTool("bash", "")
    runner = recorded.runner(session_id=facts(path)["sessionId"], records={"client": "gemini-cli"})
    await call_tool(runner, "bash", {"command": "cat missing-file; exit 3"}, tool, tool_call_id="agent-hooks-1")
    runner.end_records()
    file = max(
        recorded.directory.glob("*.jsonl"), key=lambda each: (each.name != "index.jsonl", each.stat().st_mtime_ns)
    )
    lines = [line for line in file.read_text().splitlines(keepends=True) if '"kind":"result"' in line]
    file.write_text("".join(lines))
    assert view.refresh().total == 4
    await judged(recorded, "gemini-cli", [before_tool(path)], "BeforeTool")
    assert view.refresh().total == 5


async def test_of_two_equal_calls_a_late_record_joins_the_one_that_is_nearest_in_time(
    recorded: Recorded, tmp_path: Path
) -> None:
    """The first of them had no hooks yet; the digests are those of a key that was there."""
    await judged(recorded, "codex", [], "PreToolUse")
    await call_tool(recorded.runner(session_id="other"), "bash", {"command": "date"})
    path = put(tmp_path, "gemini-cli")
    first, *rest = path.read_text().replace("cat missing-file; exit 3", "echo hello from the shell").splitlines(True)
    early = [line.replace("2026-11-25", "2026-11-2" + str(min(at, 4))) for at, line in enumerate(rest)]
    path.write_text(first + "".join(early))
    view = View(recorded.home, user=tmp_path)
    total = view.refresh().total
    rows = view.search("hello from the shell")
    assert len(rows) == 2
    await judged(recorded, "gemini-cli", [before_tool(path)], "BeforeTool")
    assert view.refresh().total == total
    times = view.columns().time
    joined = [row for row in rows if view.columns().flags[row] & BY_ORDER]
    # The record is of now.
    assert joined == [max(rows, key=lambda row: (times[row], row))]


async def test_a_call_that_waits_for_the_person_is_one_row_without_an_id_too(
    recorded: Recorded, tmp_path: Path
) -> None:
    """The question is recorded before the transcript is read, and the decision after it."""
    path = put(tmp_path, "gemini-cli")
    question = hook_on("tool_call", lambda event, ctx: Ask("Sure?"))
    await judged(recorded, "gemini-cli", [before_tool(path)], "BeforeTool", question, attended=True)
    (file,) = recorded.directory.glob(f"{facts(path)['sessionId'][:8]}*.jsonl")
    asked, decided, *_ = file.read_text().splitlines(keepends=True)
    assert (json.loads(asked)["kind"], json.loads(decided)["kind"]) == ("question", "decision")
    file.write_text(asked)
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    assert view.card(0)["verdict"] == "unjudged"
    file.write_text(asked + decided)
    assert view.refresh().total == 3
    assert (view.card(0)["verdict"], view.card(0)["joined"]) == ("ask", "order")


async def test_a_call_whose_input_hooks_changed_is_joined_by_the_input_of_the_model(
    recorded: Recorded, tmp_path: Path
) -> None:
    """The transcript has the input as the model asked for it."""
    path = put(tmp_path, "gemini-cli")
    quiet = hook_on("before_tool_call", lambda event, ctx: Rewrite({"command": "true"}))
    await judged(recorded, "gemini-cli", [before_tool(path)], "BeforeTool", quiet)
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    assert (view.card(0)["joined"], view.card(0)["rungs"][0]["answer"]) == ("order", "rewrite")


async def test_a_late_record_of_our_own_agent_joins_by_the_id_of_the_call(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records have ids of their own; a result that comes without its decision finds the row as well."""
    path = put(tmp_path, "pi")
    session = facts(path)["id"]
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    calls = [view.card(row) for row in range(3)]
    runner = recorded.runner(session_id=session, records={"client": "pi"})
    ids = [view._index.ask("SELECT call FROM calls WHERE row = ?", (row,))[0][0] for row in range(3)]
    for row in (0, 1):
        await call_tool(runner, "bash", {"command": calls[row]["input"]["command"]}, tool_call_id=ids[row])
    runner.end_records()
    (file,) = recorded.directory.glob(f"{session[:8]}*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    # The decision of the second call was lost.
    file.write_text("".join(line for line in lines if not (ids[1] in line and '"kind":"decision"' in line)))
    assert view.refresh().total == 3
    cards = [view.card(row) for row in range(3)]
    assert [card["joined"] for card in cards] == ["id", "id", "none"]
    assert [card["verdict"] for card in cards] == ["pass", "unjudged", "unjudged"]
    assert cards[1]["result"]["status"] == "ok"
    assert [lane["calls"] for lane in view.summary()["lanes"]] == [3]


async def test_a_record_of_a_sub_agent_moves_the_row_into_its_lane(recorded: Recorded, tmp_path: Path) -> None:
    """The transcript does not say which agent of the session has made the call."""
    path = put(tmp_path, "pi")
    session = facts(path)["id"]
    view = View(recorded.home, user=tmp_path)
    view.refresh()
    ((call,),) = view._index.ask("SELECT call FROM calls WHERE row = 1")
    runner = recorded.runner(session_id=session, records={"client": "pi"})
    place = replace(runner.engine.surroundings, agent_id="helper")
    await preflight(StandInTool("bash", ""), call, {"command": "ls"}, runner=runner, surroundings=place)
    runner.end_records()
    assert view.refresh().total == 3
    assert {lane["agent"]: lane["calls"] for lane in view.summary()["lanes"]} == {"main": 2, "helper": 1}
    assert (view.card(1)["previous"], view.card(1)["next"]) == (None, None)
    assert (view.card(0)["next"], view.card(2)["previous"]) == (2, 0)
    again = View(recorded.home, user=tmp_path)
    again.refresh()
    assert again.card(0)["next"] == 2


async def test_a_call_whose_record_is_removed_is_that_of_its_transcript_again(
    recorded: Recorded, tmp_path: Path
) -> None:
    """As in an index that is made anew."""
    path = put(tmp_path, "gemini-cli")
    await judged(recorded, "gemini-cli", [before_tool(path)], "BeforeTool")
    view = View(recorded.home, user=tmp_path)
    view.refresh()
    assert view.card(0)["verdict"] == "pass"
    for each in recorded.directory.glob("*.jsonl"):
        each.unlink()
    view.refresh()
    again = View(tmp_path / "other", user=tmp_path)
    again.refresh()
    one, other = (
        {index.command([row])[0]: index.card(row)["verdict"] for row in rows_of(index)} for index in (view, again)
    )
    assert one == other
    assert set(one.values()) == {"unjudged"}
    view.close()
    again.close()


def rows_of(view: View) -> list[int]:
    """Return the rows that are there."""
    return [row for row, verdict in enumerate(view.columns().verdict) if verdict != GONE]


async def test_a_call_of_a_transcript_that_is_gone_is_joined_no_more(recorded: Recorded, tmp_path: Path) -> None:
    """Its line cannot be read again, so its input is not known."""
    path = put(tmp_path, "gemini-cli")
    view = View(recorded.home, user=tmp_path)
    assert view.refresh().total == 3
    payload = before_tool(path)
    path.write_text("x" * len(path.read_text()))
    await judged(recorded, "gemini-cli", [payload], "BeforeTool")
    assert view.refresh().total == 4


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


async def test_the_card_shows_where_a_secret_was_hidden_in_the_result(recorded: Recorded, tmp_path: Path) -> None:
    """The lines before and after, neither of which has the secret."""
    path = put(tmp_path, "pi")
    path.write_text(path.read_text().replace('"hello from the shell', f'"first\\nTOKEN={TOKEN}\\nlast'))
    view = View(recorded.home, user=tmp_path)
    view.refresh()
    ((call,),) = view._index.ask("SELECT call FROM calls WHERE row = 0")
    runner = recorded.runner(session_id=facts(path)["id"], records={"client": "pi"}, redactor=Redactor())
    tool = StandInTool("bash", f"first\nTOKEN={TOKEN}\nlast")
    await call_tool(runner, "bash", {"command": "env"}, tool, tool_call_id=call)
    runner.end_records()
    assert view.refresh().total == 3
    card = view.card(0)
    (hidden,) = [rung for rung in card["rungs"] if rung["by"] == "redaction"]
    assert hidden["redacted"] == {"github-token": 1}
    assert hidden["diff"] == [
        {"op": "-", "text": "TOKEN=•••"},
        {"op": "+", "text": "TOKEN=[redacted github-token]"},
    ]
    assert TOKEN not in json.dumps(card)


@pytest.mark.parametrize("client", ["pi", "opencode"])
async def test_a_card_whose_transcript_is_gone_has_the_rest(client: str, recorded: Recorded, tmp_path: Path) -> None:
    """It was removed after the last refresh; the result as the model saw it is not known any more."""
    path = put(tmp_path, client)
    view = View(recorded.home, user=tmp_path)
    view.refresh()
    before = view.card(0)
    path.unlink()
    card = view.card(0)
    assert (card["command"], card["saw"], card["input"]) == (before["command"], None, None)
    assert card["sources"] == before["sources"]


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


async def test_lines_that_cannot_be_read_are_counted_and_the_others_count(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is no JSON, a blank one, and one that is longer than the limit, also before the file grows."""
    path = put(tmp_path, "pi")
    whole = len(rows_of(seen(recorded.home / "whole", tmp_path)))
    monkeypatch.setattr(sessions, "LONGEST", 40_000)
    lines = path.read_bytes().splitlines(keepends=True)
    odd = [b"{no json\n", b"\n", b'"' + b"x" * 100_000 + b'"\n']
    path.write_bytes(b"".join([lines[0], *odd, *lines[1:-1]]))
    view = View(recorded.home, user=tmp_path)
    view.refresh()
    path.write_bytes(b"".join([lines[0], *odd, *lines[1:]]))
    view.refresh()
    assert len(rows_of(view)) == whole
    (entry,) = view.summary()["left_out"]
    assert (entry["what"], entry["why"], entry["place"]) == ("2 lines", "cannot be read", str(path))


@pytest.mark.parametrize("time", ["2999-01-01T00:00:00.000Z", "yesterday"])
async def test_a_call_of_an_impossible_time_stands_where_its_file_was_written(
    time: str, recorded: Recorded, tmp_path: Path
) -> None:
    """A time in the future is told."""
    path = put(tmp_path, "pi")
    facts = [json.loads(line) for line in path.read_text().splitlines()]
    for fact in facts:
        for each in (fact, fact.get("message") or {}):
            if "timestamp" in each:
                each["timestamp"] = time
    path.write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    written = 1_790_000_000.0
    os.utime(path, (written, written))
    view = seen(recorded.home, tmp_path)
    assert {*view.columns().time} == {written * 1000}
    assert bool(view.summary()["left_out"]) == time.startswith("2999")


def seen(home: Path, user: Path) -> View:
    """Return a view that has read everything."""
    view = View(home, user=user)
    view.refresh()
    return view
