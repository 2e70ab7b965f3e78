"""`builtin:command-safety-guard`: reads a shell command as bash would, and stops commands that cannot be undone.

grammar, scan            from the text to the nodes of a script (`script`)
expand, braces, words    from a word as written to the words that the program gets
interpret                from the nodes to the programs that would run
carriers, names          from the words of a command to the program that really runs
outputs                  from a harmless program to the text that it prints
builtins, rules          from a program to its findings
inspector, targets       from a path or a piece of code to its findings
python, languages        from code of another language to its calls
"""

from __future__ import annotations

from agent_hooks.guards.base import DEFAULT_OPTIONS, Finding, GuardedCall, GuardOptions
from agent_hooks.guards.control import ControlFiles
from agent_hooks.guards.shell.interpret import Interpreter
from agent_hooks.guards.shell.rules import BOOK
from agent_hooks.guards.shell.script import MAX_LENGTH, Unreadable
from agent_hooks.guards.shell.targets import Directories

__all__ = ["CommandSafetyGuard"]


class CommandSafetyGuard:
    """Judges the command of a shell tool."""

    name = "builtin:command-safety-guard"
    tools = ("bash", "exec")

    def __init__(self, options: GuardOptions = DEFAULT_OPTIONS) -> None:
        self._level = options.level
        self._packs = frozenset(options.packs)
        self._options = options
        # The programs of the last command, for its record.
        self.programs: tuple[str, ...] = ()

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return all findings about the command, the certain ones before the undecidable."""
        command = call.input.get("command")
        if not isinstance(command, str):
            self.programs = ()
            return []
        followed = self.follow(command, call)
        self.programs = tuple(dict.fromkeys(followed.programs))
        return followed.findings

    def follow(self, command: str, call: GuardedCall, *, trace: bool = False) -> Interpreter:
        """Follow a command, and return the interpreter with its findings.

        With `trace`, its `trace` lists the commands that would run.
        """
        directories = Directories(call.cwd, call.home, call.temp)
        interpreter = Interpreter(BOOK, directories, self._level, self._packs)
        interpreter.call, interpreter.control = call, ControlFiles(self._options, call.unlocked)
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
