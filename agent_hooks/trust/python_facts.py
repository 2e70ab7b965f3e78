"""The facts about a Python file, from its syntax tree.

How they are found:

1. A name counts wherever it is mentioned, whichever object it belongs to: `x.system` may be `os.system`.  So an alias of
   a module or of a function hides nothing.
2. A module of the standard library counts as harmless only if `_PLAIN` lists it.  The code of any other module outside
   the set is not read, and the fact says so.
3. A mention that can stand for any other name, `eval` or `getattr(x, y)`, is `unknown`, with its line.

Nothing here recurses, so the depth of the code does not matter.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

from agent_hooks.trust.fact import Fact, Kind, shortened
from agent_hooks.trust.header import blocks
from agent_hooks.trust.python_names import (
    BUILTINS,
    CONNECTING,
    CONNECTING_MODULES,
    DYNAMIC,
    ENVIRONMENT,
    OURS,
    PLAIN,
    STARTING,
    STARTING_MODULES,
    WHOLE_MODULES,
)

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_UTF_8 = re.compile(r"utf[-_]?8([-_](sig|unix|dos|mac))?", re.IGNORECASE)
_BOM = b"\xef\xbb\xbf"
_SUBSCRIBING = ("on", "intercept", "register_tool", "adopt", "start_task")
_OURS = "agent_hooks"
# Their patterns with one position match the value itself.
_SELF_MATCHING = frozenset(
    ["bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"]
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_facts(data: bytes, *, beside: frozenset[str] = frozenset(), hook: bool = False) -> list[Fact]:
    """Return the facts about a Python file; raises nothing.

    `beside`: the names of the modules in the set that it can import; `hook`: the file has to define `register`.
    """
    if (problem := _encoding_problem(data)) is not None:
        return [Fact("refused", problem)]
    text = data.removeprefix(_BOM).decode()
    try:
        with warnings.catch_warnings():
            # The parser warns of unusual escapes; the person reads the code itself.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as exc:
        return [Fact("refused", f"it is not Python: {exc.msg}", (exc.lineno,) if exc.lineno else ())]
    except ValueError as exc:
        return [Fact("refused", f"it is not Python: {exc}")]
    except (RecursionError, MemoryError):
        return [Fact("unknown", "all of it: it is nested too deeply to be read")]
    facts = [*_Reader(tree, beside).facts(), *_metadata(text)]
    if re.search(r"\r(?!\n)", text):
        facts.append(Fact("unknown", "the numbers of its lines: in Python, a lone carriage return ends a line"))
    return [*facts, *_register(tree, beside)] if hook else facts


def _encoding_problem(data: bytes) -> str | None:
    """Return the reason why the text that a person reads is not surely the one that Python would run."""
    # Python ends a line at each kind of line end, and looks for the cookie in the first two lines.
    lines = re.split(rb"\r\n|\r|\n", data, maxsplit=2)[:2]
    for line in lines:
        cookie = _COOKIE.match(line.removeprefix(_BOM).decode("latin-1"))
        if cookie is not None and not _UTF_8.fullmatch(cookie[1]):
            return f"its first lines declare the encoding {cookie[1]}; only UTF-8 is read"
    try:
        data.decode()
    except UnicodeDecodeError as exc:
        return f"it is not UTF-8: byte {exc.start} is {data[exc.start]:#04x}"
    return None


def _metadata(text: str) -> Iterator[Fact]:
    """Yield the dependencies that the header names (PEP 723), and the settings with which they are fetched."""
    for _, content in blocks(text):
        try:
            table = tomllib.loads(content)
        except (tomllib.TOMLDecodeError, RecursionError):
            yield Fact("unknown", "the dependencies in its metadata block, which is no TOML")
            continue
        named = table.get("dependencies", [])
        for each in named if isinstance(named, list) else [named]:
            yield Fact("needs", f"{shortened(str(each))} (metadata block)")
        yield from _fetching(table.get("tool"))


def _fetching(tool: object) -> Iterator[Fact]:
    """Yield the settings of uv in a header: an index or a source may put another package in the place of a known one."""
    settings = tool.get("uv") if isinstance(tool, dict) else None
    if isinstance(settings, dict):
        for name, value in settings.items():
            yield Fact("needs", f"uv's setting {shortened(f'{name} = {value}')} (metadata block)")


def _register(tree: ast.Module, beside: frozenset[str]) -> Iterator[Fact]:
    """Yield a fact unless the file defines `register` itself, or takes it from a file of the set."""
    for node in ast.walk(tree):
        if isinstance(node, _Function) and node.name == "register":
            return
        if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) == "register" for each in node.names):
            if node.level or (node.module or "").partition(".")[0] in beside:
                return
            yield Fact("unknown", f"its register, which comes from {node.module}", (node.lineno,))
            return
        if isinstance(node, ast.Name) and node.id == "register" and isinstance(node.ctx, ast.Store):
            yield Fact("unknown", "its register, which is computed", (node.lineno,))
            return
    yield Fact("unknown", "its register: the file defines none")


class _Reader:
    """Collects the facts about one syntax tree."""

    def __init__(self, tree: ast.Module, beside: frozenset[str]) -> None:
        self._tree = tree
        self._beside = beside
        self._facts: list[Fact] = []
        # The identities of nodes whose meaning the node around them has told.
        self._known: set[int] = set()
        nodes = list(ast.walk(tree))
        nodes += [each for node in nodes for each in _annotated(node)]
        self._nodes = nodes
        self._defined = {node.name for node in nodes if isinstance(node, _Function | ast.ClassDef)}
        self._apis = {name for node in nodes if isinstance(node, _Function) for name in _apis_of(node)}
        self._modules: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.Import):
                for each in node.names:
                    self._modules[each.asname or each.name.partition(".")[0]] = each.name
            elif isinstance(node, ast.ImportFrom) and (node.level or self._is_beside(node.module or "")):
                self._defined |= {each.asname or each.name for each in node.names}

    def facts(self) -> list[Fact]:
        """Return the facts; `ast.walk` gives a node before those inside of it."""
        for node in self._nodes:
            match node:
                case ast.Import():
                    for each in node.names:
                        self._import(node, each.name, each.asname)
                case ast.ImportFrom():
                    self._import_from(node)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._decorated(node)
                case ast.Call():
                    self._call(node)
                case ast.Attribute():
                    self._attribute(node)
                case ast.Name():
                    self._name(node)
                case ast.MatchClass():
                    if node.patterns and not self._matches_itself(node.cls):
                        self._add("unknown", f"case {_dotted(node.cls)}(…), which reads attributes by position", node)
                    for name in node.kwd_attrs:
                        self._mention(node, name, f"case …({name}=…)")
                case ast.Constant(value=str() as text) if "/environ" in text:
                    self._add("environment", shortened(text), node)
        return self._facts

    def _matches_itself(self, cls: ast.expr) -> bool:
        """Return whether a pattern names a builtin class whose only position is the value."""
        if not isinstance(cls, ast.Name) or cls.id not in _SELF_MATCHING:
            return False
        return cls.id not in self._stored and cls.id not in self._defined

    @cached_property
    def _stored(self) -> set[str | None]:
        """The names that the file gives to values.  The names of functions and classes are in `_defined`."""
        found = set[str | None]()
        for node in self._nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.MatchAs(name=name):
                    found.add(name)
                case ast.alias(name=name, asname=other):
                    found.add(other or name)
        return found

    def _add(self, kind: Kind, text: str, node: ast.AST) -> None:
        line = getattr(node, "lineno", None)
        self._facts.append(Fact(kind, text, () if line is None else (line,)))

    # ---- imports

    def _is_beside(self, module: str) -> bool:
        top = module.partition(".")[0]
        return top in self._beside and top not in sys.stdlib_module_names and top != _OURS

    def _import(self, node: ast.AST, module: str, name: str | None = None) -> None:
        self._add("imports", module + (f" as {name}" if name else ""), node)
        if not self._is_beside(module):
            self._module(node, module)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        self._add("imports", module, node)
        for each in node.names:
            text = f"from {module} import {each.name}"
            if each.name == "*":
                self._add("unknown", text, node)
            else:
                self._mention(node, each.name, text)
                if node.level == 0 and not self._is_beside(module):
                    self._member(node, module, each.name, text)
        if node.level == 0 and not self._is_beside(module):
            self._module(node, module)
            for each in node.names:
                # `from http import client` imports the module `http.client`.
                full = f"{module}.{each.name}"
                if full in STARTING_MODULES or full in CONNECTING_MODULES or full in WHOLE_MODULES:
                    self._module(node, full)

    def _module(self, node: ast.AST, module: str) -> None:
        """Add the facts about an imported module that is not part of the set."""
        top = module.partition(".")[0]
        if _within(module, STARTING_MODULES):
            self._add("programs", f"import {module}", node)
        if _within(module, CONNECTING_MODULES) and not _within(module, PLAIN - {top}):
            self._add("connections", f"import {module}", node)
        if _within(module, WHOLE_MODULES):
            self._add("unknown", f"import {module}", node)
        if top == _OURS:
            if module not in (_OURS, f"{_OURS}.testing"):
                self._add("unknown", f"import {module}, which is not the public API", node)
        elif top in sys.stdlib_module_names:
            followed = (PLAIN, STARTING_MODULES, CONNECTING_MODULES, WHOLE_MODULES)
            if not any(_within(module, names) for names in followed):
                self._add("unknown", f"import {module}, which the facts do not follow", node)
        else:
            self._add("needs", f"{top}, whose code is not part of the set", node)

    def _member(self, node: ast.AST, module: str, name: str, text: str) -> None:
        """Add the fact about a name of a module that its documentation does not have, or that acts on other hooks."""
        if module == _OURS and not _is_for_hooks(name) and name not in DYNAMIC:
            self._add("unknown", text, node)
        elif re.match("_[^_]", name):
            self._add("unknown", f"{shortened(text)}, which is private", node)

    # ---- calls

    def _decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Add the tool that a function is by its decorator `@api.register_tool`, which is no call."""
        for each in node.decorator_list:
            if isinstance(each, ast.Attribute) and each.attr == "register_tool":
                self._known.add(id(each))
                self._add("offers", f"a tool ({node.name})", each)

    def _call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Name(id="getattr"):
                self._known.add(id(node.func))
                self._getattr(node)
            case ast.Attribute(attr=str() as name) if name in _SUBSCRIBING:
                self._known.add(id(node.func))
                self._subscription(node, name)
            case ast.Name(id="Interceptor") | ast.Attribute(attr="Interceptor"):
                self._known.add(id(node.func))
                self._subscription(node, "Interceptor")
        callee = _root(node.func)
        followed = callee in self._defined or callee in self._apis
        given = [each.value if isinstance(each, ast.Starred) else each for each in node.args]
        for value in (*given, *(each.value for each in node.keywords)):
            if isinstance(value, ast.Name) and value.id in self._apis and followed:
                self._known.add(id(value))

    def _getattr(self, node: ast.Call) -> None:
        name = node.args[1] if len(node.args) > 1 else None
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and not _starred(node.args[:2]):
            self._mention(node, name.value, f"getattr(…, {name.value!r})")
        else:
            self._add("unknown", "getattr with a computed name", node)

    def _subscription(self, node: ast.Call, name: str) -> None:
        """Add the event or point, with its tools, that a call subscribes to."""
        if name == "register_tool":
            self._add("offers", f"a tool ({_name_of(node.args[0]) if node.args else '…'})", node)
            return
        if name == "start_task":
            self._add("subscribes", "no event: it runs a background task", node)
            return
        if name == "adopt":
            # The interceptor that it registers is a fact of its own.
            return
        position = 1 if name == "Interceptor" else 0
        options = {each.arg: each.value for each in node.keywords}
        event = node.args[position] if len(node.args) > position else options.get("name")
        if _starred(node.args[: position + 1]) or not (
            isinstance(event, ast.Constant) and isinstance(event.value, str)
        ):
            self._add("unknown", f"the {'event' if name == 'on' else 'point'} of {_dotted(node.func)}(…)", node)
            return
        tool = options.get("tool", options.get("tool_matcher"))
        if name == "Interceptor" and len(node.args) > 4:
            tool = node.args[4]
        open_options = None in options or _starred(node.args)
        matched = _matcher(tool)
        if open_options or matched is None:
            self._add("unknown", f"the tools of {_dotted(node.func)}({event.value!r})", node)
        of = f" of {matched}" if matched else ""
        self._add("subscribes", shortened(event.value) + of, node)

    # ---- names

    def _attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self._known.add(id(node.value))
            if (module := self._modules.get(node.value.id)) is not None and not self._is_beside(module):
                self._member(node, module, node.attr, _dotted(node))
            if node.attr == "path" and self._modules.get(node.value.id) == "sys":
                self._add("unknown", f"{node.value.id}.path, the directories that modules come from", node)
        if id(node) not in self._known:
            self._mention(node, node.attr, _dotted(node))

    def _name(self, node: ast.Name) -> None:
        if id(node) in self._known:
            return
        if node.id in self._apis and isinstance(node.ctx, ast.Load):
            self._add("unknown", f"the use of {node.id} as a value", node)
        elif node.id in BUILTINS:
            self._add("unknown", node.id, node)
        elif isinstance(node.ctx, ast.Load) and self._modules.get(node.id, "").partition(".")[0] in (
            "os",
            "sys",
            _OURS,
        ):
            self._add("unknown", f"the use of the module {node.id} as a value", node)
        elif node.id == "Interceptor":
            self._add("unknown", "the use of Interceptor as a value", node)

    def _mention(self, node: ast.AST, name: str, text: str) -> None:
        """Add the facts that follow from the name of an attribute, whichever object it belongs to."""
        text = shortened(text)
        if name in STARTING:
            self._add("programs", text, node)
        if name in CONNECTING:
            self._add("connections", text, node)
        if name in ENVIRONMENT:
            self._add("environment", text, node)
        # A builtin as an attribute needs the module `builtins`, whose import is a fact.
        if name in DYNAMIC:
            self._add("unknown", text, node)
        if name in _SUBSCRIBING and not isinstance(node, ast.ImportFrom):
            self._add("unknown", f"the use of {text} as a value", node)


