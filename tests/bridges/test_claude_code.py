"""The codec of Claude Code, on payloads that the real one sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_hooks import AgentEnd, ImageContent, SessionEvent, TextContent, ToolOutput, TurnEnd, TurnStart
from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import (
    CallAsked,
    CallEnded,
    EventsReported,
    Happening,
    PermissionAsked,
    PromptGiven,
)
from agent_hooks.bridges.base.installation import Address, EventRow, Facts, Installed
from agent_hooks.bridges.base.verdicts import Reply, Verdict
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.bridges.claude_code import ClaudeCode
from agent_hooks.testing import check_bridge

PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "claude_code.json").read_text())
CLAUDE = ClaudeCode()


def said(payload: dict[str, Any], **answer: Any) -> Any:
    """Return the reply that Claude Code gets."""
    return json.loads(CLAUDE.encode(CLAUDE.decode(payload), Verdict(**answer)).stdout)


@pytest.mark.parametrize("name", BRIDGES)
def test_every_bridge_passes_the_suite(name: str) -> None:
    """Each bridge has a file of payloads that its agent really sent, beside this file."""
    path = Path(__file__).parent / f"{name.replace('-', '_')}.json"
    check_bridge(open_bridge(name), json.loads(path.read_text()))


class Broken(ClaudeCode):
    """A bridge with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def decode(self, payload: object, event_name: str | None = None) -> Happening:
        if self.fault == "junk":
            return super().decode({"hook_event_name": "X"} if payload == {} else payload)
        return super().decode(payload)

    def encode(self, event: Happening, answer: Verdict) -> Reply:
        match self.fault:
            case "allow" if answer.input:
                return super().encode(event, Verdict(block=answer.block, allow=True, input=answer.input))
            case "exit":
                return replace(super().encode(event, answer), exit_code=1)
            case "text":
                return Reply("no opinion")
            case "list":
                return Reply("[]")
            case "lost":
                return super().encode(event, Verdict(block=answer.block, ask=answer.ask, input=answer.input))
            case "result" if answer.output:
                return Reply("{}")
            case "end" if answer.go_on:
                return super().encode(event, Verdict(context=answer.context))
            case "half" if answer.block:
                return Reply(json.dumps({"reason": answer.block, **json.loads(super().encode(event, answer).stdout)}))
            case "nameless" if answer.block == " ":
                return Reply('{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": " "}}')
            case "asks" if answer.ask is not None and answer.block is None:
                return super().encode(event, Verdict(block=answer.ask, input=answer.input))
            case "shorter" if answer.input is not None and answer.block is None:
                return super().encode(event, replace(answer, input=dict(list(answer.input.items())[:1])))
            case "prompt" if answer.block and event.name == "UserPromptSubmit":
                return super().encode(event, Verdict(messages=(answer.block,)))
        return super().encode(event, answer)

    def refuse(self, event_name: str | None, reason: str) -> Reply:
        return Reply("{}") if self.fault == "open" else super().refuse(event_name, reason)

    def uninstall(self, settings: Any) -> dict[str, Any]:
        return {} if self.fault == "uninstall" else super().uninstall(settings)

    def install(self, settings: Any, command: Any, events: Any, address: Any = None) -> dict[str, Any]:
        if self.fault == "install":
            settings = {}
        if self.fault == "all":
            events = [row.name for row in self.describe()]
        if self.fault == "kept" and address is None and "http" in json.dumps(settings):
            return dict(settings)
        return super().install(settings, command, events, address)

    def installed(self, settings: Any) -> list[Installed]:
        found = super().installed(settings)
        if self.fault == "waits":
            return [replace(entry, timeout=5) for entry in found]
        return [replace(entry, fails_closed=False) for entry in found] if self.fault == "passes" else list(found)

    def facts(self, project: str, environment: Mapping[str, str]) -> Facts:
        facts = super().facts(project, environment)
        return replace(facts, environment={"COPILOT_CLI": "1"}) if self.fault == "elsewhere" else facts

    def describe(self) -> tuple[EventRow, ...]:
        rows = super().describe()
        if self.fault == "waits":
            return tuple(replace(row, timeout=99 if row.gate else row.timeout) for row in rows)
        if self.fault == "posted":
            return tuple(replace(row, decides_nothing=True) for row in rows)
        return tuple(replace(row, gate=False) for row in rows) if self.fault == "gate" else tuple(rows)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("junk", "raises no BridgeError"),
        ("allow", "rewrite says allow"),
        ("exit", "exit code 1"),
        ("text", "is not one JSON object"),
        ("list", "is not a JSON object"),
        ("lost", "'for the model' is lost"),
        ("result", "a changed result is lost"),
        ("end", "is lost when the agent goes on"),
        ("open", "lets it pass without a text"),
        ("gate", "does not call it a gate"),
        ("uninstall", "uninstall does not give the settings before install back"),
        ("install", "install loses the settings of other programs"),
        ("all", "install takes more events than it was asked for"),
        ("passes", "PreToolUse: a failure of the command lets it pass"),
        ("posted", "PreToolUse: describe calls it a gate and decides_nothing"),
        ("kept", "without an address, events are posted"),
        ("half", "is not one JSON object"),
        ("nameless", "a block has no reason"),
        ("asks", "the reply to a question and limits"),
        ("shorter", "a new argument is lost"),
        ("prompt", "the reason of a block is lost"),
        ("elsewhere", "in this environment, no hook runs"),
        ("waits", "the entry waits 5 s, and not 99 s"),
    ],
)
def test_the_suite_finds_what_is_wrong(fault: str, text: str) -> None:
    """One bridge for each fault."""
    bridge: Bridge = Broken(fault)
    with pytest.raises(AssertionError, match=text):
        check_bridge(bridge, PAYLOADS.values())


