"""`/hooks`: the hooks, guards and answers in force, and the end of an answer."""

from __future__ import annotations

import re

from rich.text import Text

from agent_hooks.cli import remembered
from agent_hooks.cli.disabling import disabled_lines
from agent_hooks.cli.reloading import HostReloading
from agent_hooks.cli.screen.completion import Candidate
from agent_hooks.cli.screen.conversation import Conversation
from agent_hooks.cli.screen.in_force import hooks_table, in_force_table
from agent_hooks.cli.screen.wording import NO_HOOKS
from agent_hooks.cli.setup import Setup, hiding


class HooksCommand:
    """`await HooksCommand(reloading, screen).carry_out("revoke 3")`."""

    def __init__(self, reloading: HostReloading, screen: Conversation) -> None:
        self._reloading = reloading
        self._screen = screen

    async def carry_out(self, argument: str) -> None:
        """List all that is in force, or end a kept answer: `revoke 3`, `revoke s1`.  Raises `RememberingError`."""
        reloading = self._reloading
        if argument:
            self._revoke(argument)
            return
        self._screen.print(hooks_table(reloading.setup) or Text(NO_HOOKS))
        for line in disabled_lines(reloading.setup.disabled, reloading.setup.without):
            self._screen.print_line(line, "info")
        self._screen.print(Text(), in_force_table(reloading.setup))
        self._answers()
        for text in (*reloading.problems, *reloading.setup.sources.messages):
            self._screen.warning(text)

    def _answers(self) -> None:
        """Print the answers that count for later calls of this session and project."""
        setup, store = self._reloading.setup, remembered.store()
        kept = self._reloading.answers_of_session()
        for number, about in enumerate(kept, 1):
            text = hiding(setup.settings)(about)
            self._screen.print_line(f"s{number}: allowed until this session ends: {text}", "info")
        if kept:
            self._screen.print_line("to end one: /hooks revoke sN", "info")
        rows = remembered.rows_at(setup.cwd, store, setup.settings, setup.loaded.hooks)
        if rows:
            self._screen.print(remembered.table(rows))
            self._screen.print_line("to end one: /hooks revoke N", "info")
        for problem in store.find().problems:
            self._screen.warning(problem)

    def _revoke(self, argument: str) -> None:
        verb, _, number = argument.partition(" ")
        # No answer has a number with more digits, and `int` refuses thousands of them.
        match = re.fullmatch(r"\s*(s?)([0-9]{1,9})\s*", number)
        if verb != "revoke" or match is None:
            self._screen.error("say /hooks, or /hooks revoke N with the number of an answer")
        elif match[1]:
            ended = hiding(self._reloading.setup.settings)(self._reloading.end_answer_of_session(int(match[2])))
            self._screen.print_line(
                f"ended: {ended}" if ended else "there is no such answer; /hooks lists them", "info"
            )
        else:
            self._screen.print_line(remembered.revoke(int(match[2]), self._reloading.setup.cwd), "info")


def answers_at(setup: Setup) -> list[Candidate]:
    """Return the numbers of the kept answers of this project, with their questions."""
    store = remembered.store()
    rows = remembered.rows_at(setup.cwd, store, setup.settings, setup.loaded.hooks)
    return [Candidate(str(row["number"]), row["question"]) for row in rows]
