"""What a transformer is, and how those of one tool are called.

Transformers are pure: they look at their arguments and at nothing else, so they are called plainly, without a deadline.
One that fails blocks the call.  Above: the transformers, config, judging, results.  Below: content, errors, frozen.
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
    """Anything with this function; a module is the usual form.

    A transformer may also have:

    - `filter_output(tool_input, content, config) -> content`: called after the tool, with its content blocks; returns
      blocks, or a text;
    - `Config`, a msgspec `Struct`: what `config` may hold; checked when the configuration is read;
    - `NEEDS_ARGUMENT`, the name of a list argument: then `transform` is called only for tools that have such an argument,
      and `filter_output` only for the others.
    """

    def transform(self, tool_input: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        """Return the tool's new input, the whole of it, or the same; must not change its arguments."""


class ConfiguredTransformer(Struct, frozen=True, kw_only=True):
    """One transformer for one tool.

    `tool`: the tool's exact name; `name`: the transformer's; `config`: what it is given; `place`: where it
    was configured, for error texts; `settings_file`: the file of that place.  With `problem`, the text of a mistake in
    the configuration, every call of the tool is blocked.
    """

    tool: str
    name: str
    transformer: Transformer | None = None
    config: Mapping[str, Any] = {}
    place: str = ""
    settings_file: str = ""
    problem: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "config", freeze(self.config))

    @property
    def file(self) -> str | None:
        """The file of the transformer's code."""
        return getattr(self.transformer, "__file__", None)


class TransformerError(AgentHooksError):
    """A transformer failed; the text says how, `by` which and where it was configured."""

    def __init__(self, by: ConfiguredTransformer, text: str, cause: BaseException | None = None) -> None:
        super().__init__(text)
        self.by = "" if by.problem else f"{by.name} ({by.place})" if by.place else by.name
        self.path = by.file or by.place or by.name
        self.line = place_in(cause, by.file)[1] if cause is not None and by.file else None
        self.traceback = traceback_text(cause) if cause is not None else ""

    def failure(self, function: str, event: str, outcome: Outcome) -> HookError:
        """Return the report of it; `function` is the transformer's that failed."""
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
    """What the transformers of a tool made of an input: `notes` say what they changed, `by` names who did."""

    input: dict[str, Any]
    notes: tuple[str, ...] = ()
    by: str = ""


def transform(
    steps: Sequence[ConfiguredTransformer], tool_name: str, schema: Mapping[str, Any], input: dict[str, Any]
) -> Transformed:
    """Call the transformers of a tool in order, each with what the one before left.

    `schema`: the tool's input schema.  Raises `TransformerError`; then the tool must not run.
    """
    notes, names = [], []
    current = input
    for step in steps:
        if step.problem is not None or step.transformer is None:
            raise TransformerError(step, step.problem or "there is no such transformer")
        if not _transforms(step, schema):
            continue
        try:
            changed: object = freeze(step.transformer.transform(thaw(current), thaw(step.config)))
            same = changed == current
        except KeyboardInterrupt:
            raise
        except (
            BaseException
        ) as exc:  # its author hears of it, and the call is blocked; SystemExit must not end the agent
            raise TransformerError(step, describe(exc), exc) from exc
        if not isinstance(changed, dict):
            _close(changed)
            raise TransformerError(step, f"transform returned {shown(changed)}; it must return the input as a dict")
        if not same:
            notes.append(f"[{step.name} changed this call of {tool_name}: {_changes(current, changed)}]")
            names.append(step.name)
            current = changed
    return Transformed(current, tuple(notes), ", ".join(names))


def filter_output(
    step: ConfiguredTransformer, tool_name: str, schema: Mapping[str, Any], input: dict[str, Any], output: ToolOutput
) -> tuple[ToolOutput, str]:
    """Return the output as one transformer leaves it, and a line that says what it took out, if anything.

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
    except BaseException as exc:  # as above; the pipeline keeps the result
        raise TransformerError(step, describe(exc), exc) from exc
    if content == output.content:
        return output, ""
    filtered = ToolOutput(content, output.details, output.is_error)
    lines = _lines(output) - _lines(filtered)
    did = f"took {lines} {'line' if lines == 1 else 'lines'} out of" if lines > 0 else "changed"
    return filtered, f"[{step.name} {did} this result of {tool_name}{_settings(step.config)}]"


def with_notes(output: ToolOutput, notes: Sequence[str]) -> ToolOutput:
    """Return the output with one more text block, a line for each note."""
    if not notes:
        return output
    blocks: list[ContentBlock] = [*output.content, *content_blocks("\n".join(notes))]
    return ToolOutput(blocks, output.details, output.is_error)


def _needs(step: ConfiguredTransformer) -> str | None:
    return getattr(step.transformer, "NEEDS_ARGUMENT", None)


def _transforms(step: ConfiguredTransformer, schema: Mapping[str, Any]) -> bool:
    """Tell whether a transformer can do its work on the input of a tool with this schema."""
    name = _needs(step)
    if name is None:
        return True
    properties = schema.get("properties")
    argument = properties.get(name) if isinstance(properties, Mapping) else None
    return isinstance(argument, Mapping) and argument.get("type") == "array"


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return `timeout=60, without limit`: what a person needs to see of a changed input."""
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
    """Close a coroutine, so that only our own text speaks of an `async def transform`."""
    close = getattr(value, "close", None)
    if callable(close):
        close()


def by_tool(steps: Sequence[ConfiguredTransformer]) -> dict[str, tuple[ConfiguredTransformer, ...]]:
    """Return the transformers of each tool, in order."""
    tools: dict[str, list[ConfiguredTransformer]] = {}
    for step in steps:
        tools.setdefault(step.tool, []).append(step)
    return {tool: tuple(each) for tool, each in tools.items()}