def test_the_suite_wants_both_halves_of_a_call() -> None:
    """Without both halves, the suite would check nothing."""
    with pytest.raises(AssertionError, match="give at least one payload"):
        check_bridge(CLAUDE, [PAYLOADS["Stop"]])


@pytest.mark.parametrize(
    ("payload", "kind", "events"),
    [
        ("SessionStart:startup", EventsReported, ["start"]),
        ("SessionStart:resume", EventsReported, ["start"]),
        ("SessionStart:compact", Happening, []),
        ("SessionEnd", EventsReported, ["shutdown"]),
        ("PreCompact", EventsReported, ["before_compact"]),
        ("PostCompact", EventsReported, ["compact"]),
        ("Stop", EventsReported, [AgentEnd]),
        ("SubagentStop", EventsReported, [AgentEnd]),
        ("PostToolBatch", EventsReported, [TurnEnd, TurnStart]),
        ("UserPromptSubmit", PromptGiven, []),
        ("PreToolUse:Bash", CallAsked, []),
        ("PermissionRequest:Bash", PermissionAsked, []),
        ("PostToolUse:Bash", CallEnded, []),
        ("PostToolUseFailure:Read", CallEnded, []),
        ("SubagentStart", Happening, []),
        ("MessageDisplay", Happening, []),
    ],
)
def test_what_each_event_becomes(payload: str, kind: type[Happening], events: list[object]) -> None:
    """The table in docs/claude-code.md lists the same events."""
    happening = CLAUDE.decode(PAYLOADS[payload])
    assert type(happening) is kind
    found = happening.events if isinstance(happening, EventsReported) else ()
    assert [each.reason if isinstance(each, SessionEvent) else type(each) for each in found] == events
    assert happening.session_id == PAYLOADS[payload]["session_id"]
    assert happening.agent_id == PAYLOADS[payload].get("agent_id", "main")


def test_a_cleared_session_goes_on() -> None:
    """`/clear` ends a session and starts one in the same process."""
    start = CLAUDE.decode({**PAYLOADS["SessionStart:startup"], "source": "clear"})
    assert isinstance(start, EventsReported)
    assert [each.reason for each in start.events if isinstance(each, SessionEvent)] == ["clear"]
    assert type(CLAUDE.decode({**PAYLOADS["SessionEnd"], "reason": "clear"})) is Happening


