"""Every call and event of a recorded runner is written down, with its steps, its questions and its result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest

from agent_hooks import (
    AgentEnd,
    AgentStart,
    Ask,
    AssistantMessage,
    BeforeToolCall,
    Block,
    Cancel,
    Continue,
    HookAPI,
    HookContext,
    HookRunner,
    LoadedHook,
    PermissionInput,
    PermissionOutput,
    Rewrite,
    SessionEvent,
    ToolCall,
    ToolOutput,
    TurnEnd,
    TurnStart,
    load_hooks,
    ui,
)
from agent_hooks.bridges.claude_code import ClaudeCode
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.errors import AgentHooksError
from agent_hooks.guards import builtin_guards
from agent_hooks.records import Records
from agent_hooks.records.files import make_directory
from agent_hooks.records.joining import Reader
from agent_hooks.records.lines import (
    Answer,
    Decision,
    Happened,
    Line,
    Note,
    Prompt,
    Question,
    Result,
    Run,
    Session,
    Turn,
)
from agent_hooks.records.reading import read_heads
from agent_hooks.testing import ScriptedUI, StandInTool, call_tool
from agent_hooks.values.events import Event
from recording import TOKEN, Recorded, asking
from running import Command
from support import PATIENCE, hook_of, hook_on

pytestmark = pytest.mark.anyio

PAYLOADS: dict[str, Any] = json.loads((Path(__file__).parent.parent / "bridges" / "claude_code.json").read_text())
CLAUDE = ClaudeCode()
MESSAGE = AssistantMessage(content="done", timestamp=0, provider="none", model="none")


def text(recorded: Recorded) -> str:
    """Return all bytes of the record files."""
    return "".join(path.read_text() for path in recorded.directory.glob("*.jsonl"))


# ---- events ----------------------------------------------------------------------------------------------------------


async def test_sessions_runs_and_turns_have_lines_also_where_all_are_silent(recorded: Recorded) -> None:
    """A turn counts its calls, and the calls name their turn."""
    runner = recorded.runner(session_id="s1")
    events: list[Event[Any]] = [SessionEvent(reason="start"), AgentStart(), TurnStart(turn_index=3, timestamp=0)]
    for event in events:
        await runner.emit(event)
    await call_tool(runner, "bash", {})
    for event in (TurnEnd(turn_index=3, message=MESSAGE), AgentEnd(), SessionEvent(reason="shutdown")):
        await runner.emit(event)
    assert [line.event for line in recorded.lines(Session)] == ["start", "end"]
    assert [line.event for line in recorded.lines(Run)] == ["start", "end"]
    assert [(line.event, line.turn, line.calls) for line in recorded.lines(Turn)] == [("start", 3, 0), ("end", 3, 1)]
    assert recorded.line(Decision).turn == 3
    assert {line.session for line in recorded.lines(Line)} == {"s1"}
    assert next(iter(read_heads(str(recorded.directory)).values())).at == "end"


async def test_the_answers_to_events_are_in_their_lines(recorded: Recorded) -> None:
    """A cancelled action, a run that a hook continues; the start names the hooks and guards."""

    async def session(event: SessionEvent, ctx: HookContext) -> Any:
        if event.reason == "before_switch":
            return Cancel("not now")
        return None

    async def end(event: AgentEnd, ctx: HookContext) -> Continue:
        return Continue("go on")

    path = recorded.home / "hook.py"
    path.write_text("# a hook")

    def register(api: HookAPI) -> None:
        api.on("session", session)
        api.on("agent_end", end)

    runner = recorded.runner(hook_of(register, str(path)), guards=builtin_guards())
    for reason in ("start", "before_switch"):
        await runner.emit(SessionEvent(reason=reason))
    await runner.emit(AgentEnd())
    runner.end_records()
    start, switch = recorded.lines(Session)
    assert [(hook.path, len(hook.sha256)) for hook in start.hooks] == [(str(path), 64)]
    assert start.guards
    assert (switch.verdict, switch.reason) == ("cancelled", "not now")
    assert [step.answer for step in switch.steps] == ["cancel"]
    assert recorded.line(Run).go_on == "go on"


# ---- another agent ---------------------------------------------------------------------------------------------------


def bridging(recorded: Recorded, *hooks: LoadedHook, attended: bool = True) -> tuple[HookRunner, Bridging]:
    """Return a bridge whose runner writes records."""
    ui = BridgeUI(attended=attended)
    runner = recorded.runner(*hooks, mode="bridge", ui=ui, records={"client": "claude-code"})
    return runner, Bridging(runner, ui, attended=attended)


async def test_the_halves_of_another_agents_call_are_joined_by_their_id(recorded: Recorded) -> None:
    """Also where two runners, and so two processes, wrote them; the client's own words are kept."""
    before, after = PAYLOADS["PreToolUse:Bash"], PAYLOADS["PostToolUse:Bash"]
    after = {**after, "tool_use_id": before["tool_use_id"], "session_id": before["session_id"]}
    for payload in (before, after):
        runner, bridge = bridging(recorded)
        await bridge.answer(CLAUDE.decode(payload))
        runner.end_records()
    decision, result = recorded.line(Decision), recorded.line(Result)
    assert decision.id == result.id
    assert (decision.tool, decision.native_tool, decision.client) == ("bash", "Bash", "claude-code")
    assert decision.client_session == before["session_id"]
    assert decision.transcript == before["transcript_path"]
    assert result.status == "ok"


