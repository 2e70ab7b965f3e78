"""The points of the host, seen in the request to a model's server, in the session file, and in the calls that run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import HookAPI, ModelError
from agent_hooks.errors import CommandBlockedError, MessageBlockedError
from agent_hooks.host.session_file import list_sessions
from agent_hooks.settings import CompactionSettings, Settings
from agent_hooks.values.content import MessageEntry, TextContent
from host.hosting import Stage, stage

pytestmark = pytest.mark.anyio


def intercepting(*points: tuple[str, Any]) -> Any:
    """Return a hook with these interceptors."""

    def register(api: HookAPI) -> None:
        for point, handler in points:
            api.intercept(point, handler)

    return register


def put(**values: Any) -> Any:
    """Return an interceptor that sets these fields of its output."""

    def change(given: Any, output: Any) -> None:
        for name, value in values.items():
            setattr(output, name, value)

    return change


def said_in(on: Stage) -> list[list[str]]:
    """Return the texts of each user message in the session's file."""
    messages = [json.loads(line).get("message", {}) for line in on.path.read_text().splitlines()]
    return [[block["text"] for block in each["content"]] for each in messages if each.get("role") == "user"]


# ---- messages --------------------------------------------------------------------------------------------------------


async def test_a_blocked_prompt_never_reaches_the_agent(project: Path) -> None:
    """There is no request, no entry and no agent_start, and the agent takes the next prompt."""

    def gate(given: Any, output: Any) -> None:
        output.block = "rm" in output.message
        output.block_reason = "no deleting"

    on = stage(project, intercepting(("message.before", gate)))
    async with on.host as host:
        with pytest.raises(MessageBlockedError, match=r"the message was blocked: no deleting \(hook0.py:gate\)"):
            await host.prompt("rm all")
        await host.prompt("look around")
    assert said_in(on) == [["look around"]]
    assert len(on.model.requests) == 1
    assert on.events.types.count("agent_start") == 1


async def test_an_interceptor_that_fails_blocks_the_prompt(project: Path) -> None:
    """`message.before` guards messages, so it is fail-closed."""

    def broken(given: Any, output: Any) -> None:
        raise ValueError("broken")

    on = stage(project, intercepting(("message.before", broken)))
    async with on.host as host:
        with pytest.raises(MessageBlockedError, match="ValueError: broken"):
            await host.prompt("hello")
    assert on.model.requests == []


async def test_a_blocked_message_in_the_background_is_shown_and_the_agent_goes_on(project: Path) -> None:
    """The one begins a run, and the other comes in the middle of it."""
    apis: list[HookAPI] = []

    def gate(given: Any, output: Any) -> None:
        output.block = "bad" in output.message

    async def send_more(event: Any, ctx: Any) -> None:
        if event.turn_index == 0:
            apis[0].send("a bad one")
            apis[0].send("a good one")

    def register(api: HookAPI) -> None:
        apis.append(api)
        api.intercept("message.before", gate, id="gate")
        api.on("turn_end", send_more)

    on = stage(project, register)
    async with on.host as host:
        host.submit("bad")
        await host.wait_idle()
        host.submit('@bash {"command": "ls"}')
        await host.wait_idle()
    assert [text for [text] in said_in(on)] == ['@bash {"command": "ls"}', "a good one"]
    blocked = "the message was blocked: blocked by a hook (gate)"
    assert f"ended {blocked} aborted=False" in on.view.seen
    assert blocked in on.view.warnings


# ---- how the model is asked ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("think", "reasoning", "expected"),
    [("high", None, "high"), ("high", "off", "off"), ("off", "on", "low"), ("medium", "on", "medium")],
)
async def test_thinking_is_what_both_levels_say(project: Path, think: str, reasoning: Any, expected: str) -> None:
    """It holds for that run; the session's own level stays."""
    levels = put(think_level=think, reasoning_level=reasoning, top_k=7)
    on = stage(project, intercepting(("params.before", levels)))
    async with on.host as host:
        await host.prompt("hello")
        assert host.state().thinking_level == "off"
    assert on.model.requests[0].thinking_level == expected
    assert on.model.requests[0].sampling.top_k == 7