@pytest.mark.parametrize(
    ("name", "theirs", "ours", "expected"),
    [
        ("Bash", {"command": "ls", "timeout": 1500}, "bash", {"command": "ls", "timeout": 1.5}),
        ("Write", {"file_path": "/a", "content": "x"}, "write", {"path": "/a", "content": "x"}),
        (
            "Edit",
            {"file_path": "/a", "old_string": "b", "new_string": "c", "replace_all": True},
            "edit",
            {"path": "/a", "oldText": "b", "newText": "c", "replace_all": True},
        ),
        ("NotebookEdit", {"notebook_path": "/a", "new_source": "c"}, "edit", {"path": "/a", "newText": "c"}),
        ("Grep", {"pattern": "x", "-i": True, "-C": 2}, "grep", {"pattern": "x", "ignoreCase": True, "-C": 2}),
        ("Monitor", {"command": "ls", "timeout_ms": 1500}, "bash", {"command": "ls", "timeout": 1.5}),
        ("Monitor", {"ws": {}, "timeout_ms": 1500}, "Monitor", {"ws": {}, "timeout_ms": 1500}),
        ("PowerShell", {"command": "ls", "timeout": 1500}, "bash", {"command": "ls", "timeout": 1.5}),
        ("Artifact", {"file_path": "/a"}, "read", {"path": "/a"}),
        ("Glob", {"pattern": "*"}, "find", {"pattern": "*"}),
        ("mcp__probe__echo", {"file_path": "/a"}, "mcp__probe__echo", {"file_path": "/a"}),
    ],
)
def test_tools_are_called_as_ours_and_rewritten_in_their_words(
    name: str, theirs: dict[str, Any], ours: str, expected: dict[str, Any]
) -> None:
    """The original stays in `native`."""
    payload = {**PAYLOADS["PreToolUse:Bash"], "tool_name": name, "tool_input": theirs}
    call = CLAUDE.decode(payload)
    assert isinstance(call, CallAsked)
    assert (call.tool_name, call.input) == (ours, expected)
    assert call.native["tool_input"] == theirs
    assert said(payload, input=dict(call.input))["hookSpecificOutput"]["updatedInput"] == theirs


def test_an_input_with_two_names_for_one_argument_is_no_input() -> None:
    """A judge would see one of them, and the tool might take the other."""
    payload = {**PAYLOADS["PreToolUse:Write"], "tool_input": {"file_path": "/etc/passwd", "path": "/tmp/x"}}
    with pytest.raises(BridgeError, match="'path' twice"):
        CLAUDE.decode(payload)


SHELL = {"interrupted": False, "isImage": False, "noOutputExpected": False}
NEW_FILE = {"filePath": "", "startLine": 1, "totalLines": 1, "content": "new", "numLines": 1}


@pytest.mark.parametrize(
    ("response", "text", "native"),
    [
        ({"stdout": "a", "stderr": "b", **SHELL}, "a\nb", {"stdout": "new", "stderr": "", **SHELL}),
        (
            {"type": "text", "file": {"filePath": "f", "content": "a\nb", "numLines": 2}},
            "a\nb",
            {"type": "text", "file": {"filePath": "f", "content": "new", "numLines": 1}},
        ),
        ({"type": "image", "file": {"base64": "aGk=", "type": "image/png"}}, "", {"type": "text", "file": NEW_FILE}),
        (
            {"type": "pdf", "file": {"filePath": "f", "base64": "aGk="}},
            '{"type": "pdf", "file": {"filePath": "f", "base64": "aGk="}}',
            {"type": "text", "file": {**NEW_FILE, "filePath": "f"}},
        ),
        (
            {"filenames": ["a", "b"], "numFiles": 2, "totalMatches": 9, "totalFiles": 9},
            "a\nb",
            {"filenames": ["new"], "numFiles": 1, "totalMatches": 8, "totalFiles": 8},
        ),
        (
            {"mode": "content", "content": "a:1\nb:2", "numLines": 2, "totalLines": 9},
            "a:1\nb:2",
            {"mode": "content", "content": "new", "numLines": 1, "totalLines": 8},
        ),
        (
            {"mode": "count", "content": "a:1", "numFiles": 1, "numMatches": 1},
            "a:1",
            {"mode": "count", "content": "new", "numFiles": 0, "numMatches": 0},
        ),
        (
            {"status": "completed", "content": [{"type": "text", "text": "a"}]},
            "a",
            {"status": "completed", "content": [{"type": "text", "text": "new"}]},
        ),
        ({"url": "u", "code": 200, "result": "a"}, "a", {"url": "u", "code": 200, "result": "new"}),
        ([{"type": "text", "text": "a"}], "a", [{"type": "text", "text": "new"}]),
        ("a", "a", "new"),
    ],
)
def test_a_changed_result_keeps_the_tools_shape(response: Any, text: str, native: Any) -> None:
    """Claude Code drops a result of any other shape."""
    payload = {**PAYLOADS["PostToolUse:Bash"], "tool_response": response}
    call = CLAUDE.decode(payload)
    assert isinstance(call, CallEnded)
    assert call.output.text == text
    assert said(payload, output=ToolOutput("new"))["hookSpecificOutput"] == {
        "hookEventName": "PostToolUse",
        "updatedToolOutput": native,
    }


