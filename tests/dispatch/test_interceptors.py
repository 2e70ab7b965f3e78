"""Interceptors: which ones are called, in which order, their outputs, and their failures."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_hooks import (
    AgentStart,
    Ask,
    Block,
    HookAPI,
    HookError,
    HookRunner,
    HookUsageError,
    Interceptor,
    InterceptorRegistry,
    Rewrite,
    Tool,
    ToolOutput,
    TurnStart,
    load_hooks,
    wrap_tool,
)
from agent_hooks.dispatch.interceptors import get_interceptors, initialize_interceptors, reset_interceptors
from agent_hooks.dispatch.points import POINTS, AtPoint, CompactingOutput, Point
from agent_hooks.testing import RecordedEvents, ScriptedUI
from agent_hooks.values.content import TextContent
from support import PATIENCE, EchoTool, everywhere, hook_of, hook_on, runner_of

Handler = Callable[[Any, Any], object]
BEFORE = "tool.before"
AFTER = "tool.after"


def registered(*interceptors: Interceptor) -> InterceptorRegistry:
    """Return a registry of these."""
    registry = InterceptorRegistry()
    for each in interceptors:
        registry.add(each)
    return registry


def runner_with(*interceptors: Interceptor, hooks: Any = (), **options: Any) -> tuple[HookRunner, list[HookError]]:
    """Return a runner of these, and where its failures go."""
    return runner_of(*hooks, interceptors=registered(*interceptors), **options)


def at(point: str, *handlers: Handler) -> list[Interceptor]:
    """Return an interceptor for each handler, named a, b, c …"""
    return [Interceptor(chr(97 + number), point, handler) for number, handler in enumerate(handlers)]


async def called(
    *interceptors: Interceptor, tool: EchoTool | None = None, **options: Any
) -> tuple[ToolOutput, list[dict[str, Any]], list[HookError], RecordedEvents]:
    """Call `ls` with these around the tool; return the result, the inputs of the tool, the failures, and the events."""
    runner, errors = runner_with(*interceptors, **options)
    bare = tool or EchoTool()
    recorded = RecordedEvents(runner)
    output = await wrap_tool(bare, runner).execute("1", {"command": "ls"})
    return output, bare.inputs, errors, recorded


# ---- order and chaining ----------------------------------------------------------------------------------------------


@everywhere
async def test_the_highest_priority_runs_first_and_ties_as_they_were_registered() -> None:
    """5, 100, 0, 0, -1 become 100, 5, 0, 0, -1."""
    order: list[str] = []

    def noting(name: str) -> Handler:
        return lambda given, output: order.append(name)

    given = [("five", 5), ("hundred", 100), ("first", 0), ("second", 0), ("last", -1)]
    await called(*(Interceptor(name, BEFORE, noting(name), priority) for name, priority in given))
    assert order == ["hundred", "five", "first", "second", "last"]


@everywhere
async def test_sync_and_async_interceptors_see_what_the_one_before_left() -> None:
    """Changed in place or set anew; the tool gets the last."""
    seen: list[str] = []

    def in_place(input: Any, output: Any) -> None:
        seen.append(output.args["command"])
        output.args["command"] += " -l"

    async def anew(input: Any, output: Any) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(output.args["command"])
        output.args = {"command": output.args["command"] + " -a"}

    def gives_an_awaitable(input: Any, output: Any) -> Awaitable[None]:
        return anew(input, output)

    _, inputs, errors, _ = await called(*at(BEFORE, in_place, anew, gives_an_awaitable))
    assert seen == ["ls", "ls -l", "ls -l -a"]
    assert inputs == [{"command": "ls -l -a -a"}]
    assert not errors


@everywhere
async def test_a_matcher_is_searched_in_the_tool_s_name() -> None:
    """`^bash$`, none, a compiled one, and one that takes another tool."""
    seen: list[str] = []

    def noting(name: str) -> Handler:
        return lambda given, output: seen.append(name)

    matchers = {"exact": "^bash$", "none": None, "part": re.compile("AS", re.IGNORECASE), "other": "^read$"}
    some = [Interceptor(name, BEFORE, noting(name), 0, matcher) for name, matcher in matchers.items()]
    await called(*some)
    assert seen == ["exact", "none", "part"]
    registry = registered(*some)
    assert [each.id for each in registry.get(BEFORE, "read")] == ["none", "other"]
    assert [each.id for each in registry.get(BEFORE)] == list(matchers)


async def test_a_matcher_that_can_match_no_known_tool_is_reported_with_the_nearest_name() -> None:
    """Once, when all tools are known."""
    runner, errors = runner_with(Interceptor("a", BEFORE, lambda given, output: None, 0, "^bahs$"))
    runner.know_tools(["bash", "read"])
    [report] = runner.check_matchers()
    assert errors == [report]
    assert "tool_matcher='^bahs$' can match no known tool" in report.error
    assert "did you mean 'bash'?" in report.error


@everywhere
async def test_a_matcher_of_an_agent_counts_where_there_is_no_tool() -> None:
    """The main agent is called "main"."""
    main, other = (Interceptor(name, "message.before", print, 0, None, f"^{name}$") for name in ("main", "other"))
    runner, _ = runner_with(main, other)
    assert runner.engine.intercepts("message.before")
    assert [each.id for each in runner.interceptors.get("message.before", agent_id="main")] == ["main"]
    runner.interceptors.remove("main")
    assert not runner.engine.intercepts("message.before")


# ---- blocks ----------------------------------------------------------------------------------------------------------


@everywhere
async def test_a_block_ends_the_chain_and_the_agent_gets_the_object() -> None:
    """Its text is JSON; the reason ends in the interceptor's id."""
    asked: list[str] = []

    def block(input: Any, output: Any) -> None:
        output.block, output.block_reason = True, "not today"

    gate = hook_on("tool_call", lambda event, ctx: asked.append("gate"))
    later = Interceptor("b", BEFORE, lambda given, output: asked.append("b"))
    output, inputs, errors, recorded = await called(*at(BEFORE, block), later, hooks=[gate])
    told = {"status": "blocked", "tool": "bash", "reason": "not today (a)"}
    assert output.is_error
    assert json.loads(output.text) == output.details == told
    assert not inputs
    assert not asked
    assert not errors
    [after] = recorded.of("after_tool_call")
    assert (after.blocked, after.block_reason) == (True, "not today")


