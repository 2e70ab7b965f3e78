"""Languages other than the shell and Python: some of their calls are known, and found by patterns."""

from __future__ import annotations

import re
from collections.abc import Callable

from agent_hooks.guards.lazy import LazyPattern, lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.listings import all_lost, chooses, removes_files
from agent_hooks.guards.shell.words import Word

NETWORK = lazy_pattern(
    r"\b(urllib|urlopen|requests|httpx|socket|fetch|https?|LWP|httpc|HTTPoison|Req\.get|Downloads|socket\.http|open-uri|URI\.open|Net::HTTP|file_get_contents|DownloadString)\b"
)
QUOTED = r"(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)')"
# Calls of other names count when the text begins with a program of the system.
_SYSTEM = r"sudo|rm|sh|bash|cat|curl|wget|dd|mkfs\S*|chmod|chown|shred|unlink|git|nc|scp|kill|shutdown|reboot"
_SOME = rf"[\"'](?=(?:/\S*/)?(?:{_SYSTEM})\b)"
_RUNS = lazy_pattern(
    rf"(?:(?:\b(?:System\.)?(?:cmd|shell)|\brun|\bsh|\bspawn|run-program|callCommand|readProcess|rawSystem|syscmd|system\*|"
    rf"Sys\.command|execute)\s*\(?\s*\[?(?={_SOME})|"
    rf"(?:system2?|os[:.]cmd|exec(?:Sync|File|FileSync|vp?|lp?)?|spawn(?:Sync)?|popen[23e]?|passthru|shell_exec|proc_open|os\.execute|io\.popen|qx|"
    rf"do shell script|do script|backtick)\s*\(?\s*){QUOTED}((?:(?:\s*,\s*|\s+)(?:\[|c\()?\s*{QUOTED})*)"
)
# Scripts without a call around them: in Julia and JavaScript, in Groovy and Scala, and in Tcl and m4.
_SCRIPTS = lazy_pattern(
    rf"(?:\brun\(|\$)`((?:[^`$]|\$\{{[^}}]*\}})*)`|(?:{_SOME}([^\"']*)[\"'])\s*(?:\.(?:execute\(|!|lineStream|lazyLines)|\s!)|"
    r"^\s*(?:exec|spawn)\s+((?:/\S*/)?(?:rm|sudo|sh|bash|dd|curl|wget)\b[^\n;]*)|syscmd\(`?((?:rm|sudo|curl)\b[^)']*)",
    re.MULTILINE,
)
_BACKTICKS = lazy_pattern(r"`([^`]*)`|qx[{(]([^})]*)[})]|%x[{(]([^})]*)[})]")
_TREES = lazy_pattern(
    r"(?:(?:rm_rf!?|rm_r|remove_tree|rmtree|remove_dir_all|rmSync|rmdirSync|rimraf(?:\.sync)?|fs\.rm|emptyDirSync|removeSync|"
    r"file:del_dir_r|removePathForcibly|removeDirectoryRecursive|delete-directory-tree|delete-directory/files|delete-tree|"
    r"delete-directory|deleteDirectory|removeItem\s*\(\s*atPath:|removeDir|fileRemove|delete-tree)\s*\(?\s*(?:#[pP])?|"
    # A call that removes a tree by its second argument.
    r"(?:\brm|Deno\.remove)\(\s*(?=[^)]*recursive\s*[=:]\s*true)|\bunlink\(\s*(?=[^;\n]*recursive\s*=\s*T)|\bdelete\(\s*(?=[^)]*,\s*['\"]rf)|"
    r"\brmdir\(\s*(?=[^)]*,\s*['\"]s['\"])|"
    # `new File("x").deleteDir()`
    rf"\b(?:File|Path|Paths\.get)\(\s*(?=[^)]*\)\s*\.\s*delete(?:Dir|Recursively)))\s*{QUOTED}"
)
_TREE_WORDS = lazy_pattern(r"\bfile\s+delete\s+-force\s+(?:--\s+)?([^\s;\]]+)")
# A tree below the home directory, which the code asks the system for.
_HOME_TREES = lazy_pattern(
    r"(?:[\"']rm[\"']\s*,\s*\[?\s*[\"']-\w*r\w*[\"']\s*,|os\.remove\.all\(|\brm\(|\bunlink\(|del_dir_r|removePathForcibly|delete-directory|delete-tree|rm_rf!?|rm_r|remove_tree|removeDir|rmtree|rmSync|rmdirSync|rimraf(?:\.sync)?|fs\.rm|emptyDirSync|removeSync|RemoveAll)\s*\(?"
    r"[^;\n]*?(?:homedir\(\)|os\.home\b|user_home!?\(\)|user-homedir-pathname|getHomeDir\(\)|path\.expanduser|UserHomeDir\(\)|Dir\.home|(?:ENV|env)(?:\.HOME\b|[\[{(]['\"]?HOME\b))([^;\n]*)"
)
_UNLINKS = lazy_pattern(
    rf"(?:unlink(?:Sync)?|delete-file|File\.delete|os\.remove|File\.unlink)\s*\(?\s*(?:glob\s*\(?\s*|Dir\[?\s*)?{QUOTED}"
)
_UNLINKS_ALL = lazy_pattern(rf"[\"']unlink[\"']\s*,\s*glob\(\s*{QUOTED}")
_OPENS = lazy_pattern(
    rf"(?:readFile(?:Sync)?|File\.(?:read|open|readlines)|file_get_contents|readfile|IO\.read|io\.open|open|"
    rf"readLines|io\.lines|slurp|readTextFile(?:Sync)?|Bun\.file|File\.(?:read!|stream!)|\bread|read-file|file->string)\s*\(?\s*(?:\w+\s*,\s*)?{QUOTED}"
)
_WRITES = lazy_pattern(rf"(?:writeFile(?:Sync)?|appendFile(?:Sync)?|File\.write|file_put_contents)\s*\(?\s*{QUOTED}")


