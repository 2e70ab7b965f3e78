"""Recorded sessions are read as they were written, with any other lines in between."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import agent_hooks.transcripts
from agent_hooks.transcripts import BadLine, Transcript, find_transcripts
from agent_hooks.transcripts.base import RecordedCall, RecordedEnd, TranscriptError
from agent_hooks.transcripts.claude_code import ClaudeCodeReader
from agent_hooks.transcripts.session import SessionReader
from agent_hooks.values.content import AssistantMessage, MessageEntry, SessionHeader, ToolCallContent, ToolResultMessage
from agent_hooks.values.wire import to_json

# Three sessions of Claude Code 2.1.329: one, one with a sub-agent, its fork.
RECORDED = Path(__file__).parent
FIRST, SECOND, THIRD = (
    RECORDED / "-home-dev-app" / f"{digit * 8}-0000-4000-8000-{digit:0>12}.jsonl" for digit in "123"
)
SUB_AGENT = SECOND.with_suffix("") / "subagents" / "agent-a9a91937ccdfc1918.jsonl"


def read(path: Path) -> list[RecordedCall | RecordedEnd | BadLine]:
    """Return all calls, ends and bad lines of a file."""
    with Transcript(str(path)) as transcript:
        return [found for _, found in transcript]


def calls(path: Path) -> list[RecordedCall]:
    """Return the calls."""
    return [found for found in read(path) if isinstance(found, RecordedCall)]


def ends(path: Path) -> dict[str, str]:
    """Return the end of each call."""
    return {found.tool_call_id: found.then for found in read(path) if isinstance(found, RecordedEnd)}


def called(name: str, arguments: Any, id: str = "t1", **fields: Any) -> dict[str, Any]:
    """Return a line of Claude Code with a call."""
    block = {"type": "tool_use", "id": id, "name": name, "input": arguments}
    return {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [block]}, **fields}


def came(text: object, id: str = "t1", error: bool = True, **fields: Any) -> dict[str, Any]:
    """Return a line of Claude Code with a result."""
    block = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": error}
    return {"type": "user", "sessionId": "s", "message": {"role": "user", "content": [block]}, **fields}


def written(path: Path, lines: Iterable[object]) -> Path:
    """Write lines, of JSON or bytes."""
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )
    return path


# ---- Claude Code


def test_a_real_transcript_tells_its_calls_in_our_words() -> None:
    """Also parallel ones, in their order, with the directory that each was made in."""
    found = calls(FIRST)
    assert [call.tool_name for call in found] == [
        *("bash", "write", "read", "edit", "bash", "bash", "find", "bash", "bash", "bash", "read", "NoSuchTool", "bash")
    ]
    assert found[1].input == {"path": "/home/dev/app/notes.txt", "content": "one\ntwo\n"}
    assert [call.cwd for call in found[-5:-3]] == ["/home/dev/app", "/home/dev/app/sub"]
    assert {call.session_id for call in found} == {FIRST.stem}
    assert {call.agent_id for call in found} == {"main"}
    assert found[0].native
    assert found[0].native["tool_input"] == {"command": "ls -la"}
    assert found[0].native["hook_event_name"] == "PreToolUse"


def test_what_came_of_a_call_is_known() -> None:
    """A hook's denial, one of the rules, an error, a rewrite by another hook: all seen in the real client."""
    commands = {call.tool_call_id: call.input.get("command") for path in (FIRST, SECOND) for call in calls(path)}
    then = {commands[call]: then for path in (FIRST, SECOND) for call, then in ends(path).items()}
    assert then["rm -rf build"] == "denied"
    assert then["curl http://127.0.0.1:1/x"] == "denied"
    assert then["false"] == "failed"
    assert then["echo hello"] == "ran"
    assert Counter(ends(FIRST).values()) == {"ran": 8, "failed": 2, "denied": 1, "invalid": 2}


def test_a_sub_agents_calls_have_its_id() -> None:
    """Its file lies behind that of the session; the session's id is the same."""
    assert [call.agent_id for call in calls(SUB_AGENT)] == ["a9a91937ccdfc1918"] * 2
    assert calls(SUB_AGENT)[0].native["agent_id"] == "a9a91937ccdfc1918"  # type: ignore[index]  # there is one
    assert {call.session_id for call in calls(SUB_AGENT)} == {SECOND.stem}
    files = [Path(path) for path, _ in find_transcripts([str(RECORDED)])]
    assert files == [FIRST, SECOND, SUB_AGENT, THIRD]