def raises(input: Any, output: Any) -> None:
    output.args["command"] = "changed first"
    raise ValueError("broken")


def no_mapping(input: Any, output: Any) -> None:
    output.args = "x"


def no_bool(input: Any, output: Any) -> None:
    output.block = "yes"


def no_text(input: Any, output: Any) -> None:
    output.block, output.block_reason = True, 5


def misspelt(input: Any, output: Any) -> None:
    output.blok = True


def returns(input: Any, output: Any) -> object:
    return {"block": True}


async def hangs(input: Any, output: Any) -> None:
    await anyio.sleep_forever()


FAILING: dict[Handler, str] = {
    raises: "ValueError: broken",
    no_mapping: "output.args: the tool's input is an object, not 'x'",
    no_bool: "output.block: expected `bool`, got `str`",
    no_text: "output.block_reason: expected `str`, got `int`",
    misspelt: "no attribute 'blok'",
    returns: "interceptors change `output` and return nothing, not {'block': True}",
    hangs: "timed out after 0.05 s",
}


@everywhere
@pytest.mark.parametrize("handler", FAILING, ids=lambda handler: handler.__name__)
async def test_a_failing_interceptor_before_the_tool_blocks_by_name(handler: Handler) -> None:
    """The failure is reported.  The changes before it do not count."""
    with anyio.fail_after(PATIENCE):
        output, inputs, [error], _ = await called(*at(BEFORE, handler), timeout=0.05 if handler is hangs else PATIENCE)
    assert output.is_error
    assert not inputs
    assert FAILING[handler] in output.text
    assert "hook a " in output.text
    assert (error.handler, error.event, error.outcome) == (handler.__name__, BEFORE, "blocked")


