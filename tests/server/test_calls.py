"""The calls and prompts of one session: the facts that an agent leaves out, and the tripwire."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import (
    AgentEnd,
    BeforeToolCall,
    Block,
    Continue,
    HookContext,
    HookRunner,
    LoadedHook,
    Rewrite,
    ToolCall,
)
from agent_hooks.bridges.base import Bridge
from agent_hooks.bridges.base.happenings import Happening
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.claude_code import ClaudeCode
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.server import journal, memory
from agent_hooks.server.calls import Calls
from agent_hooks.server.journal import Journal, alarms, forget_starts, remove_old
from agent_hooks.testing import RecordedEvents
from agent_hooks.values.answers import CONTINUE_LIMIT
from support import hook_on


class Silent(ClaudeCode):
    """An agent that sends no ids of calls, does not report continues, and returns their texts as prompts."""

    name = "silent"
    returns_continue = True
    unasked = ("exec",)

    @property
    def reports_continues(self) -> bool:
        """Whether it reports them."""
        return False


CLAUDE, SILENT = ClaudeCode(), Silent()


async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
    """Deny one command."""
    return Block("no") if event.input.get("command") == "denied" else None


GATE = hook_on("tool_call", gate)


class Session:
    """One session of an agent: `verdict = await session("PreToolUse", command="ls")`; `restart` is that of the server."""

    def __init__(self, *hooks: LoadedHook, bridge: Bridge = CLAUDE, id: str = "s", is_recorded: bool = True) -> None:
        self.bridge = bridge
        self.id = id
        self.ui = BridgeUI()
        self.runner = HookRunner(hooks, cwd="/", ui=self.ui, mode="bridge", session_id=id)
        # The records listen to the events too.
        if is_recorded:
            self.recorded = RecordedEvents(self.runner)
        self.restart()

    def restart(self) -> None:
        """Forget all that is in memory."""
        self.calls = Calls(self.bridge)
        self.bridging = Bridging(self.runner, self.ui, resident=True)

    async def __call__(self, name: str, *, command: str = "ls", id: str | None = "c1", **fields: Any) -> Verdict:
        """Return the verdict on an event."""
        call: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_response": "done"}
        call |= {} if id is None else {"tool_use_id": id}
        call |= {"stop_hook_active": False} if name == "Stop" else {}
        given = {
            **(call if "Tool" in name or name in ("PermissionRequest", "Stop") else {}),
            "session_id": self.id,
            **fields,
        }
        happening = self.bridge.decode({**given, "hook_event_name": name})
        return await self.calls.answer(self.complete(happening), self.bridging)

    def complete(self, happening: Happening) -> Happening:
        """Return the complete happening."""
        return self.calls.complete(happening)

    async def start(self) -> Session:
        """Let the session start."""
        await self("SessionStart", source="startup")
        return self

    def ids(self, kind: str) -> list[str]:
        """Return the ids of the calls in the events of a kind."""
        return [event.tool_call_id for event in self.recorded.of(kind)]


@pytest.fixture(autouse=True)
def _home(home: Path) -> None:
    """Keep the journals of these tests in an empty home."""


@contextmanager
def listening(session: Session) -> Iterator[list[str]]:
    """Give the names of the events that a session emits in the block."""
    before = len(session.recorded.types)
    names: list[str] = []
    yield names
    names += session.recorded.types[before:]


# ---- the tripwire ----------------------------------------------------------------------------------------------------


async def test_a_result_of_a_call_that_was_never_judged_blocks_what_follows() -> None:
    """Calls, prompts and questions are blocked, and the person gets the reason and the remedy."""
    session = await Session(GATE).start()
    assert await session("PreToolUse") == Verdict()
    assert await session("PostToolUse") == Verdict()
    told = await session("PostToolUse", id="unknown")
    (message,) = told.messages
    assert "Bash ran without having been judged" in message
    assert "agent-hooks doctor --clear-alarm" in message
    for name, fields in (
        ("PreToolUse", {"id": "c3"}),
        ("UserPromptSubmit", {"prompt": "x"}),
        ("PermissionRequest", {}),
    ):
        verdict = await session(name, **fields)
        assert verdict.block is not None, name
        assert "the tripwire has stopped this session" in verdict.block
    assert session.ids("after_tool_call")[-1] == "c3"
    (alarm,) = alarms().values()
    assert (alarm.agent, alarm.session, alarm.tool) == ("claude-code", "s", "Bash")


async def test_an_alarm_outlives_the_server_and_ends_with_its_file() -> None:
    """Another session is free; so is this one after a person has lifted the alarm."""
    session = await Session(GATE).start()
    await session("PostToolUse", id="unknown")
    session.restart()
    assert (await session("PreToolUse")).block is not None
    other = await Session(GATE, id="other").start()
    assert await other("PreToolUse") == Verdict()
    for path in alarms():
        os.unlink(path)
    assert await session("PreToolUse") == Verdict()
    assert await session("PostToolUse") == Verdict()


async def test_an_alarm_needs_a_gate() -> None:
    """Without a guard or a gate nothing was passed by."""
    session = await Session(is_recorded=False).start()
    assert await session("PostToolUse", id="unknown") == Verdict()
    session = await Session(hook_on("tool_call", gate, tool="write"), is_recorded=False).start()
    assert await session("PostToolUse", id="unknown") == Verdict()
    assert alarms() == {}


async def test_a_session_whose_start_was_not_seen_is_warned_once() -> None:
    """So is one after an installation in mid-session, also if the server begins anew."""
    session = Session(GATE)
    assert len((await session("PostToolUse", id="before")).messages) == 1
    assert await session("PostToolUse", id="before too") == Verdict()
    session.restart()
    assert await session("PostToolUse", id="before as well") == Verdict()
    assert await session("PreToolUse") == Verdict()
    session = await Session(GATE, id="installed").start()
    assert await session("PreToolUse") == Verdict()
    forget_starts("claude-code")
    session.restart()
    (message,) = (await session("PostToolUse", id="meanwhile")).messages
    assert "nothing is blocked" in message
    assert alarms() == {}


async def test_a_call_is_remembered_beyond_the_server() -> None:
    """A server that is killed between a call and its result, parallel calls, and a file that was renamed meanwhile."""
    session = await Session(GATE).start()
    for number in range(3):
        await session("PreToolUse", id=f"c{number}")
    session.restart()
    assert await session("PostToolUse", id="c1") == Verdict()
    for number in range(4, 8000):
        Journal("claude-code", "s").add("call", f"toolu_01ABCDEFGHIJKLMNOPQR{number}")
    session.restart()
    assert await session("PostToolUse", id="toolu_01ABCDEFGHIJKLMNOPQR7000") == Verdict()
    directory = Path(os.environ["HOME"], ".agent", "calls")
    assert sum(path.stat().st_size for path in directory.iterdir()) < 2.1 * journal.LIMIT
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (await session("PostToolUse", id="unknown")).messages
    assert len(alarms()) == 1


async def test_a_denied_call_and_a_call_of_another_session_raise_no_alarm() -> None:
    """Some agents report the refusal as a result; some change their session during a call; some report results twice."""
    session = await Session(GATE).start()
    assert (await session("PreToolUse", command="denied", id="c1")).block
    for _ in range(2):
        assert await session("PostToolUseFailure", command="denied", id="c1", error="not this one") == Verdict()
    session.calls = Calls(CLAUDE, lambda agent, identity: (agent, identity) == ("claude-code", "elsewhere"))
    assert await session("PostToolUse", id="elsewhere") == Verdict()
    assert await session("PostToolUse", id="nowhere") != Verdict()


async def test_half_a_line_and_an_unwritable_journal_raise_no_alarm(tmp_path: Path) -> None:
    """Half a line is ignored; a journal with a gap counts as a session whose start was not seen."""
    session = await Session(GATE).start()
    await session("PreToolUse", id="c1")
    directory = Path(os.environ["HOME"], ".agent", "calls")
    (path,) = directory.iterdir()
    path.write_bytes(path.read_bytes() + b'["call","half')
    session.restart()
    assert await session("PostToolUse", id="c1") == Verdict()
    path.unlink()
    directory.rmdir()
    directory.write_text("a file in the place of the directory")
    assert await session("PreToolUse", id="c2") == Verdict()
    session.restart()
    assert await session("PreToolUse", id="c3") == Verdict()
    assert "nothing is blocked" in (await session("PostToolUse", id="c2")).messages[0]


async def test_tools_that_ask_no_gate_raise_no_alarm() -> None:
    """The bridge names them."""
    session = await Session(GATE, bridge=SILENT).start()
    assert await session("PostToolUse", id=None, tool_name="exec") == Verdict()
    assert await session("PostToolUse", id=None, tool_name="Bash") != Verdict()


async def test_the_journals_are_bounded() -> None:
    """Files without a call for long go, and so do the oldest of too many."""
    for number in range(5):
        Journal("claude-code", f"s{number}").add("start")
    directory = Path(os.environ["HOME"], ".agent", "calls")
    for path in list(directory.iterdir())[:2]:
        os.utime(path, (0, 0))
    remove_old()
    assert len(list(directory.iterdir())) == 3
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "_MOST_FILES", 1)
        remove_old()
    assert len(list(directory.iterdir())) == 1


async def test_an_alarm_goes_neither_with_time_nor_with_other_sessions() -> None:
    """Only a person lifts it."""
    session = await Session(GATE).start()
    await session("PostToolUse", id="unknown")
    (alarm,) = alarms()
    os.utime(alarm, (0, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "_MOST_FILES", 1)
        for number in range(3):
            Journal("claude-code", f"s{number}").add("start")
        remove_old()
    assert list(alarms()) == [alarm]
    assert len(list(Path(alarm).parent.iterdir())) == 2


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_call_that_takes_long_is_remembered_behind_many_others(restarts: bool) -> None:
    """Its result is no alarm, although the files of the session stay small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "LIMIT", 2000)
        patch.setattr(memory, "MOST", 10)
        session = await Session(GATE, is_recorded=False).start()
        await session("PreToolUse", id="long")
        for number in range(400):
            await session("PreToolUse", id=f"call {number}")
            await session("PostToolUse", id=f"call {number}")
        if restarts:
            session.restart()
        assert await session("PostToolUse", id="long") == Verdict()
        assert await session("PostToolUse", id="unknown") != Verdict()
    assert alarms()
    sizes = [path.stat().st_size for path in Path(os.environ["HOME"], ".agent", "calls").iterdir()]
    assert sum(sizes) < 5000


