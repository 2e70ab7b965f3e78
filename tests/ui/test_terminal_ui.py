"""Dialogs at a terminal: keys from a pipe, and lines that fit on screens of any size."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import suppress
from fcntl import ioctl
from termios import FIONREAD
from threading import Thread
from time import monotonic, sleep
from typing import Any, Literal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.utils import get_cwidth

from agent_hooks import HookRunner, ToolCall
from agent_hooks.ui import Answer, Question, dialogs
from agent_hooks.ui.base import Asker, NotifyType, call_text
from agent_hooks.ui.dialogs import Dialog, ListDialog, Option, QuestionDialog
from agent_hooks.ui.fitting import cut, wrap
from agent_hooks.ui.terminal import OwnScreen, TerminalUI
from support import PATIENCE, hook_on

UP, DOWN, ENTER, ESCAPE, CTRL_C = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x03"
HOME, END, PAGE_UP, PAGE_DOWN = "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~"


class NotedScreen(OwnScreen):
    """A screen that keeps its lines and reports when a dialog is about to be shown."""

    def __init__(self, keyboard: PipeInput) -> None:
        super().__init__(keyboard, DummyOutput())
        self.said: list[tuple[str, str]] = []
        self.shown: list[Dialog] = []
        self.showing = anyio.Event()

    async def show(self, dialog: Dialog) -> None:
        self.shown.append(dialog)
        self.showing.set()
        await super().show(dialog)

    def print_line(self, text: str, type: NotifyType | Literal["answer"]) -> None:
        self.said.append((type, text))


@pytest.fixture(autouse=True)
def _every_key_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the keys count that a test presses before the dialog is shown; the tests of the moment set it again."""
    monkeypatch.setattr(dialogs, "MOMENT", 0)


@pytest.fixture
def keyboard() -> Iterator[PipeInput]:
    """Give a keyboard to press keys on, before or while a dialog is shown."""
    with create_pipe_input() as keyboard:
        yield keyboard


def press(keyboard: PipeInput, keys: str) -> None:
    """Press keys.  A `|` ends the keys that arrive in one read."""
    Thread(target=_press, args=(keyboard, keys.split("|")), daemon=True).start()


def _press(keyboard: PipeInput, reads: list[str]) -> None:
    end = monotonic() + PATIENCE
    for keys in reads:
        left = array("i", [1])
        # The test may have ended.
        while left[0] and monotonic() < end and not keyboard.closed:
            with suppress(OSError):
                ioctl(keyboard.fileno(), FIONREAD, left)
            sleep(0.005)
        with suppress(OSError):
            keyboard.send_text(keys)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (ENTER, "a"),
        (DOWN + ENTER, "b"),
        (DOWN + DOWN + UP + ENTER, "b"),
        (UP + ENTER, "a"),
        (DOWN * 7 + ENTER, "g"),
        (END + ENTER, "g"),
        (END + HOME + ENTER, "a"),
        (PAGE_DOWN + ENTER, "f"),
        (PAGE_DOWN + PAGE_DOWN + PAGE_UP + ENTER, "b"),
        ("\x0e\x0e\x10" + ENTER, "b"),
        # The Enter belongs to the prompt line.
        ("xyz|" + ENTER + ESCAPE, None),
        ("xyz|" + ENTER + "|" + ENTER, "a"),
        ("xyz|" + DOWN + ENTER, "b"),
        # All of it is one text.
        ("xyz" + DOWN + ENTER + ESCAPE, None),
        (DOWN + ENTER + "xyz|" + ESCAPE, None),
        (DOWN + ESCAPE, None),
        (CTRL_C, None),
    ],
)
async def test_select_answers_what_was_chosen(keyboard: PipeInput, keys: str, answer: str | None) -> None:
    """Arrow keys end at both ends; letters choose nothing, nor does the Enter after them; Esc and Ctrl-C cancel."""
    screen = NotedScreen(keyboard)
    press(keyboard, keys)
    assert await TerminalUI(screen).select("Which?", list("abcdefg")) == answer
    assert screen.said == [("answer", f"Which? → {answer or 'cancelled'}")]


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (ENTER, False),
        (DOWN + ENTER, True),
        (UP + ENTER, False),
        ("yes|" + ENTER + "|" + ENTER, False),
        (DOWN + ESCAPE, False),
    ],
)
async def test_confirm_says_yes_only_on_purpose(keyboard: PipeInput, keys: str, answer: bool) -> None:
    """Keys for the prompt line that come when the question is already shown allow nothing."""
    press(keyboard, keys)
    assert await TerminalUI(NotedScreen(keyboard)).confirm("Delete?", "rm -rf build") is answer


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ("2", "b"),
        ("3|" + ENTER, "c"),
        ("2|" + DOWN + ENTER, "c"),
        ("2|" + PAGE_UP + ENTER, "a"),
        ("8|" + ENTER + "|" + ENTER, "a"),
        ("2 more things|" + ENTER + "|" + ENTER, "a"),
        ("22|" + ENTER + "|" + ENTER, "a"),
        ("give me 2|" + ENTER + "|" + ENTER, "a"),
        # One read: a pasted line.
        ("2" + ENTER + "|" + ENTER, "a"),
        ("2" + DOWN + ENTER + "|" + ESCAPE, None),
        ("\x1b[200~2\x1b[201~|" + ENTER + "|" + ENTER, "a"),
        ("2" + ESCAPE, None),
    ],
)
async def test_a_digit_chooses_unless_it_is_part_of_a_text(keyboard: PipeInput, keys: str, answer: str | None) -> None:
    """A key soon before or after it makes it a text for the prompt line, which chooses nothing."""
    press(keyboard, keys)
    assert await TerminalUI(NotedScreen(keyboard)).select("Which?", list("abcdefg")) == answer


