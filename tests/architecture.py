"""The rules of the house, as functions over a tree of source files.

Each rule returns its violations as texts with the place and the import.  `test_architecture` applies them to the package
with its table of rooms; `checks/test_architecture_rules.py` plants one violation of each rule in a small tree.

A module is named by its path in the package, without the suffix: `host/tools/base`.  The module of a package is named by
its folder: `host/tools`, and the module at the top is named `__init__`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

# fmt: off
IO_MODULES = frozenset({
    "anyio", "asyncio", "ctypes", "fcntl", "fileinput", "glob", "http", "httpx2", "io", "linecache", "mmap",
    "multiprocessing", "ntpath", "os", "pathlib", "posix", "posixpath", "pty", "select", "selectors", "shutil", "signal",
    "smtplib", "socket", "socketserver", "sqlite3", "ssl", "subprocess", "tempfile", "threading", "trio",
    "urllib.request", "watchfiles", "webbrowser",
})
_PURE_PATH_FUNCTIONS = (
    "basename", "commonpath", "commonprefix", "dirname", "isabs", "join", "normcase", "normpath", "split", "splitdrive",
    "splitext",
)
# fmt: on
IO_BUILTINS = frozenset({"breakpoint", "open", "print"})
_PURE_OF_OS = ("PathLike", "fspath", "linesep", "name", "strerror")
_PURE_OF_PATHS = ("altsep", "curdir", "pardir", "pathsep", "sep")
PURE = frozenset(
    [
        *(f"os.{name}" for name in (*_PURE_OF_OS, *_PURE_OF_PATHS)),
        *(
            f"{module}.{name}"
            for module in ("os.path", "posixpath", "ntpath")
            for name in (*_PURE_OF_PATHS, *_PURE_PATH_FUNCTIONS)
        ),
        *(f"pathlib.{name}" for name in ("PurePath", "PurePosixPath", "PureWindowsPath")),
        *("io.StringIO", "io.BytesIO", "os.register_at_fork"),
    ]
)
"""The names of the modules above that touch neither files, nor processes, nor the working directory."""


class Use(NamedTuple):
    """A name of the modules above, or of another module of the package, and the line that uses it."""

    name: str
    line: int


class Tree:
    """The modules of a package, with the imports and the I/O of each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = {self._name_of(path): path for path in sorted(root.rglob("*.py"))}

    @cached_property
    def nodes(self) -> dict[str, list[ast.AST]]:
        """All nodes of the code of each module."""
        return {module: list(ast.walk(ast.parse(path.read_text()))) for module, path in self.files.items()}

    def _name_of(self, path: Path) -> str:
        return path.relative_to(self.root).with_suffix("").as_posix().removesuffix("/__init__")

    def place(self, module: str, line: int) -> str:
        """Return the file and line of a module, as an editor takes it."""
        return f"{self.files[module]}:{line}"

    @cached_property
    def imports(self) -> dict[str, list[Use]]:
        """The modules of the package that each module imports, also within functions."""
        return {module: list(dict.fromkeys(self._imports_of(module))) for module in self.files}

    def _imports_of(self, module: str) -> Iterator[Use]:
        for node in self.nodes[module]:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.place(module, node.lineno)}: imports are absolute"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                if name.partition(".")[0] == self.root.name:
                    yield Use(self._module_in(name), node.lineno)

    def _module_in(self, name: str) -> str:
        """Return the module that a dotted name begins with; the rest is a name inside of it."""
        parts = name.split(".")[1:]
        while parts and "/".join(parts) not in self.files:
            parts.pop()
        return "/".join(parts) or "__init__"

    @cached_property
    def io(self) -> dict[str, list[Use]]:
        """The names by which each module does I/O itself."""
        return {module: sorted(set(_io_of(nodes)), key=lambda use: use.line) for module, nodes in self.nodes.items()}

    @cached_property
    def io_paths(self) -> dict[str, list[Use]]:
        """For each module that does I/O, itself or by an import, the shortest chain to the name that does it.

        The line of a chain's first use is a line of that module.  Imports of the package's top module do not count.
        """
        paths = {module: [uses[0]] for module, uses in self.io.items() if uses}
        grown = True
        while grown:
            grown = False
            for module, uses in self.imports.items():
                found = [[use, *paths[use.name]] for use in uses if use.name in paths and use.name != "__init__"]
                if module not in paths and found:
                    paths[module] = min(found, key=len)
                    grown = True
        return paths


