"""The facts about the session for the line below the prompt and `/status`, and the commands `/model` and `/thinking`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import anyio

from agent_hooks.checkpoints.counting import CheckpointCount
from agent_hooks.cli.interactive.candidates import models_at_hand
from agent_hooks.cli.reloading import HostReloading
from agent_hooks.cli.screen.live import money, tokens
from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.cli.screen.wording import short
from agent_hooks.errors import count, did_you_mean
from agent_hooks.host.caution import Caution
from agent_hooks.host.lifecycle import SessionHost
from agent_hooks.host.model import THINKING_LEVELS
from agent_hooks.host.models import open_model
from agent_hooks.host.prices import Prices, Spending
from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.terminal import TerminalUI
from agent_hooks.values.events import ModelRef

_CAUTION = {"ask": "asking first", "edits": "accepting edits", "plan": "planning"}


class Facts:
    """The facts about a host's session; `refresh` is called when one of them has changed without a key or an event."""

    def __init__(
        self, host: SessionHost, reloading: HostReloading, caution: Caution, refresh: Callable[[], object]
    ) -> None:
        self._host = host
        self._reloading = reloading
        self._caution = caution
        self._refresh = refresh
        self._spending, self._prices = Spending(), Prices()
        # Set when the session has tokens, which may have a price.
        self._spent = anyio.Event()
        # The checkpoints of the session, the state in which they were counted last, and a sign that it has changed.
        self._checkpoints: int | None = 0
        self._counted_at: tuple[object, ...] = ()
        self._changed = anyio.Event()

    def parts(self) -> list[str]:
        """Return the parts of the line below the prompt, the most important one first."""
        state, spent = self._host.state(), self._spending.of(self._host.log, self._prices.of)
        parts = [_CAUTION[self._caution.level]] if self._caution.level in _CAUTION else []
        thinking = "" if state.thinking_level == "off" else f" ({state.thinking_level})"
        parts.append(f"{name_of(state.model)}{thinking}")
        if spent.tokens:
            self._spent.set()
            if (window := self._window()) is not None:
                parts.append(f"context {_percent(self._host.context_tokens, window)}")
            parts.append(f"{tokens(spent.tokens)} spent")
        if spent.money is not None:
            parts.append(money(spent.money))
        parts += [count(len(self._reloading.setup.loaded.hooks), "hook"), self._saved()]
        if (now := (state.session_id, state.message_count, state.is_streaming)) != self._counted_at:
            self._counted_at = now
            self._changed.set()
        return parts

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the names and values of `/status`."""
        state, setup = self._host.state(), self._reloading.setup
        spent = self._spending.of(self._host.log, self._prices.of)
        used, window = self._host.context_tokens, self._window()
        yield "model", f"{name_of(state.model)}, thinking: {state.thinking_level}"
        size = "" if window is None else f", {_percent(used, window)} of the {window:,} that the model takes"
        yield "context", f"{used:,} tokens{size}"
        paid = "" if spent.money is None else f", {money(spent.money)}"
        yield "spent", f"{spent.tokens:,} tokens in this session{paid}"
        yield "session", "not saved" if state.session_file is None else short(state.session_file)
        yield "directory", setup.cwd
        yield "in force", f"{count(len(setup.loaded.hooks), 'hook')}, {self._saved()}; /hooks lists them"

    def _saved(self) -> str:
        if not self._reloading.setup.settings.checkpoints.enabled:
            return "checkpoints off"
        if self._checkpoints is None:
            return "no checkpoints without git"
        return count(self._checkpoints, "checkpoint")

    def _window(self) -> int | None:
        model = self._host.state().model
        return self._prices.window(model.provider, model.id)

    async def count_checkpoints(self) -> None:
        """Count the checkpoints in a thread whenever the session has changed."""
        counter, cwd = CheckpointCount(), self._reloading.setup.cwd
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            session = self._host.state().session_id
            self._checkpoints = await anyio.to_thread.run_sync(counter.of, cwd, session, abandon_on_cancel=True)
            self._refresh()

    async def load_prices(self) -> None:
        """Load the prices in a thread, once a response has counted tokens."""
        await self._spent.wait()
        if await anyio.to_thread.run_sync(self._prices.load, abandon_on_cancel=True):
            self._spending.again()
            self._refresh()


def name_of(model: ModelRef) -> str:
    """Return the name of a model, as `/model` takes it."""
    return model.id if model.id == model.provider else f"{model.provider}:{model.id}"


def _percent(used: int, window: int) -> str:
    """Return how full the window is; a conversation that has begun is never 0 %."""
    percent = round(100 * used / window)
    return f"{percent} %" if percent else "< 1 %"


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