RESULTS = [payload for name, payload in PAYLOADS.items() if name.startswith("PostToolUse:")]


@example(payload=PAYLOADS["PostToolUse:Grep:count"], texts=["²", "9" * 5000])
@given(payload=st.sampled_from(RESULTS), texts=st.lists(st.text(), min_size=1, max_size=3))
def test_no_text_of_a_changed_result_is_lost(payload: dict[str, Any], texts: list[str]) -> None:
    """Each text is in the result or in the context, in any shape; an unchanged result is the original one."""
    call = CLAUDE.decode(payload)
    assert isinstance(call, CallEnded)
    specific = said(payload, output=ToolOutput([TextContent(text) for text in texts]))["hookSpecificOutput"]
    told = json.dumps([specific.get("updatedToolOutput"), specific.get("additionalContext", "")])
    for line in "\n".join(texts).splitlines():
        assert json.dumps(line)[1:-1] in told
    same = said(payload, output=call.output).get("hookSpecificOutput", {}).get("updatedToolOutput")
    assert same in (None, payload["tool_response"])


def test_counts_follow_what_is_left_of_a_result() -> None:
    """The model reads these counts."""
    payload = PAYLOADS["PostToolUse:Grep:count"]
    call = CLAUDE.decode(payload)
    assert isinstance(call, CallEnded)
    kept = "\n".join(line for line in call.output.text.splitlines() if ".venv" not in line)
    changed = said(payload, output=ToolOutput(kept))["hookSpecificOutput"]["updatedToolOutput"]
    assert changed == {
        "mode": "count",
        "numFiles": 2,
        "filenames": [],
        "content": "a.py:1\nsub/b.py:2",
        "numMatches": 3,
    }


def test_what_hooks_took_out_of_a_long_output_is_in_no_file_that_the_model_is_sent_to() -> None:
    """The context says that there was more."""
    long = {"stdout": "secret", "stderr": "", **SHELL, "persistedOutputPath": "/all", "persistedOutputSize": 99999}
    specific = said({**PAYLOADS["PostToolUse:Bash"], "tool_response": long}, output=ToolOutput("***"))
    assert specific["hookSpecificOutput"]["updatedToolOutput"] == {"stdout": "***", "stderr": "", **SHELL}
    assert "Only the beginning" in specific["hookSpecificOutput"]["additionalContext"]


def test_what_grep_is_to_leave_out_is_said_in_its_glob() -> None:
    """Grep has no argument `exclude`, but its `glob` takes several globs in one text."""
    payload = PAYLOADS["PreToolUse:Grep"]
    given = {**payload["tool_input"], "exclude": [".venv/", "my dir/", "*.min.js"]}
    left_out = "!.venv/ !my?dir/ !*.min.js"
    assert said(payload, input=given)["hookSpecificOutput"]["updatedInput"] == {"pattern": "import", "glob": left_out}
    globbed = said(payload, input={**given, "glob": "*.py"})["hookSpecificOutput"]["updatedInput"]
    assert globbed == {"pattern": "import", "glob": f"*.py {left_out}"}


