"""The engine for hook commands: the rules that hold for each agent, on the payloads that each agent really sent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_hooks import HookContext, HookRunner, ToolCall, ToolOutput
from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, EventsReported, Happening, PermissionAsked
from agent_hooks.bridges.base.installation import PROCESS
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.base.words import BridgeError, ToolWords, parse_payload
from agent_hooks.bridges.command import CommandBridge
from agent_hooks.bridges.command_settings import OR_DENY, CommandSettings
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.bridges.tables import MESSAGE, VALUE, Fields, Layout, Row, nested
from agent_hooks.testing import check_bridge
from agent_hooks.values.events import AgentEnd
from bridge_checking import check_reply
from support import hook_on

_DENY = {"decision": "deny", "why": VALUE}


class Toy(CommandBridge):
    """An agent that is odd in each way: flat entries, milliseconds, payloads without names, merged rewrites, no ask."""

    name, title, program, tested = "toy", "Toy", "toy", "1.0"
    here, project_variable, process_variable = "TOY", "TOY_PROJECT", PROCESS
    timeout = 20
    merges = True
    fields = Fields(event="", session="sessionId", tool="tool", input="args", result="out", continued="loops", call="")
    rows = (
        Row("before", "call", {"block": _DENY, "input": {"args": VALUE}, "allow": {"decision": "allow"}, **MESSAGE}),
        Row("after", "result", {"output": {"out": VALUE}, "context": {"more": VALUE}}),
        Row("broke", "failure", {"context": {"more": VALUE}}),
        Row("prompt", "prompt", {"block": _DENY, **MESSAGE}),
        Row("begin", "start", MESSAGE),
        Row("done", "stop", {"go_on": {"again": VALUE}}),
        Row("shrink", "before_compact", MESSAGE),
        Row("leave", "end", timeout=900),
    )
    layout = Layout(
        files={"project": ".toy/hooks.json", "user": "{home}/hooks.json"},
        home=("TOY_HOME", "~/.toy"),
        flat=True,
        command="run",
        timeout="ms",
        unit="ms",
        longest=120,
        entry={},
        every_tool=(None,),
        top={"version": 1},
        off=("hooks_off",),
    )
    tools: tuple[ToolWords, ...] = (ToolWords("shell", "bash", {"cmd": "command"}),)
    limits = {  # noqa: RUF012  # the class is for tests
        "ask": "Toy asks no person",
        "context_before": "Toy takes no text there",
        "prompt_context": "Toy takes no text there",
        "session_context": "Toy takes no text there",
        "cancel_compaction": "Toy compacts always",
        "stop": "Toy goes on always",
    }


TOY = Toy()
COMMON = {"sessionId": "s", "cwd": "/w"}
TOYS: dict[str, dict[str, Any]] = {
    "before": {**COMMON, "tool": "shell", "args": {"cmd": "ls", "quiet": True}},
    "after": {**COMMON, "tool": "shell", "args": {"cmd": "ls"}, "out": "a\nb"},
    "broke": {**COMMON, "tool": "shell", "args": {"cmd": "ls"}, "error": "no"},
    "prompt": {**COMMON, "prompt": "hello"},
    "begin": {**COMMON, "source": "startup"},
    "done": {**COMMON, "loops": 0},
    "shrink": COMMON,
    "leave": COMMON,
}


def payloads_of(name: str) -> dict[str, Any]:
    """Return the payloads that an agent sent, by event."""
    path = Path(__file__).parent / f"{name.replace('-', '_')}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def events_of(bridge: CommandBridge, payloads: dict[str, Any]) -> list[tuple[CommandBridge, Happening]]:
    """Return each payload's happening."""
    return [(bridge, bridge.decode(payload, name.partition(":")[0])) for name, payload in payloads.items()]


