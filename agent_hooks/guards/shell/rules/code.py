"""Shells and languages: finds their code among the options, in a file or on stdin, and hands it on to be judged."""

from __future__ import annotations

import re

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.languages import QUOTED, unquote
from agent_hooks.guards.shell.listings import EVERY, removes_files, walks_here
from agent_hooks.guards.shell.names import SHELLS
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.rules.inline import inline
from agent_hooks.guards.shell.searches import lost_root
from agent_hooks.guards.shell.state import Shell
from agent_hooks.guards.shell.words import EMPTY, TYPED, Text, Word


def interpreter(command: Command) -> None:
    """Judge the code that a shell or a language gets: in an option, in a file or on stdin."""
    if command.stdin.taint >= TYPED and _ignores_stdin(command):
        command.stdin = EMPTY
    if command.name in SHELLS:
        _shell(command)
    else:
        _language(command)


def _ignores_stdin(command: Command) -> bool:
    """Return whether a shell or a language, whose arguments name no code, runs something else than its stdin."""
    words = command.argv[1:]
    if command.name in SHELLS:
        return bool(words) and words[0] in ("--version", "--help")
    if command.name.startswith(("deno", "bun")):
        return bool(words) and words[0] != "repl" and "-" not in words
    return bool(words) and bool(re.fullmatch(r"--version|--help|-VV?|-h|-v|--test|--run(?:=.*)?|--build\S*", words[0]))


_FETCHERS = lazy_pattern(r"\b(?:curl|wget)\b")


def _shell(command: Command) -> None:
    argv = command.argv
    if any(word.startswith(("--init-file", "--rcfile")) for word in argv):
        argv = argv[:1] + [word for word in argv[1:] if not word.startswith("--")]
    options = ParsedOptions(argv, "oO", stop_early=True)
    if "n" in options.flags:
        # The shell only checks the syntax.
        return
    operands = options.operands
    inner = command.shell.copy()
    inner.traced = inner.traced or options.has("x", "v")
    if "c" in options.flags and operands:
        _positional(inner, operands[1:])
        text = operands[0]
        if not text.known:
            # Its known parts are followed; a fetcher among them is judged there.
            command.interpreter.report_generated_code(_FETCHERS.sub("", text))
        command.interpreter.shell_code(text, inner, command.name, command.stdin)
        return
    if operands and "s" not in options.flags and operands[0] not in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        _positional(inner, operands)
        content = command.interpreter.content(operands[0], command.shell)
        command.interpreter.shell_code(content, inner, f"{command.name} {operands[0]}")
        return
    _positional(inner, [Word("bash"), *operands])
    stdin = command.stdin
    if "/dev/tcp" in command.interpreter.programs:
        command.report("shell-on-socket", "a shell on a network connection")
        return
    if stdin.text is None and "file" not in stdin.taint:
        command.interpreter.report_generated_code(" ".join(command.interpreter.pipeline_words))
    command.interpreter.shell_code(stdin, inner, command.name)


def _positional(shell: Shell, words: list[Word]) -> None:
    values = shell.variables.values
    shell.variables.arrays["@"] = list(words[1:])
    for number, word in enumerate(words):
        values[str(number)] = Text(str(word), word.taint, unsure=word.unsure)


# The letters of the options that take code.
_INLINE = {
    "python": "c",
    "pypy": "c",
    "perl": "eE",
    "ruby": "e",
    "node": "ep",
    "nodejs": "ep",
    "php": "rBRE",
    "lua": "e",
    "rscript": "e",
    "osascript": "e",
    "tclsh": "",
    "deno": "",
    "bun": "e",
}


def removes_listed(command: Command) -> None:
    """`… | perl -ne unlink` and `… | awk '{system("rm " $0)}'` remove the files whose names they read."""
    text = " ".join(command.argv[1:])
    walks = command.name.startswith("perl") and re.search(r"\bfind(?:depth)?\s*\(", text) and "=~" not in text
    root = re.search(r",\s*(?:[\"']([^\"']+)[\"'])\s*\)", text) if walks else None
    walked = root is not None and lost_root(command, [Word(root[1])], named=False, narrowed=False) is not None
    if (walked or walks_here(text) or command.stdin.taint >= EVERY) and removes_files(text):
        wall = root is not None and command.is_machine(Word(root[1]))
        command.report("find-delete", "removes all files that are listed", wall=wall)