def test_a_result_of_an_unknown_shape_is_its_json_and_comes_back_as_such() -> None:
    """A secret in it can be hidden.  A text that is no such object becomes context."""
    payload = {**PAYLOADS["PostToolUse:Write"]}
    call = CLAUDE.decode(payload)
    assert isinstance(call, CallEnded)
    hidden = call.output.text.replace("a.txt", "***")
    changed = said(payload, output=ToolOutput(hidden))["hookSpecificOutput"]["updatedToolOutput"]
    assert changed == {**payload["tool_response"], "filePath": "***"}
    for text in ("words", '{"other": 1}'):
        assert said(payload, output=ToolOutput(text))["hookSpecificOutput"]["additionalContext"] == text
    assert said({**payload, "tool_response": None}, output=ToolOutput("x"))["hookSpecificOutput"] == {
        "hookEventName": "PostToolUse",
        "additionalContext": "x",
    }


def test_a_note_below_a_list_is_no_entry_of_it() -> None:
    """The note becomes context."""
    payload = {**PAYLOADS["PostToolUse:Bash"], "tool_response": {"filenames": ["a", "b"], "numFiles": 2}}
    output = ToolOutput([TextContent("a"), TextContent("[left out: b]")])
    specific = said(payload, output=output)["hookSpecificOutput"]
    assert specific["updatedToolOutput"] == {"filenames": ["a"], "numFiles": 1}
    assert specific["additionalContext"] == "[left out: b]"


def test_pictures_of_a_server_stay_pictures() -> None:
    """They keep the form in which they came.  Any other block is JSON for hooks, and goes back as the original."""
    payload = PAYLOADS["PostToolUse:mcp__probe__hkecho:picture"]
    text, picture, *_ = response = payload["tool_response"]
    call = CLAUDE.decode(payload)
    assert isinstance(call, CallEnded)
    assert [block.type for block in call.output.content] == ["text", "image", "text", "text"]
    changed = said(payload, output=ToolOutput([TextContent("new"), *call.output.content[1:]]))
    assert changed["hookSpecificOutput"]["updatedToolOutput"] == [{"type": "text", "text": "new"}, *response[1:]]
    seen = call.output.content[1]
    assert isinstance(seen, ImageContent)
    other = ImageContent("aGk=", seen.mime_type)
    drawn = said(payload, output=ToolOutput([other]))["hookSpecificOutput"]["updatedToolOutput"]
    assert drawn == [{**picture, "source": {**picture["source"], "data": "aGk="}}]
    sound = {**payload, "tool_response": [text, {"type": "audio"}]}
    call = CLAUDE.decode(sound)
    assert isinstance(call, CallEnded)
    changed = said(sound, output=ToolOutput(call.output.content[1:]))
    assert changed["hookSpecificOutput"]["updatedToolOutput"] == [{"type": "audio"}]


def test_a_picture_that_was_read_can_be_another() -> None:
    """A text beside an unchanged picture becomes context."""
    payload = PAYLOADS["PostToolUse:Read:image"]
    call = CLAUDE.decode(payload)
    assert isinstance(call, CallEnded)
    beside = said(payload, output=ToolOutput([*call.output.content, TextContent("a dot")]))["hookSpecificOutput"]
    assert beside == {"hookEventName": "PostToolUse", "additionalContext": "a dot"}
    other = said(payload, output=ToolOutput([ImageContent("aGk=", "image/gif")]))["hookSpecificOutput"]
    file = {"base64": "aGk=", "type": "image/gif", "originalSize": 3}
    assert other["updatedToolOutput"] == {"type": "image", "file": file}


def test_the_text_of_a_failed_call_cannot_be_changed() -> None:
    """The changed text becomes context."""
    specific = said(PAYLOADS["PostToolUseFailure:Bash"], output=ToolOutput("new", is_error=True))["hookSpecificOutput"]
    assert specific == {"hookEventName": "PostToolUseFailure", "additionalContext": "new"}


def test_a_continued_stop_is_not_continued_again() -> None:
    """A text for the model goes to the person instead."""
    assert said(PAYLOADS["Stop"], context=("go on",))["hookSpecificOutput"]["additionalContext"] == "go on"
    again = said({**PAYLOADS["Stop"], "stop_hook_active": True}, context=("go on",))
    assert again == {"systemMessage": "not given to the model, because Stop takes no text now: go on"}


