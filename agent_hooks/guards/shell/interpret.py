"""Follows a script without executing it: variables, directories, pipes, functions, code within code.

Its base class, the invoker, judges the program of each simple command.  No file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import nullcontext

from agent_hooks.guards.base import Level
from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN, other_terminal
from agent_hooks.guards.shell.command import Book
from agent_hooks.guards.shell.expand import Expander
from agent_hooks.guards.shell.grammar import parse, read
from agent_hooks.guards.shell.invoke import MAX_NESTING, Invoker
from agent_hooks.guards.shell.limit import TOO_MUCH, Limit
from agent_hooks.guards.shell.line import Line
from agent_hooks.guards.shell.listings import EACH, all_sources, names_each
from agent_hooks.guards.shell.names import SHELLS, plain_name
from agent_hooks.guards.shell.origins import marks_of
from agent_hooks.guards.shell.outputs import DOWNLOADED
from agent_hooks.guards.shell.scan import substitutions
from agent_hooks.guards.shell.script import (
    MAX_LENGTH,
    Function,
    Group,
    Loop,
    Node,
    Pipe,
    Redirect,
    Sequence,
    Simple,
    Unreadable,
    spawns,
)
from agent_hooks.guards.shell.state import Shell
from agent_hooks.guards.shell.targets import Directories
from agent_hooks.guards.shell.words import EMPTY, TYPED, Text, Variables, Word, joined, marked
from agent_hooks.values.effects import Transfer

# Simple commands, counted each time they run.
MAX_COMMANDS = 2000
_CODE_VARIABLES = {"PROMPT_COMMAND", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR",
                   "VISUAL", "PAGER", "GIT_PAGER", "MANPAGER", "GIT_SSH", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF"}  # fmt: skip
# A terminal, or the stdin of the shell itself.
_TERMINALS = ("/dev/tty", "/dev/pts/", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev/console")
_WILDCARDS = lazy_pattern(r"(?:[*?]|\[[^]/]*\])+")
# A test in a loop, which leaves some files out.
_TESTS = lazy_pattern(r"\[|\btest\b|\bcase\b|\bif\b|&&|\|\|")
_BIDI = lazy_pattern("[\u202a-\u202e\u2066-\u2069]")


# The verbs with which a program takes the text on stdin and shows none of it.
_TAKES = lazy_pattern(
    r"(?:\S*/)?(?:(?:kubectl|oc|k)\b.* (?:apply|create|replace)\b|"
    r"helm\b.* (?:install|upgrade)\b(?!.*(?:--dry-run|--debug)))"
    r"(?!.* (?:-o|--output)\b).* (?:-f|--filename|--values)[ =]?(?:-|/dev/stdin)(?: |$)"
)


def _takes_secret(node: Node) -> bool:
    """Return whether a program reads a secret from stdin and uses it, as `docker login --password-stdin` does."""
    words = node.words if isinstance(node, Simple) else ()
    if "--password-stdin" in words or "--with-token" in words:
        return True
    return bool({"-", "/dev/stdin", "-f-"} & {*words}) and bool(_TAKES.fullmatch(" ".join(words)))


class Interpreter(Invoker):
    """Follows one command line."""

    def __init__(self, book: Book, directories: Directories, level: Level, limit: Limit | None = None) -> None:
        super().__init__(book, directories, level, limit)
        self._commands = 0
        self._nesting = 0
        self._defined: list[tuple[str, Node, Shell]] = []
        # The text that the command line reads.
        self.stdin = EMPTY

    def judge(self, command: str) -> None:
        """Follow a whole command line; raises `Unreadable`."""
        if _BIDI.search(command):
            self.report("invisible-characters", "characters that change the order in which text is displayed")
        shell = self._new_shell()
        shell.files |= {path: Text(text, frozenset({"file"})) for path, text in self.call.files.items()}
        if self.call.stays_open:
            self.stdin = Text(None, TYPED)
        self.script(command, shell, self.stdin)
        # The list grows while its members are followed.
        for name, body, where in self._defined:
            if id(body) not in self.called:
                # A trap runs; a function that nothing calls does not.
                runs = name.startswith("trap ")
                if not runs and not self.judging:
                    continue
                with nullcontext() if runs else self.recorder.pause():
                    self.call_function(name, body, [], where, self.stdin)

    def _new_shell(self) -> Shell:
        directories = self.directories
        values = {
            "HOME": Text(directories.home),
            "PWD": Text(directories.project),
            "TMPDIR": Text(directories.temp[0]),
            "IFS": Text(" \t\n"),
            "0": Text("bash"),
            "SHELL": Text("/bin/bash"),
            "BASH": Text("/bin/bash"),
        }
        # The shell of a tool is often started by the process that judges.
        if self.call.process:
            values["PPID"] = Text(str(self.call.process))
        return Shell(Variables(values), directories.project)

    # ---- structure

    def script(self, text: str, shell: Shell, stdin: Text) -> Text:
        """Follow a script, and return the text that it prints."""
        if not text.strip():
            return EMPTY
        if len(text) > MAX_LENGTH or self._nesting >= MAX_NESTING:
            raise Unreadable("scripts within scripts are nested too deeply")
        self._count()
        self.book.script(self, text)
        self.followed.add((self.running, text))
        self._nesting += 1
        around, outer = self.enter(), self.text
        self.text = text
        try:
            return self.run(parse(text, self.limit), shell, stdin)
        finally:
            self._nesting -= 1
            self.around, self.text = around, outer

    def run(self, node: Node, shell: Shell, stdin: Text) -> Text:
        """Follow one node, and return the text that it prints."""
        if isinstance(node, Simple):
            return self._simple(node, shell, stdin)
        if isinstance(node, Sequence):
            return joined([self.run(each, shell, stdin) for each in node.nodes])
        if isinstance(node, Pipe):
            return self._pipe(node, shell, stdin)
        if isinstance(node, Group):
            inner = shell.copy() if node.subshell else shell
            outer, self.line = self.line, Line(shell.cwd)
            stdin, target = self._redirects(node.redirects, shell, stdin)
            self.line = outer
            output = self.run(node.node, inner, stdin)
            return self._written(output, target, shell)
        if isinstance(node, Function):
            self.define(node.name, node.body, shell)
            if spawns(node.body, node.name):
                self.report("fork-bomb", "a function that calls itself without bound", f"{node.name}()")
            return EMPTY
        if isinstance(node, Loop):
            return self._loop(node, shell, stdin)
        for each in substitutions(node.text):
            self.script(each, shell.copy(), self.stdin)
        return EMPTY

    def define(self, name: str, body: Node, shell: Shell) -> None:
        """Keep code that runs later: a function, an alias, a trap.  Code that is never called is followed at the end."""
        shell.functions[name] = body
        self._defined.append((name, body, shell))

    def _pipe(self, node: Pipe, shell: Shell, stdin: Text) -> Text:
        before, words = len(self.programs), self.pipeline_words
        self.pipeline_words = []
        flow, taken = self.flow, self.taken
        self.taken = taken or _takes_secret(node.nodes[-1])
        for stage in node.nodes:
            self.flow = flow if stage is node.nodes[-1] else "pipe"
            stdin = self.run(stage, shell.copy(), stdin)
            if stdin.text is None and (marks := marks_of(self.programs[before:])):
                stdin.taint |= marks
        self.flow, self.taken, self.pipeline_words = flow, taken, words
        names = self.programs[before:]
        if any(name in ("nc", "ncat", "netcat", "telnet") for name in names) and any(name in SHELLS for name in names):
            self.report("shell-on-socket", "a shell on a network connection", " | ".join(names))
        return stdin

    def _loop(self, node: Loop, shell: Shell, stdin: Text) -> Text:
        expander = self._expander(shell)
        values = [word for raw in node.words for word in expander.words(raw)]
        if not node.words:
            # `for f; do` runs over the arguments.
            given = shell.variables.arrays.get("@", [])
            values = [each if isinstance(each, Word) else Word(each) for each in given]
        output = EMPTY
        # Of many values, those that name a file which controls the agent are followed too.
        followed = [*values[:8], *[word for word in values[8:] if self.controls(word, shell)][:8]]
        for word in followed or [Word(UNKNOWN)]:
            shell.set(node.name, word)
            removable = self.directories.removable(self.path(word, shell), self.level)
            if word.pattern and not removable and not self._matters(word, shell):
                # Of the files that a glob matches, only the parts without wildcards are known.
                text = _WILDCARDS.sub(UNKNOWN, word)
                taint = word.taint | EACH if self._loses_each(word, shell) else word.taint
                shell.variables.values[node.name] = Text(text, taint, unsure=word.unsure)
            output = self.run(node.body, shell, stdin)
        # The rest of many values is treated as one unknown value.
        if len(values) > 8:
            shell.variables.values[node.name] = Text(None)
            self.run(node.body, shell, stdin)
        return output

    def _loses_each(self, word: Word, shell: Shell) -> bool:
        """Return whether a loop without a test goes over all files of a directory, or all sources of a language."""
        folder, _, name = self.path(word, shell).rpartition("/")
        if not (re.fullmatch(r"[*?.]+", name) or all_sources([name])) or _TESTS.search(self.text):
            return False
        directories = self.directories
        inside = folder == directories.project or directories.in_project(folder) or directories.root(folder or "/")
        return inside and not directories.removable(f"{folder}/x", self.level)

    def _matters(self, word: Word, shell: Shell) -> bool:
        """Return whether a glob may match a file that controls the agent, a tree with one, or a process.

        The value of a loop over such a glob is its text, which stands for all files that it matches.
        """
        path = self.path(word, shell)
        controlled = self.control.stops_removing(path) or self.control.stops_reading(path)
        return controlled or self.controls(word, shell) or path.startswith("/proc/")

    def _expander(self, shell: Shell) -> Expander:
        def run(script: str, process: bool) -> Text:
            inner = shell.copy()
            if re.fullmatch(r"\s*<\s*\S+\s*", script):
                script = f"cat {script}"
            before, flow, taken = len(self.programs), self.flow, self.taken
            self.flow, self.taken = "kept", taken or not process
            output = self.script(script, inner, self.stdin)
            self.flow, self.taken = flow, taken
            if output.text is None:
                output = Text(None, output.taint | marks_of(self.programs[before:]))
            if output.text is None or process:
                return output
            return Text(output.text.rstrip("\n"), output.taint)

        return Expander(shell.variables, run, self.directories.home)

    def _count(self) -> None:
        self._commands += 1
        if self._commands > MAX_COMMANDS:
            raise Unreadable(TOO_MUCH)
        self.limit.check()

    # ---- one simple command

    def _simple(self, simple: Simple, shell: Shell, stdin: Text) -> Text:
        self._count()
        outer, self.line = self.line, Line(shell.cwd, stdin)
        self.line.exports = shell.exports
        taken = self.taken
        # `docker login --password-stdin < <(gh auth token)`
        self.taken = taken or (bool(simple.redirects) and _takes_secret(simple))
        output = self._one(simple, shell, stdin, self.line)
        self.line, self.taken = outer, taken
        return output

    def _one(self, simple: Simple, shell: Shell, stdin: Text, line: Line) -> Text:
        expander = self._expander(shell)
        argv: list[Word] = []
        for raw in simple.words:
            argv += expander.words(raw)
        environment = self._assign(simple, shell, expander, keep=not argv)
        self.pipeline_words += argv
        line.words, line.assigns = argv, environment
        stdin, target = self._redirects(simple.redirects, shell, stdin)
        if not argv:
            return self._written(EMPTY, target, shell)
        line.stdin = stdin
        output = self.command(argv, shell, stdin, environment)
        return self._written(output, target, shell)

    def _assign(self, simple: Simple, shell: Shell, expander: Expander, *, keep: bool) -> dict[str, Word]:
        """Evaluate assignments, and return them; with `keep`, there is no command, so the shell keeps them."""
        environment: dict[str, Word] = {}
        for name, raw in simple.assigns:
            plain = name.rstrip("+")
            # A subscript may hold substitutions.
            expander.run_all(plain)
            if raw.startswith("("):
                items = read_words(raw[1:-1], expander)
                old = shell.variables.arrays.get(plain, []) if name.endswith("+") else []
                shell.variables.arrays[plain] = [*old, *items]
                continue
            value = expander.text(raw) if raw else Word("")
            if name.endswith("+"):
                before = shell.variables.values.get(plain)
                value = marked((before.text or "" if before else "") + value, value)
            environment[plain] = value
            if self.judging and ("$(" in value or "`" in value):
                self.book.evaluated(self, value, shell)
            if plain in _CODE_VARIABLES:
                self.shell_code(value, shell, f"{plain}=")
            if keep:
                shell.set(plain, value)
        return environment

    def _redirects(self, redirects: Iterable[Redirect], shell: Shell, stdin: Text) -> tuple[Text, Word | None]:
        """Judge redirections; return the new stdin, and the file that gets stdout, if one does."""
        target: Word | None = None
        expander = self._expander(shell)
        running = plain_name(self.line.words[0])[0] if self.line is not None and self.line.words else ""
        for each in redirects:
            operator, raw, body = each.operator, each.target, each.body or ""
            if operator == "<<":
                text = Word(body) if each.quoted else expander.document(body)
                stdin = Text(str(text), text.taint)
                continue
            words = expander.words(raw) if raw else []
            word = words[0] if words else Word("")
            # A substitution in the word may have run other programs.
            self.running = running
            if self.line is not None and operator != "<<<":
                self.line.redirects.append((operator, word))
            if operator == "<<<":
                text = expander.text(raw) if raw else Word("")
                stdin = Text(f"{text}\n", text.taint, unsure=text.unsure)
            elif word.startswith(("/dev/tcp/", "/dev/udp/")):
                stdin = Text(None, DOWNLOADED)
                self.programs.append("/dev/tcp")
                host = word.split("/")[3]
                self.recorder.transfer(Transfer(None if UNKNOWN in host else host.lower(), "out", "a connection"))
            elif operator in ("<", "<>"):
                self.reads(word, shell)
                if operator == "<>":
                    # The file is opened for writing too, and made when it is absent.
                    self.effect("write", word, shell)
                if operator == "<>" and (self.controls(word, shell) or other_terminal(self.path(word, shell))):
                    self.writes(word, shell)
                if self.call.stays_open and self.path(word, shell).startswith(_TERMINALS):
                    stdin = self.stdin
                    continue
                stdin = self.content(word, shell)
                stdin.file = "" if stdin.text is not None or not word.known else self.path(word, shell)
            elif operator in ("<&", ">&") and (word.isdigit() or word in ("-", "")):
                if operator == "<&" and word not in ("0", "-"):
                    # The descriptor may be a copy of stdin.
                    stdin = shell.files.get(f"/dev/fd/{word}") or Text(None, self.stdin.taint)
            elif operator != "<&":
                self.writes(word, shell, overwrite=operator not in (">>", "&>>"))
                if word.taint >= EACH and operator in (">", ">|") and names_each(word) and self._writes_nothing():
                    self.report("find-delete", "empties all files of a directory", word)
                target = word
        return stdin, target

    def _writes_nothing(self) -> bool:
        """Return whether the present program prints nothing, so that its redirection empties a file."""
        return self.line is not None and " ".join(self.line.words) in (
            "",
            ":",
            "true",
            "cat /dev/null",
            "echo -n",
            "printf ",
        )

    def _written(self, output: Text, target: Word | None, shell: Shell) -> Text:
        if target is None:
            return output
        shell.files[self.path(target, shell)] = output
        return EMPTY


def read_words(text: str, expander: Expander) -> list[Word]:
    """Return the words between the parentheses of an array."""
    node = read(f": {' '.join(text.split(chr(10)))}")
    return [word for raw in node.words[1:] for word in expander.words(raw)] if isinstance(node, Simple) else []