@everywhere
async def test_a_rewrite_that_breaks_the_schema_is_blocked_with_the_id() -> None:
    """The tool's author promised a command."""

    def spoil(input: Any, output: Any) -> None:
        del output.args["command"]

    output, inputs, _, _ = await called(*at(BEFORE, spoil))
    assert "'command' is a required property" in output.text or '"command" is a required property' in output.text
    assert "(rewritten by a)" in output.text
    assert not inputs


@everywhere
@pytest.mark.parametrize("priority", [-1000, 0, 1000])
async def test_gates_judge_what_interceptors_left(priority: int) -> None:
    """The priority of the rewriter does not matter."""

    def worse(input: Any, output: Any) -> None:
        output.args["command"] = "rm -rf /"

    def gate(event: Any, ctx: Any) -> Block | None:
        return Block("no rm") if "rm" in event.input["command"] else None

    hook = hook_on("tool_call", gate, priority=10_000)
    output, inputs, _, _ = await called(Interceptor("a", BEFORE, worse, priority), hooks=[hook])
    assert output.text == "no rm (hook.py)"
    assert not inputs


@everywhere
async def test_vetoes_rewrite_after_interceptors() -> None:
    """Step 2, then step 3."""

    def first(input: Any, output: Any) -> None:
        output.args["command"] += " 2"

    hook = hook_on("before_tool_call", lambda event, ctx: Rewrite({"command": event.params["command"] + " 3"}))
    _, inputs, _, _ = await called(*at(BEFORE, first), hooks=[hook])
    assert inputs == [{"command": "ls 2 3"}]


# ---- results ---------------------------------------------------------------------------------------------------------


@everywhere
async def test_what_a_failing_interceptor_changed_of_a_result_is_undone() -> None:
    """The next one sees the result as it was before, and its own change counts."""

    def half_way(input: Any, output: Any) -> None:
        output.result.content = "spoilt"
        output.result.details["command"] = "spoilt"
        raise ValueError("half way")

    def fine(input: Any, output: Any) -> None:
        assert output.result.text == "ran ls"
        output.result.details["seen"] = True

    output, _, [error], _ = await called(*at(AFTER, half_way, fine))
    assert output == ToolOutput("ran ls", {"command": "ls", "seen": True})
    assert (error.outcome, error.error) == ("continued", "ValueError: half way")


@everywhere
async def test_a_result_is_changed_field_by_field_or_replaced() -> None:
    """A text counts as content, on the draft as everywhere."""

    def field(input: Any, output: Any) -> None:
        output.result.content.append(TextContent("more"))
        output.result.is_error = True

    def replaced(input: Any, output: Any) -> None:
        assert output.result.is_error
        output.result = ToolOutput(output.result.text.upper())

    output, _, errors, _ = await called(*at(AFTER, field, replaced))
    assert output == ToolOutput("RAN LS\nMORE")
    assert not errors


@everywhere
@pytest.mark.parametrize("wrong", ["x", None, {"content": "x"}])
async def test_a_result_that_is_none_is_not_taken(wrong: object) -> None:
    """The result so far stays."""

    def put(input: Any, output: Any) -> None:
        output.result = wrong

    output, _, [error], _ = await called(*at(AFTER, put))
    assert output == ToolOutput("ran ls", {"command": "ls"})
    assert "output.result: expected a ToolOutput" in error.error


@everywhere
@pytest.mark.parametrize(("field", "wrong"), [("content", 5), ("is_error", "yes"), ("content", [5])])
async def test_a_field_of_a_result_with_a_wrong_type_is_not_taken(field: str, wrong: object) -> None:
    """Named by its place."""

    def put(input: Any, output: Any) -> None:
        setattr(output.result, field, wrong)

    output, _, [error], _ = await called(*at(AFTER, put))
    assert output.text == "ran ls"
    assert f"output.result.{field}: " in error.error


