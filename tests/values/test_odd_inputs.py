"""Odd values, odd tools and odd moments: none gets past a gate, and no record is lost."""

from __future__ import annotations

import asyncio
import gc
import heapq
import itertools
import json
import weakref
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from agent_hooks import (
    AgentEnd,
    BeforeToolCall,
    Block,
    HookAPI,
    HookRunner,
    HookUsageError,
    LoadedHook,
    Rewrite,
    SessionEvent,
    ToolCall,
    ToolOutput,
    TurnStart,
    UserMessage,
    wrap_tool,
)
from agent_hooks.host.session import Session
from agent_hooks.pipeline.order import preflight, run_tool
from agent_hooks.values.frozen import freeze
from agent_hooks.values.wire import camel, to_json
from support import PATIENCE, EchoTool, Endless, call_of, hook_of, hook_on, runner_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"path": Path("/x")}, '{"path":"/x"}'),
        ({"text": "half \ud800"}, '{"text":"half ?"}'),
        (
            {"number": 10**5000, "other": 10**50},
            '{"number":"<a number of 16,610 bits>","other":' + "1" + "0" * 50 + "}",
        ),
        ({"deep": [b"x", {1: object}]}, '{"deep":["eA==",{"1":"<class \'object\'>"}]}'),
        (
            UserMessage(content="\udcff", timestamp=1),
            '{"role":"user","content":[{"type":"text","text":"?"}],"timestamp":1,"attachments":[],"isContext":false}',
        ),
    ],
)
async def test_a_value_that_is_no_json_is_written_as_text(value: object, text: str) -> None:
    """A tool may put any value into a record, and the record is not lost."""
    assert json.loads(to_json(value)) == json.loads(text)


async def test_a_value_that_holds_itself_is_written_as_far_as_it_goes() -> None:
    """A cycle is written down to a fixed depth."""
    value: list[Any] = []
    value.append(value)
    assert b"\xe2\x80\xa6" in to_json(value)


@pytest.mark.parametrize(
    ("name", "key"),
    [("hook_timeout", "hookTimeout"), ("tool_call_timeout", "toolCallTimeout"), ("reason", "reason"), ("a_1", "a_1")],
)
async def test_a_key_in_json_is_spelled_in_camel_case(name: str, key: str) -> None:
    """A name that is spelled so already stays, and so does an underscore that joins no words."""
    assert camel(name) == key
    assert camel(key) == key
    assert camel(f"_{name}") == f"_{key}"


async def test_a_session_keeps_entries_with_odd_values(project: Path) -> None:
    """The file has this entry and the next one."""
    session = Session.create(str(project))
    session.add_message(UserMessage(content="bad \udcff", timestamp=1))
    session.add_message(UserMessage(content="good", timestamp=2))
    assert session.path is not None
    assert [json.loads(line)["type"] for line in session.path.read_text().splitlines()] == [
        "session",
        "message",
        "message",
    ]
    session.close()


async def test_a_gate_subscribed_later_counts_for_every_runner_of_its_hook() -> None:
    """Two runners may share a hook, and both call the new gate."""

    def register(api: HookAPI) -> None:
        def lock(event: Any, ctx: Any) -> None:
            api.on("tool_call", lambda event, ctx: Block("locked"))

        api.on("agent_end", lock)

    hook = hook_of(register)
    first, second = (HookRunner([hook], cwd=".") for _ in range(2))
    assert await first.emit(call_of()) is None
    await second.emit(AgentEnd())
    assert str(await first.emit(call_of())) == "locked (hook.py)"


async def test_a_gate_subscribed_while_a_plan_is_made_is_in_the_next_one() -> None:
    """A handler's thread may subscribe at any moment; the runner does not keep an older plan."""
    api = HookAPI("hook.py")
    planned: list[str] = []

    class Matcher(list[str]):
        # Planning iterates here, and the other thread subscribes meanwhile.
        def __iter__(self) -> Any:
            if not planned:
                planned.append("now")
                api.on("tool_call", lambda event, ctx: Block("new gate"))
            return super().__iter__()

    api.on("tool_call", lambda event, ctx: None, tool=Matcher(["bash"]))
    runner = HookRunner([LoadedHook("hook.py", "hook.py", "hook", api)], cwd=".")
    assert str(await runner.emit(call_of())) == "new gate (hook.py)"


