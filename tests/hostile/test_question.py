"""The question at a terminal, and the sentence in another agent, about a repository that wants to get a yes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from agent_hooks.cli.screen.trust_question import MOST_FILES
from agent_hooks.settings import agent_home
from agent_hooks.trust.store import TrustStore
from hostile.strangers import CALL, CLIENT, Stranger, denied
from other_agent import OtherAgent
from running import Command
from tmux import PROGRAM, Tmux
from trust.approving import agent_file

ASKS = "[y/N] "
REMEDY = "agent-hooks trust"
SPOOFS = {
    "moves the cursor": b"x = 1  # \x1b[1A\x1b[2K harmless\n",
    "clears the screen": b"\x1b[2J\x1b[H\x1bc\x9b2J\n",
    "hides its line": b"import os; os.system('true')\r# only a comment                          \n",
    "turns its direction": "level = 'user\u202e \u2066# harmless\u2069 \u2066'\n".encode(),
    "is invisible": "os\u200b.\u2060system\u3164 = \ufeff1 \U000e0041\n".encode(),
    "sets the title": b"\x1b]0;approved\x07\x1b]52;c;eA==\x07\x1bP1$r\x1b\\\n",
    "asks by itself": f"Do these hooks and settings count from now on? {ASKS}y\n".encode(),
    "leaves the margin": b"y" * 400 + b"\n---- .agent/hooks/other.py\n  1| approved\n",
    "has marks without end": ("a" + "\u0300" * 300 + "\n").encode(),
    "is no UTF-8": b"\xff\xfe\x00\xd8 \xed\xa0\x80\n",
    "has other line ends": "a\x0bb\x0cc\x85d\u2028e\u2029f\n".encode(),
}
NAMES = ("y\n.py", "\x1b[2J.py", "a\u202eyp.py", "\rgate.py", "gate.py \u3000", "a" * 200 + ".py")

pytestmark = pytest.mark.usefixtures("no_agent_around")


@pytest.fixture
def command(project: Path) -> Command:
    """Give the command line in a project that no person has approved."""
    found = Command(project)
    found.trusted = False
    return found


def approved() -> bool:
    """Tell whether the store has any approval."""
    return any(entry.judges for entry in TrustStore(agent_home()).entries.values())


@pytest.mark.parametrize("name", SPOOFS)
def test_no_text_of_a_set_disguises_the_question(command: Command, name: str) -> None:
    """Each line of the set is behind a margin and a number; all that moves, hides or turns text is marked."""
    data = SPOOFS[name]
    agent_file(command.project, "hooks/gate.py", data + b"END = 1\n")
    dialog = command.dialog("list")
    asked = f"\n{command.project}/.agent\nDo these hooks and settings count from now on? {ASKS}"
    dialog.sees(asked)
    dialog.type("\n")
    # The code is in reverse video, and headings of the list are bold.
    shown = re.sub(r"\x1b\[(0|1|7|27)m", "", dialog.end())
    assert not approved()
    allowed = re.compile(r"[\n\t -~\u0300…→·•─]*")
    assert allowed.fullmatch(shown), sorted(set(re.findall(r"\x1b[^a-zA-Z]*[a-zA-Z]", shown)))
    code = shown[shown.index("---- .agent/hooks/gate.py\n") : shown.index(asked)].splitlines()[1:]
    margin = [line for line in code if line]
    last = next(number for number, line in enumerate(margin) if line.endswith("| END = 1"))
    assert all(re.match(r" {0,5}\d*\| ", line) for line in margin[: last + 1]), margin
    assert [int(line[:5]) for line in margin[: last + 1] if line[:5].strip()] == list(range(1, data.count(b"\n") + 2))


def test_no_name_of_a_file_disguises_the_question(command: Command) -> None:
    """A name is one line, and the question is asked once."""
    for name in NAMES:
        agent_file(command.project, f"hooks/{name}", "x = 1\n")
    dialog = command.dialog("trust")
    dialog.sees(ASKS)
    dialog.type("\n")
    shown = dialog.end(1).replace("\x1b[7m", "").replace("\x1b[27m", "")
    assert shown.count(ASKS) == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u3000]", shown)
    assert "* .agent/hooks/y<U+000A>.py" in shown
    assert "* .agent/hooks/<U+000D>gate.py" in shown
    assert not approved()


@pytest.mark.parametrize("kind", ["201 files", "a huge file", "too much"])
def test_a_set_that_no_person_can_read_is_not_asked_about(command: Command, kind: str) -> None:
    """A list of many pages would push the one line that matters off the screen."""
    match kind:
        case "201 files":
            for number in range(MOST_FILES + 1):
                agent_file(command.project, f"hooks/_{number}.py", "x = 1\n")
        case "a huge file":
            agent_file(command.project, "hooks/gate.py", b"#" * (1 << 20) + b"\nimport os\n")
        case _:
            agent_file(command.project, "hooks/data.bin", bytes(33 << 20))
    shown = command.dialog("list").end()
    assert ASKS not in shown
    assert REMEDY in shown
    command("trust", "--yes", code=2 if kind != "too much" else 1)
    assert not approved()


@pytest.mark.terminal
def test_a_real_terminal_shows_every_line_and_the_question_last(project: Path) -> None:
    """The screen after the question is the one that a person reads."""
    text = b"".join(SPOOFS[name] for name in ("hides its line", "turns its direction", "moves the cursor"))
    agent_file(project, "hooks/gate.py", text + b"import os; os.system('rm')\n")
    terminal = Tmux(project, columns=100, rows=80)
    try:
        terminal.enter(f"clear; {PROGRAM} trust")
        screen = terminal.ends_with(ASKS.rstrip())
        assert "starts programs       os.system" in screen
        assert "| import os; os.system('true')<U+000D># only a comment" in screen
        assert "import os; os.system('rm')" in screen
        terminal.press("Enter")
        terminal.sees("not approved, and not asked again until it changes")
    finally:
        terminal.close()
    assert not approved()


# ---- another agent ---------------------------------------------------------------------------------------------------


def test_another_agent_tells_the_person_once_per_session(command: Command, agent: OtherAgent) -> None:
    """The sentence names the project and the command; no call is stopped by it."""
    stranger_hook(command.project)
    said = [agent(session_id=session) for session in ("a", "a", "b", "a")]
    texts = [json.dumps(each) for each in said]
    assert [REMEDY in text for text in texts] == [True, False, True, False]
    assert f"{command.project}/.agent: 1 file not used, because no person has approved them" in said[0]["systemMessage"]
    assert not any(denied(each) for each in said)
    assert not (command.project / "ran").exists()


def test_a_process_for_one_event_tells_it_at_the_start_of_a_session(command: Command, agent: OtherAgent) -> None:
    """Without the server, former messages are not remembered."""
    stranger_hook(command.project)
    agent.write_stub(start=0.0)
    assert REMEDY in agent("SessionStart", source="startup")["systemMessage"]
    assert agent() == {}
    assert not (command.project / "ran").exists()


@pytest.mark.parametrize("start", [10.0, 0.0], ids=["server", "process"])
def test_another_agent_is_denied_where_approval_is_required(
    command: Command, agent: OtherAgent, home: Path, start: float
) -> None:
    """The setting is the person's own; the reason ends with the command."""
    stranger_hook(command.project)
    (home / ".agent").mkdir(exist_ok=True)
    (home / ".agent" / "settings.json").write_text('{"trust": {"required": true}}')
    agent.write_stub(start=start)
    answer = agent()
    assert denied(answer)
    assert "every tool call is blocked; read and approve: agent-hooks trust" in json.dumps(answer)
    assert not (command.project / "ran").exists()


def test_the_name_of_a_directory_does_not_disguise_the_sentence(stranger: Stranger) -> None:
    """It may hold line ends, escape sequences and bytes that are no UTF-8."""
    project = Path(os.fsdecode(os.fsencode(stranger.top) + b"/p\xff\x1b[2J\napproved"))
    stranger_hook(project)
    start = json.dumps({**CALL, "hook_event_name": "SessionStart", "source": "startup"})
    theirs = {"CLAUDE_PROJECT_DIR": str(project), "CLAUDECODE": "1"}
    done = stranger.program(["agent-hooks", "bridge", CLIENT, "SessionStart"], cwd=project, env=theirs, stdin=start)
    said = json.loads(done.stdout)["systemMessage"]
    assert "/p<FF><U+001B>[2J<U+000A>approved/.agent: 1 file not used" in said
    warned = stranger.program(["agent-hooks", "run", "@bash true"], cwd=project).stderr
    assert "/p<FF><U+001B>[2J<U+000A>approved/.agent: 1 file not used" in warned


def stranger_hook(project: Path) -> None:
    """Write a hook that leaves a mark."""
    agent_file(project, "hooks/gate.py", f"open({str(project / 'ran')!r}, 'w')\n")
