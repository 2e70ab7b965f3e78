"""How a hook file becomes a module, and how it imports its neighbours.

Two hooks in different directories may each `import helpers` and must each get their own.  So every hook gets a private
package whose path is its directory, and an `__import__` of its own that looks there first: that holds at load time and,
unlike a changed `sys.path`, also for an import inside a handler.  Names of the standard library are never shadowed.
Sources are compiled afresh at every load: a cached `.pyc` is keyed on whole seconds and can be stale.
Above: loader.  Below: nothing.
"""

from __future__ import annotations

import builtins
import importlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_PREFIX = "_agent_hooks_"
_numbers = itertools.count()


class _HookLoader(SourceFileLoader):
    """Loads a hook or a module beside it: compiled afresh, with the import that looks beside it first."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        directory = Path(sys.modules[package].__path__[0])
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _importer(package, directory)}
        super().exec_module(module)


class _HookFinder(MetaPathFinder):
    """Finds modules inside the private packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX) or path is None:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _HookLoader(spec.loader.name, spec.loader.path)
        return spec


_OURS = "agent_hooks"  # never another copy: its classes would not be the ones the runner knows


def import_hook(path: str) -> ModuleType:
    """Import the file at `path` as a module of its own; whatever it raises is raised."""
    if not any(isinstance(finder, _HookFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _HookFinder())
    file = Path(path)
    package = ModuleType(f"{_PREFIX}{next(_numbers)}")
    package.__path__ = [str(file.parent)]
    sys.modules[package.__name__] = package
    # the __init__.py of a package is the private package itself, so that `from . import x` finds what it defines
    whole = file.name == "__init__.py"
    name = package.__name__ if whole else f"{package.__name__}.{file.stem.replace('.', '_')}"
    spec = ModuleSpec(name, _HookLoader(name, path), origin=path)
    spec.has_location = True
    spec.submodule_search_locations = package.__path__ if whole else None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        _HookLoader(name, path).exec_module(module)
    except BaseException:  # whatever the hook raised goes on to the loader, which tells it
        forget_module(module)
        raise
    return module


def forget_module(module: ModuleType) -> None:
    """Remove a hook's module and the modules it imported from beside it."""
    package = module.__name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def _importer(package: str, directory: Path) -> Any:
    def import_beside(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        top = name.partition(".")[0]
        if level or top in sys.stdlib_module_names or top == _OURS or not _is_beside(directory, top):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        if fromlist:
            return builtins.__import__(f"{package}.{name}", globals, locals, fromlist)
        importlib.import_module(f"{package}.{name}")
        return sys.modules[f"{package}.{top}"]

    return import_beside


def _is_beside(directory: Path, name: str) -> bool:
    if (directory / f"{name}.py").is_file() or (directory / name / "__init__.py").is_file():
        return True
    # a bare directory gives way to an installed package, as it does on sys.path
    return (directory / name).is_dir() and name not in sys.modules and find_spec(name) is None
