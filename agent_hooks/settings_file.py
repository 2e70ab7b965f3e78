"""One settings file, as a person has written it: its sections and keys, and the place of each mistake."""

# No `from __future__ import annotations`: msgspec would have to compile each annotation of these structs at every start.
import os
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from agent_hooks.errors import SettingsError, os_reason, shown
from agent_hooks.trees import NO_FILE, SourceTree
from agent_hooks.validation import check_keys, convert_section

if TYPE_CHECKING:
    # `pathlib` takes long to import, so paths are texts in this module.
    from pathlib import Path

MODES = ("inline", "process")
_NEWLINE = b"\n"
# Only for the schema: `check_timeout` checks the number, with a better text.
_MILLISECONDS = Meta(
    description="milliseconds above 0, or null for no limit", extra_json_schema={"exclusiveMinimum": 0}
)
_TOKENS = Meta(ge=0, description="tokens, from 0 up")


class CompactionFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The section `compaction` of one file, as written; `CompactionSettings` explains the keys."""

    enabled: bool | UnsetType = UNSET
    reserve_tokens: Annotated[int, _TOKENS] | UnsetType = UNSET
    keep_recent_tokens: Annotated[int, _TOKENS] | UnsetType = UNSET
    threshold_tokens: Annotated[int, _TOKENS] | UnsetType | None = UNSET


class RedactionFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The section `redaction` of one file, as written; `RedactionSettings` explains the keys."""

    enabled: bool | UnsetType = UNSET
    report_only: bool | UnsetType = UNSET
    patterns: dict[str, str] = field(default_factory=dict)
    disabled: list[str] = field(default_factory=list)


class TrustFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The section `trust` of the person's file; a project's own section does not count.

    `required`: where a project's files were never approved, tool calls are denied.
    """

    required: bool = False


class OtlpFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The section `records.otlp` of the person's file, as written; `OtlpSettings` explains the keys."""

    endpoint: str
    inputs: bool = False
    headers: dict[str, str] = field(default_factory=dict)


class RecordsFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The section `records` of the person's file, as written; `RecordsSettings` explains the keys."""

    enabled: bool | UnsetType = UNSET
    required: bool | UnsetType = UNSET
    days: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    bytes: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    otlp: OtlpFile | UnsetType = UNSET


class CheckpointsFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The section `checkpoints` of one file, as written; `CheckpointSettings` explains the keys."""

    enabled: bool | UnsetType = UNSET


class IsolationFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """One hook of the section `isolation` of the person's file, as written; `HookIsolation` explains the keys."""

    mode: Literal["inline", "process"] | UnsetType = UNSET
    # The system would take a larger number for a negative or a small one.
    memory: Annotated[int, Meta(ge=64, le=1 << 32, description="MiB of address space, at least 64")] | UnsetType = UNSET
    cpu: Annotated[int, Meta(ge=1, le=10**9, description="seconds, at least 1")] | UnsetType = UNSET
    files: Annotated[int, Meta(ge=16, le=10**9, description="open files, at least 16")] | UnsetType = UNSET


ThinkingLevel = Literal["off", "low", "medium", "high"]
"""How much a model thinks."""
CautionLevel = Literal["work", "ask", "edits", "plan"]
"""How cautious an agent is at the terminal; `host.caution` says how each level judges a call."""


class SettingsFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """One settings file, as written; every key is optional.  Its JSON Schema is `agent-hooks schema settings`."""

    hooks: list[str] = field(default_factory=list)
    disabled_hooks: list[str] = field(default_factory=list)
    model: str | UnsetType | None = UNSET
    caution: CautionLevel | UnsetType | None = UNSET
    thinking: ThinkingLevel | UnsetType | None = UNSET
    known_tools: list[str] = field(default_factory=list)
    hook_timeout: Annotated[float | UnsetType | None, _MILLISECONDS] = UNSET
    tool_call_timeout: Annotated[float | UnsetType | None, _MILLISECONDS] = UNSET
    compaction: CompactionFile | UnsetType = UNSET
    redaction: RedactionFile | UnsetType = UNSET
    guards: dict[str, Any] = field(default_factory=dict)
    records: RecordsFile | UnsetType = UNSET
    trust: TrustFile = field(default_factory=TrustFile)
    isolation: dict[str, Literal["inline", "process"] | IsolationFile] = field(default_factory=dict)
    checkpoints: CheckpointsFile | UnsetType = UNSET


