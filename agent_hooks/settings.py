"""Settings files: `~/.agent/settings.json`, then `./.agent/settings.json`.

Milliseconds live in the files only; what is handed out is in seconds.  Above: loader, cli.  Below: errors.
"""

# no `from __future__ import annotations`: msgspec would compile each annotation of what it decodes, at every start
import math
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from agent_hooks.errors import HookUsageError, SettingsError, did_you_mean, os_reason, shown
from agent_hooks.patterns import compile_pattern

if TYPE_CHECKING:
    from pathlib import Path  # which loads much: paths are texts in here

T = TypeVar("T")
DEFAULT_TIMEOUT = 30.0  # seconds of its own time that a handler gets
SETTINGS_FILE = "settings.json"
PROJECT_DIRECTORY = ".agent"
NEWLINE = b"\n"


_WORDS = {  # for msgspec's names of types
    "float | null": "a number or null",
    "int | null": "a whole number or null",
    "int": "a whole number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "str": "a text",
}
# for the schema only: `check_timeout` checks the number, with a better text
_MILLISECONDS = Meta(
    description="milliseconds above 0, or null for no limit", extra_json_schema={"exclusiveMinimum": 0}
)


_TOKENS = Meta(ge=0, description="tokens, from 0 up")


class CompactionFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """When a conversation is compacted without being asked, and how much of it stays word for word."""

    enabled: bool | UnsetType = UNSET
    reserve_tokens: Annotated[int, _TOKENS] | UnsetType = UNSET
    keep_recent_tokens: Annotated[int, _TOKENS] | UnsetType = UNSET
    threshold_tokens: Annotated[int, _TOKENS] | UnsetType | None = UNSET


class RedactionFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which secrets are hidden in what tools return; `patterns`: regular expressions of your own, by name."""

    enabled: bool | UnsetType = UNSET
    report_only: bool | UnsetType = UNSET
    patterns: dict[str, str] = field(default_factory=dict)


class SettingsFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """One settings file, as written; every key is optional.  Its JSON Schema is `agent-hooks schema settings`."""

    hooks: list[str] = field(default_factory=list)
    known_tools: list[str] = field(default_factory=list)
    hook_timeout: Annotated[float | UnsetType | None, _MILLISECONDS] = UNSET
    tool_call_timeout: Annotated[float | UnsetType | None, _MILLISECONDS] = UNSET
    compaction: CompactionFile | UnsetType = UNSET
    redaction: RedactionFile | UnsetType = UNSET
    guards: dict[str, Any] = field(default_factory=dict)


class CompactionSettings(Struct, frozen=True, kw_only=True):
    """When to compact without being asked, and how much to keep, in tokens.

    A conversation is compacted when it has more than `threshold_tokens`, or, without that, more than the model's window
    minus `reserve_tokens`; about `keep_recent_tokens` of it stay word for word.
    """

    enabled: bool = True
    reserve_tokens: int = 16_384
    keep_recent_tokens: int = 20_000
    threshold_tokens: int | None = None

    def limit(self, window: int | None) -> int | None:
        """Return how many tokens a conversation may have; `window`: the model's, `None` when nobody knows it."""
        if not self.enabled or self.threshold_tokens is window is None:
            return None
        if self.threshold_tokens is not None:
            return self.threshold_tokens
        assert window is not None
        return window - self.reserve_tokens


class RedactionSettings(Struct, frozen=True, kw_only=True):
    """Whether secrets are hidden in what tools return, or only reported; `patterns`: of your own, by name."""

    enabled: bool = True
    report_only: bool = False
    patterns: Mapping[str, str] = {}


class Settings(Struct, frozen=True, kw_only=True):
    """Both files together.  `hooks`: absolute paths; `known_tools`: names of tools that only
    another agent has, which handlers may name all the same; timeouts in seconds, `None` for no limit.

    `guards`: that section of each file, with the file's name; the guards read it.
    """

    hooks: tuple[str, ...] = ()
    known_tools: tuple[str, ...] = ()
    hook_timeout: float | None = DEFAULT_TIMEOUT
    tool_call_timeout: float | None = None
    compaction: CompactionSettings = CompactionSettings()
    redaction: RedactionSettings = RedactionSettings()
    guards: tuple[tuple[str, dict[str, Any]], ...] = ()


