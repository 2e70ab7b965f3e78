"""The effects of Python code: of calls with known names; a call of anything else is opaque.

`python` resolves the names and folds the constants.  A path that is no constant is recorded as one that is not known.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping

from agent_hooks.guards.sensitive import UNKNOWN
from agent_hooks.guards.shell.command import Command
from agent_hooks.guards.shell.programs.reading import host_of
from agent_hooks.guards.shell.words import Word
from agent_hooks.values.effects import Access

Value = str | list[str] | None
"""A constant: a text, a list of texts, or `None` when it is not known."""

# The effects of functions on the files that their first and second arguments name; `+` marks a whole tree.
_FUNCTIONS_TEXT = """
os.remove, os.unlink, os.rmdir, os.removedirs, send2trash.send2trash : delete
os.mkdir, os.makedirs, os.truncate, os.chmod, os.chown, os.lchown, os.utime, os.mkfifo, os.mknod, os.setxattr,
 os.chflags : write
os.rename, os.renames, os.replace : delete+ write+
shutil.move : delete+ write+
shutil.rmtree : delete+
shutil.copy, shutil.copy2, shutil.copyfile, shutil.copymode, shutil.copystat : read write
shutil.copytree : read+ write+
shutil.chown : write
shutil.make_archive : write
shutil.unpack_archive : read write+
os.link, os.symlink : list write
os.listdir, os.scandir, os.stat, os.lstat, os.access, os.readlink, os.statvfs : list
os.walk, os.fwalk, glob.glob, glob.iglob, shutil.disk_usage : list+
os.startfile : execute
runpy.run_path : execute
linecache.getline, linecache.getlines, tokenize.open, configparser.read : read
sqlite3.connect, dbm.open, shelve.open : write
zipfile.ZipFile, tarfile.open, gzip.open, bz2.open, lzma.open, tarfile.TarFile, gzip.GzipFile, codecs.open,
 io.FileIO, wave.open : mode
os.open : flags
open, io.open, os.fdopen, builtins.open, aiofiles.open, anyio.open_file : mode
fileinput.input, fileinput.FileInput : edit
numpy.save, numpy.savetxt, numpy.savez, np.save, np.savetxt, np.savez, cv2.imwrite, imageio.imwrite, plt.savefig,
 joblib.dump : write
pandas.read_csv, pandas.read_json, pandas.read_excel, pandas.read_parquet, pd.read_csv, pd.read_json, numpy.load,
 PIL.Image.open, cv2.imread : read
