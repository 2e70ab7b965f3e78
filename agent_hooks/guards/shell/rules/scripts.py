"""Rules about programs that carry scripts: each script is found among the arguments or on stdin, and followed."""

from __future__ import annotations

import re
from contextlib import nullcontext

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.outputs import taint_of
from agent_hooks.guards.shell.programs.reading import is_here
from agent_hooks.guards.shell.words import EMPTY, Word, below, decode_ansi


def xargs(command: Command) -> None:
    """`xargs` appends the items of stdin to a command, or puts them into it."""
    options = ParsedOptions(
        command.argv,
        "aEIiLlnPsd",
        ("--arg-file", "--replace", "--max-args", "--max-procs", "--delimiter"),
        stop_early=True,
    )
    replaced = next(iter(options.value("I", "--replace")), "{}" if options.has("i", "I") else None)
    text = command.stdin.text
    if options.has("a", "--arg-file") or (command.stdin is EMPTY and not command.interpreter.judging):
        # Of the effects, a stdin that the command line does not show is unknown.
        text = None
    coming = [Word(UNKNOWN)] if text is None else [Word(word) for word in _items(text, options, bool(replaced))[:64]]
    for word in coming:
        word.taint = command.stdin.taint
        word.unsure = text is None
        # A listed glob stands for each file that it matches.
        word.pattern = not command.interpreter.judging and any(char in word for char in "*?[")
    if text is None:
        # The items may be found in the directories that the commands before name.
        coming += [word for word in map(Word, command.interpreter.pipeline_words) if command.controls(word)]
    carried = options.operands or [Word("echo")]
    if replaced:
        for each in coming[:16] or [Word(UNKNOWN)]:
            command.runs([_replace(word, replaced, each) for word in carried])
    else:
        command.runs([*carried, *coming])


def _items(text: str, options: ParsedOptions, lines: bool) -> list[str]:
    """Return the items of stdin: words, lines when they are put into the command, or as an option separates them."""
    ends = "\0" if options.has("0", "--null") else "\n" if lines else None
    for delimiter in options.value("d", "--delimiter"):
        ends = decode_ansi(delimiter) or None
    return [item for item in (each.rstrip("\n") for each in text.split(ends)) if item]


def _replace(word: Word, old: str, by: Word) -> Word:
    if old not in word:
        return word
    replaced = Word(word.replace(old, by))
    replaced.taint, replaced.unsure = word.taint | by.taint, by.unsure
    return replaced


def parallel(command: Command) -> None:
    """`parallel cmd ::: args` and `fd … -x cmd` run a command with each argument."""
    words = command.argv[1:]
    if command.name in ("fd", "fdfind"):
        at = next((at for at, word in enumerate(words) if word in ("-x", "-X", "--exec", "--exec-batch")), None)
        if at is not None:
            roots = [word for word in words[:at] if "/" in word or word.startswith(".")]
            # A plain name is that of each file that is found.
            plain = [word for word in words[:at] if not word.startswith("-")][-1:]
            named = [Word(f"./{plain[0]}")] if plain and re.fullmatch(r"[\w-]{2,}", plain[0]) else [Word(UNKNOWN)]
            for found in [*named, *(below(root, "*") for root in roots)]:
                command.runs([*(_replace(word, "{}", found) for word in words[at + 1 :]), found])
        return
    options = ParsedOptions(command.argv, "jINSad", ("--jobs", "--arg-file"), stop_early=True)
    stops = [at for at, word in enumerate(options.operands) if word.startswith(":::")]
    carried = options.operands[: stops[0]] if stops else options.operands
    given = options.operands[stops[0] + 1 :] if stops else [Word(UNKNOWN)]
    if not stops and command.stdin.taint:
        given[0].taint = command.stdin.taint
        command.runs([*(_replace(word, "{}", given[0]) for word in carried), given[0]])
    if carried and not any("{" in word for word in carried):
        command.shell_code(Word(" ".join(carried)))
    for each in given[:16]:
        command.shell_code(Word(" ".join([*(_replace(word, "{}", each) for word in carried), each])))


def script_option(letters: str, *long: str) -> Rule:
    """Return a rule for programs that run the text of an option: `su -c`, `script -c`, `flock -c`."""

    def rule(command: Command) -> None:
        for text in ParsedOptions(command.argv, letters + "sgGl", long).value(*letters, *long):
            command.shell_code(text)

    return rule