def test_a_forks_copies_have_the_keys_of_the_calls() -> None:
    """Under another session id."""
    assert {call.key for call in calls(THIRD)} < {call.key for call in calls(SECOND)}
    assert {call.session_id for call in calls(THIRD)} == {THIRD.stem}


@pytest.mark.parametrize(
    ("line", "then"),
    [
        (came("ok", error=False), "ran"),
        (came("boom"), "failed"),
        (came([{"type": "text", "text": "boom"}]), "failed"),
        (came([{"type": "image", "source": {}}]), "failed"),
        (came("<tool_use_error>InputValidationError: Bash failed"), "invalid"),
        (came("<tool_use_error>Error: No such tool available: X</tool_use_error>"), "invalid"),
        (came("<tool_use_error>InputValidationError", permissionDecision={"decision": "accept"}), "failed"),
        (came(None), "failed"),
        (came({"odd": 1}), "failed"),
        (came("PreToolUse:Bash hook error: no"), "denied"),
        (came([{"type": "text", "text": "The user doesn't want to proceed with this tool use. …"}]), "denied"),
        (came("x", toolDenialKind="user-rejected"), "denied"),
        (came("x", toolDenialKind="interrupted"), "aborted"),
        (came("x", permissionDecision={"decision": "reject"}), "denied"),
        (came("PreToolUse:Bash hook error: said the tool", permissionDecision={"decision": "accept"}), "failed"),
    ],
)
def test_older_versions_say_in_words_what_came_of_a_call(line: dict[str, Any], then: str) -> None:
    """Newer versions say it in fields, and then the text does not count."""
    assert ClaudeCodeReader("f").read(json.dumps(line).encode()) == [RecordedEnd("t1", then)]  # type: ignore[arg-type]


def test_calls_that_no_hook_can_see_as_they_are() -> None:
    """The input is no object, or two of its arguments would become one, or the call is in a sidechain of an older
    version.
    """
    read = ClaudeCodeReader("f").read
    (call,) = read(json.dumps(called("Bash", "ls")).encode())
    assert isinstance(call, RecordedCall)
    assert call.invalid
    (call,) = read(json.dumps(called("Read", {"file_path": "a", "path": "b"})).encode())
    assert isinstance(call, RecordedCall)
    assert "path" in (call.refused or "")
    (call,) = read(json.dumps(called("mcp__db__query", {"sql": "x"}, isSidechain=True)).encode())
    assert isinstance(call, RecordedCall)
    assert (call.tool_name, call.agent_id) == ("mcp__db__query", "sidechain")


def test_half_a_surrogate_pair_is_read() -> None:
    """A tool's output that was cut may end in one, and JavaScript writes it down."""
    line = rb'{"type":"assistant","sessionId":"s","message":{"content":[{"type":"tool_use","id":"1","name":"Bash",'
    (call,) = ClaudeCodeReader("f").read(line + rb'"input":{"command":"echo \ud83d"}}]}}')
    assert isinstance(call, RecordedCall)
    assert call.input == {"command": "echo \N{REPLACEMENT CHARACTER}"}


# ---- our own


def test_a_session_of_ours_tells_its_calls(tmp_path: Path) -> None:
    """Calls have directory, session and key; the mark of an aborted call counts, and a text like it does not."""

    def entry(message: AssistantMessage | ToolResultMessage, time: str = "2026-01-01T00:00:00Z") -> bytes:
        return to_json(MessageEntry(timestamp=time, message=message))

    def said(*blocks: ToolCallContent) -> AssistantMessage:
        return AssistantMessage(content=blocks, timestamp=1, provider="p", model="m")

    def result(id: str, text: str, details: Any = None, *, error: bool = True) -> bytes:
        message = ToolResultMessage(
            tool_call_id=id, tool_name="bash", content=text, timestamp=1, details=details, is_error=error
        )
        return entry(message)

    head = to_json(SessionHeader(version=1, id="one", timestamp="2026", cwd="/w"))
    body = [
        entry(said(ToolCallContent("1", "bash", {"command": "ls"}), ToolCallContent("2", "bash", {}, invalid="{"))),
        result("1", "a", error=False),
        result("2", "no", {"status": "blocked", "tool": "bash", "reason": "no"}),
        result("3", "aborted", {"status": "aborted", "tool": "bash"}),
        result("4", "boom"),
        result("5", "aborted"),
        result("6", "aborted", error=False),
    ]
    one = written(tmp_path / "one.jsonl", [head, *body])
    two = written(tmp_path / "two.jsonl", [head.replace(b'"one"', b'"two"'), *body])
    found = calls(one)
    assert [(call.tool_name, call.input, call.cwd, call.session_id, call.invalid) for call in found] == [
        ("bash", {"command": "ls"}, "/w", "one", False),
        ("bash", {}, "/w", "one", True),
    ]
    assert list(ends(one).values()) == ["ran", "denied", "aborted", "failed", "failed", "ran"]
    assert [call.key for call in calls(two)] == [call.key for call in found]
    assert calls(two)[0].session_id == "two"
    assert [call.tool_name for call in calls(written(tmp_path / "damaged.jsonl", [head[:20], *body]))] == ["bash"] * 2
    later = entry(said(ToolCallContent("1", "bash", {"command": "ls"})), "2026-01-02T00:00:00Z")
    assert calls(written(tmp_path / "three.jsonl", [head, later]))[0].key != found[0].key


