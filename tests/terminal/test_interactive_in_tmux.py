"""The interactive mode, in a real terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from running import Command
from support import wait_for_file
from tmux import Tmux

pytestmark = pytest.mark.terminal
Terminal = Callable[..., Tmux]

GATE = """
    def register(api):
        @api.on("tool_call", tool="bash")
        async def gate(event, ctx):
            command = event.input["command"]
            if "rm" in command and not await ctx.ui.confirm("Delete?", command):
                return {"block": True, "reason": "the person kept it"}
"""
DIARY = """
    import os
    from pathlib import Path
    def register(api):
        Path("pid").write_text(str(os.getpid()))
        @api.on("session")
        async def note(event, ctx):
            with open("diary", "a") as file:
                print(event.reason, file=file)
"""


def test_a_whole_afternoon(terminal: Terminal, command: Command) -> None:
    """Talk, be asked by a hook, abort, go back, resume, quit; tomorrow the session is still there."""
    command.add_hook(GATE)
    (command.project / "build").mkdir()
    tmux = terminal()
    modes = tmux.shell("stty -g")
    tmux.start_agent()
    tmux.enter("good afternoon")
    tmux.sees("good afternoon", times=2)
    tmux.enter("@bash rm -r build")
    tmux.sees("> 1. No")
    tmux.press("Enter")
    tmux.sees("blocked: the person kept it")
    tmux.sees("I have made 1 call.")
    assert (command.project / "build").is_dir()
    tmux.press("Up")
    tmux.ends_with("> @bash rm -r build")
    tmux.press("Enter")
    tmux.sees("> 1. No")
    tmux.press("Down")
    tmux.sees("> 2. Yes")
    tmux.press("Enter")
    tmux.sees("Delete? → Yes")
    tmux.sees("• bash rm -r build → ok")
    assert not (command.project / "build").exists()
    tmux.enter("@bash sleep 1000")
    tmux.sees("Esc aborts")
    tmux.press("Escape")
    tmux.sees("aborted")
    tmux.command("/branch")
    tmux.asks("Go back before which message?")
    tmux.press("Up", "Up", "Up")
    tmux.until(lambda screen: "good afternoon" in chosen(screen), "the first message")
    tmux.press("Enter")
    tmux.sees("back before: good afternoon")
    tmux.ends_with("> good afternoon")
    tmux.type(", again")
    tmux.press("Enter")
    tmux.sees("good afternoon, again", times=2)
    tmux.command("/resume")
    screen = tmux.asks("Which session?")
    assert "good afternoon … @bash sleep 1000 (13" in chosen(screen)
    tmux.press("Enter")
    tmux.sees("resumed")
    tmux.until(lambda screen: "> @bash sleep 1000" in screen.rpartition("resumed")[2], "what was said there")
    tmux.enter("/quit")
    tmux.sees("left with 0")
    assert tmux.shell("stty -g") == modes

    tmux.start_agent()
    tmux.command("/resume")
    tmux.asks("Which session?")
    tmux.press("Down")
    tmux.until(lambda screen: "@bash sleep 1000 (13" in chosen(screen), "the session with most in it")
    tmux.press("Enter")
    tmux.sees("> @bash sleep 1000")
    tmux.leave()
    tmux.sees("left with 0")


def test_dialogs_of_two_hooks_wait_for_one_another(terminal: Terminal, command: Command) -> None:
    """Two results are judged at once; each question is asked, and each answer goes where it belongs."""
    command.add_hook("""
        def register(api):
            @api.on("tool_result")
            async def ask(event, ctx):
                word = event.input["command"].split()[-1]
                answer = await ctx.ui.select(f"What about {word}?", ["keep " + word, "hide " + word])
                return {"content": f"the person said {answer}"}
    """)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.type("@bash echo one")
    tmux.press("M-Enter")
    tmux.enter("@bash echo two")
    first = tmux.asks("What about ")
    assert first.count("What about ") == 1
    word, other = ("one", "two") if "What about one" in first else ("two", "one")
    tmux.press("Down", "Enter")
    tmux.sees(f"→ hide {word}")
    tmux.asks(f"What about {other}?")
    tmux.press("Enter")
    screen = tmux.sees(f"the person said keep {other}")
    assert f"the person said hide {word}" in screen


def test_a_dialog_on_a_small_terminal_that_changes_its_size(terminal: Terminal, command: Command) -> None:
    """20 columns and 10 rows: everything can be read and chosen; Ctrl-C cancels, and the terminal is as before."""
    command.add_hook("""
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                answer = await ctx.ui.select("Which of these many?", [f"number {n}" for n in range(50)])
                if answer is None:
                    return {"block": True, "reason": "none"}
                ctx.ui.notify("it is " + answer)
    """)
    tmux = terminal(columns=20, rows=10)
    modes = tmux.shell("stty -g")
    tmux.start_agent("--no-session --model puppet")
    tmux.enter("@ls .")
    tmux.sees("> number 0")
    tmux.press("End")
    tmux.sees("> number 49")
    tmux.resize(80, 24)
    assert len(tmux.sees("number 34").splitlines()) <= 24
    tmux.resize(18, 6)
    tmux.lacks("number 34")
    tmux.sees("> number 49")
    tmux.press("Up")
    tmux.sees("> number 48")
    tmux.resize(40, 12)
    tmux.press("Enter")
    # The line is broken between words, for the width at which it was printed.
    tmux.until(lambda screen: "i it is number 48" in " ".join(screen.split()), "the notice")
    tmux.enter("@ls .")
    tmux.sees("> number 0")
    tmux.press("C-c")
    tmux.sees("blocked: none")
    tmux.press("C-c", "C-c")
    tmux.sees("left with 0")
    assert tmux.shell("stty -g") == modes


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_in_a_dialog_ends_the_session_in_order(terminal: Terminal, command: Command, number: int) -> None:
    """The hooks get one shutdown, and the terminal is as before."""
    command.add_hook(GATE, "gate.py")
    command.add_hook(DIARY, "diary.py")
    tmux = terminal()
    modes = tmux.shell("stty -g")
    tmux.start_agent()
    tmux.enter("@bash rm -r build")
    tmux.sees("> 1. No")
    os.kill(int((command.project / "pid").read_text()), number)
    tmux.sees("left with 130")
    assert (command.project / "diary").read_text().split() == ["start", "shutdown"]
    assert tmux.shell("stty -g") == modes


def test_a_terminal_that_goes_away_in_a_dialog_ends_the_session_in_order(terminal: Terminal, command: Command) -> None:
    """The dialog is cancelled, and the hooks get their time to end; SIGHUP comes twice."""
    command.add_hook(GATE, "gate.py")
    command.add_hook(DIARY, "diary.py")
    command.add_hook("""
        import anyio
        from pathlib import Path
        async def until(name):
            while not Path(name).exists():
                await anyio.sleep(0.01)
        def register(api):
            @api.on("session")
            async def slow(event, ctx):
                if event.reason == "shutdown":
                    await until("go")
                    Path("saved").write_text(str(await ctx.ui.select("Where to?", ["here"])))
            @api.on_unload
            async def unload():
                Path("unloading").touch()
                await until("now")
                Path("unloaded").touch()
    """)
    tmux = terminal()
    # An internal error would leave its report there.
    tmux.enter("export TMPDIR=$PWD")
    tmux.start_agent()
    tmux.enter("@bash rm -r build")
    tmux.sees("> 1. No")
    tmux.hang_up()
    wait_for_file(command.project / "diary", "shutdown")
    pid = int((command.project / "pid").read_text())
    os.kill(pid, signal.SIGHUP)
    (command.project / "go").touch()
    wait_for_file(command.project / "saved", "None")
    wait_for_file(command.project / "unloading", "")
    os.kill(pid, signal.SIGHUP)
    (command.project / "now").touch()
    tmux.close()
    assert (command.project / "unloaded").exists()
    assert (command.project / "diary").read_text().split() == ["start", "shutdown"]
    assert [path.name for path in command.project.glob("agent-hooks-error*")] == []


def test_who_is_in_a_hurry_presses_ctrl_c_until_it_ends(terminal: Terminal, command: Command) -> None:
    """A hook that takes long at the end does not keep the person waiting."""
    command.add_waiting_hook("shutdown", deaf=True)
    tmux = terminal()
    modes = tmux.shell("stty -g")
    tmux.start_agent()
    tmux.press("C-c", "C-c")
    tmux.sees("ending · Ctrl-C hurries")
    tmux.press("C-c")
    tmux.lacks("Ctrl-C hurries")
    tmux.press("C-c")
    tmux.sees("interrupted again; leaving at once")
    tmux.sees("left with 130")
    assert tmux.shell("stty -g") == modes


def test_ctrl_c_ends_a_session_that_does_not_get_started(terminal: Terminal, command: Command) -> None:
    """Before the session has started, Ctrl-C is the usual signal."""
    command.add_waiting_hook("start")
    tmux = terminal()
    tmux.enter("agent run")
    tmux.sees("starting · Ctrl-C hurries")
    tmux.press("C-c")
    tmux.sees("left with 130")


def test_an_error_of_ours_gives_the_terminal_back(terminal: Terminal, command: Command) -> None:
    """The terminal is given back even if a hook ends the whole program."""
    command.add_hook("""
        import asyncio, sys
        def register(api):
            @api.on("tool_call")
            async def leave(event, ctx):
                asyncio.get_running_loop().call_soon(sys.exit, 3)
    """)
    tmux = terminal()
    modes = tmux.shell("stty -g")
    tmux.start_agent()
    tmux.enter("@bash sleep 1000")
    tmux.sees("a hook called sys.exit(3)")
    tmux.sees("left with 1")
    assert tmux.shell("stty -g") == modes


def test_what_hooks_print_and_tools_say_leaves_the_screen_whole(terminal: Terminal, command: Command) -> None:
    """Their own prints and their programs' come as lines; escape sequences are shown, not obeyed."""
    command.add_hook("""
        import subprocess
        def register(api):
            @api.on("tool_call")
            def chatter(event, ctx):
                print("printed by the hook", end="", flush=True)
                subprocess.run(["sh", "-c", "echo; printf 'from a program\\\\033[2J\\\\n' >&2"])
            @api.on("turn_end")
            async def choose(event, ctx):
                await ctx.ui.select("Pick \\x1b[7mone", ["plain", "\\x1b]0;title\\x07 two\\nlines"])
    """)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter(r"@bash printf '\033[31mred\033[5A'")
    screen = tmux.asks(r"Pick \x1b[7mone")
    assert r"  from a program\x1b[2J" in screen
    assert "  printed by the hook\n" in screen
    tmux.press("Down")
    tmux.sees(r"> 2. \x1b]0;title\x07 two lines")
    tmux.press("Escape")
    tmux.sees(r"red\x1b[5A")