async def test_a_call_without_an_id_that_takes_long_is_paired_behind_many_others() -> None:
    """Its line is carried over into each new file, and counts once after a restart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "LIMIT", 2000)
        session = await Session(GATE, bridge=SILENT).start()
        await session("PreToolUse", id=None, command="long")
        for number in range(100):
            await session("PreToolUse", id=None, command=f"{number}")
            await session("PostToolUse", id=None, command=f"{number}")
        session.restart()
        await session("PostToolUse", id=None, command="long")
        assert session.ids("tool_result")[-1] == session.ids("tool_call")[0]
        assert not alarms()
        # No second call of this tool waits for a result.
        assert await session("PostToolUse", id=None, command="unknown") != Verdict()


@pytest.mark.parametrize("identity", ["start", "call", "told", "Bash"])
async def test_an_id_that_is_a_word_of_the_journal_is_no_judged_call(identity: str) -> None:
    """The agent's model gives calls their ids."""
    session = await Session(GATE).start()
    await session("PreToolUse")
    await session("PostToolUse", id=identity)
    assert alarms()


# ---- ids -------------------------------------------------------------------------------------------------------------


async def test_calls_without_ids_are_paired_with_their_results() -> None:
    """By tool and input, first in, first out, also for parallel calls and after a restart of the server."""
    session = await Session(GATE, bridge=SILENT).start()
    for command in ("a", "b", "a"):
        await session("PreToolUse", command=command, id=None)
    asked = session.ids("tool_call")
    assert len(set(asked)) == 3
    await session("PostToolUse", command="b", id=None)
    session.restart()
    for _ in range(2):
        await session("PostToolUse", command="a", id=None)
    assert session.ids("tool_result") == [asked[1], asked[0], asked[2]]
    assert alarms() == {}


