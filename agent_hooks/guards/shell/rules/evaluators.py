"""Rules about interpreters that `rules.code` does not know: the code in an option, in a file or on stdin is judged.

A row of the table tells the options whose value is code.  `rules.code` has the shells, and the languages that agents use
most; this module has all others, consoles of frameworks among them.
"""

from __future__ import annotations

from typing import NamedTuple

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.rules.inline import inline
from agent_hooks.guards.shell.words import EMPTY, Word


class Evaluator(NamedTuple):
    """How a program gets code.

    `options`: options whose value is code; `verbs`: words whose next word is code; `stdin`: without a script, the program
    runs its stdin; `language`: the language of the code, when it is not the program's own.
    """

    programs: str
    options: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    stdin: bool = False
    language: str = ""


_EVALUATORS = (
    Evaluator("julia", ("-e", "-E", "--eval", "--print"), stdin=True),
    Evaluator("r", ("-e",), stdin=True),
    Evaluator("elixir iex", ("-e", "--eval", "--rpc-eval"), stdin=True),
    Evaluator("mix", ("-e", "--eval"), ("eval",)),
    Evaluator("erl", ("-eval", "-s")),
    Evaluator("ghc runghc runhaskell stack", ("-e",)),
    Evaluator("runghc runhaskell", stdin=True),
    Evaluator("guile", ("-c",), stdin=True),
    Evaluator("sbcl ecl ccl", ("--eval", "-eval", "-e"), stdin=True),
    Evaluator("clisp", ("-x",), stdin=True),
    Evaluator("racket gracket", ("-e", "--eval"), stdin=True),
    Evaluator("clojure clj", ("-e", "--eval"), stdin=True),
    Evaluator("bb", ("-e", "--eval"), stdin=True),
    Evaluator("groovy kotlin amm", ("-e", "-c"), stdin=True),
    Evaluator("scala scala-cli", ("-e", "-S", "--execute-script-snippet"), stdin=True),
    Evaluator("jshell", stdin=True),
    Evaluator("crystal", verbs=("eval",), stdin=True),
    Evaluator("raku perl6 rakudo", ("-e",), stdin=True),
    Evaluator("ocaml", ("-e",), stdin=True),
    Evaluator("octave octave-cli", ("--eval",), stdin=True),
    Evaluator("matlab", ("-batch", "-r")),
    Evaluator("swift", ("-e",), stdin=True),
    Evaluator("swipl", ("-g", "-t")),
    Evaluator("luajit texlua", ("-e",), stdin=True, language="lua"),
    Evaluator("emacs emacsclient", ("--eval", "-eval", "-e", "--execute")),
    Evaluator("vim vi nvim ex view", ("-c", "--cmd")),
    Evaluator("gnuplot", ("-e",), stdin=True),
    Evaluator("m4", stdin=True),
    Evaluator("nu", ("-c", "--commands"), stdin=True, language="shell"),
    Evaluator("xonsh elvish oil osh ysh", ("-c",), stdin=True, language="shell"),
    Evaluator("rails", verbs=("runner", "r"), language="ruby"),
    Evaluator("wp", verbs=("eval",), language="php"),
    Evaluator("drush", verbs=("php:eval", "ev", "php-eval"), language="php"),
    Evaluator("artisan php", ("--execute",), language="php"),
    Evaluator("manage.py django-admin", ("-c", "--command"), language="python"),
    Evaluator("dotnet dotnet-script csi csharp", ("-e", "--eval"), ("eval",), language="csharp"),
    Evaluator("pyspark sage ipython ptpython bpython", ("-c",), stdin=True, language="python"),
    Evaluator("spark-shell", ("-e",), stdin=True, language="scala"),
    Evaluator("awk gawk mawk", language="awk"),
)
# Options behind which a language reads a script from a file.
_FILES = ("-f", "--file", "-S", "--load", "-l", "--script", "--source", "-i")
_ADDRESS = lazy_pattern(r"https?://")


def _evaluator(row: Evaluator) -> Rule:
    def rule(command: Command) -> None:
        codes = _codes(command.argv, row)
        for code in codes:
            _judge(command, row, code)
        _files(command, row, codes)

    return rule


def _codes(argv: list[Word], row: Evaluator) -> list[Word]:
    """Return the texts that the words of a program give as code."""
    codes: list[Word] = []
    for at, word in enumerate(argv[1:], 1):
        name, equals, value = word.partition("=")
        if word in row.options or (at < 3 and word in row.verbs):
            codes += argv[at + 1 : at + 2]
        elif equals and name in row.options and name.startswith("--"):
            codes.append(Word(value))
    if row.programs == "bb" and argv[1:2] and argv[1].startswith("("):
        codes.append(argv[1])
    return codes


def _judge(command: Command, row: Evaluator, code: Word) -> None:
    if row.language == "shell":
        command.shell_code(code)
    else:
        inline(command, row.language or command.name, code)


def _files(command: Command, row: Evaluator, codes: list[Word]) -> None:
    """Judge a script that this command line has fetched or written, an address, and code on stdin."""
    operands = [word for word in command.argv[1:] if not word.startswith("-") and word not in codes]
    reads = row.stdin and not codes and (not operands or operands == ["run"] or "-" in command.argv)
    behind = [word for at, word in enumerate(command.argv) if at and command.argv[at - 1] in _FILES]
    if row.stdin and not codes and any(map(_ADDRESS.match, operands)):
        command.report("download-exec", "downloaded text is run unseen")
        return
    if any(word in ("-", "/dev/stdin") for word in behind):
        reads = True
    for word in [*behind, *(operands[:1] if not codes else ())]:
        if "process" in word.taint or command.path(word) in command.shell.files:
            content = command.interpreter.content(word, command.shell)
            command.interpreter.code_taint(content.taint, command.name)
    if not reads or command.stdin is EMPTY or command.interpreter.code_taint(command.stdin.taint, command.name):
        return
    if command.stdin.text is not None:
        _judge(command, row, Word(command.stdin.text))


def console(command: Command) -> None:
    """`flask shell` and `manage.py shell` run the Python code on stdin."""
    if command.argv[1:2] in (["shell"], ["shell_plus"]) and command.stdin.text is not None:
        inline(command, "python", Word(command.stdin.text))


def scripted(command: Command) -> None:
    """`make -f -`, `vim -S /dev/stdin`: programs whose scripts come in a file, which may be fetched."""
    for at, word in enumerate(command.argv):
        if at and command.argv[at - 1] in ("-f", "-S", "-u", "-x", "--file", "--makefile", "-l"):
            content = command.stdin if word in ("-", "/dev/stdin") else command.interpreter.content(word, command.shell)
            command.interpreter.code_taint(content.taint, command.name)


_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    *(rules_of(row.programs, _evaluator(row)) for row in _EVALUATORS),
    rules_of("flask manage.py django-admin", console),
    rules_of("make gmake vim vi nvim ex emacs gdb lldb", scripted),
)
RULES: dict[str, tuple[Rule, ...]] = {
    name: tuple(rule for table in _TABLES for rule in table.get(name, ())) for table in _TABLES for name in table
}
