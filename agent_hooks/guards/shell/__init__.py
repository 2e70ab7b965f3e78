"""`builtin:command-safety-guard`: reads a shell command as bash would, and stops what cannot be undone.

    grammar, scan     what the script is made of          words, outputs    what its words become
    interpret         what would run                      carriers, rules   what is known of programs
    names             which program a word names          inspector         which files and code are reached

Above: guards.  Below: base, sensitive.
"""

from __future__ import annotations

from agent_hooks.guards.base import Finding, GuardedCall, Level
from agent_hooks.guards.shell.interpret import Interpreter
from agent_hooks.guards.shell.rules import BOOK
from agent_hooks.guards.shell.script import MAX_LENGTH, Unreadable
from agent_hooks.guards.shell.targets import Place

__all__ = ["CommandSafetyGuard"]


class CommandSafetyGuard:
    """Judges the command of a shell tool, at a level, with extended packs of rules perhaps."""

    name = "builtin:command-safety-guard"
    tools = ("bash", "exec")

    def __init__(self, level: Level = "project", packs: tuple[str, ...] = (), protected: tuple[str, ...] = ()) -> None:
        self._level = level
        self._packs = frozenset(packs)
        self._protected = protected  # absolute paths of hooks and settings that lie elsewhere

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return what is wrong with the command, blocks before questions."""
        command = call.input.get("command")
        if not isinstance(command, str):
            return []
        return self.follow(command, call).findings

    def follow(self, command: str, call: GuardedCall, *, trace: bool = False) -> Interpreter:
        """Follow a command; the interpreter that comes back knows what it found and, with `trace`, what would run."""
        place = Place(call.cwd, call.home, call.temp, self._protected)
        interpreter = Interpreter(BOOK, place, self._level, self._packs)
        interpreter.trace = [] if trace else None
        if len(command) > MAX_LENGTH:
            text = f"the command is longer than {MAX_LENGTH // 1024} KiB; put it into a file"
            interpreter.report("too-long", text, undecidable=True)
            return interpreter
        try:
            interpreter.judge(command)
        except (Unreadable, RecursionError) as exc:
            why = str(exc) if isinstance(exc, Unreadable) else "it is nested too deeply"
            interpreter.report("unreadable", f"the command cannot be read: {why}", undecidable=True)
        interpreter.findings.sort(key=lambda finding: finding.undecidable)
        return interpreter
