"""How a hook file becomes a module, and how it imports its neighbours.

Two hooks in different directories may each `import helpers` and must each get their own.  So every hook gets a private
package whose path is its directory, and an `__import__` of its own that looks there first: that holds at load time and,
unlike a changed `sys.path`, also for an import inside a handler.  Names of the standard library are never shadowed.
Above: loader.  Below: bytecode.
"""

from __future__ import annotations

import builtins
import importlib
import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from agent_hooks.hooks.bytecode import compiled, contents

_PREFIX = "_agent_hooks_"
_numbers = itertools.count()


class _HookLoader(SourceFileLoader):
    """Loads a hook or a module beside it: never stale, and with the import that looks beside it first."""

    def get_code(self, fullname: str) -> CodeType:
        source = contents(self.path)
        return compiled(source, self.path, lambda: self.source_to_code(source, self.path))

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        directory = sys.modules[package].__path__[0]
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _importer(package, directory)}
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102  # to run it is what loading means


class _HookFinder:
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


_finder = _HookFinder()
_OURS = "agent_hooks"  # never another copy: its classes would not be the ones the runner knows


def import_hook(path: str) -> ModuleType:
    """Import the file at `path` as a module of its own; whatever it raises is raised."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    directory, file = os.path.split(path)
    package = ModuleType(f"{_PREFIX}{next(_numbers)}")
    package.__path__ = [directory]
    sys.modules[package.__name__] = package
    # the __init__.py of a package is the private package itself, so that `from . import x` finds what it defines
    whole = file == "__init__.py"
    name = package.__name__ if whole else f"{package.__name__}.{os.path.splitext(file)[0].replace('.', '_')}"
    loader = _HookLoader(name, path)
    module = ModuleType(name)  # what importlib would make of the spec, which takes longer than the rest of this
    module.__file__, module.__loader__, module.__package__ = path, loader, package.__name__
    module.__spec__ = ModuleSpec(name, loader, origin=path)
    module.__spec__.has_location = True
    if whole:
        module.__path__ = module.__spec__.submodule_search_locations = package.__path__
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:  # whatever the hook raised goes on to the loader, which tells it
        forget_module(module)
        raise
    return module


def forget_module(module: ModuleType) -> None:
    """Remove a hook's module and the modules it imported from beside it."""
    package = module.__name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def files_of(module: ModuleType) -> list[str]:
    """Return the files of a hook's module and of the modules it has imported from beside it until now."""
    package = module.__name__.partition(".")[0]
    found = [each for name, each in list(sys.modules.items()) if name.partition(".")[0] == package]
    return [file for each in found if isinstance(file := getattr(each, "__file__", None), str)]


def _importer(package: str, directory: str) -> Any:
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


def _is_beside(directory: str, name: str) -> bool:
    beside = os.path.join(directory, name)
    if os.path.isfile(f"{beside}.py") or os.path.isfile(os.path.join(beside, "__init__.py")):
        return True
    if not os.path.isdir(beside) or name in sys.modules:
        return False
    from importlib.util import find_spec  # here, for it is rarely needed

    return find_spec(name) is None  # a bare directory gives way to an installed package, as it does on sys.path
