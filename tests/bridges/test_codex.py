"""The bridge to Codex, judged by Codex's own schemas, on payloads that the real one sent."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import ToolOutput
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, PermissionAsked, PromptGiven
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.bridges.codex import Codex
from codex_judge import refusal
from support import examples

PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "codex.json").read_text())
CODEX = Codex()

# Lone halves of surrogate pairs are among them, and blanks.
texts = st.text(st.characters(), max_size=20) | st.sampled_from(["", " ", "\n", "\ud800", "plain"])
maybe = st.none() | texts
inputs = st.none() | st.dictionaries(
    st.sampled_from(["command", "timeout", "path"]) | texts, texts | st.integers(), max_size=4
)
verdicts = st.builds(
    Verdict,
    block=maybe,
    ask=maybe,
    allow=st.booleans(),
    input=inputs,
    output=st.none() | st.builds(ToolOutput, texts),
    go_on=maybe,
    context=st.lists(texts, max_size=2).map(tuple),
    messages=st.lists(texts, max_size=2).map(tuple),
)


def answer(name: str, **verdict: Any) -> Any:
    """Return the answer that Codex gets to the payload of that name."""
    return json.loads(CODEX.encode(CODEX.decode(PAYLOADS[name]), Verdict(**verdict)).stdout)


@given(st.sampled_from(sorted(PAYLOADS)), verdicts)
@examples(400)
def test_codex_takes_every_answer_to_every_event(name: str, verdict: Verdict) -> None:
    """No verdict of hooks gives an answer that Codex's schemas or the rules of its parser refuse."""
    event = CODEX.decode(PAYLOADS[name])
    reply = CODEX.encode(event, verdict)
    given_answer = json.loads(reply.stdout)
    assert reply.exit_code == 0
    assert refusal(event.name, given_answer) is None, given_answer
    stops = verdict.block is not None or (verdict.ask is not None and isinstance(event, CallAsked))
    if stops and isinstance(event, CallAsked):
        assert given_answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    if stops and isinstance(event, PromptGiven):
        assert given_answer["decision"] == "block"


@given(st.sampled_from(sorted(PAYLOADS)) | st.none(), texts)
@examples(100)
def test_codex_takes_every_refusal(name: str | None, reason: str) -> None:
    """A failure of ours at any event, also an unknown one, is an answer that Codex takes."""
    event = name and PAYLOADS[name]["hook_event_name"]
    refused = json.loads(CODEX.refuse(event, reason).stdout)
    assert refusal(event or "PreToolUse", refused) is None


def test_the_judge_refuses_the_answers_that_codex_dropped_in_runs() -> None:
    """Each of these answers let the tool run in the real Codex."""
    deny = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
    for wrong in (
        {"hookSpecificOutput": {**deny, "unknown": 1}},
        {"hookSpecificOutput": deny, "suppressOutput": True},
        {"hookSpecificOutput": deny, "continue": False},
        {"hookSpecificOutput": {**deny, "permissionDecisionReason": " "}},
        {"hookSpecificOutput": {key: value for key, value in deny.items() if key != "hookEventName"}},
        {"hookSpecificOutput": {**deny, "permissionDecision": "ask"}},
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}},
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "ls"}}},
    ):
        assert refusal("PreToolUse", wrong) is not None, wrong
    assert refusal("PreToolUse", {"hookSpecificOutput": deny}) is None
    assert refusal("PostToolUse", {"decision": "block", "reason": ""}) is not None


def test_a_rewrite_is_the_whole_command_beside_allow() -> None:
    """Codex takes a new input only beside the word that also allows; a plain allow is never said."""
    assert answer("PreToolUse:Bash", input={"command": "ls"}) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": {"command": "ls"},
        }
    }
    assert answer("PreToolUse:Bash", allow=True) == {}


def test_a_rewrite_that_codex_would_take_in_part_is_a_denial() -> None:
    """Codex reads only `command` of a shell's call, so an argument beside it denies the call, with the new call."""
    specific = answer("PreToolUse:Bash", input={"command": "ls", "timeout": 5})["hookSpecificOutput"]
    assert specific["permissionDecision"] == "deny"
    assert '{"command": "ls", "timeout": 5}' in specific["permissionDecisionReason"]
    assert "timeout, which Codex would drop" in specific["permissionDecisionReason"]


def test_a_question_is_a_denial_with_its_text() -> None:
    """Codex would run the tool after the word `ask`, so the question becomes the reason of a denial."""
    specific = answer("PreToolUse:Bash", ask="Really?", allow=True)["hookSpecificOutput"]
    assert (specific["permissionDecision"], specific["permissionDecisionReason"]) == ("deny", "Really?")
    assert not CODEX.is_attended({})


def test_a_result_becomes_a_text_that_is_never_blank() -> None:
    """Codex would show the model the old result where the new one is blank."""
    assert answer("PostToolUse:Bash", output=ToolOutput("hidden")) == {"decision": "block", "reason": "hidden"}
    assert answer("PostToolUse:Bash", output=ToolOutput(" \n")) == {"decision": "block", "reason": "(no output)"}