async def test_a_question_that_is_handed_over_is_settled_by_what_the_agent_does(recorded: Recorded) -> None:
    """A tool that ran was allowed; a run that ends leaves the question expired."""
    before, after = PAYLOADS["PreToolUse:Bash"], PAYLOADS["PostToolUse:Bash"]
    runner, bridge = bridging(recorded, hook_on("tool_call", asking))
    verdict = await bridge.answer(CLAUDE.decode(before))
    assert verdict.ask is not None, verdict
    assert recorded.line(Decision).verdict == "ask"
    assert recorded.line(Question).to == "client"
    assert recorded.lines(Answer) == []
    same = {"tool_use_id": before["tool_use_id"], "session_id": before["session_id"]}
    await bridge.answer(CLAUDE.decode({**after, **same}))
    assert (recorded.line(Answer).reply, recorded.line(Answer).who) == ("yes", "client")
    await bridge.answer(CLAUDE.decode({**before, "tool_use_id": "other"}))
    await bridge.answer(CLAUDE.decode({**PAYLOADS["Stop"], "session_id": before["session_id"]}))
    assert [line.reply for line in recorded.lines(Answer)] == ["yes", "expired"]
    await bridge.answer(CLAUDE.decode({**before, "tool_use_id": "third"}))
    runner.end_records()
    assert [line.reply for line in recorded.lines(Answer)] == ["yes", "expired", "unknown"]


async def test_a_call_that_is_refused_before_any_hook_judges_is_recorded(recorded: Recorded) -> None:
    """The decision has the reason."""
    runner, bridge = bridging(recorded)
    happening = CLAUDE.decode(PAYLOADS["PreToolUse:Bash"])
    verdict = await bridge.refuse(happening, Block("the hooks could not be loaded", cause="failed"))
    runner.end_records()
    assert "the hooks could not be loaded" in str(verdict.block)
    assert (recorded.line(Decision).verdict, recorded.line(Decision).reason) == (
        "block",
        "the hooks could not be loaded",
    )


@pytest.mark.parametrize(("text", "recorded_text"), [("", "and the run ends"), ("not now", "not now")])
async def test_a_no_that_stops_the_run_is_recorded(recorded: Recorded, text: str, recorded_text: str) -> None:
    """With its reason, if the user gave one."""
    runner = recorded.runner(hook_on("tool_call", asking), ui=ScriptedUI(ui.Answer("no", text, stops=True)))
    with suppress(AgentHooksError):
        await call_tool(runner, "bash", {"command": "ls"})
    runner.end_records()
    assert (recorded.line(Answer).reply, recorded.line(Answer).text) == ("no", recorded_text)


