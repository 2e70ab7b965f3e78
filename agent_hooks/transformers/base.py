"""The protocol of transformers, and the calls of the transformers of one tool.

Transformers are pure: they depend on nothing but their arguments, so they are called directly, without a deadline.  A
transformer that fails to rewrite an input blocks the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from agent_hooks.concurrency.foreign import attempt
from agent_hooks.errors import AgentHooksError, HookError, Outcome, at, count, describe, hook_error, place_in, shown
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
        return f"{at(self.path, self.line)}: {self.text}"


ANY_TOOL = ""
"""In the place of a tool's name: every tool."""


class ConfiguredTransformer(Struct, frozen=True, kw_only=True):
    """One transformer for one tool.

    `tool`: the tool's exact name, or `ANY_TOOL`; `name`: the transformer's; `config`: its configuration; `settings_file`,
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

    def __str__(self) -> str:
        """Return the name, and in parentheses the file and line of the configuration, for error texts."""
        place = at(self.settings_file, self.settings_line)
        return f"{self.name} ({place})" if place else self.name


class TransformerError(AgentHooksError):
    """A transformer failed.

    `by`: the transformer's name and the place of its configuration, empty when the configuration itself is wrong;
    `misconfigured`: whether it is.
    """

    def __init__(self, step: ConfiguredTransformer, text: str) -> None:
        super().__init__(text)
        self.misconfigured = step.problem is not None
        self.by = "" if self.misconfigured else str(step)
        self._step = step

    def failure(self, function: str, event: str, outcome: Outcome) -> HookError:
        """Return the report for error listeners; `function`: the function of the transformer that failed.

        Its place is in the code that failed, or else in the configuration.
        """
        step, exc = self._step, self.__cause__ or self
        line = place_in(exc, step.file)[1] if step.file else step.settings_line
        return hook_error(
            exc,
            hook=step.file or step.settings_file or step.name,
            handler=function,
            event=event,
            outcome=outcome,
            error=str(self),
            place=(None, line),
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
        rewriting = attempt(_rewritten, step.transformer, current, step.config)
        if (exc := rewriting.exception) is not None:
            raise TransformerError(step, describe(exc)) from exc
        changed, same = rewriting.value
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
    filtering = attempt(_filtered, function, input, output, step.config)
    if (exc := filtering.exception) is not None:
        raise TransformerError(step, describe(exc)) from exc
    content = filtering.value
    if content == output.content:
        return output, ""
    filtered = ToolOutput(content, output.details, output.is_error)
    lines = _lines(output) - _lines(filtered)
    change = f"took {count(lines, 'line')} out of" if lines > 0 else "changed"
    return filtered, f"[{step.name} {change} this result of {tool_name}{_settings(step.config)}]"


def _rewritten(transformer: Transformer, input: dict[str, Any], config: Mapping[str, Any]) -> tuple[object, bool]:
    """Return the value of `transform`, and whether it is the input."""
    changed: object = freeze(transformer.transform(thaw(input), thaw(config)))
    return changed, changed == input


def _filtered(
    function: Callable[..., Any], input: dict[str, Any], output: ToolOutput, config: Mapping[str, Any]
) -> Sequence[ContentBlock]:
    """Return the content that `filter_output` leaves."""
    content = function(thaw(input), list(output.content), thaw(config))
    if not isinstance(content, str | list | tuple):
        _close(content)
    return content_blocks(content)


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
    """Return the transformers of each tool, in order; `ANY_TOOL` has those of every tool."""
    tools: dict[str, list[ConfiguredTransformer]] = {}
    for step in steps:
        tools.setdefault(step.tool, []).append(step)
    return {tool: tuple(each) for tool, each in tools.items()}
