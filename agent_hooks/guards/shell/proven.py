"""Code that only reads: a short list has each of its names, and nothing in it writes or runs programs.

A proof may fail for harmless code, and then the user is asked.  It never succeeds for code with an unknown name.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping, Sequence

from agent_hooks.guards.lazy import lazy_pattern
from agent_hooks.guards.shell.names import is_language
from agent_hooks.guards.shell.options import ParsedOptions
from agent_hooks.guards.shell.words import Text, Word

AWKS = frozenset(("awk", "gawk", "mawk", "nawk"))
_QUOTED = lazy_pattern(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_AWK_PATTERN = lazy_pattern(r"/(?:[^/\\\n]|\\.)*/")
_AWK_ACTS = lazy_pattern(r"[>|@]|\b(?:system|getline|close|fflush)\b")


def reads_only(
    name: str, argv: Sequence[Word], stdin: Text, files: Mapping[str, Text], path: Callable[[str], str]
) -> bool:
    """Return whether the code that a language, awk or sed gets is known and reads only."""
    if name in AWKS or name == "sed":
        scripts = _scripts(name, argv, stdin, files, path)
        proven = _awk if name in AWKS else _sed
        return scripts is not None and all(map(proven, scripts))
    if not is_language(name):
        return False
    codes, options = code_of(name, argv)
    if is_python(name):
        if "m" in options.flags:
            return "".join(options.value("m")) in _MODULES
        if not codes and stdin.text and options.operands[:1] in ([], ["-"]):
            codes = [stdin.text]
        return bool(codes) and all(map(python_reads, codes))
    return bool(codes) and "i" not in options.flags and all(map(words_read, codes))


def is_python(name: str) -> bool:
    """Return whether a plain name means Python."""
    return name.startswith(("python", "pypy"))


def code_of(name: str, argv: Sequence[Word]) -> tuple[list[str], ParsedOptions]:
    """Return the code in the options of a language, and all its options."""
    letters, values = _LETTERS.get(re.sub(r"[\d.]+$", "", name), ("e", ""))
    # The letter for code is the last one of several, as in `-ne CODE`.
    options = ParsedOptions(argv, letters + values, ("--eval", "--print"), stop_early=True)
    return [*options.value(*letters, "--eval", "--print")], options


# The letters of the options with code, and of others with a value.
_LETTERS = {"python": ("c", "WXm"), "pypy": ("c", "WXm"), "perl": ("eE", "MmI"), "ruby": ("e", "rIC"),
            "node": ("ep", "r"), "nodejs": ("ep", "r"), "php": ("rBRE", "dc")}  # fmt: skip
# Modules of Python whose command reads the files that it gets, or checks them.
_MODULES_TEXT = "json.tool pytest py_compile mypy pyright flake8 pylint unittest tokenize ast dis"
_MODULES = frozenset(_MODULES_TEXT.split())


def _scripts(
    name: str, argv: Sequence[Word], stdin: Text, files: Mapping[str, Text], path: Callable[[str], str]
) -> list[str] | None:
    """Return the scripts of awk or sed, `None` when one is not known."""
    options = ParsedOptions(
        argv, "fFv" if name in AWKS else "efl", ("--file", "--expression"), optional="" if name in AWKS else "i"
    )
    if name in AWKS and options.has("i", "l", "e", "E", "--include", "--load", "--source", "--exec"):
        return None
    found: list[str] = [*options.value("e", "--expression")]
    for word in options.value("f", "--file"):
        if word.startswith("/dev/fd/") and "process" in word.taint:
            found.append(word[8:])
        elif (text := stdin if word in ("-", "/dev/stdin") else files.get(path(word))) is None or text.text is None:
            return None
        else:
            found.append(text.text)
    return found or [*options.operands[:1]] or None


def _awk(script: str) -> bool:
    return not _AWK_ACTS.search(_AWK_PATTERN.sub("", _QUOTED.sub("", script)))


_SED = lazy_pattern(
    r"[\s;{}]*(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)(?:\s*[,~]\s*[+~]?(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?))?)?\s*!?\s*"
    r"(?:s([^\w\s\\])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiIM\d]*|y/[^/\n]*/[^/\n]*/|[pPdDnNhHgGxlqQ=z]\d*(?![\w/.])"
    r"|[aic]\b[^\n]*|[btT:]\s*\w*|#[^\n]*)?(?=[\s;}]|$)[\s;}]*"
)


def _sed(script: str) -> bool:
    at = 0
    while at < len(script):
        match = _SED.match(script, at)
        if match is None or match.end() == at:
            return False
        at = match.end()
    return True


# ---- Python ----------------------------------------------------------------------------------------------------------

_CALLS_TEXT = (
    "print len sorted sum min max any all map filter zip enumerate range set list dict tuple str repr format int bool "
    "bytes Path PurePath read_text read_bytes read readline readlines glob iglob rglob iterdir exists lexists is_file "
    "is_dir isfile isdir stat lstat getsize getmtime load loads dumps safe_load listdir walk scandir join split "
    "splitlines strip rstrip lstrip basename dirname abspath realpath relpath resolve expanduser absolute joinpath "
    "relative_to decode encode startswith endswith count index find get keys values items append insert extend parse "
    "dump sha256 md5 hexdigest compile_ match search findall fullmatch upper lower pprint literal_eval open isinstance "
    "with_suffix fspath cwd getcwd home time ctime fromtimestamp isoformat group groups getenv reversed next iter title"
)
# What else of a module or a value may be named.
_NAMED_TEXT = (
    "path sep name stem suffix suffixes parent parents parts argv stdin stdout stderr environ st_size st_mtime st_mode "
    "version os sys json re pathlib ast hashlib glob yaml tomllib pprint"
)
_CALLS = frozenset(_CALLS_TEXT.split())
_NAMED = _CALLS | frozenset(_NAMED_TEXT.split())
_BUILTIN_ACTS_TEXT = "exec eval compile getattr setattr delattr globals locals vars __import__ __builtins__"
_BUILTIN_ACTS = frozenset(_BUILTIN_ACTS_TEXT.split())


# Names by which a written text may be run.
_RUNS = lazy_pattern(
    r"\b(?:subprocess|popen|system|spawn\w*|exec\w*|pty|ctypes|socket|import_module|importlib|__import__|getattr|modules|globals|vars)\b",
    re.IGNORECASE,
)
_WRITES = frozenset(("write", "writelines", "write_text", "write_bytes", "print", "replace"))


def python_texts(source: str) -> tuple[str, ...]:
    """Return the constants of Python code, also joined, without texts that it only writes.

    Code that cannot be parsed is returned as it is.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = list(ast.walk(ast.parse(source.strip("\n"))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (source,)
    written = set[int]() if _RUNS.search(source) else _written(nodes)
    texts = [
        value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for node in nodes
        if isinstance(node, ast.Constant) and id(node) not in written and isinstance(value := node.value, str | bytes)
    ]
    return ("\n".join(texts), "".join(texts), "/".join(texts))


def _written(nodes: Sequence[ast.AST]) -> set[int]:
    """Return the constants that are arguments of methods which write or replace a text, by `id`."""
    modules = {(alias.asname or alias.name) for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found: set[int] = set()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called, given = node.func, node.args
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        owner = called.value if isinstance(called, ast.Attribute) else None
        if name in _WRITES and not (isinstance(owner, ast.Name) and owner.id in modules):
            # `Path.replace` has one argument.
            given = given if name != "replace" or len(given) > 1 else []
            found |= {id(each) for arg in given for each in ast.walk(arg) if isinstance(each, ast.Constant)}
    return found


def python_reads(source: str) -> bool:
    """Return whether Python code reads only."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.strip("\n"))
        return all(map(_node_reads, ast.walk(tree)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _node_reads(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _NAMED
    if isinstance(node, ast.Name):
        return node.id not in _BUILTIN_ACTS
    if isinstance(node, ast.ImportFrom):
        return all(alias.name in _NAMED for alias in node.names)
    if isinstance(node, ast.Import):
        return all(alias.name.rpartition(".")[2] in _NAMED for alias in node.names)
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return called in _CALLS and (called != "open" or _opens_to_read(node))
    return not isinstance(node, ast.Delete | ast.AsyncFunctionDef | ast.ClassDef)


def _opens_to_read(call: ast.Call) -> bool:
    """Return whether `open(path)` and `path.open()` open a file for reading."""
    given = call.args[1:] if isinstance(call.func, ast.Name) else call.args
    given = [*given, *(each.value for each in call.keywords if each.arg not in ("encoding", "errors", "newline"))]
    return all(isinstance(each, ast.Constant) and each.value in ("r", "rb", "rt") for each in given)


# ---- other languages -------------------------------------------------------------------------------------------------

_WORDS_TEXT = (
    "console log print puts p File Dir IO JSON YAML fs path os process read readlines readFileSync readFile readdirSync "
    "existsSync exist statSync parse load stringify utf8 require const let var if else elsif unless for foreach of in do "
    "end each map filter join keys values Object Array argv ARGV ENV env homedir return function toString to_s split "
    "trim strip chomp length size say warn my use strict warnings while print_r echo json_decode file_get_contents "
    "var_dump true false null nil undefined substr sprintf format inspect first last and or not next BEGIN END STDIN "
    "stdin match includes indexOf startsWith endsWith forEach qw glob children entries"
)
_WORDS = frozenset(_WORDS_TEXT.split())
_WORD = lazy_pattern(r"(?<![$@%\w])[A-Za-z_]\w*")
_DECLARED = lazy_pattern(r"\b(?:const|let|var)\s+(\w+)|\|\s*(\w+)\s*\||(\w+)\s*=>")
_PATTERN = lazy_pattern(
    r"(?:(?<=[(,=!&|;{~])|\b(?:if|unless|and|or|print)\s|^)\s*/(?:[^/\\\n]|\\.)+/[gimsx]*(?![\w(/])"
)
# Other quotes, commands in backticks and pipes, and names that are computed.
_ACTS = lazy_pattern(r"`|%x|\bqx\b|['\"]\s*[|>+]|\]\s*\(|>>|\bsend\b")

_VALUE = lazy_pattern(r"\.[A-Za-z_]\w*")
_DOES = lazy_pattern(
    r"sync|file|dir|link|rm|writ|renam|exec|spawn|cp|copy|trunc|mk|chm|chown|open|append|stream|fork|kill|bind|times|remove|"
    r"command|run|eval|function|construct|call|apply|main|mod|glob|vm|delete|send",
    re.IGNORECASE,
)


def words_read(source: str) -> bool:
    """Return whether each word of code in perl, ruby, JavaScript or PHP reads only."""
    if _ACTS.search(source):
        return False
    rest = _PATTERN.sub(" ", _QUOTED.sub('""', source))
    if "JSON.parse(" in rest:
        # The values of a file, by names that none of the methods has which do something.
        rest = _VALUE.sub(lambda match: match[0] if _DOES.search(match[0]) else "", rest)
    declared = {name for names in _DECLARED.findall(rest) for name in names if name}
    return not re.search(r"[\"']\s*\]\s*\(|<", rest) and all(
        word in _WORDS or word in declared or len(word) == 1 for word in _WORD.findall(rest)
    )