# Agents with a plugin have operations instead of an answer.
NAMES = [name for name in BRIDGES if isinstance(open_bridge(name), CommandBridge) and not open_bridge(name).plugin]
BY_COMMANDS = [bridge for name in NAMES if isinstance(bridge := open_bridge(name), CommandBridge)]
PAYLOADS = {TOY.name: TOYS, **{name: payloads_of(name) for name in NAMES}}
EVENTS = [each for bridge in (TOY, *BY_COMMANDS) for each in events_of(bridge, PAYLOADS[bridge.name])]

# Surrogates are wanted: a file's name can hold one.
TEXTS = st.text(st.characters(), max_size=8)
INPUTS = st.dictionaries(TEXTS, TEXTS | st.integers() | st.lists(TEXTS, max_size=2), max_size=3)
VERDICTS = st.builds(
    Verdict,
    block=st.none() | TEXTS,
    ask=st.none() | TEXTS,
    allow=st.booleans(),
    input=st.none() | INPUTS,
    output=st.none() | st.builds(ToolOutput, TEXTS),
    go_on=st.none() | TEXTS,
    context=st.lists(TEXTS, max_size=2).map(tuple),
    messages=st.lists(TEXTS, max_size=2).map(tuple),
)


@given(event=st.sampled_from(EVENTS), answer=VERDICTS)
@example(
    event=next(each for each in EVENTS if isinstance(each[1], PermissionAsked)), answer=Verdict(ask="", allow=True)
)
def test_a_reply_is_made_of_the_templates_of_its_event(event: tuple[CommandBridge, Happening], answer: Verdict) -> None:
    """Any verdict on any event is one JSON object without a key of its own; only an allow allows; a block denies."""
    check_reply(*event, answer)


def test_the_engine_passes_the_conformance_suite_with_every_oddity() -> None:
    """The suite judges an agent by its limits."""
    check_bridge(TOY, TOYS)


def test_the_variables_that_a_table_names_are_sent() -> None:
    """Without the variable by which it knows its agent, the resident process would answer nothing at all."""
    assert Toy.environment == ("TOY", "TOY_PROJECT", PROCESS, "TOY_HOME")
    facts = TOY.facts("/w", {})
    assert TOY.runs_here({name: facts.environment[name] for name in TOY.environment if name in facts.environment})


def test_the_suite_names_a_variable_that_is_not_sent() -> None:
    """A bridge that reads another variable than it lists judges no event in a real agent."""
    bridge = Toy()
    bridge.environment = ("TOY_HOME",)
    with pytest.raises(AssertionError, match="runs_here reads a variable that environment lacks"):
        check_bridge(bridge, TOYS)


def test_the_sample_call_is_in_the_words_of_the_agent() -> None:
    """The doctor tries the gate with the arguments that the agent itself would send."""
    sample = TOY.facts("/w", {}).sample
    assert (sample["tool"], sample["args"]) == ("shell", {"cmd": "true"})


def test_an_agent_without_a_shell_has_a_sample_call() -> None:
    """The doctor then asks about a tool that the agent lacks, and the gate answers all the same."""
    bridge = Toy()
    bridge.tools = ()
    check_bridge(bridge, TOYS)


@pytest.mark.parametrize(
    "power", ["ask", "context_before", "prompt_context", "session_context", "cancel_compaction", "stop"]
)
def test_the_suite_names_a_limit_that_the_table_lacks(power: str) -> None:
    """Without the limit, hooks are promised a power that they do not have."""
    bridge = Toy()
    bridge.limits = {name: why for name, why in Toy.limits.items() if name != power}
    with pytest.raises(AssertionError, match=r"disagrees?|lost|is missing"):
        check_bridge(bridge, TOYS)


@pytest.mark.parametrize("power", ["rewrite", "context_after"])
def test_the_suite_names_a_limit_that_is_none(power: Any) -> None:
    """The table says that hooks cannot do it, and the reply does it."""
    bridge = Toy()
    bridge.limits = {**Toy.limits, power: "made up"}
    with pytest.raises(AssertionError, match=r"before|after"):
        check_bridge(bridge, TOYS)


# ---- answers that an agent cannot take ---------------------------------------------------------------------------------


