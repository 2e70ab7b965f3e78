"""Take back the files of turns at the terminal: `/undo`, `/redo`, and those of the turns that `/branch` leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import datetime

from agent_hooks import checkpoints
from agent_hooks.checkpoints import CheckpointError, Undone, UndoPlan
from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.cli.screen.turns import nothing_to_undo, plan_lines, undo_question
from agent_hooks.cli.screen.undone import remarks_on, summary_of
from agent_hooks.errors import count
from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.terminal import TerminalUI

# The files that the model is told of.
_MOST = 50


class TakingBack:
    """`await TakingBack(cwd, screen, ui, tell).undo(2)`; `tell` gets a text for the model about the files."""

    def __init__(self, cwd: str, screen: PromptScreen, ui: TerminalUI, tell: Callable[[str], object]) -> None:
        self._cwd = cwd
        self._screen = screen
        self._ui = ui
        self._tell = tell

    async def undo(self, turns: int) -> None:
        """Show the files of the last turns of all sessions and agents, and take them back after a yes.

        Raises `CheckpointError` when there are not so many turns.
        """
        await self._ask(await checkpoints.plan_undo(self._cwd, turns))

    async def redo(self) -> None:
        """Show the files of the last undo, and bring its changes back after a yes.  Raises `CheckpointError`."""
        plan = await checkpoints.plan_redo(self._cwd)
        if plan is None:
            self._screen.print_line("there is no undo that could be taken back", "info")
        else:
            await self._ask(plan)

    async def _ask(self, plan: UndoPlan) -> None:
        self._show(plan)
        if not plan.paths:
            self._screen.print_line(nothing_to_undo(plan), "info")
        elif await self._ui.confirm(undo_question(plan), ""):
            await self._take_back(plan)
        else:
            self._screen.print_line("nothing was changed", "info")

    async def turns_since(self, timestamp: str, sessions: Collection[str]) -> list[str]:
        """Return the ids of the turns of some sessions that have changed files since an ISO 8601 time."""
        try:
            since = datetime.fromisoformat(timestamp).timestamp()
            turns = await checkpoints.turns(self._cwd)
        # No git working tree, for example, or another program wrote the session file.
        except (CheckpointError, ValueError, OverflowError):
            return []
        return [
            turn.work.turn
            for turn in turns
            if turn.number is not None and turn.created >= since and turn.work.session_id in sessions
        ]

    async def offer(self, turns: Collection[str]) -> None:
        """Ask whether the files of these turns come back too, and take them back after a yes."""
        plan = await checkpoints.plan_undo(self._cwd, only=turns)
        if not plan.paths:
            return
        self._show(plan)
        files = count(len(plan.paths), "file")
        options = [Option("Keep the files as they are"), Option(f"Take back the changes of {files} too")]
        if await self._ui.choose(f"{files} changed since then", options) == 1:
            await self._take_back(plan)
        else:
            self._screen.print_line("the files stay as they are; /undo takes back turns", "info")

    def _show(self, plan: UndoPlan) -> None:
        for line in plan_lines(plan):
            self._screen.stray(line)

    async def _take_back(self, plan: UndoPlan) -> None:
        done = await checkpoints.take_back(self._cwd, plan)
        is_redo = any(turn.is_undo for turn in done.turns)
        self._screen.print_line(f"{summary_of(done)}{'' if is_redo else '; /redo brings that back'}", "info")
        for line in remarks_on(done):
            self._screen.warning(line)
        self._tell(_for_the_model(done))


def _for_the_model(done: Undone) -> str:
    """Return the sentence with which the model learns that files are not as it left them."""
    paths = sorted({*done.written, *done.deleted})
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    # A name may hold any character, so it is quoted.
    names = ", ".join(map(json.dumps, paths[:_MOST]))
    return f"The person has undone or redone your changes to these files: {names}{more}."
