"""A hook that finds the work unfinished makes the agent go on; not for ever, and not after an abort or a failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_hooks import AgentEnd, Continue, HookAPI, HookContext
from agent_hooks.errors import ModelError
from agent_hooks.host import agent as agent_module
from agent_hooks.host.models import open_model
from agent_hooks.values.answers import CONTINUE_LIMIT
from host.hosting import stage
from support import PATIENCE, EchoTool, Endless

pytestmark = pytest.mark.anyio


async def test_the_agent_goes_on_in_the_same_run_with_the_text_as_its_next_message(project: Path) -> None:
    """More turns and another `agent_end` follow; messages that came meanwhile are in the same request."""

    def register(api: HookAPI) -> None:
        @api.on("agent_end")
        async def more(event: AgentEnd, ctx: HookContext) -> Continue | None:
            if event.continued:
                return None
            api.send("sent meanwhile")
            return Continue("@bash two")

    on = stage(project, register)
    async with on.host as host:
        answer = await host.prompt("@bash one")
        await host.wait_idle()
    assert answer.text == "sent meanwhile\n"
    turn = ["turn_start", "before_tool_call", "tool_call", "tool_result", "after_tool_call", "turn_end"]
    assert on.events.types[1:-1] == [
        *("agent_start", *turn, "turn_start", "turn_end", "agent_end"),
        *("turn_start", "turn_end", "agent_end"),
    ]
    assert [end.continued for end in on.events.of("agent_end")] == [0, 1]
    assert [[message.role for message in end.messages] for end in on.events.of("agent_end")] == [
        ["user", "assistant", "toolResult", "assistant"],
        ["user", "assistant", "toolResult", "assistant", "user", "user", "assistant"],
    ]
    assert on.view.seen == [
        "started @bash one by None",
        "injected @bash two by hook0.py",
        "injected sent meanwhile by hook0.py",
        "ended None aborted=False",
    ]
    saved = [json.loads(line).get("message", {}) for line in on.path.read_text().splitlines()]
    users = [(each["content"][0]["text"], each.get("source")) for each in saved if each.get("role") == "user"]
    assert users == [("@bash one", None), ("@bash two", "hook0.py"), ("sent meanwhile", "hook0.py")]


@pytest.mark.parametrize("mode", ["print", "rpc", "interactive"])
async def test_hooks_keep_a_run_going_so_many_times_and_the_next_one_anew(project: Path, mode: str) -> None:
    """Then the run ends in order, and a warning names the hook that wanted it to go on."""

    def register(api: HookAPI) -> None:
        api.on("agent_end", lambda event, ctx: {"continue": f"@bash {event.continued}"}, inline=True)

    on = stage(project, register, mode=mode)
    async with on.host as host:
        answer = await host.prompt("go")
        assert answer.text == f"1. bash {CONTINUE_LIMIT - 1}\n   ran {CONTINUE_LIMIT - 1}\n"
        await host.prompt("again")
    commands = [given["command"] for given in on.tool.inputs]
    assert commands == [str(count) for count in range(CONTINUE_LIMIT)] * 2
    assert [end.continued for end in on.events.of("agent_end")] == [*range(CONTINUE_LIMIT + 1)] * 2
    assert on.events.types.count("agent_start") == 2
    limit = (
        "the agent stops here: hooks have continued the run 8 times in a row, which is the limit; "
        "hook0.py wants to continue it"
    )
    assert on.view.warnings == [limit, limit]
    assert on.view.seen[-1] == "ended None aborted=False"


def always(api: HookAPI) -> None:
    """Continue every run."""
    api.on("agent_end", lambda event, ctx: Continue("more"), inline=True)


async def test_an_aborted_run_does_not_go_on(project: Path) -> None:
    """It has one `agent_end`, and the answer does not count."""
    long = Endless()
    on = stage(project, always, tool=EchoTool(body=long))
    async with on.host as host:
        host.submit("@bash x")
        await long.begun.wait()
        assert host.abort()
        await host.wait_idle()
    assert len(on.events.of("agent_end")) == 1
    assert on.view.seen == ["started @bash x by None", "ended None aborted=True"]


@pytest.mark.parametrize("turns", [0, 1])
async def test_a_run_whose_model_fails_does_not_go_on(project: Path, turns: int) -> None:
    """This holds for the first round and for a continued one."""
    script = project / "script.jsonl"
    script.write_text('{"text": "done"}\n' * turns)
    on = stage(project, always, model=open_model(f"script:{script}"))
    async with on.host as host:
        with pytest.raises(ModelError):
            await host.prompt("go")
    assert [end.continued for end in on.events.of("agent_end")] == [*range(turns + 1)]


@pytest.mark.parametrize("hanging", [True, False])
async def test_an_abort_at_the_end_leaves_the_hooks_a_moment(
    project: Path, monkeypatch: pytest.MonkeyPatch, hanging: bool
) -> None:
    """All hooks get the end, once; then the run is over."""
    began, heard = anyio.Event(), []

    async def slow(event: AgentEnd, ctx: HookContext) -> Continue:
        began.set()
        with anyio.CancelScope(shield=True):
            await aborted.wait()
        heard.append("slow")
        return Continue("more")

    async def last(event: AgentEnd, ctx: HookContext) -> None:
        heard.append("last")
        if hanging:
            await anyio.sleep_forever()

    def register(api: HookAPI) -> None:
        api.on("agent_end", slow)
        api.on("agent_end", last)

    aborted = anyio.Event()
    if hanging:
        monkeypatch.setattr(agent_module, "END_GRACE", 0.05)
    on = stage(project, register)
    async with on.host as host:
        host.submit("go")
        await began.wait()
        assert host.abort()
        aborted.set()
        with anyio.fail_after(PATIENCE):
            await host.wait_idle()
        assert heard == ["slow", "last"]
        assert on.view.seen == ["started go by None", "ended None aborted=True"]


async def test_without_an_abort_the_hooks_have_their_own_deadlines_at_the_end(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook that runs the tests takes longer than the seconds that an abort would leave it."""
    monkeypatch.setattr(agent_module, "END_GRACE", 0.0)

    async def runs_tests(event: AgentEnd, ctx: HookContext) -> Continue | None:
        assert (await ctx.exec("true")).code == 0
        return None if event.continued else Continue("more")

    on = stage(project, lambda api: api.on("agent_end", runs_tests))
    async with on.host as host:
        await host.prompt("go")
    assert [end.continued for end in on.events.of("agent_end")] == [0, 1]


