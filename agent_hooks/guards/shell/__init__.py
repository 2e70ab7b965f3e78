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

from collections.abc import Iterable
from functools import lru_cache

from agent_hooks.guards.base import DEFAULT_OPTIONS, Finding, GuardedCall, GuardOptions, Run
from agent_hooks.guards.commands import NO_COMMANDS, commands_of
from agent_hooks.guards.control import ControlFiles
from agent_hooks.guards.objects import Odd
from agent_hooks.guards.recorder import Recorder
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.interpret import Interpreter
from agent_hooks.guards.shell.limit import Limit
from agent_hooks.guards.shell.rules import BOOK
from agent_hooks.guards.shell.script import MAX_LENGTH, Unreadable
from agent_hooks.guards.shell.targets import Directories
from agent_hooks.guards.table import QUESTIONS
from agent_hooks.guards.tools import use_of

__all__ = ["CommandSafetyGuard"]


class CommandSafetyGuard:
    """Judges the commands of a tool that runs some; `tools` has the table of tools and arguments."""

    name = "builtin:command-safety-guard"
    # Any tool may run a command.
    tools: tuple[str, ...] = ()

    def __init__(self, options: GuardOptions = DEFAULT_OPTIONS) -> None:
        self._level = options.level
        self._options = options
        # The programs of the last command, for its record.
        self.programs: tuple[str, ...] = ()

    def find(self, call: GuardedCall) -> list[Finding]:
        """Return all findings about the commands of a call, the certain ones before the undecidable."""
        try:
            commands = commands_of(call.tool_name, call.input, call.cwd)
        except Odd as exc:
            self.programs = ()
            return [
                Finding("unreadable", f"the argument {exc.args[0]!r} cannot be read as a command", undecidable=True)
            ]
        if commands is NO_COMMANDS:
            self.programs = ()
            return []
        limit = Limit()
        run = [self.follow(command, call, limit=limit) for command in commands.run]
        typed = [self.follow(text, call, limit=limit) for text in commands.typed if text.strip()]
        self.programs = tuple(dict.fromkeys(program for each in run for program in each.programs))
        certain = [finding for each in typed for finding in each.findings if not finding.undecidable]
        found = [*(finding for each in run for finding in each.findings), *certain]
        return found if len(run) == 1 and not certain else sorted(found, key=lambda finding: finding.undecidable)

    def lines(self, call: GuardedCall) -> list[tuple[str, tuple[str, ...]]]:
        """Return the programs that the command of a call would run, as exceptions see them, each with its words."""
        try:
            commands = commands_of(call.tool_name, call.input, call.cwd)
        except Odd:
            return []
        return [line for each in commands.run for line in self.follow(each, call, trace=True).lines]

    def runs(self, call: GuardedCall) -> list[Run] | None:
        """Return the programs that the commands of a call would run, `None` when a command cannot be read."""
        try:
            followed = [
                self.follow(each, call, trace=True) for each in commands_of(call.tool_name, call.input, call.cwd).run
            ]
        except Odd:
            return None
        if any(each.unread for each in followed):
            return None
        return [run for each in followed for run in each.runs]

    def record(self, call: GuardedCall, recorder: Recorder) -> bool:
        """Record the effects of the commands of a call, and return whether its tool only runs commands."""
        try:
            commands = commands_of(call.tool_name, call.input, call.cwd)
        except Odd as exc:
            recorder.unknown("unparsed", str(exc.args[0]), "this argument cannot be read as a command")
            return True
        limit = Limit()
        for command in (*commands.run, *(text for text in commands.typed if text.strip())):
            self.follow(command, call, recorder=recorder, limit=limit)
        return use_of(call.tool_name) in ("shell", "code", "kill") and bool(commands.run or commands.typed)

    def follow(
        self,
        command: str,
        call: GuardedCall,
        *,
        trace: bool = False,
        recorder: Recorder | None = None,
        limit: Limit | None = None,
    ) -> Interpreter:
        """Follow a command, and return the interpreter with its findings.

        With `trace`, its `trace` and `lines` list the commands that would run; `recorder` gets the effects, and then no
        file is judged; `limit`: the time of the whole call.
        """
        directories = _directories(call.cwd, call.home, call.temp)
        interpreter = Interpreter(BOOK, directories, self._level, limit)
        interpreter.recorder = recorder or interpreter.recorder
        interpreter.call, interpreter.judging = call, recorder is None
        if interpreter.judging:
            # A verdict needs no recorded effects.
            interpreter.recorder.paused = 1
            interpreter.control = ControlFiles(self._options, call.unlocked)
        interpreter.trace = [] if trace else None
        if len(command) > MAX_LENGTH:
            text = f"the command is longer than {MAX_LENGTH // 1024} KiB; put it into a file"
            interpreter.report("too-long", text, undecidable=True, unread=True)
            interpreter.recorder.unknown("unparsed", command[:200], text)
            return interpreter
        try:
            interpreter.judge(command)
        except (Unreadable, RecursionError) as exc:
            why = str(exc) if isinstance(exc, Unreadable) else "it is nested too deeply"
            text = f"the command cannot be read: {why}"
            interpreter.report("unreadable", text, undecidable=True, unread=True)
            # The effects that were found before stand beside it.
            interpreter.recorder.paused = 0
            interpreter.recorder.unknown("unparsed", command[:200], text)
        interpreter.findings = sorted(most_specific(interpreter.findings), key=lambda finding: finding.undecidable)
        return interpreter