async def test_a_digit_that_came_too_early_can_be_pressed_again(
    monkeypatch: pytest.MonkeyPatch, keyboard: PipeInput
) -> None:
    """After the pause, the letters before it count no more."""
    monkeypatch.setattr(dialogs, "PAUSE", 0.05)
    screen = NotedScreen(keyboard)
    answers: list[str | None] = []

    async def ask() -> None:
        answers.append(await TerminalUI(screen).select("Which?", ["a", "b"]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await screen.showing.wait()
        keyboard.send_text("x2")
        with anyio.fail_after(PATIENCE):
            # Each digit that is part of a text begins the pause again.
            while not answers:
                await anyio.sleep(0.2)
                keyboard.send_text("2")
    assert answers == ["b"]


async def test_a_person_who_reads_on_after_a_digit_has_not_chosen(
    monkeypatch: pytest.MonkeyPatch, keyboard: PipeInput
) -> None:
    """PgDn scrolls a long question, and is another key as well."""
    monkeypatch.setattr(dialogs, "PAUSE", 0.05)
    screen = NotedScreen(keyboard)
    keyboard.send_text("2" + PAGE_DOWN)
    with anyio.move_on_after(10 * dialogs.PAUSE) as waited:
        await TerminalUI(screen).confirm("Sure?", "a line\n" * 200)
    assert waited.cancelled_caught
    assert screen.said == []


async def test_a_long_list_has_no_numbers(keyboard: PipeInput) -> None:
    """One digit would not name each option."""
    screen = NotedScreen(keyboard)
    press(keyboard, "2|" + ENTER + "|" + ENTER)
    assert await TerminalUI(screen).select("Which?", list("abcdefghij")) == "a"
    dialog = screen.shown[0]
    assert isinstance(dialog, ListDialog)
    assert "> a" in [text for _, text in dialog.lines(40, 30)]


BACKSPACE = "\x7f"


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (ENTER, 0),
        ("gpt-5|" + ENTER, 3),
        ("gpt-5|" + DOWN + ENTER, 4),
        ("GPT mini|" + ENTER, 4),
        # No option has the last letters, so they are not taken.
        ("miniz|" + ENTER, 4),
        ("4.1|" + BACKSPACE * 3 + ENTER, 1),
        ("1|" + END + ENTER, 11),
        ("x" + ESCAPE, None),
    ],
)
async def test_a_long_list_that_the_person_asked_for_is_searched(
    keyboard: PipeInput, keys: str, answer: int | None
) -> None:
    """Typed words leave the options that have all of them; without one it is the whole list again."""
    names = ["claude", "gpt-4.1", "gpt-4o", "gpt-5", "gpt-5-mini", *(f"other {number}" for number in range(6)), "z 1"]
    options = [Option(name) for name in names]
    press(keyboard, keys)
    assert await TerminalUI(NotedScreen(keyboard)).choose("Which?", options, searches=True) == answer