def _io_of(nodes: list[ast.AST]) -> Iterator[Use]:
    meanings: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                meanings[alias.asname or bound] = bound
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                meanings[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    parts = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in parts:
            name = _dotted(node, meanings)
            if name is not None and (name in IO_BUILTINS or _is_io(name)):
                yield Use(name, node.lineno)


def _dotted(node: ast.expr, meanings: dict[str, str]) -> str | None:
    """Return the full name of `a.b.c`, where `a` was imported; or a builtin that does I/O."""
    rest: list[str] = []
    while isinstance(node, ast.Attribute):
        rest.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    if node.id not in meanings:
        return node.id if not rest and node.id in IO_BUILTINS else None
    return ".".join([meanings[node.id], *rest])


def _is_io(name: str) -> bool:
    parts = name.split(".")
    beginnings = [".".join(parts[: count + 1]) for count in range(len(parts))]
    if not any(each in IO_MODULES for each in beginnings):
        return False
    return name != "os.path" and not any(each in PURE for each in beginnings)


# ---- the rules -------------------------------------------------------------------------------------------------------


def heights_of(layers: list[str]) -> dict[str, int]:
    """Return the height of each room: the number of its line."""
    return {name: height for height, names in enumerate(layers) for name in names.split()}


def rooms_without_height(tree: Tree, layers: list[str]) -> list[str]:
    """Every module is in a room of the table."""
    heights = heights_of(layers)
    rooms = {module.partition("/")[0]: path for module, path in tree.files.items()}
    return [f"{path}: give {room} a place in LAYERS" for room, path in rooms.items() if room not in heights]


def upward_imports(tree: Tree, layers: list[str]) -> list[str]:
    """A module imports from its own room and from lower rooms only."""
    heights = heights_of(layers)
    found = []
    for module, uses in tree.imports.items():
        room = module.partition("/")[0]
        for target, line in uses:
            other = target.partition("/")[0]
            if other != room and heights.get(other, 0) >= heights.get(room, 0):
                found.append(f"{tree.place(module, line)}: {module} imports {target}, which is not in a lower room")
    return found


def sibling_imports(tree: Tree, families: dict[str, set[str]]) -> list[str]:
    """A member of a family imports the family's `base` and shared modules, and no other member.

    A folder in a family is one member with all that it holds.
    """
    found = []
    for family, shared in families.items():
        for module, uses in tree.imports.items():
            member = _member(module, family)
            for target, line in uses:
                other = _member(target, family)
                if member is None or other in {None, member}:
                    continue
                if member == "base" or other not in {"base"} | shared:
                    text = f"{module} imports {target}: members of {family} do not know each other"
                    found.append(f"{tree.place(module, line)}: {text}")
    return found


def imports_of_commands(tree: Tree, folder: str) -> list[str]:
    """No module imports a command; the table of commands names them."""
    return [
        f"{tree.place(module, line)}: {module} imports the command {target}"
        for module, uses in tree.imports.items()
        for target, line in uses
        if target.startswith(f"{folder}/")
    ]


def imports_of_members(tree: Tree, families: dict[str, set[str]], drivers: set[str], exempt: set[str]) -> list[str]:
    """A module outside of a family imports its package, `base`, shared modules and drivers, and no member.

    `exempt`: the rooms that put a program together, and so may choose a member.
    """
    found = []
    for family, shared in families.items():
        for module, uses in tree.imports.items():
            if module.partition("/")[0] in exempt or module == family or _member(module, family) is not None:
                continue
            for target, line in uses:
                member = _member(target, family)
                if member not in {None, "base"} | shared and target not in drivers:
                    text = f"{module} imports {target}: outside of {family} its members are not known"
                    found.append(f"{tree.place(module, line)}: {text}")
    return found


def _member(module: str, family: str) -> str | None:
    """Return the member of a family that a module is, or belongs to; `None` outside, and for the family's package."""
    return module.removeprefix(f"{family}/").partition("/")[0] if module.startswith(f"{family}/") else None


def circles(tree: Tree) -> list[str]:
    """No modules import each other in a circle; the package's own module at the top is left out."""
    graph = {module: {use.name for use in uses} for module, uses in tree.imports.items() if module != "__init__"}
    while leaves := {name for name, targets in graph.items() if not targets & graph.keys() - {name}}:
        for name in leaves:
            del graph[name]
    return [f"these modules import each other in a circle: {', '.join(sorted(graph))}"] if graph else []


def io_in(tree: Tree, pure: set[str], drivers: set[str]) -> list[str]:
    """A module of a `pure` room does no I/O, neither itself nor by a module that it imports; `drivers` may."""
    found = []
    for module, path in tree.io_paths.items():
        if module.partition("/")[0] in pure and module not in drivers:
            chain = " → ".join(use.name for use in path)
            found.append(f"{tree.place(module, path[0].line)}: {module} does I/O: {chain}")
    return found


PRINTERS = frozenset(
    [
        *(f"click.{name}" for name in ("echo", "secho", "echo_via_pager", "confirm", "prompt", "pause")),
        *("sys.stdout.write", "sys.stderr.write", "sys.stdout.writelines", "sys.stderr.writelines", "print", "Console"),
        *("rich.print", "rich.console.Console"),
    ]
)
"""The calls that put a text on a terminal."""


def prints(tree: Tree) -> list[str]:
    """Return each call of a module that prints, as `module:line`; of a subclass of a console, the line of its class."""
    found = []
    for module, nodes in tree.nodes.items():
        for node in nodes:
            if isinstance(node, ast.ClassDef | ast.Call):
                used = node.bases if isinstance(node, ast.ClassDef) else [node.func]
                found += [f"{module}:{node.lineno}" for each in used if _spelled(each) in PRINTERS]
    return found


def _spelled(node: ast.expr) -> str:
    """Return `a.b.c` as it is written; nothing for anything else."""
    if isinstance(node, ast.Attribute):
        before = _spelled(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def texts(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield each text in the code of a tree, with the name of its module; bytes count as texts."""
    for name, nodes in tree.nodes.items():
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                yield name, node.value if isinstance(node.value, str) else node.value.decode("latin-1")
