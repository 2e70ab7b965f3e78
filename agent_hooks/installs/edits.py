"""A settings file of another agent: read, changed in one step, with a backup beside it, or only shown.

Above: installation.  Below: json_text, settings, host.tools.base.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.bridges.base import BridgeError
from agent_hooks.errors import SettingsError, os_reason, shown
from agent_hooks.installs.json_text import edited, parse
from agent_hooks.settings import read_file
from agent_hooks.storage.files import StorageError, write_atomically
from agent_hooks.ui.harmless import harmless

BACKUP = ".before-agent-hooks"  # what a backup's name ends in
_UNCHANGED = "nothing was changed"

Settings = dict[str, Any]
Change = Callable[[Mapping[str, Any]], Settings]


def read_settings(path: str) -> tuple[bytes | None, Settings]:
    """Return a settings file's bytes and what they say, `None` and `{}` where there is none; raises `SettingsError`."""
    data = read_file(path)
    try:
        found = parse(_text(data))
    except UnicodeDecodeError as exc:
        raise SettingsError(f"{path}: is not UTF-8: {exc.reason}; mend it first, {_UNCHANGED}") from None
    except (ValueError, RecursionError) as exc:
        raise SettingsError(f"{path}: is not JSON: {exc}; mend it first, {_UNCHANGED}") from None
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: expected a JSON object, found {shown(found)}; {_UNCHANGED}")
    return data, found


def _text(data: bytes | None) -> str:
    return (data or b"").removeprefix(codecs.BOM_UTF8).decode()


class Edit(Struct, frozen=True):
    """A change of one file that is not made yet; `after` `None` is a file that goes away."""

    path: str
    before: bytes | None
    after: bytes | None
    keep: bool = False  # whether what was there is to be kept as the backup
    spent: bool = False  # whether the backup has served its purpose
    secret: bool = False  # whether nobody else may read the file

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.before != self.after

    @property
    def backup(self) -> str:
        """The backup's path."""
        return self.path + BACKUP

    def settings(self) -> tuple[Settings, Settings]:
        """Return what the file says before and after."""
        before, after = (parse(_text(data)) for data in (self.before, self.after))
        return before, after

    def diff(self) -> str:
        """Return the change as a unified diff, ready to be printed."""
        from difflib import unified_diff  # here, as in `make`

        old, new = (_text(data).splitlines() for data in (self.before, self.after))
        was, becomes = (self.path if data is not None else os.devnull for data in (self.before, self.after))
        return harmless("\n".join(unified_diff(old, new, was, becomes, lineterm="")))

    def make(self) -> None:
        """Do it; raises `SettingsError`, and then the file is as it was."""
        if read_file(self.path) != self.before:
            raise SettingsError(f"{self.path}: was changed by another program just now; {_UNCHANGED}: do it again")
        try:
            if self.keep:
                assert self.before is not None
                write_atomically(self.backup, self.before, like=self.path)
            if self.after is None:
                os.unlink(self.path)
            else:
                write_atomically(self.path, self.after, secret=self.secret)
        except StorageError as exc:
            raise SettingsError(f"{exc}; {_UNCHANGED}") from None
        except OSError as exc:
            raise SettingsError(f"{self.path}: cannot be changed: {os_reason(exc)}; {_UNCHANGED}") from None
        if self.spent:
            with suppress(OSError):  # one that stays does no harm
                os.unlink(self.backup)


def edit(path: str, change: Change, *, keep: bool = False) -> Edit:
    """Return the edit that makes `change` of a file; a backup that is there already stays.  Raises `SettingsError`."""
    data, settings = read_settings(path)
    changed = _changed(path, change, settings)
    if changed == settings:
        return Edit(path, data, data)
    bom = codecs.BOM_UTF8 if (data or b"").startswith(codecs.BOM_UTF8) else b""
    after = bom + edited(_text(data), changed).encode()
    return Edit(path, data, after, keep=keep and data is not None and not os.path.lexists(path + BACKUP))


def undo(path: str, change: Change, forth_and_back: Change) -> Edit:
    """Return the edit that makes `change`, which takes out what an earlier edit put in.  Raises `SettingsError`.

    `forth_and_back` says what is left of settings that go through both.  Where the backup comes to the same, the file
    becomes what it was, to the byte; and one that holds nothing any more, and was not there before, goes away.
    """
    found = edit(path, change)
    if not found.changes:
        return found
    _, left = read_settings(path)
    left = _changed(path, change, left)
    if not os.path.lexists(found.backup):
        gone = not left and not os.path.islink(path)
        return replace(found, after=None) if gone else found
    with suppress(SettingsError):  # a backup that somebody broke is none
        kept, settings = read_settings(found.backup)
        if _changed(found.backup, forth_and_back, settings) == left:
            return replace(found, after=kept, spent=True)
    return found


def _changed(path: str, change: Change, settings: Settings) -> Settings:
    try:
        return change(settings)
    except BridgeError as exc:
        raise SettingsError(f"{path}: {exc}; {_UNCHANGED}") from None