@pytest.mark.parametrize("name", ["Stop", "SubagentStop"])
@pytest.mark.parametrize("active", [True, False])
def test_a_stop_goes_on_with_what_a_hook_wants(name: str, active: bool) -> None:
    """The reply is a block with the text as its reason, and with the texts that hooks sent."""
    payload = {**PAYLOADS[name], "stop_hook_active": active}
    assert said(payload, go_on="run the tests") == {"decision": "block", "reason": "run the tests"}
    both = said(payload, go_on="run the tests", context=("and lint",), messages=("told",))
    assert both == {
        "decision": "block",
        "reason": "run the tests",
        "systemMessage": "told",
        "hookSpecificOutput": {"hookEventName": name, "additionalContext": "and lint"},
    }
    assert said(payload) == {}
    stop = CLAUDE.decode(payload)
    assert isinstance(stop, EventsReported)
    [end] = stop.events
    assert isinstance(end, AgentEnd)
    assert end.continued == int(active)


def test_only_a_stop_goes_on() -> None:
    """At any other event, a block would stop the event."""
    for name in ("SessionStart:startup", "PreCompact", "PostToolBatch", "UserPromptSubmit"):
        assert "decision" not in said(PAYLOADS[name], go_on="more")


def test_permissions_prompts_and_compactions_are_denied_in_their_own_way() -> None:
    """Each event has a form of its own."""
    asked = PAYLOADS["PermissionRequest:Bash"]
    assert said(asked, block="no")["hookSpecificOutput"]["decision"] == {"behavior": "deny", "message": "no"}
    assert said(asked, allow=True)["hookSpecificOutput"]["decision"] == {"behavior": "allow"}
    assert said(PAYLOADS["UserPromptSubmit"], block="no") == {"decision": "block", "reason": "no"}
    assert said(PAYLOADS["PreCompact"], block="no") == {"decision": "block", "reason": "no"}


def test_which_agent_runs_us_and_whether_somebody_sits_there() -> None:
    """Copilot and Cursor read the same settings file."""
    assert CLAUDE.runs_here({})
    assert CLAUDE.runs_here({"CLAUDECODE": "1", "COPILOT_CLI": "1"})
    assert not CLAUDE.runs_here({"COPILOT_CLI": "1", "CLAUDE_PROJECT_DIR": "/w"})
    assert CLAUDE.is_attended({})
    assert CLAUDE.is_attended({"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"})
    assert not CLAUDE.is_attended({"CLAUDE_CODE_SESSION_ATTENDED": "0"})
    assert not CLAUDE.is_attended({"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"})


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("tool_input", "ls", "tool_input must be a JSON object"),
        ("tool_name", 3, "tool_name must be a text"),
        ("cwd", [], "cwd must be a text"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, text: str) -> None:
    """The error also shows the value."""
    with pytest.raises(BridgeError, match=text):
        CLAUDE.decode({**PAYLOADS["PreToolUse:Bash"], field: value})


def test_install_keeps_what_is_there_in_its_order() -> None:
    """Groups of other programs and malformed groups stay too."""
    theirs = {"type": "command", "command": "theirs"}
    settings = {"a": 1, "hooks": {"Stop": [{"hooks": [theirs]}, "odd"], "Mine": []}, "z": 2}
    installed = deepcopy(CLAUDE.install(settings, ["/py"], ["PreToolUse", "Stop"]))
    assert list(installed) == ["a", "hooks", "z"]
    assert list(installed["hooks"])[:2] == ["Stop", "Mine"]
    assert installed["hooks"]["Stop"][:2] == [{"hooks": [theirs]}, "odd"]
    ours = installed["hooks"]["Stop"][2]["hooks"][0]
    installed["hooks"]["Stop"][0]["hooks"].append(ours)  # as a person may tidy up
    assert CLAUDE.uninstall(installed) == settings
    gate = installed["hooks"]["PreToolUse"][0]["hooks"][0]
    assert gate["onFailure"] == "block"
    assert gate["command"] == "/py PreToolUse || sh -c 'echo agent-hooks failed >&2; exit 2' || exit 2"
    assert gate["statusMessage"] == "agent_hooks: running your hooks"
    with pytest.raises(BridgeError, match="'hooks' must be an object of lists"):
        CLAUDE.install({"hooks": []}, ["/py"], [])


ADDRESS = Address(23456, "a-token")


