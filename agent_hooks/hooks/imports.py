"""Turn a hook file into a module, and let it import the files beside it.

Two hooks in different directories may each `import helpers`, and each must get its own.  So every hook is a member of a
private package whose path is the hook's directory, and hooks run with an `__import__` that looks in that directory first.
This holds while the hook loads and, unlike a changed `sys.path`, also for an import inside a handler.  A file beside a
hook never shadows a module of the standard library.

A hook of an approved set is compiled from the bytes that were approved, and so are the modules beside it, whenever and
however they are imported: by their names, relatively, or by a `sys.path` that the hook has changed (see `approved`).

All hooks share one copy of the builtins, which differ from Python's own only in `__import__`.  A copy for each hook
would take 3.4 KiB and 8 % of the time of loading it.  The shared `__import__` finds the importing hook by the caller's
globals.
"""

from __future__ import annotations

import builtins
import importlib
import itertools
import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FrameType, ModuleType
from typing import Any

from agent_hooks.hooks.approved import (
    Files,
    covered_directories,
    refuse_unapproved,
    source_file,
    source_text,
)
from agent_hooks.hooks.bytecode import compiled, contents

_PREFIX = "_agent_hooks_"
_numbers = itertools.count()
# The name of each private package, with the full names of the modules that were looked for in it.
_members: dict[str, dict[str, None]] = {}
# The approved bytes of the files of a set by path, for each private package of an approved set.
_approved: dict[str, Files] = {}
# The bytes by path that are kept for each private package whose files are kept.
_kept: dict[str, MutableMapping[str, bytes]] = {}
# The directories that these sets cover, for each private package of an approved set.
_covered: dict[str, tuple[str, ...]] = {}
_hook_builtins: dict[str, Any] = {}


class _HookLoader(SourceFileLoader):
    """Load a hook, or a module beside it, from bytecode that is never stale.

    `files`: the set that it belongs to; `kept`: see `import_hook`.
    """

    def __init__(
        self, name: str, path: str, files: Files | None = None, kept: MutableMapping[str, bytes] | None = None
    ) -> None:
        super().__init__(name, path)
        # The bytes that the module was compiled from, once it is.
        self.source = b""
        # The modules that a hook had imported from beside it when it was loaded, and itself.
        self.members: tuple[str, ...] = ()
        self._files = files
        self._kept = kept

    def get_code(self, fullname: str) -> CodeType:
        source = self.source = self.get_data(self.path)
        # A text is compiled as it is, and an encoding that it declares has no effect.
        text = source if self._files is None else source_text(source, self.path)
        return compiled(source, self.path, lambda: self.source_to_code(text, self.path))

    def get_data(self, path: str) -> bytes:
        if self._files is not None and path in self._files:
            return self._files[path]
        if self._kept is None or path != self.path:
            return contents(path)
        if path not in self._kept:
            self._kept[path] = contents(path)
        return self._kept[path]

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__.startswith(_PREFIX):
            module.__dict__["__builtins__"] = _hook_builtins
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102  # loading a hook means running it