async def test_a_question_expires_when_the_agent_uses_the_id_of_its_call_again(recorded: Recorded) -> None:
    """The agent has left that call.  Its answer comes before the question about the next."""
    runner, bridge = bridging(recorded, hook_on("tool_call", asking))
    for command in ("ls", "rm -rf x"):
        await bridge.answer(CLAUDE.decode({**PAYLOADS["PreToolUse:Bash"], "tool_input": {"command": command}}))
    runner.end_records()
    first, second = Reader(str(recorded.directory)).records()
    replies = [[each.answer.reply for each in record.exchanges if each.answer] for record in (first, second)]
    assert replies == [["expired"], ["unknown"]]


async def test_the_question_of_another_agent_is_recorded(recorded: Recorded) -> None:
    """With the answer, where an interceptor settles it."""

    def deny(input: PermissionInput, output: PermissionOutput) -> None:
        output.status = "deny"

    hook = hook_of(lambda api: api.intercept("permission.ask", deny, id="p"))
    for hooks in ((), (hook,)):
        runner, bridge = bridging(recorded, *hooks)
        await bridge.answer(CLAUDE.decode(PAYLOADS["PermissionRequest:Bash"]))
        runner.end_records()
    assert [line.about for line in recorded.lines(Question)] == ["permission", "permission"]
    assert sorted(line.reply for line in recorded.lines(Answer)) == ["no", "unknown"]


async def test_prompts_and_other_events_of_another_agent_are_recorded(recorded: Recorded) -> None:
    """Also without any handler."""
    runner, bridge = bridging(recorded)
    await bridge.answer(CLAUDE.decode({**PAYLOADS["UserPromptSubmit"], "prompt": f"use {TOKEN}"}))
    await bridge.answer(CLAUDE.decode({**PAYLOADS["Stop"], "hook_event_name": "Notification"}))
    runner.end_records()
    prompt = recorded.line(Prompt)
    assert (prompt.text, prompt.size, prompt.verdict) == ("use [redacted github-token]", 48, "pass")
    assert recorded.line(Happened).event == "Notification"


async def test_a_prompt_that_hooks_block_or_rewrite_is_recorded(recorded: Recorded) -> None:
    """With the interceptor's step."""

    def change(input: Any, output: Any) -> None:
        if output.message == "stop":
            output.block, output.block_reason = True, "no"
        else:
            output.message += "!"

    hook = hook_of(lambda api: api.intercept("message.before", change, id="m"))
    runner, bridge = bridging(recorded, hook)
    for words in ("stop", "go"):
        await bridge.answer(CLAUDE.decode({**PAYLOADS["UserPromptSubmit"], "prompt": words}))
    runner.end_records()
    stopped, rewritten = recorded.lines(Prompt)
    assert (stopped.verdict, stopped.reason, stopped.by) == ("block", "no", "m")
    assert rewritten.verdict == "rewrite"
    assert [step.stage for step in rewritten.steps] == ["message.before"]


# ---- privacy ---------------------------------------------------------------------------------------------------------


async def test_no_secret_reaches_a_record(recorded: Recorded) -> None:
    """In the input, a reason, a rewrite, a question, an error, a path or a prompt, with redaction of results off."""

    async def gate(event: ToolCall, ctx: HookContext) -> Any:
        match event.input.get("command"):
            case "block":
                return Block(f"because {TOKEN}", remedy=TOKEN)
            case "raise":
                raise ValueError(TOKEN)
            case _:
                return Ask(f"Sure {TOKEN}?", TOKEN)

    async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite:
        return Rewrite({**event.params, TOKEN: TOKEN})

    def register(api: HookAPI) -> None:
        api.on("tool_call", gate)
        api.on("before_tool_call", rewrite)

    place = recorded.home / TOKEN
    place.mkdir()
    wish = Records(home=str(recorded.home))
    runner = HookRunner([hook_of(register)], cwd=str(place), records=wish, ui=ScriptedUI(True))
    runner.on_error(lambda error: None)
    for command in ("block", "raise", f"echo {TOKEN}"):
        tool = StandInTool("bash", ToolOutput(TOKEN, is_error=True))
        await call_tool(runner, "bash", {"command": command}, tool=tool)
    runner.end_records()
    assert len(recorded.lines(Result)) == 3
    assert "ghp_" not in text(recorded)