@everywhere
async def test_a_result_that_nobody_changes_is_the_very_same() -> None:
    """No copy where nothing happened."""
    result = ToolOutput("x")

    async def body(input: Any) -> ToolOutput:
        return result

    output, _, _, _ = await called(*at(AFTER, lambda given, output: None), tool=EchoTool(body=body))
    assert output is result


@everywhere
async def test_a_reference_that_is_kept_changes_nothing_later() -> None:
    """The next interceptor and the tool get copies."""
    kept: list[Any] = []

    def keep(input: Any, output: Any) -> None:
        output.args["list"] = [1]
        kept.append(output.args)

    def spoil(input: Any, output: Any) -> None:
        kept[0]["list"].append(2)
        kept[0]["command"] = "rm"

    _, inputs, _, _ = await called(*at(BEFORE, keep, spoil))
    assert inputs == [{"command": "ls", "list": [1]}]


# ---- the registry ----------------------------------------------------------------------------------------------------


def test_an_id_is_there_once() -> None:
    """The second one is refused, the first stays."""
    registry = registered(*at(BEFORE, print))
    with pytest.raises(HookUsageError, match="there is an interceptor 'a' already"):
        registry.add(Interceptor("a", AFTER, print))
    assert [each.name for each in registry.list()] == [BEFORE]


@everywhere
async def test_a_running_dispatch_keeps_its_snapshot() -> None:
    """One that removes the others, and itself, is heard from the next call on."""
    registry = InterceptorRegistry()
    seen: list[str] = []

    def clear(input: Any, output: Any) -> None:
        seen.append("clear")
        registry.clear()

    registry.add(Interceptor("clear", BEFORE, clear))
    registry.add(Interceptor("later", BEFORE, lambda given, output: seen.append("later")))
    runner, _ = runner_of(interceptors=registry)
    tool = wrap_tool(EchoTool(), runner)
    await tool.execute("1", {"command": "ls"})
    await tool.execute("2", {"command": "ls"})
    assert seen == ["clear", "later"]


def test_adding_gives_the_undo_and_removing_says_whether() -> None:
    """The undo of one that was removed does nothing to its successor."""
    registry = InterceptorRegistry()
    undo = registry.add(Interceptor("a", BEFORE, print))
    assert registry.remove("a")
    assert not registry.remove("a")
    registry.add(Interceptor("a", AFTER, print))
    undo()
    assert [each.name for each in registry.list()] == [AFTER]
    registry.clear()
    assert registry.list() == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("", BEFORE, print), "a text that is not empty"),
        ((5, BEFORE, print), "a text that is not empty"),
        (("a", "tool.befor", print), "there is no point 'tool.befor'; did you mean 'tool.before'?"),
        (("a", 5, print), "there is no point 5"),
        (("a", BEFORE, "x"), "'x' is not callable"),
        (("a", BEFORE, lambda output: None), "(input, output) or (input, output, ctx): too many positional"),
        (("a", BEFORE, lambda a, b, c, d: None), "(input, output) or (input, output, ctx): missing a required"),
        (("a", BEFORE, print, "high"), "priority wants an int"),
        (("a", BEFORE, print, 0, "(unclosed"), "tool_matcher: the regular expression '(unclosed' cannot be used"),
        (("a", BEFORE, print, 0, 5), "tool_matcher: expected a regular expression"),
    ],
)
def test_what_cannot_work_is_refused_at_once(arguments: Any, text: str) -> None:
    """The error text names the id and the mistake."""
    with pytest.raises(HookUsageError, match=re.escape(text)):
        Interceptor(*arguments)