def read_settings_file(path: "str | Path", tree: SourceTree | None = None) -> SettingsFile | None:
    """Return the settings in `path`, or `None` when there is no such file; raises `SettingsError`.

    `tree`: the source tree that the file belongs to.
    """
    text = read_file(path, tree)
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
        twice = _key_given_twice(text)
    except RecursionError:
        raise SettingsError("is not JSON that can be read: it is nested too deeply", path) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        problem = f"is not JSON: {str(exc).removeprefix('JSON is malformed: ')}"
        raise SettingsError(problem, path, _line_of(exc, text)) from None
    if twice is not None:
        raise SettingsError(f"key {shown(twice)}: is given twice", path)
    if not isinstance(found, dict):
        raise SettingsError(f"expected a JSON object, found {shown(found)}", path)
    check_keys(found, SettingsFile, path)
    if isinstance(found.get("compaction"), dict):
        check_keys(found["compaction"], CompactionFile, path, "compaction.")
    if isinstance(found.get("redaction"), dict):
        check_keys(found["redaction"], RedactionFile, path, "redaction.")
    if isinstance(found.get("records"), dict):
        check_keys(found["records"], RecordsFile, path, "records.")
        if isinstance(found["records"].get("otlp"), dict):
            check_keys(found["records"]["otlp"], OtlpFile, path, "records.otlp.")
    if isinstance(found.get("checkpoints"), dict):
        check_keys(found["checkpoints"], CheckpointsFile, path, "checkpoints.")
    if isinstance(found.get("isolation"), dict):
        _check_isolation(found["isolation"], path)
    if isinstance(found.get("trust"), dict):
        check_keys(found["trust"], TrustFile, path, "trust.")
    return convert_section(found, SettingsFile, path)


def _key_given_twice(text: bytes) -> str | None:
    """Return a key that stands twice in one object of a JSON text; JSON readers take the last value without a word."""
    # Imported here, because without a settings file the process of one event does not need it.
    import json

    twice: list[str] = []

    def take(pairs: list[tuple[str, Any]]) -> None:
        seen = set[str]()
        for key, _ in pairs:
            if key in seen:
                twice.append(key)
            seen.add(key)

    # The lengths of numbers stand for them: a long one cannot be converted.
    json.loads(text, object_pairs_hook=take, parse_int=len, parse_float=len)
    return twice[0] if twice else None


def _check_isolation(section: dict[str, Any], path: "str | Path") -> None:
    """Raise `SettingsError`, with the key of the hook, for a wrong value of the section `isolation`."""
    for key, each in section.items():
        where = f"isolation.{key}"
        if not key.strip():
            raise SettingsError(f"key 'isolation': the key {key!r} is no path of a hook", path)
        if isinstance(each, dict):
            check_keys(each, IsolationFile, path, f"{where}.")
            convert_section(each, IsolationFile, path, where)
        elif each not in MODES:
            modes = ", ".join(map(repr, MODES))
            raise SettingsError(f"key {where!r}: expected {modes} or an object, found {shown(each)}", path)


def read_file(path: "str | Path", tree: SourceTree | None = None) -> bytes | None:
    """Return the bytes of a file that a person wrote, `None` when there is no such file; raises `SettingsError`.

    `tree`: the source tree that the file belongs to; of an approved one, the approved bytes count.
    """
    if tree is not None and tree.files is not None:
        approved = tree.files.get(os.fspath(path))
        if approved is not None and approved.data.startswith(NO_FILE):
            raise SettingsError(approved.data.removeprefix(NO_FILE).decode(errors="replace"), path)
        return None if approved is None else approved.data
    if link := dangling_link(path):
        raise SettingsError(f"cannot be read: {link} is a symlink to a missing file", path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise SettingsError("is not a regular file", path)
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise SettingsError(f"cannot be read: {os_reason(exc)}", path) from None


def dangling_link(path: "str | Path") -> str | None:
    """Return the first symlink to a missing file among `path` and the directories above it, `None` without one."""
    above = os.fspath(path)
    while not os.path.islink(above) or os.path.exists(above):
        path, above = above, os.path.dirname(above)
        if above in (path, ""):
            return None
    return above


def _line_of(exc: Exception, text: bytes) -> int | None:
    """Return the line of a mistake in the JSON; msgspec's text has only the number of the byte."""
    if isinstance(exc, UnicodeDecodeError):
        # The exception holds only the string with the mistake, not the whole file.
        at = text.find(exc.object) + exc.start
    elif match := re.search(r"\(byte (\d+)\)", str(exc)):
        at = int(match[1])
    elif "truncated" in str(exc):
        at = len(text.rstrip())
    else:
        return None
    return 1 + text.count(_NEWLINE, 0, at)