async def test_a_prompt_forgets_calls_without_a_result() -> None:
    """A call that the person refused is not taken for a later one, also after a restart; its late result is no alarm."""
    session = await Session(GATE, bridge=SILENT).start()
    await session("PreToolUse", command="a", id=None)
    await session("UserPromptSubmit", prompt="again")
    session.restart()
    await session("PreToolUse", command="a", id=None)
    await session("PostToolUse", command="a", id=None)
    assert session.ids("tool_result") == session.ids("tool_call")[1:]
    await session("PostToolUse", command="a", id=None)
    assert alarms() == {}


async def test_a_call_whose_input_was_changed_is_paired_by_its_tool() -> None:
    """A hook of ours, another hook or the agent may have changed it; a denied call is never paired."""
    session = await Session(GATE, bridge=SILENT).start()
    await session("PreToolUse", command="denied", id=None)
    await session("PreToolUse", command="a", id=None)
    await session("PostToolUse", command="a changed", id=None)
    assert session.ids("tool_result") == session.ids("tool_call")[1:]
    await session("PostToolUse", command="a", id=None)
    assert alarms() == {}
    assert (await session("PostToolUse", command="never", id=None)).messages
    assert len(alarms()) == 1


async def test_a_call_that_a_hook_rewrote_is_paired_by_its_new_input() -> None:
    """Its result comes before that of an older call of the same tool."""

    async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite | None:
        return Rewrite({"command": "b new"}) if event.params["command"] == "b" else None

    session = await Session(GATE, hook_on("before_tool_call", rewrite), bridge=SILENT).start()
    await session("PreToolUse", command="a", id=None)
    await session("PreToolUse", command="b", id=None)
    await session("PostToolUse", command="b new", id=None)
    assert session.ids("tool_result") == session.ids("tool_call")[1:]


