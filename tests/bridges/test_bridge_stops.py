"""A hook ends the run of another agent, and adds texts for its model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import AddContext, Ask, Continue, HookAPI, HookRunner, LoadedHook, Replace, Rewrite, Stop
from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base.happenings import CallAsked, EventsReported, Happening
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.claude_code import ClaudeCode
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.values.events import SessionEvent
from support import hook_of, hook_on

pytestmark = pytest.mark.anyio
PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent / "claude_code.json").read_text())
CLAUDE = ClaudeCode()


def asked(command: str = "ls", **fields: Any) -> Happening:
    """Return the happening of a call of Bash."""
    return CLAUDE.decode({**PAYLOADS["PreToolUse:Bash"], "tool_input": {"command": command}, **fields})


def ended(**fields: Any) -> Happening:
    """Return the happening of a result of Bash."""
    return CLAUDE.decode({**PAYLOADS["PostToolUse:Bash"], **fields})


def prompt(text: str = "go on") -> Happening:
    """Return the happening of a prompt."""
    return CLAUDE.decode({**PAYLOADS["UserPromptSubmit"], "prompt": text})


async def verdicts(*hooks: LoadedHook, happenings: list[Happening], resident: bool = True) -> list[Verdict]:
    """Return the verdicts on the happenings of one session, in order."""
    ui = BridgeUI()
    async with HookRunner(hooks, cwd="/w/proj", ui=ui, mode="bridge") as runner:
        bridging = Bridging(runner, ui, resident=resident)
        return [await bridging.answer(each) for each in happenings]


def stops_at(command: str, path: str = "hook.py") -> LoadedHook:
    """Return a hook that ends the run at a command."""
    answer = Stop("enough")
    return hook_on(
        "tool_call", lambda event, ctx: answer if event.input["command"] == command else None, path=path, inline=True
    )


async def test_a_stop_denies_the_call_and_each_later_call_until_the_next_prompt() -> None:
    """Also where the agent goes on; no hook judges the later calls."""
    judged: list[str] = []
    other = hook_on("tool_call", lambda event, ctx: judged.append(event.input["command"]), path="b.py", inline=True)
    happenings = [asked("one"), asked("two"), asked("three"), prompt(), asked("four")]
    _, two, three, _, four = await verdicts(other, stops_at("two"), happenings=happenings)
    text = "the run was stopped: enough (hook.py)"
    assert (two.block, two.stop) == (text, text)
    assert (three.block, three.stop) == ("not run, because the run was stopped: enough (hook.py)", text)
    assert (four.block, four.stop) == (None, None)
    assert judged == ["one", "two", "four"]


async def test_a_stop_is_about_one_session() -> None:
    """Another session of the same server goes on."""
    happenings = [asked("two"), asked("three", session_id="another")]
    assert (await verdicts(stops_at("two"), happenings=happenings))[1] == Verdict()


async def test_a_stop_beats_a_question_and_a_rewrite_there_too() -> None:
    """The verdict has neither."""

    def register(api: HookAPI) -> None:
        api.on("before_tool_call", lambda event, ctx: Rewrite({"command": "other"}), inline=True)
        api.on("tool_call", lambda event, ctx: Ask("Shall it?"), inline=True)
        api.on("tool_call", lambda event, ctx: Stop("enough"), inline=True)

    [verdict] = await verdicts(hook_of(register), happenings=[asked()])
    assert (verdict.ask, verdict.input) == (None, None)
    assert verdict.block == verdict.stop


async def test_a_stop_from_a_result_or_a_turn_ends_the_run_after_it() -> None:
    """The result stays, with the changes of other hooks."""

    def register(api: HookAPI) -> None:
        api.on("tool_result", lambda event, ctx: Stop("enough"), inline=True)
        api.on("tool_result", lambda event, ctx: Replace(content="short"), inline=True)

    result, later = await verdicts(hook_of(register), happenings=[ended(), asked()])
    assert result.output is not None
    assert (result.output.text, result.block) == ("short", None)
    assert result.stop == "the run was stopped: enough (hook.py)"
    assert later.block is not None

    turn = CLAUDE.decode(PAYLOADS["PostToolBatch"])
    over, later = await verdicts(
        hook_on("turn_end", lambda event, ctx: {"stop": "a turn is enough"}, inline=True), happenings=[turn, asked()]
    )
    assert over.stop == "the run was stopped: a turn is enough (hook.py)"
    assert later.block is not None


async def test_no_hook_keeps_a_stopped_agent_going() -> None:
    """The person reads which hook wanted it."""
    stop = CLAUDE.decode(PAYLOADS["Stop"])
    more = hook_on("agent_end", lambda event, ctx: Continue("go on"), path="more.py", inline=True)
    _, end = await verdicts(stops_at("ls"), more, happenings=[asked(), stop])
    assert end.go_on is None
    assert end.messages == ("the agent stops here, because a hook has stopped the run; more.py wants it to go on",)


async def test_a_text_comes_beside_the_result_which_is_not_replaced() -> None:
    """The agent keeps its own result, and its model gets the text as context."""
    hook = hook_on("tool_result", lambda event, ctx: AddContext("mind the gap"), inline=True)
    [verdict] = await verdicts(hook, happenings=[ended()])
    assert verdict == Verdict(context=("mind the gap",))
    [answer] = [json.loads(CLAUDE.encode(ended(), verdict).stdout)]
    assert answer == {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "mind the gap"}}


async def test_the_prompt_is_known_and_texts_come_with_it() -> None:
    """A text for a session's start comes with that event, and one for a prompt with the prompt."""

    def register(api: HookAPI) -> None:
        api.on(
            "session", lambda event, ctx: AddContext("house rules") if event.reason == "start" else None, inline=True
        )
        api.on("agent_start", lambda event, ctx: AddContext(f"asked: {event.prompt}"), inline=True)

    start = CLAUDE.decode(PAYLOADS["SessionStart:startup"])
    first, second = await verdicts(hook_of(register), happenings=[start, prompt("why?")])
    assert (first.context, second.context) == (("house rules",), ("asked: why?",))


