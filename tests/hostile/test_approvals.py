"""An agent with a shell approves hooks itself, and gets round everything that tells it from a user.

A daemon that is missing here is played by its own deed: a process whose parent is the first one of the system, without a
terminal, and with a short environment.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_hooks.server.journal import Alarm, Journal
from agent_hooks.trust.open_sessions import RECENT, OpenSession
from agent_hooks.trust.policy import Trust
from other_agent import end_server
from running import Command, start_at
from support import PATIENCE
from trust.approving import approve, judged_session, state, unapproved

pytestmark = pytest.mark.usefixtures("no_agent_around", "home")
OURS = f"{shlex.quote(sys.executable)} -m agent_hooks"
YES = f"{OURS} trust --yes"
READ = "import json, sys; print(json.load(sys.stdin)['projects'][0]['digest'])"
DIGEST = f'{OURS} trust --digest "$({OURS} trust --list --json | {shlex.quote(sys.executable)} -c {shlex.quote(READ)})"'
DAEMON = "setsid -f env -i HOME=$HOME LOGNAME=$(id -un) SHELL=/bin/sh PATH=/usr/bin:/bin /bin/sh -c PROGRAM < /dev/null"
# An agent that cannot read the terminal guesses.
GUESS = "while ! test -e ended; do {}; sleep 0.2; done"
ATTACKS = {
    "setsid": ("setsid -f PROGRAM < /dev/null", YES),
    "an empty environment": ("env -i HOME=$HOME PATH=$PATH PROGRAM", YES),
    "the digest from the list": ("setsid -f env -i HOME=$HOME PATH=$PATH PROGRAM < /dev/null", DIGEST),
    "a forged CI": ("CI=true GITHUB_ACTIONS=true PROGRAM", YES),
    "a double fork": ("( ( PROGRAM & ) & )", YES),
    "script": (f"{GUESS.format('echo y')} | script -qec PROGRAM /dev/null", YES),
    "tmux": (f"tmux -S socket -f /dev/null new -d PROGRAM; {GUESS.format('tmux -S socket send-keys y Enter')}", YES),
    "screen": (f"screen -dmS approve PROGRAM; {GUESS.format('screen -S approve -X stuff y^M')}", YES),
    "systemd-run": ("systemd-run --user --wait -E HOME=$HOME PROGRAM || " + DAEMON, YES),
    "at": ("{ pgrep -x atd && echo PROGRAM | at now; } || " + DAEMON, YES),
    "a cron job": (DAEMON, YES),
}
TERMINALS = ("script", "tmux", "screen")


@pytest.fixture
def command(project: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Give the command line in a project with a hook that nobody has approved."""
    return unapproved(project, monkeypatch)


@pytest.fixture
def session() -> OpenSession:
    """Give a judged session, whose agent is this process."""
    return judged_session()


