"""`TerminalUI` in a program that is not ours, in a real terminal, on both backends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tmux import PYTHON, Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]

PROGRAM = """
    import sys
    import anyio
    from agent_hooks import AgentStart, HookAPI, HookRunner, LoadedHook
    from agent_hooks.ui.terminal import TerminalUI

    api = HookAPI("hook.py")

    @api.on("agent_start")
    async def ask(event, ctx):
        ctx.ui.notify("asking")
        print("chosen:", await ctx.ui.select("Which?", ["red", "green"]))
        print("typed:", await ctx.ui.input("Who?", "a name"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up, tasks.cancel_scope)
            await ctx.ui.confirm("Sure?", "be quick")
        print("gave up")

    async def give_up(scope):
        while not await anyio.Path("late").exists():
            await anyio.sleep(0.01)
        scope.cancel()

    async def main():
        hook = LoadedHook("hook.py", "hook.py", "hook", api)
        async with HookRunner([hook], cwd=".", ui=TerminalUI()) as runner:
            await runner.emit(AgentStart())

    anyio.run(main, backend=sys.argv[1])
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_program_that_embeds_hooks_lends_them_its_terminal(terminal: Terminal, project: Path, backend: str) -> None:
    """One dialog after another; a cancelled one leaves nothing behind, and the terminal is as before."""
    (project / "program.py").write_text(dedent(PROGRAM))
    tmux = terminal()
    modes = tmux.shell("stty -g")
    tmux.enter(f"{PYTHON} program.py {backend}; echo left with $?")
    tmux.sees("> 1. red")
    tmux.press("Down")
    tmux.sees("> 2. green")
    tmux.press("Enter")
    tmux.sees("chosen: green")
    tmux.sees("> a name")
    tmux.type("Ada")
    tmux.sees("> Ada")
    tmux.press("Enter")
    tmux.sees("typed: Ada")
    tmux.sees("be quick")
    (project / "late").touch()
    tmux.sees("gave up")
    screen = tmux.sees("left with 0")
    assert "Sure?" not in screen
    assert "asking\n? Which? → green\nchosen: green\n? Who? → Ada\ntyped: Ada\ngave up\nleft with 0" in screen
    assert tmux.shell("stty -g") == modes
