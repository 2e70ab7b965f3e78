"""Follows what a script would do, without doing it: variables, directories, pipes, functions, code within code.

Each simple command is taken apart until the program that really runs is known (`sudo env X=1 sh -c '…'`), and that is
shown to the rules.  Nothing is executed and nothing is read.  Above: the guard.  Below: grammar, words, carriers, rules.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from time import perf_counter

from agent_hooks.guards.base import Finding, Level
from agent_hooks.guards.sensitive import (
    UNKNOWN,
    machine_file,
    normalise,
    raw_device,
    sensitive,
    sensitive_glob,
    system_path,
)
from agent_hooks.guards.shell.carriers import carried
from agent_hooks.guards.shell.grammar import read
from agent_hooks.guards.shell.options import Options
from agent_hooks.guards.shell.outputs import DECODED, DOWNLOADED, printed, taint_of
from agent_hooks.guards.shell.scan import substitutions
from agent_hooks.guards.shell.script import (
    MAX_CODE,
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
)
from agent_hooks.guards.shell.targets import Place
from agent_hooks.guards.shell.words import NOTHING, Expander, Text, Variables, Word

MAX_NESTING = 16  # scripts within scripts
MAX_SECONDS = 0.5  # a guard is quick; what takes this long was made to
MAX_COMMANDS = 2000  # simple commands of one call, those in loops and functions counted each time
SHELLS = {"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh"}
LANGUAGES = re.compile(
    r"(python|pypy|perl|ruby|node|nodejs|php|lua|deno|bun|osascript|tclsh|rscript|pwsh|powershell)[\d.]*"
)
_CODE_VARIABLES = {"PROMPT_COMMAND", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR",
                   "VISUAL", "PAGER", "GIT_PAGER", "MANPAGER", "GIT_SSH", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF"}  # fmt: skip
_DESTRUCTIVE = re.compile(
    r"\b(rm|rmdir|unlink|dd|mkfs\S*|shred|chmod|chown|curl|wget|truncate|wipefs|rmtree|git\s+(reset|clean|push|checkout))\b"
)
_HIDDEN = {"Cf", "Zs", "Zl", "Zp", "Cc", "Co", "Cn"}  # categories of characters that nobody sees
# Cyrillic, Greek and dashes that look like ASCII, by their code points
_ALIKE = dict(
    zip(
        (
            0x430,
            0x435,
            0x43E,
            0x440,
            0x441,
            0x443,
            0x445,
            0x456,
            0x458,
            0x455,
            0x501,
            0x4BB,
            0x4CF,
            0x51B,
            0x51D,
            0x261,
            0x3B1,
            0x3BF,
            0x3BD,
            0x3C1,
            0x3C4,
            0x3C5,
            0x3BA,
            0x217C,
            0x2215,
            0x2010,
            0x2011,
            0x2013,
            0x2014,
            0x2212,
        ),
        "aeopcyxijsdhlqwgaovptukl/-----",
        strict=True,
    )
)
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
EMPTY = Text("")


class Book:
    """What is known of programs, by name.

    `rules` judge a program; `builtins` change the shell and say what is printed; `carriers` are
    asked before a carried command is looked for; `interpreter` judges shells and languages.
    """

    def __init__(
        self,
        rules: Mapping[str, tuple[Rule, ...]],
        builtins: Mapping[str, Callable[[Command], Text]],
        carriers: Mapping[str, Rule],
        interpreter: Rule,
    ) -> None:
        self.rules = rules
        self.builtins = builtins
        self.carriers = carriers
        self.interpreter = interpreter
        self.globbed = sorted({*rules, *SHELLS}, key=lambda name: (name != "rm", name))


class Shell:
    """The state of one shell, as far as it is known."""

    __slots__ = ("cwd", "files", "functions", "stack", "variables")

    def __init__(self, variables: Variables, cwd: str) -> None:
        self.variables = variables
        self.cwd = cwd
        self.functions: dict[str, Node] = {}
        self.files: dict[str, Text] = {}
        self.stack: list[str] = []

    def copy(self) -> Shell:
        """Return the state a subshell starts with; files are everybody's."""
        shell = Shell(self.variables.copy(), self.cwd)
        shell.functions, shell.files, shell.stack = dict(self.functions), self.files, list(self.stack)
        return shell