@lru_cache(16)
def _directories(cwd: str, home: str, temp: tuple[str, ...]) -> Directories:
    """Return the directories of a call; most calls of a process have the same."""
    return Directories(cwd, home, temp)


# One question names one thing: of several questions about one program, the more specific ones speak alone.
# `gh secret delete TOKEN` loses a secret, and it changes a service.  The user is asked about the secret.
#
# 1. Only questions give way, and only to questions: a wall, or a finding that is not certain, stays as it is.
# 2. Both are about the same program with the same words.
# 3. An exception or a kept answer for the specific rule lets the program pass.  Then the general rule asks nothing.


_SERVICE = ("cloud", "services")
# A specific rule, and the general ones that say nothing more about the same program.
_SPEAKS_FOR: dict[str, tuple[str, ...]] = {
    "access": (*_SERVICE, "publish", "windows"),
    "backup": (*_SERVICE, "send-out"),
    "broker": _SERVICE,
    "ci": _SERVICE,
    "find-delete": ("rm-rf",),
    "git-history": ("rm-rf", "git-worktree"),
    "http-delete": _SERVICE,
    "iac": _SERVICE,
    "machine-state": _SERVICE,
    "monitoring": _SERVICE,
    "payment": _SERVICE,
    "persistence": _SERVICE,
    "publish": _SERVICE,
    "secret-store": (*_SERVICE, "access", "ci"),
    "sql": (*_SERVICE, "broker"),
}


def most_specific(findings: list[Finding]) -> list[Finding]:
    """Return the findings without the questions that a more specific one makes needless, in their order."""
    if len(findings) < 2:
        return findings
    answered = set(_answered(findings))
    return [
        each for each in findings if not _is_question(each) or (each.subject, each.words, each.rule) not in answered
    ]


def _answered(findings: Iterable[Finding]) -> Iterable[tuple[str, tuple[str, ...], str]]:
    for each in findings:
        if _is_question(each):
            for rule in _SPEAKS_FOR.get(each.rule, ()):
                yield each.subject, each.words, rule


def _is_question(finding: Finding) -> bool:
    """Return whether a finding is a certain question about a program that is known."""
    known = bool(finding.subject) and finding.subject != UNKNOWN
    return known and finding.rule in QUESTIONS and not finding.wall and not finding.undecidable
