"""Find and read `command_intercept.yaml`, and load the transformers that it names.

The agent home's file comes first, then the project's; both apply.  This is the one module of the room that reads files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.dispatch.handlers import is_async, refuses_two
from agent_hooks.errors import HookUsageError, SettingsError, describe, did_you_mean, place_in, traceback_text
from agent_hooks.hooks.imports import import_hook
from agent_hooks.hooks.loaded import LoadError
from agent_hooks.settings import agent_home, source_trees
from agent_hooks.settings_file import read_file
from agent_hooks.transformers import TRANSFORMERS, builtin_transformer
from agent_hooks.transformers.base import ANY_TOOL, ConfiguredTransformer, Mistake, Transformer
from agent_hooks.trees import SourceTree

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from agent_hooks.transformers.config import InterceptFile, ToolSection, TransformerStep

INTERCEPT_FILE = "command_intercept.yaml"
TRANSFORMERS_DIRECTORY = "transformers"
_FORM = "`def transform(tool_input, config): ...`"


class Transformers(Struct, frozen=True):
    """The transformers that the files configure.

    `configured`: for `HookRunner(transformers=…)`; with an error below `tools.X`, it blocks every call of X, and with any
    other error every call; `errors`: all mistakes; `auto_allow`: the tools whose calls need no permission from the
    client of a bridge.
    """

    configured: tuple[ConfiguredTransformer, ...] = ()
    errors: tuple[LoadError, ...] = ()
    auto_allow: frozenset[str] = frozenset()


def load_transformers(
    *,
    cwd: str | Path,
    home: str | Path | None = None,
    files: Iterable[str | Path] | None = None,
    trees: Iterable[SourceTree] | None = None,
    our_name: Callable[[str], str] | None = None,
) -> Transformers:
    """Read the agent home's `command_intercept.yaml`, then the project's, and load the transformers they name.

    A name means a built-in transformer, else a file in the directory `transformers` beside the YAML file, else a file in
    that directory of the agent home.  `home` replaces `~` in tests; `files` replaces the two YAML files; `trees`: the
    source trees that count, instead of these two; `our_name`: returns our name of a tool that a file names as another
    agent does, so that both names count.  Mistakes in files never raise: they are in `errors`.
    """
    found = tuple(source_trees(cwd, home) if trees is None else trees)
    named = [(os.path.join(tree.directory, INTERCEPT_FILE), tree) for tree in found]
    if files is not None:
        named = [(os.fspath(file), SourceTree(os.path.dirname(file))) for file in files]
    texts, unread = [], []
    for path, tree in named:
        try:
            text = read_file(path, tree)
        except SettingsError as exc:
            unread.append(Mistake(path, exc.problem))
        else:
            if text is not None:
                texts.append((path, text, tree))
    if not texts:
        # YAML is imported only when there is a file to read.
        return _Merging((), unread, our_name).result()
    from agent_hooks.transformers.config import parse

    agent, root = SourceTree(agent_home(home)), os.path.abspath(cwd)
    merging = _Merging([parse(text, path) for path, text, _ in texts], unread, our_name)
    for file, (_, _, tree) in zip(merging.files, texts, strict=True):
        for name, section in file.tools.items():
            merging.add(name, section, file.path, (tree, agent), root)
    return merging.result()


class _Merging:
    """Puts the sections of all files together."""

    def __init__(
        self, files: Sequence[InterceptFile], unread: Iterable[Mistake], our_name: Callable[[str], str] | None
    ) -> None:
        self.files = files
        self._our_name = our_name
        self._active = all(file.enabled for file in files)
        sections = [pair for file in files for pair in file.tools.items()]
        self._off = {tool for name, section in sections if section.enabled is False for tool in self._both(name)}
        self._allowed: dict[str, bool] = {}
        self._steps: list[ConfiguredTransformer] = []
        # The tools that each mistake blocks.
        self._blocked: dict[Mistake, list[str]] = {}
        for mistake in [*unread, *(error for file in files for error in file.errors)]:
            self._block(ANY_TOOL, mistake, mistake.path)

    def _both(self, name: str) -> tuple[str, ...]:
        """Return the name of a tool, and ours if it has another."""
        return tuple(dict.fromkeys((name, self._our_name(name)))) if self._our_name is not None else (name,)

    def _block(self, tool: str, mistake: Mistake, file: str) -> None:
        self._blocked.setdefault(mistake, []).append(tool)
        self._steps.append(ConfiguredTransformer(tool=tool, name=INTERCEPT_FILE, settings_file=file, problem=mistake))

    def add(self, name: str, section: ToolSection, file: str, trees: Sequence[SourceTree], root: str) -> None:
        """Add the section of a tool in a file; `trees`: those of the file and of the agent home."""
        found = [_configured(name, step, file, trees, root) for step in section.steps]
        for tool in self._both(name):
            if section.auto_allow is not None:
                self._allowed[tool] = section.auto_allow and not section.errors
            for each in [*section.errors, *found]:
                if isinstance(each, Mistake):
                    self._block(tool, each, file)
                else:
                    self._steps.append(replace(each, tool=tool))

    def _counts(self, tool: str) -> bool:
        return self._active and tool not in self._off

    def _error(self, mistake: Mistake, tools: Iterable[str]) -> LoadError:
        names = [tool for tool in tools if self._counts(tool)]
        blocks = "every call is" if ANY_TOOL in names else f"calls of {', '.join(names)} are"
        text = f"{mistake.text}; {blocks} blocked until it is mended" if names else mistake.text
        return LoadError(mistake.path, text, mistake.line, mistake.traceback)

    def result(self) -> Transformers:
        """Return the steps, permissions and mistakes of all files, without those of switched off tools."""
        return Transformers(
            tuple(step for step in self._steps if self._counts(step.tool)),
            tuple(self._error(mistake, tools) for mistake, tools in self._blocked.items()),
            frozenset(tool for tool, allow in self._allowed.items() if allow and self._counts(tool)),
        )


def _configured(
    tool: str, step: TransformerStep, path: str, trees: Sequence[SourceTree], root: str
) -> ConfiguredTransformer | Mistake:
    from agent_hooks.transformers.config import check_config

    found = _find(step, path, trees)
    if isinstance(found, Mistake):
        return found
    kind = getattr(found, "Config", None)
    if kind is not None and (wrong := check_config(step, kind, path)) is not None:
        return wrong
    config = _with_root(step.config, kind, root)
    return ConfiguredTransformer(
        tool=tool, name=step.name, transformer=found, config=config, settings_file=path, settings_line=step.line
    )


def _with_root(config: Mapping[str, Any], kind: type | None, root: str) -> dict[str, Any]:
    """Return the configuration, with the project's directory as `root` if `kind` has such a field."""
    return {"root": root, **config} if hasattr(kind, "root") else dict(config)


