"""The types of rules: a rule is a function that gets one command that would run, and reports findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Literal

from msgspec import Struct

from agent_hooks.guards.base import Level
from agent_hooks.guards.recorder import shown
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.inspector import Inspector
from agent_hooks.guards.shell.names import SHELLS
from agent_hooks.guards.shell.state import Shell
from agent_hooks.guards.shell.words import EMPTY, TYPED, Text, Word
from agent_hooks.values.effects import Access, Discard, Install, Kill, Privilege, Transfer


class Command(Struct, eq=False):
    """One command that would run.

    `name`: the plain name of the program; `argv`: all words; `shell`: the state of the shell that runs it; `stdin`: the
    text that it reads; `environment`: the assignments before it; `output`: the text that it prints, which a rule may
    set; `recorded`: the table of programs has recorded its effects, so its rules record nothing; `told`: the table of
    programs has told all files that the words name, and they have been judged.
    """

    interpreter: Inspector
    name: str
    argv: list[Word]
    shell: Shell
    stdin: Text
    environment: dict[str, Word]
    output: Text | None = None
    recorded: bool = False
    told: bool = False

    def __str__(self) -> str:
        """Return the command as one line."""
        return " ".join(self.argv)

    def inside(self, directory: Word) -> Command:
        """Return the same command, run in another directory."""
        shell = self.shell.copy()
        shell.cwd = self.path(directory)
        inside = Command(self.interpreter, self.name, self.argv, shell, self.stdin, self.environment)
        inside.recorded = self.recorded
        return inside

    @property
    def level(self) -> Level:
        return self.interpreter.level

    def report(self, rule: str, reason: str, culprit: object = None, *, wall: bool = False) -> None:
        """Keep a finding about this command; `wall`: the person is not asked, whatever the rule is."""
        self.interpreter.report(rule, reason, str(self) if culprit is None else culprit, wall=wall)

    # ---- effects that are recorded and judged

    def reads(self, *words: Word) -> None:
        for word in () if self.recorded else words:
            self.interpreter.reads(word, self.shell)

    def writes(self, *words: Word, overwrite: bool = True, tree: bool = False) -> None:
        for word in () if self.recorded else words:
            self.interpreter.writes(word, self.shell, overwrite=overwrite, tree=tree)

    def deletes(self, *words: Word, tree: bool = False) -> None:
        for word in () if self.recorded else words:
            self.interpreter.deletes(word, self.shell, tree=tree)

    def loses(self, *words: Word, tree: bool = False) -> None:
        """Record and judge files that are lost; a word may stand for every file that was listed."""
        for word in () if self.recorded else words:
            self.interpreter.loses(word, self.shell, tree=tree)

    def tree(self, *words: Word, rule: str = "rm-rf", verb: str = "removes a tree by force") -> None:
        for word in () if self.recorded else words:
            self.interpreter.tree(word, self.shell, rule=rule, verb=verb)

    # ---- effects that are only recorded

    def effect(self, access: Access, *words: Word, tree: bool = False) -> None:
        """Record effects on files; `tree`: everything inside is meant too."""
        for word in words:
            if word:
                self.interpreter.effect(access, word, self.shell, tree=tree)

    def transfers(self, direction: Literal["in", "out"], host: Word | str | None, what: str) -> None:
        """Record content that leaves the machine or comes to it; `host`: `None` when it is not known."""
        known = None if host is None or UNKNOWN in host else str(host).lower()
        self.interpreter.recorder.transfer(Transfer(known, direction, shown(what), self.name))

    def discards(self, what: str) -> None:
        """Record work that is lost without a file of it being named."""
        self.interpreter.recorder.other(Discard(what, self.name))

    def installs(self, *names: str) -> None:
        """Record packages that are installed; an empty name stands for those that the project names."""
        for name in names:
            self.interpreter.recorder.other(Install(shown(name), self.name))

    def kills(self, *targets: str) -> None:
        """Record processes that are ended."""
        for target in targets:
            self.interpreter.recorder.other(Kill(shown(target), self.name))

    def gains(self, what: str) -> None:
        """Record a right that is gained or given: `root`, `setuid`, `world-writable`."""
        self.interpreter.recorder.other(Privilege(what, self.name))

    def unknown(self, kind: Literal["opaque", "dynamic", "unparsed"], why: str) -> None:
        """Record that the effects of this command are not known."""
        self.interpreter.recorder.unknown(kind, str(self), why)

    # ---- facts

    def is_root(self, word: Word) -> bool:
        return self.interpreter.is_root(word, self.shell)

    def is_machine(self, *words: Word) -> bool:
        """Return whether one of the words names a root, other than the project."""
        return any(self.interpreter.is_machine(word, self.shell) for word in words)

    def controls(self, word: Word) -> bool:
        """Return whether a word names a file that controls the agent, and that the agent may not change."""
        return self.interpreter.controls(word, self.shell)

    def path(self, word: str) -> str:
        return self.interpreter.path(word, self.shell)

    def runs(self, argv: list[Word], stdin: Text | None = None) -> Text:
        """Judge a command that this one starts."""
        return self.interpreter.carried(argv, self.shell.copy(), self._handed_on if stdin is None else stdin)

    def shell_code(self, word: Word | Text, stdin: Text | None = None) -> Text:
        """Judge a text that this command hands to a shell."""
        stdin = self._handed_on if stdin is None else stdin
        return self.interpreter.shell_code(word, self.shell.copy(), self.name, stdin)

    @property
    def _handed_on(self) -> Text:
        """The stdin of a command that this one starts: most programs read their own stdin whole, but not a terminal."""
        return self.stdin if self.stdin.taint >= TYPED else EMPTY


Rule = Callable[[Command], None]


def rules_of(programs: str, *rules: Rule) -> dict[str, tuple[Rule, ...]]:
    """Return the same rules for several programs; `programs`: their names, separated by blanks."""
    return dict.fromkeys(programs.split(), rules)


class Book(Struct, eq=False, kw_only=True, dict=True):
    """All rules and builtins, by the program's name.

    `rules`: judge a program; `builtins`: change the shell, and return the text that is printed; `carriers`: rules for
    programs that carry a command, applied before the carried command is judged; `interpreter`: judges shells and
    languages; `every`: judges each program after its rules; `effects`: records the effects of a program before its rules
    are applied, and returns whether they are known; `files`: judges the files of a program, also of one that carries
    another; `followers`: the rules that find effects, without those that only judge; `consoles`: judges each program that
    the agent may type into; `script`: judges the text of each script.

    `net` judges each program at last by all its texts, and `evaluated` a text that the shell may evaluate later.
    """

    rules: Mapping[str, tuple[Rule, ...]]
    builtins: Mapping[str, Callable[[Command], Text]]
    carriers: Mapping[str, Rule]
    interpreter: Rule
    every: Rule
    consoles: Rule
    effects: Callable[[Command], bool]
    files: Rule
    followers: Mapping[str, tuple[Rule, ...]]
    script: Callable[[Inspector, str], None]
    net: Rule
    evaluated: Callable[[Inspector, str, Shell], None]

    @cached_property
    def globbed(self) -> list[str]:
        """The names that a glob for a program may match, `rm` first."""
        return sorted({*self.rules, *SHELLS}, key=lambda name: (name != "rm", name))
