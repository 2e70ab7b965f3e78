"""While a judged session is open or recent, only a user at a terminal loosens something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from agent_hooks.trust.open_sessions import RECENT, OpenSession, open_session
from agent_hooks.trust.own import KEPT
from agent_hooks.trust.policy import TOLD, Trust
from running import Command
from trust.approving import age, agent_file, approve, judged_session, signs, state, unapproved

pytestmark = pytest.mark.usefixtures("no_agent_around", "home")


@pytest.fixture
def command(project: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Give the command line, without a terminal, in a project with a hook that nobody has approved."""
    return unapproved(project, monkeypatch)


@pytest.fixture
def session() -> OpenSession:
    """Give a session of an agent, which is this process."""
    return judged_session()


# ---- which sessions are open -----------------------------------------------------------------------------------------


def test_a_session_is_open_while_its_process_lives_and_recent_afterwards(home: Path, session: OpenSession) -> None:
    """An ended process whose number another one has is not the session's."""
    age(home, 2 * RECENT)
    assert str(open_session()) == f"a session of claude-code is open (process {os.getpid()})"
    [path] = signs(home)
    path.write_text(path.read_text().replace('"started":"', '"started":"9'))
    age(home, RECENT - 60)
    assert str(open_session()) == "a session of claude-code was open less than 10 minutes ago"
    age(home, RECENT + 1)
    assert open_session() is None


def test_no_event_makes_a_living_process_forgotten(home: Path, session: OpenSession) -> None:
    """A plain command can say that the session has ended, or name no process."""
    session.end()
    age(home, 2 * RECENT)
    assert "is open" in str(open_session())
    # A server that has just started knows nothing of the session's process.
    other = OpenSession("claude-code", "s")
    other.seen(None)
    other.end()
    age(home, 2 * RECENT)
    assert str(open_session()) == f"a session of claude-code is open (process {os.getpid()})"
    ended = subprocess.Popen(["true"])
    session.seen(ended.pid)
    ended.wait()
    session.end()
    assert "was open" in str(open_session())


def test_a_session_in_another_namespace_is_open_for_a_day(home: Path, session: OpenSession) -> None:
    """Its process cannot be seen from here.  Where the system tells no namespace, nothing changes."""
    [path] = signs(home)
    sign = json.loads(path.read_text()) | {"started": "1", "spaces": [1, 1]}
    path.write_text(json.dumps(sign))
    age(home, 2 * RECENT)
    assert "is open" in str(open_session())
    age(home, 86400 + 60)
    assert open_session() is None
    path.write_text(json.dumps(sign | {"spaces": [0, 0]}))
    age(home, 2 * RECENT)
    assert open_session() is None


@pytest.mark.parametrize("text", ["", "{", '{"client": 1}'])
def test_a_sign_that_cannot_be_read_is_a_recent_session(home: Path, session: OpenSession, text: str) -> None:
    """A session that begins just now may have written half of its sign."""
    signs(home)[0].write_text(text)
    assert open_session() is not None


def test_the_trial_of_doctor_is_no_session(home: Path) -> None:
    """A user who checks an installation is not asked for a code afterwards."""
    OpenSession("claude-code", "agent-hooks doctor 12").seen(os.getpid())
    assert open_session() is None


def test_a_run_and_a_judged_event_of_another_agent_are_sessions(command: Command, home: Path) -> None:
    """Both leave a sign, which is not older than the session's end."""
    command("run", "--no-session", "@bash true")
    assert str(open_session()) == "a session of agent-hooks was open less than 10 minutes ago"
    for path in signs(home):
        path.unlink()
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(command.project), "tool_name": "Read"}
    given = json.dumps({**event, "tool_input": {"file_path": "x"}, "tool_use_id": "1"})
    os.environ["CLAUDECODE"] = "1"
    try:
        command("bridge", "claude-code", stdin=given)
    finally:
        del os.environ["CLAUDECODE"]
    assert "a session of claude-code" in str(open_session())