def said(event: str, payload: dict[str, Any] | None = None, **answer: Any) -> Any:
    """Return the toy's reply to a verdict."""
    happening = TOY.decode(payload or TOYS[event], event)
    return json.loads(TOY.encode(happening, Verdict(**answer)).stdout)


def test_an_answer_that_the_agent_does_not_take_is_a_denial_in_its_words() -> None:
    """The reason has the question, or the call that was meant."""
    assert said("before", ask="May it run?") == {"decision": "deny", "why": "May it run?"}
    assert said("before", block="") == {"decision": "deny", "why": "a hook gave no reason"}
    whole = said("before", input={"command": "ls -l", "quiet": True})
    assert whole == {"args": {"cmd": "ls -l", "quiet": True}}
    fewer = said("before", input={"command": "ls -l"})
    assert fewer["decision"] == "deny"
    assert "took quiet away" in fewer["why"]
    assert 'shell {"cmd": "ls -l"}' in fewer["why"]
    assert said("before", allow=True) == {"decision": "allow"}
    assert said("before", allow=True, ask="?")["decision"] == "deny"


def test_a_text_that_has_no_place_goes_to_the_person_or_nowhere() -> None:
    """A key that the agent does not know is never printed."""
    assert said("before", context=("x",)) == {
        "systemMessage": "not given to the model, because before takes no text now: x"
    }
    assert said("leave", messages=("y",)) == {}
    assert said("broke", output=ToolOutput("changed")) == {"more": "changed"}
    assert "lets no hook stop it: no" in said("shrink", block="no")["systemMessage"]
    assert said("after", output=ToolOutput("new"), context=("a", "b")) == {"out": "new", "more": "a\n\nb"}


def test_a_text_at_a_first_stop_keeps_the_agent_going() -> None:
    """Where stops take no text of their own, it is joined with that of the Continue."""
    assert said("done", context=("x",)) == {"again": "x"}
    assert said("done", go_on="run", context=("x",)) == {"again": "run\n\nx"}
    later = {**TOYS["done"], "loops": 3}
    assert said("done", later, context=("x",)) == {}
    happening = TOY.decode(later, "done")
    assert isinstance(happening, EventsReported)
    assert [each.continued for each in happening.events if isinstance(each, AgentEnd)] == [3]


def test_a_question_of_an_agent_without_questions_denies_through_the_whole_driver() -> None:
    """`refuse` denies a gate and an unknown event, and shows a person why a session starts badly."""
    for event in ("before", "prompt", None):
        assert json.loads(TOY.refuse(event, "why").stdout) == {"decision": "deny", "why": "why"}
    assert json.loads(TOY.refuse("begin", "why").stdout) == {"systemMessage": "why"}
    for event in ("after", "leave", "of a newer version"):
        assert json.loads(TOY.refuse(event, "why").stdout) == {}


# ---- settings ----------------------------------------------------------------------------------------------------------


def test_an_entry_has_the_agents_keys_and_its_unit() -> None:
    """A timeout is at most as long as the agent takes; without one, the agent's own counts."""
    settings = TOY.install({}, ["/py", "a b"], [row.name for row in TOY.rows])
    assert settings["version"] == 1
    hooks = settings["hooks"]
    assert hooks["before"] == [{"run": f"{PROCESS}=$PPID /py 'a b' before{OR_DENY}", "ms": 120_000}]
    assert hooks["begin"] == [{"run": f"{PROCESS}=$PPID /py 'a b' begin || exit 0"}]
    assert hooks["leave"][0]["ms"] == 120_000
    assert {row.name: row.timeout for row in TOY.describe()} == {
        **dict.fromkeys(("before", "after", "broke", "prompt", "leave"), 120),
        **dict.fromkeys(("begin", "done", "shrink")),
    }
    limited = {"hooks": {"before": [{**hooks["before"][0], "matcher": "shell"}]}}
    # This entry is known by nothing but its command, which is none of ours.
    assert list(TOY.installed(limited)) == []


