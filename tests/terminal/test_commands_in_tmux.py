"""The prompt line and the slash commands, in a real terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from running import Command
from support import approve
from tmux import Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]


def test_commands_that_look_and_set(terminal: Terminal, command: Command) -> None:
    """Help, hooks, model, thinking level; for an unknown name, the nearest known one is shown."""
    command.add_hook("def register(api):\n    api.on('turn_end', lambda event, ctx: None)\n")
    tmux = terminal(rows=50)
    tmux.start_agent("--no-session")
    tmux.enter("?")
    for line in ("/branch    go back before one of your messages", "Alt-Enter  begins another line"):
        assert line in tmux.sees("Ctrl-D     quits")
    tmux.enter("/hooks")
    assert "turn_end" in tmux.sees(".agent/hooks/hook.py")
    tmux.enter("/model")
    tmux.asks("Which model?")
    tmux.press("Escape")
    tmux.sees("i model: puppet\n")
    tmux.enter("/model pupet")
    tmux.sees("/model: there is no model 'pupet'; did you mean 'puppet'?")
    tmux.enter("/model script:turns.jsonl")
    tmux.sees("/model: script turns.jsonl: No such file")
    (command.project / "turns.jsonl").write_text('{"text": "from the script"}\n')
    tmux.enter("/model script:turns.jsonl")
    tmux.sees("i model: script:turns.jsonl")
    tmux.enter("hello")
    tmux.sees("from the script")
    tmux.enter("hello again")
    tmux.sees("the model failed: script turns.jsonl: all 1 responses are played")
    tmux.enter("/thinking hihg")
    tmux.sees("there is no level 'hihg'; did you mean 'high'?")
    tmux.enter("/thinking 9")
    tmux.sees("there is no level '9'; known are: high, low, medium, off\n")
    tmux.enter("/thinking high")
    tmux.sees("i thinking: high")
    tmux.enter("/banch")
    tmux.sees("there is no command /banch; did you mean '/branch'?")
    tmux.enter("/model puppet")
    tmux.sees("i model: puppet\n", times=2)
    for text in ("/etc/hosts is a path", " /banch"):
        tmux.enter(text)
        tmux.sees(f"> {text.strip()}\n{text.strip()}")


def test_interceptors_change_and_block_commands(terminal: Terminal, command: Command) -> None:
    """`command.execute.before`, seen on the screen."""
    command.add_hook("""
        def register(api):
            @api.intercept("command.execute.before")
            def look(input, output):
                output.arguments = output.arguments.replace("hihg", "high")
                if input.command == "clear":
                    output.block, output.block_reason = True, "keep it"
    """)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("/thinking hihg")
    tmux.sees("i thinking: high")
    tmux.command("/clear")
    tmux.sees("/clear: not carried out: keep it (")


def test_exit_is_quit_for_interceptors_too(terminal: Terminal, command: Command) -> None:
    """A hook that watches `quit` hears of `/exit`, and the program ends."""
    command.add_hook("""
        def register(api):
            @api.intercept("command.execute.before")
            def look(input, output):
                open("seen", "w").write(input.command)
    """)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("/exit")
    tmux.sees("left with 0")
    assert (command.project / "seen").read_text() == "quit"


def test_commands_that_find_nothing_to_do_say_so(terminal: Terminal, command: Command) -> None:
    """A command that cannot be carried out changes nothing."""
    tmux = terminal(rows=50)
    tmux.start_agent()
    tmux.enter("/hooks")
    tmux.sees("no hooks: ~/.agent/hooks and .agent/hooks of the project hold none")
    tmux.command("/resume")
    tmux.sees("i there is no other session here")
    tmux.command("/branch")
    tmux.sees("i there is nothing to go back to yet")
    tmux.command("/resume notes.txt")
    tmux.sees("/resume:")
    tmux.sees("notes.txt: ")
    (command.project / "notes.txt").write_text("not a session\n")
    tmux.command("/resume notes.txt")
    tmux.sees("notes.txt:1: ")
    tmux.enter("@bash sleep 1000")
    tmux.sees("Esc aborts")
    tmux.enter("/clear")
    tmux.sees("/clear: the agent is working; abort it first")
    tmux.press("Escape")
    tmux.sees("aborted")
    tmux.command("/clear")
    tmux.sees("the conversation is forgotten")
    tmux.command("/new")
    tmux.sees("a new session")


def test_a_session_with_times_that_are_none_can_be_chosen(terminal: Terminal, command: Command) -> None:
    """Somebody else wrote it: the words that stand for a time are shown as they are."""
    header = {"type": "session", "version": 1, "id": "x", "timestamp": "once upon a time", "cwd": str(command.project)}
    message = {"role": "user", "content": [{"type": "text", "text": "/hello from elsewhere"}], "timestamp": 0}
    entry = {"type": "message", "timestamp": "9999-12-31T23:59:59-14:00", "message": message}
    path = command.project / ".agent/sessions/foreign.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(f"{json.dumps(header)}\n{json.dumps(entry)}\n")
    tmux = terminal()
    tmux.start_agent()
    tmux.command("/resume")
    tmux.asks("Which session?")
    tmux.press("Enter")
    # No is selected at first.
    tmux.asks("Go on with a session from elsewhere?")
    tmux.press("Enter")
    tmux.sees("did not write this")
    tmux.command("/resume")
    tmux.asks("Which session?")
    tmux.press("Enter")
    tmux.sees("Go on with a session from elsewhere?", times=2)
    tmux.asks("Go on with a session from elsewhere?")
    tmux.press("2")
    tmux.sees("resumed foreign.jsonl")
    tmux.command("/branch")
    tmux.sees("> 1. 9999-12-31T23:59:59-14:00 /hello from elsewhere")
    tmux.press("Enter")
    # The space keeps the line from being a command.
    tmux.ends_with(">  /hello from elsewhere")


def test_compact_sums_up_and_esc_ends_what_takes_long(terminal: Terminal, command: Command) -> None:
    """A hook that hangs is not waited for; a line typed meanwhile is not lost."""
    command.add_hook("""
        import anyio
        from agent_hooks import Compaction
        def register(api):
            @api.on("session")
            async def slow(event, ctx):
                if event.reason == "before_clear" or event.custom_instructions == "slowly":
                    await anyio.sleep_forever()
                if event.reason == "before_compact":
                    return Compaction("we said hello", len(event.entries), event.tokens_before)
    """)
    tmux = terminal()
    tmux.start_agent()
    tmux.enter("hello there")
    tmux.sees("hello there", times=2)
    tmux.command("/compact slowly")
    tmux.sees("/compact · Esc aborts")
    tmux.press("Escape")
    tmux.sees("nothing changed: aborted")
    tmux.command("/clear")
    tmux.sees("> /clear")
    tmux.type("meanwhile")
    tmux.press("Enter")
    tmux.sees("queued: meanwhile")
    tmux.press("Escape")
    tmux.sees("nothing changed: aborted", times=2)
    tmux.lacks("queued: ")
    tmux.sees("meanwhile", times=2)
    tmux.command("/compact")
    assert "hook error" not in tmux.sees("summed up the older part")


def test_the_prompt_line_takes_many_lines_completes_and_lets_go(terminal: Terminal, command: Command) -> None:
    """Alt-Enter, a backslash, Tab, Ctrl-C."""
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.type("one")
    tmux.press("M-Enter")
    tmux.type("two\\")
    tmux.press("Enter")
    tmux.ends_with("> one\n  two")
    tmux.enter("three")
    tmux.sees("one\ntwo\nthree\n>")
    tmux.type("/c")
    tmux.sees("sum up the older part")
    tmux.press("Tab", "Tab")
    tmux.until(lambda screen: "> /compact" in screen, "the second of them")
    tmux.press("Enter")
    # A command that was chosen is whole.
    tmux.sees("summed up the older part")
    tmux.ends_with(">")
    tmux.type("/thinking hi")
    tmux.sees("\n high")
    tmux.press("Tab", "Enter")
    tmux.sees("i thinking: high")
    tmux.type("x")
    tmux.press("C-c")
    tmux.ends_with("\n>")
    assert "again quits" not in tmux.screen()
    tmux.press("C-c")
    tmux.ends_with("Ctrl-C again quits\n>")
    tmux.type("/")
    tmux.lacks("again quits")
    tmux.press("Tab")
    tmux.sees("/reload")
    tmux.press("Escape")
    tmux.lacks("/reload")
    tmux.press("C-c", "C-c")
    tmux.sees("Ctrl-C again quits")
    tmux.press("C-c")
    tmux.sees("left with 0")


def test_a_dialog_comes_and_goes_without_touching_what_was_being_typed(terminal: Terminal, command: Command) -> None:
    """This holds at the very start, and when the hook itself stops waiting for an answer."""
    command.add_hook("""
        import anyio
        from pathlib import Path
        def register(api):
            @api.on("session")
            async def hello(event, ctx):
                if event.reason == "start":
                    ctx.ui.notify("hello " + await ctx.ui.input("Who is there?", "a name"))
            @api.on("tool_call")
            async def impatient(event, ctx):
                while not Path("typed").exists():
                    await anyio.sleep(0.01)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(give_up, tasks.cancel_scope)
                    await ctx.ui.confirm("Run it?", "quickly")
            async def give_up(scope):
                while not Path("late").exists():
                    await anyio.sleep(0.01)
                scope.cancel()
    """)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.sees("> a name")
    tmux.enter("Ada")
    tmux.sees("i hello Ada")
    tmux.enter("@ls .")
    tmux.sees("hooks judge ls .")
    tmux.type("half a mess")
    tmux.sees("> half a mess")
    (command.project / "typed").touch()
    tmux.sees("Run it?")
    tmux.lacks("half a mess")
    (command.project / "late").touch()
    tmux.lacks("Run it?")
    tmux.ends_with("> half a mess")


def test_a_history_that_cannot_be_written_is_said_once(terminal: Terminal, command: Command, home: Path) -> None:
    """The lines of this run can still be recalled."""
    (home / ".agent" / "prompt_history").mkdir(parents=True)
    tmux = terminal()
    tmux.start_agent("--no-session")
    for text in ("first", "second"):
        tmux.enter(text)
        tmux.sees(text, times=2)
    assert tmux.history().count("your lines are not remembered: ") == 1
    tmux.press("Up", "Up")
    tmux.ends_with("> first")


def test_a_long_session_that_is_gone_on_with_shows_its_end(terminal: Terminal, command: Command) -> None:
    """A line says how many messages came before; Markdown is shown as it was live."""
    script = "\n".join(f'{{"text": "**answer {number}**"}}' for number in range(30))
    (command.project / "turns.jsonl").write_text(script)
    tmux = terminal(rows=150)
    tmux.start_agent("--model", "script:turns.jsonl")
    for number in range(22):
        tmux.enter(f"question {number}")
        tmux.sees(f"answer {number}\n")
    tmux.leave()
    tmux.sees("left with 0")
    tmux.start_agent("--mode", "interactive", "--continue", "'and one more'")
    tmux.sees("> and one more")
    shown = tmux.screen()
    assert "── 4 earlier messages (Ctrl-O) ──" in shown
    assert "question 1\n" not in shown
    assert "> question 2\nanswer 2\n" in shown


def test_a_session_that_is_gone_on_with_looks_as_it_did(terminal: Terminal, command: Command) -> None:
    """The calls have their outcome, messages of hooks their sender, and a summary is marked as one."""
    command.add_hook(
        """
        from agent_hooks import Block, Compaction

        def register(api):
            @api.on("tool_call", tool="bash")
            async def gate(event, ctx):
                return Block("not today") if "sudo" in event.input["command"] else None

            @api.on("agent_end")
            async def remind(event, ctx):
                if event.messages[0].content[0].text == "remind me":
                    api.send("a reminder")

            @api.on("session")
            async def summarise(event, ctx):
                if event.reason == "before_compact":
                    return Compaction("all was well", len(event.entries), event.tokens_before)
        """
    )
    tmux = terminal(rows=50)
    tmux.start_agent()
    tmux.enter("hello")
    tmux.sees("hello", times=2)
    tmux.command("/compact")
    tmux.sees("tokens before, ")
    tmux.sees("──\n  all was well\n")
    tmux.enter("@bash sudo true")
    tmux.sees("• bash sudo true → blocked")
    tmux.enter("@bash echo one")
    tmux.sees("s)\n  one")
    tmux.enter("@bash echo two; exit 3")
    tmux.sees("  [exit code 3]")
    (command.project / "notes.md").write_text("old\n")
    tmux.enter('@edit {"path": "notes.md", "oldText": "old", "newText": "new"}')
    tmux.sees("  +new")
    tmux.enter("remind me")
    tmux.sees("a reminder", times=2)
    tmux.leave()
    tmux.sees("left with 0")
    tmux.start_agent("--continue")
    screen = tmux.sees("a reminder\na reminder\n>")
    assert "> remind me\n" in screen
    assert "── summed up ──\nall was well\n" in screen
    assert "<summary>" not in screen
    assert "• bash sudo true → blocked: not today (.agent/hooks/hook.py)\n" in screen
    assert "• bash echo one → ok\n  one\n" in screen
    assert "• bash echo two; exit 3 → error\n  two\n  [exit code 3]\n" in screen
    assert "• edit notes.md → ok\n" in screen
    assert "  -old\n  +new\n" in screen
    assert "> [.agent/hooks/hook.py] a reminder\n" in screen


def test_a_list_of_sessions_tells_when_each_was_last_written(terminal: Terminal, command: Command) -> None:
    """Each session also has its number of messages, even if its first words are long."""
    command("run", "please " * 20)
    (session,) = (command.project / ".agent" / "sessions").glob("*.jsonl")
    a_day = 24 * 3600
    os.utime(session, (10 * a_day + a_day / 2,) * 2)
    tmux = terminal()
    tmux.start_agent()
    tmux.command("/resume")
    assert re.search(r"^> 1\. 11 Jan \d\d:00 please .*… \(2 messages\)$", tmux.asks("Which session?"), re.MULTILINE)


def test_the_line_below_the_prompt_counts_the_checkpoints(terminal: Terminal, home: Path) -> None:
    """Of the session alone, also of one that is gone on with; without git, and when they are off, it says so."""
    tmux = terminal()
    tmux.start_agent()
    tmux.sees("· no checkpoints without git")
    tmux.leave()
    tmux.sees("left with 0")
    tmux.shell("git init -q")
    tmux.start_agent()
    tmux.sees("· 0 checkpoints")
    tmux.enter("@bash echo 1 > a")
    tmux.until(lambda screen: screen.endswith("· 1 checkpoint"), "one checkpoint")
    tmux.leave()
    tmux.sees("left with 0")
    tmux.start_agent("--continue")
    tmux.until(lambda screen: screen.endswith("· 1 checkpoint"), "one checkpoint")
    tmux.command("/new")
    tmux.sees("· 0 checkpoints")
    (home / ".agent" / "settings.json").write_text('{"checkpoints": {"enabled": false}}')
    tmux.enter("/reload")
    tmux.sees("· checkpoints off")


def test_a_hook_that_takes_long_in_emit_is_seen_to_take_long(terminal: Terminal, command: Command) -> None:
    """The spinner names the work, until the answer comes."""
    hook = command.add_hook("""
        import time
        from pathlib import Path

        def register(api):
            @api.on("tool_call")
            def wait(event, ctx):
                while not Path("go").exists():
                    time.sleep(0.01)
    """)
    tmux = terminal()
    tmux.enter(f"clear; agent emit tool_call --hook {hook}")
    tmux.sees("firing tool_call 0:00:01")
    (command.project / "go").touch()
    assert "firing" not in tmux.sees("left with 0")


def test_a_text_of_the_person_is_a_command(terminal: Terminal, command: Command, home: Path) -> None:
    """The menu offers it, its words are in their place, and /help names its file."""
    own = home / ".agent" / "commands"
    own.mkdir(parents=True)
    (own / "greet-all.md").write_text("---\ndescription: says hello\n---\n@bash echo hello $1; echo bye $2")
    tmux = terminal(rows=60, columns=200)
    tmux.start_agent("--no-session")
    tmux.type("/gr")
    tmux.sees("says hello")
    tmux.type("eet-all Ada 'the moon'")
    tmux.press("Enter")
    tmux.sees("  hello Ada\n  bye the moon")
    tmux.enter("/help")
    tmux.sees("/greet-all  ~/.agent/commands/greet-all.md")
    tmux.enter("/greet")
    tmux.sees("• bash echo hello ; echo bye → ok")


def test_while_planning_the_agent_only_looks(terminal: Terminal, command: Command) -> None:
    """Shift-Tab and /plan switch it; it holds after a reload; the session has the notes for the model."""
    (command.project / "a.txt").write_text("alpha\n")
    tmux = terminal(rows=60, columns=110)
    tmux.start_agent()
    tmux.press("BTab")
    tmux.sees("asking first · puppet")
    tmux.enter("@bash cat a.txt; ls")
    tmux.sees("  alpha\n")
    tmux.enter('@write {"path": "b.txt", "content": "beta"}')
    assert "+beta" in tmux.asks("Make this edit?")
    tmux.press("3")
    tmux.sees("until this session ends: b.txt (ask)")
    tmux.enter('@write {"path": "b.txt", "content": "gamma"}')
    tmux.sees("+gamma")
    tmux.sees("→ ok", times=3)
    (command.project / "b.txt").unlink()
    tmux.press("BTab", "BTab")
    tmux.sees("planning: the agent only looks")
    tmux.sees("planning · puppet")
    tmux.enter("@bash cat a.txt")
    tmux.sees("  alpha", times=2)
    hook = command.project / ".agent" / "hooks" / "h.py"
    hook.parent.mkdir(parents=True)
    hook.write_text("def register(api):\n    pass\n")
    approve(command.project)
    tmux.enter("@bash wc -l a.txt")
    tmux.sees("1 hook ")
    for call in ("@bash echo x > b.txt", "@bash make", "@bash kill 1", '@write {"path": "b.txt", "content": "x"}'):
        tmux.enter(call)
        tmux.sees("I have made 1 call.")
        tmux.sees("the person wants a plan first")
        tmux.command("/clear")
        tmux.until(lambda screen: screen.count("the conversation is forgotten") >= 1, "a new session")
        tmux.press("C-l")
    assert not (command.project / "b.txt").exists()
    tmux.enter("@bash wc -c a.txt")
    tmux.sees("I have made 1 call.")
    tmux.enter("/plan @bash echo x > b.txt")
    tmux.sees("the agent works without asking, within hooks and guards")
    tmux.sees("echo x > b.txt → ok")
    text = "".join(path.read_text() for path in (command.project / ".agent" / "sessions").glob("*.jsonl"))
    # Each session after a /clear learns of it too.
    assert text.count("The person has switched to planning.") == 5
    assert text.count("The person has ended planning") == 1


def test_edits_in_the_project_pass_and_a_plan_is_accepted(terminal: Terminal, command: Command) -> None:
    """The question about an edit leads there, and Enter at the empty line asks about the plan."""
    (command.project / "a.txt").write_text("alpha\n")
    outside = command.project.parent / "outside.txt"
    tmux = terminal(rows=60, columns=110)
    tmux.start_agent()
    tmux.enter('/ask @edit {"path": "a.txt", "oldText": "alpha", "newText": "beta"}')
    tmux.asks("Make this edit?")
    tmux.press("5")
    tmux.sees("? Make this edit? → Yes, and accept edits from now on")
    tmux.sees("accepting edits · puppet")
    tmux.rests()
    assert (command.project / "a.txt").read_text() == "beta\n"
    tmux.enter('@edit {"path": "a.txt", "oldText": "beta", "newText": "gamma"}')
    tmux.sees("+gamma")
    tmux.enter(f'@write {{"path": "{outside}", "content": "x"}}')
    assert "  5. No, and say why" in tmux.asks("\nwrite ")
    tmux.press("1")
    tmux.sees("blocked: you said no")
    tmux.enter("@bash touch b.txt")
    tmux.asks("\nbash touch")
    tmux.press("1")
    tmux.sees("blocked: you said no", times=2)
    assert not outside.exists()
    tmux.command("/plan")
    tmux.sees("planning · puppet")
    assert "carries out" not in tmux.screen()
    # There is no plan yet.
    tmux.press("Enter")
    tmux.enter("a plan")
    tmux.sees("> Enter carries out the plan")
    tmux.press("Enter")
    tmux.asks("Carry out the plan?")
    tmux.press("Enter")
    tmux.sees("> Enter carries out the plan")
    tmux.press("Enter")
    tmux.asks("Carry out the plan?")
    tmux.press("4")
    tmux.sees("> Carry out the plan.")
    tmux.sees("asking first · puppet")


def test_the_level_of_the_settings_begins_and_an_answer_counts_for_a_use_of_a_program(
    terminal: Terminal, command: Command, home: Path
) -> None:
    """The option counts before the settings; the command that goes on has another level than theirs."""
    (home / ".agent").mkdir(exist_ok=True)
    (home / ".agent" / "settings.json").write_text('{"caution": "ask"}')
    (command.project / "Makefile").write_text("test:\n\t@echo passed $(X)\n")
    tmux = terminal(rows=60, columns=110)
    tmux.start_agent()
    tmux.sees("asking first · puppet")
    tmux.enter("@bash make test X=1")
    assert "(ask): an answer that is kept counts for each make test" in tmux.asks("Run this command?")
    tmux.press("4")
    tmux.sees("  passed 1")
    tmux.enter("@bash make test X=2")
    tmux.sees("  passed 2")
    tmux.enter("/hooks")
    tmux.sees("each make test")
    tmux.sees("to end one: /hooks revoke N")
    tmux.enter("@bash git init")
    tmux.asks("\nbash git init")
    tmux.press("1")
    tmux.sees("you said no")
    tmux.leave()
    tmux.sees("to go on with this session: agent-hooks run --continue\n")
    tmux.start_agent("-c", "--caution", "edits")
    tmux.sees("accepting edits · puppet")
    tmux.leave()
    tmux.sees("to go on with this session: agent-hooks run --continue --caution edits\n")
    tmux.start_agent("-c", "--caution", "plan")
    tmux.sees("planning · puppet")
    tmux.enter("hello")
    tmux.sees("> Enter carries out the plan")
    (session,) = (command.project / ".agent" / "sessions").glob("*.jsonl")
    assert "The person has switched to planning." in session.read_text()
    tmux.leave()
    tmux.sees("to go on with this session: agent-hooks run --continue --caution plan\n")


def test_the_conversation_can_be_taken_along(
    terminal: Terminal, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last answer goes to a program, else to the terminal; a file that exists stays; `/init` asks the model."""
    tmux = terminal(columns=110, rows=50)
    tmux.start_agent("--no-session")
    tmux.enter("/copy")
    tmux.sees("there is no answer to copy yet")
    tmux.enter("/diff")
    tmux.sees("there are no checkpoints")
    tmux.enter("@bash seq 20")
    tmux.sees("I have made 1 call.")
    tmux.leave()
    tmux.sees("left with 0")
    programs = command.project / "programs"
    programs.mkdir()
    (programs / "wl-copy").write_text('#!/bin/sh\ncat > "$(dirname "$0")/copied"\n')
    (programs / "wl-copy").chmod(0o755)
    tmux.enter(f"export PATH={programs}:$PATH")
    tmux.start_agent()
    tmux.enter("@bash seq 20")
    tmux.sees("I have made 1 call.")
    tmux.enter("/copy")
    tmux.sees("copied the last answer: 1 line")
    assert (programs / "copied").read_text() == "I have made 1 call."
    tmux.enter("/export talk.txt")
    tmux.sees("written: ")
    assert "\n  19\n  20\n" in (command.project / "talk.txt").read_text()
    tmux.enter("/export talk.txt")
    tmux.sees("/export: the conversation was not written:")
    tmux.enter("/init be short")
    tmux.sees("Look at this project, and write AGENTS.md")
    tmux.sees("be short")


