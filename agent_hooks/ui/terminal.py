"""The UI of a terminal: lists with arrow keys and a line to type in, one dialog at a time.

A `Dialog` has the widgets of prompt_toolkit and the person's answer; a `Stage` puts it on a screen.  The interactive mode
is a stage, which shows the dialog in place of its prompt line.  `OwnScreen` is the stage for any other program.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, Protocol

import anyio
from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, Container, FormattedTextControl, HSplit, Layout, VSplit, Window
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import get_cwidth

from agent_hooks.concurrency.lanes import Lane
from agent_hooks.ui.base import NotifyType
from agent_hooks.ui.harmless import harmless

STYLE = Style([("title", "bold"), ("hint", "ansibrightblack"), ("selected", "bold ansicyan")])
LONGEST_RECORD = 300
"""The most columns of the line with a question and its answer, which stays on screen."""
KEYS_LIST = "↑↓ Enter, Esc cancels"
KEYS_LINE = "Enter, Esc cancels"
KEYS_SCROLL = "PgUp PgDn"
Line = tuple[str, str]
"""A style, and a text that fits into the columns of the terminal."""


class Option(NamedTuple):
    """One line of a list, and a preview that is shown below the list while the line is selected."""

    label: str
    preview: str = ""


class Stage(Protocol):
    """The place where dialogs are shown, one at a time."""

    async def show(self, dialog: Dialog) -> None:
        """Show a dialog until it is closed; remove it when this task is cancelled."""

    def print_line(self, text: str, type: NotifyType | Literal["answer"]) -> None:
        """Show a line that stays on screen; from any thread."""


class TerminalUI:
    """Asks the person at the terminal: dialogs wait for one another, first in, first out.

    Esc and Ctrl-C cancel a dialog, and so does the cancellation of its handler.  Without a `stage`, each dialog has the
    terminal to itself.
    """

    def __init__(self, stage: Stage | None = None) -> None:
        self._stage = OwnScreen() if stage is None else stage
        self._lane = Lane()

    async def select(self, title: str, options: list[str]) -> str | None:
        """Let the person choose one of `options`; `None` when they cancel."""
        index = await self.choose(title, [Option(str(option)) for option in options])
        self._record(title, None if index is None else str(options[index]))
        return None if index is None else options[index]

    async def confirm(self, title: str, message: str) -> bool:
        """Ask yes or no.  No is selected at first, so that a key for the prompt line allows nothing."""
        yes_no = [Option("Yes"), Option("No")]
        index = await self.choose(title, yes_no, message=message, selected=1)
        self._record(title, None if index is None else yes_no[index].label)
        return index == 0

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Ask for a line of text; `None` when they cancel."""
        dialog = LineDialog(title, placeholder or "")
        await self._ask(dialog)
        self._record(title, dialog.answer)
        return dialog.answer

    def notify(self, message: str, type: NotifyType) -> None:
        """Show a line; from any thread."""
        self._stage.print_line(str(message), type)

    async def choose(
        self, title: str, options: Sequence[Option], *, message: str = "", selected: int = 0
    ) -> int | None:
        """Let the person choose, and return the index, `None` when they cancel; no line stays on screen."""
        if not options:
            return None
        dialog = ListDialog(title, options, message=message, selected=selected)
        await self._ask(dialog)
        return dialog.answer

    async def _ask(self, dialog: Dialog) -> None:
        await self._lane.enter()
        try:
            await self._stage.show(dialog)
        finally:
            self._lane.leave()

    def _record(self, title: str, answer: str | None) -> None:
        line = " ".join(f"{title} → {'cancelled' if answer is None else answer}".split())
        self._stage.print_line(cut(line, LONGEST_RECORD), "answer")


# ---- dialogs ---------------------------------------------------------------------------------------------------------


class Dialog:
    """A dialog on screen, with keys of its own, until `close`."""

    container: Container
    focus: Window
    answer: Any = None

    def __init__(self, title: str, message: str = "") -> None:
        self.closed = False
        self.on_close: Callable[[], None] = lambda: None
        self.keys = KeyBindings()
        self._title = harmless(title).expandtabs(4)
        self._message = harmless(message).expandtabs(4)
        # The first shown line of title and message, and how many of their lines did not fit at the last drawing.
        self._scroll = 0
        self._hidden = 0
        self.keys.add("escape", eager=True)(lambda event: self.close(None))
        self.keys.add("c-c")(lambda event: self.close(None))
        self.keys.add("pageup")(lambda event: self._page(-1))
        self.keys.add("pagedown")(lambda event: self._page(1))

    def close(self, answer: Any) -> None:
        """End the dialog with an answer; `None` means cancelled."""
        if not self.closed:
            self.closed, self.answer = True, answer
            self.on_close()

    def _page(self, way: int) -> None:
        self._scroll = max(0, min(self._scroll + 3 * way, self._hidden))

    def _text(self, columns: int) -> list[Line]:
        """Return title and message, wrapped."""
        lines = [("class:title", line) for line in wrap(self._title, columns)]
        return lines + [("", line) for line in wrap(self._message, columns) if self._message]

    def _part(self, lines: list[Line], height: int) -> list[Line]:
        """Return the lines of `_text` that fit, from the scroll position on."""
        self._hidden = max(0, len(lines) - height)
        self._scroll = min(self._scroll, self._hidden)
        return lines[self._scroll : self._scroll + height]

    def _footer(self, columns: int, *parts: str) -> Line:
        return "class:hint", cut(" · ".join(filter(None, parts)), columns)


