"""Rules for an agent that may type into a command while it runs, past all hooks.

The stdin of such a command has the taint `TYPED`, and shells and languages that would run it are found by that taint.
This module knows the other programs that run the text that is typed into them: consoles, editors, and programs that
start a shell of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.carriers import carried
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.names import LANGUAGES, SHELLS
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Word


def console(command: Command) -> None:
    """Report a program that runs the text that is typed into it."""
    words = command.argv[1:]
    if words and words[-1] in ("--help", "--version", "-V", "-h"):
        return
    test = _OPENS.get(command.name)
    if test is None:
        test = _shell if command.name in SHELLS else _language if LANGUAGES.fullmatch(command.name) else _by_verb
    if test(command):
        command.interpreter.report_typed(command)


Test = Callable[[Command], bool]


def _always(command: Command) -> bool:
    return True


def _unless(values: str, stops: str, most: int = 99, long: Sequence[str] = ()) -> Test:
    """Return a test: a program reads its stdin unless it has one of the options `stops`, or more than `most` operands.

    `values`, `long`: its options with a value.  Long options may begin with one dash.
    """

    def test(command: Command) -> bool:
        argv = [Word(f"-{word}") if re.match(r"-[a-z]{3}", word) else word for word in command.argv]
        options = ParsedOptions(argv, values, long)
        return not options.has(*stops.split()) and len(options.operands) <= most

    return test


def _shell(command: Command) -> bool:
    """`bash --rcfile x` reads stdin, although `x` looks like a script."""
    argv = command.argv
    at = next((at for at, word in enumerate(argv) if word in ("--rcfile", "--init-file")), None)
    if at is None:
        return False
    options = ParsedOptions([*argv[:at], *argv[at + 2 :]], "oO", stop_early=True)
    return "c" not in options.flags and not options.operands


def _language(command: Command) -> bool:
    """`python -i x.py` reads stdin after the script; `python -m pdb` and the like read commands."""
    words = command.argv[1:]
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), len(words))
    if command.name.startswith(("perl", "ruby")):
        # Their option `-i` changes files in place.
        return False
    if any(re.fullmatch(r"-[A-Za-z]*i|--interactive|-a|-noexit", word, re.IGNORECASE) for word in words[:at]):
        return True
    if command.name.startswith(("pwsh", "powershell")):
        return not any(re.match(r"-(?:c|f|e|v)|/c", word, re.IGNORECASE) for word in words)
    module = words[words.index(Word("-m")) + 1 :][:1] if "-m" in words else []
    script = words[at : at + 2]
    return bool(
        {*module} & {"code", "asyncio", "pdb", "sqlite3", "IPython", "ipython", "bpython", "ptpython", "idlelib"}
        or (len(script) > 1 and _CONSOLE.fullmatch(f"{script[0].rpartition('/')[2]} {script[1]}"))
        or words[:1] in (["repl"], ["inspect"])
    )


# A script and its first argument, or a program and its verb, that start a console.
_CONSOLE = lazy_pattern(
    r"manage\.py (?:shell|shell_plus|dbshell)|artisan tinker|(?:rails|bundle|console) (?:c|console|db|dbconsole)"
    r"|flask shell|(?:poetry|pipenv|hatch|multipass) shell|npm explore|heroku run|lein repl|stack (?:ghci|repl)"
    r"|cabal repl"
)


def _by_verb(command: Command) -> bool:
    return len(command.argv) > 1 and bool(_CONSOLE.fullmatch(f"{command.name} {command.argv[1]}"))


def _starts_shell(command: Command) -> bool:
    """`chroot dir` and `unshare` without a command start a shell."""
    found = carried(command.name, command.argv)
    return found is not None and not found[0]


def _sudo(command: Command) -> bool:
    """`sudo -i` and `sudo -s` without a command start a shell."""
    options = ParsedOptions(command.argv, "ugpCcDhRrTtU", ("--user", "--group"), stop_early=True)
    return options.has("i", "s", "--login", "--shell") and not options.operands


def _tmux(command: Command) -> bool:
    """`tmux` shows a terminal, unless it sends a command to one or starts one in the background."""
    words = [word for word in command.argv[1:] if not word.startswith("-")]
    if words[:1] and words[0] not in ("new", "new-session", "attach", "attach-session", "a", "at"):
        return False
    return not any(re.fullmatch(r"-\w*d\w*", word) for word in command.argv[1:])


def _screen(command: Command) -> bool:
    return not any(re.fullmatch(r"-(?:\w*d\w*|D\w*|ls|list|X|v|wipe|Q)", word) for word in command.argv[1:])


def _script(command: Command) -> bool:
    """`script` without a command records a shell."""
    options = ParsedOptions(command.argv, "cEImOoBTt", ("--command",), stop_early=True)
    return not options.has("c", "--command") and len(options.operands) < 2


def _container(command: Command) -> bool:
    """`docker run -i image` starts the image's own program, with stdin; `docker attach` enters one."""
    words = command.argv[1:]
    verb = next((at for at, word in enumerate(words) if word in ("run", "exec", "attach", "start", "debug")), None)
    if verb is None:
        return False
    attached = any(re.fullmatch(r"-[a-z]*i[a-z]*|--interactive|--stdin", word) for word in words[verb:])
    if words[verb] == "attach":
        return True
    if words[verb] == "exec" or not attached:
        # The rules for containers follow the command.
        return False
    if words[verb] == "start":
        return True
    rest = [word for word in words[verb + 1 :] if not word.startswith("-")]
    return _ends_in_console(command, rest)


