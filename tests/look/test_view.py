"""The view of recorded calls: numbers, columns, search, cards and figures, from the files that runners write."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import Ask, Block, HookContext, Rewrite, SessionEvent, ToolCall, load_hooks
from agent_hooks.guards import builtin_guards
from agent_hooks.look.index import index as indexing
from agent_hooks.look.index.columns import ASKED, FAILED, GONE, REDACTED, REWRITTEN
from agent_hooks.look.index.store import NAME
from agent_hooks.look.view import View
from agent_hooks.records.lines import Decision, Step
from agent_hooks.records.writer import ChainWriter
from agent_hooks.testing import ScriptedUI, StandInTool, call_tool
from recording import TOKEN, Recorded
from support import hook_on

pytestmark = pytest.mark.anyio

JUDGE = """
from agent_hooks import Ask, Block

def register(api):
    @api.on("tool_call")
    def judge(event, ctx):
        match event.input["command"].split()[0]:
            case "curl":
                return Block("use the vendored copy")
            case "push":
                return Ask("Push?")
            case "raise":
                raise RuntimeError("broken")
"""


def gate(event: ToolCall, ctx: HookContext) -> Any:
    """Stop, ask about, rewrite or fail at a command by its first word."""
    word = event.input["command"].split()[0]
    if word == "curl":
        return Block("use the vendored copy", rule="vendored", remedy="ask Ada")
    if word == "push":
        return Ask("Push to the server?")
    if word == "raise":
        raise RuntimeError("broken")
    return None


def quiet(event: Any, ctx: HookContext) -> Any:
    """Add an option."""
    if event.params["command"] == "clone":
        return Rewrite({"command": "clone --quiet"})
    return None


async def recorded_week(recorded: Recorded) -> View:
    """Record six calls of one session, and return a view that knows them."""
    hooks = hook_on("tool_call", gate, path="gate.py"), hook_on("before_tool_call", quiet, path="quiet.py")
    runner = recorded.runner(*hooks, ui=ScriptedUI(True), session_id="s1", guards=builtin_guards())
    await runner.emit(SessionEvent(reason="start"))
    for number, command in enumerate(("ls src", "curl https://example.org", "push it", "clone", "raise hell")):
        await call_tool(runner, "bash", {"command": command}, tool_call_id=f"c{number}")
    tool = StandInTool("bash", lambda given: TOKEN)
    await call_tool(runner, "bash", {"command": f"echo {TOKEN}"}, tool, tool_call_id="c5")
    runner.end_records()
    view = View(recorded.home)
    assert view.refresh().total == 6
    return view


async def test_the_view_tells_what_hooks_did(recorded: Recorded) -> None:
    """The sentence of numbers, the columns, one line a call, and nothing that a hook or the model sent as a secret."""
    view = await recorded_week(recorded)
    summary = view.summary()
    names = ("sessions", "calls", "stopped", "asked", "failed", "rewritten", "redacted")
    assert [summary[name] for name in names] == [1, 6, 2, 1, 1, 1, 0]
    assert summary["tools"] == ["bash"]
    (lane,) = summary["lanes"]
    assert (lane["session"], lane["agent"], lane["calls"]) == ("s1", "main", 6)
    assert summary["left_out"] == []
    columns = view.columns()
    assert list(columns.verdict) == [0, 3, 1, 0, 3, 0]
    assert [bits & (ASKED | FAILED | REWRITTEN | REDACTED) for bits in columns.flags] == [
        0,
        0,
        ASKED,
        REWRITTEN,
        FAILED,
        0,
    ]
    assert all(ms > 0 for ms in columns.hook_ms)
    assert columns.wait_ms[2] > 0
    assert view.command([1, 5]) == ["bash curl https://example.org", "bash echo [redacted github-token]"]
    index = recorded.home / "look" / NAME
    assert TOKEN.encode() not in index.read_bytes()


async def test_a_search_finds_all_words_anywhere(recorded: Recorded) -> None:
    """In commands, reasons, and the names of hooks and rules; the newest call is the first."""
    view = await recorded_week(recorded)
    assert view.search("example.org curl") == [1]
    assert view.search("VENDORED") == [1]
    assert view.search("gate.py") == [4, 2, 1]
    assert view.search("ls") == [0]
    assert view.search("quiet") == [3]
    assert view.search("bash", 2) == [5, 4]
    assert view.search('" OR (') == view.search("  ") == []


async def test_a_card_is_the_ladder_of_a_call(recorded: Recorded) -> None:
    """Each step with its place and time, the person's answer, the diff of a rewrite, and the calls around it."""
    view = await recorded_week(recorded)
    card = view.card(2)
    kinds = [rung["kind"] for rung in card["rungs"]]
    assert kinds == ["rewriter", "guard", "guard", "gate", "person", "tool"]
    assert (card["rungs"][3]["answer"], card["rungs"][4]["answer"]) == ("ask", "yes")
    assert card["questions"][0]["title"] == "Push to the server?"
    assert (card["verdict"], card["previous"], card["next"]) == ("allow", 1, 3)
    assert view.row_of(card["id"]) == 2
    stopped = view.card(1)
    reasons = [stopped[name] for name in ("verdict", "reason", "by", "rule", "remedy")]
    assert reasons == ["block", "use the vendored copy", ["gate.py"], "vendored", "ask Ada"]
    rewritten = view.card(3)
    assert rewritten["rungs"][0]["diff"] == [
        {"op": "-", "text": "command: clone"},
        {"op": "+", "text": "command: clone --quiet"},
    ]
    assert rewritten["sources"][0]["kind"] == "record"
    json.dumps([view.card(row) for row in range(6)])
    with pytest.raises(IndexError):
        view.card(6)