@pytest.mark.parametrize(
    "input", [{"command": "x" * 10_000_000}, {"\ud800": "\udfff"}, {"a": [{"b": [1, None, True, 0.5]}]}]
)
async def test_any_input_is_recorded(recorded: Recorded, input: dict[str, Any]) -> None:
    """Large ones are cut, and half of a surrogate pair becomes a question mark, in names and ids as well."""
    runner = recorded.runner()
    await call_tool(runner, "bash", input, tool_call_id="c\ud800")
    runner.end_records()
    decision = recorded.line(Decision)
    assert decision.input_cut == ("command" in input)
    assert len(text(recorded)) < 100_000
    assert decision.input_size > len(decision.input)


# ---- records that cannot be written ----------------------------------------------------------------------------------


@pytest.mark.parametrize("required", [False, True])
async def test_records_that_cannot_be_written_stop_only_where_they_are_required(
    recorded: Recorded, required: bool
) -> None:
    """Otherwise the gates judge as ever, and the failure is reported once."""

    async def gate(event: ToolCall, ctx: HookContext) -> Block | None:
        return Block("no") if event.input["command"] == "rm" else None

    recorded.directory.write_text("a file is in the way")
    errors: list[str] = []
    runner = recorded.runner(hook_on("tool_call", gate), records={"required": required})
    runner.on_error(lambda error: errors.append(str(error)))
    allowed = await call_tool(runner, "bash", {"command": "ls"})
    blocked = await call_tool(runner, "bash", {"command": "rm"})
    assert blocked.is_error
    assert "no (hook.py)" in blocked.text
    assert allowed.is_error == required
    if required:
        assert "records.required" in allowed.text
    assert len(errors) == 1
    runner.end_records()


async def test_a_value_that_cannot_be_read_costs_a_record_and_no_call(recorded: Recorded) -> None:
    """Where records are required, the call does not run."""
    for required in (False, True):
        runner = recorded.runner(records={"required": required, "limit": "no number"}, ui=ScriptedUI(True))
        errors: list[str] = []
        runner.on_error(lambda error, errors=errors: errors.append(str(error)))  # type: ignore[misc]  # a lambda's default has no type
        output = await call_tool(runner, "bash", {"command": "ls", "x": 1})
        assert output.is_error == required
        assert "could not be made" in errors[0]
        runner.end_records()


FULL_DISK = """
    import asyncio, resource, sys
    from agent_hooks import Block, HookAPI, HookRunner, LoadedHook
    from agent_hooks.records import Records
    from agent_hooks.testing import call_tool

    async def gate(event, ctx):
        return Block("no") if event.input["command"] == "rm" else None

    async def main():
        api = HookAPI("hook.py")
        api.on("tool_call", gate)
        hooks = [LoadedHook("hook.py", "hook.py", "hook", api)]
        runner = HookRunner(hooks, cwd=".", records=Records(home=sys.argv[1], required=sys.argv[2] == "required"))
        runner.on_error(lambda error: print("reported", error))
        for command in ("ls", "rm", "ls", "rm"):
            output = await call_tool(runner, "bash", {"command": command, "x": "y" * 3000})
            print(command, output.is_error)
        resource.setrlimit(resource.RLIMIT_FSIZE, resource.getrlimit(resource.RLIMIT_FSIZE)[1:] * 2)
        await call_tool(runner, "bash", {"command": "ls"})
        runner.end_records()

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    asyncio.run(main())
"""


