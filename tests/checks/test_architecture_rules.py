"""Each rule of the house finds the violation that is planted in a small tree, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from architecture import (
    Tree,
    circles,
    imports_of_commands,
    imports_of_members,
    io_in,
    rooms_without_height,
    sibling_imports,
    upward_imports,
)

LAYERS = ["values", "core storage", "birds", "app", "cli"]
FAMILIES = {"birds": {"feathers"}, "cli/commands": set[str]()}
FILES = {
    "__init__.py": "",
    "values.py": "import os\nNAME = os.path.join('a', os.sep)\n",
    "storage.py": "def read(path):\n    with open(path) as file:\n        return file.read()\n",
    "core.py": "from house.values import NAME\n",
    "birds/__init__.py": "from house.birds.owl import Owl\n",
    "birds/base.py": "from house import core\n",
    "birds/feathers.py": "",
    "birds/owl.py": "from house.birds.base import core\nimport house.birds.feathers\nclass Owl: ...\n",
    "birds/duck/__init__.py": "from house.birds.duck import bill\n",
    "birds/duck/bill.py": "from house.birds import base\n",
    "birds/driver.py": "import house.storage\n",
    "app.py": "from house.birds import Owl\nfrom house.birds import driver, base, feathers\nimport house.storage\n",
    "cli/__init__.py": "import house.birds.owl\n",
    "cli/commands/__init__.py": "",
    "cli/commands/sing.py": "import house.app\n",
    "cli/commands/fly.py": "import house.app\n",
}


Build = Callable[..., Tree]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Give a function that writes the tree, with lines added to some files, and reads it."""

    def write(**added: str) -> Tree:
        files = FILES | {name: FILES.get(name, "") + text for name, text in added.items()}
        for name, text in files.items():
            path = tmp_path / "house" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Tree(tmp_path / "house")

    return write


def violations(tree: Tree) -> list[str]:
    """Return the violations of all rules, without the folder."""
    found = [
        *rooms_without_height(tree, ["__init__", *LAYERS]),
        *upward_imports(tree, ["__init__", *LAYERS]),
        *sibling_imports(tree, FAMILIES),
        *imports_of_members(tree, FAMILIES, {"birds/driver"}, {"cli"}),
        *io_in(tree, {"birds"}, {"birds/driver"}),
        *circles(tree),
    ]
    return [text.replace(f"{tree.root}/", "") for text in found]


def test_a_tree_that_keeps_the_rules_has_no_violation(build: Build) -> None:
    """Packages, `base`, shared modules and drivers may be imported; pure functions on paths are no I/O."""
    assert violations(build()) == []


@pytest.mark.parametrize(
    ("file", "line", "expected"),
    [
        ("attic.py", "", "attic.py: give attic a place in LAYERS"),
        (
            "core.py",
            "def later():\n    from house import app",
            "core.py:3: core imports app, which is not in a lower room",
        ),
        ("core.py", "import house.storage", "core.py:2: core imports storage, which is not in a lower room"),
        (
            "birds/owl.py",
            "from house.birds.duck.bill import beak",
            "birds/owl.py:4: birds/owl imports birds/duck/bill: members of birds do not know each other",
        ),
        (
            "birds/duck/bill.py",
            "from house.birds.owl import Owl",
            "birds/duck/bill.py:2: birds/duck/bill imports birds/owl: members of birds do not know each other",
        ),
        (
            "birds/base.py",
            "import house.birds.feathers",
            "birds/base.py:2: birds/base imports birds/feathers: members of birds do not know each other",
        ),
        (
            "cli/commands/fly.py",
            "from house.cli.commands import sing",
            "fly.py:2: cli/commands/fly imports cli/commands/sing: members of cli/commands do not know each other",
        ),
        (
            "app.py",
            "from house.birds import owl",
            "app.py:4: app imports birds/owl: outside of birds its members are not known",
        ),
        ("birds/owl.py", "import subprocess as s\ns.run", "birds/owl.py:5: birds/owl does I/O: subprocess.run"),
        ("birds/owl.py", "from pathlib import Path\nPath()", "birds/owl.py:5: birds/owl does I/O: pathlib.Path"),
        ("birds/owl.py", "import os\nos.path.exists", "birds/owl.py:5: birds/owl does I/O: os.path.exists"),
        ("birds/owl.py", "from os import stat\nstat()", "birds/owl.py:5: birds/owl does I/O: os.stat"),
        ("birds/owl.py", "open('x')", "birds/owl.py:4: birds/owl does I/O: open"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith(".py") else "",
)
def test_each_rule_finds_its_violation(build: Build, file: str, line: str, expected: str) -> None:
    """The text has the place, the modules and the rule."""
    assert any(found.endswith(expected) for found in violations(build(**{file: f"{line}\n"})))


def test_io_is_found_through_the_modules_that_a_module_imports(build: Build) -> None:
    """The text has the whole chain, the driver included."""
    tree = build(**{"core.py": "import house.storage\n", "birds/owl.py": "import house.birds.driver\n"})
    found = violations(tree)
    assert "birds/base.py:1: birds/base does I/O: core → storage → open" in found
    assert "birds/owl.py:4: birds/owl does I/O: birds/driver → storage → open" in found


def test_modules_that_import_each_other_are_named(build: Build) -> None:
    """A circle is found within a room as well."""
    assert violations(build(**{"core.py": "import house.core\n"})) == []
    found = circles(build(**{"birds/duck/bill.py": "import house.birds.duck\n"}))
    assert found == ["these modules import each other in a circle: birds/duck, birds/duck/bill"]


def test_a_module_that_imports_a_command_is_named(build: Build) -> None:
    """Also a module of the room that holds the commands."""
    tree = build(**{"cli/screen.py": "from house.cli.commands import sing\n"})
    (found,) = imports_of_commands(tree, "cli/commands")
    assert found.endswith("cli/screen imports the command cli/commands/sing")


def test_relative_imports_are_refused(build: Build) -> None:
    """A rule could not resolve them."""
    with pytest.raises(AssertionError, match="imports are absolute"):
        _ = build(**{"app.py": "from .core import NAME\n"}).imports
