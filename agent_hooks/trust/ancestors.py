"""Whether this process was started by an agent: by our host, or by another coding agent.

`trust`, `untrust` and `unlock` are a person's decisions, so they refuse below an agent.  Two signs tell:

1. An ancestor process is an agent.  A process can rename itself, so its file, its arguments and its name all count.  An
   interpreter is judged by the script that it runs.
2. The environment holds the mark of an agent, which also stays when the processes in between have ended.

Only the names of programs count, so the terminal of an editor in which an agent runs as well is no agent.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from agent_hooks.errors import AgentHooksError

# The names of programs.  `agent` alone is too common a name; the path of Cursor's own tells (see `_PACKAGES`).
_AGENTS = {
    *("agent-hooks", "aider", "amp", "auggie", "claude", "claude-code", "cline", "codex", "copilot", "crush"),
    *("cursor-agent", "droid", "gemini", "goose", "kilocode", "kimi", "kiro-cli", "openclaw", "opencode", "pi", "qwen"),
}
# Parts of the paths of programs whose file has another name, a version for example.
_PACKAGES = {
    "/share/claude/versions/": "claude",
    "/@anthropic-ai/claude-code": "claude",
    "/@openai/codex": "codex",
    "/@google/gemini-cli": "gemini",
    "/@qwen-code/qwen-code": "qwen",
    "/@github/copilot": "copilot",
    "/cursor-agent/": "cursor-agent",
    "/opencode-ai/": "opencode",
    "/pi-coding-agent/": "pi",
    "/node_modules/openclaw/": "openclaw",
    "/agent_hooks/__main__.py": "agent-hooks",
    "/agent_hooks/cli/": "agent-hooks",
}
_INTERPRETER = re.compile(r"(?:node|nodejs|bun|deno|tsx|python[0-9.]*|pypy[0-9.]*|uv|bash|sh|dash|zsh|ksh|fish)")
_SUFFIX = re.compile(r"\.(?:exe|[cm]?[jt]s|py|sh|bin)$")
# Variables that agents set for the programs they start, and the names of the agents.
_MARKS = {
    "CLAUDECODE": "claude",
    "CODEX_SANDBOX": "codex",
    "CODEX_THREAD_ID": "codex",
    "COPILOT_CLI": "copilot",
    "CURSOR_AGENT": "cursor-agent",
    "GEMINI_CLI": "gemini",
    "GEMINI_SESSION_ID": "gemini",
    "OPENCODE": "opencode",
    "QWEN_CODE": "qwen",
    "CLINE_ACTIVE": "cline",
    "AI_AGENT": "an agent",
}
# The first arguments of an interpreter in which its script is looked for, so that options with values do not hide it.
_FIRST = 8
# Programs that make a terminal, and show it at another one to a user.  By the names that the system has for them.
_SHOW_TERMINALS = frozenset({"tmux: server", "screen", "script"})
# The major numbers of terminals: consoles, serial lines, and terminals that a program makes.
_TERMINALS = frozenset({4, *range(136, 144)})
# A chain of parents is short; the limit ends a chain that changes while it is read.
_DEEPEST = 200


class Process(Struct, frozen=True):
    """A process: its number, its file if that is known, its arguments, and the name that the system gives it."""

    pid: int
    parent: int
    file: str
    arguments: tuple[str, ...]
    name: str


def agent_ancestor() -> str | None:
    """Return the agent that started this process, with the sign of it, for an error text; `None` when none is found."""
    for process in ancestors(os.getppid()):
        if (agent := agent_of(process)) is not None:
            return f"{agent} (process {process.pid})"
    return marked(os.environ)


def refuse_below_an_agent(command: str) -> None:
    """Raise `AgentHooksError` when an agent started this process; `command` is the refused one, `trust` for example."""
    if (agent := agent_ancestor()) is not None:
        raise AgentHooksError(
            f"agent-hooks {command} is for a person, and {agent} has started this process; "
            "a person runs it in a terminal that no agent has opened"
        )


def is_unattended() -> bool:
    """Return whether nobody sees the terminal of this process.

    `tmux`, `screen` or `script` has made it then, and has no other terminal open.  `tmux new -d` does so until a user
    attaches to it.  `False` where that is unknown.
    """
    below = _terminal_of(os.getpid())
    for process in ancestors(os.getppid()):
        if process.name in _SHOW_TERMINALS and _shows_nowhere(process.pid, below):
            return True
        below = _terminal_of(process.pid)
    return False


def marked(environment: Mapping[str, str]) -> str | None:
    """Return the agent whose mark the environment holds, with the variable."""
    return next((f"{agent} (by ${name})" for name, agent in _MARKS.items() if environment.get(name)), None)


def agent_of(process: Process) -> str | None:
    """Return the name of the agent that a process is, `None` for another program."""
    words = [process.file, *process.arguments[:1]]
    if any(_INTERPRETER.fullmatch(_program(word)) for word in words):
        words += _scripts(process.arguments[1:])
    for word in words:
        for part, agent in _PACKAGES.items():
            if part in word:
                return agent
    return next((name for name in (*map(_program, words), process.name) if name in _AGENTS), None)


def _scripts(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of an interpreter that may name the program it runs; a module becomes a path."""
    found: list[str] = []
    named = False
    for index, word in enumerate(arguments[:_FIRST]):
        before = arguments[index - 1] if index else ""
        if before in ("-c", "-e", "-p", "--eval", "-lc", "-ic"):
            # The text of a program names its modules; it is no path.
            found += ["/agent_hooks/cli/"] if re.search(r"\bagent_hooks\.(?:cli|server|__main__)\b", word) else []
            break
        if before == "-m":
            found.append(f"/{word.replace('.', '/')}/cli/" if word.partition(".")[0] == "agent_hooks" else word)
            break
        if word.startswith("-"):
            continue
        # The first word is the script; a later one counts by its path only, because it may be a value.
        if not named or any(part in word for part in _PACKAGES):
            found.append(word)
        named = True
    return found


