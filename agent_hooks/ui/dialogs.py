"""The dialogs of a terminal: a list with arrow keys, and a line to type in.

A `Dialog` has the widgets of prompt_toolkit and the person's answer.  It is shown by a stage of `terminal`.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, Container, FormattedTextControl, HSplit, VSplit, Window
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.utils import get_cwidth

from agent_hooks.ui.base import Choice, Question
from agent_hooks.ui.fitting import Line, cut, fragments, wrap
from agent_hooks.ui.harmless import harmless

MOMENT = 0.3
"""Seconds after a dialog comes up in which no key counts: the person may still be typing for the prompt line."""
PAUSE = 0.5
"""Seconds without another key, before and after a digit, in which it chooses its option: else it is part of a text."""
MOST_NUMBERED = 9
"""The most options of a list that are numbered."""
KEYS_LIST = "↑↓ Enter, Esc cancels"
KEYS_SEARCH = "type to search, ↑↓ Enter, Esc cancels"
KEYS_QUESTION = "↑↓ Enter, Esc stops the agent"
KEYS_LINE = "Enter, Esc cancels"
KEYS_SCROLL = "PgUp PgDn"


class Option(NamedTuple):
    """One line of a list, and a preview that is shown below the list while the line is selected."""

    label: str
    preview: str = ""


class Dialog:
    """A dialog on screen, with keys of its own, until `close`.

    Keys that were typed before it came up do not count, nor do those of the first `MOMENT`; the mark `>` shows when they
    do.  Only Ctrl-C counts at once, which cancels.
    """

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
        self._drawn = False
        self.awake = MOMENT <= 0
        asleep = Condition(lambda: not self.awake)
        # An exact key goes before any key, and an eager binding before others; so these take all keys of the moment.
        self.keys.add("<any>", eager=True, filter=asleep)(self._ignore)
        self.keys.add(Keys.CPRResponse, eager=True, filter=asleep)(_take_cursor_row)
        self.keys.add("c-c", eager=True)(lambda event: self.close(None))
        self.keys.add("escape", eager=True, filter=~asleep)(lambda event: self.close(None))
        self.keys.add("pageup")(lambda event: self._page(-1))
        self.keys.add("pagedown")(lambda event: self._page(1))

    def close(self, answer: Any) -> None:
        """End the dialog with an answer; `None` means cancelled."""
        if not self.closed:
            self.closed, self.answer = True, answer
            self.on_close()

    def _ignore(self, event: KeyPressEvent) -> None:
        """Take a key of the moment."""

    def _begin(self) -> None:
        """Begin the moment when the dialog is drawn first.

        A timer ends it: an event loop that was blocked takes the waiting keys before its timers.
        """
        if not self._drawn:
            self._drawn = True
            app = get_app()
            if not self.awake and app.loop is not None:
                app.loop.call_later(MOMENT, self._wake, app)

    def _wake(self, app: Application[Any]) -> None:
        self.awake = True
        app.invalidate()

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

    def _mark(self) -> str:
        return "> " if self.awake else "  "

    def _footer(self, columns: int, *parts: str) -> Line:
        return "class:hint", cut(" · ".join(filter(None, parts)), columns)


class ListDialog(Dialog):
    """A list, with the arrow keys, and numbers if one digit can name each option; a small terminal scrolls it."""

    answer: int | None

    def __init__(self, title: str, options: Sequence[Option], *, message: str = "", selected: int = 0) -> None:
        super().__init__(title, message)
        numbered = len(options) <= MOST_NUMBERED
        self._labels = [
            f"{number}. " * numbered + " ".join(harmless(option.label).split())
            for number, option in enumerate(options, 1)
        ]
        self._previews = [harmless(option.preview or option.label).expandtabs(4) for option in options]
        self._has_preview = [bool(option.preview) or "\n" in option.label for option in options]
        self.selected = selected
        self._preview_scroll = self._preview_hidden = 0
        # The person still types for the prompt line, and may not have noticed the list yet.
        self._typing = False
        self._typed_at = -PAUSE
        # The timer of a digit that has been pressed, and the option that was selected before it.
        self._digit: TimerHandle | None = None
        self._before_digit = selected
        for key, move in {"up": -1, "c-p": -1, "down": 1, "c-n": 1}.items():
            self.keys.add(key)(self._mover(move))
        self.keys.add("home")(lambda event: self._select(0))
        self.keys.add("end")(lambda event: self._select(len(self._labels) - 1))
        self.keys.add("enter")(lambda event: self._enter())
        self.keys.add("<any>")(self._other_key)
        for number in range(1, len(options) + 1) if numbered else ():
            self.keys.add(str(number))(self._digit_of(number - 1))
        control = FormattedTextControl(self._fragments, focusable=True, key_bindings=self.keys, show_cursor=False)
        self.container = self.focus = Window(control, dont_extend_height=True)

    def _hint(self) -> str:
        """Return the keys, for the last line."""
        return KEYS_LIST

    def _mover(self, by: int) -> Callable[[KeyPressEvent], None]:
        # The list does not go round: Down at its end must not choose its first option.
        return lambda event: self._select(max(0, min(self.selected + by, len(self._labels) - 1)))

    def _select(self, index: int) -> None:
        self._forget_digit()
        self.selected, self._preview_scroll, self._typing = index, 0, False

    def _digit_of(self, index: int) -> Callable[[KeyPressEvent], None]:
        """Return the handler of a digit, which selects an option, and chooses it unless another key follows soon."""

        def press(event: KeyPressEvent) -> None:
            if monotonic() - self._typed_at < PAUSE or self._digit is not None or event.app.loop is None:
                self._other_key(event)
                return
            before = self.selected
            self._select(index)
            self._before_digit = before
            self._digit = event.app.loop.call_later(PAUSE, self.close, index)

        return press

    def _forget_digit(self) -> None:
        if self._digit is not None:
            self._digit.cancel()
        self._digit = None

    def _ignore(self, event: KeyPressEvent) -> None:
        self._other_key(event)

    def _other_key(self, event: KeyPressEvent) -> None:
        if event.data.isprintable():
            if self._digit is not None:
                # It began a text for the prompt line.
                self._select(self._before_digit)
            self._typing, self._typed_at = True, monotonic()

    def _enter(self) -> None:
        """Choose the selected option, unless the Enter comes after a letter: then it was for the prompt line."""
        if not self._typing:
            self.close(self.selected)
        self._typing = False

    def _page(self, way: int) -> None:
        self._forget_digit()
        if self._hidden:
            super()._page(way)
        elif self._preview_hidden:
            self._preview_scroll = max(0, min(self._preview_scroll + way, self._preview_hidden))
        else:
            self._select(max(0, min(self.selected + 5 * way, len(self._labels) - 1)))

    def _fragments(self) -> StyleAndTextTuples:
        self._begin()
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
            ("class:selected", cut(f"{self._mark()}{label}", columns))
            if index == self.selected
            else ("", cut(f"  {label}", columns))
            for index, label in enumerate(self._labels[first : first + listed], first)
        ]
        below = [("class:hint", line) for line in self._preview(columns, preview, unseen[self.selected])]
        position = f"{self.selected + 1}/{count}" if listed < count else ""
        scroll = KEYS_SCROLL if self._hidden or self._preview_hidden else ""
        return parts + shown + below + ([self._footer(columns, scroll, position, self._hint())] if footer else [])

    def _preview(self, columns: int, height: int, wanted: bool) -> list[str]:
        """Return exactly `height` lines with the text of the selected option, as much of it as fits."""
        lines = wrap(self._previews[self.selected], columns - 2) if wanted else []
        self._preview_hidden = max(0, len(lines) - height)
        lines = (lines + [""] * height)[self._preview_scroll :][:height]
        return [f"  {line}" for line in lines]


class SearchDialog(ListDialog):
    """A list of many options, which the person has asked for: typed words leave the options that have all of them."""

    def __init__(self, title: str, options: Sequence[Option], *, message: str = "", selected: int = 0) -> None:
        super().__init__(title, options, message=message, selected=selected)
        self._every = [*zip(self._labels, self._previews, self._has_preview, strict=True)]
        # The indices of the options that are left.
        self._left = [*range(len(options))]
        self._sought = ""
        self.keys.add("backspace")(lambda event: self._seek(self._sought[:-1]))

    def _hint(self) -> str:
        return f"search: {self._sought}" if self._sought else KEYS_SEARCH

    def _other_key(self, event: KeyPressEvent) -> None:
        if event.data.isprintable():
            self._seek(self._sought + event.data)

    def _seek(self, text: str) -> None:
        """Leave the options that have all words of a text; a text that none of them has is not taken."""
        words = text.casefold().split()
        left = [at for at, (label, *_) in enumerate(self._every) if all(word in label.casefold() for word in words)]
        if not left:
            return
        kept = self._left[self.selected]
        self._sought, self._left = text, left
        self._labels, self._previews, self._has_preview = map(list, zip(*(self._every[at] for at in left), strict=True))
        self._select(left.index(kept) if kept in left else 0)

    def _enter(self) -> None:
        self.close(self._left[self.selected])


LABELS: dict[Choice, str] = {
    "no": "No",
    "once": "Yes, once",
    "session": "Yes, for this session",
    "always": "Always this, in this project",
}
"""The answers to a question about a tool call, as the person reads them."""
WHY = "No, and say why"


class QuestionDialog(ListDialog):
    """The question about a tool call, with the answers that it offers, No first; the last one is No with a reason.

    `further`: the words of one more Yes, which stands before the last one.
    """

    def __init__(self, question: Question, further: str = "") -> None:
        labels = [*(LABELS[choice] for choice in question.answers), *filter(None, [further]), WHY]
        super().__init__(question.title, [Option(label) for label in labels], message=question.about)
        self._question = question
        self._last = len(labels) - 1
        self._command = question.command.expandtabs(4).split("\n") if question.command else []
        self._diff = harmless(question.diff).expandtabs(4).split("\n") if question.diff else []

    def _text(self, columns: int) -> list[Line]:
        """Return title, call, the rest of the message, and the diff with its colours, wrapped.

        A bar stands before each line of a command, so that none can pass for a line of the question.
        """
        # The rest of a line must not pass for another line.
        diff = [
            (line_style(line), "    " * bool(at) + part)
            for line in self._diff
            for at, part in enumerate(wrap(line, max(columns - 4, 1)))
        ]
        if not self._command:
            return super()._text(columns) + diff
        question = self._question
        # The call without the command, which follows.
        head = " ".join(question.call.replace(repr(question.command), "", 1).split())
        lines = [("class:title", line) for line in wrap(self._title, columns)]
        lines += [("", line) for line in wrap(harmless(head), columns)]
        lines += [("", f"│ {part}") for line in self._command for part in wrap(harmless(line), max(columns - 2, 1))]
        rest = question.about.partition("\n")[2]
        return [*lines, *(("", line) for line in wrap(harmless(rest).expandtabs(4), columns) if rest), *diff]

    def _hint(self) -> str:
        return KEYS_QUESTION

    @property
    def wants_reason(self) -> bool:
        """Whether the person chose No and wants to say why."""
        return self.answer == self._last

    @property
    def is_further(self) -> bool:
        """Whether the person chose the further Yes."""
        return self.answer == len(self._question.answers) and not self.wants_reason

    @property
    def choice(self) -> Choice | None:
        """The chosen answer of those that the question offers; `None` for any other."""
        answers = self._question.answers
        return answers[self.answer] if self.answer is not None and self.answer < len(answers) else None


def line_style(line: str) -> str:
    """Return the style of one line of a diff."""
    return {"+": "class:added", "-": "class:removed"}.get(line[:1], "class:hint")


class LineDialog(Dialog):
    """A line to type in, with a hint while it is empty."""

    answer: str | None

    def __init__(self, title: str, hint: str) -> None:
        super().__init__(title)
        self._buffer = Buffer(multiline=False)
        self.keys.add("enter")(lambda event: self.close(self._buffer.text))
        self.keys.add(Keys.BracketedPaste)(self._paste)
        shown = AfterInput([("class:hint", " ".join(harmless(hint).split()))])
        control = BufferControl(
            self._buffer,
            input_processors=[ConditionalProcessor(shown, Condition(lambda: not self._buffer.text))],
            key_bindings=self.keys,
        )
        self.focus = Window(control, height=1)
        above = FormattedTextControl(self._fragments)
        below = FormattedTextControl(lambda: fragments([self._below()]))
        mark = Window(FormattedTextControl(self._mark), width=2, height=1)
        self.container = HSplit(
            [
                Window(above, dont_extend_height=True),
                VSplit([mark, self.focus]),
                Window(below, height=1),
            ]
        )

    def _paste(self, event: KeyPressEvent) -> None:
        """Insert a pasted text as one line: of several lines, only the last one would be shown."""
        self._buffer.insert_text(" ".join(event.data.splitlines()))

    def _fragments(self) -> StyleAndTextTuples:
        self._begin()
        return fragments(self._above())

    def _below(self) -> Line:
        return self._footer(get_app().output.get_size().columns, KEYS_SCROLL if self._hidden else "", KEYS_LINE)

    def _above(self) -> list[Line]:
        size = get_app().output.get_size()
        return self._part(self._text(size.columns), max(1, size.rows - 3))


def _take_cursor_row(event: KeyPressEvent) -> None:
    """Pass on the terminal's answer about the place of the cursor, which comes as a key."""
    event.app.renderer.report_absolute_cursor_row(int(event.data[2:-1].split(";")[0]))
