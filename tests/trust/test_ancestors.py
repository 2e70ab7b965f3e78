"""Whether an agent started this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_hooks.trust.ancestors import _MARKS, Process, agent_of, ancestors, marked

# Prints the ancestor's name and ends, from a process whose environment holds no mark.
ASK = "from agent_hooks.trust.ancestors import agent_ancestor; print(agent_ancestor())"


def process(*arguments: str, file: str = "", name: str = "x") -> Process:
    """Return a process with arguments; its file is the first of them unless one is given."""
    return Process(7, 1, file or arguments[0], arguments, name)


AGENTS = {
    "a program by its name": (process("/usr/local/bin/codex", "exec"), "codex"),
    "a program under another first argument": (process("vim", file="/opt/claude"), "claude"),
    "a program that was replaced while it ran": (process("x", file="/usr/bin/claude (deleted)"), "claude"),
    "a file that is named by its version": (
        process("x", file="/home/u/.local/share/claude/versions/2.1.329"),
        "claude",
    ),
    "a renamed process": (process("node", name="claude"), "claude"),
    "a script of node": (process("/usr/bin/node", "--max-old-space-size=8192", "/usr/bin/gemini"), "gemini"),
    "a package of node": (process("node", "/x/node_modules/@anthropic-ai/claude-code/cli.js", "-p"), "claude"),
    "a package behind an option": (process("node", "-r", "./a.js", "/x/node_modules/@openai/codex/bin/x.js"), "codex"),
    "a dotted program of bun": (process("/x/node_modules/opencode-ai/bin/.opencode"), "opencode"),
    "a wrapper script": (process("/bin/sh", "/usr/local/bin/copilot"), "copilot"),
    "Cursor's own node": (process("/h/.local/share/cursor-agent/versions/1/node", "index.js"), "cursor-agent"),
    "our host": (process("/v/bin/python3.12", "/v/bin/agent-hooks", "run"), "agent-hooks"),
    "our host as a module": (process("python", "-m", "agent_hooks", "rpc"), "agent-hooks"),
    "our host as a file": (process("python", "-P", "/v/site-packages/agent_hooks/__main__.py", "serve"), "agent-hooks"),
    "our host as a text": (process("python", "-c", "from agent_hooks.cli.main import main; main()"), "agent-hooks"),
}
OTHERS = {
    "an editor": process("/usr/share/code/code", "--type=ptyHost"),
    "an editor's server": process("/h/.vscode-server/bin/1/node", "/h/.vscode-server/bin/1/out/bootstrap-fork", "-x"),
    "Cursor the editor": process("/opt/cursor/cursor", "/home/ann/claude"),
    "a shell of a user with an agent's name": process("-bash", file="/home/claude/bin/bash"),
    "an argument": process("vim", "/x/node_modules/@anthropic-ai/claude-code/cli.js"),
    "a session of tmux": process("tmux", "new", "-s", "claude"),
    "a command of a shell": process("bash", "-c", "claude --version"),
    "a launcher": process("uv", "run", "agent-hooks", "trust"),
    "a test run": process("python", "-m", "pytest", "tests/agent_hooks"),
    "a process without arguments": process("", name="kthreadd"),
}


@pytest.mark.parametrize(("given", "agent"), AGENTS.values(), ids=AGENTS)
def test_an_agent_is_recognised_by_file_arguments_or_name(given: Process, agent: str) -> None:
    """Each of the three signs is enough."""
    assert agent_of(given) == agent


@pytest.mark.parametrize("given", OTHERS.values(), ids=OTHERS)
def test_another_program_is_no_agent(given: Process) -> None:
    """A person's terminal, editor and launchers are not refused."""
    assert agent_of(given) is None


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _MARKS}


def run(*command: str) -> str:
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout.strip()


def test_a_terminal_of_a_person_has_no_agent_above_it() -> None:
    """The tests run in such a terminal, or in CI."""
    assert run(sys.executable, "-c", ASK) == "None"


def test_a_shell_between_an_agent_and_a_command_does_not_hide_the_agent(tmp_path: Path) -> None:
    """The chain of parents is followed to its end."""
    claude = tmp_path / "claude"
    shutil.copy("/bin/bash", claude)
    told = run(str(claude), "-c", f'bash -c "{sys.executable} -c \\"{ASK}\\"; true"; true')
    assert told.startswith("claude (process ")


def test_a_name_with_parentheses_does_not_hide_the_parents(tmp_path: Path) -> None:
    """The system puts the name of a process in parentheses, and the name may hold more of them."""
    claude, odd = tmp_path / "claude", tmp_path / "a) S 1 (b"
    for path in (claude, odd):
        shutil.copy("/bin/bash", path)
    told = run(str(claude), "-c", f"'{odd}' -c '{sys.executable} -c \"{ASK}\"; true'; true")
    assert told.startswith("claude (process ")


def test_the_first_process_ends_the_chain() -> None:
    """The chain ends at the process with the number one, or where this user may not read on."""
    chain = list(ancestors(os.getpid()))
    assert chain[0].pid == os.getpid()
    assert chain[1].pid == os.getppid()
    assert chain[-1].parent == 0


def test_the_mark_of_an_agent_counts_without_a_parent() -> None:
    """A program that outlives the agent's shell keeps the environment."""
    assert marked({"CLAUDECODE": "1"}) == "claude (by $CLAUDECODE)"
    assert marked({"CLAUDECODE": "", "PATH": "/bin", "CURSOR_TRACE_ID": "x", "TERM_PROGRAM": "vscode"}) is None
