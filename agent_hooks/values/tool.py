"""The protocol of tools, and typed views of the built-in tools' inputs and results.

A handler narrows an event with `is_bash_tool_result(event)` and gets typed `input` and `details`.  The author of a custom
tool writes a helper of the same form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from agent_hooks.errors import text_of
from agent_hooks.values.content import ToolOutput, Value
from agent_hooks.values.events import ToolCall, ToolResult
from agent_hooks.values.frozen import freeze
from agent_hooks.values.near import add_near_misses
from agent_hooks.values.wire import to_json

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from typing_extensions import TypeIs

__all__ = ["OnUpdate", "Tool", "ToolOutput"]

OnUpdate = Callable[[ToolOutput], None]
NO_SCHEMA: Mapping[str, Any] = freeze({})
"""The schema for a tool without a known one, for example of another agent: every input is valid."""


@runtime_checkable
class Tool(Protocol):
    """A tool an agent can call: a name, a description for the model, a JSON Schema of its input, and `execute`.

    `execute` returns a `ToolOutput`; an exception becomes an error result.  It may call `on_update` with partial outputs,
    for progress.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> Mapping[str, Any]: ...

    async def execute(
        self, tool_call_id: str, input: dict[str, Any], *, on_update: OnUpdate | None = None
    ) -> ToolOutput: ...


# The argument of each built-in tool that names its task.
MAIN_ARGUMENT = {
    "bash": "command",
    "read": "path",
    "write": "path",
    "edit": "path",
    "ls": "path",
    "find": "pattern",
    "grep": "pattern",
}
_LINE_WIDTH = 100  # characters


def call_line(name: str, arguments: object) -> str:
    """Return a tool call as a person would write it, in one short line: `bash ls -la`, `bash sleep 5 {"timeout":2}`."""
    parts = [name]
    # The first question takes a tenth of the time of the second one.
    if isinstance(arguments, dict) or isinstance(arguments, Mapping):  # noqa: SIM101
        key = MAIN_ARGUMENT.get(name, "")
        main = arguments.get(key)
        rest = arguments
        if isinstance(main, str):
            parts.append(main)
            rest = {each: value for each, value in arguments.items() if each != key} if len(arguments) > 1 else {}
        if rest:
            parts.append(to_json(dict(rest)).decode())
    else:
        parts.append(text_of(arguments))
    line = " ".join(" ".join(parts).split())
    return line if len(line) <= _LINE_WIDTH else f"{line[: _LINE_WIDTH - 1]}…"


# ---- details


class Truncation(Value, frozen=True, kw_only=True):
    """How output was cut; bytes are those of UTF-8.

    `truncated`: whether it was; `truncated_by`: the limit that cut it, `lines` or `bytes`; `total_lines`, `total_bytes`:
    its length before; `output_lines`, `output_bytes`: the length that is left.
    """

    truncated: bool
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int


class ToolDetails(Value, frozen=True, kw_only=True):
    """The details of each tool that cuts its output.

    `truncation`, `full_output_path` (the file with the full text): only when output was cut.
    """

    truncation: Truncation | None = None
    full_output_path: str | None = None


add_near_misses(Truncation, "event.details.truncation")
add_near_misses(ToolDetails, "event.details")


class BashToolDetails(ToolDetails, frozen=True, kw_only=True):
    """Details of `bash`."""


class ReadToolDetails(ToolDetails, frozen=True, kw_only=True):
    """Details of `read`."""


class LsToolDetails(ToolDetails, frozen=True, kw_only=True):
    """Details of `ls`."""


class FindToolDetails(ToolDetails, frozen=True, kw_only=True):
    """Details of `find`."""


class GrepToolDetails(ToolDetails, frozen=True, kw_only=True):
    """Details of `grep`."""


# ---- inputs, in the spelling of the schema


if TYPE_CHECKING:

    class BashInput(TypedDict):
        """`timeout` in seconds."""

        command: str
        timeout: NotRequired[float]

    class ReadInput(TypedDict):
        """`offset`: first line, from 1; `limit`: number of lines."""

        path: str
        offset: NotRequired[int]
        limit: NotRequired[int]

    class WriteInput(TypedDict):
        """`content`: the whole new text."""

        path: str
        content: str

    class EditInput(TypedDict):
        """`oldText` must occur exactly once."""

        path: str
        oldText: str
        newText: str

    class LsInput(TypedDict):
        """`limit`: number of entries."""

        path: NotRequired[str]
        limit: NotRequired[int]

    class FindInput(TypedDict):
        """`pattern`: a glob; `exclude`: globs to leave out; `limit`: number of results."""

        pattern: str
        path: NotRequired[str]
        exclude: NotRequired[list[str]]
        limit: NotRequired[int]

    class GrepInput(TypedDict):
        """`pattern`: a regular expression, or text if `literal`; `exclude`: globs; `context`: lines; `limit`: matches."""

        pattern: str
        path: NotRequired[str]
        glob: NotRequired[str]
        exclude: NotRequired[list[str]]
        ignoreCase: NotRequired[bool]
        literal: NotRequired[bool]
        context: NotRequired[int]
        limit: NotRequired[int]


