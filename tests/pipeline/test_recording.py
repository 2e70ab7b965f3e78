"""The lines of a recorded call: its decision with each step, its questions, and its result, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from agent_hooks import (
    AfterToolCall,
    BeforeToolCall,
    Block,
    GuardedCall,
    HookAPI,
    HookContext,
    HookRunner,
    PermissionInput,
    PermissionOutput,
    Replace,
    Rewrite,
    ToolAfterInput,
    ToolAfterOutput,
    ToolBeforeInput,
    ToolBeforeOutput,
    ToolCall,
    ToolOutput,
    ToolResult,
    wrap_tool,
)
from agent_hooks.bridges.driver import BridgeUI
from agent_hooks.guards import builtin_guards
from agent_hooks.pipeline.order import preflight, run_tool
from agent_hooks.records import Records
from agent_hooks.records.lines import (
    Answer,
    Decision,
    Observed,
    Question,
    Result,
    Step,
)
from agent_hooks.records.reading import read_heads, record_files
from agent_hooks.redaction import Redactor
from agent_hooks.testing import ScriptedUI, StandInTool, call_tool
from agent_hooks.transformers import builtin_transformer
from agent_hooks.transformers.base import ConfiguredTransformer
from recording import TOKEN, Recorded, asking, facts
from support import hook_of, hook_on

pytestmark = pytest.mark.anyio


# ---- a call ----------------------------------------------------------------------------------------------------------


async def test_a_call_has_a_decision_before_the_tool_and_a_result_after_it(recorded: Recorded) -> None:
    """Both bear the same id, also where no handler objects, and when the tool runs only the decision is there."""
    seen: list[int] = []

    async def bash(command: str) -> str:
        """Run."""
        seen.extend([len(recorded.lines(Decision)), len(recorded.lines(Result))])
        return "out"

    async with recorded.runner() as runner:
        await wrap_tool(bash, runner).execute("c1", {"command": "ls"})
    assert seen == [1, 0]
    decision, result = recorded.line(Decision), recorded.line(Result)
    assert decision.id == result.id
    assert (decision.verdict, decision.tool, decision.input) == ("pass", "bash", {"command": "ls"})
    assert (decision.client_call, decision.cwd, decision.mode) == ("c1", str(recorded.home), "embedded")
    assert len(decision.digest) == 64
    assert (result.status, result.size) == ("ok", 3)
    assert result.ms is not None
    assert read_heads(str(recorded.directory)).popitem()[1].lines == 2


async def test_an_embedded_runner_writes_no_records_unless_asked(tmp_path: Path, home: Path) -> None:
    """Nothing appears in the home."""
    async with HookRunner([], cwd=str(tmp_path)) as runner:
        await call_tool(runner, "bash", {"command": "ls"})
    assert list(home.iterdir()) == []


async def test_each_step_of_a_call_is_in_its_lines(recorded: Recorded) -> None:
    """Handlers, interceptors, transformers and guards, in order, silent or not; rewrites are patches."""

    async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite:
        return Rewrite({**event.params, "command": "ls -la"})

    def silent(event: ToolCall, ctx: HookContext) -> None:
        """Have no opinion."""

    async def change(event: ToolResult, ctx: HookContext) -> Replace:
        return Replace(content="changed")

    async def observe(event: AfterToolCall, ctx: HookContext) -> None:
        await anyio.sleep(0)

    def before(input: ToolBeforeInput, output: ToolBeforeOutput) -> None:
        output.args["limit"] = 5

    def after(input: ToolAfterInput, output: ToolAfterOutput) -> None:
        output.result = ToolOutput("other")

    def register(api: HookAPI) -> None:
        api.on("before_tool_call", rewrite)
        api.on("tool_call", silent, priority=3)
        api.on("tool_result", change)
        api.on("after_tool_call", observe)
        api.intercept("tool.before", before, id="b")
        api.intercept("tool.after", after, id="a")

    default = ConfiguredTransformer(
        tool="bash",
        name="default_args",
        transformer=builtin_transformer("default_args"),
        config={"set": {"timeout": 9}},
    )
    runner = recorded.runner(hook_of(register, __file__), guards=builtin_guards(), transformers=[default])
    async with runner:
        await call_tool(runner, "bash", {"command": "ls"})
    decision, result, observed = recorded.line(Decision), recorded.line(Result), recorded.line(Observed)
    stages = [step.stage for step in decision.steps]
    assert stages == ["transform", "tool.before", "before_tool_call", "guards", "guards", "tool_call"]
    transform, intercepted, rewritten, guard, _, gate = decision.steps
    assert [(change.op, change.path) for change in transform.rewrite] == [("add", "/timeout")]
    assert [(change.op, change.path) for change in intercepted.rewrite] == [("add", "/limit")]
    assert [(change.op, change.path, change.value) for change in rewritten.rewrite] == [
        ("replace", "/command", "ls -la")
    ]
    assert {step.answer for step in (transform, intercepted, rewritten)} == {"rewrite"}
    assert sorted(change.path for change in decision.rewrite) == ["/command", "/limit", "/timeout"]
    assert guard.programs == ("ls",)
    assert (gate.handler, gate.file, gate.priority, gate.answer) == (silent.__name__, __file__, 3, "silent")
    assert gate.line == silent.__code__.co_firstlineno
    assert len(gate.sha256) == 64
    assert [facts(step)[0::2] for step in result.steps] == [("tool_result", "replace"), ("tool.after", "changed")]
    assert result.steps[0].changed == ("content",)
    assert [step.stage for step in observed.steps] == ["after_tool_call"]
    assert [step.at for step in decision.steps] == sorted(step.at for step in decision.steps)


async def test_a_blocked_call_has_both_lines(recorded: Recorded) -> None:
    """The decision names the blocker, its reason and its rule, and no later step; the result says `blocked`."""

    async def gate(event: ToolCall, ctx: HookContext) -> dict[str, Any]:
        return {"block": True, "reason": "not here"}

    async def never(event: ToolCall, ctx: HookContext) -> None:
        raise AssertionError

    runner = recorded.runner(hook_on("tool_call", gate, never))
    output = await call_tool(runner, "bash", {"command": "ls"})
    assert output.is_error
    runner.end_records()
    decision, result = recorded.line(Decision), recorded.line(Result)
    assert (decision.verdict, decision.reason, decision.by, decision.cause) == ("block", "not here", "hook.py", "hook")
    assert [facts(step) for step in decision.steps] == [("tool_call", "hook.py", "block", "blocked")]
    assert (result.status, result.ms) == ("blocked", None)
    assert "not here" in result.error


async def failing(event: ToolCall, ctx: HookContext) -> None:
    """Raise."""
    raise ValueError("boom")


async def wrong(event: ToolCall, ctx: HookContext) -> Any:
    """Return a wrong answer."""
    return {"blocked": 1}


async def slow(event: ToolCall, ctx: HookContext) -> None:
    """Take longer than the deadline."""
    await anyio.sleep_forever()


@pytest.mark.parametrize(
    ("handler", "answer", "outcome", "reason"),
    [
        (failing, "failed", "blocked", "ValueError: boom"),
        (wrong, "failed", "blocked", "wrong answer"),
        (slow, "timeout", "timeout", "timed out after"),
    ],
)
async def test_a_failure_of_a_gate_is_a_step(
    recorded: Recorded, handler: Callable[..., Any], answer: str, outcome: str, reason: str
) -> None:
    """It has the kind of the failure and its text."""
    runner = recorded.runner(hook_on("tool_call", handler), tool_call_timeout=0.05)
    runner.on_error(lambda error: None)
    await call_tool(runner, "bash", {"command": "ls"})
    runner.end_records()
    (step,) = recorded.line(Decision).steps
    assert (step.answer, step.outcome) == (answer, outcome)
    assert reason in step.reason
    assert recorded.line(Decision).verdict == "block"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_handler_that_does_not_stop_is_a_step(
    recorded: Recorded, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handlers of other hooks after it are steps as well."""
    monkeypatch.setattr("agent_hooks.concurrency.deadlines.asyncio.GRACE", 0.1)

    async def stubborn(event: AfterToolCall, ctx: HookContext) -> None:
        while True:
            try:
                await anyio.sleep(0.2)
            except asyncio.CancelledError:
                pass

    async def next_one(event: AfterToolCall, ctx: HookContext) -> None:
        """Have no opinion."""

    hooks = hook_on("after_tool_call", stubborn, path="a.py"), hook_on("after_tool_call", next_one, path="b.py")
    runner = recorded.runner(*hooks, timeout=0.05)
    runner.on_error(lambda error: None)
    await call_tool(runner, "bash", {"command": "ls"})
    runner.end_records()
    assert [facts(step)[1:] for step in recorded.line(Observed).steps] == [
        ("a.py", "timeout", "timeout"),
        ("b.py", "silent", "continued"),
    ]


