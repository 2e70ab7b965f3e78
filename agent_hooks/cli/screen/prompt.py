"""The screen of the interactive mode: the conversation above, a prompt line or a dialog at the bottom.

One prompt_toolkit application runs from the start to the end and owns the terminal; the conversation is printed above it
and stays in the terminal's scrollback.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from select import select
from time import monotonic
from typing import Any

import anyio
import anyio.to_thread
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    Container,
    Dimension,
    DynamicContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.output import Output
from prompt_toolkit.widgets import SearchToolbar

from agent_hooks.cli.screen.alerts import Alerts, State
from agent_hooks.cli.screen.clipboard import ClipboardError, osc52, save_image
from agent_hooks.cli.screen.completion import is_offered
from agent_hooks.cli.screen.conversation import Conversation
from agent_hooks.cli.screen.foreground import Foreground
from agent_hooks.cli.screen.keys import prompt_keys
from agent_hooks.cli.screen.line import BetweenWords, PromptHistory
from agent_hooks.cli.screen.live import bar_line, waiting_lines
from agent_hooks.cli.screen.markdown import Block
from agent_hooks.cli.screen.resizing import ResizedApplication
from agent_hooks.cli.screen.results import own_command
from agent_hooks.errors import AgentHooksError
from agent_hooks.ui.dialogs import Dialog
from agent_hooks.ui.fitting import Line, fragments
from agent_hooks.ui.terminal import STYLE

SPINNER_STEP = 0.15  # seconds
SECOND_CTRL_C = 5.0
"""Seconds in which a second Ctrl-C ends the program."""
TYPED_AHEAD = 0.3
"""Seconds from the start in which lines come that were typed before it."""
# The beginning of the first row of the prompt line, and of all others.
PROMPT, OWN_PROMPT, INDENT = "> ", "$ ", "  "
# The least seconds between two drawings: a model may send a thousand pieces in one.
REDRAW_INTERVAL = 0.02


class PromptScreen(Conversation):
    """Shows the conversation, asks for the next prompt, and is the stage of dialogs.

    `submit` gets each line that the person sends.  `abort` is called for Esc, and returns whether there was work;
    `withdraw` is called for Up while messages wait, and returns them; `leave` is called for Ctrl-D and for Ctrl-C twice,
    `next_level` for Shift-Tab, and `accept` for Enter at an empty line, which shows the words of `hint`.  `completer`
    completes the prompt line; `facts` returns the parts of the line below the prompt; `name`: of the project, for the
    title.
    """

    def __init__(
        self,
        input: Input,
        output: Output,
        *,
        history: PromptHistory,
        completer: Completer,
        submit: Callable[[str], None],
        abort: Callable[[], bool],
        leave: Callable[[], None],
        withdraw: Callable[[], Sequence[str]] = tuple,
        next_level: Callable[[], None] = lambda: None,
        accept: Callable[[], Awaitable[None]] | None = None,
        hint: Callable[[], str] = str,
        facts: Callable[[], Sequence[str]] = tuple,
        name: str = "",
    ) -> None:
        super().__init__()
        self.submit, self.abort, self.leave = submit, abort, leave
        self._withdraw, self.next_level, self._accept = withdraw, next_level, accept
        self._alerts = Alerts(output, name)
        # The time of the start, if lines were typed before it.
        self._began: float | None = None
        self._facts = facts
        self.pastes = history.pastes
        self.buffer = Buffer(
            completer=completer,
            complete_while_typing=Condition(lambda: is_offered(self.buffer.document.text_before_cursor)),
            history=history,
            multiline=True,
        )
        self.buffer.on_text_changed += lambda buffer: self._typed()
        # The time of a Ctrl-C or Ctrl-D that was the last key.
        self._interrupted_at: float | None = None
        self._interrupted_by = ""
        # True before the start of a session and after its end.
        self.between_sessions = True
        # The unfinished block of the answer, as it was drawn for a number of columns.
        self._drawn: tuple[Block | None, int, StyleAndTextTuples] = (None, 0, [])
        # Messages that wait for the agent.
        self._queued: list[str] = []
        # The texts that are printed when another program gives the terminal back.
        self._held: list[str] = []
        self._goes_on = asyncio.Event()
        self._dialog: Dialog | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.get_ident()
        # Without a history search, it takes no line.
        self._search = SearchToolbar(backward_search_prompt="history: ", forward_search_prompt="history, forwards: ")
        self._prompt = Window(
            BufferControl(
                self.buffer,
                search_buffer_control=self._search.control,
                preview_search=True,
                input_processors=[
                    BetweenWords(indent=len(INDENT)),
                    ConditionalProcessor(
                        AfterInput(lambda: [("class:hint", hint())]), Condition(lambda: not self.buffer.text)
                    ),
                ],
            ),
            height=lambda: Dimension(min=1, max=max(1, self._size().rows // 2)),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=lambda line, wrapped: [("class:prompt", self._mark() if line == wrapped == 0 else INDENT)],
        )
        self._app = ResizedApplication(
            Layout(self._layout(), self._prompt),
            key_bindings=prompt_keys(self),
            style=STYLE,
            erase_when_done=True,
            min_redraw_interval=REDRAW_INTERVAL,
            input=input,
            output=output,
        )
        self._foreground = Foreground(self._app)
        self._app.key_processor.before_key_press += lambda _: self._alerts.key()
        # Seconds until a lone Esc counts as a key, and until it is no longer the beginning of Alt-Enter.
        self._app.ttimeoutlen = 0.1
        self._app.timeoutlen = 0.3
        self.busy("starting")

    # ---- the application

    async def run(self, started: Callable[[], None]) -> None:
        """Own the terminal until cancelled, and give it back as it was; returns when the terminal is gone."""
        self._loop = asyncio.get_running_loop()
        spinner = self._loop.create_task(self._spin())
        self._alerts.begin()
        # Until the terminal sends each key at once, it keeps whole lines, with Ctrl-J in the place of Enter.
        if select([self._app.input.fileno()], [], [], 0)[0]:
            self._began = monotonic()
        try:
            with suppress(EOFError):
                await self._app.run_async(pre_run=started, handle_sigint=False)
        finally:
            # Without a loop, text is written at once.
            self._loop = None
            spinner.cancel()
            self._foreground.end()
            self._alerts.end()
            if self._dialog is not None:
                self._dialog.close(None)

    async def _spin(self) -> None:
        while True:
            await self._goes_on.wait()
            await asyncio.sleep(SPINNER_STEP)
            self._live.spin()
            self._app.invalidate()

    def _size(self) -> Size:
        return self._app.output.get_size()

    @property
    def columns(self) -> int:
        """The columns of the terminal."""
        return self._size().columns

    def _layout(self) -> Container:
        def part(lines: Callable[[], list[Line]]) -> Container:
            window = Window(FormattedTextControl(lambda: fragments(lines())), dont_extend_height=True)
            return ConditionalContainer(window, Condition(lambda: bool(lines())))

        tail = Window(FormattedTextControl(self._tail), dont_extend_height=True, wrap_lines=False)
        prompt = HSplit([self._prompt, self._search, CompletionsMenu(max_height=6), part(self._bar_lines)])
        return HSplit(
            [
                ConditionalContainer(tail, Condition(lambda: bool(self._tail()))),
                part(self._live_lines),
                part(self._status_lines),
                DynamicContainer(lambda: prompt if self._dialog is None else self._dialog.container),
            ]
        )

    def _tail(self) -> StyleAndTextTuples:
        """Return the end of the unfinished block of the answer, as much as fits on the screen."""
        size = self._size()
        block = None if self._dialog is not None else self._answer.unfinished
        drawn, columns, shown = self._drawn
        if (block, size.columns) != (drawn, columns):
            lines = [] if block is None else self._rendered(block).rstrip("\n").split("\n")
            # The last line may be the beginning of a word in colour; each of the other lines ends its colours.
            shown = to_formatted_text(ANSI("\n".join(lines[-max(1, size.rows - 5) :]))) if lines else []
            self._drawn = (block, size.columns, shown)
        return shown

    def _live_lines(self) -> list[Line]:
        return [] if self._dialog is not None else self._live.output_lines(self._size())

    def _status_lines(self) -> list[Line]:
        """Return the status line, and the messages that wait."""
        if self._dialog is not None:
            return []
        columns = self.columns
        key = "Ctrl-C hurries" if self.between_sessions else "Esc aborts"
        lines = [self._live.status_line(key, columns)] if self._live.goes_on else []
        # After an abort, messages wait until the person sends one.
        label = "queued" if self._live.goes_on else "for the next request"
        notes = [f"{self.interrupted} again quits"] if self.interrupted else []
        return lines + waiting_lines(label, self._queued, notes, columns)

    def refresh(self) -> None:
        """Draw the screen anew, because the facts of the line below the prompt have changed."""
        self._app.invalidate()

    def _bar_lines(self) -> list[Line]:
        parts = [] if self.between_sessions else self._facts()
        return [bar_line(parts, self.columns)] if parts and not is_searching() else []

    # ---- the prompt line

    @property
    def active(self) -> bool:
        """Whether the prompt line is shown, and no dialog in its place."""
        return self._dialog is None

    def offer(self, text: str) -> None:
        """Put a text into the prompt line if it is empty."""
        if not self.buffer.text:
            shown = self.pastes.shown(text)
            self.buffer.set_document(Document(shown, len(shown)))

    def take_back(self, texts: Sequence[str]) -> None:
        """Put messages that waited back into the prompt line, before the text that is in it."""
        for text in texts:
            self.delivered(text)
        line = "\n".join([*map(self.pastes.shown, texts), *([self.buffer.text] if self.buffer.text else [])])
        self.buffer.set_document(Document(line, len(line)))

    def delivered(self, text: str) -> None:
        """Show no longer that a message waits, because it has reached the agent."""
        if text in self._queued:
            self._queued.remove(text)

    def queued(self, text: str) -> None:
        """Show that a message waits for the agent."""
        self._queued.append(text)
        self._app.invalidate()

    def ready(self) -> None:
        """Show that the session has started."""
        self.between_sessions = False
        self.busy(None)

    def leaving(self) -> None:
        """Show that the session ends."""
        self.between_sessions = True
        self.busy("ending")

    def busy(self, status: str | None) -> None:
        """Show a status with a spinner, `None` for none."""
        self._live.busy(status)
        self._alerts.show(self._alert_state())
        (self._goes_on.clear if status is None else self._goes_on.set)()
        self._app.invalidate()

    def _alert_state(self) -> State:
        if self._dialog is not None:
            return "question"
        return "working" if self._live.goes_on else "ready"

    @property
    def just_began(self) -> bool:
        """Whether the terminal may still send lines that were typed before the start."""
        return self._began is not None and monotonic() - self._began < TYPED_AHEAD

    @property
    def waiting(self) -> bool:
        """Whether messages wait for the agent."""
        return bool(self._queued)

    def withdraw(self) -> None:
        """Take the messages that wait back into the prompt line."""
        self.take_back(self._withdraw())

    async def accept(self) -> None:
        """Take an Enter at the empty line."""
        if self._accept is not None:
            await self._accept()

    @property
    def interrupted(self) -> str:
        """The key of which one more ends the program; empty without one."""
        recent = self._interrupted_at is not None and monotonic() - self._interrupted_at < SECOND_CTRL_C
        return self._interrupted_by if recent else ""

    @property
    def works(self) -> bool:
        """Whether the agent works, or a command is carried out."""
        return self._live.goes_on

    def interrupt(self, key: str) -> None:
        """Take note of a key that quits when it is pressed again within a while."""
        self._interrupted_at, self._interrupted_by = monotonic(), key
        if self._loop is not None:
            self._loop.call_later(SECOND_CTRL_C, self._app.invalidate)

    def _mark(self) -> str:
        """Return the mark of the prompt line, which tells a command of the person from a message."""
        return PROMPT if own_command(self.buffer.text) is None else OWN_PROMPT

    def _typed(self) -> None:
        self._interrupted_at = None

    # ---- other programs

    async def page(self) -> None:
        """Show the whole conversation in the person's pager."""
        await self._lend(self._foreground.page(self.transcript()))

    async def edit(self) -> None:
        """Let the person write the prompt line in their editor."""

        async def edit() -> None:
            text = await self._foreground.edit(self.pastes.whole(self.buffer.text))
            self.buffer.set_document(Document(text, len(text)))

        await self._lend(edit())

    async def lend(self, function: Callable[[], None]) -> None:
        """Let a function have the terminal, as it is without this screen; its `AgentHooksError` is shown."""

        async def in_its_context() -> None:
            await self._lend(self._foreground.call(function))

        # Only a task of the application knows the application.
        await self._app.create_background_task(in_its_context())

    async def paste_image(self) -> None:
        """Put the path of the image in the clipboard into the prompt line."""
        try:
            path = await anyio.to_thread.run_sync(save_image)
        except ClipboardError as exc:
            self.print_line(str(exc), "warning")
        else:
            self.buffer.insert_text(f"@{path} ")

    def copy(self, text: str) -> None:
        """Have the terminal put a text into the clipboard; a terminal that cannot ignores it."""
        self._app.output.write_raw(osc52(text))
        self._app.output.flush()

    async def _lend(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except AgentHooksError as exc:
            self.error(str(exc))
        finally:
            held, self._held = self._held, []
            for text in held:
                self._write(text)

    # ---- the stage of dialogs

    async def show(self, dialog: Dialog) -> None:
        """Show a dialog in the place of the prompt line until it is closed; the text of the prompt line stays."""
        closed = anyio.Event()
        dialog.on_close = closed.set
        if not self._app.is_running:  # the terminal is gone
            dialog.close(None)
        # A person who reads in the pager must not miss the dialog.  An editor goes on, because it has the person's text.
        self._foreground.end_pager()
        self._dialog = dialog
        self._alerts.show("question")
        self._focus(dialog.focus)
        try:
            await closed.wait()
        finally:
            self._dialog = None
            self._alerts.show(self._alert_state())
            self._focus(self._prompt)

    def _focus(self, window: Window) -> None:
        self._app.layout.focus(window)
        self._app.invalidate()

    # ---- printing

    def _write(self, text: str) -> None:
        self._on_loop(self._write_now, text)

    def _write_now(self, text: str) -> None:
        app = self._app
        if self._foreground.lent:
            self._held.append(text)
            return
        if app.is_running:
            app.renderer.erase()
        app.output.write_raw(text.replace("\n", "\r\n"))
        app.output.flush()
        app.invalidate()

    def _on_loop(self, function: Callable[..., None], *args: str) -> None:
        """Call a function in the application's thread: at once if this is it, else soon."""
        if self._loop is None or threading.get_ident() == self._thread:
            function(*args)
        else:
            # The loop may have ended, and the screen with it.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function, *args)
