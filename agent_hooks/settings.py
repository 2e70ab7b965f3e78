"""Settings files: `~/.agent/settings.json`, then `./.agent/settings.json`.

The files have milliseconds; `Settings` has seconds.
"""

# No `from __future__ import annotations`: msgspec would have to compile each annotation of these structs at every start.
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from agent_hooks.errors import SettingsError, shown
from agent_hooks.patterns import pattern_problem
from agent_hooks.settings_file import (
    CautionLevel,
    RecordsFile,
    RedactionFile,
    SettingsFile,
    ThinkingLevel,
    read_settings_file,
)
from agent_hooks.trees import SourceTree
from agent_hooks.validation import LONGEST_PATH, TOO_LONG, check_timeout
from agent_hooks.values.wire import camel

if TYPE_CHECKING:
    # `pathlib` takes long to import, so paths are texts in this module.
    from pathlib import Path

DEFAULT_TIMEOUT = 30.0
"""Seconds that a handler may take, unless the settings say otherwise."""
SETTINGS_FILE = "settings.json"
INSTRUCTIONS_FILE = "AGENTS.md"
"""The name in the agent home of the person's instructions for the agent of `agent-hooks run`."""
MCP_FILE = "mcp.json"
"""The name in the agent home of the list of MCP servers that the example `mcp_servers` starts."""
COMMANDS_DIRECTORY = "commands"
"""The name of the directory of texts that are slash commands of interactive mode, in the agent home and in a project."""
SKILLS_DIRECTORY = "skills"
"""The name of the directory of skills, each a directory with a `SKILL.md`, in the agent home and in a project."""
PROJECT_DIRECTORY = ".agent"
EVERY_HOOK = "*"
"""The key of `isolation` that stands for every hook without a key of its own."""
OWN_LITERAL = 'a hook of a project has ISOLATION = "process" in its file'
# The base URL of an OTLP endpoint, without query and fragment, and a header.
_ENDPOINT = re.compile(r"https?://(?P<user>[^/?#@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(:[0-9]{1,5})?(/[^\s?#]*)?")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\xa0-\xff]*")


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

    `patterns`: regular expressions for secrets of your own, by name; `disabled`: the kinds that are no secrets here, each
    with the path of the file that says so.
    """

    enabled: bool = True
    report_only: bool = False
    patterns: Mapping[str, str] = {}
    disabled: Mapping[str, str] = {}


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


class CheckpointSettings(Struct, frozen=True, kw_only=True):
    """Whether the files of a git working tree are saved before a turn changes them, for `agent-hooks undo`."""

    enabled: bool = True


class HookIsolation(Struct, frozen=True, kw_only=True):
    """Where a hook runs, and the limits of its process if it has one of its own.

    `mode`: `None` leaves it to the hook's file; `memory`: MiB of address space; `cpu`: seconds of computing in one run of
    the process; `files`: descriptors that are open at once.
    """

    mode: Literal["inline", "process"] | None = None
    memory: int | None = None
    cpu: int | None = None
    files: int | None = None


class IsolationSettings(Struct, frozen=True):
    """The section `isolation` of the person's settings: where hooks run.

    `hooks`: by absolute path; `others`: every other hook, the key `"*"`.
    """

    hooks: Mapping[str, HookIsolation] = {}
    others: HookIsolation = HookIsolation()

    def of(self, *paths: str) -> HookIsolation:
        """Return the settings of a hook; `paths`: its path, and its path without symlinks."""
        found = next((self.hooks[path] for path in paths if path in self.hooks), HookIsolation())
        given = {name: value for name, value in msgspec.structs.asdict(found).items() if value is not None}
        return replace(self.others, **given)


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of both files, merged.

    `hooks`: absolute paths, and `module:NAME` for a module that does not count; `hook_patterns`: a pattern of absolute
    paths for each directory and glob among the entries, whose hooks stand in `hooks`; `disabled_hooks`: paths of hooks
    that count nowhere; `model`: the model of a run that names none, `None` without one; `caution`: the level that a
    run at the terminal begins with, `thinking`: how much the model of a new session thinks, `None` without one;
    `known_tools`: names of tools that only another agent has, so that a handler that names one is not reported as a
    mistake; `hook_timeout`, `tool_call_timeout`: in seconds, `None` for no limit; `guards`: the section of that name
    of each file, with the file's path, for `guards.config.read_sections`; `ignored`: a sentence for each section that
    counts only in the person's own settings, and stands in a project's, and for each key of `isolation` without a
    hook; `compaction`, `redaction`, `records`, `checkpoints`: the sections of these names.
    """

    hooks: tuple[str, ...] = ()
    hook_patterns: tuple[str, ...] = ()
    disabled_hooks: tuple[str, ...] = ()
    model: str | None = None
    caution: CautionLevel | None = None
    thinking: ThinkingLevel | None = None
    known_tools: tuple[str, ...] = ()
    hook_timeout: float | None = DEFAULT_TIMEOUT
    tool_call_timeout: float | None = None
    compaction: CompactionSettings = CompactionSettings()
    redaction: RedactionSettings = RedactionSettings()
    guards: tuple[tuple[str, dict[str, Any]], ...] = ()
    records: RecordsSettings = RecordsSettings()
    isolation: IsolationSettings = IsolationSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
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