@pytest.mark.parametrize("required", ["required", "optional"])
def test_a_full_disk_opens_no_gate(recorded: Recorded, required: str) -> None:
    """The lines that fit are whole, and the number of the others is noted when there is room again."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(FULL_DISK), recorded.home, required],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    calls = [line.split() for line in done.stdout.splitlines() if not line.startswith("reported")]
    assert calls[0] == ["ls", "False"]
    assert [call for call in calls if call[0] == "rm"] == [["rm", "True"]] * 2
    assert calls[2] == ["ls", str(required == "required")]
    assert done.stdout.count("reported") == 1
    assert {note.about for note in recorded.lines(Note)} == {"lost"}


# ---- the commands ----------------------------------------------------------------------------------------------------


def test_a_kill_while_a_tool_runs_leaves_the_decision(project: Path, home: Path) -> None:
    """The verdict is known, though the call has no result."""
    command = Command(project)
    process = subprocess.Popen(
        command.line("run", "@bash echo started > there; sleep 60"), cwd=project, start_new_session=True
    )
    try:
        deadline = anyio.run(_wait_for, project / "there")
        assert deadline
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    recorded = Recorded(home / ".agent")
    assert recorded.line(Decision).verdict == "pass"
    assert recorded.lines(Result) == []


async def _wait_for(path: Path) -> bool:
    with anyio.move_on_after(PATIENCE):
        while not path.exists():
            await anyio.sleep(0.02)
        return True
    return False


def test_run_writes_records_unless_the_person_turns_them_off(project: Path, home: Path) -> None:
    """A project's section does not count, and a warning says so."""
    command, recorded = Command(project), Recorded(home / ".agent")
    (project / ".agent").mkdir()
    (project / ".agent" / "settings.json").write_text('{"records": {"enabled": false}}')
    done = command("run", "@bash echo hi")
    assert "'records' counts only in your own settings" in done.stderr
    assert (recorded.line(Decision).client, recorded.line(Result).status) == ("agent-hooks", "ok")
    assert recorded.line(Prompt).text == "@bash echo hi"
    (home / ".agent" / "settings.json").write_text('{"records": {"enabled": false}}')
    command("run", "@bash echo hi")
    assert len(recorded.lines(Decision)) == 1


@pytest.mark.parametrize("event", ["PreToolUse:Bash", "UserPromptSubmit"])
def test_a_bridge_writes_records_without_any_hook(project: Path, home: Path, event: str) -> None:
    """In a process of its own."""
    payload = {**PAYLOADS[event], "cwd": str(project)}
    Command(project)("bridge", "claude-code", payload["hook_event_name"], stdin=json.dumps(payload))
    recorded = Recorded(home / ".agent")
    assert {line.client for line in recorded.lines(Line)} == {"claude-code"}
    assert len(recorded.lines(Decision if "Tool" in event else Prompt)) == 1


def test_other_commands_write_no_records(project: Path, home: Path) -> None:
    """They judge nothing that happens."""
    command = Command(project)
    command("list")
    command("emit", "tool_call", stdin='{"type":"tool_call","toolName":"bash","toolCallId":"1","input":{}}', code=None)
    command("guard", "ls", code=None)
    assert not (home / ".agent" / "records").exists()


async def test_a_directory_for_records_is_made_below_an_absent_home(tmp_path: Path) -> None:
    """Also one in which nothing has been yet."""
    make_directory(str(tmp_path / "a" / "b" / "records"))
    assert (tmp_path / "a" / "b" / "records").is_dir()


async def test_loaded_hooks_are_named_by_their_files(tmp_path: Path) -> None:
    """The digest is that of the file."""
    path = tmp_path / "gate.py"
    path.write_text("def register(api):\n    api.on('tool_call', lambda event, ctx: None, inline=True)\n")
    loaded = await load_hooks([str(path)], cwd=tmp_path)
    runner = HookRunner(loaded, cwd=tmp_path, records=Records(home=str(tmp_path / "home")))
    await call_tool(runner, "bash", {})
    runner.end_records()
    (step,) = Recorded(tmp_path / "home").line(Decision).steps
    assert (step.by, step.file, len(step.sha256)) == ("gate.py", str(path), 64)
