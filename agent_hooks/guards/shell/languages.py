"""Languages other than the shell and Python: some of their calls are known, and found by patterns."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_hooks.guards.lazy import LazyPattern, lazy_pattern
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.words import Word

NETWORK = lazy_pattern(
    r"\b(urllib|urlopen|requests|httpx|socket|fetch|https?|LWP|open-uri|Net::HTTP|file_get_contents|DownloadString)\b"
)
QUOTED = r"(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)')"
_RUNS = lazy_pattern(
    rf"(?:system|exec(?:Sync|File|FileSync|vp?|lp?)?|spawn(?:Sync)?|popen[23e]?|passthru|shell_exec|proc_open|os\.execute|io\.popen|qx|"
    rf"do shell script|do script|backtick)\s*\(?\s*{QUOTED}((?:\s*,\s*\[?\s*{QUOTED})*)"
)
_BACKTICKS = lazy_pattern(r"`([^`]*)`|qx[{(]([^})]*)[})]|%x[{(]([^})]*)[})]")
_TREES = lazy_pattern(
    rf"(?:rm_rf|rm_r|remove_tree|rmtree|remove_dir_all|rmSync|rmdirSync|rimraf(?:\.sync)?|fs\.rm|emptyDirSync|removeSync)\s*\(?\s*{QUOTED}"
)
# A tree below the home directory, which the code asks the system for.
_HOME_TREES = lazy_pattern(
    r"(?:rm_rf|rm_r|remove_tree|rmtree|rmSync|rmdirSync|rimraf(?:\.sync)?|fs\.rm|emptyDirSync|removeSync|RemoveAll)\s*\(?"
    r"[^;\n]*?(?:homedir\(\)|UserHomeDir\(\)|Dir\.home|(?:ENV|env)(?:\.HOME\b|[\[{(]['\"]?HOME\b))([^;\n]*)"
)
_UNLINKS = lazy_pattern(
    rf"(?:unlink(?:Sync)?|File\.delete|os\.remove|File\.unlink)\s*\(?\s*(?:glob\s*\(?\s*|Dir\[?\s*)?{QUOTED}"
)
_OPENS = lazy_pattern(
    rf"(?:readFile(?:Sync)?|File\.(?:read|open|readlines)|file_get_contents|readfile|IO\.read|io\.open|open)\s*\(?\s*(?:\w+\s*,\s*)?{QUOTED}"
)
_WRITES = lazy_pattern(rf"(?:writeFile(?:Sync)?|appendFile(?:Sync)?|File\.write|file_put_contents)\s*\(?\s*{QUOTED}")


def judge_calls(command: Command, name: str, text: Word) -> None:
    """Judge the known calls in the code of a language: commands, removals, files, sockets, decoded code."""
    source = str(text)
    _control_files(command, source)
    for numbers in re.findall(r"(?<![a-zA-Z])kill\b([^;)\n]*)", source):
        targets = re.findall(r"-?\d{2,}|-1\b|\w*ppid", numbers)
        command.runs([Word("kill"), Word("-9"), *map(Word, targets)])
    for match in _RUNS.finditer(source):
        first = unquote(match[1] or match[2])
        rest = [unquote(one or two) for one, two in re.findall(QUOTED, match[3] or "")]
        if rest:
            command.runs([Word(first), *map(Word, rest)])
        command.shell_code(Word(first))
        if re.search(r"\b(socket|Socket|TCPSocket|fsockopen|net\.connect|net\.Socket)\b", source):
            command.report("shell-on-socket", "a shell on a network connection", name)
    if name in ("perl", "ruby", "php"):
        for match in _BACKTICKS.finditer(source):
            command.shell_code(Word(match[1] or match[2] or match[3] or ""))
    for match in _TREES.finditer(source):
        command.tree(Word(unquote(match[1] or match[2])), verb="removes a tree")
    for match in _HOME_TREES.finditer(source):
        parts = [unquote(one or two) for one, two in re.findall(QUOTED, match[1].partition("{")[0])]
        command.tree(Word("/".join(["~", *parts])), verb="removes a tree")
    judges: tuple[tuple[LazyPattern, Callable[[Word], None]], ...]
    judges = ((_UNLINKS, command.deletes), (_OPENS, command.reads), (_WRITES, command.writes))
    for pattern, judge in judges:
        for match in pattern.finditer(source):
            path = Word(unquote(match[1] or match[2]))
            if _is_path_like(path):
                judge(path)
    if "unlink glob" in source or "unlink <" in source:
        for match in re.finditer(rf"unlink\s*\(?\s*(?:glob\s*\(?\s*{QUOTED}|<([^>]*)>)", source):
            folder = (match[1] or match[2] or match[3] or "").rpartition("/")[0] or "/"
            if command.is_root(Word(folder)):
                command.report("rm-rf", "removes the files of a root", folder, wall=command.is_machine(Word(folder)))
    if re.search(
        r"\b(eval|exec|Function)\b.*\b(atob|base64|b64decode|decode64|Buffer\.from|unpack)\b", source, re.DOTALL
    ):
        command.report("encoded-exec", "decoded text is run unseen", name)
    if re.search(r"\beval\b", source) and NETWORK.search(source) and name != "python":
        command.report("download-exec", "downloaded text is run unseen", name)
    if re.search(r"fork\s+while\s+(1|true|fork)|while\s*\(?1\)?\s*[{:]?\s*fork|loop\s*\{\s*fork", source):
        command.report("fork-bomb", "starts itself without bound", name)


_CHANGES_FILES = lazy_pattern(
    r"\b(?:rename|renameSync|unlink|unlinkSync|rm|rmSync|rmdir|mv|move|cp|cpSync|copy|copyFile|copyFileSync|symlink\w*|"
    r"link\w*|chmod\w*|chown\w*|truncate\w*|writeFile\w*|appendFile\w*|createWriteStream|file_put_contents|fopen|touch|"
    r"delete|remove|rmtree|remove_tree|rename_file|write|writelines)\b|[\"']\s*\+?>{1,2}|[\"'][wa]\+?[\"']"
)
_RUNS_CODE = lazy_pattern(r"\b(?:eval|exec\w*|system|spawn\w*|popen|fork|require\s*\(\s*[^\"')])")


def _control_files(command: Command, source: str) -> None:
    """Judge the constants that name a file which controls the agent."""
    for one, two in re.findall(QUOTED, source):
        path = Word(unquote(one or two))
        if not _is_path_like(path) or not command.controls(path):
            continue
        if _CHANGES_FILES.search(source):
            command.report("write-guard-settings", CONTROLS, path)
        elif _RUNS_CODE.search(source):
            reason = f"code that cannot be read in full: {CONTROLS}"
            command.interpreter.report("write-guard-settings", reason, path, undecidable=True)


def _is_path_like(text: str) -> bool:
    # No path of the system is longer than this.
    return 0 < len(text) < 4096 and "\n" not in text


def unquote(text: str | None) -> str:
    """Return the text of a quoted constant without its backslashes."""
    return re.sub(r"\\(.)", r"\1", text or "")