def _program(word: str) -> str:
    """Return the name of a program from its path: without directories, suffix, and the mark of a login shell."""
    return _SUFFIX.sub("", posixpath.basename(word.removesuffix(" (deleted)"))).lstrip("-.")


# ---- reading processes -----------------------------------------------------------------------------------------------


def ancestors(pid: int) -> Iterator[Process]:
    """Yield a process and its ancestors, as far as this user may read them."""
    read = _from_proc if os.path.isdir("/proc/self") else _from_ps
    for _ in range(_DEEPEST):
        if pid <= 0 or (process := read(pid)) is None:
            return
        yield process
        pid = process.parent


def running(name: str) -> Iterator[Process]:
    """Yield the running processes of the agent whose program has this name, as far as this user may read them."""
    if os.path.isdir("/proc/self"):
        read, pids = _from_proc, [int(each) for each in os.listdir("/proc") if each.isdigit()]
    else:
        listed = subprocess.run(["/bin/ps", "-axo", "pid="], capture_output=True, text=True, check=False)
        read, pids = _from_ps, [int(each) for each in listed.stdout.split()]
    for pid in pids:
        if (process := read(pid)) is not None and agent_of(process) == name:
            yield process


def _from_proc(pid: int) -> Process | None:
    stat = _content(f"/proc/{pid}/stat")
    # The name stands in parentheses, and may hold any character, parentheses too.
    name, _, rest = stat[stat.find("(") + 1 :].rpartition(")")
    fields = rest.split()
    if len(fields) < 2:
        return None
    try:
        file = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        # The process of another user, or of the kernel.
        file = ""
    return Process(pid, int(fields[1]), file, tuple(_content(f"/proc/{pid}/cmdline").split("\0")), name)


def _terminal_of(pid: int) -> tuple[int, int]:
    """Return the major and the minor number of a process's terminal, `(0, 0)` without a terminal."""
    fields = _content(f"/proc/{pid}/stat").rpartition(")")[2].split()
    number = int(fields[4]) if len(fields) > 4 else 0
    return number >> 8 & 0xFF, number & 0xFF | number >> 12 & 0xFFF00


def _shows_nowhere(pid: int, made: tuple[int, int]) -> bool:
    """Return whether a process has only terminals open that it has made."""
    directory = f"/proc/{pid}/fd"
    try:
        names = os.listdir(directory)
    except OSError:
        return False
    for name in names:
        with suppress(OSError):
            device = os.stat(f"{directory}/{name}").st_rdev
            if os.major(device) in _TERMINALS and (os.major(device), os.minor(device)) != made:
                return False
    return True


def _content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _from_ps(pid: int) -> Process | None:
    # The path is fixed, so that no other program of this name runs.
    found = subprocess.run(
        ["/bin/ps", "-ww", "-o", "ppid=", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    names = subprocess.run(["/bin/ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True, check=False)
    parent, _, arguments = found.stdout.strip().partition(" ")
    if not parent.isdigit():
        return None
    # On macOS, `comm` is the path of the file.
    file = names.stdout.strip()
    return Process(pid, int(parent), file, tuple(arguments.split()), posixpath.basename(file))
