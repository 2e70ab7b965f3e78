"""`event.effects`: found once per call, and part of the call only."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_hooks import BeforeToolCall, Block, HookAPI, HookContext, HookRunner, Rewrite, ToolCall, effects_of
from agent_hooks.effects import CallEffects
from agent_hooks.testing import call_tool
from agent_hooks.values.effects import Effects
from agent_hooks.values.wire import to_json
from support import hook_of

pytestmark = pytest.mark.anyio


def gate(command: str = "ls", **more: Any) -> ToolCall:
    """Return an event that a program has made by hand."""
    return ToolCall(tool_name="bash", tool_call_id="1", input={"command": command}, **more)


async def test_all_handlers_of_a_call_share_effects_that_are_found_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that no handler asks about costs nothing."""
    found: list[Any] = []
    asked: list[Effects] = []
    original = CallEffects._effects

    def counted(self: CallEffects, tool: str, input: Any) -> Effects:
        found.append(input)
        return original(self, tool, input)

    monkeypatch.setattr(CallEffects, "_effects", counted)

    def register(api: HookAPI) -> None:
        @api.on("before_tool_call")
        async def first(event: BeforeToolCall, ctx: HookContext) -> None:
            if event.params["command"] != "ls":
                asked.append(event.effects)

        for _ in range(2):

            @api.on("tool_call")
            async def later(event: ToolCall, ctx: HookContext) -> None:
                if event.input["command"] != "ls":
                    asked.append(event.effects)

    runner = HookRunner([hook_of(register)], cwd=tmp_path)
    await call_tool(runner, "bash", {"command": "ls"})
    assert found == []
    await call_tool(runner, "bash", {"command": "rm uv.lock"})
    assert len(found) == 1
    assert len(asked) == 3
    assert all(each is asked[0] for each in asked)
    assert asked[0].deletes("uv.lock")


async def test_a_rewritten_call_has_effects_of_its_own(tmp_path: Path) -> None:
    """For the rewriters that follow, and for the gates."""
    seen: list[bool] = []

    def register(api: HookAPI) -> None:
        @api.on("before_tool_call")
        async def first(event: BeforeToolCall, ctx: HookContext) -> Rewrite:
            seen.append(event.effects.deletes("uv.lock"))
            return Rewrite({"command": "ls"})

        @api.on("before_tool_call")
        async def second(event: BeforeToolCall, ctx: HookContext) -> None:
            seen.append(event.effects.deletes("uv.lock"))

        @api.on("tool_call")
        async def last(event: ToolCall, ctx: HookContext) -> Block | None:
            seen.append(event.effects.runs("rm"))
            return None

    await call_tool(HookRunner([hook_of(register)], cwd=tmp_path), "bash", {"command": "rm uv.lock"})
    assert seen == [True, False, False]


async def test_effects_are_no_part_of_the_value_of_an_event() -> None:
    """Not of its JSON, its text, its equality or its pickle."""
    event = gate().with_effects(CallEffects("/project"))
    event.effects  # noqa: B018  # found now
    plain = gate()
    assert event == plain
    assert to_json(event) == to_json(plain)
    assert repr(event) == repr(plain)
    copied = pickle.loads(pickle.dumps(event))
    assert copied == plain
    for each in (plain, copied, replace(event, input={"command": "rm x"})):
        assert [unknown.kind for unknown in each.effects.unknown] == ["opaque"]
        assert not each.effects.paths


async def test_effects_cannot_be_changed() -> None:
    """Neither the event's nor their parts."""
    effects = effects_of("bash", {"command": "rm x"}, cwd="/project")
    for value, name in ((effects, "paths"), (effects.paths[0], "path"), (effects.programs[0], "argv")):
        with pytest.raises(AttributeError):
            setattr(value, name, ())
    with pytest.raises(AttributeError):
        gate().effects = effects  # type: ignore[misc]  # it is refused


async def test_tools_of_files_and_other_tools_have_effects() -> None:
    """A tool that is not known is opaque."""
    assert effects_of("write", {"path": "a/../uv.lock", "content": ""}, cwd="/project").writes("/project/uv.lock")
    assert effects_of("read", {"path": "~/.ssh/id"}, cwd="/project").reads("~/.ssh")
    assert effects_of("surprise", {"x": 1}, cwd="/project").unknown[0].kind == "opaque"
