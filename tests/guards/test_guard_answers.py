"""The rule and the remedy of an answer are fields, from the guard or gate that gave it to the texts."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hooks import Ask, Block
from agent_hooks.guards.base import GuardedCall
from agent_hooks.pipeline.order import preflight
from agent_hooks.testing import ScriptedUI, call_tool
from support import EchoTool, everywhere, hook_on, runner_of

pytestmark = pytest.mark.anyio


class FridayGuard:
    """A guard that gives each call the same answer."""

    name = "test:guard"

    def __init__(self, answer: Block | Ask) -> None:
        self._answer = answer

    def judge(self, call: GuardedCall) -> Block | Ask:
        """Return the answer."""
        return self._answer


@everywhere
@pytest.mark.parametrize("answered", ["guard", "gate"])
async def test_the_rule_and_the_remedy_of_a_block_stay_fields(answered: str) -> None:
    """The runner adds the name of the guard or hook, and the observers' reason has the remedy."""
    after: list[Any] = []
    hooks = [hook_on("after_tool_call", lambda event, ctx: after.append(event))]
    guards = []
    block = Block("no", rule="friday", remedy="ask Ann")
    if answered == "guard":
        guards.append(FridayGuard(block))
    else:
        hooks.append(hook_on("tool_call", lambda event, ctx: block, path="gate.py"))
    runner, _ = runner_of(*hooks, guards=guards)
    judged = await preflight(EchoTool(), "1", {"command": "ls"}, runner=runner)
    assert judged.block is not None
    by = "test:guard" if answered == "guard" else "gate.py"
    assert (judged.block.by, judged.block.rule, judged.block.remedy) == (by, "friday", "ask Ann")
    output = await call_tool(runner, "bash", {"command": "ls"}, EchoTool())
    # The model does not learn how a person allows the call.
    assert output.text == f"no ({by} (friday))"
    assert after[0].block_reason == "no; ask Ann"


@everywhere
async def test_a_question_shows_the_rule_and_the_remedy_of_each_asker() -> None:
    """After a no, the block has the rule of the only asker; several askers are listed with their rules."""
    ui = ScriptedUI(False, False)
    friday = FridayGuard(Ask("deploy?", rule="friday", remedy="ask Ann"))
    gate = hook_on("tool_call", lambda event, ctx: Ask("sure?", "really", rule="twice"), path="gate.py")
    runner, _ = runner_of(guards=[friday], ui=ui)
    judged = await preflight(EchoTool(), "1", {"command": "ls"}, runner=runner)
    assert judged.block == Block("deploy?", "test:guard", "user", "friday")
    runner, _ = runner_of(gate, guards=[friday], ui=ui)
    judged = await preflight(EchoTool(), "1", {"command": "ls"}, runner=runner)
    assert judged.block == Block("deploy?; sure?", "test:guard (friday), gate.py (twice)", "user")
    assert ui.asked[-1].more.endswith("test:guard (friday): deploy?; ask Ann\ngate.py (twice): really")