# ---- starts, prompts and continues -----------------------------------------------------------------------------------


async def test_a_start_that_the_prompt_overtakes_is_told_once() -> None:
    """The hooks have had one with the prompt; a later start is a new one."""
    session = Session(GATE)
    await session("UserPromptSubmit", prompt="go")
    session.calls.started_by_us()
    with listening(session) as emitted:
        await session.start()
    assert emitted == []
    with listening(session) as emitted:
        await session.start()
    assert emitted == ["session:start"]


async def more(event: AgentEnd, ctx: HookContext) -> Continue:
    """Keep the agent going."""
    return Continue("and  now the tests")


async def test_the_text_of_a_continue_is_no_prompt() -> None:
    """It comes back once, perhaps with other blanks and more text; the same words of a person later are a prompt."""
    session = await Session(hook_on("agent_end", more), bridge=SILENT).start()
    await session("UserPromptSubmit", prompt="go")
    assert (await session("Stop")).go_on == "and  now the tests"
    with listening(session) as emitted:
        await session("UserPromptSubmit", prompt="and now the tests\n\nmore")
    assert emitted == []
    with listening(session) as emitted:
        await session("UserPromptSubmit", prompt="and now the tests")
    assert emitted == ["agent_start", "turn_start"]
    session = await Session(hook_on("agent_end", more), id="claude").start()
    await session("UserPromptSubmit", prompt="go")
    await session("Stop")
    with listening(session) as emitted:
        await session("UserPromptSubmit", prompt="and now the tests")
    assert emitted == ["agent_start", "turn_start"]


async def test_an_empty_prompt_in_a_run_is_no_prompt() -> None:
    """One agent sends it after each result."""
    session = await Session(GATE, bridge=SILENT).start()
    await session("UserPromptSubmit", prompt="go")
    await session("PreToolUse", id=None)
    await session("PostToolUse", id=None)
    with listening(session) as emitted:
        await session("UserPromptSubmit", prompt="")
    assert emitted == []
    await session("Stop")
    with listening(session) as emitted:
        await session("UserPromptSubmit", prompt=" ")
    assert emitted == ["agent_start", "turn_start"]


@pytest.mark.parametrize("restarts", [False, True])
async def test_continues_are_counted_for_an_agent_that_does_not_report_them(restarts: bool) -> None:
    """Our cap ends the loop, also over restarts of the server; a prompt of the person begins anew."""
    session = await Session(hook_on("agent_end", more), bridge=SILENT).start()
    for _ in range(2):
        await session("UserPromptSubmit", prompt="go")
        for number in range(CONTINUE_LIMIT):
            assert (await session("Stop")).go_on, number
            await session("UserPromptSubmit", prompt="and now the tests")
            if restarts and number % 3 == 1:
                session.restart()
        verdict = await session("Stop")
        assert verdict.go_on is None
        assert "the agent stops here" in verdict.messages[0]