def load_settings(
    *, cwd: "str | Path" = ".", home: "str | Path | None" = None, trust: Approvals | None = None
) -> Settings:
    """Read the agent home's settings, then those of the project at `cwd`, by default the working directory.

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
    hook_patterns: list[str] = []
    disabled_hooks: list[str] = []
    model: str | None = None
    caution: CautionLevel | None = None
    thinking: ThinkingLevel | None = None
    known_tools: list[str] = []
    timeouts: dict[str, float | None] = {}
    compaction = CompactionSettings()
    redaction = RedactionSettings()
    guards: list[tuple[str, dict[str, Any]]] = []
    records = RecordsSettings()
    isolation = IsolationSettings()
    checkpoints = CheckpointSettings()
    ignored: list[str] = []
    for tree in trees:
        path = os.path.join(tree.directory, SETTINGS_FILE)
        if (file := read_settings_file(path, tree)) is None:
            continue
        known_tools += file.known_tools
        if file.guards:
            guards.append((path, file.guards))
        found, patterns = _hooks_of(file, path, tree, home, hooks)
        hooks += found
        hook_patterns += patterns
        if tree.project is None:
            disabled_hooks += _disabled_in(file, path, tree, home)
            model = _model_of(file, path)
            caution = None if file.caution is UNSET else file.caution
            thinking = None if file.thinking is UNSET else file.thinking
        else:
            ignored += _personal_keys(file, path, agent_home(home))
        timeouts |= _timeouts_of(file, path)
        if file.compaction is not UNSET:
            given = msgspec.structs.asdict(file.compaction)
            compaction = replace(compaction, **{key: each for key, each in given.items() if each is not UNSET})
        if file.redaction is not UNSET:
            redaction = _with_redaction(redaction, file.redaction, path)
        if file.checkpoints is not UNSET and file.checkpoints.enabled is not UNSET:
            checkpoints = CheckpointSettings(enabled=file.checkpoints.enabled)
        if file.records is not UNSET:
            if tree.project is None:
                records = _with_records(records, file.records, path)
            else:
                ignored.append(f"{path}: the section 'records' counts only in your own settings, in {agent_home(home)}")
        if file.isolation:
            if tree.project is None:
                isolation = _isolation_of(file, path, tree.directory, home)
                ignored += _of_no_hook(file, path, tree.directory, home)
            else:
                ignored.append(f"{path}: the section 'isolation' counts only in your own settings; {OWN_LITERAL}")
    return Settings(
        hooks=tuple(hooks),
        hook_patterns=tuple(dict.fromkeys(hook_patterns)),
        disabled_hooks=tuple(dict.fromkeys(disabled_hooks)),
        model=model,
        caution=caution,
        thinking=thinking,
        known_tools=tuple(dict.fromkeys(known_tools)),
        compaction=compaction,
        redaction=redaction,
        guards=tuple(guards),
        records=records,
        isolation=isolation,
        checkpoints=checkpoints,
        ignored=tuple(ignored),
        **timeouts,
    )


def disabled_hooks(trees: Iterable[SourceTree], home: "str | Path | None" = None) -> tuple[str, ...]:
    """Return the paths of the hooks that the person's settings leave out; raises `SettingsError`."""
    found: list[str] = []
    for tree in trees:
        path = os.path.join(tree.directory, SETTINGS_FILE)
        if tree.project is None and (file := read_settings_file(path, tree)) is not None:
            found += _disabled_in(file, path, tree, home)
    return tuple(dict.fromkeys(found))


def _disabled_in(file: SettingsFile, path: str, tree: SourceTree, home: "str | Path | None") -> list[str]:
    return _paths_of("disabledHooks", file.disabled_hooks, path, tree.directory, home)


