"""The conversation in the entries of a session, as the model gets it.

The session file keeps everything.  The model gets the summary of the last compaction, then the messages from its
`first_kept_entry_index` on; without a compaction, all messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct, field

from agent_hooks.host.model import SUMMARY_PREFIX, SUMMARY_SUFFIX
from agent_hooks.values.content import (
    AssistantMessage,
    CompactionEntry,
    Entry,
    Message,
    MessageEntry,
    TextContent,
    ToolCallContent,
    ToolResultMessage,
    UserMessage,
    text_of_content,
)

UNFINISHED = "the session ended while this call ran; its effects are unknown"


class Exchange(Struct):
    """A message and the results of its tool calls; a cut never separates them.

    `index`, `last`: the entry of the message, and the last entry of its results.
    """

    index: int
    message: UserMessage | AssistantMessage
    results: dict[str, ToolResultMessage] = field(default_factory=dict)
    last: int = 0

    @property
    def messages(self) -> Iterator[Message]:
        """The message, then the results in the order of its calls; a call without a result gets `unfinished`."""
        yield self.message
        if isinstance(self.message, AssistantMessage):
            for call in self.message.tool_calls:
                yield self.results.get(call.id) or unfinished(call, self.message.timestamp)


def unfinished(call: ToolCallContent, timestamp: int) -> ToolResultMessage:
    """Return a result for a call that never got one: no provider takes a call without a result."""
    return ToolResultMessage(
        tool_call_id=call.id, tool_name=call.name, content=UNFINISHED, timestamp=timestamp, is_error=True
    )


def conversation(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """Return the messages that the model gets: the last summary as a user message, then those after it.

    The result of a tool call follows its call.  A result is left out when the summary has replaced its call.  A call
    that has no result, because the process was killed, gets one that says so.
    """
    compaction, exchanges = read_exchanges(entries)
    kept = messages_of(exchanges)
    return kept if compaction is None else (summary_message(compaction), *kept)


def messages_of(exchanges: Sequence[Exchange]) -> tuple[Message, ...]:
    """Return the messages of some exchanges, in order."""
    return tuple(message for exchange in exchanges for message in exchange.messages)


def read_exchanges(entries: Sequence[Entry]) -> tuple[CompactionEntry | None, list[Exchange]]:
    """Return the last compaction, and the exchanges that it did not replace."""
    found = last_compaction(entries)
    start = found[1].first_kept_entry_index if found else 0
    exchanges: list[Exchange] = []
    # For each call id, the last exchange that made such a call.
    callers: dict[str, Exchange] = {}
    for index, entry in enumerate(entries):
        if index < start or not isinstance(entry, MessageEntry):
            continue
        message = entry.message
        if isinstance(message, ToolResultMessage):
            if (caller := callers.get(message.tool_call_id)) and message.tool_call_id not in caller.results:
                caller.results[message.tool_call_id] = message
                caller.last = index
            continue
        exchanges.append(Exchange(index, message, last=index))
        if isinstance(message, AssistantMessage):
            callers |= {call.id: exchanges[-1] for call in message.tool_calls}
    return found[1] if found else None, exchanges


def last_compaction(entries: Sequence[Entry]) -> tuple[int, CompactionEntry] | None:
    """Return the last compaction and its index, or `None`."""
    for index in range(len(entries) - 1, -1, -1):
        if isinstance(entry := entries[index], CompactionEntry):
            return index, entry
    return None


# ---- a summary as a message ------------------------------------------------------------------------------------------


class SummaryMessage(UserMessage, frozen=True, kw_only=True, tag_field="role", tag="user"):
    """The user message that stands for a compaction; on the wire it is like any other user message."""


def summary_message(entry: CompactionEntry) -> SummaryMessage:
    """Return a compaction as a message for the model."""
    try:
        timestamp = int(datetime.fromisoformat(entry.timestamp).timestamp() * 1000)
    # A session file that another program wrote may hold any text there.
    except (ValueError, OverflowError):
        timestamp = 0
    text = f"{SUMMARY_PREFIX}{entry.summary}{SUMMARY_SUFFIX}"
    return SummaryMessage(content=[TextContent(text)], timestamp=timestamp)


def summary_of(message: UserMessage) -> str | None:
    """Return the summary in a message that `summary_message` made, or `None` for any other message."""
    if not isinstance(message, SummaryMessage):
        return None
    return text_of_content(message.content)[len(SUMMARY_PREFIX) : -len(SUMMARY_SUFFIX)]
