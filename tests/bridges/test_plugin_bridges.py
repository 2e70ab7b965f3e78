"""The bridges to agents that load a plugin, on payloads that their plugins really sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks import AgentEnd, SessionEvent, TextContent, ToolOutput, TurnEnd, TurnStart
from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, EventsReported, Happening, PromptGiven
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.bridges.plugin import PluginBridge

HERE = Path(__file__).parent
OPERATIONS = {"throw", "return", "assign", "ask", "prompt", "later", "notes"}
NAMES = [name for name in BRIDGES if open_bridge(name).plugin]


def payloads(name: str) -> dict[str, Any]:
    """Return the payloads of an agent, each with the name of its hook and a word for the case."""
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return found


CASES = [(name, key) for name in NAMES for key in payloads(name)]


def bridge_of(name: str) -> PluginBridge:
    bridge = open_bridge(name)
    assert isinstance(bridge, PluginBridge)
    return bridge


def decoded(name: str, key: str) -> Happening:
    """Return the happening of a payload."""
    return bridge_of(name).decode(payloads(name)[key])


def operations(name: str, event: Happening, **answer: Any) -> dict[str, Any]:
    """Return the operations for the plugin."""
    found: dict[str, Any] = json.loads(bridge_of(name).encode(event, Verdict(**answer)).stdout)
    return found


# ---- any verdict

TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(["", " ", "half \ud800", "@reason@", "a\nb"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS, lambda inner: st.lists(inner, max_size=2), max_leaves=3
)
VERDICTS = st.builds(
    Verdict,
    block=st.none() | TEXTS,
    ask=st.none() | TEXTS,
    allow=st.booleans(),
    input=st.none() | st.dictionaries(TEXTS | st.sampled_from(["command", "path", "__proto__"]), JSON, max_size=3),
    output=st.none() | st.builds(ToolOutput, TEXTS),
    prompt=st.none() | TEXTS,
    go_on=st.none() | TEXTS,
    context=st.lists(TEXTS, max_size=2).map(tuple),
    messages=st.lists(TEXTS, max_size=2).map(tuple),
)


def shapes(template: Any) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the keys in a template, down to its places for values."""
    if isinstance(template, Mapping):
        for key, inner in template.items():
            yield (key,)
            yield from ((key, *path) for path in shapes(inner))


def is_denial(name: str, event: Happening, answer: Mapping[str, Any]) -> bool:
    """Return whether the agent takes an answer to a call or a prompt for a denial."""
    value: dict[str, Any] = answer.get("return", {})
    if "throw" in answer:
        # pi lets a prompt pass after an error, and OpenClaw shows the model no text of one.
        return name == "opencode" or (name == "pi" and isinstance(event, CallAsked))
    match name, event:
        case "pi", CallAsked():
            return value["block"] is True and bool(value["reason"].strip())
        case "pi", _:
            return value == {"action": "handled"}
        case "openclaw", CallAsked():
            return value["block"] is True and bool(value["blockReason"].strip())
        case "openclaw", _:
            return bool(value["outcome"] == "block" and value["reason"].strip())
    return False


