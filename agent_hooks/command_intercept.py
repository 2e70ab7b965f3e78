"""Find and read `command_intercept.yaml` and the users' own transformers, and put the two together.

The agent home's file comes first, then the project's; both apply.  Above: cli.  Below: transformers, imports, settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from agent_hooks.errors import HookUsageError, SettingsError, describe, did_you_mean, line_in, traceback_text
from agent_hooks.imports import import_hook
from agent_hooks.loader import LoadError
from agent_hooks.settings import PROJECT_DIRECTORY, agent_home, read_file
from agent_hooks.transformers import TRANSFORMERS, builtin_transformer
from agent_hooks.transformers.base import ConfiguredTransformer, Transformer

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


def load_transformers(*, cwd: str | Path, home: str | Path | None = None) -> Transformers:
    """Read the agent home's `command_intercept.yaml`, then the project's, and load the transformers they name.

    A name means a built-in transformer, else a file of the directory `transformers` beside the YAML file, else one of the
    agent home.  `home` stands for `~` (for tests).  Never raises for a mistake in a file: those are in `errors`.
    """
    agent, project = agent_home(home), Path(cwd, PROJECT_DIRECTORY).absolute()
    sources = [
        (directory / INTERCEPT_FILE, tuple(dict.fromkeys((directory, agent))))
        for directory in dict.fromkeys((agent, project))
    ]
    texts, errors = [], []
    for path, directories in sources:
        try:
            text = read_file(path)
        except SettingsError as exc:
            errors.append(LoadError(str(path), str(exc).removeprefix(f"{path}: ")))
        else:
            if text is not None:
                texts.append((path, directories, text))
    if not texts:  # YAML is imported only for those who use it
        return Transformers(errors=tuple(errors))
    return _put_together(texts, errors, Path(cwd).absolute())


def _put_together(
    texts: Iterable[tuple[Path, tuple[Path, ...], bytes]], errors: list[LoadError], root: Path
) -> Transformers:
    from agent_hooks.transformers.config import check_config, parse

    files = [(parse(text, str(path)), directories) for path, directories, text in texts]
    errors += [error for file, _ in files for error in file.errors]
    if not all(file.enabled for file, _ in files):
        return Transformers(errors=tuple(errors))
    off = {name for file, _ in files for name, section in file.tools.items() if section.enabled is False}
    allowed: dict[str, bool] = {}
    steps: list[ConfiguredTransformer] = []
    for file, directories in files:
        for tool, section in file.tools.items():
            if section.auto_allow is not None:
                allowed[tool] = section.auto_allow and not section.errors
            problems = list(section.errors)
            for step in section.steps:
                found = _find(step.name, directories, file.path, step.line, f"{step.key}.name")
                if not isinstance(found, LoadError):
                    kind = getattr(found, "Config", None)
                    wrong = check_config(step, kind, file.path) if kind is not None else None
                    if wrong is None:
                        config = _with_root(step.config, kind, root)
                        place = f"{file.path}:{step.line}"
                        steps.append(
                            ConfiguredTransformer(
                                tool=tool, name=step.name, transformer=found, config=config, place=place
                            )
                        )
                        continue
                    found = wrong
                problems.append(found)
                errors.append(found)
            steps += [
                ConfiguredTransformer(tool=tool, name=INTERCEPT_FILE, place=file.path, problem=f"{problem}")
                for problem in problems
            ]
    return Transformers(
        tuple(step for step in steps if step.tool not in off),
        tuple(dict.fromkeys(errors)),
        frozenset(tool for tool, allow in allowed.items() if allow and tool not in off),
    )


def _with_root(config: Mapping[str, Any], kind: type | None, root: Path) -> dict[str, Any]:
    """Tell a transformer that asks for it which directory is the project's."""
    return {"root": str(root), **config} if hasattr(kind, "root") else dict(config)


def _find(name: str, directories: Iterable[Path], path: str, line: int, key: str) -> Transformer | LoadError:
    if name in TRANSFORMERS:
        return builtin_transformer(name)
    known = set(TRANSFORMERS)
    for directory in directories:
        folder = directory / TRANSFORMERS_DIRECTORY
        files = {file.stem: file for file in sorted(folder.glob("*.py"))} if folder.is_dir() else {}
        if name in files:
            return _load(files[name].resolve())
        known |= files.keys()
    return LoadError(path, f"key {key!r}: unknown transformer {name!r}{did_you_mean(name, known)}", line)


def _load(path: Path) -> Transformer | LoadError:
    try:
        module = import_hook(str(path))
        if not callable(getattr(module, "transform", None)):
            text = "there is no transform: a transformer defines `def transform(tool_input, config): ...`"
            raise HookUsageError(text)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # its author hears of it; SystemExit must not end the agent
        return LoadError(str(path), describe(exc), line_in(exc, str(path)), traceback_text(exc))
    return cast("Transformer", module)