async def test_the_searched_words_are_shown(keyboard: PipeInput) -> None:
    """A short list has digits, and is not searched."""
    screen = NotedScreen(keyboard)
    press(keyboard, "aa|" + ENTER + "|a|" + ENTER + "|" + ENTER)
    await TerminalUI(screen).choose("Which?", [Option("a" * size) for size in range(1, 11)], searches=True)
    await TerminalUI(screen).choose("Which?", [Option("a")], searches=True)
    searched, short = screen.shown
    assert isinstance(searched, ListDialog)
    assert isinstance(short, ListDialog)
    assert ("class:hint", "search: aa") in searched.lines(40, 40)
    assert ("class:selected", "> 1. a") in short.lines(40, 40)


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ("Ada|" + ENTER, "Ada"),
        ("Ada" + ENTER + "|!|" + ENTER, "Ada!"),
        (ENTER, ""),
        ("Ada" + ESCAPE, None),
        ("Ada" + CTRL_C, None),
    ],
)
async def test_input_answers_what_was_typed_and_never_the_hint(
    keyboard: PipeInput, keys: str, answer: str | None
) -> None:
    """The placeholder is a hint, not a default."""
    press(keyboard, keys)
    assert await TerminalUI(NotedScreen(keyboard)).input("Who?", "e.g. Grace") == answer


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
async def test_a_pasted_text_of_several_lines_becomes_one_line(keyboard: PipeInput, end: str) -> None:
    """The person sees all of the text that is answered: of several lines, the dialog would show the last one only."""
    press(keyboard, f"\x1b[200~Ada{end}Grace{end}\x1b[201~!|{ENTER}")
    assert await TerminalUI(NotedScreen(keyboard)).input("Who?", None) == "Ada Grace!"


QUESTION = Question(
    title="Overwrite history?",
    call="bash git push --force",
    risk="discards published history",
    diff="--- a\n+++ a\n-old\n+new",
    answers=("no", "once", "session", "always"),
)


@pytest.mark.parametrize(
    ("keys", "answer", "said"),
    [
        (ENTER, Answer("no"), "No"),
        ("y|" + ENTER + "|" + ENTER, Answer("no"), "No"),
        (ESCAPE, Answer("no", stops=True), "No, and stop"),
        (CTRL_C, Answer("no", stops=True), "No, and stop"),
        (DOWN + ENTER, Answer("once"), "Yes, once"),
        (DOWN + DOWN + ENTER, Answer("session"), "Yes, for this session"),
        (DOWN * 3 + ENTER, Answer("always"), "Always this, in this project"),
        (END + ENTER + "|use a branch|" + ENTER, Answer("no", "use a branch"), "No: use a branch"),
        (END + ENTER + "|" + ENTER, Answer("no"), "No"),
        (UP + ENTER, Answer("no"), "No"),
    ],
)
async def test_a_question_about_a_call_is_answered(keyboard: PipeInput, keys: str, answer: Answer, said: str) -> None:
    """No comes first; Esc is a No that stops the agent."""
    screen = NotedScreen(keyboard)
    press(keyboard, keys)
    assert await TerminalUI(screen).ask(QUESTION) == answer
    assert screen.said == [("answer", f"Overwrite history? → {said}")]


async def test_esc_is_no_while_the_person_writes_the_reason(keyboard: PipeInput) -> None:
    """The letters that were typed before it do not reach the model."""
    screen = NotedScreen(keyboard)
    keyboard.send_text(END + ENTER)

    async def write_and_cancel() -> None:
        # The screen of the list must not read the Esc: it would wait for the rest of an escape sequence.
        with anyio.fail_after(PATIENCE):
            while len(screen.shown) < 2:
                await anyio.sleep(0.01)
        keyboard.send_text("yes" + ESCAPE)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_and_cancel)
        assert await TerminalUI(screen).ask(QUESTION) == Answer("no")
    assert screen.said == [("answer", "Overwrite history? → No")]


async def test_no_other_dialog_comes_between_a_question_and_its_reason(keyboard: PipeInput) -> None:
    """The reason would be about the other one."""
    screen = NotedScreen(keyboard)
    ui = TerminalUI(screen)
    answers: dict[str, Any] = {}

    async def ask(title: str) -> None:
        answers[title] = await ui.ask(Question(title=title, call="bash ls"))

    async with anyio.create_task_group() as tasks:
        for title in ("first", "second"):
            tasks.start_soon(ask, title)
            await anyio.wait_all_tasks_blocked()
        press(keyboard, END + ENTER + "|use a branch|" + ENTER)
        with anyio.fail_after(PATIENCE):
            while not answers:
                await anyio.sleep(0.01)
        press(keyboard, DOWN + ENTER)
    assert answers == {"first": Answer("no", "use a branch"), "second": Answer("once")}


