"""Hooks that attack the server while they are loaded again: no call passes, and the next event has hooks again."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from other_agent import OtherAgent
from server.test_hostile_hooks import pid_of
from server.test_served import reason_of

# `attack` works once, in the session whose event comes first.
HOOK = """
import asyncio, os, sys
import anyio

def attack():
    if not os.path.exists("attacked"):
        open("attacked", "w").close()
        {attack}

{module}

def register(api):
    api.state.setdefault("calls", 0)
    {register}

    @api.on("session")
    async def session(event, ctx):
        {session}
        await anyio.sleep(0)

    @api.on("tool_call")
    async def judge(event, ctx):
        api.state["calls"] += 1
        return {{"block": True, "reason": f"{name} {{api.state['calls']}}"}}
"""
PLACES = {
    "at the import of the new version": ("new", "module", "attack()"),
    "in register of the new version": ("new", "register", "attack()"),
    "at the start of the new version": ("new", "session", "if event.reload: attack()"),
    "at the shutdown of the former version": ("old", "session", "if event.reload: attack()"),
}
ATTACKS = {
    "raises KeyboardInterrupt": "raise KeyboardInterrupt",
    "leaves a scope open": "anyio.CancelScope().__enter__().cancel()",
    "cancels its task": "asyncio.current_task().cancel()",
    "raises SystemExit": "sys.exit(3)",
}


def version(name: str, attack: str = "pass", **places: str) -> str:
    """Return the text of a hook."""
    default = {"module": "pass", "register": "pass", "session": "pass"}
    return HOOK.format(name=name, attack=attack, **{**default, **places})


def denial(agent: OtherAgent, session: str) -> str:
    """Return the reason why a call was denied; a call that passes has none."""
    answer: Any = agent(session_id=session)
    return reason_of(answer)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("place", PLACES)
def test_an_attack_at_a_reload_lets_no_call_pass(agent: OtherAgent, place: str, attack: str) -> None:
    """The next event is judged by hooks again, and the state of the other session goes on."""
    which, where, call = PLACES[place]
    texts = {name: version(name) for name in ("old", "new")}
    texts[which] = version(which, ATTACKS[attack], **{where: call})
    hook = agent.command.add_hook(texts["old"])
    pid = pid_of(agent)
    for session in ("a", "b"):
        assert "old 1" in denial(agent, session)
    hook.write_text(dedent(texts["new"]))
    denial(agent, "a")
    assert (agent.command.project / "attacked").exists()
    assert any(name in denial(agent, "a") for name in ("old ", "new "))
    assert "new 2" in denial(agent, "b")
    hook.write_text(dedent(version("mended")))
    assert "mended " in denial(agent, "a")
    assert "mended 3" in denial(agent, "b")
    server = agent.server()
    assert server is not None
    assert server["pid"] == pid