class ListDialog(Dialog):
    """A list, with the arrow keys; a small terminal scrolls it."""

    answer: int | None

    def __init__(self, title: str, options: Sequence[Option], *, message: str = "", selected: int = 0) -> None:
        super().__init__(title, message)
        self._labels = [" ".join(harmless(option.label).split()) for option in options]
        self._previews = [harmless(option.preview or option.label).expandtabs(4) for option in options]
        self._has_preview = [bool(option.preview) or "\n" in option.label for option in options]
        self.selected = selected
        self._preview_scroll = self._preview_hidden = 0
        # The person still types for the prompt line, and may not have noticed the list yet.
        self._typing = False
        last = len(options) - 1
        for key, move in {"up": -1, "c-p": -1, "down": 1, "c-n": 1}.items():
            self.keys.add(key)(self._mover(move))
        self.keys.add("home")(lambda event: self._select(0))
        self.keys.add("end")(lambda event: self._select(last))
        self.keys.add("enter")(lambda event: self._enter())
        self.keys.add("<any>")(self._other_key)
        control = FormattedTextControl(self._fragments, focusable=True, key_bindings=self.keys, show_cursor=False)
        self.container = self.focus = Window(control, dont_extend_height=True)

    def _mover(self, by: int) -> Callable[[KeyPressEvent], None]:
        return lambda event: self._select((self.selected + by) % len(self._labels))

    def _select(self, index: int) -> None:
        self.selected, self._preview_scroll, self._typing = index, 0, False

    def _other_key(self, event: KeyPressEvent) -> None:
        self._typing |= event.data.isprintable()

    def _enter(self) -> None:
        """Choose the selected option, unless the Enter comes after a letter: then it was for the prompt line."""
        if not self._typing:
            self.close(self.selected)
        self._typing = False

    def _page(self, way: int) -> None:
        if self._hidden:
            super()._page(way)
        elif self._preview_hidden:
            self._preview_scroll = max(0, min(self._preview_scroll + way, self._preview_hidden))
        else:
            self._select(max(0, min(self.selected + 5 * way, len(self._labels) - 1)))

    def _fragments(self) -> StyleAndTextTuples:
        size = get_app().output.get_size()
        return fragments(self.lines(size.columns, size.rows))

    def lines(self, columns: int, rows: int) -> list[Line]:
        """Return the lines of the dialog for a terminal of this size; all of them fit."""
        # One line of the conversation stays visible.
        room = max(rows - 1, 3)
        footer = room >= 6
        room -= footer
        text = self._text(columns)
        fits = [get_cwidth(label) <= columns - 2 for label in self._labels]
        unseen = [more or not fit for more, fit in zip(self._has_preview, fits, strict=True)]
        count = len(self._labels)
        listed = min(count, max(2, room // 2))
        preview = min(4, room // 4, room - listed - 1) if any(unseen) else 0
        parts = self._part(text, max(1, min(len(text), room - listed - preview)))
        listed = min(count, room - len(parts) - preview)
        first = max(0, min(self.selected - listed // 2, count - listed))
        shown = [
            ("class:selected", cut(f"> {label}", columns))
            if index == self.selected
            else ("", cut(f"  {label}", columns))
            for index, label in enumerate(self._labels[first : first + listed], first)
        ]
        below = [("class:hint", line) for line in self._preview(columns, preview, unseen[self.selected])]
        position = f"{self.selected + 1}/{count}" if listed < count else ""
        scroll = KEYS_SCROLL if self._hidden or self._preview_hidden else ""
        return parts + shown + below + ([self._footer(columns, scroll, position, KEYS_LIST)] if footer else [])

    def _preview(self, columns: int, height: int, wanted: bool) -> list[str]:
        """Return exactly `height` lines with the text of the selected option, as much of it as fits."""
        lines = wrap(self._previews[self.selected], columns - 2) if wanted else []
        self._preview_hidden = max(0, len(lines) - height)
        lines = (lines + [""] * height)[self._preview_scroll :][:height]
        return [f"  {line}" for line in lines]


class LineDialog(Dialog):
    """A line to type in, with a hint while it is empty."""

    answer: str | None

    def __init__(self, title: str, hint: str) -> None:
        super().__init__(title)
        self._buffer = Buffer(multiline=False)
        self.keys.add("enter")(lambda event: self.close(self._buffer.text))
        shown = AfterInput([("class:hint", " ".join(harmless(hint).split()))])
        control = BufferControl(
            self._buffer,
            input_processors=[ConditionalProcessor(shown, Condition(lambda: not self._buffer.text))],
            key_bindings=self.keys,
        )
        self.focus = Window(control, height=1)
        above = FormattedTextControl(lambda: fragments(self._above()))
        below = FormattedTextControl(lambda: fragments([self._below()]))
        mark = Window(FormattedTextControl("> "), width=2, height=1)
        self.container = HSplit(
            [
                Window(above, dont_extend_height=True),
                VSplit([mark, self.focus]),
                Window(below, height=1),
            ]
        )

    def _below(self) -> Line:
        return self._footer(get_app().output.get_size().columns, KEYS_SCROLL if self._hidden else "", KEYS_LINE)

    def _above(self) -> list[Line]:
        size = get_app().output.get_size()
        return self._part(self._text(size.columns), max(1, size.rows - 3))


# ---- text that fits --------------------------------------------------------------------------------------------------


def fragments(lines: Iterable[Line]) -> StyleAndTextTuples:
    """Return lines in prompt_toolkit's form."""
    found: StyleAndTextTuples = []
    for style, text in lines:
        found += [("", "\n"), (style, text)] if found else [(style, text)]
    return found


def cut(text: str, columns: int) -> str:
    """Return a line of at most `columns`, with an ellipsis when it is cut."""
    if get_cwidth(text) <= columns:
        return text
    while text and get_cwidth(text) > columns - 1:
        text = text[: min(len(text) - 1, columns)]
    return f"{text}…" if columns > 0 else ""


def wrap(text: str, columns: int) -> list[str]:
    """Return the lines of a text, each of at most `columns`, broken at spaces if there are any."""
    lines: list[str] = []
    for line in text.split("\n"):
        while get_cwidth(line) > columns and len(line) > 1:
            end, width = 0, 0
            while end < len(line) and (width := width + get_cwidth(line[end])) <= columns:
                end += 1
            end = max(end, 1)
            space = line.rfind(" ", 1, end + 1)
            lines.append(line[: space if space > 0 else end])
            line = line[space + 1 if space > 0 else end :]
        lines.append(line)
    return lines


# ---- a dialog by itself ----------------------------------------------------------------------------------------------


class OwnScreen:
    """Runs each dialog as a prompt_toolkit application in a thread, which works on asyncio and trio.

    When stdin or stderr is not a terminal, a dialog is cancelled at once.  `input` and `output` replace stdin and stderr.
    """

    def __init__(self, input: Input | None = None, output: Output | None = None) -> None:
        self._input = input
        self._output = output

    def _has_person(self) -> bool:
        if self._input is not None:
            return not self._input.closed
        return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))

    async def show(self, dialog: Dialog) -> None:
        """Show a dialog until it is closed; when cancelled, remove it and wait until the terminal is as before."""
        if not self._has_person():
            return
        app: Application[None] = Application(
            Layout(dialog.container, dialog.focus),
            style=STYLE,
            erase_when_done=True,
            input=self._input,
            output=self._output or create_output(sys.stderr),
        )
        # Seconds until Esc counts as a key of its own.
        app.ttimeoutlen = 0.1
        began, ended = threading.Event(), threading.Event()

        def leave() -> None:
            if app.is_running and not app.is_done:
                app.exit()

        def work() -> None:
            began.set()
            try:
                if not dialog.closed:
                    app.run(pre_run=lambda: leave() if dialog.closed else None, handle_sigint=False)
            # The terminal is gone.
            except EOFError:
                dialog.close(None)
            finally:
                ended.set()

        dialog.on_close = leave
        try:
            await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            # From here on, `work` does not begin.
            dialog.closed = True
            if began.is_set():
                # Raised when the application's loop has ended.
                with suppress(RuntimeError):
                    if app.loop is not None:
                        app.loop.call_soon_threadsafe(leave)
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(ended.wait)

    def print_line(self, text: str, type: NotifyType | Literal["answer"]) -> None:
        """Print a line on stderr."""
        sys.stderr.write(f"{'? ' if type == 'answer' else ''}{harmless(text)}\n")