async def test_a_model_that_cannot_be_had_is_told_and_the_next_prompt_goes_on(project: Path) -> None:
    """The error names the model."""
    providers = iter(["nowhere", "puppet"])

    def choose(given: Any, output: Any) -> None:
        output.provider = next(providers)

    on = stage(project, intercepting(("params.before", choose)))
    async with on.host as host:
        with pytest.raises(ModelError, match="there is no model 'nowhere:puppet'"):
            await host.prompt("hello")
        await host.prompt("hello")
    assert len(on.model.requests) == 1


@pytest.mark.parametrize("wrong", [{"think_level": "huge"}, {"temperature": "warm"}, {"model": 5}])
async def test_a_wrong_parameter_is_reported_and_left_out(project: Path, wrong: dict[str, Any]) -> None:
    """The value of the interceptor before it stays."""
    on = stage(project, intercepting(("params.before", put(top_k=3)), ("params.before", put(**wrong))))
    errors: list[Any] = []
    on.runner.on_error(errors.append)
    async with on.host as host:
        await host.prompt("hello")
    [error] = errors
    assert f"output.{next(iter(wrong))}: " in error.error
    assert on.model.requests[0].sampling.top_k == 3
    assert on.model.requests[0].thinking_level == "off"


# ---- summaries, commands, settings -----------------------------------------------------------------------------------


async def test_a_default_summary_heeds_its_point(project: Path) -> None:
    """The request has the interceptor's prompt and context."""
    hook = intercepting(("session.compacting", put(prompt="Say it in Latin.", context=["The deadline is near."])))
    on = stage(project, hook, settings=Settings(compaction=CompactionSettings(keep_recent_tokens=1)))
    async with on.host as host:
        await host.prompt("first")
        await host.prompt("second")
        assert not (await host.compact()).cancelled
    asked = on.model.requests[-1].messages[0].content[0]
    assert isinstance(asked, TextContent)
    assert asked.text.startswith("Say it in Latin.")
    assert asked.text.endswith("The deadline is near.")


async def test_a_command_can_be_changed_and_blocked(project: Path) -> None:
    """The command gets the arguments after the interceptors."""

    def careful(given: Any, output: Any) -> None:
        output.arguments += " and the tests"
        output.block = given.command == "clear"

    on = stage(project, intercepting(("command.execute.before", careful)))
    assert await on.host.command("compact", "keep the plan") == "keep the plan and the tests"
    with pytest.raises(CommandBlockedError, match=r"not carried out: blocked by a hook \(hook0.py:careful\)"):
        await on.host.command("clear", "")


async def test_settings_are_shown_once_at_the_start(project: Path) -> None:
    """They are read-only."""
    seen: list[Any] = []

    def look(given: Any, output: Any) -> None:
        seen.append(given.settings["hook_timeout"])
        given.settings["hook_timeout"] = 1

    on = stage(project, intercepting(("config", look)), settings=Settings(hook_timeout=7.0))
    errors: list[Any] = []
    on.runner.on_error(errors.append)
    async with on.host as host:
        await host.prompt("hello")
    assert seen == [7.0]
    assert "read-only" in errors[0].error


@pytest.mark.parametrize("change", ["message", "context"])
async def test_a_branch_offers_the_line_that_was_typed(project: Path, change: str) -> None:
    """Not what a hook has made of it; the list of sessions shows that line too, and the model reads all."""

    def add(input: Any, output: Any) -> None:
        if change == "context":
            output.context.append("a fact of the hook")
        else:
            output.message += " a fact of the hook"

    on = stage(project, intercepting(("message.before", add)))
    async with on.host as host:
        await host.prompt("two")
        assert "a fact of the hook" in str(said_in(on))
        index = next(at for at, entry in enumerate(host.entries) if isinstance(entry, MessageEntry))
        assert (await host.branch(index)).text == "two"
        await host.prompt("three")
    listed = list_sessions(str(project))
    assert sorted(each.first_text for each in listed) == ["three", "two"]
