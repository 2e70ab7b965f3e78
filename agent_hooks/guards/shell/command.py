"""The types of rules: a rule is a function that gets one command that would run, and reports findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent_hooks.guards.base import Level
from agent_hooks.guards.shell.inspector import Inspector, Shell
from agent_hooks.guards.shell.names import SHELLS
from agent_hooks.guards.shell.words import EMPTY, Text, Word


class Command:
    """One command that would run.

    `name`: the plain name of the program; `argv`: all words; `shell`: the state of the shell that runs it; `stdin`: the
    text that it reads; `environment`: the assignments before it; `output`: the text that it prints, which a rule may
    set.
    """

    __slots__ = ("argv", "environment", "interpreter", "name", "output", "shell", "stdin")

    def __init__(
        self,
        interpreter: Inspector,
        name: str,
        argv: list[Word],
        shell: Shell,
        stdin: Text,
        environment: dict[str, Word],
    ) -> None:
        self.interpreter = interpreter
        self.name = name
        self.argv = argv
        self.shell = shell
        self.stdin = stdin
        self.environment = environment
        self.output: Text | None = None

    def __str__(self) -> str:
        """Return the command as one line."""
        return " ".join(self.argv)

    def inside(self, directory: Word) -> Command:
        """Return the same command, run in another directory."""
        shell = self.shell.copy()
        shell.cwd = self.path(directory)
        return Command(self.interpreter, self.name, self.argv, shell, self.stdin, self.environment)

    @property
    def level(self) -> Level:
        return self.interpreter.level

    def report(self, rule: str, reason: str, culprit: object = None) -> None:
        """Keep a finding about this command."""
        self.interpreter.report(rule, reason, str(self) if culprit is None else culprit)

    def reads(self, *words: Word) -> None:
        for word in words:
            self.interpreter.reads(word, self.shell)

    def writes(self, *words: Word, overwrite: bool = True) -> None:
        for word in words:
            self.interpreter.writes(word, self.shell, overwrite=overwrite)

    def deletes(self, *words: Word) -> None:
        for word in words:
            self.interpreter.deletes(word, self.shell)

    def tree(self, *words: Word, rule: str = "rm-rf", verb: str = "removes a tree by force") -> None:
        for word in words:
            self.interpreter.tree(word, self.shell, rule=rule, verb=verb)

    def is_root(self, word: Word) -> bool:
        return self.interpreter.is_root(word, self.shell)

    def controls(self, word: Word) -> bool:
        """Return whether a word names a file that controls the agent, and that the agent may not change."""
        return self.interpreter.controls(word, self.shell)

    def path(self, word: str) -> str:
        return self.interpreter.path(word, self.shell)

    def runs(self, argv: list[Word], stdin: Text = EMPTY) -> Text:
        """Judge a command that this one starts."""
        return self.interpreter.command(argv, self.shell.copy(), stdin)

    def shell_code(self, word: Word | Text, stdin: Text = EMPTY) -> Text:
        """Judge a text that this command hands to a shell."""
        return self.interpreter.shell_code(word, self.shell.copy(), self.name, stdin)


Rule = Callable[[Command], None]


def rules_of(programs: str, *rules: Rule) -> dict[str, tuple[Rule, ...]]:
    """Return the same rules for several programs; `programs`: their names, separated by blanks."""
    return dict.fromkeys(programs.split(), rules)


class Book:
    """All rules and builtins, by the program's name.

    `rules`: judge a program; `builtins`: change the shell, and return the text that is printed; `carriers`: rules for
    programs that carry a command, applied before the carried command is judged; `interpreter`: judges shells and
    languages; `every`: judges each program after its rules; `globbed`: the names that a glob for a program may match,
    `rm` first.
    """

    def __init__(
        self,
        rules: Mapping[str, tuple[Rule, ...]],
        builtins: Mapping[str, Callable[[Command], Text]],
        carriers: Mapping[str, Rule],
        interpreter: Rule,
        every: Rule,
    ) -> None:
        self.every = every
        self.rules = rules
        self.builtins = builtins
        self.carriers = carriers
        self.interpreter = interpreter
        self.globbed = sorted({*rules, *SHELLS}, key=lambda name: (name != "rm", name))