@pytest.mark.parametrize(("name", "key"), CASES)
@given(verdict=VERDICTS)
def test_any_verdict_becomes_operations_of_the_events_row_only(name: str, key: str, verdict: Verdict) -> None:
    """An answer has only keys of the row's templates, and a block is alone and a denial."""
    bridge, event = bridge_of(name), decoded(name, key)
    row = bridge.command_row(event.name)
    answer = json.loads(bridge.encode(event, verdict).stdout)
    assert answer.keys() <= OPERATIONS
    known = {path[:2] for template in row.says.values() for path in shapes(template)}
    found = {(key, inner) for key, value in answer.items() if isinstance(value, dict) for inner in value}
    free = {path[0] for template in row.says.values() for path in shapes(template)}
    assert answer.keys() <= free
    assert all(path in known or (path[0],) in known for path in found)
    if isinstance(event, CallAsked | PromptGiven) and verdict.block is not None:
        assert is_denial(name, event, answer), answer
        assert answer.keys() <= {"return", "throw", "notes", "later"}
    if isinstance(event, CallAsked) and verdict.ask is not None and verdict.block is None:
        asks = "ask" in answer or "requireApproval" in answer.get("return", {})
        assert asks or is_denial(name, event, answer)


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_failure_of_ours_denies_each_gate(name: str, key: str) -> None:
    """The refusal that the installation writes down is a denial, with the reason."""
    bridge, event = bridge_of(name), decoded(name, key)
    answer = json.loads(bridge.refuse(event.name, "why").stdout)
    assert "why" in json.dumps(answer)
    if isinstance(event, CallAsked | PromptGiven):
        assert is_denial(name, event, answer)
        assert bridge.row(event.name).gate


@pytest.mark.parametrize("name", NAMES)
@given(
    payload=st.dictionaries(
        st.sampled_from(["hook", "event", "session", "parent", "directory", "later"]), JSON | st.just({})
    )
)
def test_junk_is_a_bridge_error(name: str, payload: dict[str, Any]) -> None:
    """A payload of a wrong form never gives another error."""
    for hook in (None, *(row.name for row in bridge_of(name).rows)):
        with suppress(BridgeError):
            bridge_of(name).decode(payload if hook is None else {**payload, "hook": hook})


# ---- the events


@pytest.mark.parametrize("name", NAMES)
def test_the_calls_have_our_words(name: str) -> None:
    """A shell, its directory, the session and the ids are those of the agent."""
    for key in payloads(name):
        event = decoded(name, key)
        assert event.cwd == "/w/proj"
        assert event.session_id == "session-1"
        if isinstance(event, CallAsked | CallEnded) and "bash" in (event.tool_name, event.native_name):
            assert event.tool_name == "bash"
            assert "command" in event.input
            assert event.tool_call_id


