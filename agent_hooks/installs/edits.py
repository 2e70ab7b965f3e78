"""Edit a settings file of another agent: planned, shown as a diff, made in one step, with a backup next to the file.

Each format reads a text, and edits it so that all other places keep their bytes.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.bridges.base.words import BridgeError
from agent_hooks.errors import SettingsError, os_reason, shown
from agent_hooks.settings_file import read_file
from agent_hooks.storage.files import StorageError, write_atomically
from agent_hooks.ui.harmless import harmless

Format = Literal["json", "jsonc", "json5", "toml"]
"""`jsonc` has comments and commas behind the last member; `json5` has single quotes and bare keys too."""

NAMES: Mapping[Format, str] = {"json": "JSON", "jsonc": "JSON with comments", "json5": "JSON5", "toml": "TOML"}
"""The name of each format in an error."""


def parse(text: str, format: Format = "json") -> Any:
    """Return the value of a text, an empty object for an empty text.  Raises `ValueError` or `RecursionError`."""
    if format == "toml":
        # Imported here, because most agents have no settings in TOML.
        from agent_hooks.installs import toml_text

        return toml_text.parse(text)
    from agent_hooks.installs import json_text

    return json_text.parse(text, format)


def edited(text: str, new: dict[str, Any], format: Format = "json") -> str:
    """Return `text` with the value `new`; the members that do not change keep their text.

    Raises `ValueError` or `RecursionError` for a text that cannot be edited.
    """
    if format == "toml":
        from agent_hooks.installs import toml_text

        return toml_text.edited(text, new)
    from agent_hooks.installs import json_text

    return json_text.edited(text, new, format)


# The end of a backup's name.
BACKUP = ".before-agent-hooks"
_UNCHANGED = "nothing was changed"

Settings = dict[str, Any]
Change = Callable[[Mapping[str, Any]], Settings]


def read_settings(path: str, format: Format = "json") -> tuple[bytes | None, Settings]:
    """Return the bytes of a settings file and its settings, `None` and `{}` without a file; raises `SettingsError`."""
    data = read_file(path)
    try:
        found = parse(_text(data), format)
    except UnicodeDecodeError as exc:
        raise SettingsError(f"{path}: is not UTF-8: {exc.reason}; mend it first, {_UNCHANGED}") from None
    except (ValueError, RecursionError) as exc:
        raise SettingsError(f"{path}: is not {NAMES[format]}: {exc}; mend it first, {_UNCHANGED}") from None
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: expected a JSON object, found {shown(found)}; {_UNCHANGED}")
    return data, found


def _text(data: bytes | None) -> str:
    return (data or b"").removeprefix(codecs.BOM_UTF8).decode()


class Edit(Struct, frozen=True):
    """A planned change of one file: its bytes before and after; `after` is `None` when the file is to be removed.

    `keep`: save the old bytes as the backup; `spent`: remove the backup, which is not needed any more; `secret`: other
    users must not read the file from now on.
    """

    path: str
    before: bytes | None
    after: bytes | None
    keep: bool = False
    spent: bool = False
    secret: bool = False
    format: Format = "json"

    @property
    def changes(self) -> bool:
        """Whether the file would be another one."""
        return self.before != self.after

    @property
    def backup(self) -> str:
        """The backup's path."""
        return self.path + BACKUP

    def settings(self) -> tuple[Settings, Settings]:
        """Return the settings in the file before and after."""
        before, after = (parse(_text(data), self.format) for data in (self.before, self.after))
        return before, after

    def diff(self) -> str:
        """Return the change as a unified diff, fit for a terminal."""
        # Imported here, because most commands only read settings.
        from difflib import unified_diff

        old, new = (_text(data).splitlines() for data in (self.before, self.after))
        was, becomes = (self.path if data is not None else os.devnull for data in (self.before, self.after))
        return harmless("\n".join(unified_diff(old, new, was, becomes, lineterm="")))

    def make(self) -> None:
        """Change the file; raises `SettingsError`, and then the file is as it was."""
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
        self.clean_up()

    def clean_up(self) -> None:
        """Remove a backup that is not needed any more, after the file was changed."""
        if self.spent:
            # A backup that stays does no harm.
            with suppress(OSError):
                os.unlink(self.backup)


def edit(path: str, change: Change, *, format: Format = "json", keep: bool = False, plain: bool = False) -> Edit:
    """Return the edit that makes `change` of a file; an existing backup stays as it is.  Raises `SettingsError`.

    `keep`: save the old bytes as the backup, if there are some and no backup exists.
    `plain`: the agent does not read a file with a byte-order mark, so the mark goes.
    """
    data, settings = read_settings(path, format)
    changed = _changed(path, change, settings)
    marked = (data or b"").startswith(codecs.BOM_UTF8)
    # The order of members has a meaning too: Claude Code loads the first of two plugins with one name.
    if repr(changed) == repr(settings) and not (marked and plain):
        return Edit(path, data, data, format=format)
    bom = codecs.BOM_UTF8 if marked and not plain else b""
    try:
        after = bom + edited(_text(data), changed, format).encode()
    except (ValueError, RecursionError) as exc:
        raise SettingsError(f"{path}: {exc}; {_UNCHANGED}: make the change by hand") from None
    kept = keep and data is not None and not os.path.lexists(path + BACKUP)
    return Edit(path, data, after, keep=kept, format=format)


def undo(path: str, change: Change, forth_and_back: Change, *, format: Format = "json") -> Edit:
    """Return the edit that makes `change`, which takes out the entries of an earlier edit.  Raises `SettingsError`.

    `forth_and_back` makes the earlier change and then `change`.  If that turns the backup into the settings that are
    left, the file becomes the backup, byte for byte.  A file that is left empty, and has no backup, is removed.
    """
    found = edit(path, change, format=format)
    if not found.changes:
        return found
    _, left = read_settings(path, format)
    left = _changed(path, change, left)
    if not os.path.lexists(found.backup):
        gone = not left and not os.path.islink(path)
        return replace(found, after=None) if gone else found
    # A backup that cannot be read is not used.
    with suppress(SettingsError):
        kept, settings = read_settings(found.backup, format)
        if _changed(found.backup, forth_and_back, settings) == left:
            return replace(found, after=kept, spent=True)
    return found


def _changed(path: str, change: Change, settings: Settings) -> Settings:
    try:
        return change(settings)
    except BridgeError as exc:
        raise SettingsError(f"{path}: {exc}; {_UNCHANGED}") from None