class _HookFinder:
    """Find modules inside the private packages, and the modules of approved sets."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_PREFIX):
            return _spec_by_path(fullname, path) if _approved else None
        if path is None:
            return None
        files, kept = _approved.get(_package_of(fullname)), _kept.get(_package_of(fullname))
        if files is not None:
            spec: ModuleSpec | None = _approved_spec(fullname, path, files)
        else:
            spec = _kept_spec(fullname, path, kept) or PathFinder.find_spec(fullname, path)
        if spec is not None:
            _members.setdefault(_package_of(fullname), {})[fullname] = None
            if type(spec.loader) is SourceFileLoader:
                spec.loader = _HookLoader(spec.loader.name, spec.loader.path, kept=kept)
        return spec


def _approved_spec(fullname: str, path: Sequence[str], files: Files) -> ModuleSpec:
    """Return the spec of a module of an approved set; raises `ImportError`, because no other finder may look for it."""
    name = fullname.rpartition(".")[2]
    for directory in path:
        if (file := source_file(directory, name, files)) is not None:
            return _spec_of(fullname, file, _HookLoader(fullname, file, files))
    for directory in path:
        refuse_unapproved(directory, name, soft=True)
    raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def _kept_spec(fullname: str, path: Sequence[str], kept: MutableMapping[str, bytes] | None) -> ModuleSpec | None:
    """Return the spec of a module whose bytes are kept, `None` for any other."""
    found = (source_file(directory, fullname.rpartition(".")[2], kept) for directory in path if kept)
    file = next(filter(None, found), None)
    return None if file is None else _spec_of(fullname, file, _HookLoader(fullname, file, kept=kept))


def _spec_by_path(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Return the spec of a module that `sys.path` leads to and that belongs to an approved set, `None` for any other.

    Raises `ImportError` for a module that is in a directory of a set, and is not approved.
    """
    if path is None and fullname in sys.stdlib_module_names:
        return None
    entries = list(sys.path if path is None else path)
    name = fullname.rpartition(".")[2]
    for index, entry in enumerate(entries):
        directory = os.path.abspath(entry)
        for package in [each for each, covered in _covered.items() if f"{directory}{os.sep}".startswith(covered)]:
            files = _approved[package]
            file = source_file(directory, name, files)
            if PathFinder.find_spec(fullname, entries[:index]) is not None:
                return None
            if file is not None:
                return _spec_of(fullname, file, _HookLoader(fullname, file, files))
            refuse_unapproved(directory, name, soft=True)
    return None


def _spec_of(fullname: str, file: str, loader: _HookLoader) -> ModuleSpec:
    whole = os.path.basename(file) == "__init__.py"
    spec = ModuleSpec(fullname, loader, origin=file, is_package=whole)
    if whole:
        spec.submodule_search_locations = [os.path.dirname(file)]
    spec.has_location = True
    return spec


_finder = _HookFinder()
# A hook in a checkout of this project must not import a second copy, whose classes the runner does not know.
_OURS = "agent_hooks"


def import_hook(path: str, files: Files | None = None, kept: MutableMapping[str, bytes] | None = None) -> ModuleType:
    """Import the file at `path` as a module of its own, and return it; an exception of the file goes through.

    `files`: the bytes of an approved set by absolute path, `path` among them; the hook and the modules beside it come
    from these, and not from the disk; `kept`: without a set, the bytes of the hook and of the modules beside it come from
    here, and those that are read from the disk are put here.
    """
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    if not _hook_builtins:
        refresh_builtins()
    directory, _, file = path.rpartition(os.sep)
    # Python lists a directory again when its time has changed, which is too coarse for two edits in a row.
    if (finder := sys.path_importer_cache.get(directory)) is not None:
        finder.invalidate_caches()  # type: ignore[attr-defined]  # every finder has it
    package = ModuleType(f"{_PREFIX}{next(_numbers)}")
    package.__path__ = [directory or os.sep]
    sys.modules[package.__name__] = package
    if files is not None:
        _approved[package.__name__] = files
        _covered[package.__name__] = covered_directories(files)
    elif kept is not None:
        _kept[package.__name__] = kept
    # The `__init__.py` of a package is the private package itself, so that `from . import x` finds its names.
    whole = file == "__init__.py"
    name = package.__name__ if whole else f"{package.__name__}.{file.removesuffix('.py').replace('.', '_')}"
    loader = _HookLoader(name, path, files, kept)
    # These are the attributes that importlib would set; doing it by hand takes a fraction of the time.
    module = ModuleType(name)
    module.__file__, module.__loader__, module.__package__ = path, loader, package.__name__
    module.__spec__ = ModuleSpec(name, loader, origin=path)
    module.__spec__.has_location = True
    if whole:
        module.__path__ = module.__spec__.submodule_search_locations = package.__path__
    sys.modules[name] = module
    _members[package.__name__] = {package.__name__: None, name: None}
    try:
        loader.exec_module(module)
    # A hook may raise anything; its loader reports it, so nothing of the hook may stay behind.
    except BaseException:
        forget_module(module)
        raise
    loader.members = tuple(_members[package.__name__])
    return module