def test_keys_are_nobody_elses_and_a_program_left_behind_holds_nothing_up(terminal: Terminal, command: Command) -> None:
    """A hook that reads stdin fails, and so blocks; one that starts a program for ever lets the session end."""
    command.add_hook("""
        import subprocess
        CHATTER = "until test -e go; do sleep 0.05; done; while echo chatter; do sleep 0.01; done"
        def register(api):
            subprocess.Popen(["sh", "-c", CHATTER])
            @api.on("tool_call")
            def ask(event, ctx):
                if input("Really? ") != "y":
                    return {"block": True}
    """)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("@ls .")
    tmux.sees("EOFError")
    tmux.sees("blocked")
    (command.project / "go").touch()
    tmux.sees("chatter")
    tmux.leave()
    tmux.sees("left with 0")


def test_messages_typed_while_the_agent_works_wait_and_those_of_hooks_have_a_name(
    terminal: Terminal, command: Command
) -> None:
    """Both appear when the agent gets them."""
    command.add_hook("""
        from pathlib import Path
        def register(api):
            @api.on("tool_call")
            async def busy(event, ctx):
                api.send("look at this too")
    """)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("@bash until test -e go; do sleep 0.01; done")
    tmux.sees("Esc aborts")
    tmux.enter("and one more thing")
    tmux.sees("queued: and one more thing")
    tmux.enter("  /say this")
    tmux.sees("queued: /say this")
    (command.project / "go").touch()
    tmux.lacks("queued: ")
    screen = tmux.sees("> and one more thing")
    tmux.lacks("for the next request")
    assert "> [.agent/hooks/hook.py] look at this too" in screen