# ---- without a terminal ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("trust", "--yes"),
        ("trust", "--always", "--yes"),
        ("trust", "--digest"),
        ("untrust",),
        ("disable", "gate"),
        ("enable", "gate"),
        ("new", "other"),
        ("examples add", "permission_gate"),
    ],
)
def test_without_a_terminal_nothing_is_loosened_while_a_session_is_open_or_recent(
    command: Command, session: OpenSession, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an option nor a forged CI helps, and the digest is not told."""
    monkeypatch.setenv("CI", "true")
    if args[0] != "trust":
        approve(command.project)
    before = Path(Trust().store().path).read_bytes() if args[0] != "trust" else None
    if args[-1] == "--digest":
        args = (*args, state(command.project).found.digest)
    for _ in range(2):
        error = command(*args[0].split(), *args[1:], code=1).stderr
        assert f"agent-hooks {args[0]}" in error
        assert "needs a terminal, because a session of claude-code" in error
        session.end()
    store = Path(Trust().store().path)
    assert (store.read_bytes() if store.exists() else None) == before
    assert [path.name for path in (command.project / ".agent" / "hooks").iterdir()] == ["gate.py"]


def test_without_a_terminal_an_installation_is_only_added_to_while_a_session_is_open(
    command: Command, session: OpenSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script installs for the first time, and again.  Another agent home hides no session."""
    line = ("claude-code", "--user")
    settings = home / ".claude" / "settings.json"
    command("install", *line)
    assert "is installed already" in command("install", *line).stdout
    added = json.loads(settings.read_text())
    del added["hooks"]["PostToolUse"]
    settings.write_text(json.dumps(added))
    command("install", *line)
    text = settings.read_text()
    assert "PostToolUse" in text
    for variable in ("XDG_CONFIG_HOME", "AGENT_HOME"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, str(home / "elsewhere"))
            assert "needs a terminal, because a session" in command("install", *line, code=1).stderr
            assert "needs a terminal, because a session" in command("uninstall", *line, code=1).stderr
    settings.write_text(text.replace('"timeout": 600', '"timeout": 5'))
    assert "needs a terminal, because a session" in command("install", *line, code=1).stderr
    settings.write_text(text)
    assert "would be" in command("uninstall", *line, "--dry-run").stdout
    for path in signs(home):
        path.unlink()
    command("uninstall", *line)
    assert [each.command for each in Trust().store().loosened] == ["uninstall claude-code"]
    assert "nothing of agent_hooks is there" in command("uninstall", *line).stdout
    assert len(Trust().store().loosened) == 1


def test_a_new_hook_without_a_terminal_is_announced(command: Command) -> None:
    """It is approved at once, as an approval is."""
    approve(command.project)
    command("new", "other")
    assert state(command.project).state == "approved"
    assert "approved without a terminal on " in str(state(command.project).doubt)


def test_an_approval_without_a_terminal_is_announced_until_a_user_confirms_it(command: Command) -> None:
    """It names the processes that gave it. A yes at a terminal ends this."""
    command("trust", "--yes")
    approval = state(command.project).approval
    assert approval is not None
    assert approval.origin is not None
    assert os.getpid() in [each.pid for each in approval.origin.processes]
    words = "approved without a terminal on "
    assert words in command("run", "--no-session", "@read x", code=None).stderr
    found = json.loads(command("doctor", "--json", code=None).stdout)["findings"]
    assert [each["status"] for each in found if words in each["text"]] == ["warning"]
    for path in signs(Path.home()):
        path.unlink()
    dialog = command.dialog("trust")
    shown = dialog.sees("count from now on? [y/N] ")
    assert "def register(api)" in shown
    dialog.type("y\n")
    dialog.end()
    assert state(command.project).doubt is None


def test_a_no_to_an_approval_without_a_terminal_ends_it(command: Command) -> None:
    """It was the last one, and the next session leaves the hooks out."""
    command("trust", "--yes")
    dialog = command.dialog("trust")
    dialog.sees("count from now on? [y/N] ")
    dialog.type("n\n")
    dialog.end(1)
    assert state(command.project).state == "refused"


def test_each_loosening_without_a_terminal_is_announced_until_a_user_confirms_it(command: Command, home: Path) -> None:
    """A no changes nothing, so the words stay. A yes at a terminal ends them."""
    approve(command.project)
    own = home / ".agent" / "hooks" / "own.py"
    own.parent.mkdir()
    own.write_text("def register(api): ...\n")
    command("disable", "own")
    command("untrust")
    words = [f"agent-hooks {line} was run without a terminal on " for line in ("disable own", "untrust /")]
    words[1] = words[1].replace("/", os.path.realpath(command.project))
    noted = Trust().store().loosened
    assert all(os.getpid() in [each.pid for each in loosening.origin.processes] for loosening in noted)
    for answer in ("n\n", "y\n"):
        told = command("run", "--no-session", "@read x", code=None).stderr
        assert all(each in told for each in words)
        found = json.loads(command("doctor", "--json", code=None).stdout)["findings"]
        assert [each["remedy"] for each in found if any(text in each["text"] for text in words)] == [
            "agent-hooks trust"
        ] * 2
        for path in signs(home):
            path.unlink()
        dialog = command.dialog("trust")
        shown = dialog.sees("Did you run these commands? [y/N] ")
        assert all(each in shown for each in words)
        dialog.type(answer)
        # The project's own question comes next.
        shown = dialog.sees("count from now on? [y/N] ")
        assert ("confirmed" in shown) == (answer == "y\n")
        dialog.type("\x04")
        dialog.end(1)
    assert Trust().store().loosened == []
    assert "was run without" not in command("run", "--no-session", "@read x", code=None).stderr


def test_own_hooks_that_a_program_takes_up_are_announced(command: Command, home: Path) -> None:
    """The kept bytes are damaged, and no session is recent, so nobody asks for a code."""
    own = home / ".agent" / "hooks" / "own.py"
    own.parent.mkdir(parents=True)
    own.write_text("def register(api): ...\n")
    kept = home / ".agent" / KEPT
    kept.parent.mkdir()
    kept.write_text("{}")
    command("trust", "--yes")
    assert "agent-hooks trust --yes was run without a terminal" in "".join(Trust().sources(command.project).loosened)


def test_the_commands_to_confirm_survive_a_damaged_store(command: Command, home: Path) -> None:
    """They are in its copy, and an agent that damages the store does not hide them."""
    approve(command.project)
    command("untrust")
    store = Path(Trust().store().path)
    store.write_text("{")
    damaged = Trust().store()
    damaged.rebuild(damaged.restorable())
    assert [each.command for each in Trust().store().loosened] == [f"untrust {os.path.realpath(command.project)}"]


def test_below_an_agent_the_list_of_digests_is_not_shown(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent could approve the set whose digest it reads."""
    monkeypatch.setenv("CLAUDECODE", "1")
    done = command("trust", "--list", code=1)
    assert "is for a person" in done.stderr
    assert done.stdout == ""


# ---- the code --------------------------------------------------------------------------------------------------------


def typed(answer: str, before: str = "") -> str:
    """Return the outcome of `prove_user` in a process whose user types an answer. `{}` is the code that is shown.

    `before`: code that runs when the terminal is open.
    """
    program = f"""
import fcntl, os, pty, re, sys, termios, threading
from agent_hooks.cli import proving
ours, theirs = pty.openpty()
os.setsid()
fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
def user():
    seen = b""
    while piece := os.read(ours, 4096):
        seen += piece
        if found := re.search(rb"Type (\\w+) and Enter: ", seen):
            os.write(ours, {answer!r}.replace("{{}}", found[1].decode()).encode())
            seen = b""
threading.Thread(target=user, daemon=True).start()
{before}
proving.LIMIT = {60 if answer.endswith(chr(10)) else 1}
try:
    origin = proving.prove_user("trust")
    print("a user" if origin is None else f"terminal: {{origin.terminal}}")
except Exception as exc:
    print(exc)
os._exit(0)
"""
    return subprocess.run(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.strip()


@pytest.mark.parametrize(
    ("answer", "proved"),
    [("{}\n", True), (" {} \n", True), ("y\n", False), ("\n", False), ("{}", False), ("{}x\n", False)],
)
def test_only_the_code_that_is_shown_on_the_terminal_is_taken(session: OpenSession, answer: str, proved: bool) -> None:
    """It is taken from the terminal itself, whatever stdin is. Enter, a yes and half a line are wrong."""
    found = typed(answer)
    assert (found == "terminal: True") is proved, found
    assert ("the code was not typed" in found) is not proved


def test_without_a_session_no_code_is_asked_for() -> None:
    """The usual case stays as it was."""
    assert typed("never") == "a user"


def test_a_terminal_that_was_there_before_the_session_is_a_users() -> None:
    """An agent can open a terminal of its own only after its session began."""
    begin = "from agent_hooks.trust.open_sessions import OpenSession; OpenSession('claude-code', 's').seen(None)"
    assert typed("{}\n", before=begin) == "a user"
    assert typed("{}\n", before="import os; os.getsid = lambda _: 1 << 22") == "terminal: True"


def test_an_approval_at_a_younger_terminal_is_told_of_for_a_day(command: Command, session: OpenSession) -> None:
    """A user opens terminals while an agent works, so the approval is taken. A yes at an older terminal ends it."""
    dialog = command.dialog("trust", "--yes")
    dialog.end()
    found = state(command.project)
    assert (found.state, len(found.files or ())) == ("approved", 1)
    assert "approved at a terminal that was opened while an agent worked on " in str(found.doubt)
    for path in signs(Path.home()):
        path.unlink()
    assert "that was opened while" in command("run", "--no-session", "@read x", code=None).stderr
    assert found.approval is not None
    late = msgspec.structs.replace(found.approval, at=time.time() - TOLD - 60)
    assert msgspec.structs.replace(found, approval=late).doubt is None
    for path in signs(Path.home()):
        path.unlink()
    dialog = command.dialog("trust")
    dialog.sees("count from now on? [y/N] ")
    dialog.type("y\n")
    dialog.end()
    assert state(command.project).doubt is None


def test_a_followed_save_confirms_nothing(command: Command) -> None:
    """Each save would end the words about an approval that nobody has confirmed."""
    command("trust", "--yes")
    agent_file(command.project, text="def register(api): ...  # later\n")
    approve(command.project, by="follow")
    assert "approved without a terminal on " in str(state(command.project).doubt)


def test_the_process_tree_has_command_lines_without_secrets(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of an approval helps to find its program."""
    monkeypatch.setenv("DEPLOY_TOKEN", "correcthorsebattery")
    line = f"sh -c '{sys.executable} -m agent_hooks trust --yes; : correcthorsebattery' </dev/null"
    subprocess.run(["setsid", "sh", "-c", line], cwd=command.project, timeout=120, check=True, capture_output=True)
    approval = state(command.project).approval
    assert approval is not None
    assert approval.origin is not None
    shell = approval.origin.processes[0]
    assert shell.name == "sh"
    assert "-m agent_hooks trust --yes; : [redacted" in shell.command
    assert "correcthorse" not in Path(Trust().store().path).read_text()
