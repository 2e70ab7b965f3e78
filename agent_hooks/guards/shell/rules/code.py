"""Shells and languages: where their code comes from, and what that code would do.

Shell code is followed by the interpreter; Python is read with Python's own `ast`; of other languages a short list of
calls is known.  Below: command, options.
"""

from __future__ import annotations

import ast
import posixpath
import re
import warnings
from collections.abc import Callable

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command, Rule, rules_of
from agent_hooks.guards.shell.names import SHELLS
from agent_hooks.guards.shell.options import Options
from agent_hooks.guards.shell.words import Text, Word

_NETWORK = re.compile(
    r"\b(urllib|urlopen|requests|httpx|socket|fetch|https?|LWP|open-uri|Net::HTTP|file_get_contents|DownloadString)\b"
)


def interpreter(command: Command) -> None:
    """Judge a shell or a language by the code it is given: as an option, a file, or on stdin."""
    if command.name in SHELLS:
        _shell(command)
    else:
        _language(command)


def _shell(command: Command) -> None:
    argv = command.argv
    if any(word.startswith(("--init-file", "--rcfile")) for word in argv):
        argv = argv[:1] + [word for word in argv[1:] if not word.startswith("--")]
    options = Options(argv, "oO", stop_early=True)
    operands = options.operands
    inner = command.shell.copy()
    if "c" in options.flags and operands:
        _positional(inner, operands[1:])
        text = operands[0]
        if not text.known:
            command.interpreter.unseen_code(text)
        command.interpreter.shell_code(text, inner, command.name, command.stdin)
        return
    if operands and "s" not in options.flags and operands[0] not in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        _positional(inner, operands)
        content = command.interpreter.content(operands[0], command.shell)
        command.interpreter.shell_code(content, inner, f"{command.name} {operands[0]}")
        return
    _positional(inner, [Word("bash"), *operands])
    stdin = command.stdin
    if "/dev/tcp" in command.interpreter.seen:
        command.report("shell-on-socket", "a shell on a network connection")
        return
    if stdin.text is None and "file" not in stdin.taint:
        command.interpreter.unseen_code(" ".join(command.interpreter.said))
    command.interpreter.shell_code(stdin, inner, command.name)


def _positional(shell: object, words: list[Word]) -> None:
    values = shell.variables.values  # type: ignore[attr-defined]
    for number, word in enumerate(words):
        values[str(number)] = Text(str(word), word.taint, unsure=word.unsure)


# ---- languages


