"""The prompt line of the interactive mode, in a real terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from model_server import ModelServer, Say
from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Give a model server, and the variables of a person who has a key of OpenAI."""
    with ModelServer() as running:
        for name, value in running.environment("openai").items():
            monkeypatch.setenv(name, value)
        yield running


def test_commands_and_files_are_offered_while_they_are_typed(terminal: Terminal, command: Command) -> None:
    """A line that is complete is sent by Enter although the offer is shown; an address in a text offers nothing."""
    (command.project / "plan.md").write_text("")
    (command.project / "plans.md").write_text("")
    (command.project / "turns.jsonl").write_text("")
    tmux = terminal(columns=100)
    tmux.start_agent("--no-session", "--model", "script:turns.jsonl")
    tmux.type("/cl")
    tmux.sees("forget the conversation")
    tmux.type("ear")
    tmux.press("Enter")
    tmux.sees("the conversation is forgotten")
    tmux.enter("/thin")
    tmux.sees("> 1. off")
    tmux.press("3")
    tmux.sees("i thinking: medium")
    tmux.enter("/re")
    tmux.sees("there is no command /re")
    tmux.type("/thinking h")
    tmux.sees("\n high")
    tmux.press("C-c")
    tmux.lacks("\n high")
    # Tab puts a space after a command, for its argument.
    tmux.type("/thi")
    tmux.sees("/thinking ")
    tmux.press("Tab")
    tmux.type("low")
    tmux.ends_with("> /thinking low")
    tmux.press("Enter")
    tmux.sees("i thinking: low")
    tmux.type("me@pl")
    tmux.ends_with("> me@pl")
    tmux.type(" see @pl")
    tmux.sees("\n plan.md")
    tmux.press("Tab")
    tmux.type(" now")
    tmux.ends_with("> me@pl see @plan.md now")
    tmux.press("C-c")
    # With an arrow key, Enter takes the completion, and after Tab it sends the line.
    tmux.type("look at @pl")
    tmux.sees("\n plans.md")
    tmux.press("Down")
    tmux.sees("> look at @plan.md")
    tmux.press("Enter")
    tmux.lacks("\n plans.md")
    tmux.ends_with("> look at @plan.md")
    tmux.press("C-c")
    tmux.type("look at @pl")
    tmux.sees("\n plans.md")
    tmux.press("Tab", "Enter")
    tmux.sees("the model failed: script")


def test_a_long_paste_is_a_mark_and_is_sent_whole(terminal: Terminal, server: ModelServer, tmp_path: Path) -> None:
    """A short one is text of the line; Ctrl-J begins another line."""
    server.play(Say("I have it."))
    tmux = terminal(rows=40)
    tmux.start_agent("--no-session", "--model", "openai:m")
    tmux.sees("· 0 hooks · no checkpoints")
    tmux.paste("one\ntwo")
    tmux.ends_with("> one\n  two")
    tmux.press("C-j")
    tmux.type("then ")
    tmux.paste("\n".join(f"row {number}" for number in range(200)))
    tmux.ends_with("> one\n  two\n  then [pasted text #1: 200 lines]")
    tmux.press("Enter")
    screen = tmux.sees("I have it.")
    assert "> one\n  two\n  then row 0\n" in screen
    assert "  … 190 more lines (Ctrl-O)" in screen
    tmux.press("Up")
    tmux.ends_with("> one\n  two\n  then [pasted text #1: 200 lines]")
    sent = server.requests[0].body["messages"][-1]["content"]
    assert sent == "one\ntwo\nthen " + "\n".join(f"row {number}" for number in range(200))


def test_messages_that_wait_come_back_at_esc(terminal: Terminal, command: Command) -> None:
    """Above the text that is being typed; nothing is sent."""
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("@bash sleep 1000")
    tmux.sees("Esc aborts")
    for text in ("one more thing", "and another"):
        tmux.enter(text)
        tmux.sees(f"queued: {text}")
    tmux.type("half a")
    tmux.press("Escape")
    tmux.ends_with("aborted\n> one more thing\n  and another\n  half a")
    tmux.lacks("queued")
    tmux.press("Enter")
    tmux.sees("half a\none more thing\nand another\nhalf a")


def test_a_command_of_the_person_runs_and_the_model_reads_it(
    terminal: Terminal, command: Command, server: ModelServer
) -> None:
    """No gate judges it, the secret in its output is hidden, and Esc stops it."""
    command.add_hook("""
        from agent_hooks import Block
        def register(api):
            api.on("tool_call", lambda event, ctx: Block("no tools today"))
    """)
    server.play(Say("I see."))
    tmux = terminal(rows=50)
    tmux.start_agent("--no-session", "--model", "openai:m")
    tmux.enter(f"!echo GITHUB_TOKEN={SECRET}; seq 9; exit 3")
    tmux.sees("  [exit code 3]")
    assert SECRET not in tmux.screen().rpartition("→ error")[2]
    assert "  8\n  9\n" in tmux.screen()
    tmux.enter("!cd /")
    tmux.sees("cd counts for this command alone; the next one begins in")
    tmux.enter("!echo begun; sleep 1000")
    tmux.sees("  begun\n")
    tmux.press("Escape")
    tmux.sees("sleep 1000 → stopped (")
    tmux.enter("go on")
    tmux.sees("I see.")
    sent = "\n".join(str(each["content"]) for each in server.requests[0].body["messages"])
    assert "The person ran this command, and has seen its output:\n$ echo GITHUB_TOKEN=" in sent
    assert "[exit code 3]" in sent
    assert "$ echo begun; sleep 1000\naborted; the output until then:\nbegun" in sent
    assert sent.endswith("\ngo on")
    output = sent.partition("has seen its output:\n")[2].partition("\n")[2]
    assert SECRET not in output


