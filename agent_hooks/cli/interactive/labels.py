"""Sessions, and the messages of one, as options of a list."""

from __future__ import annotations

from datetime import datetime

from prompt_toolkit.utils import get_cwidth

from agent_hooks.errors import count
from agent_hooks.host.session_file import SessionSummary
from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.fitting import cut

LABEL = 60
"""The most characters of a message in a list; with its number and time it fits into 80 columns."""
# Between the first prompt of a session and the last one.
_BETWEEN = " … "


def labelled(timestamp: str, text: str, more: str = "") -> Option:
    """Return an option for a message: its time and first words; the whole text is its preview if the label cuts it."""
    words = first_words(text, LABEL - len(more))
    return Option(f"{_local_time(timestamp)}  {words}{more}", text if words != text.strip() else "")


def session_option(session: SessionSummary) -> Option:
    """Return an option for a session: its time, its first and its last prompt, and the number of its messages."""
    first, last = (" ".join(text.split()) for text in (session.first_text, session.last_text))
    more = f" ({count(session.messages, 'message')})"
    if first == last:
        return labelled(session.written, session.first_text, more)
    # Branches of a session begin with the same prompt.
    room = LABEL - len(more) - len(_BETWEEN)
    ends = cut(last, max(room // 2, room - get_cwidth(first)))
    words = cut(first, room - get_cwidth(ends)) + _BETWEEN + ends
    preview = "" if words == first + _BETWEEN + last else f"{first}{_BETWEEN}{last}"
    return Option(f"{_local_time(session.written)}  {words}{more}", preview)


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
