"""The conversation of a resumed session as lines, and its messages as options of a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rich.text import Text

from agent_hooks.cli.screen.output import sent
from agent_hooks.cli.screen.prompt import ruled
from agent_hooks.host.exchanges import summary_of
from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.fitting import cut
from agent_hooks.ui.harmless import harmless
from agent_hooks.values.content import AssistantMessage, Message, ToolResultMessage, UserMessage, text_of_content
from agent_hooks.values.tool import call_line

LABEL = 60
"""The most characters of a message in a list; with its time it fits into 80 columns."""


def transcript(messages: Sequence[Message]) -> Iterable[Text]:
    """Yield the lines of a conversation."""
    for index, message in enumerate(messages):
        if isinstance(message, UserMessage):
            yield Text()
            yield from _user_lines(message)
        elif isinstance(message, AssistantMessage):
            if message.text:
                yield Text(harmless(message.text).rstrip("\n"))
            for call in message.tool_calls:
                line = harmless(f"• {call_line(call.name, call.invalid or call.arguments)}")
                yield Text.assemble(line, *_outcome(call.id, messages[index:]))


def _user_lines(message: UserMessage) -> Iterable[Text]:
    if (summary := summary_of(message)) is None:
        yield sent(message.sent, message.source)
    else:
        yield ruled("summed up")
        yield Text(harmless(summary).rstrip("\n"))


def _outcome(call_id: str, messages: Iterable[Message]) -> Iterable[tuple[str, str]]:
    """Yield the outcome of a call with its style; nothing when its result is not among `messages`."""
    for message in messages:
        if isinstance(message, ToolResultMessage) and message.tool_call_id == call_id:
            text = text_of_content(message.content)
            if not message.is_error:
                yield " → ok", "green"
            elif isinstance(message.details, Mapping) and message.details.get("status") == "blocked":
                yield harmless(f" → blocked: {text}"), "bold red"
            else:
                yield harmless(f" → error: {first_words(text)}"), "red"
            # Only the first match counts: a model may use an id again later.
            return


def labelled(timestamp: str, text: str, more: str = "") -> Option:
    """Return an option for a message: its time and first words; the whole text is its preview if the label cuts it."""
    words = first_words(text, LABEL - len(more))
    return Option(f"{_local_time(timestamp)}  {words}{more}", text if words != text.strip() else "")


def first_words(text: str, most: int = LABEL) -> str:
    """Return the beginning of a text as one line of at most `most` columns."""
    return cut(" ".join(text.split()), most)


def _local_time(timestamp: str) -> str:
    """Return an ISO 8601 time in the person's time zone; any other text as it is, cut."""
    try:
        return f"{datetime.fromisoformat(timestamp).astimezone():%d %b %H:%M}"
    except (ValueError, OverflowError):
        # Another program wrote the session file.
        return first_words(timestamp)