def _find(step: TransformerStep, path: str, trees: Iterable[SourceTree]) -> Transformer | Mistake:
    if step.name in TRANSFORMERS:
        return builtin_transformer(step.name)
    known = set(TRANSFORMERS)
    for tree in trees:
        files = _transformer_files(tree)
        if step.name in files:
            return _load(files[step.name], tree)
        known |= files.keys()
    text = f"key '{step.key}.name': unknown transformer {step.name!r}{did_you_mean(step.name, known)}"
    return Mistake(path, text, step.line)


def _transformer_files(tree: SourceTree) -> dict[str, str]:
    """Return the paths of a tree's transformers by their names."""
    folder = os.path.join(tree.directory, TRANSFORMERS_DIRECTORY)
    try:
        names = tree.names(folder)
    except OSError:
        return {}
    paths = {name.removesuffix(".py"): os.path.join(folder, name) for name in names if name.endswith(".py")}
    # The set of an approved project has no directories.
    return {name: path for name, path in paths.items() if tree.files is None or path in tree.files}


def _load(path: str, tree: SourceTree) -> Transformer | Mistake:
    files = None
    if tree.files is None:
        path = os.path.realpath(path)
    else:
        files = {name: file.data for each, file in tree.files.items() for name in (each, file.place)}
        path = tree.files[path].place
    loaded = attempt(_import_transformer, path, files)
    if (exc := loaded.exception) is not None:
        return Mistake(path, describe(exc), place_in(exc, path)[1], traceback_text(exc))
    return cast("Transformer", loaded.value)


def _import_transformer(path: str, files: Mapping[str, bytes] | None) -> ModuleType:
    """Import the module of a transformer, whose own code runs here; raises `HookUsageError` for one without transform."""
    module = import_hook(path, files)
    transform = getattr(module, "transform", None)
    if transform is None or isinstance(transform, type) or not callable(transform):
        raise HookUsageError(f"there is no transform{_class_of(module)}: a transformer defines {_FORM}")
    if is_async(transform):
        raise HookUsageError(f"transform is an `async def`: a transformer waits for nothing, so write a plain {_FORM}")
    if problem := refuses_two(transform):
        raise HookUsageError(f"transform cannot be called with (tool_input, config): {problem}; write {_FORM}")
    return module


def _class_of(module: ModuleType) -> str:
    """Return the class of a module that has a `transform`, as a part of a sentence; empty without one."""
    for name, value in vars(module).items():
        if isinstance(value, type) and (name == "transform" or callable(getattr(value, "transform", None))):
            return f", only the class {name}; take its method out of the class, without `self`"
    return ""


def check_transformer(path: str) -> LoadError | None:
    """Load the file of a transformer, and return its mistake if it has one."""
    found = _load(path, SourceTree(os.path.dirname(path)))
    return LoadError(found.path, found.text, found.line, found.traceback) if isinstance(found, Mistake) else None
