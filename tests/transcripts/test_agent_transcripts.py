"""The transcripts of the other agents are read as they were written: calls in our words, and the ends of the calls."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_hooks.transcripts import BadLine, Transcript, find_standard
from agent_hooks.transcripts.base import RecordedCall, RecordedEnd, TranscriptError, is_refusal
from agent_sessions import DATABASE, PLACES, put, put_database, put_denied
from running import Command

CLIENTS = (*PLACES, "opencode")
COMMANDS = ["echo hello from the shell", "cat missing-file; exit 3"]
HOME = "/home/dev/app"


def read(path: Path) -> list[RecordedCall | RecordedEnd | BadLine]:
    """Return all that is found in a file."""
    with Transcript(str(path)) as transcript:
        return [found for _, found in transcript]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_calls_of_each_agent_are_read_in_our_words(client: str, tmp_path: Path) -> None:
    """With session, directory and time, and the payload that the agent's hooks would get."""
    path = put(tmp_path, client)
    with Transcript(str(path)) as transcript:
        assert transcript.reader.name == client
    calls = [found for found in read(path) if isinstance(found, RecordedCall)]
    assert [call.input["command"] for call in calls if call.tool_name == "bash"] == COMMANDS
    assert {call.cwd for call in calls} == {HOME}
    assert all(call.session_id and call.time and call.agent_id == "main" for call in calls)
    assert all(call.refused is None and call.native for call in calls)
    assert len({call.key for call in calls}) == len(calls)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_ends_of_each_agents_calls_are_read(client: str, tmp_path: Path) -> None:
    """A command that ends with an exit code has failed; what the model saw of it can be read later."""
    path = put(tmp_path, client)
    found = read(path)
    assert not [each for each in found if isinstance(each, BadLine)]
    ids = {each.input.get("command"): each.tool_call_id for each in found if isinstance(each, RecordedCall)}
    ends = {each.tool_call_id: each.then for each in found if isinstance(each, RecordedEnd)}
    assert [ends[ids[command]] for command in COMMANDS] == ["ran", "failed"]
    if client != "opencode":
        with Transcript(str(path)) as transcript:
            reader = transcript.reader
        shown = [reader.shown(line, ids[COMMANDS[0]]) for line in path.read_bytes().splitlines()]
        assert any(text and "hello from the shell" in text for text in shown)


@pytest.mark.parametrize(
    ("client", "by", "then"),
    [
        *((client, "hook", "denied") for client in CLIENTS),
        ("codex", "person", "aborted"),
        *((client, "person", "denied") for client in CLIENTS if client != "codex"),
        ("gemini-cli", "rule", "denied"),
        ("opencode", "rule", "denied"),
    ],
)
def test_a_call_that_was_denied_did_not_run(client: str, by: str, then: str, tmp_path: Path) -> None:
    """By a hook, by the person, or by a rule; Codex has one text for a person's no and for a command that was stopped."""
    found = read(put_denied(tmp_path, client, by))
    assert not [each for each in found if isinstance(each, BadLine)]
    ids = {each.tool_call_id: each.input["command"] for each in found if isinstance(each, RecordedCall)}
    ends = {ids[each.tool_call_id]: each.then for each in found if isinstance(each, RecordedEnd)}
    assert ends.pop("python3 forbidden.py" if (client, by) == ("codex", "person") else "echo forbidden") == then
    ran = {"echo allowed": "ran", "cat missing-file; exit 3": "failed"}
    assert ends == {command: ran[command] for command in ends}


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        ("no downloads (.agent/hooks/gate.py)", True),
        ("rm -rf of a whole tree (builtin:command-safety-guard (rm-rf))", True),
        ("Push?: no person is here to answer (asked by gate.py, /home/dev/other.py (a.rule))", True),
        ("not run, because hook gate.py failed: ValueError: x", True),
        ("agent-hooks could not judge this: the server is gone", True),
        ("the person did not allow it: Push?\nbash git push", True),
        ("cat: missing-file: No such file or directory\n\n\nCommand exited with code 3", False),
        ("Traceback (most recent call last)", False),
        ("can't open file (gate.py) here", False),
        ("", False),
    ],
)
def test_a_refusal_of_ours_is_known_by_its_words(text: str, is_ours: bool) -> None:
    """OpenCode and pi record it like any other failure."""
    assert is_refusal(text) is is_ours