def _apis_of(function: _Function) -> Iterator[str]:
    """Yield the parameters of a function that get the api of a hook."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for index, each in enumerate(given):
        annotation = "" if each.annotation is None else _dotted(each.annotation)
        if isinstance(each.annotation, ast.Constant):
            annotation = str(each.annotation.value)
        named = each.arg == "api" or annotation.rpartition(".")[2] == "HookAPI"
        if named or (function.name == "register" and index == 0):
            yield each.arg


def _annotated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of the code in the texts of an annotation, each with the line of its text.

    `typing.get_type_hints`, with which tools are made from functions, evaluates such a text.
    """
    given = (getattr(node, "annotation", None), getattr(node, "returns", None))
    parts = [each for each in given if isinstance(each, ast.AST)]
    for part in parts:
        for text in ast.walk(part):
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                    code = ast.parse(text.value.strip(), mode="eval").body
                    yield from (ast.copy_location(each, text) for each in ast.walk(code))
                    # A text inside of the text is code as well.
                    parts.append(code)


def _is_for_hooks(name: str) -> bool:
    """Return whether a name of agent_hooks only describes: a type, or a function that changes nothing."""
    return (name[:1].isupper() and name != "Trust") or name in OURS or name.startswith("is_")


def _matcher(tool: ast.expr | None) -> str | None:
    """Return the tools of a matcher as a text, empty without a matcher, `None` when they cannot be known."""
    match tool:
        case None | ast.Constant(value=None):
            return ""
        case ast.Constant(value=str() as name):
            return shortened(name)
        case ast.Call(
            func=ast.Attribute(attr="compile") | ast.Name(id="compile"), args=[ast.Constant(value=str() as pattern), *_]
        ):
            return shortened(f"/{pattern}/")
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            # The parts of a list are no lists, so this goes one level down.
            found = [None if isinstance(each, ast.List | ast.Tuple) else _matcher(each) for each in parts]
            return ", ".join(str(each) for each in found) if all(found) else None
    return None


def _starred(arguments: list[ast.expr]) -> bool:
    return any(isinstance(each, ast.Starred) for each in arguments)


def _within(module: str, names: frozenset[str]) -> bool:
    """Tell whether a module or a package around it is among the names."""
    parts = module.split(".")
    return any(".".join(parts[:size]) in names for size in range(1, len(parts) + 1))


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a chain of attributes, `….c` when it begins with something else."""
    parts: list[str] = []
    # A longer chain is cut, so that the time for all its parts stays linear.
    while isinstance(node, ast.Attribute) and len(parts) < 8:
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "…")
    return shortened(".".join(reversed(parts)))


def _name_of(node: ast.expr) -> str:
    return _dotted(node.func) if isinstance(node, ast.Call) else _dotted(node)