def forget_module(module: ModuleType) -> None:
    """Remove a hook's module and the modules it imported from beside it."""
    package = _package_of(module.__name__)
    _approved.pop(package, None)
    _covered.pop(package, None)
    _kept.pop(package, None)
    for name in _members.pop(package, ()):
        sys.modules.pop(name, None)


def files_of(module: ModuleType) -> list[str]:
    """Return the files of a hook's module and of the modules that it has imported from beside it until now."""
    found = (sys.modules.get(name) for name in tuple(_members.get(_package_of(module.__name__), ())))
    return [file for each in found if isinstance(file := getattr(each, "__file__", None), str)]


def sources_of(module: ModuleType) -> dict[str, bytes]:
    """Return the bytes that a hook was loaded from, by path: those of its module and of the modules beside it."""
    loader = module.__loader__
    names = loader.members if isinstance(loader, _HookLoader) else ()
    loaders = (getattr(sys.modules.get(name), "__loader__", None) for name in names)
    return {each.path: each.source for each in loaders if isinstance(each, _HookLoader)}


def is_hook_module(name: str) -> bool:
    """Tell whether a module's name is that of a hook, or of a module beside one."""
    return name.startswith(_PREFIX)


def package_of(name: str) -> str:
    """Return the private package that a module belongs to, an empty text for a module that is no hook's."""
    return _package_of(name) if name.startswith(_PREFIX) else ""


def refresh_builtins() -> None:
    """Give hooks the builtins as they are now, because a program may have changed some since the last load."""
    _hook_builtins.update(vars(builtins), __import__=_import_beside)


def _package_of(name: str) -> str:
    return name.partition(".")[0]


def _import_beside(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """Import as Python's own `__import__` does, but look in the importing hook's directory first."""
    top = _package_of(name)
    if level or top == _OURS or top in sys.stdlib_module_names:
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    package = _importing_package(globals, sys._getframe(1))
    if package is None or not _is_beside(package, top):
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    if fromlist:
        return builtins.__import__(f"{package}.{name}", globals, locals, fromlist)
    importlib.import_module(f"{package}.{name}")
    return sys.modules[f"{package}.{top}"]


def _importing_package(globals: Mapping[str, Any] | None, frame: FrameType | None) -> str | None:
    """Return the private package of the hook that imports.

    `__import__("helpers")` and code that a hook runs with `exec` come without the hook's globals.  The hook is then found
    in the frames of the callers.
    """
    names = globals or {}
    while not str(names.get("__package__")).startswith(_PREFIX):
        if frame is None:
            return None
        names, frame = frame.f_globals, frame.f_back
    package = _package_of(names["__package__"])
    if package not in sys.modules:
        raise ImportError(f"{names.get('__file__')} was unloaded or loaded again, so its code imports nothing any more")
    return package


def _is_beside(package: str, name: str) -> bool:
    directory = sys.modules[package].__path__[0]
    beside = os.path.join(directory, name)
    files = _approved.get(package)
    if files is not None:
        if source_file(directory, name, files) is not None:
            return True
        refuse_unapproved(directory, name, soft=not _is_elsewhere(name))
        return False
    if source_file(directory, name, _kept.get(package, {})) is not None:
        return True
    if os.path.isfile(f"{beside}.py") or os.path.isfile(os.path.join(beside, "__init__.py")):
        return True
    # A bare directory gives way to an installed package, as it does on `sys.path`.
    return os.path.isdir(beside) and not _is_elsewhere(name)


def _is_elsewhere(name: str) -> bool:
    """Tell whether a module that is not beside a hook was imported, or can be."""
    if name in sys.modules:
        return True
    # Imported here, because few hooks need it.
    from importlib.util import find_spec

    return find_spec(name) is not None