async def test_a_final_result_is_told_before_the_observers_run() -> None:
    """An abort while the observers run cannot lose the result."""
    told: list[str] = []

    async def slow(event: Any, ctx: Any) -> None:
        assert told == ["ran ls"]

    runner, errors = runner_of(hook_on("after_tool_call", slow))
    call = await preflight(EchoTool(), "1", {"command": "ls"}, runner=runner)
    await run_tool(call, on_result=lambda output: told.append(output.text))
    assert (told, errors) == (["ran ls"], [])


@pytest.mark.parametrize("kind", [MappingProxyType, UserDict])
async def test_an_input_of_any_mapping_is_copied(kind: Callable[[dict[str, Any]], Any]) -> None:
    """Changes of the caller while gates judge have no effect."""
    original: dict[str, Any] = {"command": "ls"}
    given = kind(original)

    async def gate(event: ToolCall, ctx: Any) -> Block | None:
        verdict = Block("no") if event.input["command"] != "ls" else None
        original["command"] = "rm -rf /"
        if isinstance(given, UserDict):
            given["command"] = "rm -rf /"
        return verdict

    tool = EchoTool()
    runner, _ = runner_of(hook_on("tool_call", gate))
    await wrap_tool(tool, runner).execute("1", given)
    assert tool.inputs == [{"command": "ls"}]


async def test_a_handler_that_gets_past_the_read_only_input_blocks() -> None:
    """C functions change a list without calling its methods."""

    async def gate(event: ToolCall, ctx: Any) -> None:
        heapq.heappop(event.input["paths"])

    tool = EchoTool()
    runner, _ = runner_of(hook_on("tool_call", gate))
    output = await wrap_tool(tool, runner).execute("1", {"command": "x", "paths": ["/z", "/a"]})
    assert "changed event.input in place" in output.text
    assert tool.inputs == []


async def test_an_input_that_holds_itself_is_refused() -> None:
    """Such an input cannot be judged."""
    value: dict[str, Any] = {"command": "x"}
    value["self"] = value
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None))
    output = await wrap_tool(EchoTool(), runner).execute("1", value)
    assert "nested too deeply, or holds itself" in output.text


async def test_a_tool_keeps_the_name_it_was_wrapped_under() -> None:
    """Gates for that name are called, even when the tool changes its name later."""
    tool = EchoTool("bash")
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: Block("no"), tool="bash"))
    wrapped = wrap_tool(tool, runner)
    tool.name = "other"
    assert (await wrapped.execute("1", {"command": "ls"})).is_error
    assert tool.inputs == []