"""


def _table(text: str) -> dict[str, list[str]]:
    """Return the roles of the arguments by the name of the function."""
    rows = (line.partition(" : ") for line in text.strip().replace("\n ", " ").splitlines())
    return {name: roles.split() for names, _, roles in rows for name in names.split(", ")}


_FUNCTIONS = _table(_FUNCTIONS_TEXT)
# The effects of methods on the path that they belong to, and on their first argument.
_METHODS_TEXT = """
write_text, write_bytes, touch, mkdir, chmod, lchmod : write
unlink, rmdir : delete
rename, replace : delete+ write+
symlink_to, hardlink_to, link_to : write list
read_text, read_bytes : read
iterdir, glob, rglob, walk : list+
stat, lstat, exists, is_file, is_dir, is_symlink, owner, group, readlink : list
"""
_METHODS = _table(_METHODS_TEXT)
# Methods of values that are no paths; their first argument is the file.
_SAVES_TEXT = (
    "to_csv to_json to_excel to_parquet to_pickle to_html to_markdown savefig write_image write_csv write_parquet"
)
_SAVES = frozenset(_SAVES_TEXT.split())
# Modules of the standard library whose functions change nothing outside of the process.
_PURE_TEXT = """
abc argparse array ast base64 binascii bisect builtins calendar cmath codecs collections colorsys configparser
contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis doctest email encodings enum errno
fnmatch fractions functools gc getopt gettext graphlib hashlib heapq hmac html inspect io ipaddress itertools json
keyword linecache locale logging math mimetypes numbers operator optparse pathlib pickle platform plistlib posixpath
pprint queue quopri random re reprlib secrets shlex statistics string stringprep struct sys sysconfig textwrap
threading time timeit token tokenize tomllib traceback types typing unicodedata urllib.parse urllib.error uuid
warnings weakref xml zlib zoneinfo _thread os.path os.environ os.getcwd os.getenv os.getpid os.getppid os.getuid
os.getlogin os.uname os.cpu_count os.sep os.name os.linesep os.fspath os.urandom os.get_terminal_size os.stat
os.times os.umask os.isatty os.fsencode os.fsdecode os.close os.read os.getgid os.geteuid os.strerror os.walk
sys.exit sys.stdout sys.stdin sys.stderr tempfile importlib.metadata importlib.util site getpass glob stat asyncio
concurrent multiprocessing.cpu_count signal.signal select numpy np pandas pd yaml toml tomli tomli_w rich attr attrs
pydantic packaging dateutil pytz bs4 lxml tabulate tqdm msgspec orjson
"""
_PURE = frozenset(_PURE_TEXT.split())
# Packages whose import changes nothing.
_IMPORTED_TEXT = """
requests httpx urllib3 aiohttp yaml numpy np pandas pd toml tomli rich attr attrs pydantic packaging bs4 lxml msgspec tqdm
orjson
"""
_IMPORTED = frozenset(_IMPORTED_TEXT.split())
# Modules that use the network.
_SENDS_TEXT = """
requests httpx urllib3 aiohttp urllib.request http.client socket smtplib ftplib telnetlib imaplib poplib xmlrpc.client
websockets paramiko boto3 openai anthropic ssl nntplib
"""
_SENDS = tuple(_SENDS_TEXT.split())
_GETS = {"get", "head", "options", "urlopen", "urlretrieve", "stream"}
_STARTS_TEXT = """
os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen
subprocess.getoutput subprocess.getstatusoutput pty.spawn pexpect.spawn pexpect.run commands.getoutput
"""
_STARTS = frozenset(_STARTS_TEXT.split())
_RUNS_CODE_TEXT = (
    "exec eval builtins.exec builtins.eval __import__ importlib.import_module importlib.reload runpy.run_module"
)
_RUNS_CODE = frozenset(_RUNS_CODE_TEXT.split())
_BUILTINS = frozenset(dir(builtins)) - frozenset(
    ["open", "exec", "eval", "compile", "input", "breakpoint", "__import__"]
)
_PATH_KEYWORDS = ("src", "dst", "path", "filename", "file", "name", "target")


class CallEffects:
    """Records the effects of the calls of one program.

    `own`: the names of functions, classes and arguments that the program defines, each of which is followed where it
    stands.
    """

    def __init__(self, command: Command, tree: ast.Module, names: Mapping[str, str]) -> None:
        self._command = command
        self._names = names
        self._own = _defined(tree)
        self._reported = False

    def imports(self, module: str) -> None:
        """Record an import: a module of the project runs its code."""
        top = module.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in _IMPORTED:
            self._opaque(f"it imports {module}")

    def call(
        self, node: ast.Call, name: str, args: list[Value], keywords: Mapping[str, Value], owner: Value, full: bool
    ) -> None:
        """Record a call.

        `name`: the function, as far as it is known; `args`, `keywords`: the constants among the arguments; `owner`:
        the constant that a method belongs to; `full`: `name` begins with a module.
        """
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in _STARTS:
            if not args or args[0] is None:
                self._command.unknown("dynamic", "Python code starts a program that is known only when it runs")
        elif (roles := _FUNCTIONS.get(name)) is not None:
            self._paths(roles, node, args, keywords)
        elif name in _RUNS_CODE:
            if not (args and isinstance(args[0], str) and UNKNOWN not in args[0]):
                self._opaque("it runs code that is known only when it runs")
        elif (module := next((each for each in _SENDS if name.startswith(f"{each}.")), None)) is not None:
            self._sends(name, module, args, keywords)
        elif method in _METHODS and not full and self._is_path(method, node, owner):
            self._paths(_METHODS[method], node, [owner if isinstance(owner, str) else None, *args], keywords)
        elif method == "open" and not full:
            self._mode(owner, args[0] if args else keywords.get("mode", "r"), bool(args) or "mode" in keywords)
        elif method in ("extractall", "extract"):
            target = args[-1] if args and method == "extractall" else keywords.get("path", ".")
            self._effect("write", target if isinstance(target, str) else ".", tree=True)
        elif method in _SAVES:
            self._effect("write", args[0] if args and isinstance(args[0], str) else UNKNOWN)
        elif not self._is_harmless(name, method, full=full):
            self._opaque(f"it calls {name or method or 'a function'}")

    def _is_path(self, method: str, node: ast.Call, owner: Value) -> bool:
        """Return whether the owner of a method may be a path: `text.replace(old, new)` and `list.index` are none."""
        if isinstance(owner, str):
            return method != "replace" or len(node.args) == 1
        return not (method == "replace" and len(node.args) != 1) and method not in ("stat", "group", "owner", "walk")

    def _paths(self, roles: list[str], node: ast.Call, args: list[Value], keywords: Mapping[str, Value]) -> None:
        given = [*args, *(keywords[key] for key in _PATH_KEYWORDS if key in keywords)]
        for at, role in enumerate(roles):
            value = given[at] if at < len(given) else "." if role.startswith("list") else None
            if role == "mode":
                mode = args[1] if len(args) > 1 else keywords.get("mode", "r")
                self._mode(value, mode, len(args) > 1 or "mode" in keywords)
            elif role == "flags":
                # A flag that is not known may be one that writes.
                only_read = len(node.args) > 1 and ast.unparse(node.args[1]) in ("os.O_RDONLY", "O_RDONLY", "0")
                self._effect("read" if only_read else "write", value if isinstance(value, str) else UNKNOWN)
            elif role == "edit":
                inplace = any(key.arg == "inplace" for key in node.keywords)
                for each in value if isinstance(value, list) else [value]:
                    self._effect("read", each if isinstance(each, str) else UNKNOWN)
                    if inplace:
                        self._effect("write", each if isinstance(each, str) else UNKNOWN)
            else:
                access: Access = role.rstrip("+")  # type: ignore[assignment]  # a word of the tables above
                if value is None and access == "list":
                    continue
                if isinstance(value, str) and value == ":memory:":
                    continue
                self._effect(access, value if isinstance(value, str) else UNKNOWN, tree=role.endswith("+"))
                if access == "execute":
                    self._opaque("it runs a file")

    def _mode(self, path: Value, mode: Value, given: bool) -> None:
        writes = not isinstance(mode, str) if given else False
        if isinstance(mode, str):
            writes = bool(set(mode.partition(":")[0]) & set("wax+"))
        self._effect("write" if writes else "read", path if isinstance(path, str) else UNKNOWN)

    def _effect(self, access: Access, path: str, *, tree: bool = False) -> None:
        self._command.effect(access, Word(path), tree=tree)

    def _sends(self, name: str, module: str, args: list[Value], keywords: Mapping[str, Value]) -> None:
        last = name.rpartition(".")[2]
        texts = [arg for arg in (*args, keywords.get("url"), keywords.get("host")) if isinstance(arg, str)]
        plain = texts[-1:] if last == "request" else texts[:1]
        url = next((text for text in texts if "://" in text), plain[0] if plain else UNKNOWN)
        method = texts[0].lower() if last == "request" and texts else last
        sends = method not in _GETS or bool({"data", "json", "files", "content"} & set(keywords))
        if module in ("urllib.request",):
            sends = "data" in keywords or (len(args) > 1 and last != "urlretrieve")
        elif module in ("socket", "ssl", "aiohttp", "boto3") and last in (
            "socket",
            "gethostname",
            "create_default_context",
            "getfqdn",
        ):
            return
        host = host_of(url)
        if host not in ("localhost", "127.0.0.1"):
            self._command.transfers("out" if sends else "in", None if UNKNOWN in host else host, "Python code")
        if last == "urlretrieve":
            self._effect("write", args[1] if len(args) > 1 and isinstance(args[1], str) else UNKNOWN)

    def _is_harmless(self, name: str, method: str, *, full: bool) -> bool:
        if not full:
            root = name.partition(".")[0]
            # A method of a value that the program has made.
            return bool(method) or root in self._own or root in _BUILTINS
        parts = name.split(".")
        if parts[0] in ("os", "shutil", "subprocess", "sys", "socket", "urllib"):
            return any(".".join(parts[:count]) in _PURE for count in (1, 2, 3))
        return any(".".join(parts[:count]) in _PURE for count in (1, 2)) or parts[0] in self._own

    def _opaque(self, why: str) -> None:
        if not self._reported:
            self._reported = True
            self._command.unknown("opaque", f"Python code: {why[:150].replace(UNKNOWN, '…')}")


def _defined(tree: ast.Module) -> set[str]:
    """Return the names of functions, classes, arguments and variables that a program defines."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Lambda):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(target.id for target in targets if isinstance(target, ast.Name))
    return found