class Interpreter:
    """Follows one command line and keeps what it finds, in `findings`; `seen` are the programs it came upon."""

    def __init__(self, book: Book, place: Place, level: Level, packs: frozenset[str]) -> None:
        self.book = book
        self.place = place
        self.level = level
        self.packs = packs
        self.findings: list[Finding] = []
        self.seen: list[str] = []
        self._commands = 0
        self._begun = perf_counter()
        self._nesting = 0
        self._defined: list[tuple[str, Node, Shell]] = []
        self._calling: list[int] = []
        self._called: set[int] = set()
        self.trace: list[str] | None = None  # the commands that would run, for whoever wants them explained
        self.said: list[str] = []  # the words of the commands of the pipeline so far

    def judge(self, command: str) -> None:
        """Follow a whole command line; raises `Unreadable`."""
        if _BIDI.search(command):
            self.report("invisible-characters", "characters that change the order of what is shown")
        shell = self._new_shell()
        self.script(command, shell, EMPTY)
        for name, body, where in self._defined:  # grows while it is followed
            if id(body) not in self._called:
                self._call(name, body, [], where, EMPTY)

    def _new_shell(self) -> Shell:
        place = self.place
        values = {
            "HOME": Text(place.home),
            "PWD": Text(place.project),
            "TMPDIR": Text(place.temp[0]),
            "IFS": Text(" \t\n"),
            "0": Text("bash"),
            "SHELL": Text("/bin/bash"),
            "BASH": Text("/bin/bash"),
        }
        return Shell(Variables(values), place.project)

    def report(self, rule: str, reason: str, culprit: object = "", *, undecidable: bool = False) -> None:
        """Keep a finding."""
        text = str(culprit).replace(UNKNOWN, "…")
        finding = Finding(rule, reason, text if len(text) <= 120 else text[:119] + "…", undecidable)
        if all((each.rule, each.undecidable) != (rule, undecidable) for each in self.findings):
            self.findings.append(finding)

    # ---- structure

    def script(self, text: str, shell: Shell, stdin: Text) -> Text:
        """Follow a script; return what it prints."""
        if not text.strip():
            return EMPTY
        if len(text) > MAX_LENGTH or self._nesting >= MAX_NESTING:
            raise Unreadable("scripts within scripts are nested too deeply")
        self._count()
        self._nesting += 1
        try:
            return self.run(_quick(text) or read(text), shell, stdin)
        finally:
            self._nesting -= 1

    def run(self, node: Node, shell: Shell, stdin: Text) -> Text:
        """Follow one node; return what it prints."""
        if isinstance(node, Simple):
            return self._simple(node, shell, stdin)
        if isinstance(node, Sequence):
            return _joined([self.run(each, shell, stdin) for each in node.nodes])
        if isinstance(node, Pipe):
            return self._pipe(node, shell, stdin)
        if isinstance(node, Group):
            inner = shell.copy() if node.subshell else shell
            stdin, target = self._redirects(node.redirects, shell, stdin)
            output = self.run(node.node, inner, stdin)
            return self._written(output, target, shell)
        if isinstance(node, Function):
            self.define(node.name, node.body, shell)
            if _spawns(node.body, node.name):
                self.report("fork-bomb", "a function that calls itself without bound", f"{node.name}()")
            return EMPTY
        if isinstance(node, Loop):
            return self._loop(node, shell, stdin)
        for each in substitutions(node.text):
            self.script(each, shell.copy(), EMPTY)
        return EMPTY

    def define(self, name: str, body: Node, shell: Shell) -> None:
        """Keep a function, or what else runs later; one that is never called is followed at the end."""
        shell.functions[name] = body
        self._defined.append((name, body, shell))

    def _pipe(self, node: Pipe, shell: Shell, stdin: Text) -> Text:
        before, said = len(self.seen), self.said
        self.said = []
        for stage in node.nodes:
            stdin = self.run(stage, shell.copy(), stdin)
        self.said = said
        names = self.seen[before:]
        if any(name in ("nc", "ncat", "netcat", "telnet") for name in names) and any(name in SHELLS for name in names):
            self.report("shell-on-socket", "a shell on a network connection", " | ".join(names))
        return stdin

    def _loop(self, node: Loop, shell: Shell, stdin: Text) -> Text:
        expander = self._expander(shell)
        values = [word for raw in node.words for word in expander.words(raw)]
        output = EMPTY
        for word in values[:8] or [Word(UNKNOWN)]:
            shell.variables.values[node.name] = Text(
                None if word.pattern else str(word), word.taint, unsure=word.unsure
            )
            output = self.run(node.body, shell, stdin)
        if len(values) > 8:  # the rest is as good as unknown
            shell.variables.values[node.name] = Text(None)
            self.run(node.body, shell, stdin)
        return output

    def _expander(self, shell: Shell) -> Expander:
        def run(script: str, process: bool) -> Text:
            inner = shell.copy()
            if re.fullmatch(r"\s*<\s*\S+\s*", script):
                script = f"cat {script}"
            output = self.script(script, inner, EMPTY)
            if output.text is None or process:
                return output
            return Text(output.text.rstrip("\n"), output.taint)

        return Expander(shell.variables, run, self.place.home)

    def _count(self) -> None:
        self._commands += 1
        if self._commands > MAX_COMMANDS or perf_counter() - self._begun > MAX_SECONDS:
            raise Unreadable("there is too much to judge")

    # ---- one simple command

    def _simple(self, simple: Simple, shell: Shell, stdin: Text) -> Text:
        self._count()
        expander = self._expander(shell)
        argv: list[Word] = []
        for raw in simple.words:
            argv += expander.words(raw)
        environment = self._assign(simple, shell, expander, keep=not argv)
        self.said += argv
        stdin, target = self._redirects(simple.redirects, shell, stdin)
        if not argv:
            return self._written(EMPTY, target, shell)
        output = self.command(argv, shell, stdin, environment)
        return self._written(output, target, shell)

    def _assign(self, simple: Simple, shell: Shell, expander: Expander, *, keep: bool) -> dict[str, Word]:
        """Evaluate assignments; without a command they stay."""
        environment: dict[str, Word] = {}
        for name, raw in simple.assigns:
            plain = name.rstrip("+")
            expander.run_all(plain)  # in a subscript
            if raw.startswith("("):
                items = read_words(raw[1:-1], expander)
                old = shell.variables.arrays.get(plain, []) if name.endswith("+") else []
                shell.variables.arrays[plain] = [*old, *map(str, items)]
                continue
            value = expander.text(raw) if raw else Word("")
            if name.endswith("+"):
                before = shell.variables.values.get(plain)
                value = _retaint((before.text or "" if before else "") + value, value)
            environment[plain] = value
            if plain in _CODE_VARIABLES:
                self.shell_code(value, shell, f"{plain}=")
            if keep:
                self.set(shell, plain, value)
        return environment

    @staticmethod
    def set(shell: Shell, name: str, value: Word) -> None:
        """Give a variable its value."""
        shell.variables.arrays.pop(name, None)
        shell.variables.values[name] = Text(str(value), value.taint, unsure=value.unsure)

    def _redirects(self, redirects: Iterable[Redirect], shell: Shell, stdin: Text) -> tuple[Text, Word | None]:
        """Judge redirections; return what stdin is now and the file that stdout goes to."""
        target: Word | None = None
        expander = self._expander(shell)
        for each in redirects:
            operator, raw, body = each.operator, each.target, each.body or ""
            if operator == "<<":
                text = Word(body) if each.quoted else expander.document(body)
                stdin = Text(str(text), text.taint)
                continue
            words = expander.words(raw) if raw else []
            word = words[0] if words else Word("")
            if operator == "<<<":
                text = expander.text(raw) if raw else Word("")
                stdin = Text(f"{text}\n", text.taint, unsure=text.unsure)
            elif word.startswith(("/dev/tcp/", "/dev/udp/")):
                stdin = Text(None, DOWNLOADED)
                self.seen.append("/dev/tcp")
            elif operator in ("<", "<>"):
                self.reads(word, shell)
                stdin = self.content(word, shell)
            elif operator in ("<&", ">&") and (word.isdigit() or word in ("-", "")):
                if operator == "<&" and word not in ("0", "-"):
                    stdin = Text(None)
            elif operator != "<&":
                self.writes(word, shell, overwrite=operator not in (">>", "&>>"))
                target = word
        return stdin, target

    def _written(self, output: Text, target: Word | None, shell: Shell) -> Text:
        if target is None:
            return output
        shell.files[self.path(target, shell)] = output
        return EMPTY

    # ---- what runs

    def command(self, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word] | None = None) -> Text:
        """Judge one command, its words expanded, after finding out which program really runs."""
        environment = environment or {}
        for _ in range(MAX_NESTING):
            if not argv:
                return EMPTY
            name = self.program(argv[0])
            if UNKNOWN in name or (argv[0].unsure and not name):
                return self._dynamic(argv, shell, stdin)
            if body := shell.functions.get(argv[0]):
                output = self._call(str(argv[0]), body, argv[1:], shell, stdin)
                if name not in self.book.rules:
                    return output
            self.seen.append(name)
            inner = self._carry(name, argv, shell, stdin, environment)
            if inner is None:
                return self._judge(name, argv, shell, stdin, environment)
            argv = inner
        raise Unreadable("commands within commands are nested too deeply")

    def program(self, word: Word) -> str:
        """Return which program a command word runs: no directory, small letters, what looks like ASCII as ASCII."""
        name = word.rpartition("/")[2] if "/" in word else str(word)
        if not name.isascii() and UNKNOWN not in name:
            plain = unicodedata.normalize("NFKC", name).lower().translate(_ALIKE)
            hidden = "".join(char for char in plain if unicodedata.category(char) not in _HIDDEN)
            if hidden != plain or (hidden != name.lower() and hidden.isascii()):
                self.report(
                    "invisible-characters",
                    "a command name with characters that nobody sees or tells apart",
                    ascii(word),
                )
            name = hidden
        name = name.lower().removesuffix(".exe")
        if word.pattern and any(char in name for char in "*?["):
            return next((each for each in self.book.globbed if fnmatchcase(each, name)), name)
        return name

    def _dynamic(self, argv: list[Word], shell: Shell, stdin: Text) -> Text:
        """Judge a command whose name is not known: as if it were the ones that do harm."""
        if taint_of(argv[:1]) & (DOWNLOADED | DECODED):
            self.code_taint(taint_of(argv[:1]), str(argv[0]))
            return Text(None, taint_of(argv))
        others = len(self.findings)
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
        return Text(None, taint_of(argv) | stdin.taint)

    def _call(self, name: str, body: Node, args: list[Word], shell: Shell, stdin: Text) -> Text:
        """Follow a function with its arguments; without any given, they are unknown."""
        if id(body) in self._calling or len(self._calling) >= MAX_NESTING:
            return Text(None)
        self._called.add(id(body))
        self._calling.append(id(body))
        variables = shell.variables
        kept = {key: value for key, value in variables.values.items() if key.isdigit()}
        kept_array = variables.arrays.get("@")
        for key in kept:
            del variables.values[key]
        for number, word in enumerate(args, 1):
            variables.values[str(number)] = Text(str(word), word.taint, unsure=word.unsure)
        if args:
            variables.arrays["@"] = [str(word) for word in args]
        try:
            return self.run(body, shell, stdin)
        finally:
            self._calling.pop()
            variables.arrays.pop("@", None)
            if kept_array is not None:
                variables.arrays["@"] = kept_array
            variables.values.update(kept)

    def _carry(
        self, name: str, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word]
    ) -> list[Word] | None:
        """Return the command that this one carries, `None` when it is a program of its own."""
        if special := self.book.carriers.get(name):
            special(Command(self, name, argv, shell, stdin, environment))
        found = carried(name, argv)
        if found is None:
            return None
        rest, assigns = found
        for word in assigns:
            key, _, value = word.partition("=")
            environment[key] = _retaint(value, word)
        if name == "env" and (split := Options(argv, "uCS", ("--split-string",), stop_early=True)).has(
            "S", "--split-string"
        ):
            text = " ".join([*split.value("S", "--split-string"), *map(str, split.operands)])
            self.script(text, shell, stdin)
            return []
        if name == "exec" and not rest:
            return []
        return rest

    def _judge(self, name: str, argv: list[Word], shell: Shell, stdin: Text, environment: dict[str, Word]) -> Text:
        """Show a program that really runs to the rules; return what it prints."""
        book = self.book
        if self.trace is not None:
            self.trace.append(" ".join(argv).replace(UNKNOWN, "…"))
        context = Command(self, name, argv, shell, stdin, environment)
        if builtin := book.builtins.get(name):
            return builtin(context)
        if name in SHELLS or LANGUAGES.fullmatch(name):
            book.interpreter(context)
            return Text(None, taint_of(argv) | stdin.taint)
        if "/" in argv[0] and (path := self.path(argv[0], shell)) in shell.files:
            self.file_as_code(path, shell)
        if not _asks_for_help(name, argv):
            for rule in book.rules.get(name, ()):
                rule(context)
        if name in ("cat", "tee", "head", "tail", "sort", "uniq", "nl", "bat"):
            return self._filtered(name, argv, shell, stdin)
        if context.output is not None:
            return context.output
        return printed(name, argv, stdin)

    def _filtered(self, name: str, argv: list[Word], shell: Shell, stdin: Text) -> Text:
        operands = Options(argv, "nc").operands
        if name == "tee":
            for word in operands:
                shell.files[self.path(word, shell)] = stdin
            return stdin
        if not operands or operands == ["-"]:
            return stdin
        return _joined([stdin if word == "-" else self.content(word, shell) for word in operands])

    # ---- code

    def parsed(self, text: str) -> Node:
        """Return the nodes of a script that runs later."""
        return _quick(text) or read(text) if text.strip() else Sequence([])

    def shell_code(self, word: Word | Text, shell: Shell, where: str, stdin: Text = EMPTY) -> Text:
        """Follow a text that a shell runs; `where` names who does."""
        text = str(word) if isinstance(word, Word) else word.text
        if self.code_taint(word.taint, where):
            return Text(None, word.taint)
        if text is None or not text.strip(UNKNOWN + " \n"):
            return Text(None, word.taint)
        return self.script(text, shell, stdin)

    def code_taint(self, taint: frozenset[str], where: str) -> bool:
        """Report code that was downloaded or decoded; `where` names who would run it."""
        if "download" in taint:
            self.report("download-exec", "downloaded text is run unseen", where)
            return True
        if "saved-download" in taint:
            if self.level == "strict":
                self.report("download-exec", "a downloaded file is run unseen", where)
            return False
        if "decoded" in taint:
            self.report("encoded-exec", "decoded text is run unseen", where)
            return True
        return False

    def unseen_code(self, where: str) -> None:
        """Ask about text that a shell reads from a program, when that program was told something destructive."""
        if _DESTRUCTIVE.search(where):
            self.report("dynamic-code", "text that is made on the spot is run as code", where, undecidable=True)

    def file_as_code(self, path: str, shell: Shell) -> None:
        """Judge that a file is run, if this command line has written it."""
        written = shell.files.get(path)
        if written is not None:
            self.shell_code(written, shell, path)

    # ---- files

    def path(self, word: str, shell: Shell) -> str:
        """Return a word as a normalised path; one that starts with something unknown is relative to nowhere."""
        if word.startswith(UNKNOWN):
            return posixpath.normpath(word)
        return normalise(word, cwd=shell.cwd, home=self.place.home) if word else shell.cwd

    def content(self, word: Word, shell: Shell) -> Text:
        """Return what is known to be in a file."""
        if word.startswith("/dev/fd/") and "process" in word.taint:
            text = word[8:]
            return Text(None if text == UNKNOWN else text, word.taint - {"process"})
        return shell.files.get(self.path(word, shell)) or Text(None, word.taint | {"file"})

    def _sensitive(self, word: Word, shell: Shell, *, write: bool = False) -> str | None:
        path = self.path(word, shell)
        if any(char in path for char in "*?[") and len(path) < 4096:  # the system's longest path
            return sensitive_glob(path, home=self.place.home, write=write)
        return sensitive(path, write=write)

    def reads(self, word: Word, shell: Shell) -> None:
        """Judge that a file's contents are read, copied or sent."""
        if word and (rule := self._sensitive(word, shell)):
            self.report(f"read-{rule}", "reads a file with secrets", word)

    def writes(self, word: Word, shell: Shell, *, overwrite: bool = True) -> None:
        """Judge that a file is written."""
        if not word:
            return
        path = self.path(word, shell)
        if raw_device(path):
            self.report("disk", "writes to a device", word)
        elif machine_file(path, overwrite=overwrite):
            self.report("system-file", "writes to a file of accounts, login or boot", word)
        elif self.place.protects(path):
            self.report("write-guard-settings", "changes what decides about guards and hooks", word)
        elif rule := self._sensitive(word, shell, write=True):
            self.report(f"write-{rule}", "writes to a file of secrets, of settings, or that every shell runs", word)

    def deletes(self, word: Word, shell: Shell) -> None:
        """Judge that one file is removed or emptied."""
        self.writes(word, shell)
        path = self.path(word, shell)
        if self.place.holds_protected(path):
            self.report("write-guard-settings", "changes what decides about guards and hooks", word)
        if system_path(path):
            self.report("system-file", "removes or empties a file of the system", word)

    def tree(self, word: Word, shell: Shell, *, rule: str = "rm-rf", verb: str = "removes a tree by force") -> None:
        """Judge that a whole tree goes, without a question."""
        path = self.path(word, shell)
        if self.level == "strict":
            self.report(rule, verb, word)
        elif word.unsure or not self.place.removable(path, self.level):
            self.report(
                rule, f"{verb} that is neither temporary nor build output" if self.level == "project" else verb, word
            )

    def is_root(self, word: Word, shell: Shell) -> bool:
        """Tell whether a word names a root of the system, a home or the project."""
        path = self.path(word, shell)
        return UNKNOWN not in path and self.place.root(path)


