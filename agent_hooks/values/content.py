"""The parts of a conversation: content blocks, messages, and the entries of a session file.

Each shape is one frozen struct, and `msgspec` gives it a JSON form (camelCase) and a JSON Schema.  On the wire, fields
without a value are left out.  A field with a `default_factory` is always written, because `omit_defaults` skips plain
defaults only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from agent_hooks.errors import shown
from agent_hooks.values.frozen import Blocks, FrozenList, freeze
from agent_hooks.values.near import add_near_misses, refuse_access_by_key
from agent_hooks.values.spellings import spelled


class Value(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of all values on the wire: frozen, camelCase in JSON, without the fields that have no value."""


def as_tuples(value: Struct, *names: str) -> None:
    """Turn lists in the named fields of a frozen struct into tuples."""
    for name in names:
        if isinstance(given := getattr(value, name), list):
            force_setattr(value, name, tuple(given))


# ---- blocks


class TextContent(Value, frozen=True, tag_field="type", tag="text"):
    """A piece of text."""

    type: ClassVar[Literal["text"]] = "text"

    text: str


class ImageContent(Value, frozen=True, tag_field="type", tag="image"):
    """An image: `data` is base64 text, `mime_type` for example `image/png`."""

    type: ClassVar[Literal["image"]] = "image"

    data: str
    mime_type: str


class ThinkingContent(Value, frozen=True, tag_field="type", tag="thinking"):
    """The thoughts of a model before its answer; assistant messages only.

    `thinking`: their text; `signature`: an opaque text, with which the model gets its thoughts back unchanged.
    """

    type: ClassVar[Literal["thinking"]] = "thinking"

    thinking: str
    signature: str | None = None


class ToolCallContent(Value, frozen=True, tag_field="type", tag="toolCall"):
    """A tool call the model asks for; assistant messages only.

    `id`: of the call; `name`: the tool's; `arguments`: the decoded JSON object of the model; `invalid`: the model's text
    when it is no JSON object; `signature`: as in `ThinkingContent`.
    """

    type: ClassVar[Literal["toolCall"]] = "toolCall"

    id: str
    name: str
    arguments: Mapping[str, Any]
    invalid: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "arguments", freeze(self.arguments))

    @property
    def input(self) -> Mapping[str, Any]:
        """The same as `arguments`."""
        return self.arguments


ContentBlock = TextContent | ImageContent
AssistantBlock = TextContent | ThinkingContent | ToolCallContent

_blocks = (TextContent, ImageContent)


def content_blocks(content: object) -> Sequence[ContentBlock]:
    """Return `content` as a read-only list of blocks.

    Accepts a plain `str` (one text block), blocks, and blocks in their wire form, in any sequence.  Raises `TypeError`
    for anything else.
    """
    if type(content) is FrozenList:
        for block in content:
            if not isinstance(block, _blocks):
                break
        else:
            return content
    if isinstance(content, str):
        return FrozenList([TextContent(content)])
    if not isinstance(content, list | tuple):
        raise TypeError(f"content must be a str or a list of blocks, not {type(content).__name__}")
    return FrozenList([block if isinstance(block, _blocks) else _block(block) for block in content])


def _block(value: object) -> ContentBlock:
    try:
        return msgspec.convert(value, ContentBlock)  # type: ignore[no-any-return]  # convert takes a union at run time
    except msgspec.ValidationError as exc:
        raise TypeError(f"not a content block: {exc}; a text block is TextContent('…')") from None


def text_of_content(content: Sequence[object]) -> str:
    """Return the text blocks of `content`, joined by newlines; other blocks are left out."""
    return "\n".join(block.text for block in content if isinstance(block, TextContent))


class ToolOutput(Value, frozen=True):
    """The result of a tool: `content` for the model, `details` for screens and hooks, `is_error` when it failed."""

    content: Sequence[ContentBlock]
    details: Any = None
    is_error: bool = field(default_factory=bool)

    if TYPE_CHECKING:

        def __init__(
            self, content: str | Sequence[ContentBlock], details: Any = None, is_error: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "content", content_blocks(self.content))
        if self.details is not None:
            force_setattr(self, "details", freeze(self.details))

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return text_of_content(self.content)


# ---- messages


class Attachment(Value, frozen=True, kw_only=True):
    """A file that came with a message.

    `kind`: `image` or `document`; `file_name`, `mime_type`: as the sender named them; `content`: base64 text;
    `extracted_text`: the text of a document, for models that read no such file.
    """

    kind: Literal["image", "document"]
    file_name: str
    mime_type: str
    content: str
    extracted_text: str | None = None


class UserMessage(Value, frozen=True, kw_only=True, tag_field="role", tag="user"):
    """A message of the person, or of a hook in their place; `timestamp` in Unix milliseconds.

    `attachments`: the files that came with it; `source`: the path of the hook that sent it with `api.send`, `None` for
    the person; `is_context`: a hook has added it to a prompt with `AddContext`; `typed`: the text as it was sent, if
    hooks have changed it or added to it.
    """

    role: ClassVar[Literal["user"]] = "user"

    content: Sequence[ContentBlock]
    timestamp: int
    attachments: tuple[Attachment, ...] = ()
    source: str | None = None
    is_context: bool = False
    typed: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | Sequence[ContentBlock],
            timestamp: int,
            attachments: tuple[Attachment, ...] = (),
            source: str | None = None,
            is_context: bool = False,
            typed: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "content", content_blocks(self.content))
        as_tuples(self, "attachments")

    @property
    def sent(self) -> str:
        """The text as it was sent, without anything that hooks have changed or added."""
        return self.text if self.typed is None else self.typed

    @property
    def text(self) -> str:
        """The text of the message, without images and attachments."""
        return text_of_content(self.content)