def test_a_session_of_a_newer_version_is_told(tmp_path: Path) -> None:
    """Its file is not read in part."""
    head = to_json(SessionHeader(version=99, id="one", timestamp="2026", cwd="/w"))
    (found,) = read(written(tmp_path / "s.jsonl", [head]))
    assert isinstance(found, BadLine)
    assert "a newer agent-hooks wrote it (version 99" in found.error


# ---- files


def test_broken_lines_do_not_end_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its number; blank lines are skipped; a line that is too long is not read into memory."""
    monkeypatch.setattr(agent_hooks.transcripts, "LONGEST", 4096)
    long = {"type": "user", "sessionId": "s", "pad": "x" * 10_000}
    odd = {
        "type": "assistant",
        "sessionId": "s",
        "message": {"content": [{"type": "tool_use", "id": "1", "input": {}}]},
    }
    lines = [
        called("Bash", {}),
        b'{"type": "assist',
        b"",
        b"\xff\xfe",
        long,
        odd,
        {**odd, "message": 7},
        called("Bash", {}),
    ]
    with Transcript(str(written(tmp_path / "t.jsonl", lines))) as transcript:
        found = [(number, type(each).__name__) for number, each in transcript]
    assert found == [(1, "RecordedCall"), *((number, "BadLine") for number in (2, 4, 5, 6, 7)), (8, "RecordedCall")]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"not JSON\n", b'{"a": 1}\n' * 200, b"[1]", b"\0" * 100])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    """The error names the file and the formats that are known."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(TranscriptError, match=r"x\.jsonl: is neither a transcript of an agent"):
        Transcript(str(path))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The error is the same as for any file that cannot be opened."""
    with pytest.raises(TranscriptError, match="No such file"):
        Transcript(str(tmp_path / "none"))


def test_only_files_count_and_each_once(tmp_path: Path) -> None:
    """Opening a pipe in a directory would wait for its other end."""
    written(tmp_path / "a.jsonl", [called("Bash", {})])
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "directory.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    named = str(tmp_path / "link.jsonl")
    assert list(find_transcripts([named, str(tmp_path)])) == [(named, True)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("\ud83d"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["tool_use", "tool_result", "text"]) | JSON},
    optional=dict.fromkeys(("id", "name", "input", "tool_use_id", "content", "is_error"), JSON),
)
LINES = st.fixed_dictionaries(
    {"type": st.sampled_from(["assistant", "user"]) | JSON},
    optional={
        "message": st.fixed_dictionaries({"content": st.lists(BLOCKS) | JSON}) | JSON,
        **dict.fromkeys(("cwd", "sessionId", "agentId", "isSidechain", "timestamp", "permissionDecision"), JSON),
    },
)


@given(st.binary() | LINES.map(lambda line: json.dumps(line).encode()))
@example(b"[" * 100_000)
@example(b'{"type":"assistant","message":' + b'{"a":' * 100_000)
@example(json.dumps(called("Bash", {"n": 10**400})).encode())
def test_whatever_a_line_is_it_is_read_or_refused(line: bytes) -> None:
    """Any line is read by each reader or refused with an error, and the fields have their promised types."""
    for reader in (ClaudeCodeReader("f"), SessionReader("f")):
        assert reader.recognises(line) in (True, False)
        try:
            found = reader.read(line)
        except TranscriptError:
            continue
        for each in found:
            assert isinstance(each.tool_call_id, str)
            if isinstance(each, RecordedCall):
                assert isinstance(each.tool_name, str)
                assert isinstance(each.input, dict)
                assert all(value is None or isinstance(value, str) for value in (each.cwd, each.session_id, each.time))