def script_words(command: Command) -> None:
    """`watch`, `hyperfine`, `tmux new`, `screen` and `entr` run their words as a script."""
    if command.name in ("tmux", "screen"):
        for word in command.argv[2:]:
            if " " in word:
                command.shell_code(word)
        at = 2 if command.name == "tmux" else 1
        rest = ParsedOptions(command.argv[at - 1 :], "cnstxyFeS", stop_early=True).operands
        if rest:
            command.runs(rest)
        return
    options = ParsedOptions(
        command.argv,
        "nwmrLpSNd",
        ("--interval", "--warmup", "--runs", "--prepare"),
        stop_early=command.name in ("watch", "entr"),
    )
    if command.name in ("hyperfine", "concurrently", "mprocs"):
        for word in [*options.operands, *options.value("--prepare", "p")]:
            command.shell_code(word)
    elif options.operands:
        command.shell_code(Word(" ".join(options.operands)))


def ssh(command: Command) -> None:
    """`ssh host command` runs a script in a directory that is not known."""
    options = ParsedOptions(command.argv, "bcDEeFIiJLlmOopQRSWw", stop_early=True)
    for value in options.value("o"):
        if value.lower().startswith(("proxycommand=", "localcommand=")):
            command.shell_code(Word(value.partition("=")[2]))
    elsewhere = command.shell.copy()
    elsewhere.cwd = UNKNOWN
    if len(options.operands) > 1:
        words = [word for word in options.operands[1:] if word != "--"]
        text = Word(" ".join(words))
        text.taint = taint_of(words)
        with command.interpreter.apart() if not is_here(options.operands[0]) else nullcontext():
            command.interpreter.shell_code(text, elsewhere, "ssh", command.stdin)
    elif not {*"NWOQGVnf"} & set(options.flags):
        with command.interpreter.apart():
            command.interpreter.shell_code(command.stdin, elsewhere, "ssh")


def vagrant(command: Command) -> None:
    """`vagrant ssh -c script` runs a script in another machine."""
    elsewhere = command.shell.copy()
    elsewhere.cwd = UNKNOWN
    for script in ParsedOptions(command.argv, "c", ("--command",)).value("c", "--command"):
        with command.interpreter.apart():
            command.interpreter.shell_code(script, elsewhere, "vagrant")


def stdin_script(command: Command) -> None:
    """`at`, `batch` and `crontab -` run stdin later."""
    if command.name == "crontab":
        text = command.stdin.text
        if text is not None and command.argv[1:] in ([], ["-"]):
            for line in text.splitlines():
                fields = re.match(r"\s*(@\w+|(\S+\s+){5})(.*)", line)
                if fields:
                    command.shell_code(Word(fields[3]))
        return
    command.shell_code(command.stdin)


def make(command: Command) -> None:
    """`make -f -` runs the recipes on stdin."""
    if "-" in ParsedOptions(command.argv, "fCjIo").value("f") and command.stdin.text is not None:
        for line in command.stdin.text.splitlines():
            recipe = (
                line.partition(";")[2]
                if ";" in line and not line.startswith("\t")
                else line
                if line.startswith("\t")
                else ""
            )
            if recipe.strip():
                command.shell_code(Word(recipe.strip().lstrip("@-+")))
    for word in command.argv[1:]:
        if word.startswith("--eval="):
            command.shell_code(Word(word.partition(";")[2]))


def tar(command: Command) -> None:
    """`tar --checkpoint-action=exec=…` and similar options run a script."""
    for at, word in enumerate(command.argv):
        for start in (
            "--checkpoint-action=exec=",
            "--to-command=",
            "--use-compress-program=",
            "--info-script=",
            "--new-volume-script=",
        ):
            if word.startswith(start):
                command.shell_code(Word(word[len(start) :]))
        if word in ("-I", "-F") and at + 1 < len(command.argv):
            command.shell_code(command.argv[at + 1])


def pager(command: Command) -> None:
    """`vim -c ':!cmd'` runs a command in an editor."""
    for at, word in enumerate(command.argv[1:], 1):
        text = word[1:] if word.startswith("+") else word if command.argv[at - 1] in ("-c", "--cmd", "-S") else ""
        if match := re.search(r"!(.*)|system\(['\"](.*)['\"]\)", text):
            command.shell_code(Word(match[1] or match[2] or ""))


RULES: dict[str, tuple[Rule, ...]] = {
    "xargs": (xargs,),
    "gxargs": (xargs,),
    **rules_of("parallel rust-parallel rush fd fdfind", parallel),
    **rules_of("su runuser script sg newgrp expect", script_option("c", "--command")),
    **rules_of("watch hyperfine concurrently mprocs tmux screen entr", script_words),
    **rules_of("ssh autossh slogin mosh", ssh),
    "vagrant": (vagrant,),
    **rules_of("at batch crontab", stdin_script),
    **rules_of("make gmake", make),
    **rules_of("tar bsdtar", tar),
    **rules_of("vim vi nvim view ex less emacs", pager),
}
CARRIERS: dict[str, Rule] = {
    "flock": script_option("c", "--command"),
    **dict.fromkeys(("npx", "npm", "pnpm"), script_option("c", "--call", "--shell-mode")),
}
