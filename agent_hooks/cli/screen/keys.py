"""The keys of the prompt line."""

from __future__ import annotations

import re
import signal
from time import monotonic
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from agent_hooks.cli.screen.completion import COMMAND_NAME
from agent_hooks.cli.screen.line import Pastes

SECOND_ESC = 0.8
"""Seconds in which a second Esc goes back in the conversation."""


class PromptLine(Protocol):
    """The prompt line as its keys need it.

    `active`: no dialog is in its place; `between_sessions`: the session has not started yet, or has ended;
    `interrupted`: the last key, if it was pressed a moment ago and quits when it is pressed again, else empty;
    `works`: the agent does; `just_began`: keys may come that were typed before the start; `waiting`: messages wait
    for the agent; `abort` returns whether there was work to abort.
    """

    buffer: Buffer
    pastes: Pastes

    @property
    def interrupted(self) -> str: ...

    def interrupt(self, key: str) -> None: ...

    @property
    def works(self) -> bool: ...

    @property
    def active(self) -> bool: ...

    @property
    def between_sessions(self) -> bool: ...

    @property
    def just_began(self) -> bool: ...

    @property
    def waiting(self) -> bool: ...

    def submit(self, text: str) -> None: ...

    def abort(self) -> bool: ...

    def withdraw(self) -> None: ...

    def next_level(self) -> None: ...

    async def accept(self) -> None: ...

    def leave(self) -> None: ...

    async def page(self) -> None: ...

    async def edit(self) -> None: ...

    async def paste_image(self) -> None: ...


def prompt_keys(prompt: PromptLine) -> KeyBindings:
    """Return the key bindings; they do nothing while a dialog is shown, or a line is searched in the history.

    The search has prompt_toolkit's keys: Ctrl-R and Ctrl-S go on, Enter and Esc take the line, Ctrl-C and Ctrl-G drop it.
    """
    keys = KeyBindings()
    # The time of an Esc at an empty line that had nothing to abort.
    escaped = -SECOND_ESC
    at_prompt = Condition(lambda: prompt.active) & ~is_searching

    @keys.add("enter", filter=at_prompt)
    @keys.add("c-j", filter=at_prompt & Condition(lambda: prompt.just_began))
    def _enter(event: KeyPressEvent) -> None:
        # Tab has put the completion into the line already; with an arrow key, Enter takes it.
        tabbed = any(press.key == Keys.Tab for press in event.previous_key_sequence)
        if prompt.buffer.text:
            _take_line(prompt, tabbed=tabbed)
        else:
            event.app.create_background_task(prompt.accept())

    # Ctrl-J is a key of its own here: a text that is typed by a program has it at the ends of lines.
    @keys.add("c-j", filter=at_prompt & Condition(lambda: not prompt.just_began))
    @keys.add("escape", "enter", filter=at_prompt)
    def _newline(event: KeyPressEvent) -> None:
        prompt.buffer.newline(copy_margin=False)

    @keys.add("escape", filter=at_prompt & ~has_completions)
    def _escape(event: KeyPressEvent) -> None:
        nonlocal escaped
        if prompt.abort() or prompt.buffer.text:
            escaped = -SECOND_ESC
        elif monotonic() - escaped < SECOND_ESC:
            escaped = -SECOND_ESC
            prompt.submit("/branch")
        else:
            escaped = monotonic()

    @keys.add("escape", filter=at_prompt & has_completions)
    def _no_completion(event: KeyPressEvent) -> None:
        prompt.buffer.cancel_completion()

    @keys.add("c-c", filter=at_prompt)
    def _interrupt(event: KeyPressEvent) -> None:
        if prompt.between_sessions:
            signal.raise_signal(signal.SIGINT)  # as at any other program
        elif prompt.buffer.text:
            prompt.buffer.reset()
        elif prompt.interrupted == "Ctrl-C":
            prompt.leave()
        else:
            prompt.abort()
            prompt.interrupt("Ctrl-C")

    @keys.add("up", filter=at_prompt & Condition(lambda: prompt.waiting and not prompt.buffer.text))
    def _withdraw(event: KeyPressEvent) -> None:
        prompt.withdraw()

    @keys.add("c-d", filter=at_prompt & Condition(lambda: not prompt.buffer.text))
    def _end(event: KeyPressEvent) -> None:
        if prompt.works and not (prompt.interrupted == "Ctrl-D" or prompt.between_sessions):
            prompt.interrupt("Ctrl-D")
        else:
            prompt.leave()

    @keys.add("c-t", filter=at_prompt & Condition(lambda: not prompt.buffer.text))
    def _trust(event: KeyPressEvent) -> None:
        prompt.submit("/trust")

    def mark_before() -> int:
        return prompt.pastes.mark_before(prompt.buffer.document.text_before_cursor)

    @keys.add("backspace", filter=at_prompt & Condition(lambda: mark_before() > 0))
    def _remove_mark(event: KeyPressEvent) -> None:
        prompt.buffer.delete_before_cursor(mark_before())

    @keys.add(Keys.BracketedPaste, filter=at_prompt)
    def _paste(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        prompt.buffer.insert_text(prompt.pastes.shown(text))

    @keys.add("s-tab", filter=at_prompt & ~has_completions)
    def _next_level(event: KeyPressEvent) -> None:
        if not prompt.between_sessions:
            prompt.next_level()

    @keys.add("c-o", filter=at_prompt)
    def _page(event: KeyPressEvent) -> None:
        event.app.create_background_task(prompt.page())

    @keys.add("c-v", filter=at_prompt)
    def _paste_image(event: KeyPressEvent) -> None:
        event.app.create_background_task(prompt.paste_image())

    @keys.add("c-x", "c-e", filter=at_prompt)
    @keys.add("c-g", filter=at_prompt)
    def _edit(event: KeyPressEvent) -> None:
        event.app.create_background_task(prompt.edit())

    @keys.add("c-z", filter=at_prompt)
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    return keys


def _take_line(prompt: PromptLine, *, tabbed: bool) -> None:
    """Take the chosen one of several completions, begin another line after a backslash, or submit the text.

    A command that was chosen is whole, so it is submitted too.
    """
    buffer, state = prompt.buffer, prompt.buffer.complete_state
    chosen = state is not None and state.current_completion is not None and len(state.completions) > 1
    if chosen and not tabbed and not re.fullmatch(COMMAND_NAME, buffer.text.rstrip()):
        buffer.complete_state = None
    elif buffer.document.text_before_cursor.endswith("\\"):
        buffer.delete_before_cursor()
        buffer.newline(copy_margin=False)
    elif text := prompt.pastes.whole(buffer.text).rstrip():
        buffer.append_to_history()
        buffer.reset()
        # Otherwise the next drawing loads it, and an Up before that would do nothing.
        buffer.load_history_if_not_yet_loaded()
        prompt.submit(text)
