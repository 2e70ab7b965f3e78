"""Commands that the person runs from the prompt line: `!git status`.

The person types them, so no gate judges them.  The model reads the command and its output with the next message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import perf_counter

import anyio

from agent_hooks.cli.reloading import HostReloading
from agent_hooks.cli.screen.conversation import Conversation
from agent_hooks.cli.screen.results import OWN, OWN_NOTE
from agent_hooks.cli.setup import hiding
from agent_hooks.host.agent import aborted_output
from agent_hooks.host.tools import builtin_tools
from agent_hooks.trust.ancestors import refuse_below_an_agent
from agent_hooks.values.content import ToolOutput

# A command that does no more than change the directory.
_CD = re.compile(r"cd( [^;&|]*)?")


class OwnCommands:
    """Runs commands of the person: `await OwnCommands(reloading, screen, tell).run("git status")`.

    `tell` gets the command and its output, a text for the model.
    """

    def __init__(self, reloading: HostReloading, screen: Conversation, tell: Callable[[str], object]) -> None:
        self._reloading = reloading
        self._screen = screen
        self._tell = tell
        self._scope: anyio.CancelScope | None = None

    def abort(self) -> bool:
        """End the command that runs; return whether there is one."""
        if self._scope is None:
            return False
        self._scope.cancel()
        return True

    async def run(self, command: str) -> None:
        """Run a command, show its output, and tell the model of it; an abort keeps the output so far.

        Raises `AgentHooksError` below an agent, which could start this terminal and type into it.
        """
        refuse_below_an_agent(f"a line that begins with {OWN}")
        setup, screen = self._reloading.setup, self._screen
        bash = next(tool for tool in builtin_tools(cwd=setup.cwd, redactor=setup.redactor) if tool.name == "bash")
        output = ToolOutput("")

        def progress(partial: ToolOutput) -> None:
            nonlocal output
            output = partial
            screen.own_progress(partial)

        shown = progress if setup.redactor is None else setup.redactor.progress(progress)
        started = perf_counter()
        screen.own_runs(command)
        try:
            with anyio.CancelScope() as self._scope:
                whole = await bash.execute(OWN, {"command": command}, on_update=shown)
                output = ToolOutput(hiding(setup.settings)(whole.text), whole.details, whole.is_error)
            if self._scope.cancelled_caught:
                output = aborted_output(OWN, output)
        finally:
            self._scope = None
            screen.own_ended(command, output, perf_counter() - started)
        if _CD.fullmatch(command):
            screen.print_line(f"cd counts for this command alone; the next one begins in {setup.cwd} again", "info")
        self._tell(f"{OWN_NOTE}$ {command}\n{output.text}")