def test_the_names_of_other_systems_mean_the_same_points() -> None:
    """An interceptor carries our name."""
    registry = registered(Interceptor("a", "tool.execute.before", print))
    assert registry.list()[0].name == BEFORE
    assert len(registry.get("tool.execute.before")) == 1
    with pytest.raises(HookUsageError, match="there is no point"):
        registry.get("tool.execute")
    with pytest.raises(HookUsageError, match="wants an Interceptor"):
        registry.add(print)  # type: ignore[arg-type]


@pytest.fixture
def process_wide() -> Iterator[None]:
    """Leave no process-wide registry behind; runners of earlier tests use it until they are collected."""
    gc.collect()
    yield
    reset_interceptors()


@pytest.mark.usefixtures("process_wide")
def test_a_process_has_one_registry_from_its_initialization_on() -> None:
    """Initializing twice gives the same one, and a reset empties it."""
    assert get_interceptors() is None
    mine = initialize_interceptors()
    assert initialize_interceptors() is mine
    assert get_interceptors() is mine
    mine.add(Interceptor("of a process", BEFORE, print))
    reset_interceptors()
    assert get_interceptors() is None
    assert mine.list() == []
    reset_interceptors()


def blocker(id: str = "of the process", priority: int = 0) -> Interceptor:
    """Return an interceptor that blocks every call."""

    def block(given: Any, output: Any) -> None:
        output.block, output.block_reason = True, f"{id} says no"

    return Interceptor(id, BEFORE, block, priority)


@pytest.mark.usefixtures("process_wide")
@everywhere
async def test_an_interceptor_of_the_process_counts_in_every_runner() -> None:
    """In runners that were made before it and after it, until it is removed."""
    early, _ = runner_of()
    undo = initialize_interceptors().add(blocker())
    late, _ = runner_of(interceptors=InterceptorRegistry())
    for runner in (early, late):
        tool = wrap_tool(EchoTool(), runner)
        assert "of the process says no" in (await tool.execute("1", {"command": "ls"})).text
    undo()
    for runner in (early, late):
        assert (await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})).text == "ran ls"


@pytest.mark.usefixtures("process_wide")
@everywhere
async def test_interceptors_of_the_process_come_first_within_one_priority() -> None:
    """Priority counts over both registries."""
    seen: list[str] = []

    def noting(id: str, priority: int = 0) -> Interceptor:
        return Interceptor(id, BEFORE, lambda given, output: seen.append(id), priority)

    runner, _ = runner_of(interceptors=registered(noting("low", -1), noting("mine"), noting("high", 5)))
    shared = initialize_interceptors()
    shared.add(noting("shared"))
    shared.add(noting("shared last", -2))
    await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
    assert seen == ["high", "shared", "mine", "low", "shared last"]


@pytest.mark.usefixtures("process_wide")
def test_an_id_is_taken_in_the_process_and_in_its_runners() -> None:
    """Whichever of them has it first."""
    shared = initialize_interceptors()
    shared.add(blocker("taken"))
    with pytest.raises(HookUsageError, match="'taken' already"):
        registered(blocker("taken"))
    own = registered(blocker("mine"))
    runner, _ = runner_of(interceptors=own)
    with pytest.raises(HookUsageError, match="'mine' already"):
        shared.add(blocker("mine"))
    with pytest.raises(HookUsageError, match="'mine'"):
        runner_of(hook_of(lambda api: api.intercept(BEFORE, print_nothing, id="mine")), interceptors=own)
    assert runner.interceptors is own


def print_nothing(given: Any, output: Any) -> None:
    """Change nothing."""