def test_with_an_address_what_decides_nothing_is_posted() -> None:
    """The token is in the header, where the client puts it, and in no address."""
    settings = CLAUDE.install({}, ["run"], ["PreToolUse", "PostToolUse", "Stop", "PostToolBatch"], ADDRESS)
    entries = {entry.event: entry for entry in CLAUDE.installed(settings)}
    assert {event for event, entry in entries.items() if entry.address} == {"PostToolBatch"}
    assert entries["PostToolBatch"].address == ADDRESS
    assert entries["PostToolBatch"].command == ("http://127.0.0.1:23456/agent-hooks/claude-code/PostToolBatch",)
    [group] = settings["hooks"]["PostToolBatch"]
    [entry] = group["hooks"]
    assert (entry["type"], entry["headers"]) == ("http", {"Authorization": "Bearer a-token"})


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://127.0.0.1:0/agent-hooks/claude-code/Stop"},
        {"url": "http://127.0.0.1:65536/agent-hooks/claude-code/Stop"},
        {"url": "http://127.0.0.1:٣/agent-hooks/claude-code/Stop"},
        {"url": "http://192.168.0.1:80/agent-hooks/claude-code/Stop"},
        {"url": None},
        {"headers": None},
        {"headers": {"Authorization": "Bearer "}},
        {"headers": {"Authorization": ["Bearer x"]}},
        {"headers": {"Authorization": "Bearer \ud800"}},
    ],
)
def test_an_entry_that_posts_elsewhere_or_without_a_token_has_no_address(change: dict[str, Any]) -> None:
    """No server listens there.  It is still an entry of ours, which an installation repairs."""
    settings = CLAUDE.install({}, ["run"], ["PostToolBatch"], ADDRESS)
    settings["hooks"]["PostToolBatch"][0]["hooks"][0].update(change)
    [entry] = CLAUDE.installed(settings)
    assert entry.address is None
    [mended] = CLAUDE.installed(CLAUDE.install(settings, ["run"], ["PostToolBatch"], ADDRESS))
    assert mended.address == ADDRESS


def test_an_entry_that_posts_is_known_by_its_address_too() -> None:
    """A person may have removed our text from the entry."""
    settings = CLAUDE.install({}, ["run"], ["PostToolBatch"], ADDRESS)
    del settings["hooks"]["PostToolBatch"][0]["hooks"][0]["statusMessage"]
    assert CLAUDE.uninstall(settings) == {}


@pytest.mark.parametrize(
    ("allowed", "hinders"),
    [
        (None, False),
        ("x", False),
        ([], True),
        (["http://localhost:*"], True),
        ([1, "http://127.0.0.1:*"], False),
        (["*"], False),
    ],
)
def test_a_list_of_allowed_addresses_that_lacks_ours_is_told(allowed: object, hinders: bool) -> None:
    """Claude Code then posts no event, silently.  Without entries that post, the list does not matter."""
    url = ADDRESS.url("claude-code", "PostToolBatch")
    told = [each.text for each in CLAUDE.hindrances("s.json", {"allowedHttpHookUrls": allowed}, "/p", [url])]
    assert any("allowedHttpHookUrls leaves out 127.0.0.1" in text for text in told) == hinders
    assert not CLAUDE.hindrances("s.json", {"allowedHttpHookUrls": allowed}, "/p")


@pytest.mark.parametrize(
    "calls",
    [5, "text", {"a": 1}, [{"tool_name": "Bash", "tool_input": "ls"}], [{"tool_name": "Bash", "tool_input": [1]}]],
)
def test_a_batch_that_cannot_be_read_is_refused_with_its_field(calls: Any) -> None:
    """The field is named; no other exception leaves the bridge."""
    payload = {"hook_event_name": "PostToolBatch", "session_id": "s", "tool_calls": calls}
    with pytest.raises(BridgeError, match=r"tool_calls|tool_input"):
        CLAUDE.decode(payload)


def test_a_batch_without_calls_ends_a_turn_without_results() -> None:
    """A call without an input has an empty one."""
    for calls in (None, [], [{"tool_name": "Bash", "tool_input": None}]):
        found = CLAUDE.decode({"hook_event_name": "PostToolBatch", "session_id": "s", "tool_calls": calls})
        assert isinstance(found, EventsReported)
        [end] = [event for event in found.events if isinstance(event, TurnEnd)]
        assert len(end.tool_results) == len(calls or ())


