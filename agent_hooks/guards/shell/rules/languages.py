"""Languages other than the shell and Python: some of their calls are known, and found by patterns."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Word

NETWORK = re.compile(
    r"\b(urllib|urlopen|requests|httpx|socket|fetch|https?|LWP|open-uri|Net::HTTP|file_get_contents|DownloadString)\b"
)
_QUOTED = r"(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)')"
_RUNS = re.compile(
    rf"(?:system|exec(?:Sync|File|FileSync|vp?|lp?)?|spawn(?:Sync)?|popen[23e]?|passthru|shell_exec|proc_open|os\.execute|io\.popen|qx|"
    rf"do shell script|backtick)\s*\(?\s*{_QUOTED}((?:\s*,\s*\[?\s*{_QUOTED})*)"
)
_BACKTICKS = re.compile(r"`([^`]*)`|qx[{(]([^})]*)[})]|%x[{(]([^})]*)[})]")
_TREES = re.compile(
    rf"(?:rm_rf|rm_r|remove_tree|rmtree|remove_dir_all|rmSync|rmdirSync|rimraf(?:\.sync)?|fs\.rm|emptyDirSync|removeSync)\s*\(?\s*{_QUOTED}"
)
_UNLINKS = re.compile(
    rf"(?:unlink(?:Sync)?|File\.delete|os\.remove|File\.unlink)\s*\(?\s*(?:glob\s*\(?\s*|Dir\[?\s*)?{_QUOTED}"
)
_OPENS = re.compile(
    rf"(?:readFile(?:Sync)?|File\.(?:read|open|readlines)|file_get_contents|readfile|IO\.read|io\.open|open)\s*\(?\s*(?:\w+\s*,\s*)?{_QUOTED}"
)
_WRITES = re.compile(rf"(?:writeFile(?:Sync)?|appendFile(?:Sync)?|File\.write|file_put_contents)\s*\(?\s*{_QUOTED}")


def judge_calls(command: Command, name: str, text: Word) -> None:
    """Judge the known calls in the code of a language: commands, removals, files, sockets, decoded code."""
    source = str(text)
    for match in _RUNS.finditer(source):
        first = _unquote(match[1] or match[2])
        rest = [_unquote(one or two) for one, two in re.findall(_QUOTED, match[3] or "")]
        if rest:
            command.runs([Word(first), *map(Word, rest)])
        command.shell_code(Word(first))
        if re.search(r"\b(socket|Socket|TCPSocket|fsockopen|net\.connect|net\.Socket)\b", source):
            command.report("shell-on-socket", "a shell on a network connection", name)
    if name in ("perl", "ruby", "php"):
        for match in _BACKTICKS.finditer(source):
            command.shell_code(Word(match[1] or match[2] or match[3] or ""))
    for match in _TREES.finditer(source):
        command.tree(Word(_unquote(match[1] or match[2])), verb="removes a tree")
    judges: tuple[tuple[re.Pattern[str], Callable[[Word], None]], ...]
    judges = ((_UNLINKS, command.deletes), (_OPENS, command.reads), (_WRITES, command.writes))
    for pattern, judge in judges:
        for match in pattern.finditer(source):
            path = Word(_unquote(match[1] or match[2]))
            if _is_path_like(path):
                judge(path)
    if "unlink glob" in source or "unlink <" in source:
        for match in re.finditer(rf"unlink\s*\(?\s*(?:glob\s*\(?\s*{_QUOTED}|<([^>]*)>)", source):
            folder = (match[1] or match[2] or match[3] or "").rpartition("/")[0] or "/"
            if command.is_root(Word(folder)):
                command.report("rm-rf", "removes the files of a root", folder)
    if re.search(
        r"\b(eval|exec|Function)\b.*\b(atob|base64|b64decode|decode64|Buffer\.from|unpack)\b", source, re.DOTALL
    ):
        command.report("encoded-exec", "decoded text is run unseen", name)
    if re.search(r"\beval\b", source) and NETWORK.search(source) and name != "python":
        command.report("download-exec", "downloaded text is run unseen", name)
    if re.search(r"fork\s+while\s+(1|true|fork)|while\s*\(?1\)?\s*[{:]?\s*fork|loop\s*\{\s*fork", source):
        command.report("fork-bomb", "starts itself without bound", name)


def _is_path_like(text: str) -> bool:
    # No path of the system is longer than this.
    return 0 < len(text) < 4096 and "\n" not in text


def _unquote(text: str | None) -> str:
    return re.sub(r"\\(.)", r"\1", text or "")


def awk(command: Command) -> None:
    """`awk 'BEGIN { system("…") }'` runs a script."""
    options = ParsedOptions(command.argv, "Fvf")
    for word in options.operands[:1]:
        for match in re.finditer(rf"(?:system\s*\(\s*{_QUOTED}|{_QUOTED}\s*\|\s*getline|\|\s*{_QUOTED})", word):
            text = next((group for group in match.groups() if group), "")
            command.shell_code(Word(_unquote(text)))
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
    **rules_of("awk gawk mawk", awk),
    "sed": (sed,),
}
