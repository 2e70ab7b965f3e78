"""The shell's own commands that change the meaning of later words: `cd`, `read`, `eval`, `alias` and others.

Each function takes a `Command` and returns the text that the command prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.grammar import parse
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.origins import SECRET
from agent_hooks.guards.shell.outputs import printed, taint_of
from agent_hooks.guards.shell.words import EMPTY, Text, Word

# Environment variables whose value switches the repository's own hooks off.
_HOOK_SWITCHES = {"HUSKY": "0", "HUSKY_SKIP_HOOKS": "1", "LEFTHOOK": "0", "PRE_COMMIT_ALLOW_NO_CONFIG": "1"}

# The same in words that other managers of hooks use.
_HOOKS_OFF = lazy_pattern(
    r"(?:SKIP|DISABLE|NO)_?(?:GIT_?)?HOOKS?|GIT_HOOKS_DISABLED?|SKIP_(?:SIMPLE_GIT_HOOKS|LEFTHOOK|HUSKY|PRE_?COMMIT|OVERCOMMIT|TALISMAN)|"
    r"(?:OVERCOMMIT|LEFTHOOK|HUSKY|PRE_?COMMIT|CAPTAIN_?HOOK|GITHOOKS|TALISMAN|SIMPLE_GIT_HOOKS|RUSTY_HOOK)_(?:SKIP(?:_HOOKS)?|DISABLED?)"
)

LISTED = frozenset({"listed-secrets"})
"""Marks a list of variables that holds those of a file with secrets."""

# Lines of a known text that `read` is followed for.
_MOST_LINES = 1000


def cd(command: Command) -> Text:
    """`cd`, `pushd`: relative paths start in another directory from now on."""
    shell = command.shell
    operands = [word for word in command.argv[1:] if word == "-" or not word.startswith("-")]
    if command.name == "pushd":
        shell.stack.append(shell.cwd)
    if not operands:
        shell.cwd = command.interpreter.directories.home
    elif operands[0] == "-":
        shell.cwd = shell.variables.values.get("OLDPWD", Text(None)).text or UNKNOWN
    else:
        old = shell.cwd
        shell.cwd = command.path(operands[0])
        shell.variables.values["OLDPWD"] = Text(old)
    shell.variables.values["PWD"] = Text(shell.cwd if UNKNOWN not in shell.cwd else None)
    return EMPTY


def popd(command: Command) -> Text:
    """`popd`."""
    command.shell.cwd = command.shell.stack.pop() if command.shell.stack else UNKNOWN
    return EMPTY


def pwd(command: Command) -> Text:
    """`pwd`."""
    return Text(command.shell.cwd + "\n")


def export(command: Command) -> Text:
    """`export`, `declare`, `local`, `readonly`: their `NAME=value` words are assignments, and without words they list."""
    if command.name != "local" and all(word.startswith("-") and "F" not in word for word in command.argv[1:]):
        return listing(command)
    exported = command.name == "export" or any(re.fullmatch(r"-\w*x\w*", word) for word in command.argv[1:])
    for word in command.argv[1:]:
        name, equals, value = word.partition("=")
        if name.startswith("-"):
            continue
        if exported:
            command.shell.export(name)
        if not equals:
            continue
        kept = Word(value)
        kept.taint, kept.unsure = word.taint, word.unsure
        command.shell.set(name, kept)
        switches_off_hooks(command, name, value)
        if name == "PROMPT_COMMAND":
            command.shell_code(kept)
    return EMPTY


def listing(command: Command) -> Text:
    """`export -p`, `declare -p`, `set` and `env` list all variables; a shell that has sourced secrets shows these too."""
    inspector, line = command.interpreter, command.interpreter.line
    written = line is not None and any(operator.startswith((">", "&>")) for operator, _ in line.redirects)
    if kind := command.shell.secrets:
        if inspector.flow == "shown" or written:
            inspector.report(f"read-{kind}", "shows the variables of a file with secrets", command)
        return Text(None, LISTED)
    return Text(None)


def switches_off_hooks(command: Command, name: str, value: str) -> None:
    """Report a variable that keeps the repository's hooks from running."""
    known = _HOOK_SWITCHES.get(name) == value or (value not in ("", "0", "false", "no") and _HOOKS_OFF.fullmatch(name))
    if known or (name.startswith("GIT_CONFIG_KEY_") and value.lower() == "core.hookspath"):
        command.report("git-hooks", "skips the repository's own hooks", f"{name}={value}")
    if name == "SKIP" and value and command.level == "strict":
        command.report("git-hooks", "skips a check of the repository", f"{name}={value}")