async def test_answers_that_are_not_offered_are_not_on_the_list(keyboard: PipeInput) -> None:
    """The last option is No with a reason."""
    press(keyboard, DOWN + DOWN + ENTER + "|why|" + ENTER)
    question = Question(title="Sure?", call="bash ls")
    assert await TerminalUI(NotedScreen(keyboard)).ask(question) == Answer("no", "why")


def test_a_command_of_several_lines_is_shown_as_it_is() -> None:
    """A bar stands before each row, so that none can pass for a line of the question."""
    command = "cat <<E\nrisk: none\n\tthat is a long line of text\nE"
    text = call_text("bash", {"command": command, "timeout": 5})
    question = Question(title="Sure?", call="bash …", text=text, risk="deletes a", reasons=("a.py: why",))
    lines = [text for _, text in QuestionDialog(question).lines(24, 30)]
    assert lines[:9] == [
        "Sure?",
        "risk: deletes a",
        "a.py: why",
        "│ bash {'timeout': 5}",
        "│ cat <<E",
        "│ risk: none",
        "│     that is a long",
        "│ line of text",
        "│ E",
    ]


def test_a_question_shows_risk_call_and_diff() -> None:
    """Added and removed lines have colours; control characters are shown as text."""
    question = Question(title="Sure?", call="bash \x1b[31mls", risk="deletes a", diff="-old\n+n\x1bew")
    lines = QuestionDialog(question).lines(60, 30)
    assert [text for _, text in lines][:5] == ["Sure?", "risk: deletes a", "bash \\x1b[31mls", "-old", "+n\\x1bew"]
    assert [style for style, _ in lines][3:5] == ["class:removed", "class:added"]


async def test_an_empty_list_is_cancelled_at_once(keyboard: PipeInput) -> None:
    """There is nothing to choose."""
    screen = NotedScreen(keyboard)
    assert await TerminalUI(screen).select("Which?", []) is None
    assert screen.shown == []


async def test_dialogs_are_shown_one_at_a_time_in_the_order_they_came(keyboard: PipeInput) -> None:
    """Each gets its own answer."""
    screen = NotedScreen(keyboard)
    ui = TerminalUI(screen)
    answers: dict[str, Any] = {}

    async def ask(title: str) -> None:
        answers[title] = await ui.select(title, ["yes", "no"])

    async with anyio.create_task_group() as tasks:
        for title in ("first", "second", "third"):
            tasks.start_soon(ask, title)
            await anyio.wait_all_tasks_blocked()
        assert len(screen.shown) == 1
        for number, keys in enumerate((ENTER, DOWN + ENTER, CTRL_C)):
            with anyio.fail_after(PATIENCE):
                while len(screen.shown) <= number:
                    await anyio.sleep(0.01)
            keyboard.send_text(keys)
    assert answers == {"first": "yes", "second": "no", "third": None}


async def test_a_cancelled_dialog_is_taken_away_and_the_next_one_is_shown(keyboard: PipeInput) -> None:
    """The one on screen or one that waits; no answer reaches another dialog's question."""
    screen = NotedScreen(keyboard)
    ui = TerminalUI(screen)
    async with anyio.create_task_group() as shown, anyio.create_task_group() as waiting:
        shown.start_soon(ui.select, "shown", ["a"])
        await screen.showing.wait()
        waiting.start_soon(ui.select, "waiting", ["a"])
        await anyio.wait_all_tasks_blocked()
        waiting.cancel_scope.cancel()
        shown.cancel_scope.cancel()
    assert [dialog.closed for dialog in screen.shown] == [True]
    press(keyboard, "Ada|" + ENTER)
    assert await ui.input("Who?", None) == "Ada"


