"""Find and read `command_intercept.yaml`, and load the transformers that it names.

The agent home's file comes first, then the project's; both apply.  This is the one module of the room that reads files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.errors import HookUsageError, SettingsError, describe, did_you_mean, place_in, traceback_text
from agent_hooks.hooks.imports import import_hook
from agent_hooks.hooks.loader import LoadError
from agent_hooks.settings import agent_home, project_home, read_file
from agent_hooks.transformers import TRANSFORMERS, builtin_transformer
from agent_hooks.transformers.base import ConfiguredTransformer, Mistake, Transformer

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
    *, cwd: str | Path, home: str | Path | None = None, files: Iterable[str | Path] | None = None
) -> Transformers:
    """Read the agent home's `command_intercept.yaml`, then the project's, and load the transformers they name.

    A name means a built-in transformer, else a file in the directory `transformers` beside the YAML file, else a file in
    that directory of the agent home.  `home` replaces `~` in tests; `files` replaces the two YAML files.  Mistakes in
    files never raise: they are in `errors`.
    """
    if files is None:
        files = [os.path.join(each, INTERCEPT_FILE) for each in dict.fromkeys((agent_home(home), project_home(cwd)))]
    texts, errors = [], []
    for path in [os.fspath(file) for file in files]:
        try:
            text = read_file(path)
        except SettingsError as exc:
            errors.append(LoadError(path, exc.problem))
        else:
            if text is not None:
                texts.append((path, text))
    if not texts:
        # YAML is imported only when there is a file to read.
        return Transformers(errors=tuple(errors))
    return _merged(texts, errors, agent_home(home), os.path.abspath(cwd))


def _merged(texts: Iterable[tuple[str, bytes]], errors: list[LoadError], agent: str, root: str) -> Transformers:
    from agent_hooks.transformers.config import parse

    files = [parse(text, path) for path, text in texts]
    active = all(file.enabled for file in files)
    off = {name for file in files for name, section in file.tools.items() if section.enabled is False}
    allowed: dict[str, bool] = {}
    steps: list[ConfiguredTransformer] = []
    blocked: dict[Mistake, list[str]] = {error: [] for file in files for error in file.errors}
    for file in files:
        for tool, section in file.tools.items():
            if section.auto_allow is not None:
                allowed[tool] = section.auto_allow and not section.errors
            found = [_configured(tool, step, file.path, agent, root) for step in section.steps]
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


def _configured(tool: str, step: TransformerStep, path: str, agent: str, root: str) -> ConfiguredTransformer | Mistake:
    from agent_hooks.transformers.config import check_config

    found = _find(step, path, dict.fromkeys((os.path.dirname(path), agent)))
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


def _find(step: TransformerStep, path: str, directories: Iterable[str]) -> Transformer | Mistake:
    if step.name in TRANSFORMERS:
        return builtin_transformer(step.name)
    # Imported here, because few people have transformers of their own.
    from pathlib import Path

    known = set(TRANSFORMERS)
    for directory in directories:
        folder = Path(directory, TRANSFORMERS_DIRECTORY)
        files = {file.stem: file for file in sorted(folder.glob("*.py"))} if folder.is_dir() else {}
        if step.name in files:
            return _load(files[step.name].resolve())
        known |= files.keys()
    text = f"key '{step.key}.name': unknown transformer {step.name!r}{did_you_mean(step.name, known)}"
    return Mistake(path, text, step.line)


def _load(path: Path) -> Transformer | Mistake:
    loaded = attempt(_import_transformer, str(path))
    if (exc := loaded.exception) is not None:
        return Mistake(str(path), describe(exc), place_in(exc, str(path))[1], traceback_text(exc))
    return cast("Transformer", loaded.value)


def _import_transformer(path: str) -> ModuleType:
    """Import the module of a transformer, whose own code runs here; raises `HookUsageError` for one without transform."""
    module = import_hook(path)
    if not callable(getattr(module, "transform", None)):
        text = "there is no transform: a transformer defines `def transform(tool_input, config): ...`"
        raise HookUsageError(text)
    return module
