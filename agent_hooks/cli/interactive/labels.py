"""The messages of a session as options of a list."""

from __future__ import annotations

from datetime import datetime

from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.fitting import cut

LABEL = 60
"""The most characters of a message in a list; with its time it fits into 80 columns."""


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