async def test_a_dialog_cancelled_before_it_is_shown_never_is(keyboard: PipeInput) -> None:
    """The thread that would show it does not begin."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await TerminalUI(NotedScreen(keyboard)).confirm("Delete?", "")
    assert scope.cancelled_caught
    keyboard.send_text(DOWN + ENTER)
    assert await TerminalUI(NotedScreen(keyboard)).confirm("Delete?", "") is True


async def test_a_keyboard_that_is_gone_cancels_every_dialog(keyboard: PipeInput) -> None:
    """The one on screen, and those that come later."""
    screen = NotedScreen(keyboard)
    ui = TerminalUI(screen)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ui.confirm, "Delete?", "")
        await screen.showing.wait()
        keyboard.close()
    assert await ui.input("Who?", None) is None
    assert screen.said == [("answer", "Delete? → cancelled"), ("answer", "Who? → cancelled")]


async def test_where_there_is_no_terminal_nobody_is_asked(capfd: pytest.CaptureFixture[str]) -> None:
    """When stdin or stderr is a pipe, dialogs end at once, and notifications go to stderr with escapes."""
    ui = TerminalUI()
    assert await ui.confirm("Delete?", "all") is False
    assert await ui.select("Which?", ["a"]) is None
    ui.notify("\x1b[2Jhello", "info")
    assert capfd.readouterr().err == "? Delete? → cancelled\n? Which? → cancelled\n\\x1b[2Jhello\n"


async def test_a_handler_asks_the_person(keyboard: PipeInput) -> None:
    """An embedding program gives its runner the terminal."""

    async def gate(event: ToolCall, ctx: Any) -> object:
        return None if await ctx.ui.confirm("Run it?", "look") else {"block": True, "reason": "no"}

    screen = NotedScreen(keyboard)
    async with HookRunner([hook_on("tool_call", gate)], cwd=".", ui=TerminalUI(screen)) as runner:
        keyboard.send_text(ENTER)
        call = ToolCall(tool_name="bash", tool_call_id="1", input={"command": "ls"})
        answer = await runner.emit_tool_call(call)
        assert getattr(answer, "reason", None) == "no"
        dialog = screen.shown[0]
        assert isinstance(dialog, ListDialog)
        shown = [text for _, text in dialog.lines(60, 30)]
        assert shown[:4] == ["Run it?", "asked by hook.py", "look", "bash ls"]
        keyboard.send_text(DOWN + ENTER)
        assert await runner.emit_tool_call(call) is None


@pytest.mark.parametrize(("message", "shown"), [("ls -a", ["bash ls -a"]), ("ls", ["ls", "bash ls -a"])])
async def test_a_message_that_is_the_call_is_shown_once(keyboard: PipeInput, message: str, shown: list[str]) -> None:
    """With the name of the tool."""
    screen = NotedScreen(keyboard)
    press(keyboard, ENTER)
    await TerminalUI(screen).asked_by(Asker("a.py", "bash ls -a")).confirm("Run it?", message)
    dialog = screen.shown[0]
    assert isinstance(dialog, ListDialog)
    lines = [text for _, text in dialog.lines(60, 30)]
    assert lines[: lines.index("> 1. No")] == ["Run it?", "asked by a.py", *shown]


@pytest.mark.parametrize("further", ["", "x", UP])
async def test_a_yes_about_a_call_counts_after_it_was_drawn_anew(
    monkeypatch: pytest.MonkeyPatch, keyboard: PipeInput, further: str
) -> None:
    """Another program may have drawn over it.  Another key within the moment takes the answer back."""
    screen = NotedScreen(keyboard)

    async def answer() -> None:
        with anyio.fail_after(PATIENCE):
            while not (screen.shown and screen.shown[0].awake):
                await anyio.sleep(0.01)
        monkeypatch.setattr(dialogs, "MOMENT", 1000 if further else 0.1)
        press(keyboard, f"{DOWN}|{ENTER}|{further}|{ESCAPE if further else ''}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        said = await TerminalUI(screen).ask(Question(title="Sure?", call="bash ls"))
    assert said == (Answer("no", stops=True) if further else Answer("once"))


# ---- lines that fit --------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


@given(
    st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=40),
    TEXT,
    TEXT,
    st.integers(4, 100),
    st.integers(1, 50),
    st.lists(st.sampled_from(["up", "down", "end", "page"]), max_size=8),
)
def test_a_list_fits_on_every_terminal(
    options: list[tuple[str, str]], title: str, message: str, columns: int, rows: int, moves: list[str]
) -> None:
    """With any texts, no line is too long, there are not too many lines, and the selected option is visible."""
    dialog = ListDialog(title, [Option(*option) for option in options], message=message)
    for move in moves:
        dialog.lines(columns, rows)
        {
            "up": lambda: dialog._select((dialog.selected - 1) % len(options)),
            "down": lambda: dialog._page(-1),
            "end": lambda: dialog._select(len(options) - 1),
            "page": lambda: dialog._page(1),
        }[move]()
    lines = dialog.lines(columns, rows)
    assert len(lines) <= max(rows - 1, 3)
    assert all(get_cwidth(text) <= columns for _, text in lines)
    assert sum(style == "class:selected" for style, _ in lines) == 1
    assert not any(char < " " or "\x7f" <= char <= "\x9f" for _, text in lines for char in text)


def test_everything_of_a_long_question_can_be_scrolled_into_sight() -> None:
    """A command that does not fit must not be allowed unread."""
    words = [f"word{number}" for number in range(60)]
    dialog = ListDialog("Run it?", [Option("Yes"), Option("No")], message=" ".join(words))
    seen = set[str]()
    for _ in range(60):
        seen |= {word for _, line in dialog.lines(20, 10) for word in line.split()}
        dialog._page(1)
    assert seen >= set(words)
    for _ in range(60):
        dialog._page(-1)
    assert "Run it?" in dict(dialog.lines(20, 10)).values()


def test_everything_of_a_long_option_can_be_scrolled_into_sight() -> None:
    """Below the list, while it is the selected one."""
    words = [f"word{number}" for number in range(40)]
    dialog = ListDialog("Which?", [Option("short"), Option(" ".join(words))])
    assert "PgUp" not in str(dialog.lines(30, 10))
    dialog._select(1)
    seen = set[str]()
    for _ in range(40):
        seen |= {word for _, line in dialog.lines(30, 10) for word in line.split()}
        dialog._page(1)
    assert seen >= set(words)
    assert "PgUp" in str(dialog.lines(30, 10))


@given(TEXT, st.integers(2, 60))
def test_wrapping_loses_no_word(text: str, columns: int) -> None:
    """Only spaces go, where a line is broken."""
    lines = wrap(text, columns)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(get_cwidth(line) <= columns for line in lines)


@given(TEXT, st.integers(0, 60))
def test_a_cut_line_ends_with_an_ellipsis_within_the_width(text: str, columns: int) -> None:
    """With an ellipsis, within the width."""
    line = cut(text, columns)
    assert get_cwidth(line) <= columns
    assert line == text or line.endswith("…") or columns == 0


def test_no_row_ends_behind_the_edge_of_a_terminal_that_draws_marks_wider() -> None:
    """Terminals give a spacing mark or an enclosed number one column or two."""
    for char in "\u0903\u302e\u3248\uffa0":
        lines = wrap(f"bash rm -r build; : {char * 160}; ./y", 80)
        assert "".join(lines).endswith("; ./y")
        assert all(len(line) + line.count(char) <= 80 for line in lines)
        assert len(cut(char * 60, 40)) <= 21


# ---- the moment in which no key counts ---------------------------------------------------------------------------------


async def press_when_awake(screen: NotedScreen, keyboard: PipeInput, keys: str) -> None:
    """Press keys as soon as they count."""
    with anyio.fail_after(PATIENCE):
        await screen.showing.wait()
        while not screen.shown[0].awake:
            await anyio.sleep(0.01)
    press(keyboard, keys)


@pytest.mark.parametrize(
    "before", [DOWN + ENTER, DOWN, "2", ENTER, END + ENTER, "yes" + ENTER, ESCAPE, "\x1b[200~y\r\x1b[201~"]
)
@pytest.mark.parametrize(("keys", "answer"), [(DOWN + ENTER, True), (DOWN + UP + ENTER, False)])
async def test_keys_that_were_pressed_as_the_question_came_up_do_not_answer_it(
    monkeypatch: pytest.MonkeyPatch, keyboard: PipeInput, before: str, keys: str, answer: bool
) -> None:
    """Only the keys after the moment count."""
    monkeypatch.setattr(dialogs, "MOMENT", 0.3)
    screen = NotedScreen(keyboard)
    keyboard.send_text(before)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(press_when_awake, screen, keyboard, keys)
        assert await TerminalUI(screen).confirm("Delete?", "rm -rf build") is answer


async def test_a_line_has_no_letter_that_was_typed_before(monkeypatch: pytest.MonkeyPatch, keyboard: PipeInput) -> None:
    """The letters were for the prompt line."""
    monkeypatch.setattr(dialogs, "MOMENT", 0.3)
    screen = NotedScreen(keyboard)
    keyboard.send_text("rm" + ENTER)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(press_when_awake, screen, keyboard, "Ada|" + ENTER)
        assert await TerminalUI(screen).input("Who?", None) == "Ada"


async def test_ctrl_c_cancels_at_once(monkeypatch: pytest.MonkeyPatch, keyboard: PipeInput) -> None:
    """It allows nothing, and a person in a hurry is not kept waiting."""
    monkeypatch.setattr(dialogs, "MOMENT", 1000)
    keyboard.send_text(CTRL_C)
    assert await TerminalUI(NotedScreen(keyboard)).confirm("Delete?", "rm -rf build") is False