@pytest.mark.parametrize("name", NAMES)
def test_a_session_has_all_its_events(name: str) -> None:
    """The start, the prompt, the turns and the stop have a word of ours."""
    events = [decoded(name, key) for key in payloads(name)]
    ours = [each for event in events if isinstance(event, EventsReported) for each in event.events]
    kinds = {type(each) for each in ours}
    assert {TurnEnd, TurnStart, AgentEnd} <= kinds
    assert any(isinstance(event, PromptGiven) for event in events)
    assert name == "openclaw" or {each.reason for each in ours if isinstance(each, SessionEvent)} >= {
        "start",
        "shutdown",
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_that_failed_is_an_error(name: str) -> None:
    """An exit code that is not 0, and a file that is missing, are errors in each agent."""
    failed = [
        event for key in payloads(name) if isinstance(event := decoded(name, key), CallEnded) and event.output.is_error
    ]
    assert {event.tool_name for event in failed} == {"bash", "read"}


def test_a_sub_agent_of_opencode_belongs_to_the_session_that_started_it() -> None:
    """Its calls have the id of the sub-agent, and the session of the person."""
    event = decoded("opencode", "tool.execute.before:bash:sub-agent")
    assert isinstance(event, CallAsked)
    assert (event.session_id, event.agent_id) == ("session-1", "session-2")


@pytest.mark.parametrize(
    ("name", "key", "field", "text"),
    [
        ("opencode", "tool.execute.before:bash", "args", "patchText"),
        ("openclaw", "before_tool_call:exec", "params", "input"),
    ],
)
def test_a_patch_is_judged_as_the_files_that_it_changes(name: str, key: str, field: str, text: str) -> None:
    """`apply_patch` is several calls of ours."""
    payload = json.loads(json.dumps(payloads(name)[key]))
    payload["event"] |= {"tool": "apply_patch", "toolName": "apply_patch"}
    payload["event"][field] = {text: "*** Begin Patch\n*** Add File: evil.py\n+x\n*** End Patch"}
    event = bridge_of(name).decode(payload)
    assert isinstance(event, CallAsked)
    assert [(part.tool_name, part.input["path"]) for part in event.parts] == [("write", "evil.py")]


# ---- answers


def test_pi_gets_a_question_with_the_answer_to_a_no() -> None:
    """Title and text are apart, and any answer but yes is a denial."""
    asked = operations("pi", decoded("pi", "tool_call:bash"), ask="Sure?\nIt is a lot.")["ask"]
    assert (asked["title"], asked["message"]) == ("Sure?", "It is a lot.")
    assert asked["no"]["return"]["block"] is True


def test_openclaw_gets_a_question_that_says_that_it_is_cut() -> None:
    """OpenClaw shows 80 and 512 characters, and no answer allows all later calls."""
    asked = operations("openclaw", decoded("openclaw", "before_tool_call:exec"), ask="t" * 100 + "\n" + "x" * 600)
    approval = asked["return"]["requireApproval"]
    assert len(approval["title"]) <= 80
    assert len(approval["description"]) <= 512
    assert approval["description"].endswith("… (600 characters)")
    assert approval["allowedDecisions"] == ["allow-once", "deny"]


def test_a_prompt_of_opencode_is_rewritten_in_its_parts() -> None:
    """The first text is replaced; files, and texts that OpenCode has added, stay."""
    payload = json.loads(json.dumps(payloads("opencode")["chat.message"]))
    first = payload["event"]["parts"][0]
    more = [
        {"type": "file", "url": "a"},
        {"type": "text", "text": "read a", "synthetic": True},
        {**first, "text": "two"},
    ]
    payload["event"]["parts"] += more
    event = bridge_of("opencode").decode(payload)
    assert isinstance(event, PromptGiven)
    assert event.prompt == f"{first['text']}\ntwo"
    parts = operations("opencode", event, prompt="other", context=("more",))["assign"]["parts"]
    assert parts == [{**first, "text": "other\n\nmore"}, more[0], more[1]]


def test_a_changed_result_of_opencode_changes_the_copies_of_its_text() -> None:
    """The screen does not show a text that a hook has removed."""
    changed = operations("opencode", decoded("opencode", "tool.execute.after:bash"), output=ToolOutput("clean"))[
        "assign"
    ]
    assert changed["output"] == changed["metadata"]["output"] == "clean"
    assert changed["metadata"]["exit"] == 0


def test_a_result_of_an_mcp_server_keeps_its_form() -> None:
    """OpenCode gives the tools of MCP servers content blocks."""
    payload = json.loads(json.dumps(payloads("opencode")["tool.execute.after:bash"]))
    for key in ("title", "metadata", "output"):
        del payload["event"][key]
    payload["event"] |= {"tool": "probe_echo", "content": [{"type": "text", "text": "hi"}], "isError": False}
    event = bridge_of("opencode").decode(payload)
    assert isinstance(event, CallEnded)
    assert event.output.content == [TextContent("hi")]
    changed = operations("opencode", event, output=ToolOutput("clean"))["assign"]
    assert changed == {"content": [{"type": "text", "text": "clean"}], "isError": False}


@pytest.mark.parametrize(("name", "key"), [("pi", "tool_result:bash"), ("opencode", "tool.execute.after:bash")])
def test_a_text_that_waited_is_in_the_answer_to_the_result(name: str, key: str) -> None:
    """The plugin sends the text with the result, and gets it back as a part of it."""
    event = bridge_of(name).decode({**payloads(name)[key], "later": "remember"})
    answer = operations(name, event)
    assert "remember" in json.dumps(answer)
    assert isinstance(event, CallEnded)
    assert "remember" not in event.output.text


@pytest.mark.parametrize(("name", "key"), [("opencode", "session.idle"), ("pi", "agent_before_settle")])
def test_a_stop_that_is_final_keeps_no_agent_going(name: str, key: str) -> None:
    """`opencode run` ends, and a person may have stopped the agent: a hook that wants more is told to the person."""
    payload = payloads(name)[key]
    event = bridge_of(name).decode({**payload, "event": {**payload["event"], "final": "it is over"}})
    assert not event.takes_context
    answer = operations(name, event, go_on="more")
    assert answer.keys() == {"notes"}
    assert "it is over" in answer["notes"]["message"]
    assert "more" in answer["notes"]["message"]
    goes_on = bridge_of(name).decode({**payload, "event": {**payload["event"], "final": None}})
    assert "more" in json.dumps(operations(name, goes_on, go_on="more"))
    assert "notes" not in operations(name, goes_on, go_on="more")


# ---- settings


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "settings", [{}, {"theme": "dark"}, {"plugins": {"entries": {"x": {}}}, "plugin": ["a"], "extensions": ["b"]}]
)
def test_the_settings_name_the_plugin_once(name: str, settings: dict[str, Any]) -> None:
    """Installing twice is installing once, and uninstalling gives the settings back."""
    bridge, path = bridge_of(name), f"/home/me/.agent/bridges/agent-hooks-{name}.mjs"
    before = json.dumps(settings)
    installed = bridge.install(settings, [path], [])
    assert json.dumps(settings) == before
    assert bridge.install(installed, [path], []) == installed
    assert json.dumps(installed).count(f"agent-hooks-{name}.mjs") == 1
    assert {entry.command for entry in bridge.installed(installed)} == {(path,)}
    assert [entry.event for entry in bridge.installed(installed)] == [row.name for row in bridge.rows]
    assert bridge.uninstall(installed) == settings
    assert bridge.installed(settings) == []