def _hooks_of(
    file: SettingsFile, path: str, tree: SourceTree, home: "str | Path | None", before: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the hooks that the entries of a file stand for, and the patterns of its directories and globs.

    An entry that stands for no hook stays as it is, so that loading it fails.  `before`: the hooks of the trees before.
    """
    found: list[str] = []
    patterns: list[str] = []
    for index, entry in enumerate(file.hooks):
        (each,) = _paths_of("hooks", [entry], path, tree.directory, home, first=index)
        plain = each.endswith(".py") and (os.path.lexists(each) if tree.files is None else each in tree.files)
        if plain:
            found.append(each)
            continue
        # Imported here, because most settings name files only.
        from agent_hooks import hook_entries as entries

        if entry.startswith(entries.MODULE):
            place = entries.module_path(entry.removeprefix(entries.MODULE))
            known = place is not None and (tree.project is None or place in before)
            found.append(place if known and place is not None else entry)
            continue
        is_directory = entries.is_plain_directory(each, tree)
        if not is_directory and not entries.is_glob(entry):
            found.append(each)
            continue
        written = each if is_directory else resolve_path(entry, base=entries.escaped(tree.directory), home=home)
        pattern = entries.pattern_of(written, is_directory=is_directory)
        patterns.append(pattern)
        found += entries.hooks_in(pattern, entries.names_in(tree), tree) or [each]
    return found, patterns


def _paths_of(
    key: str, paths: list[str], path: str, directory: str, home: "str | Path | None", first: int = 0
) -> list[str]:
    found: list[str] = []
    for index, each in enumerate(paths, first):
        try:
            found.append(resolve_path(each, base=directory, home=home))
        except SettingsError as exc:
            raise SettingsError(f"key '{key}[{index}]': {exc}", path) from None
    return found


def _model_of(file: SettingsFile, path: str) -> str | None:
    if file.model is UNSET or file.model is None:
        return None
    if not file.model.strip():
        raise SettingsError("key 'model': expected a model such as 'anthropic:NAME', found an empty text", path)
    return file.model.strip()


def _personal_keys(file: SettingsFile, path: str, own: str) -> Iterator[str]:
    """Yield a sentence for each key of a project's file that counts only in the person's own."""
    if file.disabled_hooks:
        yield f"{path}: the key 'disabledHooks' counts only in your own settings, in {own}"
    if file.model is not UNSET and file.model is not None:
        yield f"{path}: the key 'model' counts only in your own settings, in {own}: it decides where your code is sent"
    for key in ("caution", "thinking"):
        if getattr(file, key) is not UNSET and getattr(file, key) is not None:
            yield f"{path}: the key {key!r} counts only in your own settings, in {own}"


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
        disabled={**settings.disabled, **dict.fromkeys(file.disabled, path)},
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


def _isolation_of(file: SettingsFile, path: str, directory: str, home: "str | Path | None") -> IsolationSettings:
    hooks: dict[str, HookIsolation] = {}
    for key, given in file.isolation.items():
        if isinstance(given, str):
            found = HookIsolation(mode=given)
        else:
            values = msgspec.structs.asdict(given)
            found = HookIsolation(**{name: value for name, value in values.items() if value is not UNSET})
        try:
            hooks[key if key == EVERY_HOOK else resolve_path(key, base=directory, home=home)] = found
        except SettingsError as exc:
            raise SettingsError(f"key 'isolation.{key}': {exc}", path) from None
    others = hooks.pop(EVERY_HOOK, HookIsolation())
    return IsolationSettings(hooks, others)


def _of_no_hook(file: SettingsFile, path: str, directory: str, home: "str | Path | None") -> list[str]:
    """Return a sentence for each key of `isolation` that names no hook: the hook that was meant runs elsewhere."""
    places = {key: resolve_path(key, base=directory, home=home) for key in file.isolation if key != EVERY_HOOK}
    return [
        f"{path}: the key {f'isolation.{key}'!r} names no hook, because there is none at {place}; correct or remove it"
        for key, place in places.items()
        if not (os.path.isfile(place) or os.path.isfile(os.path.join(place, "__init__.py")))
    ]


def endpoint_problem(endpoint: str) -> str:
    """Return why a text cannot be the base URL of an OTLP endpoint; empty for one that can."""
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        return f"expected a URL such as http://localhost:4318, found {shown(endpoint)}"
    if match["user"]:
        return "a URL with a password is shown in errors; put it into 'records.otlp.headers'"
    return ""


def resolve_path(path: str, *, base: "str | Path", home: "str | Path | None" = None) -> str:
    """Return `path` as an absolute path: `~` and `~user` expanded, a relative one taken from `base`.

    Raises `SettingsError` when there is no such user, for a NUL, which no path can have, and for a path that is too long.
    """
    if "\0" in path:
        raise SettingsError("a path cannot have a NUL", path)
    if len(path) > LONGEST_PATH:
        raise SettingsError(TOO_LONG, shown(path))
    if home is not None and (path == "~" or path.startswith("~/")):
        path = os.path.join(os.path.abspath(home), path[2:])
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise SettingsError(f"there is no user {expanded.partition('/')[0][1:]!r}", path)
    return os.path.abspath(os.path.join(base, expanded))
