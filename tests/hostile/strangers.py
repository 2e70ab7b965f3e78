"""A repository of a stranger: programs that leave a mark when they run, and every command line to run beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_hooks.bridges import open_bridge
from support import PATIENCE

_HERE = Path(__file__).parent
CLIENT = "claude-code"
CALL = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Bash",
    "tool_input": {"command": "true"},
    "tool_use_id": "1",
}
"""A tool call of another agent that does nothing."""
DANGEROUS = {**CALL, "tool_input": {"command": "rm -rf /"}}
"""A tool call that the built-in guards deny."""
JUDGED = json.dumps({"tool": "bash", "input": {"command": "ls"}}) + "\n"
WITH_CHECKPOINT = ("run", "@bash echo made > by-the-agent")
"""A turn that changes a file, so the files are saved before it."""
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("run", "@bash true"),
    ("run", '@find {"pattern": "*"}'),
    ("run", '@grep {"pattern": "x"}'),
    ("list",),
    ("list", "--points"),
    ("list", "--json"),
    ("doctor",),
    ("doctor", CLIENT),
    ("check", "{hook}"),
    ("emit", "tool_call", "--hook", "{hook}"),
    ("replay", "{transcript}"),
    WITH_CHECKPOINT,
    ("checkpoints", "list"),
    ("checkpoints", "show"),
    ("checkpoints", "diff"),
    ("checkpoints", "restore", "--yes"),
    ("checkpoints", "undo"),
    ("undo", "--yes"),
    ("checkpoints", "prune", "--keep", "5"),
    ("guard", "explain", "ls"),
    ("guard", "check", "--json"),
    ("install", CLIENT, "--dry-run"),
    ("uninstall", CLIENT, "--dry-run"),
    ("serve", "--status"),
    ("schema", "settings"),
    ("bridge", CLIENT, "PreToolUse"),
    ("install", CLIENT, "--local"),
    ("doctor",),
    ("uninstall", CLIENT),
    ("install", CLIENT, "--project"),
    ("uninstall", CLIENT),
)
"""Every command line, in an order in which each has something to do.  Words in braces are files of the person."""
HONEST_HOOK = "def register(api):\n    api.on('tool_call', lambda event, ctx: None)\n"


class Stranger:
    """A project of a stranger, and the marks that its programs left.

    `top`: the project's directory.  `work`: the directory that the person works in.  `marks`: the directory of the marks,
    which is outside of the project.  `environment`: that of each command.
    """

    def __init__(self, top: Path, marks: Path) -> None:
        self.top = top
        self.work = top
        self.marks = marks
        marks.mkdir()
        own = marks.parent / "own"
        own.mkdir()
        (own / "hook.py").write_text(HONEST_HOOK)
        (own / "calls.jsonl").write_text("")
        self._files = {
            "hook": str(own / "hook.py"),
            "transcript": str(own / "calls.jsonl"),
        }
        names = ("CLAUDE", "COPILOT", "CURSOR", "GEMINI", "GIT_", "PYTHON")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
        # As in a shell whose environment is active.
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    @property
    def ran(self) -> list[str]:
        """The names of the programs that ran."""
        return sorted(each.name for each in self.marks.iterdir())

    def shell(self, name: str, path: str | None = None) -> str:
        """Write a program into the project that leaves the mark `name`; return its path."""
        file = self.top / (path or f"programs/{name}")
        file.parent.mkdir(parents=True, exist_ok=True)
        # A filter passes its input on, so that git goes on as well.
        file.write_text(f"#!/bin/sh\n/usr/bin/touch '{self.marks}/{name}'\nexec /bin/cat\n")
        file.chmod(0o755)
        return str(file)

    def python(self, name: str, path: str | None = None) -> str:
        """Return Python source that leaves the mark `name`, and write it to `path` in the project if that is given."""
        source = f"open({str(self.marks / name)!r}, 'w').close()\n"
        if path is not None:
            (self.top / path).parent.mkdir(parents=True, exist_ok=True)
            (self.top / path).write_text(source)
        return source

    def run(
        self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the `agent-hooks` on the PATH, as a person does."""
        given = _stdin(args) if stdin is None else stdin
        return self.program(["agent-hooks", *self._words(args)], cwd=cwd, env=env, stdin=given)

    def run_all(self, lines: Sequence[Sequence[str]], *, warm: bool = False) -> list[dict[str, Any]]:
        """Run command lines one after the other, in the directory that the person works in; return codes and outputs.

        `warm`: they share all imports, which takes half the time.
        """
        given = json.dumps([[self._words(args), _stdin(args)] for args in lines])
        done = subprocess.run(
            [sys.executable, "-P", str(_HERE / "driver.py"), *([str(_HERE.parent)] if warm else [])],
            cwd=self.work,
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def _words(self, args: Sequence[str]) -> list[str]:
        return [word.format_map(self._files) if word[:1] == "{" and word[-1:] == "}" else word for word in args]

    def program(
        self,
        line: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run any program in the project; it must not end with a traceback."""
        done = subprocess.run(
            # With a shell, the PATH of `env` counts.
            ["/bin/sh", "-c", 'exec "$@"', "sh", *line],
            cwd=cwd or self.top,
            env={**self.environment, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr, f"{line}: {done.stdout}\n{done.stderr}"
        return done

    def entry(self, target: str = "local", event: str = "PreToolUse") -> list[str]:
        """Install for the other agent, and return the command line of an entry."""
        assert self.run("install", CLIENT, f"--{target}").returncode == 0
        name = {"local": "settings.local.json", "project": "settings.json"}[target]
        settings = json.loads((self.top / ".claude" / name).read_text())
        found = next(each for each in open_bridge(CLIENT).installed(settings) if each.event == event)
        return list(found.command)

    def send(self, entry: Sequence[str], event: Any = None, env: Mapping[str, str] | None = None) -> Any:
        """Send an event to an entry, as the other agent does, and return the answer."""
        theirs = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(self.top), **(env or {})}
        done = self.program(entry, env=theirs, stdin=json.dumps(CALL if event is None else event))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def _stdin(args: Sequence[str]) -> str:
    """Return the stdin that a command line reads; the others get an answer that no person has given."""
    if args[0] == "bridge":
        return json.dumps(CALL)
    return JUDGED if tuple(args[:2]) == ("guard", "check") else "" if args[:1] == ("run",) else "y\ny\n"


def denied(answer: Any) -> bool:
    """Tell whether an answer to a tool call denies it."""
    return bool(answer.get("hookSpecificOutput", {}).get("permissionDecision") == "deny")