def _ends_in_console(command: Command, words: list[Word]) -> bool:
    """Return whether the words of a new container end with its image, or with a program that reads its stdin.

    The image cannot be told from the values of options, so each word may be the image.
    """
    interpreter = command.interpreter
    before, programs = interpreter.findings, len(interpreter.programs)
    found = not words[1:]
    for at in range(1, len(words)):
        interpreter.findings = []
        interpreter.command(list(words[at:]), command.shell.copy(), command.stdin)
        found = found or any(each.rule == "typed-commands" for each in interpreter.findings)
    interpreter.findings = before
    del interpreter.programs[programs:]
    return found


def _crontab(command: Command) -> bool:
    return command.argv[1:] in ([], ["-"])


def _make(command: Command) -> bool:
    return "-" in ParsedOptions(command.argv, "fCjIo").value("f")


def _socat(command: Command) -> bool:
    return any(re.match(r"(?i)(?:exec|system|shell):", word) for word in command.argv[1:])


def _source(command: Command) -> bool:
    return any(command.path(word).startswith(("/dev/tty", "/dev/pts/")) for word in command.argv[1:2])


_LONG = ("--cmd", "--init", "--separator", "--nullvalue", "--dbname", "--host", "--port", "--username", "--user")
_DATABASE = "c f l e --command --file --list --execute --eval --version --help V"


def _table(rows: dict[str, Test]) -> dict[str, Test]:
    return {name: test for names, test in rows.items() for name in names.split()}


_OPENS: dict[str, Test] = _table(
    {
        # Editors and pagers run commands of the shell.
        "ed red ex vi vim nvim view vimdiff nano pico less more most mc ranger": _always,
        "emacs": _unless("", "--batch --script"),
        "telnet ftp lftp erl iex jshell utop mosh login": _always,
        "sftp": _unless("bcDFiJloPRSsX", "b"),
        "psql": _unless("cdfhopULvPRFT", _DATABASE, long=_LONG),
        "mysql mariadb": _unless("euhPDS", _DATABASE, long=_LONG),
        "sqlite3 sqlite duckdb": _unless("c", "c --version", 1, _LONG),
        "mongosh mongo": _unless("fupe", "f --eval --file --version", 1, _LONG),
        "redis-cli": _unless("hpasnuidr", "--version", 0),
        "gdb lldb": _unless("xpsock", "b --batch --version", long=("--ex", "--eval-command", "--args")),
        "irb pry ghci scala groovysh clj clojure R r julia octave ipython bpython ptpython ptipython ts-node tsx racket "
        "guile sbcl clisp ocaml swift": _unless("", "e c f m --eval --version --file --script", 0),
        "su runuser": _unless("cgGs", "c --command", long=("--command", "--group", "--shell")),
        "sudo doas": _sudo,
        "chroot unshare nsenter fakeroot proot firejail setarch bwrap dbus-run-session nix gosu": _starts_shell,
        "nix-shell": _unless("pAI", "--run --command", long=("--run", "--command")),
        "newgrp byobu zellij": _always,
        "tmux": _tmux,
        "screen": _screen,
        "script": _script,
        "expect": _unless("cf", "c f", 0),
        "docker podman nerdctl docker-compose podman-compose kubectl k oc": _container,
        "crontab": _crontab,
        "parallel": _unless("jINSad", "a --arg-file", 0),
        "make gmake": _make,
        "socat": _socat,
        "source .": _source,
        "adb": lambda command: command.argv[1:] == ["shell"],
        "vagrant": lambda command: command.argv[1:2] == ["ssh"] and "-c" not in command.argv,
        "gcloud": lambda command: "ssh" in command.argv and not any("--command" in word for word in command.argv),
        "aws": lambda command: "start-session" in command.argv,
        "fly flyctl minikube limactl": lambda command: bool({"console", "shell", "ssh"} & {*command.argv[1:3]}),
    }
)
