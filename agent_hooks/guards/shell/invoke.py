"""Finds the program that a simple command really runs (`sudo env X=1 sh -c '…'`), and applies the rules for it."""

from __future__ import annotations

from abc import abstractmethod
from fnmatch import fnmatchcase

from agent_hooks.guards.base import Level, Run, plain
from agent_hooks.guards.recorder import as_pattern, words_of
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.builtins import listing
from agent_hooks.guards.shell.carriers import carried
from agent_hooks.guards.shell.command import Book, Command
from agent_hooks.guards.shell.inspector import CONTROLS, Inspector
from agent_hooks.guards.shell.limit import Limit
from agent_hooks.guards.shell.names import SHELLS, is_language, plain_name
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.origins import marks_of
from agent_hooks.guards.shell.outputs import DECODED, DOWNLOADED, printed, taint_of
from agent_hooks.guards.shell.program_listings import listed_text
from agent_hooks.guards.shell.script import Node, Unreadable
from agent_hooks.guards.shell.state import Shell
from agent_hooks.guards.shell.targets import Directories
from agent_hooks.guards.shell.words import EMPTY, TYPED, Text, Word, joined, marked
from agent_hooks.values.effects import Program

MAX_NESTING = 16
"""The most scripts within scripts, and commands within commands."""


