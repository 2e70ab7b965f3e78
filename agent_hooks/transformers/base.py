"""The protocol of transformers, and the calls of the transformers of one tool.

Transformers are pure: they depend on nothing but their arguments, so they are called directly, without a deadline.  A
transformer that fails to rewrite an input blocks the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from agent_hooks.errors import AgentHooksError, HookError, Outcome, describe, place_in, shown, traceback_text
from agent_hooks.values.content import ContentBlock, ToolOutput, content_blocks
from agent_hooks.values.frozen import freeze, thaw


class Transformer(Protocol):
    """Any object with this function; most are modules.

    A transformer may also have:

    - `filter_output(tool_input, content, config) -> content`: called after the tool, with its content blocks; returns
      blocks, or a text;
    - `Config`, a msgspec `Struct`: the keys and values of `config`; checked when the configuration is read;
    - `NEEDS_ARGUMENT`, the name of a list argument: then `transform` is called only for tools that have this argument,
      and `filter_output` only for the others.
    """

    def transform(self, tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        """Return the tool's whole new input, or the given one."""


class Mistake(Struct, frozen=True):
    """A mistake in the configuration of transformers: the file, the text, and the line if it is known.

    `traceback`: of the exception, when a transformer's file could not be loaded.
    """

    path: str
    text: str
    line: int | None = None
    traceback: str = ""

    def __str__(self) -> str:
        """Return `path:line: text`."""
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


class ConfiguredTransformer(Struct, frozen=True, kw_only=True):
    """One transformer for one tool.

    `tool`: the tool's exact name; `name`: the transformer's; `config`: its configuration; `settings_file`,
    `settings_line`: the file and the line that configure it, for error texts; `problem`: a mistake in the configuration,
    with which every call of the tool is blocked.
    """

    tool: str
    name: str
    transformer: Transformer | None = None
    config: Mapping[str, Any] = {}
    settings_file: str = ""
    settings_line: int | None = None
    problem: Mistake | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "config", freeze(self.config))

    @property
    def file(self) -> str | None:
        """The file of the transformer's code, `None` when it has none."""
        return getattr(self.transformer, "__file__", None)

    @property
    def place(self) -> str:
        """The file and line that configure it, as text; empty without a file."""
        return f"{self.settings_file}:{self.settings_line}" if self.settings_line else self.settings_file

    def __str__(self) -> str:
        """Return the name, and in parentheses the place of the configuration."""
        return f"{self.name} ({self.place})" if self.place else self.name


class TransformerError(AgentHooksError):
    """A transformer failed.

    `by`: the transformer's name and the place of its configuration, empty when the configuration itself is wrong;
    `misconfigured`: whether it is; `path`, `line`: the code that failed, or else the configuration.
    """

    def __init__(self, step: ConfiguredTransformer, text: str, cause: BaseException | None = None) -> None:
        super().__init__(text)
        self.misconfigured = step.problem is not None
        self.by = "" if self.misconfigured else str(step)
        self.path, self.line = step.file or step.settings_file or step.name, None if step.file else step.settings_line
        if cause is not None and step.file:
            self.line = place_in(cause, step.file)[1]
        self.traceback = traceback_text(cause) if cause is not None else ""

    def failure(self, function: str, event: str, outcome: Outcome) -> HookError:
        """Return the report for error listeners; `function`: the function of the transformer that failed."""
        return HookError(
            hook_path=self.path,
            handler=function,
            event=event,
            error=str(self),
            exception=self.__cause__ or self,
            traceback=self.traceback,
            line=self.line,
            outcome=outcome,
        )


class Transformed(Struct, frozen=True):
    """The input of a tool after its transformers.

    `notes`: one line about each change, for the model; `by`: the names of the transformers that changed it, in order.
    """

    input: dict[str, Any]
    notes: tuple[str, ...] = ()
    by: tuple[str, ...] = ()


