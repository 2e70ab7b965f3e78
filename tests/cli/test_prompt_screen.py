"""The screen of the interactive mode: keys from a pipe, and the output to the terminal."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from agent_hooks.cli.screen import alerts, prompt
from agent_hooks.cli.screen.completion import Candidate, PromptCompleter
from agent_hooks.cli.screen.line import PromptHistory
from agent_hooks.cli.screen.prompt import PromptScreen
from agent_hooks.cli.screen.terminal import OwnTerminal
from agent_hooks.ui.terminal import TerminalUI
from support import PATIENCE

pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])  # as prompt_toolkit is


CTRL_C = "\x03"


class Person:
    """Types, and reads the output to the terminal."""

    def __init__(self, screen: PromptScreen, keyboard: PipeInput, sent: io.StringIO, did: list[str]) -> None:
        self.screen, self.keyboard, self.did = screen, keyboard, did
        self._sent = sent

    async def sees(self, text: str) -> str:
        """Wait until the terminal has been sent a text since it was last looked at, and return all that it was sent."""
        with anyio.fail_after(PATIENCE):
            while text not in self._sent.getvalue():
                await anyio.sleep(0.005)
        sent = self._sent.getvalue()
        self._sent.seek(0)
        self._sent.truncate()
        return sent

    async def does(self, what: str, times: int = 1) -> None:
        """Wait until the keys had an effect, so often at least."""
        with anyio.fail_after(PATIENCE):
            while sum(each.startswith(what) for each in self.did) < times:
                await anyio.sleep(0.005)


async def no_files(typed: str) -> list[Candidate]:
    """Offer no file."""
    return []


@asynccontextmanager
async def at_a_screen(path: Path, typed: str = "") -> AsyncIterator[Person]:
    """Run the screen of a person, who may have typed something before."""
    sent, did = io.StringIO(), list[str]()
    output = Vt100_Output(sent, lambda: Size(rows=24, columns=80), term="xterm", enable_cpr=False)
    with create_pipe_input() as keyboard:
        screen = PromptScreen(
            keyboard,
            output,
            history=PromptHistory(str(path / "history"), did.append),
            completer=PromptCompleter(lambda: {"/help": "helps"}, {}, tuple, no_files),
            submit=lambda text: did.append(f"submit {text}"),
            abort=lambda: bool(did.append("abort")),  # type: ignore[func-returns-value]  # nothing to abort
            leave=lambda: did.append("leave"),
            withdraw=lambda: ["first", "second"],
            name="gar\x1bden",
        )
        screen.ready()
        keyboard.send_text(typed)
        async with anyio.create_task_group() as tasks:
            started = anyio.Event()
            tasks.start_soon(screen.run, started.set)
            await started.wait()
            yield Person(screen, keyboard, sent, did)
            tasks.cancel_scope.cancel()


async def test_an_answer_is_shown_before_its_block_ends(tmp_path: Path) -> None:
    """The beginning of a paragraph at the bottom, the whole paragraph in the conversation."""
    async with at_a_screen(tmp_path) as person:
        person.screen.run_started("why?", None)
        await person.sees("why?")
        person.screen.text("Beca")
        await person.sees("Beca")
        person.screen.text("use\x1b[2J it is")
        await person.sees(r"use\x1b[2J it is")
        person.screen.text(" so.\n\nAnd")
        await person.sees("Because\\x1b[2J it is so.\r\n")
        person.screen.run_ended(None, False)
        await person.sees("And\r\n")


async def test_a_paragraph_longer_than_the_terminal_shows_its_end(tmp_path: Path) -> None:
    """The whole paragraph is printed once it has ended, and no word of it is broken."""
    words = [f"word{number}" for number in range(500)]
    async with at_a_screen(tmp_path) as person:
        person.screen.text(" ".join(words))
        await person.sees("word499")
        person.screen.run_ended(None, False)
        printed = await person.sees("word499\r\n")
        assert re.findall(r"word\d+", printed)[-500:] == words


async def test_what_other_threads_say_is_shown(tmp_path: Path) -> None:
    """A hook may notify from any thread."""
    async with at_a_screen(tmp_path) as person:
        thread = threading.Thread(target=TerminalUI(person.screen).notify, args=("from afar", "warning"))
        thread.start()
        await person.sees("! from afar")
        thread.join()


async def test_the_keyboard_goes_away_with_a_dialog_open(tmp_path: Path) -> None:
    """The dialog is cancelled, later ones at once, and later lines are still printed."""
    async with at_a_screen(tmp_path) as person:
        ui = TerminalUI(person.screen)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ui.confirm, "Sure?", "")
            await person.sees("Sure?")
            person.keyboard.close()
        await person.sees("Sure? → cancelled")
        assert await ui.input("Who?", None) is None
        await person.sees("Who? → cancelled")


async def test_ctrl_c_clears_then_aborts_then_leaves(tmp_path: Path) -> None:
    """A key between two of them makes the second count as a first."""
    async with at_a_screen(tmp_path) as person:
        person.keyboard.send_text("text\x03x\x03\r")
        person.keyboard.send_text("\x03")
        await person.sees("Ctrl-C again quits")
        assert person.did == ["abort"]
        person.keyboard.send_text("y\x7f\x03")
        await person.does("abort", times=2)
        person.keyboard.send_text("\x03")
        await person.does("leave")


async def test_ctrl_d_leaves_beside_work_only_when_it_is_pressed_twice(tmp_path: Path) -> None:
    """Another key between them, Ctrl-C too, does not count."""
    async with at_a_screen(tmp_path) as person:
        person.screen.busy("working")
        person.keyboard.send_text("\x04")
        await person.sees("Ctrl-D again quits")
        person.keyboard.send_text("\x03")
        await person.does("abort")
        person.keyboard.send_text("y\x7f\x04")
        with anyio.fail_after(PATIENCE):
            while person.screen.interrupted != "Ctrl-D":
                await anyio.sleep(0.005)
        assert person.did == ["abort"]
        person.keyboard.send_text("\x04")
        await person.does("leave")
        person.screen.busy(None)
        person.keyboard.send_text("y\x7f\x04")
        await person.does("leave", times=2)


async def test_alt_enter_and_a_backslash_begin_another_line(tmp_path: Path) -> None:
    """Enter sends them all; a pasted text is not sent line by line."""
    async with at_a_screen(tmp_path) as person:
        person.keyboard.send_text("one\x1b\rtwo\\\rthree\r")
        await person.does("submit one\ntwo\nthree")
        person.keyboard.send_text("\x1b[200~pasted\nlines\n\x1b[201~\r")
        await person.does("submit pasted\nlines")


async def test_backspace_removes_the_whole_mark_of_a_paste(tmp_path: Path) -> None:
    """Half a mark would be sent in the place of the text."""
    pasted = "row\n" * 40
    async with at_a_screen(tmp_path) as person:
        person.keyboard.send_text(f"a \x1b[200~{pasted}\x1b[201~\x7fb\r")
        await person.does("submit")
        assert person.did == ["submit a b"]


async def test_title_and_bell_tell_a_person_who_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question and the end of the work ring, the work itself and a person who types do not."""
    monkeypatch.setattr(alerts, "AWAY", 0.0)
    async with at_a_screen(tmp_path) as person:
        await person.sees("\x1b]2;agent-hooks: gar\\x1bden\x07")
        person.screen.run_started("go", None)
        assert "\x07\x07" not in await person.sees("\x1b]2;working: gar\\x1bden\x07")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(TerminalUI(person.screen).confirm, "Sure?", "")
            await person.sees("\x1b]2;question: gar\\x1bden\x07\x07")
            monkeypatch.setattr(alerts, "AWAY", 60.0)
            person.keyboard.send_text(CTRL_C)
        person.screen.run_ended(None, False)
        shown = await person.sees("\x1b]2;agent-hooks: gar\\x1bden\x07")
        assert "\x07\x07" not in shown
    assert (await person.sees("\x1b[23;2t")).count("\x07") == 0


