"""Imports go down only, and members of a family do not know each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_hooks

ROOT = Path(agent_hooks.__file__).parent
LAYERS = [  # from the bottom; rooms of one line are of one height and do not import each other
    "errors",
    "patterns validation values",
    "concurrency settings storage",
    "checkpoints guards redaction ui",
    "dispatch",
    "hooks",
    "transformers",
    "runner",
    "pipeline",
    "__init__ bridges",
    "installs host",
    "server testing transcripts",
    "cli",
    "__main__",
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names.split()}
FAMILIES = {  # the folder, and what its members share beside `base`
    "concurrency/deadlines": set[str](),
    "ui": {"harmless"},
    "transformers": {"exclusion", "config"},
    "guards": {"config", "sensitive", "table"},
    "bridges": {"claude_code_results", "claude_code_settings", "fields"},
    "transcripts": set[str](),
    "host/tools": {"listing", "search"},
    "host/models": {"remote", "conversation", "keys"},
    "cli/modes": set[str](),
}
MODULES = sorted(ROOT.rglob("*.py"))


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Yield what a file imports of the package, as paths like `host/tools/base`, and the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == "agent_hooks":
                parts = name.split(".")[1:]
                while parts and not (
                    ROOT.joinpath(*parts).is_dir() or ROOT.joinpath(*parts).with_suffix(".py").is_file()
                ):
                    parts.pop()  # a name inside of the module
                yield "/".join(parts) or "__init__", node.lineno


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_go_down_and_not_to_siblings_of_a_family(path: Path) -> None:
    """A module imports what is below it; a member of a family its own `base`; no cycle can come up."""
    me = path.relative_to(ROOT).with_suffix("").as_posix()
    top, family, member = me.partition("/")[0], me.rpartition("/")[0], me.rpartition("/")[2]
    assert top in HEIGHT, f"{me}: give it a place in LAYERS"
    for target, line in imports_of(path):
        there = target.partition("/")[0]
        text = f"{path}:{line}: {me} imports {target}"
        if family in FAMILIES and member != "__init__" and target.rpartition("/")[0] == family:
            assert member != "base", text
            assert target.rpartition("/")[2] in {"base"} | FAMILIES[family], text
        if there != top:
            assert HEIGHT[there] < HEIGHT[top], text


def test_no_two_modules_import_each_other_in_a_circle() -> None:
    """Inside of a family or a folder as well."""
    graph = {
        path.relative_to(ROOT).with_suffix("").as_posix().removesuffix("/__init__"): {
            target for target, _ in imports_of(path) if target != "__init__"
        }
        for path in MODULES
    }
    graph.pop("__init__")
    while leaves := {name for name, targets in graph.items() if not targets & graph.keys() - {name}}:
        for name in leaves:
            del graph[name]
    assert not graph, f"in a circle: {sorted(graph)}"
