"""The levels of caution at the terminal: Shift-Tab, `/ask`, `/edits`, `/plan`, and the plan that the person accepts."""

from __future__ import annotations

from collections.abc import Callable

from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.host.caution import BEGINS, EDIT_QUESTION, ENDS, Caution, Level
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.ui.base import Question
from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.terminal import Further, TerminalUI

_SAID = {
    "work": "the agent works without asking, within hooks and guards",
    "ask": "the agent asks before each change; Shift-Tab accepts edits",
    "edits": "edits in the project are accepted, other changes asked about; Shift-Tab goes on to planning",
    "plan": "planning: the agent only looks; Shift-Tab or /plan ends it",
}
ACCEPTED = "Carry out the plan."
"""The message that the agent gets when the person accepts its plan."""
_HINT = "Enter carries out the plan"
# The answers to the question about a plan, with the level that the agent carries it out with.
_ANSWERS: dict[str, Level] = {
    "No, go on planning": "plan",
    "Yes": "work",
    "Yes, and accept edits": "edits",
    "Yes, and ask before each change": "ask",
}


class Levels:
    """`Levels(caution, host, screen, ui, send, usual).be("plan")`.

    `send`: sends a message to the agent; `usual`: the level of a start that names none.
    """

    def __init__(
        self,
        caution: Caution,
        host: SessionHost,
        screen: PromptScreen,
        ui: TerminalUI,
        send: Callable[[str], object],
        usual: Level,
    ) -> None:
        self._caution = caution
        self._host = host
        self._screen = screen
        self._ui = ui
        self._send = send
        self._usual = usual

    def be(self, level: Level | None = None) -> None:
        """Take a level, by default the next one; the model learns of planning with the next message."""
        former, self._caution.level = self._caution.level, level or self._caution.following
        if self._caution.level == "plan" and not self._host.forget_note(ENDS):
            self._host.note(BEGINS)
        if former == "plan" and not self._host.forget_note(BEGINS):
            self._host.note(ENDS)
        self._screen.print_line(_SAID[self._caution.level], "info")

    def switch(self, level: Level, message: str) -> None:
        """Take a level, or end it if it is in force, and send the message if there is one."""
        self.be("work" if self._caution.level == level else level)
        if message:
            self._send(message)

    def session_begins(self) -> None:
        """Tell the model of a session that the person plans."""
        if self._caution.level == "plan" and not self._host.has_note(BEGINS):
            self._host.note(BEGINS)

    def end(self) -> str:
        """End planning, because another start may begin without it; return the command that goes on at the same level."""
        level = self._caution.level
        if level == "plan":
            self.be("work")
        return f"agent-hooks run --continue{'' if level == self._usual else f' --caution {level}'}"

    def further(self, question: Question) -> Further | None:
        """Return the further Yes of a question about an edit, with which no other edit is asked about."""
        if self._caution.level == "ask" and question.title == EDIT_QUESTION:
            return Further("Yes, and accept edits from now on", lambda: self.be("edits"))
        return None

    # ---- the plan

    @property
    def hint(self) -> str:
        """The words in an empty prompt line: how to accept a plan, where there may be one."""
        planned = self._caution.level == "plan" and not self._host.has_note(BEGINS)
        return _HINT if planned and self._host.messages and not self._host.running else ""

    async def accept(self) -> None:
        """Ask whether the agent carries out its plan, and let it."""
        if not self.hint:
            return
        chosen = await self._ui.choose("Carry out the plan?", [Option(label) for label in _ANSWERS])
        level = [*_ANSWERS.values()][chosen or 0]
        if level != "plan":
            self.be(level)
            self._send(ACCEPTED)