def agent_home(home: "str | Path | None" = None) -> str:
    """Return the agent home: `<home>/.agent` when `home` is given, else `$AGENT_HOME`, else `~/.agent`."""
    if home is None and (override := os.environ.get("AGENT_HOME")):
        return os.path.abspath(override)
    return os.path.abspath(os.path.join(user_home() if home is None else home, PROJECT_DIRECTORY))


def user_home() -> str:
    """Return the person's home directory; raises `SettingsError` when there is none."""
    home = os.path.expanduser("~")
    if home == "~":
        raise SettingsError("there is no home directory; set HOME")
    return home


def project_home(cwd: "str | Path") -> str:
    """Return where a project keeps its hooks and settings: `<cwd>/.agent`."""
    return os.path.abspath(os.path.join(cwd, PROJECT_DIRECTORY))


def load_settings(*, cwd: "str | Path", home: "str | Path | None" = None) -> Settings:
    """Read the agent home's settings, then the project's.

    Lists of both apply, in that order; of a single value the project's counts.  `home` stands for `~` (for tests).
    Raises `SettingsError` that names file, key, what was expected and what was found.
    """
    hooks: list[str] = []
    known_tools: list[str] = []
    timeouts: dict[str, float | None] = {}
    compaction = CompactionSettings()
    redaction = RedactionSettings()
    guards: list[tuple[str, dict[str, Any]]] = []
    for directory in dict.fromkeys((agent_home(home), project_home(cwd))):
        path = os.path.join(directory, SETTINGS_FILE)
        if (file := read_settings_file(path)) is None:
            continue
        known_tools += file.known_tools
        if file.guards:
            guards.append((path, file.guards))
        for index, hook in enumerate(file.hooks):
            try:
                hooks.append(resolve_path(hook, base=directory, home=home))
            except SettingsError as exc:
                raise SettingsError(f"{path}: key 'hooks[{index}]': {exc}") from None
        for key in ("hook_timeout", "tool_call_timeout"):
            if (value := getattr(file, key)) is not UNSET:
                milliseconds = check_timeout(value, f"{path}: key {_camel(key)!r}", unit="milliseconds")
                timeouts[key] = None if milliseconds is None else milliseconds / 1000
        if file.compaction is not UNSET:
            given = msgspec.structs.asdict(file.compaction)
            compaction = replace(compaction, **{key: each for key, each in given.items() if each is not UNSET})
        if file.redaction is not UNSET:
            redaction = _with_redaction(redaction, file.redaction, path)
    return Settings(
        hooks=tuple(hooks),
        known_tools=tuple(dict.fromkeys(known_tools)),
        compaction=compaction,
        redaction=redaction,
        guards=tuple(guards),
        **timeouts,
    )


def _with_redaction(settings: RedactionSettings, file: RedactionFile, path: str) -> RedactionSettings:
    for name, pattern in file.patterns.items():
        if problem := pattern_problem(name, pattern):
            raise SettingsError(f"{path}: key 'redaction.patterns': {problem}")
    return RedactionSettings(
        enabled=settings.enabled if file.enabled is UNSET else file.enabled,
        report_only=settings.report_only if file.report_only is UNSET else file.report_only,
        patterns={**settings.patterns, **file.patterns},
    )


def pattern_problem(name: str, pattern: str) -> str | None:
    """Return what is wrong with a pattern for redaction or its name, `None` if nothing."""
    if not re.fullmatch(r"[\w.:-]+", name):
        return f"the name {name!r} may have letters, digits, '_', '-', '.' and ':' only"
    try:
        compile_pattern(pattern)
    except HookUsageError as exc:
        return f"{name}: {exc}"
    return None