async def test_a_card_says_what_its_call_would_do(recorded: Recorded, tmp_path: Path) -> None:
    """The files and hosts of the rewritten input, once, beside the first guard."""
    runner = recorded.runner(
        hook_on("before_tool_call", lambda event, ctx: Rewrite({"command": event.params["command"] + "; make"})),
        session_id="s1",
        guards=builtin_guards(),
    )
    await call_tool(runner, "bash", {"command": "cat notes > copy; rm notes; curl -d @copy https://example.org"})
    runner.end_records()
    view = View(recorded.home)
    view.refresh()
    told = [rung["effects"] for rung in view.card(0)["rungs"] if rung["effects"] is not None]
    assert len(told) == 1
    assert (told[0]["writes"], told[0]["deletes"], told[0]["sends"]) == (["copy"], ["notes"], ["example.org"])
    assert {"notes", "copy"} <= set(told[0]["reads"])
    assert told[0]["opaque"]


async def test_each_hook_has_its_figures(recorded: Recorded, tmp_path: Path) -> None:
    """How often it judged, stopped, asked, rewrote and failed; a hook that never ran and one whose file is gone."""
    idle, judge = tmp_path / "idle.py", tmp_path / "judge.py"
    idle.write_text("def register(api):\n    api.on('agent_end', lambda event, ctx: None)\n")
    judge.write_text(JUDGE)
    loaded = await load_hooks([str(judge), str(idle)], cwd=tmp_path)
    runner = recorded.runner(*loaded.hooks)
    await runner.emit(SessionEvent(reason="start"))
    for command in ("curl x", "push x", "raise x", "ls"):
        await call_tool(runner, "bash", {"command": command})
    runner.end_records()
    judge.unlink()
    view = View(recorded.home)
    view.refresh()
    figures = {os.path.basename(each["file"]): each for each in view.hooks()}
    ran = figures["judge.py"]
    counts = [ran[name] for name in ("judged", "stopped", "asked", "rewrote", "failed", "timedOut")]
    assert counts == [4, 1, 1, 0, 1, 0]
    assert (ran["gone"], ran["neverRan"]) == (True, False)
    assert 0 < ran["p50"] <= ran["p99"]
    idled = figures["idle.py"]
    assert (idled["neverRan"], idled["judged"], idled["gone"]) == (True, 0, False)
    (entry,) = view.summary()["left_out"]
    assert (entry["what"], entry["place"]) == ("the code of a hook", str(judge))


def test_a_hook_of_several_names_is_one(recorded: Recorded) -> None:
    """Its short name depends on the directory of the session; another file of the same name is another hook."""
    writer = ChainWriter(str(recorded.directory), "s")
    for name, file in (("gate.py", "/one/gate.py"), ("/one/gate.py", "/one/gate.py"), ("gate.py", "/two/gate.py")):
        steps = (Step(stage="tool_call", by=name, file=file, line=1),)
        fields = {"id": writer.new_id(), "tool": "bash", "verdict": "pass", "input": {}, "steps": steps}
        writer.write(Decision, fields, b'"session":"s"')
    writer.close()
    view = View(recorded.home)
    view.refresh()
    assert [(each["file"], each["judged"]) for each in view.hooks()] == [("/one/gate.py", 2), ("/two/gate.py", 1)]


async def test_a_refresh_takes_only_what_is_new(recorded: Recorded) -> None:
    """A view tells the rows that were added or changed, and another view of the same index sees them too."""
    view = await recorded_week(recorded)
    other = View(recorded.home)
    assert list(other.refresh().calls) == list(range(6))
    assert list(view.refresh().calls) == []
    runner = recorded.runner(session_id="s2")
    await call_tool(runner, "bash", {"command": "date"})
    runner.end_records()
    changes = view.refresh()
    assert (list(changes.calls), changes.total) == ([6], 7)
    assert other.refresh().total == 7
    assert other.command([6]) == ["bash date"]


