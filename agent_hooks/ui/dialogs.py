"""The dialogs of a terminal: a list with arrow keys, and a line to type in.

A `Dialog` has the widgets of prompt_toolkit and the person's answer.  It is shown by a stage of `terminal`.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Any, NamedTuple

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, Container, FormattedTextControl, HSplit, VSplit, Window
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor

from agent_hooks.ui.base import Choice, Question
from agent_hooks.ui.fitting import Line, cut, fragments, width_of, wrap
from agent_hooks.ui.harmless import harmless
from agent_hooks.ui.reading import Reading, condensed

MOMENT = 0.3
"""Seconds after a dialog comes up in which no key counts: the person may still be typing for the prompt line."""
RENEWAL = 0.5
"""Seconds between two drawings of a whole dialog, over whatever another program has drawn."""
PAUSE = 0.5
"""Seconds without another key, before and after a digit, in which it chooses its option: else it is part of a text."""
# All rows scroll, no letters are inserted or have another shape.  The cursor goes to the left margin.
_PLAIN = "\x1b7\x1b[r\x1b8\x1b[4l\x1b(B\x0f\r"
MOST_NUMBERED = 9
"""The most options of a list that are numbered."""
KEYS_LIST = "↑↓ Enter, Esc cancels"
KEYS_SEARCH = "type to search, ↑↓ Enter, Esc cancels"
KEYS_QUESTION = "↑↓ Enter, Esc stops the agent"
KEYS_LINE = "Enter, Esc cancels"
KEYS_SCROLL = "PgUp PgDn"
KEYS_FIRST = "read to the end first: PgDn"


class Option(NamedTuple):
    """One line of a list, and a preview that is shown below the list while the line is selected."""

    label: str
    preview: str = ""


class Dialog:
    """A dialog on screen, with keys of its own, until `close`.

    Keys that were typed before it came up are ignored, and so is each key of the first `MOMENT`.  Then the mark `>` is
    shown.  Only Ctrl-C cancels at once.  An answer that may allow something is ignored until the end of the text was on
    screen, and in one read with letters.

    - `above`: the lines below the title.
    - `message`: the text below them.
    - `call`: the whole call that is judged.
    """

    container: Container
    focus: Window
    answer: Any = None

    def __init__(self, title: str, *, above: Sequence[str] = (), message: str = "", call: str = "") -> None:
        self.closed = False
        self.on_close: Callable[[], None] = lambda: None
        self.keys = KeyBindings()
        self._title = _clear(title)
        self._above = _clear("\n".join(above)) if above else []
        self._message = _clear(message) if message else []
        self._call = _clear(call) if call else []
        self._reading = Reading(self._wrapped)
        # Letters came in the read of the terminal whose keys are handled now.
        self._read_letters = False
        # The user tried to answer before the end of the text was on screen.
        self._too_early = False
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
            if app.loop is not None:
                app.loop.call_later(RENEWAL, self._renew, app, app.loop)
                if not self.awake:
                    app.loop.call_later(MOMENT, self._wake, app)

    def _renew(self, app: Application[Any], loop: AbstractEventLoop) -> None:
        if not self.closed:
            self._draw_all(app)
            loop.call_later(RENEWAL, self._renew, app, loop)

    def _draw_all(self, app: Application[Any]) -> None:
        """Draw the whole dialog in the row of the cursor, not only the difference to the last drawing."""
        app.output.write_raw(_PLAIN)
        renderer = app.renderer
        renderer._last_screen, renderer._cursor_pos = None, Point(0, renderer._cursor_pos.y)
        app._redraw()

    def _wake(self, app: Application[Any]) -> None:
        self.awake = True
        app.invalidate()

    def _note_letters(self) -> None:
        """Remember letters until all keys of this read are handled, which happens before the loop continues."""
        loop = get_app().loop
        if loop is not None:
            self._read_letters = True
            loop.call_soon(self._end_read)

    def _end_read(self) -> None:
        self._read_letters = False

    def _came_with_letters(self, event: KeyPressEvent) -> bool:
        """Return whether letters came in one read with this key, before or after it: then it is a part of a text."""
        return self._read_letters or any(each.data.isprintable() for each in event.key_processor.input_queue)

    def _page(self, way: int) -> None:
        self._reading.page(way)

    def _wrapped(self, columns: int) -> tuple[list[Line], int]:
        """Return all rows of the text, and the index of the row in which the message or the call begins."""
        rows = [("class:title", row) for line in self._title for row in _hanging(line, columns)]
        rows += [("", row) for line in self._above for row in _hanging(line, columns)]
        begin = len(rows)
        rows += [("", row) for line in self._message for row in wrap(line, columns)]
        return rows + _call_rows(self._call, columns), len(rows) if self._call else begin

    def _mark(self) -> str:
        return "> " if self.awake else "  "

    def _footer(
        self, columns: int, hint: str, position: str = "", *, is_cut: bool = False, unread: bool = False
    ) -> Line:
        """Return the last line: how to read on, the position in a list, and the keys.

        `is_cut`, `unread`: as for the text, also for a part of its own that scrolls.
        """
        scroll = KEYS_SCROLL if is_cut or self._reading.is_cut else ""
        style = "class:hint"
        if unread or not self._reading.complete:
            scroll = KEYS_FIRST
            style = "class:title" if self._too_early else style
        return style, cut(" · ".join(filter(None, [scroll, position, hint])), columns)


def _clear(text: str) -> list[str]:
    """Return the lines of a text, without harm and with a count instead of many blanks."""
    return [*condensed(harmless(text).expandtabs(4).split("\n"))]


def _hanging(line: str, columns: int) -> list[str]:
    """Return a line as rows of which only the first one begins at the margin, so that none passes for another line."""
    if width_of(line) <= columns:
        return [line]
    return [f"{'    ' * bool(at)}{row}" for at, row in enumerate(wrap(line, max(columns - 4, 1)))]


def _call_rows(lines: Sequence[str], columns: int) -> list[Line]:
    """Return the rows of a call, behind a bar if there are several, so that none passes for a line of the question."""
    if len(lines) == 1 and width_of(lines[0]) <= columns:
        return [("", lines[0])]
    return [("", f"│ {row}") for line in lines for row in wrap(line, max(columns - 2, 1))]


class ListDialog(Dialog):
    """A list, with the arrow keys, and numbers if one digit can name each option.  A small terminal scrolls it.

    - `denying`: the options that can be chosen at any time.
    - `judged`: the text of an option that does not fit must be read too.
    """

    answer: int | None

    def __init__(
        self,
        title: str,
        options: Sequence[Option],
        *,
        selected: int = 0,
        denying: Collection[int] = (),
        judged: bool = False,
        **text: Any,
    ) -> None:
        super().__init__(title, **text)
        self._denying = denying
        self._judged = judged
        numbered = len(options) <= MOST_NUMBERED
        self._labels = [
            f"{number}. " * numbered + " ".join(harmless(option.label).split())
            for number, option in enumerate(options, 1)
        ]
        self._previews = [_clear(option.preview or option.label) for option in options]
        self._has_preview = [bool(option.preview) or "\n" in option.label for option in options]
        self.selected = selected
        # The indices of the options that do not fit, and the readings of the selected ones.
        self._long: set[int] = set()
        self._previewed: dict[int, Reading] = {}
        # The person still types for the prompt line, and may not have noticed the list yet.
        self._typing = False
        self._typed_at = -PAUSE
        # The timer of an option that has been chosen by a digit or Enter, and the option that was selected before it.
        self._pending: TimerHandle | None = None
        self._before_choice = selected
        for key, move in {"up": -1, "c-p": -1, "down": 1, "c-n": 1}.items():
            self.keys.add(key)(self._mover(move))
        self.keys.add("home")(lambda event: self._select(0))
        self.keys.add("end")(lambda event: self._select(len(self._labels) - 1))
        self.keys.add("enter")(self._enter)
        self.keys.add("<any>")(self._other_key)
        self.keys.add(Keys.BracketedPaste)(self._text_key)
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
        self._forget_choice()
        self.selected, self._typing = index, False

    def _digit_of(self, index: int) -> Callable[[KeyPressEvent], None]:
        """Return the handler of a digit, which selects an option, and chooses it unless another key follows soon."""

        def press(event: KeyPressEvent) -> None:
            if monotonic() - self._typed_at < PAUSE or self._pending is not None or event.app.loop is None:
                self._other_key(event)
                return
            before = self.selected
            self._select(index)
            self._before_choice = before
            self._note_letters()
            self._choose_after(PAUSE, index)

        return press

    def _choose_after(self, seconds: float, index: int) -> None:
        """Draw the whole dialog, and choose an option when it has been on screen for a while without another key."""
        app = get_app()
        self._draw_all(app)
        if app.loop is not None:
            self._pending = app.loop.call_later(seconds, self._choose, index)

    def _forget_choice(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
        self._pending = None

    def _ignore(self, event: KeyPressEvent) -> None:
        self._other_key(event)

    def _other_key(self, event: KeyPressEvent) -> None:
        if event.data.isprintable():
            self._text_key(event)

    def _text_key(self, event: KeyPressEvent) -> None:
        """Take a letter, or a pasted text, which is for the prompt line."""
        self._note_letters()
        if self._pending is not None:
            # It began a text for the prompt line.
            self._select(self._before_choice)
        self._typing, self._typed_at = True, monotonic()

    def _enter(self, event: KeyPressEvent) -> None:
        """Choose the selected option, unless the Enter comes after a letter: then it was for the prompt line."""
        if self._came_with_letters(event):
            self._text_key(event)
        elif not self._typing:
            if not self._call or self.selected in self._denying or not self._counts(self.selected):
                self._choose(self.selected)
            elif self._pending is None:
                self._before_choice = self.selected
                self._choose_after(MOMENT, self.selected)
        self._typing = False

    def _choose(self, index: int) -> None:
        """Answer with an option, if it counts by now."""
        self._forget_choice()
        if self._counts(index):
            self.close(index)
        else:
            self._too_early = True
            get_app().invalidate()

    def _counts(self, index: int) -> bool:
        """Return whether an option can be chosen: to deny at any time, else when all that is asked about was shown."""
        preview = self._previewed.get(index)
        read = not (self._judged and index in self._long) or (preview is not None and preview.complete)
        return index in self._denying or (self._reading.complete and read)

    def _page(self, way: int) -> None:
        self._forget_choice()
        preview = self._previewed.get(self.selected)
        parts = [self._reading, *([] if preview is None else [preview])][::way]
        if not any(part.page(way) for part in parts) and not any(part.is_cut for part in parts):
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
        fits = [width_of(label) <= columns - 2 for label in self._labels]
        unseen = [more or not fit for more, fit in zip(self._has_preview, fits, strict=True)]
        self._long = {index for index, more in enumerate(unseen) if more}
        count = len(self._labels)
        listed = min(count, max(2, room // 3))
        preview = min(4, room // 4, room - listed - 1) if any(unseen) else 0
        height = max(1, min(len(self._reading.rows(columns)), room - listed - preview))
        parts = self._reading.part(columns, height)
        listed = min(count, room - len(parts) - preview)
        first = max(0, min(self.selected - listed // 2, count - listed))
        below = [("class:hint", line) for line in self._preview(columns, preview, unseen[self.selected])]
        shown = [
            ("class:selected", cut(f"{self._mark()}{label}", columns))
            if index == self.selected
            else ("" if self._counts(index) else "class:hint", cut(f"  {label}", columns))
            for index, label in enumerate(self._labels[first : first + listed], first)
        ]
        position = f"{self.selected + 1}/{count}" if listed < count else ""
        if not footer:
            return parts + shown + below
        preview_cut = self.selected in self._previewed and self._previewed[self.selected].is_cut
        unread = not self._counts(self.selected)
        return [
            *parts,
            *shown,
            *below,
            self._footer(columns, self._hint(), position, is_cut=preview_cut, unread=unread),
        ]

    def _preview(self, columns: int, height: int, wanted: bool) -> list[str]:
        """Return exactly `height` lines with the text of the selected option, as much of it as fits."""
        if not wanted or not height:
            return [""] * height
        text = self._previews[self.selected]

        def wrapped(columns: int) -> tuple[list[Line], int]:
            return [("", f"  {row}") for line in text for row in wrap(line, columns - 2)], 0

        reading = self._previewed.setdefault(self.selected, Reading(wrapped))
        return ([line for _, line in reading.part(columns, height)] + [""] * height)[:height]


class SearchDialog(ListDialog):
    """A list of many options, which the person has asked for: typed words leave the options that have all of them."""

    def __init__(self, title: str, options: Sequence[Option], *, selected: int = 0) -> None:
        super().__init__(title, options, selected=selected)
        self._every = [*zip(self._labels, self._previews, self._has_preview, strict=True)]
        # The indices of the options that are left.
        self._left = [*range(len(options))]
        self._sought = ""
        self.keys.add("backspace")(lambda event: self._seek(self._sought[:-1]))

    def _hint(self) -> str:
        return f"search: {self._sought}" if self._sought else KEYS_SEARCH

    def _text_key(self, event: KeyPressEvent) -> None:
        self._note_letters()
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
        self._previewed.clear()
        self._labels, self._previews, self._has_preview = map(list, zip(*(self._every[at] for at in left), strict=True))
        self._select(left.index(kept) if kept in left else 0)

    def _enter(self, event: KeyPressEvent) -> None:
        if not self._came_with_letters(event):
            self._choose(self.selected)

    def close(self, answer: Any) -> None:
        """End the dialog with the index of the option in the whole list."""
        super().close(answer if answer is None else self._left[answer])


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
        self._question = question
        self._last = len(labels) - 1
        self._diff = [*condensed(harmless(question.diff).expandtabs(4).split("\n"), signs=1)] if question.diff else []
        super().__init__(
            question.title,
            [Option(label) for label in labels],
            above=question.grounds,
            call=question.text or question.call,
            denying=(0, self._last),
        )

    def _wrapped(self, columns: int) -> tuple[list[Line], int]:
        """Return also the diff, with its colours."""
        rows, begin = super()._wrapped(columns)
        return rows + [(line_style(line), row) for line in self._diff for row in _hanging(line, columns)], begin

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

    def __init__(self, title: str, hint: str, **text: Any) -> None:
        super().__init__(title, **text)
        self._buffer = Buffer(multiline=False)
        self._buffer.on_text_insert += lambda buffer: self._note_letters()
        self.keys.add("enter")(self._enter)
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

    def _enter(self, event: KeyPressEvent) -> None:
        """Answer with the line, unless the text was not read, or the Enter came in one read with letters."""
        self._too_early = not self._reading.complete
        if not self._too_early and not self._came_with_letters(event):
            self.close(self._buffer.text)

    def _paste(self, event: KeyPressEvent) -> None:
        """Insert a pasted text as one line: of several lines, only the last one would be shown."""
        self._buffer.insert_text(" ".join(event.data.splitlines()))

    def _fragments(self) -> StyleAndTextTuples:
        self._begin()
        return fragments(self._question_rows())

    def _below(self) -> Line:
        return self._footer(get_app().output.get_size().columns, KEYS_LINE)

    def _question_rows(self) -> list[Line]:
        size = get_app().output.get_size()
        return self._reading.part(size.columns, max(1, size.rows - 3))


def _take_cursor_row(event: KeyPressEvent) -> None:
    """Pass on the terminal's answer about the place of the cursor, which comes as a key."""
    event.app.renderer.report_absolute_cursor_row(int(event.data[2:-1].split(";")[0]))