@pytest.mark.usefixtures("process_wide")
@everywhere
async def test_a_hook_that_uses_the_process_wide_registry_keeps_its_interceptor_to_its_runner(tmp_path: Path) -> None:
    """From the file itself, from `register`, from a handler and from a task; it is named like the hook's others."""
    file = tmp_path / "hook.py"
    file.write_text(
        "from agent_hooks import initialize_interceptors, Interceptor\n"
        "def note(given, output): output.args['command'] += '!'\n"
        "def add(id): initialize_interceptors().add(Interceptor(id, 'tool.before', note))\n"
        "async def task(): add('task')\n"
        "def register(api):\n"
        "    add('register')\n"
        "    api.start_task(task)\n"
        "    api.on('agent_start', lambda event, ctx: add('handler'))\n"
    )
    loaded = await load_hooks([str(file)], cwd=tmp_path)
    assert loaded.errors == []
    other, _ = runner_of()
    bare = EchoTool()
    async with HookRunner(loaded, cwd=tmp_path) as runner:
        await runner.emit(AgentStart())
        with anyio.fail_after(PATIENCE):
            while len(runner.interceptors.list()) < 3:
                await anyio.sleep(0)
        assert {each.id for each in runner.interceptors.list()} == {"register", "handler", "task"}
        assert initialize_interceptors().list() == []
        await wrap_tool(bare, runner).execute("1", {"command": "ls"})
        await wrap_tool(bare, other).execute("1", {"command": "ls"})
    assert bare.inputs == [{"command": "ls!!!"}, {"command": "ls"}]
    assert not other.engine.intercepts(BEFORE, "bash")


@everywhere
async def test_an_interceptor_that_changes_no_result_answers_nothing() -> None:
    """The agent gets the very result of the tool, details and all."""
    result = ToolOutput("text", {"rows": [1, {"two": None}]})

    async def body(input: dict[str, Any]) -> ToolOutput:
        return result

    answers: list[object] = []
    runner, errors = runner_with(*at(AFTER, lambda given, output: None, print_nothing))
    runner.on_answer(lambda handler, event, answer: answers.append(answer))
    assert await wrap_tool(EchoTool(body=body), runner).execute("1", {"command": "ls"}) is result
    assert (answers, errors) == ([], [])


# ---- hook files ------------------------------------------------------------------------------------------------------


@everywhere
async def test_a_hook_file_intercepts_as_a_call_or_a_decorator() -> None:
    """Their ids name the file and the function, and they are registered with this runner only."""

    def register(api: HookAPI) -> None:
        @api.intercept(BEFORE, tool="bash")
        async def add(input: Any, output: Any) -> None:
            output.args["command"] += " 1"

        api.intercept(BEFORE, add)
        api.intercept(AFTER, lambda given, output: None, id="mine", priority=-10)

    registry = InterceptorRegistry()
    runner, _ = runner_of(hook_of(register))
    other, _ = runner_of(hook_of(register), interceptors=registry)
    bare = EchoTool()
    async with runner, other:
        assert [each.id for each in runner.interceptors.list()] == ["hook.py:add", "hook.py:add#2", "mine"]
        await wrap_tool(bare, runner).execute("1", {"command": "ls"})
        await wrap_tool(bare, other).execute("1", {"command": "ls"})
        assert registry.list() == []
    assert bare.inputs == [{"command": "ls 1 1"}] * 2


@everywhere
async def test_a_hook_can_begin_and_stop_intercepting_while_it_runs() -> None:
    """From the next call on."""
    apis: list[HookAPI] = []
    runner, _ = runner_of(hook_of(apis.append))
    bare = EchoTool()
    tool = wrap_tool(bare, runner)

    def add(input: Any, output: Any) -> None:
        output.args["command"] += "!"

    await tool.execute("1", {"command": "ls"})
    undo = apis[0].intercept(BEFORE, add)
    await tool.execute("2", {"command": "ls"})
    undo()
    undo()
    await tool.execute("3", {"command": "ls"})
    assert [each["command"] for each in bare.inputs] == ["ls", "ls!", "ls"]
    assert apis[0].interceptors == []


def test_two_hooks_with_the_same_id_do_not_start() -> None:
    """Leaving one out might leave out a gate."""

    def register(api: HookAPI) -> None:
        api.intercept(BEFORE, print, id="same")

    with pytest.raises(HookUsageError, match="there is an interceptor 'same' already"):
        runner_of(hook_of(register, "a.py"), hook_of(register, "b.py"))


