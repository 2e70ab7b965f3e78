"""The UI of a terminal: one dialog at a time.

A `Stage` puts the dialogs on a screen.  The interactive mode is a stage, which shows the dialog in place of its prompt
line.  `OwnScreen` is the stage for any other program.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from typing import Any, Literal, NamedTuple, Protocol, TextIO, cast

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.input import Input
from prompt_toolkit.layout import Layout
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.styles import Style

from agent_hooks.concurrency.lanes import Lane
from agent_hooks.errors import sendable
from agent_hooks.ui.base import NO_AND_STOP, ONCE, Answer, Asker, NotifyType, Question
from agent_hooks.ui.charset import shown_in
from agent_hooks.ui.dialogs import (
    LABELS,
    MOST_NUMBERED,
    Dialog,
    LineDialog,
    ListDialog,
    Option,
    QuestionDialog,
    SearchDialog,
)
from agent_hooks.ui.fitting import cut
from agent_hooks.ui.harmless import harmless

STYLE = Style([("title", "bold"), ("hint", "ansibrightblack"), ("selected", "bold ansicyan"),
                ("added", "ansigreen"), ("removed", "ansired")])  # fmt: skip
LONGEST_RECORD = 300
"""The most columns of the line with a question and its answer, which stays on screen."""


class Stage(Protocol):
    """The place where dialogs are shown, one at a time."""

    async def show(self, dialog: Dialog) -> None:
        """Show a dialog until it is closed; remove it when this task is cancelled."""

    def print_line(self, text: str, type: NotifyType | Literal["answer"]) -> None:
        """Show a line that stays on screen; from any thread."""


class Further(NamedTuple):
    """One more Yes in a question about a call: its words, and a function that is called when the person chooses it."""

    label: str
    chosen: Callable[[], object]


class TerminalUI:
    """Asks the person at the terminal: dialogs wait for one another, first in, first out.

    Esc and Ctrl-C cancel a dialog, and so does the cancellation of its handler.  Without a `stage`, each dialog has the
    terminal to itself.  `further`: returns one more Yes for some questions about a call.
    """

    def __init__(
        self, stage: Stage | None = None, *, further: Callable[[Question], Further | None] = lambda question: None
    ) -> None:
        self._stage = OwnScreen() if stage is None else stage
        self._further = further
        self._lane = Lane()
        self._asker = Asker()

    def asked_by(self, asker: Asker) -> TerminalUI:
        """Return the same UI for the dialogs of a hook, which name it and show the call that it judges."""
        named = copy(self)
        named._asker = asker
        return named

    def _asked(self) -> dict[str, Any]:
        """Return the parts of a dialog that come from the hook that opens it."""
        hook = [f"asked by {self._asker.hook}"] if self._asker.hook else []
        return {"above": hook, "call": self._asker.call}

    async def select(self, title: str, options: list[str]) -> str | None:
        """Let the person choose one of `options`; `None` when they cancel."""
        index = None
        if options:
            dialog = ListDialog(title, [Option(str(option)) for option in options], judged=True, **self._asked())
            await self._ask(dialog)
            index = dialog.answer
        self._record(title, None if index is None else str(options[index]))
        return None if index is None else options[index]

    async def confirm(self, title: str, message: str) -> bool:
        """Ask yes or no.  No is selected at first, so that a key for the prompt line allows nothing."""
        answers = [Option("No"), Option("Yes")]
        asked = self._asked()
        # The call shows the tool and the command.
        shown = "" if message in asked["call"].split(maxsplit=1)[1:] else message
        dialog = ListDialog(title, answers, denying=(0,), message=shown, **asked)
        await self._ask(dialog)
        self._record(title, None if dialog.answer is None else answers[dialog.answer].label)
        return dialog.answer == 1

    async def ask(self, question: Question) -> Answer:
        """Ask about a tool call.  No is selected at first; Esc is No and ends the run, and just No at the reason."""
        text = ""
        async with self._turn():
            # An answer to a question before this one may have changed it.
            further = self._further(question)
            dialog = QuestionDialog(question, further.label if further else "")
            await self._stage.show(dialog)
            if dialog.wants_reason:
                # No other dialog comes between the question and its reason.
                reason = LineDialog("Why not?", "the model reads it")
                await self._stage.show(reason)
                text = " ".join((reason.answer or "").split())
        if dialog.answer is None:
            self._record(question.title, "No, and stop")
            return NO_AND_STOP
        if further and dialog.is_further:
            self._record(question.title, further.label)
            further.chosen()
            return ONCE
        answer = Answer(dialog.choice or "no", text)
        self._record(question.title, LABELS[answer.choice] + (f": {answer.text}" if answer.text else ""))
        return answer

    async def input(self, title: str, placeholder: str | None) -> str | None:
        """Ask for a line of text; `None` when they cancel."""
        dialog = LineDialog(title, placeholder or "", **self._asked())
        await self._ask(dialog)
        self._record(title, dialog.answer)
        return dialog.answer

    def notify(self, message: str, type: NotifyType) -> None:
        """Show a line; from any thread."""
        self._stage.print_line(str(message), type)

    async def choose(
        self, title: str, options: Sequence[Option], *, selected: int = 0, searches: bool = False
    ) -> int | None:
        """Let the person choose, and return the index, `None` when they cancel; no line stays on screen.

        `searches`: the person has asked for the list, so letters are no text for the prompt line, and search a long one.
        """
        if not options:
            return None
        kind = SearchDialog if searches and len(options) > MOST_NUMBERED else ListDialog
        dialog = kind(title, options, selected=selected)
        await self._ask(dialog)
        return dialog.answer

    async def _ask(self, dialog: Dialog) -> None:
        async with self._turn():
            await self._stage.show(dialog)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until the dialogs before have ended, and keep those after waiting."""
        await self._lane.enter()
        try:
            yield
        finally:
            self._lane.leave()

    def _record(self, title: str, answer: str | None) -> None:
        line = " ".join(f"{title} → {'cancelled' if answer is None else answer}".split())
        self._stage.print_line(cut(line, LONGEST_RECORD), "answer")


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
            output=self._output or create_output(cast(TextIO, _Shown(sys.stderr))),
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
        sys.stderr.write(shown_in(f"{'? ' if type == 'answer' else ''}{harmless(text)}\n"))


class _Shown:
    """A terminal that gets each character as its locale can show it; prompt_toolkit would encode the text itself."""

    encoding = "utf-8"

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.flush, self.fileno, self.isatty = stream.flush, stream.fileno, stream.isatty

    def write(self, text: str) -> None:
        """Write a text."""
        # Half of a surrogate pair, which a person cannot type, has no form in UTF-8.
        self._stream.write(shown_in(sendable(text)))