async def test_a_cancellation_that_a_tool_makes_something_else_of_is_not_lost() -> None:
    """The caller's task ends as cancelled, as it does without hooks."""
    running = anyio.Event()

    async def body(input: dict[str, Any]) -> ToolOutput:
        try:
            running.set()
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise OSError("cleaning up failed") from None
        raise AssertionError("unreachable")

    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: None))
    task = asyncio.ensure_future(wrap_tool(EchoTool(body=body), runner).execute("1", {"command": "x"}))
    with anyio.fail_after(PATIENCE):
        await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_gate_stopped_by_the_shutdown_blocks_whatever_its_policy() -> None:
    """The gate did nothing wrong, but no tool may start any more."""
    gate = Endless()
    runner, _ = runner_of(hook_on("tool_call", gate, on_error="continue"))
    answers: list[object] = []

    async def judge() -> None:
        answers.append(await runner.emit(call_of()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(judge)
        await gate.begun.wait()
        await anyio.wait_all_tasks_blocked()
        await runner.emit(SessionEvent(reason="shutdown"))
    assert isinstance(answers[0], Block)
    assert "the session ends" in str(answers[0])


async def test_a_task_queued_while_a_tool_runs_does_not_lose_its_result() -> None:
    """The runner was not entered: it refuses the next call, and passes the result of this one on."""
    api = HookAPI("hook.py")
    api.on("tool_result", lambda event, ctx: None)

    async def later() -> None:
        raise AssertionError("the runner is never entered")

    async def body(input: dict[str, Any]) -> ToolOutput:
        api.start_task(later)
        return ToolOutput("done")

    runner = HookRunner([LoadedHook("hook.py", "hook.py", "hook", api)], cwd=".")
    tool = wrap_tool(EchoTool(body=body), runner)
    assert (await tool.execute("1", {"command": "x"})).text == "done"


@pytest.mark.parametrize("name", [5, "", ["x"]])
async def test_a_tool_without_a_proper_name_is_refused(name: object) -> None:
    """The refusal comes at once, so that its hook fails to load."""
    tool = EchoTool()
    tool.name = name  # type: ignore[assignment]  # the mistake
    with pytest.raises(HookUsageError, match="name is a text"):
        HookAPI("hook.py").register_tool(tool)


def test_no_event_loop_is_kept_alive() -> None:
    """A program may run many loops, one after another."""
    loops: list[weakref.ref[object]] = []

    async def main() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))

        async def handler(event: Any, ctx: Any) -> None:
            await asyncio.sleep(0)

        runner, _ = runner_of(hook_on("agent_end", handler))
        await runner.emit(AgentEnd())

    for _ in range(3):
        asyncio.run(main())
    gc.collect()
    assert [loop() for loop in loops] == [None, None, None]


class LyingDict(dict[str, Any]):
    """A mapping that says it has no end."""

    def items(self) -> Any:
        return ((str(number), number) for number in itertools.count())

    def __iter__(self) -> Any:
        return (str(number) for number in itertools.count())

    def keys(self) -> Any:
        return iter(self)


class EndlessSequence(Sequence[int]):
    """A sequence without an end."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return 1


class EndlessMapping(Mapping[str, int]):
    """A mapping without an end."""

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Any:
        return (str(number) for number in itertools.count())

    def __getitem__(self, key: str) -> int:
        return 1


@pytest.mark.parametrize("odd", [EndlessMapping(), EndlessSequence(), {"block": EndlessMapping()}])
async def test_a_gate_whose_answer_has_no_end_blocks(odd: object) -> None:
    """The answer is read on the event loop, where no deadline could end that."""
    runner, errors = runner_of(hook_on("tool_call", lambda event, ctx: odd, inline=True))
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert len(errors) == 1


@pytest.mark.parametrize(
    "answer", [lambda: Rewrite({"command": EndlessSequence()}), lambda: {"params": EndlessMapping()}]
)
async def test_a_rewrite_without_an_end_blocks(answer: Callable[[], object]) -> None:
    """So does one inside of an answer."""
    runner, errors = runner_of(hook_on("before_tool_call", lambda event, ctx: answer(), inline=True))
    assert isinstance(await runner.emit(BeforeToolCall(tool_name="bash", tool_call_id="1", params={})), Block)
    assert "members is taken for endless" in errors[0].error


async def test_an_observer_whose_answer_has_no_end_is_reported() -> None:
    """It is not compared with anything."""
    runner, errors = runner_of(hook_on("turn_start", lambda event, ctx: EndlessMapping(), inline=True))
    await runner.emit(TurnStart(turn_index=0, timestamp=0))
    assert "takes no answer" in errors[0].error


async def test_a_dict_counts_by_what_it_holds() -> None:
    """A subclass that lies about its items is read past its own methods."""
    assert freeze(LyingDict(command="ls")) == {"command": "ls"}
    runner, _ = runner_of(hook_on("tool_call", lambda event, ctx: LyingDict(block=True, reason="why"), inline=True))
    verdict = await runner.emit(call_of())
    assert isinstance(verdict, Block)
    assert verdict.reason == "why"
