"""A real terminal for tests: tmux, which a test types into and reads the screen of."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from support import PATIENCE

MISSING = shutil.which("tmux") is None
PYTHON = shlex.quote(sys.executable)
# A part of the line below the prompt.
FACTS = " · "
# The beginning of the window's title while the agent waits for the person.
RESTS = "agent-hooks: "
PROGRAM = f"{PYTHON} -m agent_hooks"


class Tmux:
    """A shell in a terminal of its own: `tmux.enter("ls")`, `tmux.sees("README")`."""

    # Seconds that it waits for a change of the screen, and between two looks.
    patience = PATIENCE
    pause = 0.02

    def __init__(self, directory: Path, columns: int = 80, rows: int = 24) -> None:
        # In the system's temporary directory, because a socket's path must be short.
        self._own = tempfile.TemporaryDirectory(prefix="agent-hooks-")
        self._socket = f"{self._own.name}/tmux"
        environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TERM", "NO_COLOR")}
        shell = "env PS1='$ ' HISTFILE= LC_ALL=C.UTF-8 bash --norc --noprofile"
        subprocess.run(
            [
                "tmux",
                "-S",
                self._socket,
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-x",
                str(columns),
                "-y",
                str(rows),
                shell,
            ],
            cwd=directory,
            env={**environment, "TERM": "screen-256color"},
            check=True,
            timeout=PATIENCE,
        )
        self._leader = self._do("display-message", "-p", "#{pane_pid}").strip()
        # The path by which another program draws on it.
        self.device = self._do("display-message", "-p", "#{pane_tty}").strip()
        self._do("set-option", "-g", "escape-time", "0")
        self._do("set-option", "-s", "set-clipboard", "on")
        self.until(lambda screen: screen.startswith("$"), "the shell")
        self.enter(f'agent() {{ {PROGRAM} "$@"; echo left with $?; }}; clear')
        self.until(lambda screen: screen.strip() == "$", "an empty screen")

    def hang_up(self) -> None:
        """Close the terminal while its program runs."""
        # It fails when the server has ended.
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, timeout=PATIENCE)

    def close(self) -> None:
        """End the terminal, and wait until its program has ended too."""
        self.hang_up()
        end = time.monotonic() + PATIENCE
        while left := session(self._leader):
            assert time.monotonic() < end, f"still there after the terminal has gone: {left}"
            time.sleep(0.01)
        self._own.cleanup()

    def type(self, text: str) -> None:
        """Type a text."""
        self._do("send-keys", "-l", "--", text)

    def paste(self, text: str) -> None:
        """Paste a text, as a terminal that marks the beginning and the end of a paste does."""
        self._do("set-buffer", "--", text)
        self._do("paste-buffer", "-p")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names: `Up`, `Escape`, `M-Enter`, `C-c`."""
        self._do("send-keys", *keys)

    def enter(self, text: str) -> None:
        """Type a text, and Enter once all of it is on screen."""
        self.type(text)
        # Without spaces, because the terminal may break the line anywhere.
        end = "".join(text.split())[-8:]
        self.until(lambda screen: end in "".join(screen.split()), f"the echo of {text!r}")
        self.press("Enter")

    def command(self, text: str) -> None:
        """Enter a slash command that is refused while the agent works, once it has ended its work."""
        self.rests()
        self.enter(text)

    def leave(self) -> None:
        """Press Ctrl-D once the agent has ended its work; while it works, that asks for another one."""
        self.rests()
        self.press("C-d")

    def start_agent(self, *args: str) -> None:
        """Start the interactive mode; `left with CODE` marks its end."""
        # The screen may show an earlier start.
        self.enter("clear")
        self.lacks("/help")
        self.enter(f"clear; agent run {' '.join(args)}")
        self.sees("/help")

    def shell(self, command: str) -> str:
        """Run a command in the shell and return its output."""
        part, whole = Path(self._own.name, "part"), Path(self._own.name, "whole")
        whole.unlink(missing_ok=True)
        self.enter(f"{{ {command}; }} >{part} 2>&1; mv {part} {whole}")
        self.until(lambda screen: whole.exists(), f"the end of {command!r}")
        return whole.read_text()

    def clipboard(self) -> str:
        """Return the text that a program has put into the terminal's clipboard."""
        return self._do("show-buffer")

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal another size."""
        self._do("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        """Return the lines on screen."""
        return self._do("capture-pane", "-p").rstrip("\n")

    def history(self) -> str:
        """Return the lines on screen and above it, wrapped lines as one."""
        return self._do("capture-pane", "-p", "-J", "-S", "-").rstrip("\n")

    def sees(self, text: str, times: int = 1) -> str:
        """Wait until a text is on screen, so often at least, and return the screen."""
        return self.until(lambda screen: screen.count(text) >= times, f"{text!r} ({times} times)")

    def asks(self, text: str) -> str:
        """Wait until a dialog with this text takes keys, which its mark shows, and return the screen."""
        return self.until(
            lambda screen: "\n> " in screen.rpartition(text)[2] and text in screen, f"the dialog {text!r}"
        )

    def ends_with(self, text: str) -> str:
        """Wait until the screen ends with a text, above the agent's line of facts, and return the screen."""

        def ends(screen: str) -> bool:
            above, _, last = screen.rpartition("\n")
            return screen.endswith(text) or (FACTS in last and above.rstrip().endswith(text))

        return self.until(ends, f"{text!r} at the end")

    def rests(self) -> None:
        """Wait until the agent has ended its work, which the title of the window shows."""
        end = time.monotonic() + self.patience
        while not (title := self._do("display-message", "-p", "#{pane_title}")).startswith(RESTS):
            assert time.monotonic() < end, f"waited for the end of the work, but the title is {title!r}"
            time.sleep(self.pause)

    def lacks(self, text: str) -> str:
        """Wait until a text is on screen no more, and return the screen."""
        return self.until(lambda screen: text not in screen, f"no {text!r}")

    def until(self, holds: Callable[[str], bool], what: str) -> str:
        """Wait until something holds of the screen, and return that."""
        end = time.monotonic() + self.patience
        while not holds(screen := self.screen()):
            assert time.monotonic() < end, f"waited for {what}, but the screen shows\n{screen}"
            time.sleep(self.pause)
        return screen

    def _do(self, *command: str) -> str:
        line = ["tmux", "-S", self._socket, *command]
        done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=PATIENCE)
        return done.stdout


def session(leader: str) -> list[str]:
    """Return the processes of a session, on systems with /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = path.read_text().rpartition(")")
        except OSError:  # it has just ended
            continue
        if fields.split()[3] == leader and fields.split()[0] != "Z":
            found.append(f"{name})")
    return found