def test_the_settings_of_each_target_and_the_switch() -> None:
    """An agent may have any of the three."""
    assert TOY.settings_files({}) == {"project": ".toy/hooks.json", "user": "~/.toy/hooks.json"}
    assert TOY.settings_files({"TOY_HOME": "/h"})["user"] == "/h/hooks.json"
    assert [each.text for each in TOY.hindrances("x", {"hooks_off": True}, "/p")] == [
        "hooks_off is on: Toy runs no hook"
    ]
    assert not TOY.hindrances("x", {"hooks_off": False}, "/p")
    assert TOY.runs_here({"TOY": "1"})
    assert not TOY.runs_here({})


@pytest.mark.parametrize("bridge", [TOY, *BY_COMMANDS], ids=lambda bridge: str(bridge.name))
@pytest.mark.parametrize("shape", [None, 3, "x", [], {}, [3], [{}], [{"hooks": 3}], [{"hooks": [3, {}]}]])
def test_settings_of_a_wrong_form_break_nothing(bridge: Bridge, shape: Any) -> None:
    """They have no entry of ours, and are kept or refused with the place."""
    event = bridge.describe()[0].name
    for settings in ({"hooks": shape}, {"hooks": {event: shape}}):
        assert list(bridge.installed(settings)) == []
        if not isinstance(shape, dict) and (settings["hooks"] is shape or not isinstance(shape, list)):
            with pytest.raises(BridgeError, match="'hooks' must be an object of lists"):
                bridge.install(settings, ["/py"], [event])


@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_is_missing_denies(name: str) -> None:
    """The line of a gate ends so that the shell denies; no other event does anything."""
    bridge = open_bridge(name)
    assert isinstance(bridge, CommandSettings)
    for command in (
        ["/nothing/here/python", f"/x/bridges/agent-hooks-{name}.py"],
        ["agent-hooks-is-not-there", "bridge", name],
    ):
        gate = next(row for row in bridge.describe() if row.gate)
        [found] = bridge.found(bridge.install({}, command, [gate.name]))
        layout = bridge.layout
        if layout.args in found.entry or not layout.exits:
            assert layout.gate.items() <= found.entry.items()
            continue
        done = subprocess.run(
            ["sh", "-c", found.entry[layout.command]], capture_output=True, timeout=30, check=False, env={}
        )
        # Some agents want a reason too.
        assert (done.returncode, bool(done.stderr)) == (2, True)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_is_missing_keeps_no_agent_going(name: str, tmp_path: Path) -> None:
    """Python exits with 2 without its file, which agents take for the wish of a hook to go on, some for ever."""
    bridge = open_bridge(name)
    assert isinstance(bridge, CommandBridge)
    command = [sys.executable, "-I", "-S", str(tmp_path / "bridges" / f"agent-hooks-{name}.py")]
    stops = [row.name for row in bridge.rows if row.kind in ("stop", "before_compact")]
    for found in bridge.found(bridge.install({}, command, stops)):
        if bridge.layout.args in found.entry:
            # Claude Code ends such a row itself.
            assert bridge.stop_limit
            continue
        line = found.entry[bridge.layout.command]
        done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=30, check=False, env={})
        assert (done.returncode, done.stdout) == (0, b"")


# ---- payloads that are wrong, or of another version --------------------------------------------------------------------


def gate_of(bridge: CommandBridge) -> tuple[str, dict[str, Any]]:
    """Return a gate of an agent, and a payload of it."""
    for name, payload in PAYLOADS[bridge.name].items():
        event = name.partition(":")[0]
        if isinstance(bridge.decode(payload, event), CallAsked):
            return event, payload
    raise AssertionError(f"{bridge.name} has no payload of a gate")


