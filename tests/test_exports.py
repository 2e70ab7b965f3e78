"""The names that `import agent_hooks` gives, and the cost of the import."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import agent_hooks

LIST_MODULES = """
import sys
before = set(sys.modules)
import agent_hooks
print(*sorted(set(sys.modules) - before))
"""
# msgspec imports `typing_extensions`.
ALLOWED = {"agent_hooks", "msgspec", "typing_extensions"}
TOO_DEAR = {"asyncio", "ssl", "logging.config", "multiprocessing", "urllib.request", "http"} | {
    "concurrent.futures",
    "difflib",
    "hashlib",
    "json",
    "pathlib",
    "subprocess",
    "tempfile",
}


def test_all_names_are_sorted_and_are_the_public_names() -> None:
    """Every name of `__all__` is there, and nothing public is missing from it."""
    public = {
        name
        for name, value in vars(agent_hooks).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    assert set(agent_hooks.__all__) == public | {"__version__"}
    assert len(agent_hooks.__all__) == len(set(agent_hooks.__all__))
    # Sorted as ruff sorts: constants, classes, functions.
    assert agent_hooks.__all__ == sorted(
        agent_hooks.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )


def test_every_exported_name_can_be_imported() -> None:
    """`from agent_hooks import *` works."""
    scope: dict[str, object] = {}
    exec("from agent_hooks import *", scope)
    assert set(agent_hooks.__all__) <= set(scope)


def test_importing_the_package_loads_the_standard_library_and_msgspec_only() -> None:
    """The import loads no event loop, TLS, configuration of logging, backend or other dependency."""
    output = subprocess.check_output([sys.executable, "-c", LIST_MODULES], text=True)
    modules = set(output.split())
    assert {name.partition(".")[0] for name in modules} - sys.stdlib_module_names <= ALLOWED
    assert not modules & TOO_DEAR
    assert not [name for name in modules if name.startswith(("agent_hooks.host", "agent_hooks.cli"))]
    assert not modules & {
        "agent_hooks.testing",
        "agent_hooks.concurrency.deadlines.asyncio",
        "agent_hooks.concurrency.deadlines.trio",
    }
