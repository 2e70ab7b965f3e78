"""A call of another agent that amounts to several calls of ours: each part is judged, the strictest verdict counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_hooks import (
    AfterToolCall,
    Ask,
    BeforeToolCall,
    Block,
    HookAPI,
    HookContext,
    HookRunner,
    LoadedHook,
    Replace,
    Rewrite,
    ToolCall,
)
from agent_hooks.bridges.base.happenings import CallAsked, CallEnded, Part, PermissionAsked
from agent_hooks.bridges.base.verdicts import Verdict
from agent_hooks.bridges.driver import BridgeUI, Bridging
from agent_hooks.dispatch.points import PermissionInput, PermissionOutput
from agent_hooks.guards import builtin_guards
from agent_hooks.records.lines import Decision, Result
from agent_hooks.testing import RecordedEvents
from agent_hooks.values.content import ToolOutput
from recording import Recorded
from support import hook_of, hook_on

PATCH: dict[str, Any] = {"native": {}, "tool_name": "apply_patch", "native_name": "apply_patch", "name": "before"}


def parts_of(tool_name: str, input: Mapping[str, Any]) -> Sequence[Part]:
    """Return a write for each path of a patch, as a bridge would."""
    return tuple(Part("write", {"path": path, "content": "x"}) for path in str(input["patch"]).split())


def asked(*paths: str) -> CallAsked:
    """Return a patch that writes some files."""
    return CallAsked(**PATCH, **_fields(paths))


def ended(*paths: str) -> CallEnded:
    """Return the result of a patch."""
    return CallEnded(**PATCH, **_fields(paths), output=ToolOutput("done"))


def _fields(paths: tuple[str, ...]) -> dict[str, Any]:
    given = {"patch": " ".join(paths)}
    return {"tool_call_id": "c1", "input": given, "parts": parts_of("apply_patch", given)}


async def answer(
    happening: Any, *hooks: LoadedHook, divide: Any = parts_of, **options: Any
) -> tuple[Verdict, RecordedEvents]:
    """Return the verdict of hooks on a happening, and the events that the runner emitted."""
    ui = BridgeUI()
    async with HookRunner(hooks, **{"cwd": "/w/proj", "ui": ui, "mode": "bridge", **options}) as runner:
        recorded = RecordedEvents(runner)
        return await Bridging(runner, ui, divide=divide).answer(happening), recorded


def gate_on(path: str, verdict: Any, tool: str | None = "write") -> LoadedHook:
    """Return a hook that gives a verdict on writes of one path."""

    async def judge(event: ToolCall, ctx: HookContext) -> Any:
        return verdict if event.input.get("path") == path else None

    return hook_on("tool_call", judge, tool=tool)


async def test_a_gate_of_writes_stops_a_patch_that_writes_its_file() -> None:
    """The parts before and after it are refused too, and each observer gets its refusal."""
    verdict, recorded = await answer(asked("a", "b", "c"), gate_on("b", Block("b is mine")))
    assert verdict.block
    assert "b is mine" in verdict.block
    after = [event for event in recorded.of("after_tool_call") if isinstance(event, AfterToolCall)]
    assert {event.tool_call_id for event in after} == {"c1", "c1#1", "c1#2", "c1#3"}
    assert all(event.blocked for event in after)


async def test_a_guard_of_paths_stops_a_patch() -> None:
    """The guard sees the path of the part."""
    verdict, _ = await answer(asked("a", "/w/proj/.env"), guards=builtin_guards())
    assert verdict.block or verdict.ask
    clean, _ = await answer(asked("a", "b"), guards=builtin_guards())
    assert clean == Verdict()


async def test_the_strictest_verdict_on_a_call_and_its_parts_counts() -> None:
    """A block beats a question; all reasons and all questions are told, each once."""
    ask_a, ask_b = gate_on("a", Ask("Write a?")), gate_on("b", Ask("Write b?"))
    verdict, _ = await answer(asked("a", "b", "c"), ask_a, ask_b)
    assert verdict.ask is not None
    assert verdict.ask.count("Write a?") >= 1
    assert "Write b?" in verdict.ask
    assert verdict.block is None
    verdict, _ = await answer(asked("a", "b", "c"), ask_a, gate_on("b", Block("no b")), gate_on("c", Block("no c")))
    assert verdict == Verdict(block="no b (hook.py)\nno c (hook.py)")
    assert (await answer(asked("a"), gate_on("z", Block("no"))))[0] == Verdict()


async def test_a_call_is_allowed_only_with_all_its_parts() -> None:
    """An interceptor of `permission.ask` that allows one part allows nothing."""

    def register(api: HookAPI, allowed: set[str]) -> None:
        @api.on("tool_call")
        async def gate(event: ToolCall, ctx: HookContext) -> Ask:
            return Ask("Really?")

        @api.intercept("permission.ask")
        def settle(input: PermissionInput, output: PermissionOutput) -> None:
            if input.tool_name in allowed:
                output.status = "allow"

    for allowed in ({"write"}, {"apply_patch"}, {"write", "apply_patch"}):
        hook = hook_of(lambda api, allowed=allowed: register(api, allowed))  # type: ignore[misc]  # a default
        verdict, _ = await answer(asked("a"), hook)
        question = PermissionAsked(**PATCH, **_fields(("a",)))
        settled, _ = await answer(question, hook)
        assert verdict.allow == settled.allow == (len(allowed) == 2)
        assert bool(verdict.ask) == (len(allowed) < 2)


async def test_a_denied_part_settles_the_question_of_the_other_agent() -> None:
    """The question is about the call with all its parts."""

    def deny(input: PermissionInput, output: PermissionOutput) -> None:
        output.status = "deny" if input.args.get("path") == "b" else "allow"

    hook = hook_of(lambda api: api.intercept("permission.ask", deny, id="p"))
    verdict, _ = await answer(PermissionAsked(**PATCH, **_fields(("a", "b"))), hook)
    assert verdict == Verdict(block="denied by permission.ask")


async def test_a_rewritten_part_blocks_the_call() -> None:
    """The other agent takes the input of the whole call only."""

    async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite:
        return Rewrite({**event.params, "path": "elsewhere"})

    verdict, _ = await answer(asked("a"), hook_on("before_tool_call", rewrite, tool="write"))
    assert verdict.block
    assert "hook.py changed the call of write" in verdict.block
    assert verdict.input is None


async def test_a_rewritten_call_is_divided_anew() -> None:
    """The parts that are judged are those of the input that would run."""

    async def rewrite(event: BeforeToolCall, ctx: HookContext) -> Rewrite:
        return Rewrite({"patch": "other"})

    rewriter = hook_on("before_tool_call", rewrite, tool="apply_patch")
    verdict, _ = await answer(asked("a"), rewriter, gate_on("a", Block("not a")))
    assert verdict.block is None
    assert verdict.input == {"patch": "other"}
    verdict, _ = await answer(asked("a"), rewriter, gate_on("other", Block("not other")))
    assert verdict.block
    verdict, _ = await answer(asked("a"), rewriter, divide=None)
    assert verdict.block
    assert "cannot be divided again" in verdict.block


async def test_the_result_of_a_call_is_the_result_of_each_part() -> None:
    """A hook of writes sees it once for each part, and may change it."""
    seen: list[str] = []

    async def result(event: Any, ctx: HookContext) -> Replace:
        seen.append(f"{event.tool_call_id} {event.input['path']}")
        return Replace(content="hidden")

    verdict, recorded = await answer(ended("a", "b"), hook_on("tool_result", result, tool="write"))
    assert seen == ["c1#1 a", "c1#2 b"]
    assert verdict.output is not None
    assert verdict.output.text == "hidden"
    assert [event.tool_call_id for event in recorded.of("after_tool_call")] == ["c1", "c1#1", "c1#2"]


async def test_a_part_names_the_call_that_it_belongs_to() -> None:
    """A gate reads the id of the whole call."""
    seen: list[tuple[str, str | None]] = []

    async def gate(event: ToolCall, ctx: HookContext) -> None:
        seen.append((event.tool_call_id, event.parent_tool_call_id))

    await answer(asked("a"), hook_on("tool_call", gate))
    assert seen == [("c1", None), ("c1#1", "c1")]


async def test_a_call_and_its_parts_are_records_of_their_own(recorded: Recorded) -> None:
    """A part names the call as its parent, and both halves of a part have one id."""
    ui = BridgeUI()
    runner = recorded.runner(mode="bridge", ui=ui, records={"client": "other"})
    bridging = Bridging(runner, ui, divide=parts_of)
    assert await bridging.answer(asked("a", "b")) == Verdict()
    await bridging.answer(ended("a", "b"))
    runner.end_records()
    decisions, results = recorded.lines(Decision), recorded.lines(Result)
    assert [line.tool for line in decisions] == ["apply_patch", "write", "write"]
    assert [line.parent for line in decisions] == [None, decisions[0].id, decisions[0].id]
    assert [line.id for line in results] == [line.id for line in decisions]
    assert len({line.id for line in decisions}) == 3
