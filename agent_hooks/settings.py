"""Settings files: `~/.agent/settings.json`, then `./.agent/settings.json`.

The files have milliseconds; `Settings` has seconds.
"""

# No `from __future__ import annotations`: msgspec would have to compile each annotation of these structs at every start.
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from agent_hooks.errors import SettingsError, os_reason, shown
from agent_hooks.patterns import pattern_problem
from agent_hooks.trees import SourceTree
from agent_hooks.validation import check_keys, check_timeout, convert_section
from agent_hooks.values.wire import camel

if TYPE_CHECKING:
    # `pathlib` takes long to import, so paths are texts in this module.
    from pathlib import Path

DEFAULT_TIMEOUT = 30.0
"""Seconds that a handler may take, unless the settings say otherwise."""
SETTINGS_FILE = "settings.json"
PROJECT_DIRECTORY = ".agent"
NEWLINE = b"\n"
# The base URL of an OTLP endpoint, without query and fragment, and a header.
_ENDPOINT = re.compile(r"https?://(?P<user>[^/?#@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(:[0-9]{1,5})?(/[^\s?#]*)?")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\xa0-\xff]*")


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


class SettingsFile(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """One settings file, as written; every key is optional.  Its JSON Schema is `agent-hooks schema settings`."""

    hooks: list[str] = field(default_factory=list)
    known_tools: list[str] = field(default_factory=list)
    hook_timeout: Annotated[float | UnsetType | None, _MILLISECONDS] = UNSET
    tool_call_timeout: Annotated[float | UnsetType | None, _MILLISECONDS] = UNSET
    compaction: CompactionFile | UnsetType = UNSET
    redaction: RedactionFile | UnsetType = UNSET
    guards: dict[str, Any] = field(default_factory=dict)
    records: RecordsFile | UnsetType = UNSET
    trust: TrustFile = field(default_factory=TrustFile)


class CompactionSettings(Struct, frozen=True, kw_only=True):
    """When a conversation is compacted automatically, and how much of it stays word for word; in tokens.

    A conversation is compacted when it has more than `threshold_tokens`, or, without that, more than the model's window
    minus `reserve_tokens`.  About `keep_recent_tokens` of it stay word for word.
    """

    enabled: bool = True
    reserve_tokens: int = 16_384
    keep_recent_tokens: int = 20_000
    threshold_tokens: int | None = None

    def limit(self, window: int | None) -> int | None:
        """Return how many tokens a conversation may have, `None` for no limit.

        `window`: the size of the model's context window, `None` when it is unknown.
        """
        if not self.enabled or self.threshold_tokens is window is None:
            return None
        if self.threshold_tokens is not None:
            return self.threshold_tokens
        assert window is not None
        return window - self.reserve_tokens


class RedactionSettings(Struct, frozen=True, kw_only=True):
    """Whether secrets in the results of tools are hidden, or only reported.

    `patterns`: regular expressions for secrets of your own, by name.
    """

    enabled: bool = True
    report_only: bool = False
    patterns: Mapping[str, str] = {}


class OtlpSettings(Struct, frozen=True, kw_only=True):
    """The OTLP endpoint that records are exported to while they are written.

    `endpoint`: its base URL, to which `/v1/traces` and `/v1/logs` are added; `inputs`: export inputs, reasons and all
    other texts too; `headers`: of every request, an authorization for example.
    """

    endpoint: str
    inputs: bool = False
    headers: Mapping[str, str] = {}


class RecordsSettings(Struct, frozen=True, kw_only=True):
    """Whether decisions are written down, and how long and how many of them are kept.

    `required`: a tool call whose decision cannot be written does not run; `days`, `bytes`: older records, and the oldest
    of those above this size, are removed; `otlp`: the endpoint they are exported to, `None` for no export.  Only the
    person's own settings count here.
    """

    enabled: bool = True
    required: bool = False
    days: int = 30
    bytes: int = 1 << 30
    otlp: OtlpSettings | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of both files, merged.

    `hooks`: absolute paths; `known_tools`: names of tools that only another agent has, so that a handler that names one
    is not reported as a mistake; the timeouts are in seconds, `None` for no limit; `guards`: the section of that name of
    each file, with the file's path, for `guards.config.read_sections`; `ignored`: a sentence for each section that
    counts only in the person's own settings, and stands in a project's.
    """

    hooks: tuple[str, ...] = ()
    known_tools: tuple[str, ...] = ()
    hook_timeout: float | None = DEFAULT_TIMEOUT
    tool_call_timeout: float | None = None
    compaction: CompactionSettings = CompactionSettings()
    redaction: RedactionSettings = RedactionSettings()
    guards: tuple[tuple[str, dict[str, Any]], ...] = ()
    records: RecordsSettings = RecordsSettings()
    ignored: tuple[str, ...] = ()


def agent_home(home: "str | Path | None" = None) -> str:
    """Return the agent home: `<home>/.agent` when `home` is given, else `$AGENT_HOME`, else `~/.agent`."""
    if home is None and (override := os.environ.get("AGENT_HOME")):
        return os.path.abspath(override)
    return os.path.abspath(os.path.join(user_home() if home is None else home, PROJECT_DIRECTORY))


def user_home() -> str:
    """Return the person's home directory; raises `SettingsError` when none is known."""
    home = os.path.expanduser("~")
    if home == "~":
        raise SettingsError("there is no home directory; set HOME")
    return home


def project_home(cwd: "str | Path") -> str:
    """Return the directory of a project's hooks and settings: `<cwd>/.agent`."""
    return os.path.abspath(os.path.join(cwd, PROJECT_DIRECTORY))


class Approvals(Protocol):
    """The approvals of a person; `agent_hooks.Trust` has them."""

    def trees(self, cwd: "str | Path") -> Sequence[SourceTree]:
        """Return the source trees that count for a directory, the agent home's first."""
        ...


def load_settings(*, cwd: "str | Path", home: "str | Path | None" = None, trust: Approvals | None = None) -> Settings:
    """Read the agent home's settings, then the project's.

    The lists of both apply, in that order; of a single value, the project's counts.  `home` replaces `~` in tests;
    `trust`: only approved projects count, all of those that `cwd` is in.  Raises `SettingsError` with file, key, expected
    and found.
    """
    return merge_settings(source_trees(cwd, home) if trust is None else trust.trees(cwd), home)


def source_trees(cwd: "str | Path", home: "str | Path | None" = None) -> tuple[SourceTree, ...]:
    """Return the trees of an embedding program, which vouches for them: the agent home, and `<cwd>/.agent`."""
    project = project_home(cwd)
    own = SourceTree(agent_home(home))
    return (own,) if project == own.directory else (own, SourceTree(project, os.path.dirname(project)))


def merge_settings(trees: Iterable[SourceTree], home: "str | Path | None" = None) -> Settings:
    """Read the settings of each tree and merge them; of a single value, the last tree's counts."""
    hooks: list[str] = []
    known_tools: list[str] = []
    timeouts: dict[str, float | None] = {}
    compaction = CompactionSettings()
    redaction = RedactionSettings()
    guards: list[tuple[str, dict[str, Any]]] = []
    records = RecordsSettings()
    ignored: list[str] = []
    for tree in trees:
        path = os.path.join(tree.directory, SETTINGS_FILE)
        if (file := read_settings_file(path, tree)) is None:
            continue
        known_tools += file.known_tools
        if file.guards:
            guards.append((path, file.guards))
        hooks += _hooks_of(file, path, tree.directory, home)
        timeouts |= _timeouts_of(file, path)
        if file.compaction is not UNSET:
            given = msgspec.structs.asdict(file.compaction)
            compaction = replace(compaction, **{key: each for key, each in given.items() if each is not UNSET})
        if file.redaction is not UNSET:
            redaction = _with_redaction(redaction, file.redaction, path)
        if file.records is not UNSET:
            if tree.project is None:
                records = _with_records(records, file.records, path)
            else:
                ignored.append(f"{path}: the section 'records' counts only in your own settings, in {agent_home(home)}")
    return Settings(
        hooks=tuple(hooks),
        known_tools=tuple(dict.fromkeys(known_tools)),
        compaction=compaction,
        redaction=redaction,
        guards=tuple(guards),
        records=records,
        ignored=tuple(ignored),
        **timeouts,
    )


def _hooks_of(file: SettingsFile, path: str, directory: str, home: "str | Path | None") -> list[str]:
    hooks: list[str] = []
    for index, hook in enumerate(file.hooks):
        try:
            hooks.append(resolve_path(hook, base=directory, home=home))
        except SettingsError as exc:
            raise SettingsError(f"key 'hooks[{index}]': {exc}", path) from None
    return hooks


def _timeouts_of(file: SettingsFile, path: str) -> dict[str, float | None]:
    timeouts: dict[str, float | None] = {}
    for key in ("hook_timeout", "tool_call_timeout"):
        if (value := getattr(file, key)) is not UNSET:
            milliseconds = check_timeout(value, f"key {camel(key)!r}", unit="milliseconds", path=path)
            timeouts[key] = None if milliseconds is None else milliseconds / 1000
    return timeouts


def _with_redaction(settings: RedactionSettings, file: RedactionFile, path: str) -> RedactionSettings:
    for name, pattern in file.patterns.items():
        if problem := pattern_problem(name, pattern):
            raise SettingsError(f"key 'redaction.patterns': {problem}", path)
    return RedactionSettings(
        enabled=settings.enabled if file.enabled is UNSET else file.enabled,
        report_only=settings.report_only if file.report_only is UNSET else file.report_only,
        patterns={**settings.patterns, **file.patterns},
    )


def _with_records(settings: RecordsSettings, file: RecordsFile, path: str) -> RecordsSettings:
    given = {key: each for key, each in msgspec.structs.asdict(file).items() if each is not UNSET}
    if file.otlp is not UNSET:
        if problem := endpoint_problem(file.otlp.endpoint):
            raise SettingsError(f"key 'records.otlp.endpoint': {problem}", path)
        for name, value in file.otlp.headers.items():
            if not _HEADER.fullmatch(f"{name}: {value}"):
                raise SettingsError(f"key 'records.otlp.headers': {name!r} is no header of one line, in Latin-1", path)
        given["otlp"] = OtlpSettings(
            endpoint=file.otlp.endpoint, inputs=file.otlp.inputs, headers=dict(file.otlp.headers)
        )
    return replace(settings, **given)


def endpoint_problem(endpoint: str) -> str:
    """Return why a text cannot be the base URL of an OTLP endpoint; empty for one that can."""
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        return f"expected a URL such as http://localhost:4318, found {shown(endpoint)}"
    if match["user"]:
        return "a URL with a password is shown in errors; put it into 'records.otlp.headers'"
    return ""


def read_settings_file(path: "str | Path", tree: SourceTree | None = None) -> SettingsFile | None:
    """Return the settings in `path`, or `None` when there is no such file; raises `SettingsError`.

    `tree`: the source tree that the file belongs to.
    """
    text = read_file(path, tree)
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
    except RecursionError:
        raise SettingsError("is not JSON that can be read: it is nested too deeply", path) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        problem = f"is not JSON: {str(exc).removeprefix('JSON is malformed: ')}"
        raise SettingsError(problem, path, _line_of(exc, text)) from None
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
    if isinstance(found.get("trust"), dict):
        check_keys(found["trust"], TrustFile, path, "trust.")
    return convert_section(found, SettingsFile, path)


def read_file(path: "str | Path", tree: SourceTree | None = None) -> bytes | None:
    """Return the bytes of a file that a person wrote, `None` when there is no such file; raises `SettingsError`.

    `tree`: the source tree that the file belongs to; of an approved one, the approved bytes count.
    """
    if tree is not None and tree.files is not None:
        approved = tree.files.get(os.fspath(path))
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


def resolve_path(path: str, *, base: "str | Path", home: "str | Path | None" = None) -> str:
    """Return `path` as an absolute path: `~` and `~user` expanded, a relative one taken from `base`.

    Raises `SettingsError` when there is no such user.
    """
    if home is not None and (path == "~" or path.startswith("~/")):
        path = os.path.join(os.path.abspath(home), path[2:])
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise SettingsError(f"there is no user {expanded.partition('/')[0][1:]!r}", path)
    return os.path.abspath(os.path.join(base, expanded))


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
    return 1 + text.count(NEWLINE, 0, at)