def test_a_result_can_be_replaced_and_get_context() -> None:
    """Both reach the model, as a run showed."""
    assert answer("PostToolUse:Bash", output=ToolOutput("new"), context=("more",)) == {
        "decision": "block",
        "reason": "new",
        "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "more"},
    }


def test_texts_at_a_stop_keep_the_agent_going() -> None:
    """A stop has one place for texts, so the text of a Continue and the texts for the model stand there together."""
    assert answer("Stop", go_on="go on", context=("a", "b")) == {"decision": "block", "reason": "go on\n\na\n\nb"}
    assert answer("Stop", context=("a",)) == {"decision": "block", "reason": "a"}


def test_a_cancelled_compaction_ends_the_turn() -> None:
    """Codex has one word for both."""
    assert answer("PreCompact", block="keep it") == {"continue": False, "stopReason": "keep it"}


def test_a_patch_has_its_files_as_parts() -> None:
    """The tool `apply_patch` writes files past hooks that listen to `write`, unless each file is a part."""
    call = CODEX.decode(PAYLOADS["PreToolUse:apply_patch"])
    assert isinstance(call, CallAsked)
    assert [(part.tool_name, part.input["path"]) for part in call.parts] == [("write", "a.txt")]
    ended = CODEX.decode(PAYLOADS["PostToolUse:apply_patch"])
    assert isinstance(ended, CallEnded)
    assert ended.parts == call.parts


def test_a_patch_that_is_typed_into_the_shell_has_its_files_as_parts() -> None:
    """Codex applies such a patch itself, without a shell."""
    payload = deepcopy(PAYLOADS["PreToolUse:Bash"])
    patch = "*** Begin Patch\n*** Delete File: .agent/hooks/guard.py\n*** End Patch"
    payload["tool_input"]["command"] = f"apply_patch <<'EOF'\n{patch}\nEOF"
    call = CODEX.decode(payload)
    assert isinstance(call, CallAsked)
    assert [part.tool_name for part in call.parts] == ["write", "bash"]


def test_nested_calls_of_the_code_mode_are_ordinary_calls() -> None:
    """The tool `exec` runs JavaScript; Codex reports the calls in it, with ids of their own."""
    call = CODEX.decode(PAYLOADS["PreToolUse:code_mode"])
    assert isinstance(call, CallAsked)
    assert (call.tool_name, call.native_name) == ("bash", "Bash")
    assert call.tool_call_id.startswith("exec-")


def test_the_directory_of_a_call_is_the_one_in_which_its_command_runs() -> None:
    """A model can name another directory, which Codex puts into the payload."""
    assert CODEX.decode(PAYLOADS["PreToolUse:workdir"]).cwd == "/tmp"


def test_the_events_of_a_subagent_name_it() -> None:
    """A call and a prompt of a sub-agent have its id; the session stays the one of the person."""
    for name, kind in (("PreToolUse:subagent", CallAsked), ("UserPromptSubmit:subagent", PromptGiven)):
        event = CODEX.decode(PAYLOADS[name])
        assert isinstance(event, kind)
        assert event.agent_id == PAYLOADS[name]["agent_id"] != "main"


def test_a_question_of_codex_can_be_settled() -> None:
    """`permission.ask` can allow it and deny it."""
    event = CODEX.decode(PAYLOADS["PermissionRequest:apply_patch"])
    assert isinstance(event, PermissionAsked)
    assert [part.input["path"] for part in event.parts] == ["/opt/cod-x/b.txt"]
    allowed = answer("PermissionRequest:Bash", allow=True)["hookSpecificOutput"]["decision"]
    assert allowed == {"behavior": "allow"}
    denied = answer("PermissionRequest:Bash", block="no", allow=True)["hookSpecificOutput"]["decision"]
    assert denied == {"behavior": "deny", "message": "no"}


# ---- settings and trust

COMMAND = ["agent-hooks", "bridge", "codex"]
INTERRUPT = "AGENT_HOOKS_PID=$PPID exec agent-hooks bridge codex Interrupt"
THEIRS = {"matcher": "Bash", "hooks": [{"type": "command", "command": "theirs"}]}


def test_our_group_comes_before_all_others() -> None:
    """Codex knows entries by their position, so a group before ours would switch ours off."""
    once = CODEX.install({"hooks": {"PreToolUse": [THEIRS]}}, COMMAND, ["PreToolUse"])
    assert once["hooks"]["PreToolUse"][1] == THEIRS
    moved = {"hooks": {"PreToolUse": once["hooks"]["PreToolUse"][::-1]}}
    assert CODEX.install(moved, COMMAND, ["PreToolUse"]) == once