async def test_esc_twice_at_an_empty_line_goes_back(tmp_path: Path) -> None:
    """An Esc that aborts, or with text in the line, does not count."""
    async with at_a_screen(tmp_path) as person:
        person.keyboard.send_text("a")
        await person.sees("a")
        for _ in range(2):
            person.keyboard.send_text("\x1b")
            await person.does("abort")
            person.did.clear()
        person.keyboard.send_text("\x7f")
        with anyio.fail_after(PATIENCE):
            while "submit /branch" not in person.did:
                person.keyboard.send_text("\x1b")
                await person.does("abort")
                person.did.remove("abort")
                await anyio.sleep(0.01)


async def test_up_takes_waiting_messages_back(tmp_path: Path) -> None:
    """They are one text in the line again; with a text in the line, Up is for the history."""
    async with at_a_screen(tmp_path) as person:
        person.screen.queued("first")
        person.screen.queued("second")
        await person.sees("second")
        person.keyboard.send_text("x\x1b[A\x7f\x1b[A\r")
        await person.does("submit first\nsecond")
        assert not person.screen.waiting


async def test_a_line_that_was_typed_before_the_start_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal has made Ctrl-J of its Enter then; later, Ctrl-J begins another line."""
    async with at_a_screen(tmp_path, "early\n") as person:
        await person.does("submit early")
        monkeypatch.setattr(prompt, "TYPED_AHEAD", 0.0)
        person.keyboard.send_text("one\ntwo\r")
        await person.does("submit one\ntwo")
    async with at_a_screen(tmp_path) as person:
        person.keyboard.send_text("three\nfour\r")
        await person.does("submit three\nfour")


async def test_an_image_in_the_clipboard_is_named_in_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an image or a program, a warning names the remedy."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    async with at_a_screen(tmp_path) as person:
        person.keyboard.send_text("\x16")
        await person.sees("install one of")
        (programs / "wl-paste").write_text("#!/bin/sh\nexit 1\n")
        (programs / "xclip").write_text("#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\nrest'\n")
        (programs / "wl-paste").chmod(0o755)
        person.keyboard.send_text("\x16")
        await person.sees("there is no image in the clipboard")
        (programs / "xclip").chmod(0o755)
        person.keyboard.send_text("see \x16")
        await person.sees("pasted.png")
        person.keyboard.send_text("\r")
        await person.does("submit see")
        [line] = [each for each in person.did if each.startswith("submit")]
        assert Path(line.removeprefix("submit see @")).read_bytes() == b"\x89PNG\r\n\x1a\nrest"


async def test_a_terminal_that_is_gone_is_told_of_and_not_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Printing never fails; the size is that of a usual terminal."""
    read, write = os.pipe()
    os.close(read)
    terminal = OwnTerminal()
    monkeypatch.setattr(terminal, "fileno", lambda: write)
    gone: list[bool] = []
    terminal.gone = lambda: gone.append(True)
    terminal.write("hello")
    os.close(write)
    assert gone == [True]
    assert terminal.size() == Size(24, 80)
