"""`/model` and `/thinking`: the model and how much it thinks, as an argument or from a list."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from agent_hooks.cli.interactive.candidates import models_at_hand
from agent_hooks.cli.interactive.facts import name_of
from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.errors import did_you_mean
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.model import THINKING_LEVELS
from agent_hooks.host.models import open_model
from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.terminal import TerminalUI


class ModelCommands:
    """The two commands as methods, which get the text after the name; they count from the next request on."""

    def __init__(self, host: SessionHost, screen: PromptScreen, ui: TerminalUI) -> None:
        self._host = host
        self._screen = screen
        self._ui = ui

    async def model(self, argument: str) -> None:
        """Take a model, by default one that the person chooses.  Raises `ModelError`."""
        if not argument:
            names = await anyio.to_thread.run_sync(models_at_hand)
            argument = await self._chosen("Which model? /model NAME takes any other", self._model, names)
        if argument != self._model:
            self._host.set_model(open_model(argument))
        self._screen.print_line(f"model: {self._model}", "info")

    async def thinking(self, argument: str) -> None:
        """Take a level of thinking, by default one that the person chooses."""
        if not argument:
            level = self._host.state().thinking_level
            argument = await self._chosen("How much does the model think?", level, THINKING_LEVELS)
        levels = {level: level for level in THINKING_LEVELS}
        if argument in levels:
            self._host.set_thinking_level(levels[argument])
        elif argument:
            self._screen.error(f"there is no level {argument!r}{did_you_mean(argument, levels)}")
            return
        self._screen.print_line(f"thinking: {self._host.state().thinking_level}", "info")

    @property
    def _model(self) -> str:
        return name_of(self._host.state().model)

    async def _chosen(self, title: str, present: str, names: Sequence[str]) -> str:
        """Let the person choose, beginning at the present one, which is the answer after a cancellation too."""
        names = names if present in names else [present, *names]
        options = [Option(name) for name in names]
        index = await self._ui.choose(title, options, selected=names.index(present), searches=True)
        return present if index is None else names[index]