def read_settings_file(path: "str | Path") -> SettingsFile | None:
    """Return the settings in `path`, or `None` when there is no such file; raises `SettingsError`."""
    text = read_file(path)
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise SettingsError(
            f"{path}{_line_of(exc, text)}: is not JSON: {str(exc).removeprefix('JSON is malformed: ')}"
        ) from None
    if not isinstance(found, dict):
        raise SettingsError(f"{path}: expected a JSON object, found {shown(found)}")
    _check_keys(found, SettingsFile, path)
    if isinstance(found.get("compaction"), dict):
        _check_keys(found["compaction"], CompactionFile, path, "compaction.")
    if isinstance(found.get("redaction"), dict):
        _check_keys(found["redaction"], RedactionFile, path, "redaction.")
    try:
        return msgspec.convert(found, SettingsFile, strict=True)
    except msgspec.ValidationError as exc:
        raise SettingsError(f"{path}: {_place(str(exc), found)}") from None


def read_file(path: "str | Path") -> bytes | None:
    """Return what is in a file of the person's, `None` when there is none; raises `SettingsError`."""
    if link := dangling_link(path):
        raise SettingsError(f"{path}: cannot be read: {link} is a symlink to nothing")
    if os.path.exists(path) and not os.path.isfile(path):
        raise SettingsError(f"{path}: is not a regular file")
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise SettingsError(f"{path}: cannot be read: {os_reason(exc)}") from None


def _check_keys(found: dict[str, Any], kind: type[Struct], path: "str | Path", prefix: str = "") -> None:
    known = kind.__struct_encode_fields__
    for key in found:
        if key not in known:
            raise SettingsError(f"{path}: unknown key {prefix + key!r}{did_you_mean(key, known)}")


def convert_section(value: Any, kind: type[T], path: str, key: str) -> T:
    """Return a section of a settings file as `kind`; raises `SettingsError` that names file, key, expected and found."""
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as exc:
        message = str(exc)
        message = message.replace("`$", f"`$.{key}") if " - at `$" in message else f"{message} - at `$.{key}`"
        raise SettingsError(f"{path}: {_place(message, {key: value})}") from None


def dangling_link(path: "str | Path") -> str | None:
    """Return `path` or the directory above it that is a symlink to nothing, if one is: what was meant is not there."""
    above = os.fspath(path)
    while not os.path.islink(above) or os.path.exists(above):
        path, above = above, os.path.dirname(above)
        if above in (path, ""):
            return None
    return above


def check_timeout(value: object, where: str, *, unit: str = "seconds") -> float | None:
    """Return `value` if it can be a deadline: a finite number above 0, or `None` for no limit.

    Raises `SettingsError` that names `where`.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        nothing = "null" if unit == "milliseconds" else "None"
        raise SettingsError(f"{where}: expected {unit} above 0, or {nothing} for no limit; found {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise SettingsError(f"{where}: {shown(value)} is too large; use null for no limit") from None


def resolve_path(path: str, *, base: "str | Path", home: "str | Path | None" = None) -> str:
    """Return `path` as an absolute path: `~` and `~user` expanded, a relative one taken from `base`.

    Raises `SettingsError` when there is no such user.
    """
    if home is not None and (path == "~" or path.startswith("~/")):
        path = os.path.join(os.path.abspath(home), path[2:])
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise SettingsError(f"{path}: there is no user {expanded.partition('/')[0][1:]!r}")
    return os.path.abspath(os.path.join(base, expanded))


def _camel(key: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), key)


def _line_of(exc: Exception, text: bytes) -> str:
    if isinstance(exc, UnicodeDecodeError):  # of one string in the file
        at = text.find(exc.object) + exc.start
    elif match := re.search(r"\(byte (\d+)\)", str(exc)):
        at = int(match[1])
    elif "truncated" in str(exc):
        at = len(text.rstrip())
    else:
        return ""
    return f":{1 + text.count(NEWLINE, 0, at)}"


def _place(message: str, found: Any) -> str:
    """Turn msgspec's "Expected `x`, got `y` - at `$.key[0]`" into key, expected and found."""
    match = re.fullmatch(r"Expected `(?P<want>.*)`(?P<range> >= 0|, got `.*`) - at `\$\.?(?P<place>.*)`", message)
    if match is None:
        return message
    value = found
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", match["place"]):
        value = value[name] if name else value[int(index)]
    want = _WORDS.get(match["want"], match["want"]) + (" from 0 up" if ">=" in match["range"] else "")
    return f"key {match['place']!r}: expected {want}, found {shown(value)}"