@pytest.mark.parametrize("name", NAMES)
def test_another_path_of_the_plugin_is_replaced(name: str) -> None:
    """A plugin that has moved is named once."""
    bridge = bridge_of(name)
    moved = bridge.install(
        bridge.install({}, [f"/old/agent-hooks-{name}.mjs"], []), [f"/new/agent-hooks-{name}.mjs"], []
    )
    assert "/old" not in json.dumps(moved)


def test_openclaw_allows_the_plugin_where_it_has_a_list_of_those_that_it_allows() -> None:
    """Without such a list none is made, because it would forbid all others."""
    bridge, path = bridge_of("openclaw"), "/x/agent-hooks-openclaw.mjs"
    assert "allow" not in bridge.install({}, [path], [])["plugins"]
    installed = bridge.install({"plugins": {"allow": ["mine"]}}, [path], [])
    assert installed["plugins"]["allow"] == ["mine", "agent-hooks-openclaw"]
    assert bridge.uninstall(installed) == {"plugins": {"allow": ["mine"]}}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "wrong", [{"extensions": 3, "plugin": "x", "plugins": []}, {"plugins": {"load": 3}, "extensions": {}, "plugin": 1}]
)
def test_settings_of_a_wrong_form_are_an_error_that_names_the_place(name: str, wrong: dict[str, Any]) -> None:
    """They have no entries."""
    bridge = bridge_of(name)
    assert bridge.installed(wrong) == []
    with pytest.raises(BridgeError, match=bridge.listed[0]):
        bridge.install(wrong, ["/x/agent-hooks.mjs"], [])


def test_the_settings_of_openclaw_have_a_variable_of_their_own() -> None:
    """The variable of the file counts more than that of the directory."""
    bridge = bridge_of("openclaw")
    directory = {"OPENCLAW_STATE_DIR": "/state"}
    assert bridge.settings_files({}) == {"user": "~/.openclaw/openclaw.json"}
    assert bridge.settings_files(directory) == {"user": "/state/openclaw.json"}
    assert bridge.settings_files({**directory, "OPENCLAW_CONFIG_PATH": "/my.json"}) == {"user": "/my.json"}