def test_a_terminal_that_has_a_clipboard_gets_the_answer(
    terminal: Terminal, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no program writes to the clipboard."""
    monkeypatch.setenv("PATH", f"{command.project}/none:/bin:/usr/bin")
    tmux = terminal(columns=110)
    tmux.start_agent("--no-session")
    tmux.enter("good morning")
    tmux.sees("good morning", times=2)
    tmux.command("/copy")
    tmux.sees("gave the last answer to the terminal: 1 line")
    assert tmux.clipboard() == "good morning"


def test_a_model_and_a_level_are_chosen_from_a_list(
    terminal: Terminal, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list has the models of the providers with a key, and begins at the present one."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    tmux = terminal(rows=50)
    tmux.start_agent("--no-session", "--model", "puppet")
    tmux.enter("/model")
    screen = tmux.asks("Which model?")
    assert "> puppet" in screen
    assert "openai:" not in screen
    tmux.press("Down")
    tmux.sees("> anthropic:")
    tmux.press("Enter")
    tmux.sees("i model: anthropic:")
    tmux.enter("/thinking")
    tmux.asks("How much does the model think?")
    tmux.press("4")
    tmux.sees("i thinking: high")


def test_the_changes_of_the_conversation_are_shown(terminal: Terminal, command: Command) -> None:
    """Those of the agent alone, and not those that were taken back."""
    subprocess.run(["git", "init", "-q"], cwd=command.project, check=True)
    (command.project / "a.txt").write_text("alpha\n")
    tmux = terminal(rows=60)
    tmux.start_agent()
    tmux.enter("/diff")
    tmux.sees("there are no changes of the agent in this conversation")
    (command.project / "mine.txt").write_text("mine\n")
    tmux.enter("@bash echo beta > a.txt")
    tmux.sees("I have made 1 call.")
    tmux.enter("@bash echo more > b.txt")
    tmux.sees("b.txt → ok")
    tmux.command("/diff")
    screen = tmux.sees("+more")
    assert "-alpha\n  +beta" in screen
    assert "mine" not in screen
    tmux.command("/undo")
    tmux.asks("Take back")
    tmux.press("2")
    tmux.sees("took back")
    tmux.enter("clear")
    tmux.press("C-l")
    tmux.command("/diff")
    tmux.sees("+beta")
    assert "+more" not in tmux.screen().rpartition("> /diff")[2]


def test_hooks_names_the_files_that_wait_for_approval(terminal: Terminal, command: Command) -> None:
    """Also those that came after the start."""
    command.trusted = False
    tmux = terminal(columns=160)
    tmux.start_agent("--no-session")
    command.add_hook("def register(api): pass\n")
    tmux.enter("/reload")
    tmux.sees("in force: 0 hooks")
    tmux.enter("/hooks")
    tmux.sees("no hooks: ")
    tmux.until(lambda screen: ".agent/hooks/" in screen.rpartition("no hooks: ")[2].partition("\n")[2], "the file")


def test_the_pager_has_the_earlier_messages_of_a_session_too(
    terminal: Terminal, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The screen shows the last ones, and the number of the others."""
    monkeypatch.setenv("PAGER", "grep -n early")
    # With fewer rows, the line about the earlier messages would leave the screen.
    tmux = terminal(rows=80)
    tmux.start_agent()
    tmux.enter("early bird")
    tmux.sees("early bird", times=2)
    for number in range(21):
        tmux.enter(f"m{number}")
        tmux.sees(f"\nm{number}\n")
    tmux.leave()
    tmux.sees("left with 0")
    tmux.start_agent("-c")
    tmux.sees("earlier messages (Ctrl-O)")
    tmux.sees("\nm20\n")
    tmux.enter("clear")
    tmux.press("C-o")
    tmux.sees(":> early bird")