_INLINE = {  # the options that take code
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


def _language(command: Command) -> None:
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
    with_value = letters + {"python": "WXm", "perl": "", "ruby": "rIC", "node": "r", "php": "dc"}.get(name, "")
    options = Options(argv, with_value, long, stop_early=True)
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
        words = list(command.argv)
        at = words.index(Word("-m")) if "-m" in words else len(words)
        if words[at + 1 : at + 2] == ["agent_hooks"]:
            command.runs([Word("agent-hooks"), *words[at + 2 :]])
        return
    if operands and operands[0] not in ("-", "/dev/stdin"):
        word = operands[0]
        if "process" in word.taint or command.path(word) in command.shell.files:
            _content(command, name, command.interpreter.content(word, command.shell))
        return
    _content(command, name, command.stdin)


def _content(command: Command, name: str, content: Text) -> None:
    if command.interpreter.code_taint(content.taint, name) or content.text is None:
        return
    inline(command, name, Word(content.text))


def inline(command: Command, name: str, text: Word) -> None:
    """Judge code of a language."""
    if command.interpreter.code_taint(text.taint, name):
        return
    if name in ("python", "pypy"):
        _python(command, text)
    else:
        _other(command, name, text)


def _powershell(command: Command) -> None:
    words = command.argv[1:]
    for at, word in enumerate(words):
        flag = word.lower()
        if flag.startswith("-") and "-encodedcommand".startswith(flag) and flag.startswith("-e"):
            command.report("encoded-exec", "decoded text is run unseen")
        if flag in ("-command", "-c", "/c"):
            text = " ".join(words[at + 1 :])
            if re.search(r"\b(iex|invoke-expression)\b", text, re.IGNORECASE) and re.search(
                r"\b(irm|iwr|curl|wget|invoke-\w*request|invoke-restmethod|downloadstring)\b", text, re.IGNORECASE
            ):
                command.report("download-exec", "downloaded text is run unseen")
            command.shell_code(Word(text))
            return


# ---- Python


def _python(command: Command, text: Word) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.replace(UNKNOWN, "UNKNOWN").strip("\n"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _other(command, "python", text)
        return
    try:
        _PythonJudge(command, text).visit(tree)
    except RecursionError:
        command.interpreter.report(
            "dynamic-code", "Python code that is nested too deeply to judge", "python", undecidable=True
        )


_SHELL_CALLS = {
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "commands.getoutput",
    "pty.spawn",
}
_PROCESS_CALLS = {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")} | {
    f"os.{name}" for name in ("execv", "execvp", "execl", "execlp", "spawnv", "spawnvp", "spawnl", "posix_spawn")
}
_TREE_CALLS = {"shutil.rmtree", "shutil.move"}
_FILE_CALLS = {"os.remove", "os.unlink", "os.rmdir", "os.removedirs", "os.truncate"}


class _PythonJudge(ast.NodeVisitor):
    """Looks at the calls of a Python program, constants folded and imports resolved."""

    def __init__(self, command: Command, source: str) -> None:
        self._command = command
        self._source = source
        self._names: dict[str, str] = {}
        self._values: dict[str, str | list[str]] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._names[alias.asname or alias.name] = alias.name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        value = self._constant(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                if value is not None:
                    self._values[target.id] = value
                elif name := self._name(node.value):
                    self._names[target.id] = name

    def visit_While(self, node: ast.While) -> None:
        if isinstance(node.test, ast.Constant) and node.test.value and "fork(" in ast.unparse(node):
            self._command.report("fork-bomb", "starts itself without bound")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = self._name(node.func) or ""
        args = [self._constant(arg) for arg in node.args]
        first = args[0] if args else None
        command = self._command
        if name in _SHELL_CALLS or name in _PROCESS_CALLS:
            if isinstance(first, str) and name not in _SHELL_CALLS and len(args) > 1 and name.startswith("os."):
                rest = [arg for arg in args[1:] if isinstance(arg, str)]
                first = next((arg for arg in args[1:] if isinstance(arg, list)), rest)
            self._runs(first)
            if re.search(r"\bsocket\b", self._source) and re.search(r"dup2|pty\.spawn|connect", self._source):
                command.report("shell-on-socket", "a shell on a network connection", "python")
        elif name in _TREE_CALLS:
            command.tree(Word(first if isinstance(first, str) else UNKNOWN), verb="removes a tree")
        elif name in _FILE_CALLS and isinstance(first, str):
            command.deletes(Word(first))
        elif name in ("open", "io.open") and isinstance(first, str):
            mode = next((arg for arg in args[1:2] if isinstance(arg, str)), "r")
            command.writes(Word(first)) if set(mode) & set("wax+") else command.reads(Word(first))
        elif name == "os.chmod" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            mode_bits = node.args[1].value
            if isinstance(mode_bits, int) and mode_bits & 0o002:
                command.report("world-writable", "lets everybody write", "os.chmod")
        elif name in ("exec", "eval", "builtins.exec"):
            self._evaluates(node, first)
        elif isinstance(node.func, ast.Attribute):
            self._method(node.func)

    def _evaluates(self, node: ast.Call, first: str | list[str] | None) -> None:
        if isinstance(first, str):
            _python(self._command, Word(first))
            return
        text = ast.unparse(node)
        if re.search(r"b64decode|b32decode|a85decode|unhexlify|fromhex|decompress|marshal|rot", text):
            self._command.report("encoded-exec", "decoded text is run unseen", text)
        elif _NETWORK.search(text):
            self._command.report("download-exec", "downloaded text is run unseen", text)

    def _method(self, function: ast.Attribute) -> None:
        """Judge `Path('…').unlink()`, `.read_text()` and the like."""
        path = self._constant(function.value)
        if not isinstance(path, str):
            return
        if function.attr in ("unlink", "rmdir"):
            self._command.deletes(Word(path))
        elif function.attr in ("read_text", "read_bytes"):
            self._command.reads(Word(path))
        elif function.attr in ("write_text", "write_bytes"):
            self._command.writes(Word(path))

    def _runs(self, what: str | list[str] | None) -> None:
        if isinstance(what, str):
            self._command.shell_code(Word(what))
        elif isinstance(what, list) and what:
            self._command.runs([Word(word) for word in what])

    def _name(self, node: ast.AST) -> str | None:
        """Return the full name of what is called: `os.system` for `__import__('os').system` too."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self._name(node.value)
            return f"{owner}.{node.attr}" if owner else None
        if isinstance(node, ast.Call):
            called = self._name(node.func)
            args = [self._constant(arg) for arg in node.args]
            if called in ("__import__", "importlib.import_module") and args and isinstance(args[0], str):
                return args[0]
            if called == "getattr" and len(args) > 1 and isinstance(args[1], str):
                return f"{self._name(node.args[0])}.{args[1]}"
        return None

    def _constant(self, node: ast.AST) -> str | list[str] | None:
        """Return a text or a list of texts that an expression stands for, if it can be told."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            return node.value.decode("utf-8", "replace") if isinstance(node.value, bytes) else node.value
        if isinstance(node, ast.Name):
            return self._values.get(node.id)
        if isinstance(node, ast.List | ast.Tuple):
            return [part if isinstance(part := self._constant(each), str) else UNKNOWN for each in node.elts]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._constant(node.left), self._constant(node.right)
            return left + right if isinstance(left, str) and isinstance(right, str) else None
        if isinstance(node, ast.BinOp | ast.Call | ast.Subscript) and (path := self._path(node)) is not None:
            return path
        if isinstance(node, ast.JoinedStr):
            parts = [self._constant(part) for part in node.values]
            return "".join(part if isinstance(part, str) else UNKNOWN for part in parts)
        if isinstance(node, ast.Call):
            name = self._name(node.func) or ""
            args = [self._constant(arg) for arg in node.args]
            if name == "chr" and isinstance(code := getattr(node.args[0], "value", None), int) and 0 <= code < 0x110000:
                return chr(code)
            if name.endswith(("shlex.split",)) and args and isinstance(args[0], str):
                return args[0].split()
            if isinstance(node.func, ast.Attribute) and node.func.attr == "join":
                separator = self._constant(node.func.value)
                if isinstance(separator, str) and args and isinstance(args[0], list):
                    return separator.join(args[0])
            if isinstance(node.func, ast.Attribute) and node.func.attr == "split":
                text = self._constant(node.func.value)
                return text.split() if isinstance(text, str) else None
        return None

    def _path(self, node: ast.BinOp | ast.Call | ast.Subscript) -> str | None:
        """Return what is built by `pathlib` and `os.path`; `~` stands for the home directory."""
        if isinstance(node, ast.Subscript):
            home = self._name(node.value) == "os.environ" and self._constant(node.slice) == "HOME"
            return "~" if home else None
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right] if isinstance(node.op, ast.Div) else []
        else:
            name = self._name(node.func) or ""
            if name.endswith("Path.home"):
                return "~"
            if name in ("os.getenv", "os.environ.get"):
                return "~" if node.args and self._constant(node.args[0]) == "HOME" else None
            if name.endswith(("Path", "path.join", "expanduser", "path.abspath", "path.realpath")):
                parts = node.args
            elif isinstance(node.func, ast.Attribute) and node.func.attr in _PATH_METHODS:
                parts = [node.func.value, *node.args]
        texts = [text for part in parts if isinstance(text := self._constant(part), str)]
        return posixpath.join(*texts) if texts and len(texts) == len(parts) else None


_PATH_METHODS = ("joinpath", "expanduser", "resolve", "absolute")

# ---- other languages

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


def _other(command: Command, name: str, text: Word) -> None:
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
    for pattern, judge in ((_UNLINKS, command.deletes), (_OPENS, command.reads), (_WRITES, command.writes)):
        for match in pattern.finditer(source):
            path = Word(_unquote(match[1] or match[2]))
            if _looks_like_path(path):
                _apply(judge, path)
    if "unlink glob" in source or "unlink <" in source:
        for match in re.finditer(rf"unlink\s*\(?\s*(?:glob\s*\(?\s*{_QUOTED}|<([^>]*)>)", source):
            folder = (match[1] or match[2] or match[3] or "").rpartition("/")[0] or "/"
            if command.is_root(Word(folder)):
                command.report("rm-rf", "removes the files of a root", folder)
    if re.search(
        r"\b(eval|exec|Function)\b.*\b(atob|base64|b64decode|decode64|Buffer\.from|unpack)\b", source, re.DOTALL
    ):
        command.report("encoded-exec", "decoded text is run unseen", name)
    if re.search(r"\beval\b", source) and _NETWORK.search(source) and name != "python":
        command.report("download-exec", "downloaded text is run unseen", name)
    if re.search(r"fork\s+while\s+(1|true|fork)|while\s*\(?1\)?\s*[{:]?\s*fork|loop\s*\{\s*fork", source):
        command.report("fork-bomb", "starts itself without bound", name)


def _apply(judge: Callable[..., None], path: Word) -> None:
    judge(path)


def _looks_like_path(text: str) -> bool:
    return 0 < len(text) < 4096 and "\n" not in text  # the system's longest path


def _unquote(text: str | None) -> str:
    return re.sub(r"\\(.)", r"\1", text or "")


def awk(command: Command) -> None:
    """`awk 'BEGIN { system("…") }'`."""
    options = Options(command.argv, "Fvf")
    for word in options.operands[:1]:
        for match in re.finditer(rf"(?:system\s*\(\s*{_QUOTED}|{_QUOTED}\s*\|\s*getline|\|\s*{_QUOTED})", word):
            text = next((group for group in match.groups() if group), "")
            command.shell_code(Word(_unquote(text)))
        if "/inet/tcp" in word:
            command.report("shell-on-socket", "awk on a network connection")


def sed(command: Command) -> None:
    """`sed '1e cmd'` and `s/x/cmd/e` run commands; `w file` writes one."""
    options = Options(command.argv, "eflE", ("--expression", "--file"))
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