async def test_a_text_that_an_interceptor_blocks_ends_the_run_with_a_warning(project: Path) -> None:
    """The text passes `message.before` like any other message."""

    def register(api: HookAPI) -> None:
        @api.intercept("message.before")
        def judge(input: Any, output: Any) -> None:
            output.block, output.block_reason = output.message == "more", "not that"

    on = stage(project, always, register)
    async with on.host as host:
        await host.prompt("go")
    assert on.view.seen[-2:] == [
        "warning the message was blocked: not that (hook1.py:judge)",
        "ended None aborted=False",
    ]


async def test_a_hook_that_fails_or_answers_nonsense_is_reported_and_the_run_ends(project: Path) -> None:
    """`agent_end` is fail-open: the end of a run needs no guard."""

    def register(api: HookAPI) -> None:
        api.on("agent_end", raises)
        api.on("agent_end", lambda event, ctx: {"continue": ""}, inline=True)

    async def raises(event: AgentEnd, ctx: HookContext) -> Continue:
        return Continue("")

    on = stage(project, register)
    async with on.host as host:
        await host.prompt("go")
    assert [error.outcome for error in on.events.errors] == ["continued", "continued"]
    assert all("Continue(text) wants a text with words in it" in error.error for error in on.events.errors)
    assert len(on.events.of("agent_end")) == 1
