"""The screen of the interactive mode: the conversation above, a prompt line or a dialog at the bottom.

One prompt_toolkit application runs from the start to the end and owns the terminal; the conversation is printed above it
and stays in the terminal's scrollback.  Above: modes.interactive.  Below: output, ui.terminal.
"""

from __future__ import annotations

import asyncio
import io
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
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
from prompt_toolkit.output import Output
from rich.console import Console
from rich.text import Text

from agent_hooks.cli.screen.line import CommandCompleter, PromptHistory
from agent_hooks.cli.screen.output import Lines, said
from agent_hooks.ui.base import NotifyType
from agent_hooks.ui.harmless import harmless
from agent_hooks.ui.terminal import STYLE, Dialog, Line, cut, fragments, wrap

STYLES = {"info": "cyan", "warning": "yellow", "error": "bold red", "answer": "magenta"}
MARKS = {"info": "i", "warning": "!", "error": "!", "answer": "?"}
SPINNER = "|/-\\"
SPINNER_STEP = 0.15  # seconds


class PromptScreen(Lines):
    """Shows the conversation, asks for the next prompt, and is the stage of dialogs.

    `submit` gets what the person typed, `abort` is called for Esc, `leave` for Ctrl-D and for Ctrl-C twice.  `print`
    and `say` may be called from any thread.
    """

    def __init__(
        self,
        input: Input,
        output: Output,
        *,
        history: PromptHistory,
        commands: dict[str, str],
        submit: Callable[[str], None],
        abort: Callable[[], object],
        leave: Callable[[], None],
    ) -> None:
        super().__init__()
        self._submit, self._abort, self._leave = submit, abort, leave
        self._partial = ""  # the line of the answer that has no end yet
        self._queued: list[str] = []  # typed while the agent works, and not delivered yet
        self._doing: str | None = None  # what goes on
        self._goes_on = asyncio.Event()
        self._between = True  # before the session and after it; Ctrl-C is the signal then that it is elsewhere
        self._interrupted = False  # by a Ctrl-C, and nothing has been typed since
        self._dialog: Dialog | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.get_ident()
        self._spins = 0
        self._buffer = Buffer(completer=CommandCompleter(commands), history=history, multiline=True)
        self._buffer.on_text_changed += lambda buffer: self._typed()
        self._prompt = Window(
            BufferControl(self._buffer),
            height=lambda: Dimension(min=1, max=max(1, self._size().rows // 2)),
            wrap_lines=True,
            dont_extend_height=True,
            get_line_prefix=lambda line, wrapped: [("class:prompt", "> " if line == wrapped == 0 else "  ")],
        )
        self._app: Application[None] = Application(
            Layout(self._layout(), self._prompt),
            key_bindings=self._keys(),
            style=STYLE,
            erase_when_done=True,
            input=input,
            output=output,
        )
        self._paper = Console(
            force_terminal=True, color_system="auto", highlight=False, markup=False, soft_wrap=True, file=io.StringIO()
        )
        self._app.ttimeoutlen = 0.1  # seconds until a lone Esc counts …
        self._app.timeoutlen = 0.3  # … and until it is no Alt
        self.busy("starting")

    # ---- the application

    async def run(self, started: Callable[[], None]) -> None:
        """Own the terminal until cancelled, and give it back as it was; returns when the terminal is gone."""
        self._loop = asyncio.get_running_loop()
        spinner = self._loop.create_task(self._spin())
        try:
            with suppress(EOFError):
                await self._app.run_async(pre_run=started, handle_sigint=False)
        finally:
            self._loop = None  # from here on everything is written at once
            spinner.cancel()
            if self._dialog is not None:
                self._dialog.close(None)

    async def _spin(self) -> None:
        while True:
            await self._goes_on.wait()
            await asyncio.sleep(SPINNER_STEP)
            self._spins += 1
            self._app.invalidate()

    def _size(self) -> Size:
        return self._app.output.get_size()

    def _layout(self) -> Container:
        def part(lines: Callable[[], list[Line]]) -> Container:
            window = Window(FormattedTextControl(lambda: fragments(lines())), dont_extend_height=True)
            return ConditionalContainer(window, Condition(lambda: bool(lines())))

        prompt = HSplit([self._prompt, CompletionsMenu(max_height=6)])
        return HSplit(
            [
                part(self._live_lines),
                part(self._status_lines),
                DynamicContainer(lambda: prompt if self._dialog is None else self._dialog.container),
            ]
        )

    def _live_lines(self) -> list[Line]:
        """Return the end of the line that the model is writing."""
        if not self._partial or self._dialog is not None:
            return []
        size = self._size()
        lines = wrap(self._partial[-size.columns * size.rows :], size.columns)
        return [("", line) for line in lines[-max(1, size.rows - 4) :]]

    def _status_lines(self) -> list[Line]:
        """Return what goes on, and what waits."""
        if self._dialog is not None:
            return []
        columns = self._size().columns
        lines = []
        if self._doing is not None:
            doing = "; ".join(self._running.values()) or self._doing
            mark = SPINNER[self._spins % len(SPINNER)]
            hint = "" if columns < 40 else " · Ctrl-C hurries" if self._between else " · Esc aborts"
            lines.append(("class:hint", cut(f"{mark} {harmless(doing)}", columns - len(hint)) + hint))
        label = "queued" if self._doing is not None else "for the next request"  # an abort leaves it there
        shown = [f"{label}: {' '.join(text.split())}" for text in self._queued[-2:]]
        shown += ["Ctrl-C again quits"] if self._interrupted else []
        return lines + [("class:hint", cut(harmless(text), columns)) for text in shown]

    # ---- the prompt line

    def offer(self, text: str) -> None:
        """Put a text into the prompt line, if nothing stands there yet."""
        if not self._buffer.text:
            self._buffer.set_document(Document(text, len(text)))

    def queued(self, text: str) -> None:
        """Show that a message waits for the agent."""
        self._queued.append(text)
        self._app.invalidate()

    def ready(self) -> None:
        """Show that the session has started."""
        self._between = False
        self.busy(None)

    def leaving(self) -> None:
        """Show that the end has begun."""
        self._between = True
        self.busy("ending")

    def busy(self, what: str | None) -> None:
        """Show that something goes on, until `None`."""
        self._doing = what
        (self._goes_on.clear if what is None else self._goes_on.set)()
        self._app.invalidate()

    def _typed(self) -> None:
        self._interrupted = False

    # ---- keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        at_prompt = Condition(lambda: self._dialog is None)

        @keys.add("enter", filter=at_prompt)
        def _enter(event: KeyPressEvent) -> None:
            buffer, state = self._buffer, self._buffer.complete_state
            if state is not None and state.current_completion is not None:
                buffer.complete_state = None  # takes what is chosen
            elif buffer.document.text_before_cursor.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.newline(copy_margin=False)
            elif text := buffer.text.rstrip():
                buffer.append_to_history()
                buffer.reset()
                self._submit(text)

        @keys.add("escape", "enter", filter=at_prompt)
        def _newline(event: KeyPressEvent) -> None:
            self._buffer.newline(copy_margin=False)

        @keys.add("escape", filter=at_prompt & ~has_completions)
        def _escape(event: KeyPressEvent) -> None:
            self._abort()

        @keys.add("escape", filter=at_prompt & has_completions)
        def _no_completion(event: KeyPressEvent) -> None:
            self._buffer.cancel_completion()

        @keys.add("c-c", filter=at_prompt)
        def _interrupt(event: KeyPressEvent) -> None:
            if self._between:
                signal.raise_signal(signal.SIGINT)
            elif self._interrupted:
                self._leave()
            elif self._buffer.text:
                self._buffer.reset()
            else:
                self._abort()
            self._interrupted = True

        @keys.add("c-d", filter=at_prompt & Condition(lambda: not self._buffer.text))
        def _end(event: KeyPressEvent) -> None:
            self._leave()

        @keys.add("c-z", filter=at_prompt)
        def _suspend(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        return keys

    # ---- the stage of dialogs

    async def show(self, dialog: Dialog) -> None:
        """Show a dialog in the place of the prompt line until it is closed; what was typed there stays."""
        closed = anyio.Event()
        dialog.on_close = closed.set
        if not self._app.is_running:  # nobody is there any more
            dialog.close(None)
        self._dialog = dialog
        self._focus(dialog.focus)
        try:
            await closed.wait()
        finally:
            self._dialog = None
            self._focus(self._prompt)

    def _focus(self, window: Window) -> None:
        self._app.layout.focus(window)
        self._app.invalidate()

    def say(self, text: str, type: NotifyType | Literal["answer"]) -> None:
        """Print a line of its own; from any thread."""
        self._print(Text(f"{MARKS[type]} {harmless(text)}", STYLES[type]))

    # ---- View

    def run_started(self, text: str, source: str | None) -> None:
        """Print the prompt that the agent begins to work on."""
        self.busy("working")
        self.injected(text, source)

    def run_ended(self, error: str | None, aborted: bool) -> None:
        """Print what came in the way, if something did."""
        self.busy(None)
        self._running.clear()
        self._end_line()
        if error is not None:
            self.error(error)
        elif aborted:
            self.error("aborted")
        self._app.invalidate()

    def injected(self, text: str, source: str | None) -> None:
        """Print a message to the agent, and which hook sent it."""
        if source is None and text in self._queued:
            self._queued.remove(text)
        self._end_line()
        self.print(Text(), said(text, source))

    def echo(self, command: str) -> None:
        """Print a slash command that is carried out."""
        self.print(Text(f"> {harmless(command)}", "bold"))

    def rule(self, text: str) -> None:
        """Print where something else begins."""
        self.print(ruled(text))

    def stray(self, line: str) -> None:
        """Print what a hook or its program has printed; from any thread."""
        self._print(Text(f"  {harmless(line.rstrip())}", "bright_black"))

    def text(self, delta: str) -> None:
        """Show the model's words as they come; whole lines go up into the conversation."""
        *lines, self._partial = (self._partial + harmless(delta)).split("\n")
        if lines:
            self._write("".join(f"{line}\n" for line in lines))
        self._app.invalidate()

    def _wait(self, call_id: str, what: str) -> None:
        self._running[call_id] = what
        self._end_line()
        self._app.invalidate()

    def _end_line(self) -> None:
        if self._partial:
            line, self._partial = self._partial, ""
            self._write(f"{line}\n")

    # ---- printing

    def print(self, *lines: object) -> None:
        """Print what rich can, above the prompt line; from any thread.  Text must be harmless already."""
        with self._paper.capture() as captured:
            for line in lines:
                self._paper.print(line)
        self._write(captured.get())

    def _print(self, line: Text) -> None:
        self._on_loop(self._end_line)
        self.print(line)

    def _write(self, text: str) -> None:
        self._on_loop(self._write_now, text)

    def _write_now(self, text: str) -> None:
        app = self._app
        if app.is_running:
            app.renderer.erase()
        app.output.write_raw(text.replace("\n", "\r\n"))
        app.output.flush()
        app.invalidate()

    def _on_loop(self, function: Callable[..., None], *args: str) -> None:
        """Call a function at once, or soon when this is another thread than the application's."""
        if self._loop is None or threading.get_ident() == self._thread:
            function(*args)
        else:
            with suppress(RuntimeError):  # the loop has ended: nobody looks any more
                self._loop.call_soon_threadsafe(function, *args)


def ruled(text: str) -> Text:
    """Return the line where something else begins."""
    return Text(f"── {harmless(text)} ──", "bright_black")