def test_keys_and_hashes_are_those_of_codex() -> None:
    """The expected ones are from `hooks/list` of the real `codex app-server`."""
    late = {"type": "command", "command": "exec agent-hooks bridge codex SessionEnd", "timeout": 99}
    odd = {"type": "command", "command": "exec agent-hooks bridge codex Stop", "timeout": 0, "statusMessage": "ünï"}
    given_settings = {
        "hooks": {
            "PreToolUse": [THEIRS],
            "Stop": [{"matcher": "x", "hooks": [*THEIRS["hooks"], odd]}],
            "SessionEnd": [{"matcher": "other", "hooks": [late]}],
            "Interrupt": [{"hooks": [{**late, "command": INTERRUPT, "timeout": 3}]}],
        }
    }
    installed = CODEX.install(given_settings, COMMAND, ["PreToolUse", "PostToolUse"])
    assert CODEX.trust("/home/me/.codex/hooks.json", installed) == {
        f"/home/me/.codex/hooks.json:{key}": f"sha256:{digest}"
        for key, digest in {
            "pre_tool_use:0:0": "256efe242f100421bfe8b522db0939cdc2cc8f678fc0ae4bf84bd4f8e0647b70",
            "stop:0:1": "5f4ddddef5a82bf96e7925812a45c1442057bcf9e1f6ed5037324fce8fb9df4b",
            "session_end:0:0": "923950f49515e201469b53e79d0cd82f334835647d905922052ea5e5560995c5",
            "post_tool_use:0:0": "d50e734993286d2e6c85cff3573f36761f705ed748a3fba80831f6693f29331e",
            "interrupt:0:0": "b2eca3af6f79318615bed3550f61239249d0875f6542d581503010f83ce2acf1",
        }.items()
    }


def test_the_trust_of_other_entries_moves_with_them() -> None:
    """Our group pushes another program's entry to the next position, where Codex would trust it no more."""
    before = {"hooks": {"PreToolUse": [THEIRS, {"hooks": [{"type": "command", "command": "b"}]}], "Stop": [THEIRS]}}
    after = CODEX.install(before, COMMAND, ["PreToolUse"])
    assert CODEX.moved_trust("/h.json", before, after) == {
        "/h.json:pre_tool_use:0:0": "/h.json:pre_tool_use:1:0",
        "/h.json:pre_tool_use:1:0": "/h.json:pre_tool_use:2:0",
    }
    assert CODEX.moved_trust("/h.json", after, before) == {
        "/h.json:pre_tool_use:1:0": "/h.json:pre_tool_use:0:0",
        "/h.json:pre_tool_use:2:0": "/h.json:pre_tool_use:1:0",
    }


def test_settings_that_switch_hooks_off_are_found() -> None:
    """They stand in config.toml."""
    for found in ({"features": {"hooks": False}}, {"features": {"codex_hooks": False}}):
        assert [each.always for each in CODEX.hindrances("config.toml", found, "/p")] == [True]
    disabled = {"hooks": {"state": {"/h.json:stop:0:0": {"enabled": False}, "other": {"trusted_hash": "x"}}}}
    assert "/h.json:stop:0:0" in CODEX.hindrances("config.toml", disabled, "/p")[0].text
    harmless: Any
    for harmless in ({}, {"features": {"hooks": True}}, {"features": 3, "hooks": {"state": [1]}}, {"hooks": []}):
        assert CODEX.hindrances("config.toml", harmless, "/p") == []


def test_places_follow_codex_home() -> None:
    """`CODEX_HOME` moves the settings and the trusted hashes."""
    assert CODEX.settings_files({})["user"] == "~/.codex/hooks.json"
    assert CODEX.settings_files({"CODEX_HOME": "/c"})["user"] == "/c/hooks.json"
    assert CODEX.trust_file({}) == "~/.codex/config.toml"
    assert CODEX.trust_file({"CODEX_HOME": "/c"}) == "/c/config.toml"


# ---- bad input


@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_a_payload_without_a_field_is_an_error_with_a_text_or_is_read(name: str) -> None:
    """A payload of another version may lack any field; nothing but a `BridgeError` comes out."""
    odd: tuple[Any, ...] = (None, 3, [], "text", {})
    for key, value in product(PAYLOADS[name], odd):
        error = error_of({**PAYLOADS[name], key: value})
        assert error is None or "Codex 0.171.0" in error


def error_of(payload: dict[str, Any]) -> str | None:
    """Return the error for a payload, or nothing if it is read."""
    try:
        CODEX.encode(CODEX.decode(payload), Verdict(block="no"))
    except BridgeError as exc:
        return str(exc)
    return None


@pytest.mark.parametrize("tool", ["mcp__x__bash", "Bash\u200b", "apply_patch ", "../Bash", ""])
def test_an_odd_name_of_a_tool_is_a_tool_of_its_own(tool: str) -> None:
    """Only the name is the shell's, in any letters; gates see any other name as it is."""
    call = CODEX.decode({**PAYLOADS["PreToolUse:Bash"], "tool_name": tool})
    assert isinstance(call, CallAsked)
    assert call.tool_name == tool