def test_a_hook_that_keeps_the_agent_going_is_seen_and_ended(terminal: Terminal, command: Command) -> None:
    """Its messages bear its name; at the limit the agent stops, and the person can go on."""
    command.add_hook("""
        from agent_hooks import Continue
        def register(api):
            @api.on("agent_end")
            async def more(event, ctx):
                if event.messages[0].content[0].text == "go":
                    return Continue(f"more {event.continued}")
    """)
    tmux = terminal(rows=50)
    tmux.start_agent("--no-session")
    tmux.enter("go")
    screen = tmux.sees("the agent stops here")
    assert "> [.agent/hooks/hook.py] more 7\nmore 7\n" in screen
    assert "more 8" not in screen
    tmux.enter("thanks")
    tmux.sees("thanks", times=2)


def test_a_message_too_many_stays_in_the_prompt_line(terminal: Terminal, command: Command) -> None:
    """The reason is printed, and the messages queued before are kept."""
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("@bash until test -e go; do sleep 0.01; done")
    tmux.sees("Esc aborts")
    for number in range(1, 101):
        tmux.type(f"message {number}")
        tmux.press("Enter")
    tmux.sees("queued: message 100")
    tmux.type("message 101")
    tmux.press("Enter")
    tmux.sees("not sent: 100 messages of this sender wait")
    tmux.ends_with("> message 101")
    (command.project / "go").touch()
    tmux.sees("> message 100")
    tmux.press("Enter")
    tmux.sees("> message 101")
    tmux.lacks("queued: ")