async def test_a_failing_guard_or_transformer_is_a_step(recorded: Recorded) -> None:
    """It blocks the call."""

    class Broken:
        name = "broken"

        def judge(self, call: GuardedCall) -> None:
            raise ValueError("boom")

    class Failing:
        def transform(self, tool_input: Any, config: Any) -> Any:
            raise ValueError("boom")

    failing: Any = Failing()
    runners = (
        recorded.runner(guards=[Broken()]),
        recorded.runner(transformers=[ConfiguredTransformer(tool="bash", name="bad", transformer=failing)]),
    )
    for runner in runners:
        runner.on_error(lambda error: None)
        await call_tool(runner, "bash", {"command": "ls"})
        runner.end_records()
    steps = [facts(step) for line in recorded.lines(Decision) for step in line.steps]
    assert sorted(steps) == [("guards", "broken", "failed", "blocked"), ("transform", "bad", "failed", "blocked")]


async def test_a_filter_of_a_result_is_a_step(recorded: Recorded) -> None:
    """One that takes something out, one that leaves all, and one that fails and so takes nothing out."""

    class Filter:
        def transform(self, tool_input: Any, config: Any) -> Any:
            return tool_input

        def filter_output(self, tool_input: Any, content: Any, config: Any) -> Any:
            match config:
                case {"to": "fail"}:
                    raise ValueError("boom")
                case {"to": to}:
                    return to
                case _:
                    return content

    steps = [
        ConfiguredTransformer(tool="bash", name=name, transformer=Filter(), config=config)
        for name, config in {"cut": {"to": "less"}, "idle": {}, "bad": {"to": "fail"}}.items()
    ]
    runner = recorded.runner(transformers=steps)
    runner.on_error(lambda error: None)
    await call_tool(runner, "bash", {"command": "ls"})
    runner.end_records()
    found = [facts(step) for step in recorded.line(Result).steps]
    assert found == [("filter", "cut", "replace", "continued"), ("filter", "bad", "failed", "continued")]


