"""A model may use an id of a call again: each call has its row and its card, and a streamed copy has none of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import Block, HookContext, ToolCall
from agent_hooks.look.index.columns import BLOCK, FROM_TRANSCRIPT, OVERRULED
from agent_hooks.look.view import View
from agent_hooks.records.joining import Reader
from agent_hooks.records.lines import Decision, Line, Result
from look.test_joined_transcripts import judged, seen
from look.test_turns_in_the_index import write
from recording import Recorded, asking
from support import hook_on
from transcripts.test_transcripts import called, came, written

pytestmark = pytest.mark.anyio
CALL = "Bash:0"


def said(command: str, message: str, time: str = "2026-11-25T23:16:27Z", session: str = "s") -> dict[str, Any]:
    """Return a line of Claude Code with a call."""
    line = called("Bash", {"command": command}, CALL, timestamp=time, sessionId=session)
    line["message"]["id"] = message
    return line


def done(text: str) -> dict[str, Any]:
    """Return a line of Claude Code with the result of a call."""
    return came(text, CALL, error=False)


def transcript(home: Path, *lines: dict[str, Any], name: str = "s") -> Path:
    """Write a transcript where Claude Code keeps it."""
    path = home / ".claude" / "projects" / "app" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    return written(path, lines)


async def no_removal(event: ToolCall, ctx: HookContext) -> Block | None:
    """Block `rm`."""
    return Block("no") if event.input["command"].startswith("rm") else None


async def judge(recorded: Recorded, *commands: str, hook: Any = no_removal) -> None:
    """Let Claude Code's bridge judge calls with one id, in a process of its own."""
    common = {"session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": CALL}
    payloads = [{**common, "tool_input": {"command": command}} for command in commands]
    await judged(recorded, "claude-code", payloads, "PreToolUse", hook_on("tool_call", hook), attended=True)


def shown(view: View) -> list[tuple[Any, ...]]:
    """Return command, verdict and result of each call."""
    cards = [view.card(row) for row in range(len(view.columns()))]
    return [(card["command"], card["verdict"], (card["saw"] or {}).get("text")) for card in cards]


TURNS = (said("ls", "m1"), done("a b"), said("rm -rf x", "m2"), done("refused"))


@pytest.mark.parametrize("first", ["records", "transcript"])
async def test_two_calls_with_one_id_have_two_cards(first: str, recorded: Recorded, tmp_path: Path) -> None:
    """Each has its own record and result, whichever file was there first.  They have the names that `records` shows."""
    if first == "records":
        await judge(recorded, "ls", "rm -rf x")
    transcript(tmp_path, *TURNS)
    view = seen(recorded.home, tmp_path)
    if first == "transcript":
        await judge(recorded, "ls", "rm -rf x")
        view.refresh()
    assert shown(view) == [("bash ls", "pass", "a b"), ("bash rm -rf x", "block", "refused")]
    names = [view.card(row)["id"] for row in range(2)]
    assert names == [record.id for record in Reader(str(recorded.directory)).records()]
    assert [view.row_of(name) for name in [*names, "x", f"{names[0]}.3", f"{names[0]}.x"]] == [0, 1, None, None, None]
    assert view.search("rm -rf") == [1]
    again = seen(recorded.home, tmp_path)
    assert shown(again) == shown(view)
    (gate,) = [each for each in again.hooks() if each["hook"] == "hook.py"]
    assert (gate["judged"], gate["stopped"]) == (2, 1)


async def test_calls_that_only_the_transcript_has_are_kept_apart(recorded: Recorded, tmp_path: Path) -> None:
    """In turns and in sessions.  A line that the client has written again is the same call."""
    transcript(tmp_path, *TURNS, *TURNS[2:])
    transcript(tmp_path, said("pwd", "m1", session="t"), name="t")
    view = seen(recorded.home, tmp_path)
    assert shown(view) == [
        ("bash ls", "unjudged", "a b"),
        ("bash rm -rf x", "unjudged", "refused"),
        ("bash pwd", "unjudged", None),
    ]


@pytest.mark.parametrize("has_record", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_streamed_copy_is_the_same_call(
    at_once: bool, has_record: bool, recorded: Recorded, tmp_path: Path
) -> None:
    """With its fullest text, and with its result, also where the page has read the first lines before."""
    if has_record:
        await judge(recorded, "rm -rf x")
    lines = [said("", "m1"), said("rm -rf x", "m1"), said("rm", "m1"), done("refused")]
    view = View(recorded.home, user=tmp_path)
    for number in (4,) if at_once else range(1, 5):
        path = transcript(tmp_path, *lines[:number])
        os.utime(path, (1_795_700_000 + number,) * 2)
        view.refresh()
    ((command, verdict, saw),) = shown(view)
    assert (command, verdict, saw) == ("bash rm -rf x", "block" if has_record else "unjudged", "refused")
    assert view.card(0)["input"] == {"command": "rm -rf x"}
    assert bool(view.columns().flags[0] & FROM_TRANSCRIPT) is not has_record
    assert view.search("rm -rf") == [0]


async def test_a_question_about_a_call_is_not_that_of_the_call_before(recorded: Recorded, tmp_path: Path) -> None:
    """The question comes before the decision about its call."""
    await judge(recorded, "ls", "pwd", hook=asking)
    view = seen(recorded.home, tmp_path)
    cards = [view.card(row) for row in range(2)]
    assert [card["command"] for card in cards] == ["bash ls", "bash pwd"]
    assert [len(card["questions"]) for card in cards] == [1, 1]
    assert json.dumps(cards[0]["questions"]) != json.dumps(cards[1]["questions"])


@pytest.mark.parametrize("redacted", [{}, {"github-token": 1}])
def test_a_blocked_call_that_ran_all_the_same_is_overruled(recorded: Recorded, redacted: dict[str, int]) -> None:
    """The block has its own result.  Another agent may report the block as a failure too."""
    call: dict[str, Any] = {"tool": "bash"}
    ran = {"status": "ok", "redacted": redacted} if redacted else {"status": "ok"}
    lines: list[tuple[type[Line], dict[str, Any]]] = []
    for each in "ab":
        lines += [
            (Decision, {**call, "id": each, "verdict": "block", "input": {"command": "rm x"}}),
            (Result, {**call, "id": each, "status": "blocked"}),
        ]
    write(recorded, "s", *lines, (Result, {**call, "id": "b", "status": "error"}), (Result, {**call, "id": "a", **ran}))
    view = View(recorded.home)
    view.refresh()
    assert list(view.columns().verdict) == [OVERRULED, BLOCK]
    summary = view.summary()
    assert (summary["stopped"], summary["overruled"], view.overruled()) == (1, 1, 1)
    assert view.card(0)["verdict"] == "overruled"
    view.close()