def evaluate(command: Command) -> Text:
    """`eval`: its words are a script."""
    words = command.argv[1:]
    text = Word(" ".join(words))
    text.taint = taint_of(words)
    if not text.known:
        command.interpreter.report_generated_code(text)
    return command.interpreter.shell_code(text, command.shell, "eval", command.stdin)


def source(command: Command) -> Text:
    """`source`, `.`: a file is a script."""
    words = command.argv[1:]
    if not words:
        return EMPTY
    command.interpreter.programs.append("source")
    name = words[0]
    if name == "/dev/stdin" or (name.startswith("/dev/fd/0")):
        return command.interpreter.shell_code(command.stdin, command.shell, "source")
    command.effect("read", name)
    if command.shell.traced:
        command.interpreter.judge_read(name, command.shell)
    else:
        command.interpreter.judge_run(name, command.shell)
    if (kind := command.interpreter.secret(name, command.shell)) == "environment-file":
        command.shell.secrets = kind
        command.shell.variables.sourced = SECRET
    content = command.interpreter.content(name, command.shell)
    return command.interpreter.shell_code(content, command.shell, "source")


def trap(command: Command) -> Text:
    """`trap 'script' SIGNAL`: the script is followed at the end, with the variables as they are then."""
    words = [word for word in command.argv[1:] if word != "--"]
    if len(words) > 1 and words[0] not in ("-", "-p", "-l"):
        command.interpreter.define(f"trap {words[1]}", parse(words[0]), command.shell)
    return EMPTY


def alias(command: Command) -> Text:
    """`alias name='script'`: the script runs when the name is used."""
    for word in command.argv[1:]:
        name, equals, value = word.partition("=")
        if equals:
            # It is judged here too, and runs where its name is used.
            with command.interpreter.recorder.pause():
                command.shell_code(Word(value))
            if value.strip() and name not in value.split():
                command.interpreter.define(name, parse(f'{value} "$@"'), command.shell)
    return EMPTY


_WILDCARDS = lazy_pattern(r"(?:[*?]|\[[^]/]*\])+")


def read(command: Command) -> Text:
    """`read name`: the variable gets the first line of stdin."""
    options = ParsedOptions(command.argv, "adinNptu")
    names = [*options.operands, *options.value("a")] or [Word("REPLY")]
    line = _line(command)
    pieces: list[str | None] = [None] * len(names)
    if line is not None:
        split = line.split(None, len(names) - 1)
        pieces = [*split, *[""] * (len(names) - len(split))]
    for name, piece in zip(names, pieces, strict=False):
        command.shell.variables.arrays.pop(str(name), None)
        if piece is not None and not command.interpreter.judging:
            # A listed glob stands for each file that it matches.
            piece = _WILDCARDS.sub(UNKNOWN, piece)
        command.shell.variables.values[str(name)] = Text(piece, command.stdin.taint)
        if name.isupper() or name in command.shell.exports:
            command.shell.export(str(name))
    return EMPTY


def _line(command: Command) -> str | None:
    """Return the line that `read` gets, `None` when it is not known.

    A loop reads all lines, so the first line that names a file which controls the agent counts before the first of all.
    An unknown text that was made from a glob for such files stands for their names.
    """
    text = command.stdin.text
    if text is None:
        words = (Word(word) for word in command.interpreter.pipeline_words if re.search(r"[*?[]", word))
        return next((str(word) for word in words if command.controls(word)), None)
    lines = text.split("\n")
    return next((line for line in lines[:_MOST_LINES] if line and command.controls(Word(line))), lines[0])