def transform(
    steps: Sequence[ConfiguredTransformer], tool_name: str, schema: Mapping[str, Any], input: dict[str, Any]
) -> Transformed:
    """Call the transformers of a tool in order, each with the result of the one before.

    `schema`: the tool's input schema.  Raises `TransformerError`, after which the tool must not run.
    """
    notes, names = [], []
    current = input
    for step in steps:
        if step.problem is not None or step.transformer is None:
            raise TransformerError(step, str(step.problem or "there is no such transformer"))
        if not _transforms(step, schema):
            continue
        try:
            changed: object = freeze(step.transformer.transform(thaw(current), thaw(step.config)))
            same = changed == current
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            # Raised by the transformer.  Error listeners get it and the call is blocked; `SystemExit` must not end the
            # agent.
            raise TransformerError(step, describe(exc), exc) from exc
        if not isinstance(changed, dict):
            _close(changed)
            raise TransformerError(step, f"transform returned {shown(changed)}; it must return the input as a dict")
        if not same:
            notes.append(f"[{step.name} changed this call of {tool_name}: {_changes(current, changed)}]")
            names.append(step.name)
            current = changed
    return Transformed(current, tuple(notes), tuple(names))


def filter_output(
    step: ConfiguredTransformer, tool_name: str, schema: Mapping[str, Any], input: dict[str, Any], output: ToolOutput
) -> tuple[ToolOutput, str]:
    """Let one transformer filter the output of a tool.

    Returns the output, and a line for the model about the change; the line is empty when nothing changed.
    Raises `TransformerError`.
    """
    function = getattr(step.transformer, "filter_output", None)
    if function is None or (_needs(step) is not None and _transforms(step, schema)):
        return output, ""
    try:
        content = function(thaw(input), list(output.content), thaw(step.config))
        if not isinstance(content, str | list | tuple):
            _close(content)
        content = content_blocks(content)
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        # Raised by the transformer.  Error listeners get it, and the pipeline keeps the result.
        raise TransformerError(step, describe(exc), exc) from exc
    if content == output.content:
        return output, ""
    filtered = ToolOutput(content, output.details, output.is_error)
    lines = _lines(output) - _lines(filtered)
    change = f"took {lines} {'line' if lines == 1 else 'lines'} out of" if lines > 0 else "changed"
    return filtered, f"[{step.name} {change} this result of {tool_name}{_settings(step.config)}]"


def with_notes(output: ToolOutput, notes: Sequence[str]) -> ToolOutput:
    """Return the output with one more text block, which has one line for each note."""
    if not notes:
        return output
    blocks: list[ContentBlock] = [*output.content, *content_blocks("\n".join(notes))]
    return ToolOutput(blocks, output.details, output.is_error)


def _needs(step: ConfiguredTransformer) -> str | None:
    return getattr(step.transformer, "NEEDS_ARGUMENT", None)


def _transforms(step: ConfiguredTransformer, schema: Mapping[str, Any]) -> bool:
    """Return whether `transform` applies to a tool with this schema: whether it has the argument that is needed."""
    name = _needs(step)
    if name is None:
        return True
    properties = schema.get("properties")
    argument = properties.get(name) if isinstance(properties, Mapping) else None
    return isinstance(argument, Mapping) and argument.get("type") == "array"


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the changed arguments as `timeout=60, without limit`."""
    changed = [f"{key}={_short(value)}" for key, value in after.items() if key not in before or before[key] != value]
    return ", ".join([*changed, *(f"without {key}" for key in before if key not in after)])


def _settings(config: Mapping[str, Any]) -> str:
    lists = [", ".join(map(str, value)) for value in config.values() if isinstance(value, list) and value]
    return f": {'; '.join(lists)}" if lists else ""


def _short(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else shown(value, 200)


def _lines(output: ToolOutput) -> int:
    return len(output.text.splitlines())


def _close(value: object) -> None:
    """Close a coroutine, so that Python prints no warning beside our error about an `async def transform`."""
    close = getattr(value, "close", None)
    if callable(close):
        close()


def by_tool(steps: Sequence[ConfiguredTransformer]) -> dict[str, tuple[ConfiguredTransformer, ...]]:
    """Return the transformers of each tool, in order."""
    tools: dict[str, list[ConfiguredTransformer]] = {}
    for step in steps:
        tools.setdefault(step.tool, []).append(step)
    return {tool: tuple(each) for tool, each in tools.items()}