def attack(project: Path, line: str, program: str) -> str:
    """Run a program by a shell line, and return its output."""
    file = project / "attack"
    file.write_text(f"#!/bin/sh\ncd {project}\n{program} > output 2>&1\ntouch ended\n")
    file.chmod(0o755)
    subprocess.run(
        ["sh", "-c", line.replace("PROGRAM", str(file))],
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    end = time.monotonic() + PATIENCE
    while not (project / "ended").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    return (project / "output").read_text()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_detached_command_approves_nothing_while_a_session_is_open(
    command: Command, session: OpenSession, name: str
) -> None:
    """Its process tree and its environment show no agent. At a terminal of its own, the code is not guessed."""
    line, program = ATTACKS[name]
    if name in TERMINALS and shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    output = attack(command.project, line, program)
    if name in TERMINALS:
        assert "the code was not typed, so nothing was changed" in output
    else:
        assert "needs a terminal, because a session of claude-code is open" in output
    assert state(command.project).state == "new"


@pytest.mark.terminal
def test_a_terminal_of_an_agents_own_gets_the_code_and_each_session_tells_of_it(
    command: Command, session: OpenSession
) -> None:
    """This attack succeeds. Nobody sees the terminal, so the approval is announced until a user confirms it."""
    look = "tmux -S socket capture-pane -p | sed -n 's/.*Type \\(\\w*\\) and Enter:.*/\\1/p' | tail -1"
    line = f"tmux -S socket -f /dev/null new -d PROGRAM; {GUESS.format(f'tmux -S socket send-keys $({look}) Enter')}"
    attack(command.project, line, YES)
    found = state(command.project)
    assert found.state == "approved"
    assert "approved without a terminal" in str(found.doubt)
    # Each session shows these.
    assert found.doubt in Trust().sources(str(command.project)).messages


@pytest.mark.terminal
@pytest.mark.parametrize("name", ["script", "tmux"])
def test_a_terminal_that_nobody_sees_is_no_terminal(command: Command, name: str) -> None:
    """No session is recent, and the program that made the terminal has none itself."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    lines = {"script": "script -qec PROGRAM /dev/null", "tmux": "tmux -S socket -f /dev/null new -d PROGRAM"}
    attack(command.project, lines[name], YES)
    assert "approved without a terminal" in str(state(command.project).doubt)


@pytest.mark.terminal
@pytest.mark.parametrize("name", ["script", "tmux", "tmux in script"])
def test_a_user_in_such_a_program_is_at_a_terminal(command: Command, name: str) -> None:
    """Nothing is announced."""
    if shutil.which(name.split()[0]) is None:
        pytest.skip(f"{name} is not installed")
    tmux = ["tmux", "-S", "socket", "-f", "/dev/null", "new", YES]
    script = ["script", "-qec", shlex.join(tmux) if "in" in name else YES, "/dev/null"]
    ours, theirs = pty.openpty()
    process = start_at(theirs, ["env", "TERM=xterm", *(tmux if name == "tmux" else script)], command.project)
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    process.wait(PATIENCE)
    found = state(command.project)
    assert (found.state, found.doubt) == ("approved", None)


def test_a_program_that_leaves_our_host_still_is_below_it(command: Command) -> None:
    """The host is its parent then, so neither the list of digests nor an approval is given."""
    command.may_fork = False
    # The guards do not see the command in a program of the project.
    lines = "; ".join(f"{OURS} trust {option}" for option in ("--list", "--yes"))
    detached = [
        "setsid",
        "-f",
        "env",
        "-i",
        f"HOME={Path.home()}",
        "/bin/sh",
        "-c",
        f"({lines}) > output 2>&1; touch ended",
    ]
    (command.project / "leave.py").write_text(f"import subprocess\nsubprocess.run({detached!r})\n")
    wait = "while ! test -e ended; do sleep 0.1; done"
    command("run", "--no-session", f"@bash {sys.executable} leave.py; {wait}")
    refused = re.findall(
        r"agent-hooks (.*) is for a person, and agent-hooks \(process \d+\) has started",
        (command.project / "output").read_text(),
    )
    assert refused == ["trust --list", "trust"]
    assert state(command.project).state == "new"


def namespace(inside: str) -> str:
    """Return a shell line that runs one in namespaces of its own, which show no process from outside."""
    if subprocess.run(["unshare", "-rmpf", "--mount-proc", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets this user make no namespaces")
    return f"env -i HOME=$HOME PATH=$PATH unshare -rmpf --mount-proc sh -c {shlex.quote(inside)}"


@pytest.mark.parametrize("hidden", [False, True])
def test_a_namespace_hides_no_session(command: Command, session: OpenSession, home: Path, hidden: bool) -> None:
    """Neither the agent's process nor, with `hidden`, the signs of sessions are seen there."""
    signs = home / ".agent" / "trust" / "open"
    for path in signs.iterdir():
        os.utime(path, (time.time() - 2 * RECENT,) * 2)
    mount = f"mount -t tmpfs none {signs};" * hidden
    output = attack(command.project, namespace(f"{mount} PROGRAM < /dev/null"), YES)
    assert "agent-hooks trust --yes needs a terminal, because" in output
    assert state(command.project).state == "new"


@pytest.mark.terminal
def test_a_code_that_is_typed_in_a_namespace_is_no_proof(command: Command, session: OpenSession) -> None:
    """An agent can read the terminal that it has made.  The approval is announced until a user confirms it."""
    look = "tmux -S socket capture-pane -p | sed -n 's/.*Type \\(\\w*\\) and Enter:.*/\\1/p' | tail -1"
    program = namespace(f"cd {command.project} && {YES}")
    line = f"tmux -S socket -f /dev/null new -d PROGRAM; {GUESS.format(f'tmux -S socket send-keys $({look}) Enter')}"
    attack(command.project, line, program)
    approval = state(command.project).approval
    assert approval is not None
    assert approval.origin is not None
    assert not approval.origin.terminal


LOOSENING = {
    "trust --yes": "trust --yes",
    "untrust": "untrust",
    "disable gate": "disable",
    "enable gate": "enable",
    "new other": "new",
    "examples add permission_gate": "examples add",
    "unlock 15m": "unlock",
    "doctor --clear-alarm": "doctor --clear-alarm",
    "uninstall claude-code": "uninstall",
}


@pytest.mark.parametrize("line", LOOSENING)
def test_each_command_that_loosens_something_wants_the_code(command: Command, session: OpenSession, line: str) -> None:
    """A yes at a terminal is not enough."""
    if line.split()[0] in ("untrust", "new", "examples"):
        approve(command.project)
    if line.startswith("uninstall"):
        command("install", "claude-code")
    Journal("claude-code", "s").raise_alarm(Alarm("claude-code", "s", str(command.project), "Bash", time.time()))
    ours, theirs = pty.openpty()
    process = start_at(theirs, command.line(*line.split()), command.project)
    seen = ""
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            piece = os.read(ours, 4096).decode()
        except OSError:
            break
        seen += piece
        os.write(ours, b"y\n" * piece.count("and Enter: "))
    os.close(ours)
    assert process.wait(PATIENCE) == 1
    assert f"agent-hooks {LOOSENING[line]}: the code was not typed" in seen.replace("\r\n", "")
    end_server(command.project)
