"""Find and read `command_intercept.yaml` and the users' own transformers, and put the two together.

The agent home's file comes first, then the project's; both apply.  Above: cli.  Below: transformers, imports, settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from agent_hooks.errors import HookUsageError, SettingsError, describe, did_you_mean, place_in, traceback_text
from agent_hooks.hooks.imports import import_hook
from agent_hooks.hooks.loader import LoadError
from agent_hooks.settings import agent_home, project_home, read_file
from agent_hooks.transformers import TRANSFORMERS, builtin_transformer
from agent_hooks.transformers.base import ConfiguredTransformer, Transformer

if TYPE_CHECKING:
    from pathlib import Path

    from agent_hooks.transformers.config import Step

INTERCEPT_FILE = "command_intercept.yaml"
TRANSFORMERS_DIRECTORY = "transformers"


class Transformers(Struct, frozen=True):
    """What the files came to.

    `configured` goes to `HookRunner(transformers=…)`; with an error below `tools.X` it blocks every call of X.
    `errors`: all mistakes.  `auto_allow`: tools whose calls need no permission of the client that asks us.
    """

    configured: tuple[ConfiguredTransformer, ...] = ()
    errors: tuple[LoadError, ...] = ()
    auto_allow: frozenset[str] = frozenset()


def load_transformers(
    *, cwd: str | Path, home: str | Path | None = None, files: Iterable[str | Path] | None = None
) -> Transformers:
    """Read the agent home's `command_intercept.yaml`, then the project's, and load the transformers they name.

    A name means a built-in transformer, else a file of the directory `transformers` beside the YAML file, else one of the
    agent home.  `home` stands for `~` (for tests); `files`: these, instead of the two.  Never raises for a mistake in a
    file: those are in `errors`.
    """
    if files is None:
        files = [os.path.join(each, INTERCEPT_FILE) for each in dict.fromkeys((agent_home(home), project_home(cwd)))]
    texts, errors = [], []
    for path in [os.fspath(file) for file in files]:
        try:
            text = read_file(path)
        except SettingsError as exc:
            errors.append(LoadError(path, str(exc).removeprefix(f"{path}: ")))
        else:
            if text is not None:
                texts.append((path, text))
    if not texts:  # YAML is imported only for those who use it
        return Transformers(errors=tuple(errors))
    return _put_together(texts, errors, agent_home(home), os.path.abspath(cwd))


def _put_together(texts: Iterable[tuple[str, bytes]], errors: list[LoadError], agent: str, root: str) -> Transformers:
    from agent_hooks.transformers.config import parse

    files = [parse(text, path) for path, text in texts]
    active = all(file.enabled for file in files)
    off = {name for file in files for name, section in file.tools.items() if section.enabled is False}
    allowed: dict[str, bool] = {}
    steps: list[ConfiguredTransformer] = []
    blocked: dict[LoadError, list[str]] = {error: [] for file in files for error in file.errors}
    for file in files:
        for tool, section in file.tools.items():
            if section.auto_allow is not None:
                allowed[tool] = section.auto_allow and not section.errors
            found = [_configured(tool, step, file.path, agent, root) for step in section.steps]
            for each in [*section.errors, *found]:
                if isinstance(each, LoadError):
                    blocked.setdefault(each, []).append(tool)
                    each = ConfiguredTransformer(tool=tool, name=INTERCEPT_FILE, place=file.path, problem=str(each))
                steps.append(each)
    for error, tools in blocked.items():
        names = ", ".join(tool for tool in tools if active and tool not in off)
        text = f"{error.error}; calls of {names} are blocked until it is mended" if names else error.error
        errors.append(replace(error, error=text))
    return Transformers(
        tuple(step for step in steps if active and step.tool not in off),
        tuple(errors),
        frozenset(tool for tool, allow in allowed.items() if allow and active and tool not in off),
    )


def _configured(tool: str, step: Step, path: str, agent: str, root: str) -> ConfiguredTransformer | LoadError:
    from agent_hooks.transformers.config import check_config

    found = _find(step, path, dict.fromkeys((os.path.dirname(path), agent)))
    if isinstance(found, LoadError):
        return found
    kind = getattr(found, "Config", None)
    if kind is not None and (wrong := check_config(step, kind, path)) is not None:
        return wrong
    config = _with_root(step.config, kind, root)
    return ConfiguredTransformer(
        tool=tool,
        name=step.name,
        transformer=found,
        config=config,
        place=f"{path}:{step.line}",
        settings_file=path,
    )


def _with_root(config: Mapping[str, Any], kind: type | None, root: str) -> dict[str, Any]:
    """Tell a transformer that asks for it which directory is the project's."""
    return {"root": root, **config} if hasattr(kind, "root") else dict(config)


def _find(step: Step, path: str, directories: Iterable[str]) -> Transformer | LoadError:
    if step.name in TRANSFORMERS:
        return builtin_transformer(step.name)
    from pathlib import Path  # here, for few have transformers of their own

    known = set(TRANSFORMERS)
    for directory in directories:
        folder = Path(directory, TRANSFORMERS_DIRECTORY)
        files = {file.stem: file for file in sorted(folder.glob("*.py"))} if folder.is_dir() else {}
        if step.name in files:
            return _load(files[step.name].resolve())
        known |= files.keys()
    text = f"key '{step.key}.name': unknown transformer {step.name!r}{did_you_mean(step.name, known)}"
    return LoadError(path, text, step.line)


def _load(path: Path) -> Transformer | LoadError:
    try:
        module = import_hook(str(path))
        if not callable(getattr(module, "transform", None)):
            text = "there is no transform: a transformer defines `def transform(tool_input, config): ...`"
            raise HookUsageError(text)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # its author hears of it; SystemExit must not end the agent
        return LoadError(str(path), describe(exc), place_in(exc, str(path))[1], traceback_text(exc))
    return cast("Transformer", module)