# Values within a template.
_HOME_VALUE = lazy_pattern(r"\$\{[^}]*(?:\bHOME\b|homedir\(\))[^}]*\}")
_ANY_VALUE = lazy_pattern(r"\$\{[^}]*\}")
# The letters before a text in Elixir, and a call around a path that changes nothing for us.
_SIGILS = lazy_pattern(
    r"~[csCS](?=[\"'])|\b(?:path\.expand|Path\.expand|File\.expand_path|expanduser|normalizePath)\(\s*(?=[\"'])"
)


def judge_calls(command: Command, name: str, text: Word) -> None:
    """Judge the known calls in the code of a language: commands, removals, files, sockets, decoded code."""
    source = _SIGILS.sub("", str(text))
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
    for match in _SCRIPTS.finditer(source):
        script = _HOME_VALUE.sub("~", next(filter(None, match.groups()), ""))
        command.shell_code(Word(_ANY_VALUE.sub(UNKNOWN, script)))
    for match in _TREE_WORDS.finditer(source):
        command.tree(Word(match[1].strip("{}\"'")), verb="removes a tree")
    for match in _UNLINKS_ALL.finditer(source):
        listed = unquote(match[1] or match[2])
        narrow = re.search(r"\*(\.\w+)$", listed)
        force = "-f" if narrow and not all_lost([f"*{narrow[1]}"]) else "-rf"
        command.runs([Word("rm"), Word(force), Word(listed)])
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
    for match in _LISTED.finditer(source):
        listed, code = unquote(next(filter(None, match.groups()), "")), match[0]
        # Each file below the directory in front of the wildcard is removed.
        if removes_files(code) and not chooses(code) and (folder := _WHOLE.sub("", listed)) not in ("", "."):
            command.tree(Word(folder), verb="removes the files of a tree")
    if "unlink glob" in source or "unlink <" in source:
        for match in re.finditer(rf"unlink\s*\(?\s*(?:glob\s*\(?\s*{QUOTED}|<([^>]*)>)", source):
            folder = (match[1] or match[2] or match[3] or "").rpartition("/")[0] or "/"
            if command.is_root(Word(folder)):
                command.report("rm-rf", "removes the files of a root", folder, wall=command.is_machine(Word(folder)))
    if re.search(
        r"\b(eval|exec|Function)\b.*\b(atob|base64|b64decode|decode64|Buffer\.from|unpack)\b", source, re.DOTALL
    ):
        command.report("encoded-exec", "decoded text is run unseen", name)
    evaluates = name != "python" and _EVALUATES.search(source)
    if _LOADS_ADDRESS.search(source) or (evaluates and NETWORK.search(source)):
        command.report("download-exec", "downloaded text is run unseen", name)
    if re.search(r"fork\s+while\s+(1|true|fork)|while\s*\(?1\)?\s*[{:]?\s*fork|loop\s*\{\s*fork", source):
        command.report("fork-bomb", "starts itself without bound", name)


_EVALUATES = lazy_pattern(
    r"\beval(?!uate\b)\w*\b|\binstance_eval\b|\bclass_eval\b|\beval_string\b|\bnew\s+Function\b|\bloadstring\b|(?<![.\w:])load\s*\(|"
    r"\binclude_string\b|(?<![.\w])include\s*\(|\brunIn\w*Context\b|\bload-string\b|\bread-string\b"
)
# Code that is run from an address.
_LOADS_ADDRESS = lazy_pattern(
    r"(?<![.\w])(?:source|source_url|source_gist|sys\.source|include|include_once|require|require_once|load|load-file|dofile|evaluate|"
    r"import|importScripts)\b\s*\(?\s*(?:new\s+)?(?:[\w.:]+\(\s*)?[\"']https?://(?!localhost|127\.)|"
    r"\b(?:include|evalfile|load|source|dofile)\s*\(?\s*(?:[\w:]+[.:]+)*(?:download|getURL|urlopen)\b|\beval\s*\(?\s*get\b"
)
# A walk over the files of a directory, up to the call that may remove them.
_LISTED = lazy_pattern(
    rf"(?:Dir(?:\.glob|\.children|\.each_child|\.entries)?\s*[(\[]\s*{QUOTED}|(?:glob|readdir(?:Sync)?|list\.files|list_dir!?|"
    rf"File\.ls!?|readdirSync)\s*\(?\s*{QUOTED})[^;\n]*|"
    rf"(?:unlink|file\.remove)\s*\(?\s*(?:glob|list\.files)\s*\(?\s*{QUOTED}"
)
_WHOLE = lazy_pattern(r"/?(?:\*\*/?)?(?:\*(?:\.\*)?)?$")
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
