"""Find and read `command_intercept.yaml`, and load the transformers that it names.

The agent home's file comes first, then the project's; both apply.  This is the one module of the room that reads files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.errors import HookUsageError, SettingsError, describe, did_you_mean, place_in, traceback_text
from agent_hooks.hooks.imports import import_hook
from agent_hooks.hooks.loader import LoadError
from agent_hooks.settings import agent_home, read_file, source_trees
from agent_hooks.transformers import TRANSFORMERS, builtin_transformer
from agent_hooks.transformers.base import ConfiguredTransformer, Mistake, Transformer
from agent_hooks.trees import SourceTree

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from agent_hooks.transformers.config import TransformerStep

INTERCEPT_FILE = "command_intercept.yaml"
TRANSFORMERS_DIRECTORY = "transformers"


class Transformers(Struct, frozen=True):
    """The transformers that the files configure.

    `configured`: for `HookRunner(transformers=…)`; with an error below `tools.X`, it blocks every call of X; `errors`:
    all mistakes; `auto_allow`: the tools whose calls need no permission from the client of a bridge.
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
) -> Transformers:
    """Read the agent home's `command_intercept.yaml`, then the project's, and load the transformers they name.

    A name means a built-in transformer, else a file in the directory `transformers` beside the YAML file, else a file in
    that directory of the agent home.  `home` replaces `~` in tests; `files` replaces the two YAML files; `trees`: the
    source trees that count, instead of these two.  Mistakes in files never raise: they are in `errors`.
    """
    found = tuple(source_trees(cwd, home) if trees is None else trees)
    named = [(os.path.join(tree.directory, INTERCEPT_FILE), tree) for tree in found]
    if files is not None:
        named = [(os.fspath(file), SourceTree(os.path.dirname(file))) for file in files]
    texts, errors = [], []
    for path, tree in named:
        try:
            text = read_file(path, tree)
        except SettingsError as exc:
            errors.append(LoadError(path, exc.problem))
        else:
            if text is not None:
                texts.append((path, text, tree))
    if not texts:
        # YAML is imported only when there is a file to read.
        return Transformers(errors=tuple(errors))
    return _merged(texts, errors, SourceTree(agent_home(home)), os.path.abspath(cwd))


def _merged(
    texts: Iterable[tuple[str, bytes, SourceTree]], errors: list[LoadError], agent: SourceTree, root: str
) -> Transformers:
    from agent_hooks.transformers.config import parse

    parsed = [(parse(text, path), tree) for path, text, tree in texts]
    files = [file for file, _ in parsed]
    active = all(file.enabled for file in files)
    off = {name for file in files for name, section in file.tools.items() if section.enabled is False}
    allowed: dict[str, bool] = {}
    steps: list[ConfiguredTransformer] = []
    blocked: dict[Mistake, list[str]] = {error: [] for file in files for error in file.errors}
    for file, tree in parsed:
        for tool, section in file.tools.items():
            if section.auto_allow is not None:
                allowed[tool] = section.auto_allow and not section.errors
            found = [_configured(tool, step, file.path, (tree, agent), root) for step in section.steps]
            for each in [*section.errors, *found]:
                if isinstance(each, Mistake):
                    blocked.setdefault(each, []).append(tool)
                    each = ConfiguredTransformer(tool=tool, name=INTERCEPT_FILE, settings_file=file.path, problem=each)
                steps.append(each)
    for mistake, tools in blocked.items():
        names = ", ".join(tool for tool in tools if active and tool not in off)
        text = f"{mistake.text}; calls of {names} are blocked until it is mended" if names else mistake.text
        errors.append(LoadError(mistake.path, text, mistake.line, mistake.traceback))
    return Transformers(
        tuple(step for step in steps if active and step.tool not in off),
        tuple(errors),
        frozenset(tool for tool, allow in allowed.items() if allow and active and tool not in off),
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
    if not callable(getattr(module, "transform", None)):
        text = "there is no transform: a transformer defines `def transform(tool_input, config): ...`"
        raise HookUsageError(text)
    return module
