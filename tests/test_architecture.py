"""The picture of the house: which room stands on which, and which modules do not know each other."""

from __future__ import annotations

from pathlib import Path

import agent_hooks
import architecture

LAYERS = [
    "errors",
    "patterns trees validation values",
    "concurrency settings storage",
    "trust",
    "checkpoints guards redaction ui",
    "dispatch",
    "hooks",
    "transformers",
    "records runner",
    "pipeline",
    "__init__ bridges",
    "installs host",
    "server testing transcripts",
    "cli",
    "__main__",
]
"""The rooms from the bottom; the rooms of one line are of one height and do not import each other."""
FAMILIES = {
    "concurrency/deadlines": set[str](),
    "ui": {"harmless"},
    "transformers": {"exclusion", "config"},
    "guards": {"config", "control", "patches", "sensitive", "table"},
    "guards/shell/rules": set[str](),
    "bridges": {"claude_code_results", "claude_code_settings", "fields"},
    "transcripts": set[str](),
    "host/tools": {"listing", "search"},
    "host/models": {"remote", "conversation", "keys"},
    "cli/modes": set[str](),
    "cli/commands": set[str](),
}
"""The folder of each family, and the modules that its members share beside `base`."""
DRIVERS = {"bridges/driver"}
"""The module of a family that the rooms above it use, because it chooses the member."""
COMPOSERS = {"cli"}
"""The rooms that put a program together, and so choose the members of families."""
PURE = {"guards", "transformers", "bridges"}
"""The rooms whose modules do no I/O: they judge and rewrite the values that they are given."""
READERS = {"bridges/driver", "transformers/command_intercept"}
"""The modules of the pure rooms that may do I/O: the driver, and the modules by which settings files are read."""

TREE = architecture.Tree(Path(agent_hooks.__file__).parent)


def test_every_room_has_a_height() -> None:
    """A new folder or module at the top of the package needs a place in the table."""
    assert architecture.rooms_without_height(TREE, LAYERS) == []


def test_imports_go_down() -> None:
    """A module imports from its own room and from lower rooms."""
    assert architecture.upward_imports(TREE, LAYERS) == []


def test_members_of_a_family_do_not_import_each_other() -> None:
    """A member of a family imports the family's `base` and shared modules, at any depth."""
    assert architecture.sibling_imports(TREE, FAMILIES) == []


def test_only_composers_choose_the_members_of_a_family() -> None:
    """The other rooms import a family's package, its `base`, its shared modules and its driver."""
    assert architecture.imports_of_members(TREE, FAMILIES, DRIVERS, COMPOSERS) == []


def test_no_module_imports_a_command() -> None:
    """Parts that two commands share are modules of other rooms."""
    assert architecture.imports_of_commands(TREE, "cli/commands") == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Circles are wrong inside of a room as well."""
    assert architecture.circles(TREE) == []


def test_guards_transformers_and_bridges_do_no_io() -> None:
    """The modules that they import do no I/O either; the readers are exceptions, by name."""
    assert architecture.io_in(TREE, PURE, READERS) == []


def test_every_exception_is_needed() -> None:
    """A name in a list of exceptions that no rule needs any more leaves the list."""
    assert not READERS - TREE.io_paths.keys()
    assert not DRIVERS - TREE.files.keys()
    assert not FAMILIES.keys() - TREE.files.keys()