async def test_an_aborted_call_has_a_result(recorded: Recorded) -> None:
    """While the tool runs, and while a gate judges."""

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        if event.input.get("slow"):
            await anyio.sleep_forever()

    runner = recorded.runner(hook_on("tool_call", gate))
    tool = StandInTool("bash")
    started = anyio.Event()

    async def forever(*args: Any, **options: Any) -> ToolOutput:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    tool.execute = forever  # type: ignore[method-assign]
    for given, moment in (({"command": "ls"}, started), ({"slow": True}, None)):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wrap_tool(tool, runner).execute, "c1", given)
            await (moment.wait() if moment else anyio.wait_all_tasks_blocked())
            tasks.cancel_scope.cancel()
    runner.end_records()
    assert [line.verdict for line in recorded.lines(Decision)] == ["pass", "aborted"]
    assert recorded.line(Result).status == "aborted"


async def test_a_call_that_the_end_of_the_runner_aborts_has_a_result(recorded: Recorded) -> None:
    """Its status is `aborted`; a later call is blocked."""
    tool = StandInTool("bash")
    started = anyio.Event()

    async def forever(*args: Any, **options: Any) -> ToolOutput:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    tool.execute = forever  # type: ignore[method-assign]
    async with anyio.create_task_group() as tasks:
        async with recorded.runner() as runner:
            tasks.start_soon(wrap_tool(tool, runner).execute, "c1", {})
            await started.wait()
        await call_tool(runner, "bash", {})
    runner.end_records()
    assert sorted(line.status for line in recorded.lines(Result)) == ["aborted", "blocked"]


async def test_calls_within_calls_name_their_parent(recorded: Recorded) -> None:
    """The parent is the id of the outer call's lines."""
    runner = recorded.runner()
    inner = wrap_tool(StandInTool("inner"), runner)

    async def outer() -> str:
        """Call another tool."""
        await inner.execute("i", {})
        return ""

    await wrap_tool(outer, runner).execute("o", {})
    runner.end_records()
    by_tool = {line.tool: line for line in recorded.lines(Decision)}
    assert by_tool["inner"].parent == by_tool["outer"].id
    assert by_tool["outer"].parent is None


async def test_a_call_from_a_handlers_thread_is_recorded(recorded: Recorded) -> None:
    """It is judged at once, as a call of its own."""
    tools: list[Any] = []

    def gate(event: ToolCall, ctx: HookContext) -> None:
        if event.tool_name == "outer":
            from anyio import from_thread

            from_thread.run(tools[0].execute, "i", {})

    async with recorded.runner(hook_on("tool_call", gate)) as runner:
        tools.append(wrap_tool(StandInTool("inner"), runner))
        await wrap_tool(StandInTool("outer"), runner).execute("o", {})
    assert sorted(line.tool for line in recorded.lines(Result)) == ["inner", "outer"]