def printf(command: Command) -> Text:
    """`printf -v name` assigns the text that it would print."""
    words = command.argv[1:]
    if words and words[0].startswith("-v"):
        joined = words[0] != "-v"
        name = words[0][2:] if joined else "".join(words[1:2])
        rest = words[1:] if joined else words[2:]
        value = printed("printf", [command.argv[0], *rest], EMPTY)
        word = Word(UNKNOWN if value.text is None else value.text)
        word.taint = value.taint
        command.shell.set(name.partition("[")[0], word)
        return EMPTY
    return printed("printf", command.argv, command.stdin)


def mapfile(command: Command) -> Text:
    """`mapfile name`: the array gets the lines of stdin."""
    options = ParsedOptions(command.argv, "dnOsuCc")
    for script in options.value("C"):
        # The callback runs with each line.
        command.shell_code(script)
    names = options.operands or [Word("MAPFILE")]
    text = command.stdin.text
    unknown = Word(UNKNOWN)
    unknown.taint = command.stdin.taint
    command.shell.variables.arrays[str(names[0])] = [unknown] if text is None else text.splitlines()
    return EMPTY


def unset(command: Command) -> Text:
    """`unset name`."""
    for word in command.argv[1:]:
        command.shell.variables.values.pop(str(word), None)
        command.shell.variables.arrays.pop(str(word), None)
        if word.isupper() or word in command.shell.exports:
            command.shell.lose(str(word))
        if command.argv[1:2] == ["-f"]:
            command.shell.functions.pop(str(word), None)
    return EMPTY


def positional(command: Command) -> Text:
    """`set -- a b`; after `set -a`, a program gets variables that a file may have set."""
    words = command.argv[1:]
    if not words:
        return listing(command)
    options = words[: words.index(Word("--"))] if "--" in words else words
    if any(re.fullmatch(r"[-+]\w*[xv]\w*", word) for word in options) or {"xtrace", "verbose"} & set(options):
        command.shell.traced = any(word[0] == "-" for word in options)
    if "allexport" in options or any(re.fullmatch(r"-\w*a\w*", word) for word in options):
        command.shell.lose("*")
    if "--" in words:
        rest = words[words.index(Word("--")) + 1 :]
        command.shell.variables.arrays["@"] = list(rest)
        for number, word in enumerate(rest, 1):
            command.shell.variables.values[str(number)] = Text(str(word), word.taint)
    return EMPTY


def shift(command: Command) -> Text:
    """`shift`."""
    values = command.shell.variables.values
    words = command.shell.variables.arrays.get("@")
    if words:
        words = words[1:]
        command.shell.variables.arrays["@"] = words
    for number in range(1, 10):
        values[str(number)] = values.get(str(number + 1), Text(None))
    return EMPTY


def umask(command: Command) -> Text:
    """`umask 000`: everybody may write to every new file."""
    if any(re.fullmatch(r"0{1,4}", word) for word in command.argv[1:]):
        command.report("world-writable", "makes every new file world-writable")
    return EMPTY


def nothing(command: Command) -> Text:
    """Commands without an effect on files."""
    return EMPTY


BUILTINS: dict[str, Callable[[Command], Text]] = {
    "cd": cd,
    "pushd": cd,
    "popd": popd,
    "pwd": pwd,
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), export),
    "eval": evaluate,
    "source": source,
    ".": source,
    "trap": trap,
    "alias": alias,
    "read": read,
    "printf": printf,
    **dict.fromkeys(("mapfile", "readarray"), mapfile),
    "unset": unset,
    "set": positional,
    "shift": shift,
    "umask": umask,
    **dict.fromkeys((":", "true", "false", "test", "[", "[["), nothing),
}