# ---- typed views and the helpers that narrow to them

if TYPE_CHECKING:

    class BashToolCall(ToolCall, frozen=True):
        input: BashInput

    class ReadToolCall(ToolCall, frozen=True):
        input: ReadInput

    class WriteToolCall(ToolCall, frozen=True):
        input: WriteInput

    class EditToolCall(ToolCall, frozen=True):
        input: EditInput

    class LsToolCall(ToolCall, frozen=True):
        input: LsInput

    class FindToolCall(ToolCall, frozen=True):
        input: FindInput

    class GrepToolCall(ToolCall, frozen=True):
        input: GrepInput

    class BashToolResult(ToolResult, frozen=True):
        input: BashInput
        details: BashToolDetails | None = None

    class ReadToolResult(ToolResult, frozen=True):
        input: ReadInput
        details: ReadToolDetails | None = None

    class WriteToolResult(ToolResult, frozen=True):
        input: WriteInput
        details: None = None

    class EditToolResult(ToolResult, frozen=True):
        input: EditInput
        details: None = None

    class LsToolResult(ToolResult, frozen=True):
        input: LsInput
        details: LsToolDetails | None = None

    class FindToolResult(ToolResult, frozen=True):
        input: FindInput
        details: FindToolDetails | None = None

    class GrepToolResult(ToolResult, frozen=True):
        input: GrepInput
        details: GrepToolDetails | None = None


def is_bash_tool_call(event: ToolCall) -> TypeIs[BashToolCall]:
    """Return whether `event` is a call of the built-in `bash`; then `event.input` is typed."""
    return event.tool_name == "bash"


def is_read_tool_call(event: ToolCall) -> TypeIs[ReadToolCall]:
    """Return whether `event` is a call of the built-in `read`; then `event.input` is typed."""
    return event.tool_name == "read"


def is_write_tool_call(event: ToolCall) -> TypeIs[WriteToolCall]:
    """Return whether `event` is a call of the built-in `write`; then `event.input` is typed."""
    return event.tool_name == "write"


def is_edit_tool_call(event: ToolCall) -> TypeIs[EditToolCall]:
    """Return whether `event` is a call of the built-in `edit`; then `event.input` is typed."""
    return event.tool_name == "edit"


def is_ls_tool_call(event: ToolCall) -> TypeIs[LsToolCall]:
    """Return whether `event` is a call of the built-in `ls`; then `event.input` is typed."""
    return event.tool_name == "ls"


def is_find_tool_call(event: ToolCall) -> TypeIs[FindToolCall]:
    """Return whether `event` is a call of the built-in `find`; then `event.input` is typed."""
    return event.tool_name == "find"


def is_grep_tool_call(event: ToolCall) -> TypeIs[GrepToolCall]:
    """Return whether `event` is a call of the built-in `grep`; then `event.input` is typed."""
    return event.tool_name == "grep"


def _is_result(event: ToolResult, name: str, details: type[ToolDetails] | None) -> bool:
    if event.tool_name != name:
        return False
    return event.details is None or (details is not None and isinstance(event.details, details))


def is_bash_tool_result(event: ToolResult) -> TypeIs[BashToolResult]:
    """Return whether `event` is a result of the built-in `bash`; then `event.input` and `event.details` are typed."""
    return _is_result(event, "bash", BashToolDetails)


def is_read_tool_result(event: ToolResult) -> TypeIs[ReadToolResult]:
    """Return whether `event` is a result of the built-in `read`; then `event.input` and `event.details` are typed."""
    return _is_result(event, "read", ReadToolDetails)


def is_write_tool_result(event: ToolResult) -> TypeIs[WriteToolResult]:
    """Return whether `event` is a result of the built-in `write`; then `event.input` is typed."""
    return _is_result(event, "write", None)


def is_edit_tool_result(event: ToolResult) -> TypeIs[EditToolResult]:
    """Return whether `event` is a result of the built-in `edit`; then `event.input` is typed."""
    return _is_result(event, "edit", None)


def is_ls_tool_result(event: ToolResult) -> TypeIs[LsToolResult]:
    """Return whether `event` is a result of the built-in `ls`; then `event.input` and `event.details` are typed."""
    return _is_result(event, "ls", LsToolDetails)


def is_find_tool_result(event: ToolResult) -> TypeIs[FindToolResult]:
    """Return whether `event` is a result of the built-in `find`; then `event.input` and `event.details` are typed."""
    return _is_result(event, "find", FindToolDetails)


def is_grep_tool_result(event: ToolResult) -> TypeIs[GrepToolResult]:
    """Return whether `event` is a result of the built-in `grep`; then `event.input` and `event.details` are typed."""
    return _is_result(event, "grep", GrepToolDetails)