class Usage(Value, frozen=True, kw_only=True):
    """The tokens of one response, as its provider counts them; 0 for a number that it does not report.

    `input_tokens`: those of the request, with those that came from a cache (`cache_read_tokens`) or were put there
    (`cache_write_tokens`); `output_tokens`: those of the response.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """The tokens of the request and of the response together."""
        return self.input_tokens + self.output_tokens


class AssistantMessage(Value, frozen=True, kw_only=True, tag_field="role", tag="assistant"):
    """One response of the model.

    `stop_reason`: `stop`, `tool_use`, `length`, `aborted` or `error`; `usage`: its tokens, `None` when the provider
    reports none.
    """

    role: ClassVar[Literal["assistant"]] = "assistant"

    content: tuple[AssistantBlock, ...]
    timestamp: int
    provider: str
    model: str
    stop_reason: str = field(default_factory=lambda: "stop")
    usage: Usage | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | Sequence[AssistantBlock],
            timestamp: int,
            provider: str,
            model: str,
            stop_reason: str = "stop",
            usage: Usage | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        content: object = self.content
        if isinstance(content, str):
            force_setattr(self, "content", (TextContent(content),))
        as_tuples(self, "content")
        force_setattr(self, "content", Blocks(self.content))
        if self.usage is not None and type(self.usage) is not Usage:
            raise TypeError(f"AssistantMessage(usage) wants Usage(input_tokens=…, …), not {shown(self.usage)}")

    @property
    def text(self) -> str:
        """The text of the response, without thinking and tool calls."""
        return text_of_content(self.content)

    @property
    def tool_calls(self) -> tuple[ToolCallContent, ...]:
        """The tool calls of the response, in the model's order."""
        return tuple(block for block in self.content if isinstance(block, ToolCallContent))


class ToolResultMessage(Value, frozen=True, kw_only=True, tag_field="role", tag="toolResult"):
    """The result of a tool call, as the model gets it."""

    role: ClassVar[Literal["toolResult"]] = "toolResult"

    tool_call_id: str
    tool_name: str
    content: Sequence[ContentBlock]
    timestamp: int
    details: Any = None
    is_error: bool = field(default_factory=bool)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tool_call_id: str,
            tool_name: str,
            content: str | Sequence[ContentBlock],
            timestamp: int,
            details: Any = None,
            is_error: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        force_setattr(self, "content", content_blocks(self.content))
        force_setattr(self, "details", freeze(self.details))

    @property
    def text(self) -> str:
        """The text of the result, without images."""
        return text_of_content(self.content)


Message = UserMessage | AssistantMessage | ToolResultMessage


# ---- session entries


class SessionHeader(Value, frozen=True, kw_only=True, tag_field="type", tag="session"):
    """Entry 0 of a session file.

    `version`: of the file's form; `id`: of the session; `cwd`: the directory in which it began; `branched_from`: the file
    that it was branched from, `None` for any other session.
    """

    type: ClassVar[Literal["session"]] = "session"

    version: int
    id: str
    timestamp: str
    cwd: str
    branched_from: str | None = None


class MessageEntry(Value, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A message of the conversation."""

    type: ClassVar[Literal["message"]] = "message"

    timestamp: str
    message: Message


class ModelChangeEntry(Value, frozen=True, kw_only=True, tag_field="type", tag="model_change"):
    """From here on another model answers: `model_id` of `provider`."""

    type: ClassVar[Literal["model_change"]] = "model_change"

    timestamp: str
    provider: str
    model_id: str


class ThinkingLevelChangeEntry(Value, frozen=True, kw_only=True, tag_field="type", tag="thinking_level_change"):
    """From here on the model thinks more or less; `thinking_level`: `off`, `low`, `medium` or `high`."""

    type: ClassVar[Literal["thinking_level_change"]] = "thinking_level_change"

    timestamp: str
    thinking_level: str


class CompactionEntry(Value, frozen=True, kw_only=True, tag_field="type", tag="compaction"):
    """A summary that stands for the entries before `first_kept_entry_index`.

    `tokens_before`: the tokens of the conversation before it; `from_hook`: a hook has written the summary.  Of a summary
    that a model has written: `provider` and `model`, and `usage`, the tokens of that request.
    """

    type: ClassVar[Literal["compaction"]] = "compaction"

    timestamp: str
    summary: str
    first_kept_entry_index: int
    tokens_before: int
    from_hook: bool = False
    provider: str = ""
    model: str = ""
    usage: Usage | None = None


Entry = SessionHeader | MessageEntry | ModelChangeEntry | ThinkingLevelChangeEntry | CompactionEntry


class ExecResult(Struct, frozen=True):
    """The result of a program.

    `stdout`, `stderr`: what it printed, as text; `code`: its exit code; `killed`: a signal ended it, from our timeout or
    from elsewhere; then `code` is not 0.
    """

    stdout: str
    stderr: str
    code: int
    killed: bool = False


# ---- near misses

for _kind in (Value, ExecResult):
    refuse_access_by_key(_kind)
add_near_misses(ExecResult, "result", spelled("result."))
_values: tuple[tuple[str, tuple[type[Value], ...]], ...] = (
    ("block", (TextContent, ImageContent, ThinkingContent, ToolCallContent)),
    ("message", (UserMessage, AssistantMessage, ToolResultMessage)),
    ("entry", (SessionHeader, MessageEntry, ModelChangeEntry, ThinkingLevelChangeEntry, CompactionEntry)),
    ("result", (ToolOutput,)),
    ("usage", (Usage,)),
    ("attachment", (Attachment,)),
)
for _where, _kinds in _values:
    for _kind in _kinds:
        add_near_misses(_kind, _where)