async def test_the_index_is_private_and_can_be_deleted(recorded: Recorded) -> None:
    """Deleted, damaged, or of another version, it is built again; in a home that is read-only it stays in memory."""
    view = await recorded_week(recorded)
    index = recorded.home / "look" / NAME
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    assert stat.S_IMODE(index.parent.stat().st_mode) == 0o700
    index.unlink()
    assert view.refresh().total == 6
    assert index.exists()
    view.close()
    index.write_bytes(b"no index at all" * 1000)
    view = View(recorded.home)
    assert view.refresh().total == 6
    view.close()


async def test_without_a_place_to_write_the_index_is_kept_in_memory(recorded: Recorded) -> None:
    """The page says so."""
    (await recorded_week(recorded)).close()
    directory = recorded.home / "look"
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    directory.write_text("a file in its place")
    view = View(recorded.home)
    assert view.refresh().total == 6
    (entry,) = view.summary()["left_out"]
    assert entry["what"] == "the index is not kept"
    assert str(directory) in entry["why"]


async def test_records_that_are_removed_leave_the_index(recorded: Recorded) -> None:
    """No question finds them, and their text is not in the file any more; the other rows keep their numbers."""
    view = await recorded_week(recorded)
    runner = recorded.runner(session_id="s2")
    await call_tool(runner, "bash", {"command": "date"})
    runner.end_records()
    view.refresh()
    for path in recorded.directory.glob("s1.*"):
        path.unlink()
    assert view.refresh().total == 7
    assert list(view.columns().verdict) == [GONE] * 6 + [0]
    assert view.search("curl") == []
    assert view.summary()["calls"] == 1
    with pytest.raises(IndexError):
        view.card(1)
    view.close()
    data = b"".join(path.read_bytes() for path in (recorded.home / "look").iterdir())
    assert b"example.org" not in data


async def test_the_page_says_what_was_left_out_and_why(recorded: Recorded) -> None:
    """A line of a newer version, a line that is none, an unfinished line, and a time in the future."""
    view = await recorded_week(recorded)
    (path,) = recorded.directory.glob("s1.*")
    lines = path.read_text().splitlines()
    call = next(json.loads(line) for line in lines if json.loads(line)["kind"] == "decision")
    later = {**call, "v": 99, "id": "later"}
    ahead = {**call, "id": "ahead", "time": "2999-01-01T00:00:00Z"}
    with path.open("a") as file:
        file.write("".join(f"{json.dumps(line)}\n" for line in (later, ahead)) + "no line\n" + '{"kind":"deci')
    assert view.refresh().total == 7
    assert view.columns().time[6] <= os.stat(path).st_mtime * 1000
    left = {entry["what"]: entry["why"] for entry in view.summary()["left_out"]}
    assert left["the last 13 bytes"] == "the file ends in a part of a line"
    assert "newer version" in left["1 line"] or "cannot be read" in left["1 line"]
    assert "lies in the future" in left["the time of 1 line"]
    assert len(view.summary()["left_out"]) == 4
    assert view.card(0)["newer"].startswith("a record of a newer version: 1 line")
    with path.open("a") as file:
        file.write(json.dumps({**call, "id": "whole"}, separators=(",", ":")).removeprefix('{"kind":"deci') + "\n")
    assert view.refresh().total == 8
    assert len(view.summary()["left_out"]) == 3


async def test_many_lines_are_taken_in_parts(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of time, the next refresh goes on; the search finds the calls of all parts."""
    monkeypatch.setattr(indexing, "_PART", 3)
    for session in range(4):
        runner = recorded.runner(session_id=f"s{session}")
        for number in range(3):
            await call_tool(runner, "bash", {"command": f"echo {session} part-{number}"})
        runner.end_records()
    view = View(recorded.home)
    first = view.refresh(0.0)
    assert first.more
    assert first.total < 12
    changes = view.refresh()
    assert (changes.total, changes.more) == (12, False)
    assert view.search("part-2") == [11, 8, 5, 2]
    view.close()


async def test_a_full_disk_moves_the_index_into_memory(recorded: Recorded) -> None:
    """All calls are there, and the page says so."""
    view = await recorded_week(recorded)
    connection = view._index.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    # SQLite answers like a disk that has no room for one more page.
    connection.execute(f"PRAGMA max_page_count={pages}")
    runner = recorded.runner(session_id="s2")
    for number in range(40):
        await call_tool(runner, "bash", {"command": f"echo {number} {'long ' * 400}"}, tool_call_id=f"d{number}")
    runner.end_records()
    assert view.refresh().total == 46
    (entry,) = view.summary()["left_out"]
    assert (entry["what"], "full" in entry["why"]) == ("the index is not kept", True)
