"""The files of turns at the terminal: `/diff`, `/undo`, `/redo`, and those of the turns that `/branch` leaves."""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from itertools import groupby

from msgspec.structs import replace

from agent_hooks import checkpoints
from agent_hooks.checkpoints import CheckpointError, Turn, Undone, UndoPlan
from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.cli.screen.turns import nothing_to_undo, plan_lines, remarks_on, summary_of, undo_question
from agent_hooks.errors import count
from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.terminal import TerminalUI

_NOT_THE_LAST = (
    "your last message changed no file that a checkpoint holds (files that git ignores, and files outside of this "
    "working tree, are not saved); these changes are of a message before it:"
)
_ELSEWHERE = "this conversation has changed no file that could be taken back; these changes are of another session:"
# The files that the model is told of.
_MOST = 50


class TakingBack:
    """`await TakingBack(cwd, screen, ui, tell, hide).undo(2)`.

    `tell` gets a text for the model about the files; `hide` takes the secrets out of a diff.
    """

    def __init__(
        self,
        cwd: str,
        screen: PromptScreen,
        ui: TerminalUI,
        tell: Callable[[str], object],
        hide: Callable[[str], str],
    ) -> None:
        self._cwd = cwd
        self._hide = hide
        self._screen = screen
        self._ui = ui
        self._tell = tell

    async def undo(self, number: int, times: Sequence[str], sessions: Collection[str]) -> None:
        """Show the files of the last messages of all sessions and agents, and take them back after a yes.

        `number`: of messages; `times`: those of the person's messages in this conversation, as ISO 8601; `sessions`: the
        ids of its sessions.  Raises `CheckpointError` when there are not so many.
        """
        sent = [at for each in times if (at := _seconds(each)) is not None]
        turns = [turn for turn in await checkpoints.turns(self._cwd) if turn.number is not None]
        groups = _by_message(turns, sent, sessions)
        if number > len(groups) > 0:
            raise CheckpointError(f"only {count(len(groups), 'message')} changed files here")
        chosen = groups[:number]
        plan = await checkpoints.plan_undo(self._cwd, sum(map(len, chosen)) or 1)
        if all(turn.work.session_id not in sessions for turn in chosen[0]):
            self._screen.warning(_ELSEWHERE)
        elif sent and chosen[0][-1].created < sent[-1]:
            self._screen.warning(_NOT_THE_LAST)
        messages = count(len(chosen), "message")
        await self._ask(plan, f"the changes of {messages}", [_joined(at, group) for at, group in enumerate(chosen, 1)])

    async def redo(self) -> None:
        """Show the files of the last undo, and bring its changes back after a yes.  Raises `CheckpointError`."""
        plan = await checkpoints.plan_redo(self._cwd)
        if plan is None:
            self._screen.print_line("there is no undo that could be taken back", "info")
        else:
            await self._ask(plan)

    async def diff(self, sessions: Collection[str]) -> None:
        """Show the changes that these sessions have made, and that were not taken back.  Raises `CheckpointError`."""
        patch = await checkpoints.session_diff(self._cwd, sessions)
        if patch:
            self._screen.diff(self._hide(patch.rstrip("\n")))
        else:
            self._screen.print_line(
                "there are no changes of the agent in this conversation, or none that were not taken back", "info"
            )

    async def _ask(self, plan: UndoPlan, which: str = "", turns: Sequence[Turn] = ()) -> None:
        self._show(plan, turns)
        if not plan.paths:
            self._screen.print_line(nothing_to_undo(plan), "info")
        elif await self._ui.confirm(f"Take back {which}?" if which else undo_question(plan), ""):
            await self._take_back(plan, which)
        else:
            self._screen.print_line("nothing was changed", "info")

    async def turns_since(self, timestamp: str, sessions: Collection[str]) -> list[str]:
        """Return the ids of the turns of some sessions that have changed files since an ISO 8601 time."""
        since = _seconds(timestamp)
        try:
            turns = await checkpoints.turns(self._cwd)
        # There is no git working tree, for example.
        except CheckpointError:
            return []
        if since is None:
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
            await self._take_back(plan, "those changes")
        else:
            self._screen.print_line("the files stay as they are; /undo takes back turns", "info")

    def _show(self, plan: UndoPlan, turns: Sequence[Turn] = ()) -> None:
        for line in plan_lines(plan, turns):
            self._screen.stray(line)

    async def _take_back(self, plan: UndoPlan, which: str = "") -> None:
        done = await checkpoints.take_back(self._cwd, plan)
        is_redo = any(turn.is_undo for turn in done.turns)
        self._screen.print_line(f"{summary_of(done, which)}{'' if is_redo else '; /redo brings that back'}", "info")
        for line in remarks_on(done):
            self._screen.warning(line)
        self._tell(_for_the_model(done))


def _seconds(timestamp: str) -> float | None:
    """Return an ISO 8601 time as Unix seconds; `None` for another text, which another program wrote."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return None


def _by_message(turns: Iterable[Turn], sent: Sequence[float], sessions: Collection[str]) -> list[list[Turn]]:
    """Return turns, the newest first, in groups of one message each; a message may have several turns of the model."""

    def message(turn: Turn) -> tuple[str, object]:
        work = turn.work
        own = work.session_id in sessions
        return ("", bisect(sent, turn.created)) if own and sent else (work.session_id, work.prompt)

    return [[*group] for _, group in groupby(turns, message)]


def _joined(number: int, turns: Sequence[Turn]) -> Turn:
    """Return the turns of one message, the newest first, as one."""
    paths = sorted({path for turn in turns for path in turn.paths})
    return replace(turns[-1], number=number, paths=tuple(paths))


def _for_the_model(done: Undone) -> str:
    """Return the sentence with which the model learns that files are not as it left them."""
    paths = sorted({*done.written, *done.deleted})
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    # A name may hold any character, so it is quoted.
    names = ", ".join(map(json.dumps, paths[:_MOST]))
    return f"The person has undone or redone your changes to these files: {names}{more}."