@pytest.mark.parametrize(
    ("misuse", "text"),
    [
        (lambda api: api.intercept(print), "which point? Write"),
        (lambda api: api.intercept("tool.befor", print), "did you mean 'tool.before'?"),
        (lambda api: api.on("tool.before", print), "is a point, not an event: api.intercept('tool.before', …)"),
        (lambda api: (api.intercept(BEFORE, print, id="a"), api.intercept(AFTER, print, id="a")), "'a' already"),
    ],
)
def test_misuse_in_a_hook_file_is_refused_at_once(misuse: Any, text: str) -> None:
    """With the remedy."""
    with pytest.raises(HookUsageError, match=re.escape(text)):
        misuse(HookAPI("h.py"))


@everywhere
async def test_a_failing_interceptor_of_a_file_is_reported_with_the_file_and_the_line() -> None:
    """Like any handler of it."""

    def register(api: HookAPI) -> None:
        api.intercept(BEFORE, raises, id="mine")

    runner, errors = runner_of(hook_of(register))
    await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
    [error] = errors
    assert error.hook_path == "hook.py"
    assert error.line == raises.__code__.co_firstlineno + 2


# ---- patterns that run away ------------------------------------------------------------------------------------------

RUNAWAY = "^(a|aa)+$"
LONG = "a" * 40 + "!"


@everywhere
async def test_a_matcher_that_runs_away_blocks_the_call() -> None:
    """A model may invent the name of a tool, and no process hangs on it."""
    runner, errors = runner_with(Interceptor("a", BEFORE, print, 0, RUNAWAY))
    bare = EchoTool(LONG)
    output = await wrap_tool(bare, runner).execute("1", {"command": "ls"})
    assert "took more than 0.1 s" in output.text
    assert not bare.inputs
    assert errors[-1].outcome == "blocked"


@everywhere
async def test_a_pattern_of_a_gate_that_runs_away_blocks_the_call() -> None:
    """`tool=` of `api.on` as well."""
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None, tool=re.compile(RUNAWAY)))
    bare = EchoTool(LONG)
    output = await wrap_tool(bare, runner).execute("1", {"command": "ls"})
    assert "took more than 0.1 s" in output.text
    assert not bare.inputs


# ---- the person's permission -----------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize(("status", "runs", "asked"), [("allow", True, 0), ("deny", False, 0), ("ask", True, 1)])
async def test_an_interceptor_may_settle_a_question(status: str, runs: bool, asked: int) -> None:
    """It sees the question and the call; allowed is run without a dialog."""
    ui = ScriptedUI(True)
    seen: list[Any] = []

    def settle(input: Any, output: Any) -> None:
        seen.append((input.tool_name, input.args, input.reason, input.agent_id))
        output.status = status

    hook = hook_on("tool_call", lambda event, ctx: Ask("sure?"))
    output, inputs, _, _ = await called(*at("permission.ask", settle), hooks=[hook], ui=ui)
    assert seen == [("bash", {"command": "ls"}, "sure?", "main")]
    assert bool(inputs) is runs
    assert output.is_error is not runs
    assert len(ui.asked) == asked


@everywhere
@pytest.mark.parametrize("wrong", ["yes", None, True])
async def test_a_wrong_status_leaves_the_question_to_the_person(wrong: object) -> None:
    """It is reported, and is no yes."""

    def settle(input: Any, output: Any) -> None:
        output.status = wrong

    hook = hook_on("tool_call", lambda event, ctx: Ask("sure?"))
    output, inputs, errors, _ = await called(*at("permission.ask", settle), hooks=[hook], ui=ScriptedUI(False))
    assert "the user said no" in output.text
    assert not inputs
    assert [error.event for error in errors] == ["permission.ask"]