async def test_a_text_that_an_event_cannot_take_waits_for_one_that_can_and_keeps_no_agent_going() -> None:
    """After a compaction the next prompt has the text, and a stop in between does not: the agent would go on."""
    compact = EventsReported(
        name="PostCompact", native={}, session_id="s", events=(SessionEvent(reason="compact", from_hook=False),)
    )
    stop = CLAUDE.decode(PAYLOADS["Stop"])
    assert stop.takes_context
    hook = hook_on(
        "session", lambda event, ctx: AddContext("again") if event.reason == "compact" else None, inline=True
    )
    found = await verdicts(hook, happenings=[compact, stop, prompt()])
    assert [each.context for each in found] == [(), (), ("again",)]
    [alone] = await verdicts(hook, happenings=[compact], resident=False)
    assert alone.context == ("again",)


async def test_each_file_of_a_patch_adds_its_text() -> None:
    """A text that two parts have in common comes once."""
    codex = open_bridge("codex")
    payloads = json.loads((Path(__file__).parent / "codex.json").read_text())
    [name] = [key for key in payloads if key.startswith("PostToolUse") and "patch" in key.lower()][:1]
    patch = codex.decode(payloads[name])
    hook = hook_on("tool_result", lambda event, ctx: AddContext("checked"), inline=True)
    [verdict] = await verdicts(hook, happenings=[patch])
    assert verdict.context == ("checked",)


STOPPED = Verdict(block="no", stop="the run was stopped: no")


@pytest.mark.parametrize("name", sorted(BRIDGES))
def test_a_stop_is_beside_a_denial_only_where_the_denial_holds(name: str) -> None:
    """Real runs have shown it in the agents of this table; the others deny, and state the limit."""
    # Claude Code: `continue: false` alone lets the tool run, and beside the denial the tool does not run.
    ends: dict[str, dict[str, object]] = {
        "claude-code": {"continue": False, "stopReason": STOPPED.stop},
        "gemini-cli": {"continue": False, "stopReason": STOPPED.stop},
        "pi": {"stop": STOPPED.stop, "notes": {"stop": STOPPED.stop}},
        "opencode": {"stop": STOPPED.stop, "notes": {"stop": STOPPED.stop}},
    }
    bridge = open_bridge(name)
    facts = bridge.facts("/project", {})
    call = bridge.decode_as(facts.event, dict(facts.sample))
    assert isinstance(call, CallAsked)
    denial = json.loads(bridge.encode(call, Verdict(block="no")).stdout)
    assert json.loads(bridge.encode(call, STOPPED).stdout) == {**denial, **ends.get(name, {})}
    assert ("stop" in bridge.limits) == (name not in ends)


def test_where_an_event_takes_no_stop_the_person_reads_that_later_calls_are_denied() -> None:
    """After a tool that failed, Claude Code goes on."""
    failure = CLAUDE.decode(PAYLOADS["PostToolUseFailure:Bash"])
    answer = json.loads(CLAUDE.encode(failure, Verdict(stop="the run was stopped: no")).stdout)
    assert answer == {"systemMessage": "the run was stopped: no; each later call is denied until the next prompt"}
    assert "stop" in CLAUDE.gaps
