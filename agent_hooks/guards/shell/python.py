"""Python code, read with Python's own `ast`: constants are folded, imports resolved, and calls judged."""

from __future__ import annotations

import ast
import posixpath
import re
import warnings

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.inspector import CONTROLS
from agent_hooks.guards.shell.languages import NETWORK, judge_calls
from agent_hooks.guards.shell.listings import all_lost, all_sources
from agent_hooks.guards.shell.outputs import TEMP_FILE
from agent_hooks.guards.shell.python_effects import CallEffects
from agent_hooks.guards.shell.words import Text, Word


def judge_python(command: Command, text: Word) -> None:
    """Judge Python code by its syntax tree; code that cannot be parsed, by patterns."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.replace(UNKNOWN, "UNKNOWN").strip("\n"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        judge_calls(command, "python", text)
        command.unknown("opaque", "Python code that cannot be parsed")
        return
    try:
        _PythonJudge(command, text).judge(tree)
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
    "pexpect.spawn",
    "pexpect.run",
}
_PROCESS_CALLS = {f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen")} | {
    f"os.{name}" for name in ("execv", "execvp", "execl", "execlp", "spawnv", "spawnvp", "spawnl", "posix_spawn")
}
# Methods that run a script on another machine, and the libraries that have them.
_REMOTE = {"exec_command", "run", "sudo", "run_command"}
_REMOTE_LIBRARY = lazy_pattern(r"\b(?:paramiko|fabric|asyncssh|pssh|spur|invoke)\b")
_TREE_CALLS = {"shutil.rmtree", "shutil.move"}
_FILE_CALLS = {"os.remove", "os.unlink", "os.rmdir", "os.removedirs", "os.truncate"}
# Calls that make a temporary file or directory.
_TEMPORARY_CALLS = {f"tempfile.{name}" for name in ("mkdtemp", "mktemp", "TemporaryDirectory")}
# Calls with a source that is lost, and a destination.
_MOVES = {"os.rename", "os.replace", "os.renames", "shutil.move"}
_COPIES = {f"shutil.{name}" for name in ("copy", "copy2", "copyfile", "copytree")} | {"os.link", "os.symlink"}
_CHANGES = {f"os.{name}" for name in ("chmod", "chown", "lchown", "utime", "mkfifo", "mknod", "setxattr", "chflags")}
_PATH_CHANGES = {"rename", "replace", "touch", "chmod", "symlink_to", "hardlink_to", "link_to", "extractall", "extract"}
# The last parts of the names of calls that change no file.
_HARMLESS_TEXT = (
    "print len sorted sum min max any all map filter zip enumerate range set list dict tuple str repr format int open "
    "Path PurePath read_text read_bytes read readline readlines glob iglob rglob iterdir exists lexists is_file "
    "is_dir isfile isdir stat lstat getsize getmtime load loads dumps safe_load listdir walk scandir join split "
    "splitlines strip rstrip lstrip basename dirname abspath realpath relpath resolve expanduser absolute joinpath "
    "relative_to decode encode startswith endswith count index find get keys values items append insert extend parse "
    "dump sha256 md5 hexdigest compile match search findall fullmatch sub group upper lower import_module pprint "
    "with_suffix fspath cwd getcwd home time ctime fromtimestamp isoformat"
)
_HARMLESS = frozenset(_HARMLESS_TEXT.split())
# A pattern that every name fits, and tests that leave some files of a walk out.
_EVERY_NAME = r"(?:\*\*/)?(?:\*|\*\.\*|\*\*)"
_NARROWS = lazy_pattern(
    r"\.(?:endswith|startswith|suffix|stem|match|fullmatch|search|st_mtime|st_size)\b|fnmatch|getmtime|getsize|splitext|\bin\b\s*[\w.]*(?:name|suffix)"
    r"|['\"][^'\"]*['\"]\s+(?:not\s+)?in\s"
)


def _finds_every(pattern: str) -> bool:
    """Return whether a pattern is that of every name, or of all sources or all data of a kind."""
    return bool(re.fullmatch(_EVERY_NAME, pattern)) or all_lost([pattern.rpartition("/")[2]])


_OUR_PARTS = (
    "agent_hooks.cli",
    "agent_hooks.__main__",
    "agent_hooks.trust",
    "agent_hooks.records",
    "agent_hooks.installs",
    "agent_hooks.server",
)
_PATH_METHODS = ("joinpath", "expanduser", "resolve", "absolute")


def _is_path(text: str) -> bool:
    # No path of the system is longer than this.
    return 0 < len(text) < 4096 and "\n" not in text and "\0" not in text


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)[:80]


class _PythonJudge(ast.NodeVisitor):
    """Judges the calls of a Python program, with constants folded and imports resolved."""

    def __init__(self, command: Command, source: str) -> None:
        self._command = command
        self._source = source
        self._names: dict[str, str] = {}
        self._values: dict[str, str | list[str]] = {}
        # The variables that hold downloaded text.
        self._downloads: set[str] = set()
        self._effects: CallEffects | None = None

    def judge(self, tree: ast.Module) -> None:
        """Judge a program: its calls, and the texts in it that name a file which controls the agent."""
        if not self._command.interpreter.judging:
            self._effects = CallEffects(self._command, tree, self._names)
            # The judgements below record nothing then.
            self._command.recorded = True
        self.visit(tree)
        if self._effects is not None:
            return
        replaced = {id(arg) for node in ast.walk(tree) if self._replaces_text(node) for arg in node.args}  # type: ignore[attr-defined]  # a call
        texts = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in replaced
        ]
        self._walks(tree)
        named = next((text for text in texts if _is_path(text) and self._command.controls(Word(text))), None)
        if named is None:
            return
        calls = {self._name(node.func) or _last(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        if calls & (_FILE_CALLS | _TREE_CALLS | _MOVES | _CHANGES):
            self._command.report("write-guard-settings", CONTROLS, named)
        elif any(call.rpartition(".")[2] not in _HARMLESS for call in calls):
            reason = f"Python code that cannot be read in full: {CONTROLS}"
            self._command.interpreter.report("write-guard-settings", reason, named, undecidable=True)

    def _walks(self, tree: ast.Module) -> None:
        """Report code that removes all files of a directory: a walk, no test that narrows it, and a removal of each."""
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        removes = [call for call in calls if self._name(call.func) in _FILE_CALLS or _last(call.func) == "unlink"]
        unknown = any(self._target(call) is None for call in removes)
        if not unknown or (_NARROWS.search(self._source) and not self._chooses_sources()):
            return
        command = self._command
        for call in calls:
            root = self._walked(call)
            if root is None:
                continue
            path, directories = command.path(Word(root)), command.interpreter.directories
            temporary = directories.in_temp(path) or path in directories.temp
            if not temporary and UNKNOWN not in path and not directories.removable(path, command.level):
                reason, wall = "removes all files of a directory", command.is_machine(Word(root))
                command.report("find-delete", reason, ast.unparse(call), wall=wall)

    def _chooses_sources(self) -> bool:
        """Return whether the only test of a walk is the ending of all source files of a language."""
        endings = re.findall(r"(?:endswith\(|suffix\s*==\s*)['\"]\.(\w+)['\"]", self._source)
        others = _NARROWS.search(
            re.sub(r"\.endswith\(['\"]\.\w+['\"]\)|\.suffix\s*==\s*['\"]\.\w+['\"]", " ", self._source)
        )
        return bool(endings) and all_sources([f"*.{ending}" for ending in endings]) and not others

    def _target(self, call: ast.Call) -> str | list[str] | None:
        """Return the file that a removal names, `None` when it is not known."""
        if self._name(call.func) in _FILE_CALLS:
            return self._constant(call.args[0]) if call.args else None
        return self._constant(call.func.value) if isinstance(call.func, ast.Attribute) else None

    def _walked(self, call: ast.Call) -> str | None:
        """Return the directory of which a call yields every file, `None` for any other call."""
        name, last = self._name(call.func) or "", _last(call.func)
        first = self._constant(call.args[0]) if call.args else None
        pattern = first if isinstance(first, str) else None
        if name in ("os.walk", "os.listdir", "os.scandir", "os.fwalk"):
            return pattern if call.args else "."
        if name in ("glob.glob", "glob.iglob") and pattern is not None:
            head, _, tail = pattern.rpartition("/")
            return head.removesuffix("**").rstrip("/") or "." if _finds_every(tail) else None
        if last in ("rglob", "glob", "iterdir", "walk") and isinstance(call.func, ast.Attribute):
            owner = self._constant(call.func.value)
            every = last in ("iterdir", "walk") or (pattern is not None and _finds_every(pattern))
            return owner if every and isinstance(owner, str) else None
        return None

    def _replaces_text(self, node: ast.AST) -> bool:
        """Return whether a node is a call `text.replace(old, new)`; `Path.replace` has one argument."""
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "replace"
            and len(node.args) > 1
            and self._name(node.func) not in _MOVES
            # A module that is found in another way may be `os`.
            and not re.search(r"\b(?:modules|importlib|__import__|getattr|globals|vars)\b", self._source)
        )

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._names[alias.asname or alias.name] = alias.name
            if self._effects is not None:
                self._effects.imports(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if (node.module or "").startswith(_OUR_PARTS) and any(alias.name == "*" for alias in node.names):
            self._command.report("write-guard-settings", "decides about hooks in the place of a person", node.module)
        for alias in node.names:
            self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        if self._effects is not None:
            self._effects.imports(node.module or ".")

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if not isinstance(item.optional_vars, ast.Name):
                continue
            if self._is_downloaded(item.context_expr):
                self._downloads.add(item.optional_vars.id)
            elif (path := self._constant(item.context_expr)) == TEMP_FILE:
                self._values[item.optional_vars.id] = path
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        value = self._constant(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                if value is None and self._is_downloaded(node.value):
                    self._downloads.add(target.id)
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
        if self._effects is not None:
            self._record(node, name, args, self._effects)
        self._own(node, name, args)
        if name in _SHELL_CALLS or name in _PROCESS_CALLS:
            if isinstance(first, str) and name not in _SHELL_CALLS and len(args) > 1 and name.startswith("os."):
                rest = [arg for arg in args[1:] if isinstance(arg, str)]
                first = next((arg for arg in args[1:] if isinstance(arg, list)), rest)
            self._runs(first)
            if any(map(self._is_downloaded, node.args[:1])):
                command.report("download-exec", "downloaded text is run unseen", name)
            if re.search(r"\bsocket\b", self._source) and re.search(r"dup2|pty\.spawn|connect", self._source):
                command.report("shell-on-socket", "a shell on a network connection", "python")
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _REMOTE and isinstance(first, str):
            if _REMOTE_LIBRARY.search(self._source):
                with command.interpreter.apart():
                    command.shell_code(Word(first))
        elif name.endswith("urlretrieve") and len(args) > 1 and isinstance(args[1], str):
            command.shell.files[command.path(args[1])] = Text(None, frozenset({"saved-download"}))
        elif name in _TREE_CALLS:
            command.tree(Word(first if isinstance(first, str) else UNKNOWN), verb="removes a tree")
        elif name in _FILE_CALLS and isinstance(first, str):
            command.deletes(Word(first))
        elif name in ("open", "io.open") and isinstance(first, str):
            given = [*args[1:2], *(self._constant(key.value) for key in node.keywords if key.arg == "mode")]
            mode = next((arg for arg in given if isinstance(arg, str)), "r")
            command.writes(Word(first)) if set(mode) & set("wax+") else command.reads(Word(first))
        elif name == "os.chmod" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            mode_bits = node.args[1].value
            if isinstance(mode_bits, int) and mode_bits & 0o002:
                command.report("world-writable", "lets everybody write", "os.chmod")
        elif name in ("exec", "eval", "builtins.exec"):
            self._evaluates(node, first)
        elif isinstance(node.func, ast.Attribute):
            self._method(node.func)

    def _record(self, node: ast.Call, name: str, args: list[str | list[str] | None], effects: CallEffects) -> None:
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        keywords = {key.arg: self._constant(key.value) for key in node.keywords if key.arg}
        root: ast.AST = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        full = (isinstance(root, ast.Name) and root.id in self._names) or (
            not isinstance(root, ast.Name) and "." in name
        )
        effects.call(node, name, args, keywords, None if owner is None else self._constant(owner), full)

    def _own(self, node: ast.Call, name: str, args: list[str | list[str] | None]) -> None:
        """Judge a call that moves or changes files, ends a process, or decides in the place of a person."""
        command = self._command
        paths = [Word(arg) for arg in args if isinstance(arg, str)]
        if name in _MOVES:
            control = command.interpreter.control
            command.deletes(*(path for path in paths[:1] if control.stops_removing(command.path(path))))
        if name in _MOVES | _COPIES:
            command.reads(*paths[:1])
            command.writes(*paths[1:2])
        elif name in _CHANGES or (name == "os.open" and re.search("O_(WRONLY|RDWR|TRUNC|CREAT)", ast.unparse(node))):
            command.writes(*paths[:1])
        elif name in ("os.kill", "os.killpg") and node.args:
            command.runs([Word("kill"), Word("-9"), Word(ast.unparse(node.args[0]))])
        elif name in ("runpy.run_module", "runpy.run_path") and any("agent_hooks" in path for path in paths):
            command.report("write-guard-settings", "runs the command of a person's decisions", name)
        elif name.startswith(_OUR_PARTS):
            command.report("write-guard-settings", "decides about hooks in the place of a person", name)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _PATH_CHANGES:
            if self._replaces_text(node):
                return
            owner = self._constant(node.func.value)
            given = [*([Word(owner)] if isinstance(owner, str) else []), *paths[:1]]
            command.writes(*(path for path in given if command.controls(path)))
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "open" and paths[:1]:
            owner = self._constant(node.func.value)
            if isinstance(owner, str) and set(paths[0]) & set("wax+"):
                command.writes(Word(owner))

    def _evaluates(self, node: ast.Call, first: str | list[str] | None) -> None:
        if isinstance(first, str):
            judge_python(self._command, Word(first))
            return
        text = ast.unparse(node)
        if re.search(r"b64decode|b32decode|a85decode|unhexlify|fromhex|decompress|marshal|rot", text):
            self._command.report("encoded-exec", "decoded text is run unseen", text)
        elif any(map(self._is_downloaded, node.args[:1])):
            self._command.report("download-exec", "downloaded text is run unseen", text)

    def _is_downloaded(self, node: ast.expr) -> bool:
        """Return whether an expression is a text that the code has downloaded."""
        return any(
            (isinstance(each, ast.Name) and each.id in self._downloads)
            or (isinstance(each, ast.Call) and self._fetches(self._name(each.func) or ""))
            for each in ast.walk(node)
        )

    def _fetches(self, name: str) -> bool:
        """Return whether a call may return a text from the network; a name or a number of a socket is none."""
        return bool(NETWORK.search(name)) and not re.search(
            r"\b(?:get(?:sock|host|peer|fqdn)\w*|parse|quote\w*|url(?:parse|join|encode|split)|socket)$", name
        )

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

    def _runs(self, program: str | list[str] | None) -> None:
        if isinstance(program, str):
            self._command.shell_code(Word(program))
        elif isinstance(program, list) and program:
            self._command.runs([Word(word) for word in program])

    def _name(self, node: ast.AST) -> str | None:
        """Return the full name that an expression stands for: `os.system`, also for `__import__('os').system`."""
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
        """Return the text or the list of texts that an expression stands for, `None` when it is not known."""
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
        """Return the path that an expression of `pathlib` or `os.path` builds; `~` stands for the home directory."""
        if isinstance(node, ast.Subscript):
            home = self._name(node.value) == "os.environ" and self._constant(node.slice) == "HOME"
            return "~" if home else None
        parts: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right] if isinstance(node.op, ast.Div) else []
        else:
            name = self._name(node.func) or ""
            if name in _TEMPORARY_CALLS and not any(key.arg == "dir" for key in node.keywords):
                return TEMP_FILE
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