def test_a_text_that_only_begins_like_a_command_is_a_message(terminal: Terminal, command: Command) -> None:
    """An image of Markdown, several lines, and the prompt of the command line; the mark shows which one it is."""
    tmux = terminal()
    tmux.start_agent("--no-session", "--mode", "interactive", "'!touch made'")
    tmux.sees("!touch made", times=2)
    tmux.enter("![a picture](a.png)")
    tmux.sees("a picture", times=2)
    tmux.type("!touch made")
    tmux.ends_with("\n$ !touch made")
    tmux.press("M-Enter")
    tmux.type("and more")
    tmux.ends_with("\n> !touch made\n  and more")
    tmux.press("Enter")
    tmux.sees("and more", times=2)
    assert not (command.project / "made").exists()


def test_below_an_agent_such_a_line_is_refused(
    terminal: Terminal, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent could type it."""
    monkeypatch.setenv("CLAUDECODE", "1")
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("!touch made")
    tmux.sees("!: ")
    tmux.sees("agent")
    tmux.ends_with(">")
    assert not (command.project / "made").exists()


def test_below_an_agent_nothing_is_loosened(
    terminal: Terminal, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by an approval nor for one call."""
    monkeypatch.setenv("CLAUDECODE", "1")
    command.trusted = False
    command.add_hook("def register(api): pass\n")
    tmux = terminal(columns=160)
    tmux.start_agent("--no-session")
    tmux.enter("/trust")
    tmux.sees("a person runs it in a terminal that no agent has opened")
    tmux.enter("/allow rm-rf")
    tmux.sees("a person runs it in a terminal that no agent has opened", times=2)
    tmux.enter("@bash rm -rf /usr")
    tmux.sees("blocked: removes a tree by force")
    assert "count from now on" not in tmux.history()


def test_a_session_goes_on_with_its_model_and_can_be_chosen(
    terminal: Terminal, command: Command, server: ModelServer
) -> None:
    """The end names the command; a list shows the sessions, the last written first."""
    tmux = terminal(columns=120, rows=40)
    for number, name in enumerate(("gpt-4o", "gpt-4.1")):
        server.play(Say(f"Answer {number}."))
        tmux.start_agent("--model", f"openai:{name}")
        tmux.enter(f"question {number}")
        tmux.sees(f"Answer {number}.")
        tmux.leave()
        tmux.sees("to go on with this session: agent-hooks run --continue")
        tmux.sees("left with 0")
    tmux.start_agent("-c")
    tmux.sees("the model is openai:gpt-4.1, as before in this session")
    tmux.sees("Answer 1.")
    tmux.leave()
    tmux.sees("left with 0")
    tmux.enter("clear; agent run --resume")
    tmux.sees("> 1. ")
    screen = tmux.sees("Which session?")
    assert screen.index("question 1") < screen.index("question 0")
    tmux.press("Down")
    tmux.until(lambda screen: "question 0" in screen.partition("\n> ")[2].partition("\n")[0], "the other session")
    tmux.press("Enter")
    tmux.sees("the model is openai:gpt-4o, as before in this session")
    tmux.sees("Answer 0.")
    tmux.leave()
    tmux.sees("left with 0")
    assert "give the path of a session" in command("run", "--mode", "interactive", "--resume", code=2).stderr


def test_the_search_in_the_history_shows_its_line_while_one_types(terminal: Terminal, command: Command) -> None:
    """Enter takes the line without sending it."""
    tmux = terminal()
    tmux.start_agent("--no-session")
    for text in ("mend the roof", "paint the wall"):
        tmux.enter(text)
        tmux.sees(text, times=2)
    tmux.press("C-r")
    tmux.type("roo")
    tmux.sees("> mend the roof\nhistory: roo")
    tmux.press("Enter")
    tmux.ends_with("> mend the roof")


def test_a_session_that_is_gone_on_with_shows_an_own_command_as_no_message(
    terminal: Terminal, command: Command
) -> None:
    """It stands above the message that it went with."""
    tmux = terminal(rows=40)
    tmux.start_agent()
    tmux.enter("!echo early")
    tmux.sees("  early\n")
    tmux.enter("good morning")
    tmux.sees("good morning", times=2)
    tmux.enter("!echo late")
    tmux.sees("  late\n")
    tmux.leave()
    tmux.sees("left with 0")
    tmux.start_agent("-c")
    screen = tmux.sees("> good morning\ngood morning")
    assert "  $ echo early\n  early\n" in screen
    # No message came after it.
    tmux.sees("  $ echo late\n  late\n")
    assert "The person ran" not in screen
    assert "> The person ran" not in screen
