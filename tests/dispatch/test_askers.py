"""Who asks in a dialog: a terminal's user interface gets the hook and the whole call."""

from __future__ import annotations

from typing import Any

from agent_hooks import AgentStart, HookAPI, HookContext, ToolCall, wrap_tool
from agent_hooks.testing import ScriptedUI
from agent_hooks.ui.base import Asker
from support import EchoTool, hook_of, runner_of


class NamedUI(ScriptedUI):
    """Keeps the askers of its dialogs."""

    def __init__(self, *answers: object) -> None:
        super().__init__(*answers)
        self.askers: list[Asker] = []

    def asked_by(self, asker: Asker) -> NamedUI:
        """Return the interface itself."""
        self.askers.append(asker)
        return self


async def test_a_dialog_names_the_hook_and_the_whole_call() -> None:
    """An event without a call has only the hook."""

    def register(api: HookAPI) -> None:
        @api.on("tool_call")
        async def gate(event: ToolCall, ctx: HookContext) -> None:
            await ctx.ui.confirm("Run it?", "")

        @api.on("agent_start")
        async def start(event: Any, ctx: HookContext) -> None:
            await ctx.ui.confirm("Begin?", "")

    runner, errors = runner_of(hook_of(register))
    ui = NamedUI(True, True)
    runner.set_ui(ui)
    await runner.emit(AgentStart())
    await wrap_tool(EchoTool(), runner).execute("1", {"command": "echo all of it"})
    assert errors == []
    assert [each.hook for each in ui.askers] == ["hook.py"] * 2
    assert [("echo all of it" in each.call) for each in ui.askers] == [False, True]