# ---- questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "reply", "verdict"), [(True, "yes", "allow"), (False, "no", "block")])
async def test_a_question_and_its_answer_have_a_line_each(
    recorded: Recorded, answer: bool, reply: str, verdict: str
) -> None:
    """With the call's id and the digest of the exact input; the decision has the question's title."""
    runner = recorded.runner(hook_on("tool_call", asking), ui=ScriptedUI(answer))
    await call_tool(runner, "bash", {"command": "ls"})
    runner.end_records()
    question, given, decision = recorded.line(Question), recorded.line(Answer), recorded.line(Decision)
    assert (question.title, question.by, question.to) == ("Sure?", "hook.py (r1)", "person")
    assert (given.reply, given.who) == (reply, "person")
    assert given.user
    assert given.ms is not None
    assert question.id == given.id == decision.id
    assert question.digest == given.digest == decision.digest
    assert decision.verdict == verdict
    assert question.n < given.n < decision.n


async def test_a_question_that_cannot_be_shown_or_is_left_is_recorded(recorded: Recorded) -> None:
    """The reply is `failed` or `expired`."""
    for ui in (ScriptedUI(), ScriptedUI(lambda asked: anyio.sleep_forever())):
        runner = recorded.runner(hook_on("tool_call", asking), ui=ui)
        with anyio.move_on_after(0.1):
            await call_tool(runner, "bash", {})
        runner.end_records()
    assert sorted(line.reply for line in recorded.lines(Answer)) == ["expired", "failed"]
    assert sorted(line.verdict for line in recorded.lines(Decision)) == ["aborted", "block"]


async def test_a_handlers_own_dialogs_are_recorded(recorded: Recorded) -> None:
    """Each has a number; a text is redacted."""

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        await ctx.ui.confirm("One?")
        await ctx.ui.select("Two?", ["a", "b"])
        await ctx.ui.input("Three?")
        await ctx.ui.input("Four?")

    async def broken(event: ToolCall, ctx: HookContext) -> None:
        await ctx.ui.confirm("Five?")

    ui = ScriptedUI(True, None, TOKEN, None)
    runner = recorded.runner(hook_on("tool_call", gate, broken), ui=ui)
    runner.on_error(lambda error: None)
    await call_tool(runner, "bash", {})
    runner.end_records()
    questions, answers = recorded.lines(Question), recorded.lines(Answer)
    assert [(line.number, line.about, line.title) for line in questions] == [
        (1, "dialog", "One?"),
        (2, "dialog", "Two?"),
        (3, "dialog", "Three?"),
        (4, "dialog", "Four?"),
        (5, "dialog", "Five?"),
    ]
    assert [line.reply for line in answers] == ["yes", "cancelled", "text", "cancelled", "failed"]
    assert answers[2].text == "[redacted github-token]"
    assert {line.id for line in questions} == {recorded.line(Decision).id}


async def test_permission_ask_is_a_step_that_settles_the_question(recorded: Recorded) -> None:
    """No question is opened."""

    def allow(input: PermissionInput, output: PermissionOutput) -> None:
        output.status = "allow"

    def register(api: HookAPI) -> None:
        api.on("tool_call", asking)
        api.intercept("permission.ask", allow, id="p")

    runner = recorded.runner(hook_of(register))
    await call_tool(runner, "bash", {})
    runner.end_records()
    assert facts(recorded.line(Decision).steps[-1]) == ("permission.ask", "p", "allow", "settled")
    assert recorded.lines(Question) == []
    assert recorded.line(Decision).verdict == "allow"


async def test_required_records_that_cannot_be_written_block_the_call(recorded: Recorded) -> None:
    """A file stands in the place of the directory; a call that is blocked anyway keeps its reason."""
    recorded.directory.write_text("")
    wish = {"required": True}
    async with recorded.runner(records=wish) as runner:
        output = await call_tool(runner, "bash", {"command": "ls"})
    assert output.is_error
    assert "records.required is set" in output.text

    def gate(event: ToolCall, ctx: HookContext) -> Block:
        return Block("not here")

    async with recorded.runner(hook_on("tool_call", gate), records=wish) as runner:
        output = await call_tool(runner, "bash", {"command": "ls"})
    assert "not here" in output.text
    assert "records.required" not in output.text


