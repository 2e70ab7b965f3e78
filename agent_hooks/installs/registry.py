"""The settings files in which the person has installed, and the generated files that their entries name.

An entry in one project's settings names a generated file in the agent home.  So the file must stay as long as any
settings name it, also those of a project that no command looks at now; the register knows them.  The last
uninstallation removes the generated files and the register.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import msgspec
from msgspec import Struct

from agent_hooks.bridges.base import Bridge
from agent_hooks.errors import SettingsError, os_reason
from agent_hooks.installs.generated import DIRECTORY, stub_path
from agent_hooks.installs.places import Target, installation
from agent_hooks.settings import agent_home
from agent_hooks.storage.files import StorageError, write_atomically

_NAME = "installed.json"
_CACHE = "agent-hooks"
"""The directory of the bytecode that installed hooks have, below that of the generated files."""


class _Register(Struct):
    """The content of the register.

    `settings`: the paths of the settings files with entries of ours, by the name of the bridge.
    `made`: the directories that an installation made, the outer ones first.
    """

    settings: dict[str, list[str]] = {}
    made: list[str] = []


def missing_directories(files: Iterable[str]) -> list[str]:
    """Return the directories that have to be made for the files, the outer ones first."""
    found: list[str] = []
    for file in files:
        directory, above = os.path.dirname(os.path.realpath(file)), list[str]()
        while not os.path.lexists(directory):
            above.insert(0, directory)
            directory = os.path.dirname(directory)
        found += above
    return list(dict.fromkeys(found))


def remember(bridge: Bridge, path: str, made: Iterable[str]) -> None:
    """Note that a settings file holds entries of ours, and which directories were made.  Raises `SettingsError`."""
    with _locked():
        found = _read()
        known = found.settings.setdefault(bridge.name, [])
        new = [each for each in made if each not in found.made]
        if path in known and not new:
            return
        known += [path] * (path not in known)
        found.made += new
        _write(found)


def elsewhere(bridge: Bridge, paths: Sequence[str]) -> list[str]:
    """Return the known settings files beside `paths` that hold entries of ours, or that cannot be read."""
    here = {os.path.realpath(path) for path in paths}
    known = [path for path in _read().settings.get(bridge.name, ()) if os.path.realpath(path) not in here]
    found = [installation(bridge, Target("local", path, bridge.settings_format)) for path in known]
    return [each.target.path for each in found if each.entries or each.problem]


def forget(bridge: Bridge) -> list[str]:
    """Remove the generated files of a bridge; with those of the last one, the register and the bytecode go too.

    Returns the removed files of the bridge.  Raises `SettingsError`.
    """
    with _locked():
        found = _read()
        known = found.settings.pop(bridge.name, None)
        gone = [path for path in generated_files(bridge) if _remove(path)]
        if found.settings:
            if known is not None:
                _write(found)
        elif os.path.isdir(directory := os.path.dirname(_path())):
            _remove(os.path.join(directory, _CACHE))
            # The directory of the register goes last, so that a killed command leaves nothing that is not known.
            _remove_empty(found.made)
            _remove(_path())
    _remove_empty([*found.made, os.path.dirname(_path())])
    return gone


def _remove_empty(directories: Sequence[str]) -> None:
    """Remove directories, the inner ones first; one that holds anything stays."""
    for directory in reversed(directories):
        with suppress(OSError):
            os.rmdir(directory)


def own_files() -> list[str]:
    """Return the person's own files in the agent home: hooks, approvals, records, sessions."""
    home = agent_home()
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return []
    return [os.path.join(home, name) for name in names if name != DIRECTORY]


@contextmanager
def _locked() -> Iterator[None]:
    """Keep other installations from changing the register meanwhile; the lock is that of the directory, and no file."""
    try:
        directory = os.open(os.path.dirname(_path()), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        # Without the directory, there is no register and no generated file.
        yield
        return
    try:
        # A file system without locks goes without.
        with suppress(OSError):
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def generated_files(bridge: Bridge) -> list[str]:
    """Return the paths of the generated files of a bridge: each begins with the name of its client."""
    directory, stem = os.path.split(os.path.splitext(stub_path(bridge))[0])
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [os.path.join(directory, name) for name in names if name == stem or name.startswith(f"{stem}.")]


def _remove(path: str) -> bool:
    """Remove a file or a directory, and return whether it was there.  Raises `SettingsError`."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as exc:
        raise SettingsError(f"{path}: cannot be removed: {os_reason(exc)}") from None
    return True


def _read() -> _Register:
    """Return the register.  One that cannot be read knows nothing."""
    try:
        with open(_path(), "rb") as file:
            return msgspec.json.decode(file.read(), type=_Register)
    except (OSError, msgspec.DecodeError):
        return _Register()


def _write(found: _Register) -> None:
    try:
        write_atomically(_path(), msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    except StorageError as exc:
        raise SettingsError(f"{exc}; nothing was changed") from None


def _path() -> str:
    return os.path.join(agent_home(), DIRECTORY, _NAME)