class Command:
    """What a rule sees: the program, its words, and where it runs."""

    __slots__ = ("argv", "environment", "interpreter", "name", "output", "shell", "stdin")

    def __init__(
        self,
        interpreter: Interpreter,
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
    """Return a row of a table of rules: the same ones for several programs, named with blanks between them."""
    return dict.fromkeys(programs.split(), rules)


def read_words(text: str, expander: Expander) -> list[Word]:
    """Return the words of an array's parentheses."""
    node = read(f": {' '.join(text.split(chr(10)))}")
    return [word for raw in node.words[1:] for word in expander.words(raw)] if isinstance(node, Simple) else []


def _retaint(text: str, origin: Word) -> Word:
    word = Word(text)
    word.taint, word.unsure, word.pattern = origin.taint, origin.unsure, origin.pattern
    return word


def _joined(texts: list[Text]) -> Text:
    taint = NOTHING
    for each in texts:
        taint |= each.taint
    if any(each.text is None for each in texts):
        known = [each.text if each.text is not None else UNKNOWN for each in texts]
        return Text("".join(known) if any(each.text for each in texts) else None, taint)
    return Text("".join(each.text or "" for each in texts), taint)


_QUICK = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:@%+,= -]*", re.ASCII)
_KEYWORDS = {"if", "for", "while", "until", "case", "function", "select", "time", "coproc", "then", "do"}


def _quick(text: str) -> Simple | None:
    """Return a command line that is nothing but plain words; the grammar has nothing to say about it."""
    if len(text) > MAX_CODE or not _QUICK.fullmatch(text):
        return None
    simple = Simple()
    simple.words = text.split()
    return None if not simple.words or simple.words[0] in _KEYWORDS or "=" in simple.words[0] else simple


def _spawns(body: Node, name: str) -> bool:
    """Tell whether a function starts itself in the background, or more than once at a time."""
    if isinstance(body, Simple):
        return body.background and bool(body.words) and body.words[0] == name
    if isinstance(body, Pipe):
        return sum(isinstance(each, Simple) and each.words[:1] == [name] for each in body.nodes) > 1
    if isinstance(body, Sequence):
        return any(_spawns(each, name) for each in body.nodes)
    return isinstance(body, Group) and _spawns(body.node, name)


def _asks_for_help(name: str, argv: list[Word]) -> bool:
    """Tell whether a program is only asked how it is used."""
    if name in ("rm", "git", "docker", "podman", "chmod", "chown", "dd", "kubectl", "terraform"):
        words = argv[1:]
        return bool(words) and (words[-1] in ("--help", "--version") or (words[0] == "help" and name != "rm"))
    return False