class Invoker(Inspector):
    """Applies the rules of a book to the programs of one command line.

    `trace`: the commands that would run, when it is a list, and `lines` the same with their directories, redirections
    and stdin, as exceptions see them; `runs`: the same, each with its parts; `called`: the bodies of the functions that
    were followed, by `id`.
    """

    def __init__(self, book: Book, directories: Directories, level: Level, limit: Limit | None = None) -> None:
        super().__init__(directories, level, limit)
        self.book = book
        # The bodies of the functions that are being followed, the outermost first.
        self._calling: list[int] = []
        self.called: set[int] = set()
        self.trace: list[str] | None = None
        self.lines: list[tuple[str, tuple[str, ...]]] = []
        self.runs: list[Run] = []

    @abstractmethod
    def run(self, node: Node, shell: Shell, stdin: Text) -> Text:
        """Follow one node, and return the text that it prints."""

    def command(self, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word] | None = None) -> Text:
        """Find the program that a command really runs, and judge it; `argv`: the expanded words."""
        via = self.via
        try:
            return self._command(argv, shell, stdin, environment or {})
        finally:
            self.via = via

    def _command(self, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word]) -> Text:
        for _ in range(MAX_NESTING):
            if not argv:
                # `env` alone prints all variables.
                if self.running != "env":
                    return EMPTY
                listed = listing(Command(self, "env", [Word("env")], shell, stdin, environment))
                return Text(None, listed.taint | marks_of(["env"]))
            name = self.program(argv[0])
            if UNKNOWN in name or (argv[0].unsure and not name):
                return self._dynamic(argv, shell, stdin)
            if body := shell.functions.get(argv[0]):
                output = self.call_function(str(argv[0]), body, argv[1:], shell, stdin, environment)
                if name not in self.book.rules:
                    return output
            self.programs.append(name)
            self.running = name
            inner = self._carry(name, argv, shell, stdin, environment)
            if inner is None:
                return self._judge(name, argv, shell, stdin, environment)
            self._record_program(name, argv, shell)
            if self.judging:
                self.book.files(Command(self, name, argv, shell, stdin, environment))
            elif not self.recorder.paused:
                self.book.effects(Command(self, name, argv, shell, stdin, environment))
            self.via = (*self.via, name)
            if name == "env":
                shell = self._changed_directory(argv, shell)
            argv = inner
        raise Unreadable("commands within commands are nested too deeply")

    def _record_program(self, name: str, argv: list[Word], shell: Shell) -> None:
        if not self.recorder.paused:
            self.recorder.program(Program(as_pattern(name), words_of(argv), as_pattern(shell.cwd), self.via))

    def _changed_directory(self, argv: list[Word], shell: Shell) -> Shell:
        """Return the shell in the directory that `env -C` changes to."""
        for directory in ParsedOptions(argv, "uC", ("--chdir", "--unset"), stop_early=True).value("C", "--chdir"):
            shell = shell.copy()
            shell.cwd = self.path(directory, shell)
        return shell

    def program(self, word: Word) -> str:
        """Return the name of the program that a command word runs, and report a disguised one."""
        name, disguised = plain_name(word)
        if disguised:
            reason = "a command name with invisible characters, or with characters that look like others"
            self.report("invisible-characters", reason, ascii(word))
        if word.pattern and any(char in name for char in "*?["):
            return next((each for each in self.book.globbed if fnmatchcase(each, name)), name)
        return name

    def _dynamic(self, argv: list[Word], shell: Shell, stdin: Text) -> Text:
        """Judge a command with an unknown name as if it were each of some harmful programs."""
        self.recorder.unknown("dynamic", " ".join(argv), "the program is known only when the call runs")
        if argv[0].strip(UNKNOWN):
            self._record_program(self.program(argv[0]), argv, shell)
        if not self.judging:
            return Text(None, taint_of(argv) | (stdin.taint - TYPED))
        with self.recorder.pause():
            return self._judge_dynamic(argv, shell, stdin)

    def _judge_dynamic(self, argv: list[Word], shell: Shell, stdin: Text) -> Text:
        if taint_of(argv[:1]) & (DOWNLOADED | DECODED | TYPED):
            self.code_taint(taint_of(argv[:1]), str(argv[0]))
            return Text(None, taint_of(argv))
        others = len(self.findings)
        if any(self.control.stops_writing(self.path(word, shell)) for word in argv[1:]):
            self.report(
                "write-guard-settings", f"the command's name is not known: {CONTROLS}", argv[0], undecidable=True
            )
        before = self.findings
        for name in ("rm", "git", "chmod", "dd", "sh"):
            self.findings = []
            self._judge(name, [Word(name), *argv[1:]], shell, stdin, {})
            found, self.findings = self.findings, before
            for each in found:
                if name == "rm" and not any(word.startswith("-") for word in argv[1:]):
                    continue
                self.report(each.rule, f"the command's name is not known; if it is {name}: {each.reason}", each.culprit,
                            undecidable=True)  # fmt: skip
            if len(self.findings) > others:
                break
        return Text(None, taint_of(argv) | (stdin.taint - TYPED))

    def call_function(
        self,
        name: str,
        body: Node,
        args: list[Word],
        shell: Shell,
        stdin: Text,
        environment: dict[str, Word] | None = None,
    ) -> Text:
        """Follow a function; `args`: its arguments, which are unknown when the list is empty.

        `environment`: the assignments before its name, which hold for its programs.
        """
        if id(body) in self._calling or len(self._calling) >= MAX_NESTING:
            return Text(None)
        self.called.add(id(body))
        self._calling.append(id(body))
        variables = shell.variables
        kept = {key: value for key, value in variables.values.items() if key.isdigit()}
        kept_array = variables.arrays.get("@")
        for key in kept:
            del variables.values[key]
        for number, word in enumerate(args, 1):
            variables.values[str(number)] = Text(str(word), word.taint, unsure=word.unsure)
        if args:
            variables.arrays["@"] = list(args)
        kept_exports = {name: shell.exports.get(name) for name in environment or ()}
        shell.exports.update(environment or {})
        try:
            return self.run(body, shell, stdin)
        finally:
            for key, value in kept_exports.items():
                if value is None:
                    shell.exports.pop(key, None)
                else:
                    shell.exports[key] = value
            self._calling.pop()
            variables.arrays.pop("@", None)
            if kept_array is not None:
                variables.arrays["@"] = kept_array
            variables.values.update(kept)

    def _carry(
        self, name: str, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word]
    ) -> list[Word] | None:
        """Return the command that this one carries, `None` when it carries none."""
        if special := self.book.carriers.get(name):
            special(Command(self, name, argv, shell, stdin, environment))
        found = carried(name, argv)
        if found is None:
            return None
        rest, assigns = found
        if not rest and stdin.taint >= TYPED:
            self.book.consoles(Command(self, name, argv, shell, stdin, environment))
        for word in assigns:
            key, _, value = word.partition("=")
            environment[key] = marked(value, word)
        if name == "env" and (split := ParsedOptions(argv, "uCS", ("--split-string",), stop_early=True)).has(
            "S", "--split-string"
        ):
            text = " ".join([*split.value("S", "--split-string"), *map(str, split.operands)])
            self.script(text, shell, stdin)
            return []
        if name == "exec" and not rest:
            return []
        return rest

    def _judge(self, name: str, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word]) -> Text:
        """Apply the rules to the program that really runs, and return the text that it prints."""
        if self.trace is not None:
            self.trace.append(" ".join(argv).replace(UNKNOWN, "…"))
            if self.line is not None:
                self.lines.append((self.line.text(self.directories.project), self.spelled(self.line)))
            files = {path: text.text for path, text in shell.files.items() if text.text is not None}
            self.runs.append(plain(Run((name, *argv[1:]), shell.cwd, stdin.text, stdin.file, files)))
        context = Command(self, name, argv, shell, stdin, environment)
        self._record_program(name, argv, shell)
        via, self.via = self.via, (*self.via, name)
        self.running = name
        try:
            output = self._apply(context)
            if self.judging:
                self.book.net(context)
            return output
        finally:
            self.via = via

    def _apply(self, context: Command) -> Text:
        """Record the effects of a program, apply its rules, and return the text that it prints."""
        book, name, argv, shell, stdin = self.book, context.name, context.argv, context.shell, context.stdin
        if stdin.taint >= TYPED:
            book.consoles(context)
        if builtin := book.builtins.get(name):
            return builtin(context)
        known = self.judging or book.effects(context)
        if self.judging and not _asks_for_help(name, argv):
            book.files(context)
        if name in SHELLS or is_language(name):
            if not known:
                context.unknown("opaque", "it runs code that is not known")
            book.interpreter(context)
            return Text(None, taint_of(argv) | (stdin.taint - TYPED))
        if "/" in argv[0] and (path := self.path(argv[0], shell)) in shell.files:
            self.file_as_code(path, shell)
        elif not known:
            context.unknown("opaque", "the effects of this program are not known")
        if not _asks_for_help(name, argv):
            if not self.judging and context.recorded:
                for rule in book.followers.get(name, ()):
                    rule(context)
            else:
                for rule in book.rules.get(name, ()):
                    rule(context)
                book.every(context)
        if context.recorded and (listed := listed_text(context)) is not None:
            return listed
        if name in ("cat", "tee", "head", "tail", "sort", "uniq", "nl", "bat"):
            return self._filtered(name, argv, shell, stdin)
        if context.output is not None:
            return context.output
        return printed(name, argv, stdin)

    def _filtered(self, name: str, argv: list[Word], shell: Shell, stdin: Text) -> Text:
        operands = ParsedOptions(argv, "nc").operands
        if name == "tee":
            for word in operands:
                shell.files[self.path(word, shell)] = stdin
            return stdin
        if not operands or operands == ["-"]:
            return stdin
        return joined([stdin if word == "-" else self.content(word, shell) for word in operands])


def _asks_for_help(name: str, argv: list[Word]) -> bool:
    """Return whether a program would only print its help."""
    if name in ("rm", "git", "docker", "podman", "chmod", "chown", "dd", "kubectl", "terraform"):
        words = argv[1:]
        return bool(words) and (words[-1] in ("--help", "--version") or (words[0] == "help" and name != "rm"))
    return False
