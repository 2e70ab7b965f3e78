"""How many tokens a conversation has: an estimate for each message, and a running sum for a session.

Four bytes of UTF-8 count as one token.  OpenAI's rule of thumb for English is four characters; other scripts have more
bytes to a character, and more tokens.  An image, or another file that a model looks at, counts as 1,600 tokens: the count
that Anthropic gives for the largest image that it does not shrink (width by height / 750).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agent_hooks.host.exchanges import Exchange, last_compaction, summary_message, unfinished
from agent_hooks.values.content import (
    AssistantMessage,
    Attachment,
    CompactionEntry,
    Entry,
    ImageContent,
    Message,
    MessageEntry,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserMessage,
)
from agent_hooks.values.wire import to_json

BYTES_PER_TOKEN = 4
IMAGE_TOKENS = 1_600


# ---- a message -------------------------------------------------------------------------------------------------------


def estimate_tokens(message: Message) -> int:
    """Return an estimate of the tokens of a message."""
    sizes = [_block_tokens(block) for block in message.content]
    if isinstance(message, UserMessage):
        sizes += map(_attachment_tokens, message.attachments)
    return sum(sizes)


def exchange_tokens(exchange: Exchange) -> int:
    """Return an estimate of the tokens of a message and the results of its calls."""
    return sum(map(estimate_tokens, exchange.messages))


def _block_tokens(block: object) -> int:
    match block:
        case ImageContent():
            return IMAGE_TOKENS
        case TextContent():
            return _text_tokens(block.text)
        case ThinkingContent():
            return _text_tokens(block.thinking)
        # A tool call.
        case _:
            return -(-len(to_json(block)) // BYTES_PER_TOKEN)


def _text_tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def _attachment_tokens(attachment: Attachment) -> int:
    if attachment.extracted_text is not None:
        return _text_tokens(attachment.extracted_text)
    if attachment.mime_type.startswith("text/"):
        return len(attachment.content) * 3 // 4 // BYTES_PER_TOKEN
    return IMAGE_TOKENS


# ---- a session -------------------------------------------------------------------------------------------------------


def context_tokens(entries: Sequence[Entry]) -> int:
    """Return about how many tokens the conversation in these entries has.

    That is the count that the model itself reported with its last response since the last compaction, plus an estimate of
    the messages after that response; without such a count, an estimate of all messages.
    """
    return TokenCounter().count(_Entries(entries))


class Log(Protocol):
    """Entries in order, only ever appended to; a `Session` is one."""

    def since(self, index: int) -> Sequence[Entry]:
        """Return the entries from `index` on."""
        ...


class _Entries:
    """A sequence of entries as a `Log`."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    def since(self, index: int) -> Sequence[Entry]:
        return self._entries[index:]


class _Waiting(Struct, frozen=True):
    """A tool call that has no result yet, and the tokens counted for that result so far."""

    counted: int
    times: int = 1


class TokenCounter:
    """Keeps the tokens of a session's conversation as a running sum.

    1. `count` measures only the entries that were appended since the last `count`.
    2. A compaction starts the sum again: the summary, then the messages that the compaction keeps.
    3. A response with a count of its own replaces the sum.  A response that a compaction keeps does not: its count is of
       the conversation before the compaction.
    4. A call without a result counts as the `unfinished` result that the model would be sent.
    """

    def __init__(self) -> None:
        self._log: Log | None = None
        self._next = 0
        self._start = 0
        self._tokens = 0
        self._calls: dict[str, _Waiting] = {}

    def count(self, log: Log) -> int:
        """Return the tokens of the conversation in `log`; a log other than the last one is measured as a whole."""
        if log is not self._log:
            self._log, self._next, self._start = log, 0, 0
            self._restart(0)
        entries = log.since(self._next)
        first, self._next = self._next, self._next + len(entries)
        if (compaction := last_compaction(entries)) is not None:
            offset, entry = compaction
            self._compact(log, first + offset, entry)
            first, entries = first + offset + 1, entries[offset + 1 :]
        for index, each in enumerate(entries, first):
            if index >= self._start:
                self._add(each)
        return self._tokens

    def _restart(self, tokens: int) -> None:
        self._tokens = tokens
        self._calls = {}

    def _compact(self, log: Log, index: int, entry: CompactionEntry) -> None:
        self._start = entry.first_kept_entry_index
        self._restart(estimate_tokens(summary_message(entry)))
        first = max(self._start, 0)
        for kept in log.since(first)[: max(index - first, 0)]:
            self._add(kept, kept_by_compaction=True)

    def _add(self, entry: Entry, *, kept_by_compaction: bool = False) -> None:
        if not isinstance(entry, MessageEntry):
            return
        message = entry.message
        if isinstance(message, ToolResultMessage):
            self._add_result(message)
        elif isinstance(message, AssistantMessage):
            self._add_response(message, 0 if kept_by_compaction else _reported(message))
        else:
            self._tokens += estimate_tokens(message)

    def _add_response(self, message: AssistantMessage, reported: int) -> None:
        if reported:
            self._restart(reported)
            self._calls = {call.id: _Waiting(0) for call in message.tool_calls}
            return
        self._tokens += estimate_tokens(message)
        times: dict[str, int] = {}
        for call in message.tool_calls:
            times[call.id] = times.get(call.id, 0) + 1
            size = estimate_tokens(unfinished(call, message.timestamp))
            self._tokens += size
            self._calls[call.id] = _Waiting(size, times[call.id])

    def _add_result(self, message: ToolResultMessage) -> None:
        """Put a result in the place of its call's `unfinished` result; a second result of a call is not sent."""
        if (waiting := self._calls.pop(message.tool_call_id, None)) is not None:
            self._tokens += waiting.times * (estimate_tokens(message) - waiting.counted)


def _reported(message: AssistantMessage) -> int:
    """Return the tokens of the conversation that the model reported, 0 without a report."""
    return 0 if message.usage is None else message.usage.total_tokens