@everywhere
async def test_a_block_is_not_lifted_by_a_permission() -> None:
    """It is not even asked."""
    asked: list[Any] = []
    hook = hook_on("tool_call", lambda event, ctx: Block("no"))
    output, inputs, _, _ = await called(*at("permission.ask", lambda *both: asked.append(both)), hooks=[hook])
    assert output.text == "no (hook.py)"
    assert not inputs
    assert not asked


# ---- the bus ---------------------------------------------------------------------------------------------------------


@everywhere
async def test_everything_on_the_bus_reaches_the_event_point() -> None:
    """After its handlers; the points themselves are no events."""
    seen: list[str] = []
    runner, errors = runner_with(*at("event", lambda given, output: seen.append(given.event.type)))
    await runner.emit(AgentStart())
    await runner.emit(TurnStart(turn_index=0, timestamp=0))
    await wrap_tool(EchoTool(), runner).execute("1", {"command": "ls"})
    tools = ["before_tool_call", "tool_call", "tool_result", "after_tool_call"]
    assert seen == ["agent_start", "turn_start", *tools]
    assert not errors


@everywhere
async def test_a_failing_interceptor_of_the_bus_changes_nothing() -> None:
    """It is reported, once for each event."""
    runner, errors = runner_with(*at("event", raises))
    await runner.emit(AgentStart())
    assert [error.event for error in errors] == ["event"]


@everywhere
async def test_a_point_without_interceptors_gives_back_the_output() -> None:
    """The very same."""
    runner, _ = runner_of()
    output = CompactingOutput()
    assert await runner.engine.reach("session.compacting", POINTS["session.compacting"].input, output) is output  # type: ignore[arg-type]


# ---- properties ------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON, JSON)
def test_whatever_an_interceptor_leaves_is_an_object_or_a_block(args: object, block: object) -> None:
    """And nothing that is no object, or no bool, ever reaches the tool."""

    def leave(input: Any, output: Any) -> None:
        output.args, output.block = args, block

    async def run() -> None:
        output, inputs, errors, _ = await called(*at(BEFORE, leave))
        fine = isinstance(args, dict) and block is False and isinstance(args.get("command"), str)
        assert inputs == ([args] if fine else [])
        assert output.is_error is not fine
        assert bool(errors) is not (isinstance(args, dict) and isinstance(block, bool))

    anyio.run(run)


@pytest.mark.parametrize("point", POINTS.values(), ids=lambda point: point.name)
def test_the_table_says_of_each_point_what_is_in_it(point: Point) -> None:
    """The output of a point that can block has the fields for it.  A value of a wrong type is refused by its place."""
    fields = point.fields(point.output)
    assert ("block" in fields and "block_reason" in fields) is point.blocks
    assert point.when
    assert point.matched == ("tool" if point.name.startswith("tool.") else "agent")
    assert AtPoint(point=point.name, key="x", input=None, output=None).route == (point.name, "x")  # type: ignore[type-var]


def test_a_wrapped_tool_keeps_its_name_and_the_type_of_a_tool() -> None:
    """A wrapped tool keeps its name and schema."""
    runner, _ = runner_with(*at(BEFORE, print))
    tool: Tool = wrap_tool(EchoTool(), runner)
    assert tool.name == "bash"


@everywhere
async def test_a_gate_that_subscribes_in_an_earlier_step_is_asked_about_the_same_call() -> None:
    """The handlers are looked up at each step, not once for the call."""
    apis: list[HookAPI] = []
    runner, _ = runner_of(hook_of(apis.append))

    def late(given: Any, output: Any) -> None:
        apis[0].on("tool_call", lambda event, ctx: Block("just in time"))

    runner.interceptors.add(Interceptor("late", BEFORE, late))
    bare = EchoTool()
    output = await wrap_tool(bare, runner).execute("1", {"command": "ls"})
    assert output.text == "just in time (hook.py)"
    assert not bare.inputs