def test_a_cancelled_action_says_who_cancelled_it_and_changes_nothing(terminal: Terminal, command: Command) -> None:
    """The conversation stays on screen, and goes on."""
    command.add_hook("""
        def register(api):
            @api.on("session")
            async def keep(event, ctx):
                if event.reason in ("before_clear", "before_branch", "before_switch"):
                    return {"cancel": True, "reason": "not today"}
    """)
    tmux = terminal()
    tmux.start_agent()
    tmux.enter("remember me")
    tmux.sees("remember me", times=2)
    for action in ("/clear", "/new"):
        tmux.enter(action)
        tmux.sees(f"> {action}\n! nothing changed: cancelled by .agent/hooks/hook.py: not today")
    tmux.command("/branch")
    tmux.asks("Go back before which message?")
    tmux.press("Enter")
    tmux.sees("nothing changed", times=3)
    tmux.ends_with("\n>")
    tmux.command("/branch")
    tmux.until(lambda screen: "remember me" in chosen(screen), "the message, still there")


def test_a_terminal_that_cannot_move_its_cursor_is_refused(terminal: Terminal) -> None:
    """The error names the other modes."""
    tmux = terminal()
    tmux.enter("TERM=dumb agent run")
    tmux.sees("TERM=dumb; use -p PROMPT")
    tmux.sees("left with 2")


def test_a_prompt_as_the_only_argument_begins_the_conversation(terminal: Terminal, command: Command) -> None:
    """A word that is no command is a mistake."""
    tmux = terminal(columns=100)
    tmux.enter("agent 'good morning'")
    tmux.sees("> good morning\ngood morning\n")
    tmux.leave()
    tmux.sees("left with 0")
    tmux.enter("clear; agent --caution ask 'good evening'")
    tmux.sees("> good evening\ngood evening\n")
    tmux.sees("asking first · puppet")
    tmux.leave()
    tmux.sees("left with 0")
    tmux.enter("clear; agent lsit")
    tmux.sees("did you mean 'list'?")
    tmux.sees("left with 2")


def test_what_was_typed_is_remembered_also_in_other_runs(terminal: Terminal, command: Command, home: Path) -> None:
    """The file is for the person alone."""
    tmux = terminal()
    for text in ("of yesterday", "of today"):
        tmux.start_agent("--no-session")
        tmux.enter(text)
        tmux.sees(text, times=2)
        tmux.leave()
        tmux.sees("left with 0")
    tmux.start_agent("--no-session")
    tmux.press("Up", "Up")
    tmux.ends_with("> of yesterday")
    assert (home / ".agent" / "prompt_history").stat().st_mode & 0o777 == 0o600


def chosen(screen: str) -> str:
    """Return the line of a list that is chosen."""
    return next((line for line in reversed(screen.splitlines()) if line.startswith("> ")), "")


def test_no_key_for_the_prompt_line_says_yes(terminal: Terminal, command: Command) -> None:
    """Up and Enter for the last prompt, pressed as a question comes up or later, allow nothing."""
    command.add_hook("""
        import anyio
        def register(api):
            @api.on("tool_call")
            async def gate(event, ctx):
                while not await anyio.Path("pressed").exists():
                    await anyio.sleep(0.01)
                if not await ctx.ui.confirm("Run it?", event.input["command"]):
                    return {"block": True, "reason": "kept"}
    """)
    tmux = terminal()
    tmux.start_agent("--no-session")
    tmux.enter("@bash echo first")
    (command.project / "pressed").touch()
    tmux.asks("Run it?")
    # Up stays at No.
    tmux.press("Up", "Up", "Enter")
    tmux.sees("Run it? → No")
    (command.project / "pressed").unlink()
    tmux.enter("@bash echo second")
    tmux.sees("hooks judge bash echo second")
    (command.project / "pressed").touch()
    tmux.until(lambda screen: screen.count("Run it?") == 2, "the second question")
    tmux.press("Down", "Enter")
    tmux.asks("bash echo second")
    assert "Run it? → Yes" not in tmux.screen()
    tmux.press("Enter")
    tmux.until(lambda screen: screen.count("Run it? → No") == 2, "the second answer")


def test_the_line_that_is_typed_breaks_between_words(terminal: Terminal, command: Command) -> None:
    """Also after the terminal has changed its size; a key in the middle goes where the cursor stands."""
    tmux = terminal(columns=40, rows=20)
    tmux.start_agent()
    tmux.type("Please refactor the configuration loader so that variables win")
    tmux.ends_with("> Please refactor the configuration\n  loader so that variables win")
    tmux.resize(30, 20)
    tmux.ends_with("> Please refactor the\n  configuration loader so that\n  variables win")
    tmux.press("Home")
    tmux.press(*["Right"] * len("Please refactor the "))
    tmux.type("whole ")
    tmux.ends_with("> Please refactor the whole\n  configuration loader so that\n  variables win")