def test_codex_patches_and_sub_agents_are_read(tmp_path: Path) -> None:
    """A patch is a command of `apply_patch`; the session of a sub-agent is that of the agent that started it."""
    path = put(tmp_path, "codex")
    patch = next(each for each in read(path) if isinstance(each, RecordedCall) and "patch" in each.tool_name)
    assert patch.input["command"].startswith("*** Begin Patch")
    first, *rest = path.read_text().splitlines()
    meta = json.loads(first)
    meta["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    path.write_text("\n".join([json.dumps(meta), *rest]))
    call = next(each for each in read(path) if isinstance(each, RecordedCall))
    assert (call.session_id, call.agent_id) == ("parent", meta["payload"]["id"])


def test_an_invalid_call_of_qwen_code_reached_no_hook(tmp_path: Path) -> None:
    """It wanted a path that is not absolute."""
    ends = [each.then for each in read(put(tmp_path, "qwen-code")) if isinstance(each, RecordedEnd)]
    assert ends == ["ran", "failed", "invalid"]


def test_a_sub_agent_of_opencode_has_its_parents_session(tmp_path: Path) -> None:
    """Its own session is the agent's id."""
    path = put(tmp_path, "opencode")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE session SET parent_id = 'ses_0'")
    call = next(each for each in read(path) if isinstance(each, RecordedCall))
    assert (call.session_id, call.agent_id) == ("ses_0", "ses_1")


def test_another_database_is_no_transcript(tmp_path: Path) -> None:
    """The error names the file."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE other (id text)")
    with pytest.raises(TranscriptError, match=r"other\.db"):
        read(path)


def test_transcripts_are_found_where_each_agent_keeps_them(tmp_path: Path) -> None:
    """Below the home, or where the agent's variable says; sessions of ours are in their projects."""
    paths = {client: str(put(tmp_path, client)) for client in CLIENTS}
    moved = tmp_path / "moved/sessions/rollout-2.jsonl"
    moved.parent.mkdir(parents=True)
    moved.write_text("")
    ours = tmp_path / "project/.agent/sessions/1.jsonl"
    ours.parent.mkdir(parents=True)
    ours.write_text("")
    found = dict(find_standard(str(tmp_path), {}, [str(tmp_path / "project")]))
    assert found == {**paths, "session": str(ours)}
    assert dict(find_standard(str(tmp_path), {"CODEX_HOME": str(tmp_path / "moved")}))["codex"] == str(moved)


@pytest.mark.parametrize("client", PLACES)
def test_a_transcript_whose_first_line_is_damaged_is_read(client: str, tmp_path: Path) -> None:
    """The other lines show the format.  Codex has the session's id in the file's name."""
    path = put(tmp_path, client)
    with Transcript(str(path)) as transcript:
        session = next(found for _, found in transcript if isinstance(found, RecordedCall)).session_id
    first, *rest = path.read_text().splitlines(keepends=True)
    path = path.with_name(f"rollout-2026-11-25T23-16-17-{session}.jsonl")
    path.write_text(first[:50] + "\n" + "".join(rest))
    with Transcript(str(path)) as transcript:
        assert transcript.reader.name == client
        bad, *found = [each for _, each in transcript]
    calls = [each for each in found if isinstance(each, RecordedCall)]
    assert isinstance(bad, BadLine)
    assert [call.input["command"] for call in calls if call.tool_name == "bash"] == COMMANDS
    assert {call.session_id for call in calls} == {session if client in ("codex", "qwen-code") else None}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_session_of_an_old_gemini_cli_is_read(indent: int | None, tmp_path: Path) -> None:
    """It is one object over many lines."""
    given = {"id": "a", "name": "run_shell_command", "args": {"command": "ls"}, "status": "success"}
    message = {"id": "1", "type": "gemini", "timestamp": "2026-01-01T00:00:00Z", "content": "", "toolCalls": [given]}
    path = tmp_path / "session.json"
    path.write_text(json.dumps({"sessionId": "g", "projectHash": "h", "messages": [message] * 2}, indent=indent))
    call, end, *_ = read(path)
    assert isinstance(call, RecordedCall)
    assert (call.tool_name, call.input["command"], call.session_id) == ("bash", "ls", "g")
    assert end == RecordedEnd("a", "ran")
    path.write_text(json.dumps({"sessionId": "g", "projectHash": "h", "messages": 7}, indent=indent))
    assert read(path) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_replay_takes_the_transcripts_of_each_agent(client: str, command: Command, tmp_path: Path) -> None:
    """Today's guards judge their calls."""
    if client == "opencode":
        part = {"type": "tool", "tool": "bash", "callID": "c1", "state": {"status": "completed"}}
        part["state"]["input"] = {"command": "rm -rf ~/"}  # type: ignore[index]  # an object
        path = put_database(tmp_path / DATABASE, [part])
    else:
        path = put(tmp_path, client)
        path.write_text(path.read_text().replace("cat missing-file; exit 3", "rm -rf ~/"))
    done = command("replay", str(path))
    assert "1 blocked" in done.stdout
    assert "rm -rf ~/" in done.stdout
