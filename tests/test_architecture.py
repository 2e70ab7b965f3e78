"""The picture of the house: which room stands on which, and which modules do not know each other."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import structs

import agent_hooks
import architecture
from agent_hooks.bridges import usable_bridges
from agent_hooks.bridges.command import CommandBridge

LAYERS = [
    "errors",
    "patterns trees validation values",
    "hook_packages settings_file",
    "hook_entries",
    "concurrency settings storage",
    "trust turn_notes",
    "checkpoints guards redaction ui",
    "dispatch effects",
    "isolation",
    "hooks",
    "remembering transformers",
    "records runner",
    "hook_process pipeline",
    "__init__ bridges",
    "installs host",
    "transcripts",
    "server testing",
    "adapters look",
    "cli",
    "__main__",
]
"""The rooms from the bottom; the rooms of one line are of one height and do not import each other."""
FAMILIES = {
    "concurrency/deadlines": set[str](),
    "ui": {"charset", "dialogs", "fitting", "harmless", "reading"},
    "transformers": {"exclusion", "config"},
    "guards": {
        *(
            "agents",
            "commands",
            "config",
            "control",
            "lazy",
            "objects",
            "patches",
            "path_arguments",
            "recorder",
            "sensitive",
            "table",
            "tool_effects",
            "tools",
        ),
    },
    "guards/shell/rules": {"inline", "outside", "requests"},
    "bridges": {
        "claude_code_settings",
        "command",
        "command_settings",
        "judging",
        *("patch", "patch_calls", "patch_diffs", "patch_text"),
        "plugin",
        "tables",
    },
    "transcripts": {"databases"},
    "host/tools": {"listing", "search"},
    "host/models": {"remote", "conversation"},
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
READERS = {"bridges/driver", "bridges/judging", "transformers/command_intercept"}
"""The modules of the pure rooms that may do I/O: the driver, and the modules by which settings files are read."""

WRITERS = {"cli/screen/paper", "isolation/output", "ui/terminal"}
"""The modules that print beside `cli/streams`: the console of the commands, the output of hooks that have a process of
their own, and the UI for programs of others."""

OUR_FIELDS = {
    *("agent_id", "custom_instructions", "duration_ms", "session_id", "tool_input", "tool_name"),
    # Of the session file.
    *("agentId", "sessionId", "toolCallId", "toolResult"),
}
"""The names of fields of other agents that are names of ours too."""
SHORT_EVENTS = {"Interrupt", "Notification", "Setup", "Stop"}
"""The names of events of other agents that are words, too; a text that is nothing else is the name."""
OUR_NAMES = {"__init__:Stop"}
"""The texts that are names of ours: an exported class has the name of another agent's event."""

NEAR_MISSES = "values/spellings"
"""The table of other agents' spellings, for the errors that name ours."""

TREE = architecture.Tree(Path(agent_hooks.__file__).parent)


def test_every_room_has_a_height() -> None:
    """A new folder or module at the top of the package needs a place in the table."""
    assert architecture.rooms_without_height(TREE, LAYERS) == []


def test_modules_of_tests_have_names_of_their_own() -> None:
    """Two modules of tests with one name stop a run of the whole suite, and no run of one folder shows it."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


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


def test_only_the_writers_print() -> None:
    """No text of a hook, a file or a model gets to a terminal by another way, where it could control the terminal."""
    assert [place for place in architecture.prints(TREE) if place.partition(":")[0] not in WRITERS] == []


def test_only_bridges_name_events_and_fields_of_other_agents() -> None:
    """All other modules ask the bridge; readers of transcripts know their agent, and one table has the near misses."""
    bridges = usable_bridges()
    events = {row.name for bridge in bridges for row in bridge.describe() if re.search("[A-Z]", row.name)}
    tables = [bridge.fields for bridge in bridges if isinstance(bridge, CommandBridge)]
    fields = {value for table in tables for value in structs.astuple(table) if isinstance(value, str)}
    distinctive = {name for name in fields if re.search("_|[a-z][A-Z]", name)} - OUR_FIELDS
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, distinctive | events - SHORT_EVENTS))})\b")
    found = [
        f"{name}:{text}"
        for name, text in architecture.texts(TREE)
        if not name.startswith(("bridges/", "transcripts/"))
        and name != NEAR_MISSES
        and f"{name}:{text}" not in OUR_NAMES
        and (text in events or words.search(text))
    ]
    assert found == []


def test_every_exception_is_needed() -> None:
    """A name in a list of exceptions that no rule needs any more leaves the list."""
    assert not WRITERS - {place.partition(":")[0] for place in architecture.prints(TREE)}
    assert not READERS - TREE.io_paths.keys()
    assert not DRIVERS - TREE.files.keys()
    assert not FAMILIES.keys() - TREE.files.keys()