async def test_the_result_of_another_runners_judged_call_is_recorded(recorded: Recorded) -> None:
    """A call that was judged without records gets a trail when it runs with them."""
    runner = HookRunner([], cwd=str(recorded.home))
    call = await preflight(StandInTool("bash"), "c1", {"command": "ls"}, runner=runner)
    runner.engine.record(Records(home=str(recorded.home)))
    output = await run_tool(call)
    runner.end_records()
    assert not output.is_error
    assert (recorded.line(Result).status, recorded.line(Result).client_call) == ("ok", "c1")
    assert recorded.lines(Decision) == []


async def test_a_result_callback_is_called_after_the_result_is_recorded(recorded: Recorded) -> None:
    """With and without the callback the line is there."""
    seen: list[int] = []
    runner = recorded.runner()
    call = await preflight(StandInTool("bash"), "c1", {"command": "ls"}, runner=runner)
    await run_tool(call, on_result=lambda output: seen.append(len(recorded.lines(Result))))
    runner.end_records()
    assert seen == [1]


async def test_a_question_that_is_handed_over_has_no_answer_yet(recorded: Recorded) -> None:
    """Another agent asks it, and its later events tell the answer: the tool ran."""
    ui = BridgeUI()
    runner = recorded.runner(hook_on("tool_call", asking), ui=ui)
    call = await preflight(StandInTool("bash"), "c1", {"command": "ls"}, runner=runner)
    assert ui.asked is not None
    assert recorded.line(Question).to == "client"
    assert recorded.lines(Answer) == []
    assert recorded.line(Decision).verdict == "ask"
    await run_tool(call)
    runner.end_records()
    assert (recorded.line(Answer).reply, recorded.line(Answer).who) == ("yes", "client")


def as_schema_has_it(line: bytes) -> bool:
    """Return whether a line of a file has only keys of its kind, and the values that a strict reader gives back."""
    found = msgspec.json.decode(line)
    kind: Any = {"decision": Decision, "result": Result}[found["kind"]]
    again = msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(line, type=kind)))
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    steps = {field.encode_name for field in msgspec.structs.fields(Step)}
    assert set(found) <= names | {"kind"}
    assert all(set(step) <= steps for step in found.get("steps", []))
    # Fields with their default value may be left out or not.
    return all(again.get(name, value) == value for name, value in found.items() if name != "steps")


@pytest.mark.parametrize("answer", [None, Block("no", rule="r", remedy="do"), Rewrite({"command": "\ud800"})])
@pytest.mark.parametrize("command", ["ls", "\ud800 ghp_" + "a1B2" * 9, "ü" * 20_000])
async def test_the_lines_of_a_call_are_as_the_schema_has_them(recorded: Recorded, answer: Any, command: str) -> None:
    """Their common fields are formatted by hand, also for texts that JSON cannot express."""

    def rewrite(event: BeforeToolCall, ctx: HookContext) -> Any:
        return answer

    async with recorded.runner(hook_on("before_tool_call", rewrite), hook_on("tool_call", lambda *_: None)) as runner:
        await call_tool(runner, "bash\ud800", {"limit": 5, "command": command})
    decision, result = recorded.line(Decision), recorded.line(Result)
    assert (decision.tool, decision.id) == (result.tool, result.id)
    assert decision.input["limit"] == 5
    assert decision.input_cut == (len(command) > 16_384)
    assert "a1B2" not in repr(decision)
    (path,) = record_files(str(recorded.directory))
    lines = Path(path).read_bytes().splitlines()
    assert [as_schema_has_it(line) for line in lines] == [True] * len(lines)
    assert len(lines) == 2


async def test_hidden_secrets_of_a_result_are_counted(recorded: Recorded) -> None:
    """By kind."""
    runner = recorded.runner(redactor=Redactor())
    tool = StandInTool("bash", ToolOutput(f"{TOKEN} {TOKEN}"))
    await call_tool(runner, "bash", {}, tool=tool)
    runner.end_records()
    assert recorded.line(Result).redacted == {"github-token": 2}


async def test_calls_in_a_row_have_no_parent(recorded: Recorded) -> None:
    """A call that is judged or over is not the one that makes the next call."""
    async with recorded.runner() as runner:
        for name in ("c1", "c2"):
            call = await preflight(StandInTool("bash"), name, {}, runner=runner)
            await preflight(StandInTool("bash"), f"{name} beside", {}, runner=runner)
            await run_tool(call)
    assert [line.parent for line in recorded.lines(Decision)] == [None] * 4