@pytest.mark.parametrize("bridge", [TOY, *BY_COMMANDS], ids=lambda bridge: str(bridge.name))
def test_a_payload_that_is_cut_off_or_lacks_a_field_denies_at_a_gate(bridge: CommandBridge) -> None:
    """The error names the field, and the version of the agent that we know."""
    event, payload = gate_of(bridge)
    raw = json.dumps(payload).encode()
    for end in range(0, len(raw), 7):
        with pytest.raises(BridgeError):
            bridge.decode_as(event, parse_payload(raw[:end]))
    for field in (bridge.fields.tool, bridge.fields.input):
        for wrong in ({}, {field: 3}, {field: None}, {field: ["x"]}):
            changed = {key: value for key, value in payload.items() if key != field} | wrong
            with pytest.raises(BridgeError, match=rf"{field} must be .*{bridge.title} {bridge.tested}"):
                bridge.decode_as(event, changed)
    denial = msgspec.json.decode(bridge.refuse(event, "half \ud800").stdout)
    assert "half \ufffd" in str(denial)


@given(
    event=st.sampled_from([(bridge, event) for bridge in (TOY, *BY_COMMANDS) for event in PAYLOADS[bridge.name]]),
    changes=st.dictionaries(
        st.sampled_from(sorted({value for value in msgspec.structs.asdict(Fields()).values() if value})),
        st.none() | st.booleans() | st.integers() | TEXTS | st.lists(TEXTS, max_size=2) | INPUTS,
        max_size=4,
    ),
)
def test_any_payload_is_a_happening_or_an_error_of_the_bridge(
    event: tuple[CommandBridge, str], changes: dict[str, Any]
) -> None:
    """A field may have any value in another version; the happening can be answered."""
    bridge, name = event
    try:
        happening = bridge.decode({**PAYLOADS[bridge.name][name], **changes}, name.partition(":")[0])
    except BridgeError:
        return
    check_reply(bridge, happening, Verdict(block="no", messages=("m",)))
    check_reply(bridge, happening, Verdict(ask="?", output=ToolOutput("x"), context=("c",)))


@pytest.mark.parametrize("bridge", BY_COMMANDS, ids=lambda bridge: str(bridge.name))
@pytest.mark.parametrize("change", [str.upper, str.title, lambda name: f" {name}\n"])
async def test_a_gate_of_a_tool_judges_its_name_in_other_letters(bridge: CommandBridge, change: Any) -> None:
    """An agent may run the tool all the same."""

    def deny(event: ToolCall, ctx: HookContext) -> dict[str, Any]:
        return {"block": True, "reason": f"{event.tool_name} {event.input['command']}"}

    event, payload = gate_of(bridge)
    shell = next(words.theirs for words in bridge.tools if words.ours == "bash")
    odd = {**payload, bridge.fields.tool: change(shell), bridge.fields.input: {"command": "ls"}}
    ui = BridgeUI(attended=False)
    async with HookRunner([hook_on("tool_call", deny, tool="bash")], cwd="/w", ui=ui, mode="bridge") as runner:
        verdict = await Bridging(runner, ui, attended=False).answer(bridge.decode(odd, event))
    assert verdict.block is not None
    assert "bash ls" in verdict.block


def test_results_of_each_shape_are_text_for_hooks() -> None:
    """A result of an unknown shape is its JSON, in which a secret can be hidden too."""
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    for response, text, is_error in (
        ("a", "a", False),
        (None, "", False),
        ({"content": [{"type": "text", "text": "a"}], "isError": True}, "a", True),
        ({"llmContent": "a", "error": {"message": "m"}}, "a", True),
        ({"llmContent": [{"text": "a"}, "b"]}, "a\nb", False),
        ({"llmContent": {"odd": 1}}, '{"odd": 1}', False),
        ({"textResultForLlm": "a", "resultType": "success"}, "a", False),
        ({"text_result_for_llm": "a", "result_type": "failure"}, "a", True),
        ({"stdout": "a", "stderr": "b"}, "a\nb", False),
        ([picture, "a"], "a", False),
        ({"other": ["é"]}, '{"other": ["é"]}', False),
        (3, "3", False),
    ):
        call = TOY.decode({**TOYS["after"], "out": response}, "after")
        assert isinstance(call, CallEnded)
        assert (call.output.text, call.output.is_error) == (text, is_error), response
    assert nested(a=VALUE)["hookSpecificOutput"]["a"] is VALUE