SEAT = "agent-hooks@agent-hooks"


@pytest.mark.parametrize(
    ("settings", "above"),
    [
        ({}, ""),
        ({"enabledPlugins": {"x@y": False}}, ""),
        ({"enabledPlugins": {"x@y": True}}, "x@y"),
        ({"enabledPlugins": {"x@y": True, SEAT: True}, "prependPlugins": [SEAT]}, ""),
        ({"enabledPlugins": {"x@y": True, SEAT: True}, "prependPlugins": [SEAT, "x@y"]}, ""),
        ({"enabledPlugins": {"x@y": True, SEAT: True}, "prependPlugins": ["x@y", SEAT]}, "x@y"),
        ({"enabledPlugins": {SEAT: True, "agent-hooks@x": True}, "prependPlugins": [SEAT]}, ""),
        ({"enabledPlugins": {"agent-hooks@x": False, SEAT: True}, "prependPlugins": [SEAT]}, ""),
        ({"enabledPlugins": ["odd"], "prependPlugins": "odd"}, ""),
    ],
)
def test_plugins_that_come_before_our_mod_are_named(settings: dict[str, Any], above: str) -> None:
    """In the settings of a project, these keys have no effect."""
    told = [each.text for each in CLAUDE.hindrances("/home/me/.claude/settings.json", settings, "/p")]
    assert told == (
        [f"these plugins come before agent-hooks, so their mods can overrule your hooks: {above}"] if above else []
    )
    assert CLAUDE.hindrances("/p/.claude/settings.json", settings, "/p") == []
    seated = CLAUDE.seated({} if "odd" in str(settings) else settings, "/home/me/.agent/mods")
    assert CLAUDE.hindrances("/home/me/.claude/settings.json", seated, "/p") == []


def test_a_plugin_with_the_name_of_our_mod_is_loaded_after_it() -> None:
    """Claude Code loads the first plugin of a name that the settings enable."""
    settings = {"enabledPlugins": {"agent-hooks@x": True, SEAT: True}, "prependPlugins": [SEAT]}
    told = CLAUDE.hindrances("/home/me/.claude/settings.json", settings, "/p")
    assert [each.text for each in told] == [
        "of plugins with one name the first is loaded, so our mod is not: agent-hooks@x"
    ]
    seated = CLAUDE.seated(settings, "/home/me/.agent/mods")
    assert list(seated["enabledPlugins"]) == [SEAT, "agent-hooks@x"]
    assert CLAUDE.hindrances("/home/me/.claude/settings.json", seated, "/p") == []


def test_the_plugin_of_the_repository_is_known_by_its_name() -> None:
    """It has no key, so it judges nothing."""
    name = "agent-hooks@agent-hooks-source"
    assert CLAUDE.unkeyed({"enabledPlugins": {name: True}}) == name
    assert CLAUDE.unkeyed({"enabledPlugins": {name: False}}) == CLAUDE.unkeyed({"enabledPlugins": "odd"}) == ""
    assert CLAUDE.hindrances("/home/me/.claude/settings.json", {"enabledPlugins": {name: True}}, "/p") == []


@pytest.mark.parametrize("key", ["extraKnownMarketplaces", "enabledPlugins", "prependPlugins"])
def test_odd_settings_of_plugins_are_an_error_by_name(key: str) -> None:
    """Nothing is replaced that we cannot put back."""
    with pytest.raises(BridgeError, match=key):
        CLAUDE.seated({key: "odd"}, "/mods")
    assert CLAUDE.unseated({key: "odd"}) == {key: "odd"}


def test_the_mod_is_taken_out_and_all_else_stays() -> None:
    """Keys that are left empty go."""
    for settings in ({}, {"enabledPlugins": {"x@y": True}, "prependPlugins": ["x@y"], "model": "opus"}):
        seated = CLAUDE.seated(settings, "/mods")
        assert seated["prependPlugins"][0] == SEAT
        assert CLAUDE.seated(seated, "/mods") == seated
        assert CLAUDE.unseated(seated) == settings