def _language(command: Command) -> None:
    removes_listed(command)
    name = re.sub(r"[\d.]+$", "", command.name)
    argv = command.argv
    if name in ("pwsh", "powershell"):
        _powershell(command)
        return
    if name in ("deno", "bun") and len(argv) > 1:
        if argv[1] == "run" and any(word.startswith(("http://", "https://")) for word in argv[2:]):
            command.report("download-exec", "downloaded text is run unseen")
        if argv[1] == "eval":
            inline(command, name, Word(" ".join(argv[2:])))
        if not argv[1].startswith("-"):
            argv = argv[1:]
    if name in ("node", "nodejs"):
        argv = [Word("-e") if word == "-pe" else word for word in argv]
    letters = _INLINE.get(name, "")
    long = {"node": ("--eval", "--print"), "nodejs": ("--eval", "--print"), "ruby": (), "bun": ("--eval",)}.get(
        name, ()
    )
    with_value = letters + {"python": "WXm", "perl": "MmI", "ruby": "rIC", "node": "r", "php": "dc"}.get(name, "")
    options = ParsedOptions(argv, with_value, long, stop_early=True)
    codes = options.value(*letters, *long)
    for text in codes:
        inline(command, name, text)
    if "i" in options.flags and name in ("perl", "ruby"):
        command.writes(*options.operands)
    operands = options.operands
    if codes:
        if name in ("perl", "ruby") and ("n" in options.flags or "p" in options.flags):
            command.reads(*operands)
        return
    if "m" in options.flags:
        module, rest = "".join(options.value("m")[:1]), operands
        if module.partition(".")[0] == "agent_hooks":
            command.runs([Word("agent-hooks"), *rest])
        elif module in ("pip", "pipx", "uv"):
            command.runs([Word(module), *rest])
        elif module in ("zipfile", "tarfile"):
            command.writes(*(word for word in rest[1:] if command.controls(word)))
        elif module in ("venv", "virtualenv"):
            command.runs([Word("virtualenv"), *argv[argv.index(Word(module)) + 1 :]])
        return
    if name == "php" and argv[1:2] == ["--"]:
        # The words behind are arguments of the script on stdin.
        operands = []
    if operands and operands[0] not in ("-", "/dev/stdin"):
        word = operands[0]
        if re.search(r"(?:^|/)(?:agent-hooks|agent_hooks(?:/__main__\.py|/cli/[\w/]+\.py)?/?)$", word):
            command.runs([Word("agent-hooks"), *operands[1:]])
        if "process" in word.taint or command.path(word) in command.shell.files:
            _content(command, name, command.interpreter.content(word, command.shell))
        return
    _content(command, name, command.stdin)


def _content(command: Command, name: str, content: Text) -> None:
    if content.text is None and (content is not EMPTY) and "file" not in content.taint:
        command.unknown("dynamic", "it runs code that is known only when the call runs")
    if command.interpreter.code_taint(content.taint, name) or content.text is None:
        return
    inline(command, name, Word(content.text))


def _powershell(command: Command) -> None:
    words = command.argv[1:]
    for at, word in enumerate(words):
        flag = word.lower()
        if flag.startswith("-") and "-encodedcommand".startswith(flag) and flag.startswith("-e"):
            command.report("encoded-exec", "decoded text is run unseen")
        if flag in ("-command", "-c", "/c"):
            text = " ".join(words[at + 1 :])
            if text == "-":
                command.interpreter.code_taint(command.stdin.taint, command.name)
            if re.search(r"\b(iex|invoke-expression)\b", text, re.IGNORECASE) and re.search(
                r"\b(irm|iwr|curl|wget|invoke-\w*request|invoke-restmethod|downloadstring)\b", text, re.IGNORECASE
            ):
                command.report("download-exec", "downloaded text is run unseen")
            # A relative path may have the separators of Windows.
            command.shell_code(Word(re.sub(r"(?<![\w:\\])\.\\+(?=\w)", "./", text)))
            return


def awk(command: Command) -> None:
    """`awk 'BEGIN { system("…") }'` runs a script."""
    options = ParsedOptions(command.argv, "Fvf")
    for word in options.operands[:1]:
        for match in re.finditer(rf"(?:system\s*\(\s*{QUOTED}|{QUOTED}\s*\|\s*getline|\|\s*{QUOTED})", word):
            text = next((group for group in match.groups() if group), "")
            command.shell_code(Word(unquote(text)))
        if "/inet/tcp" in word:
            command.report("shell-on-socket", "awk on a network connection")


def sed(command: Command) -> None:
    """`sed '1e cmd'` and `s/x/cmd/e` run commands; `w file` writes a file."""
    options = ParsedOptions(command.argv, "eflE", ("--expression", "--file"))
    scripts = options.value("e", "--expression") or options.operands[:1]
    for word in scripts:
        for match in re.finditer(r"(?:^|[;\n{}])\s*(?:\d+|\$|/[^/]*/)?\s*e\s+([^\n]+)", word):
            command.shell_code(Word(match[1]))
        if replaced := re.search(r"^s(.).*?\1(.*)\1[gp0-9]*e[gp]*$", word):
            command.shell_code(Word(replaced[2]))
        for match in re.finditer(r"(?:^|[;\n}])\s*(?:\d+|\$|/[^/]*/)?\s*w\s+(\S+)", word):
            command.writes(Word(match[1]))


RULES: dict[str, tuple[Rule, ...]] = {
    **rules_of("awk gawk mawk", awk, removes_listed),
    "sed": (sed,),
}
