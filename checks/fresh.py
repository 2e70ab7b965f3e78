"""Run tests in a fresh process, with one module mutated from its import on.

A statement that runs only while a module is imported, in a decorator for example, cannot be mutated in a process that
has imported the module already.  `python -m checks.fresh MODULE KEY TEST...` imports the mutant of `MODULE` with this key
in place of the module, runs the tests until one fails, and exits as pytest does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

from checks.mutations import Mutant, compiled, mutants_of

PYTEST_OPTIONS = ["-qq", "--exitfirst", "-p", "no:cacheprovider"]

_LINES_AT_IMPORT = """
import importlib, json, os, sys
import coverage

paths = sys.argv[1:]
tracer = coverage.Coverage(data_file=None, include=[os.path.abspath(path) for path in paths], config_file=False)
tracer.start()
for path in paths:
    importlib.import_module(path.removesuffix(".py").replace(os.sep, ".").removesuffix(".__init__"))
tracer.stop()
data = tracer.get_data()
print(json.dumps({path: data.lines(os.path.abspath(path)) or [] for path in paths}))
"""


def lines_at_import(paths: Sequence[Path]) -> dict[str, set[int]]:
    """Return the lines of each file that run while all of them are imported."""
    command = [sys.executable, "-c", _LINES_AT_IMPORT, *map(str, paths)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {path: set(lines) for path, lines in json.loads(done.stdout).items()}


def passes(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Tell whether all tests pass in a fresh process that imports the mutant."""
    command = [sys.executable, "-m", "checks.fresh", mutant.module, mutant.key, *tests]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def import_mutant(mutant: Mutant, source: str) -> None:
    """Make each later import of the module give the mutant."""
    path = os.path.abspath(mutant.module)
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        if os.path.abspath(loader.path) == path:
            return compiled(source, mutant, path)
        return original(loader, fullname)

    # The cached bytecode is read by this method, so the mutant neither comes from there nor gets there.
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]  # the stubs have a base class


def main(arguments: Sequence[str]) -> int:
    """Run the command."""
    module, key, *tests = arguments
    source = Path(module).read_text()
    mutant = next(each for each in mutants_of(module, source) if each.key == key)
    import_mutant(mutant, source)
    return int(pytest.main([*PYTEST_OPTIONS, *tests]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
