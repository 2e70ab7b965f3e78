"""The arguments and files that Tab offers at the prompt line, and sessions and messages as options of a list.

Disk and imports are waited for in threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from time import monotonic

import anyio
from anyio import to_thread
from prompt_toolkit.utils import get_cwidth

from agent_hooks.cli.screen.completion import MOST, Arguments, Candidate, beginning, matching
from agent_hooks.errors import AgentHooksError, count
from agent_hooks.host.model import THINKING_LEVELS
from agent_hooks.host.models import KEY_VARIABLES, find_key
from agent_hooks.host.models.puppet import Puppet
from agent_hooks.host.session_file import SessionSummary, list_sessions
from agent_hooks.host.tools.listing import list_files
from agent_hooks.ui.dialogs import Option
from agent_hooks.ui.fitting import cut

PATIENCE = 2.0
"""Seconds that the list of all files may take; then the files of one directory are offered."""
KEPT = 5.0
"""Seconds for which a list of files counts."""
SMALLEST_WINDOW = 64_000
"""The tokens that a model takes at least if an agent is to work with it; those for sound and images take less."""
MOST_LISTED = 5_000
"""The entries of one directory that are looked at."""


class FileCandidates:
    """The files of a project: those that git tracks, and those that it neither tracks nor ignores."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._names: list[str] = []
        self._until = 0.0

    async def __call__(self, typed: str) -> Iterable[Candidate]:
        """Return the files that may be meant by a part of their path."""
        names = await self._listed()
        if names is None:
            names = await to_thread.run_sync(lambda: [*self._beside(typed)])
        found = await to_thread.run_sync(matching, typed, names)
        return [Candidate(name) for name in found if name.isprintable()]

    async def _listed(self) -> list[str] | None:
        """Return all files, `None` when there are too many to list in time."""
        if monotonic() < self._until:
            return self._names
        with anyio.move_on_after(PATIENCE):
            try:
                self._names = await list_files(self._cwd)
            # git could not be started.
            except (AgentHooksError, OSError):
                return None
            self._until = monotonic() + KEPT
            return self._names
        return None

    def _beside(self, typed: str) -> Iterator[str]:
        """Yield the entries of the directory that the typed path is in."""
        directory = os.path.dirname(typed)
        try:
            with os.scandir(os.path.join(self._cwd, os.path.expanduser(directory))) as entries:
                for entry in islice(entries, MOST_LISTED):
                    yield os.path.join(directory, entry.name) + "/" * entry.is_dir()
        # There is no such directory, or it cannot be read.
        except OSError:
            return


async def thinking_levels(typed: str) -> Iterable[Candidate]:
    """Return the levels of `/thinking`."""
    return beginning(typed, map(Candidate, THINKING_LEVELS))


async def models(typed: str) -> Iterable[Candidate]:
    """Return the models of `/model`: the puppet, and those of the providers."""
    return await to_thread.run_sync(lambda: beginning(typed, _models(typed)) or _models_called(typed))


def _models(typed: str) -> Iterator[Candidate]:
    yield Candidate("puppet", "needs no key")
    yield Candidate("script:", "replays a file of responses")
    for provider, variables in KEY_VARIABLES.items():
        has_key = find_key(provider) is not None
        yield Candidate(f"{provider}:", "" if has_key else f"needs {' or '.join(variables)}")
        if typed.startswith(f"{provider}:"):
            # Imported here, because the table of the models takes long.
            from agent_hooks.host.prices import model_names

            yield from (Candidate(f"{provider}:{name}") for name in model_names(provider))


def _models_called(typed: str) -> list[Candidate]:
    """Return the models at hand for a part of a name, without its provider."""
    return [*map(Candidate, matching(typed, models_at_hand()))] if ":" not in typed else []


def models_at_hand() -> list[str]:
    """Return the models that a person can choose from a list: of each provider with a key, those that fit an agent."""
    # Imported here, because the table of the models takes long.
    from agent_hooks.host.prices import model_names

    providers = [provider for provider in KEY_VARIABLES if find_key(provider) is not None]
    return [Puppet.provider, *(f"{each}:{name}" for each in providers for name in model_names(each, SMALLEST_WINDOW))]


def sessions(home: Callable[[], str]) -> Arguments:
    """Return the source of `/resume`: the files of the sessions of a directory, the last written first."""

    async def found(typed: str) -> Iterable[Candidate]:
        def listed() -> list[Candidate]:
            each = islice(list_sessions(home()), MOST)
            paths = [Candidate(_short(one.path), first_words(one.first_text)) for one in each]
            return [path for path in paths if typed in path.text]

        return await to_thread.run_sync(listed)

    return found


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def answers(numbers: Callable[[], Sequence[Candidate]]) -> Arguments:
    """Return the source of `/hooks`: the answers that it can revoke."""

    async def found(typed: str) -> Iterable[Candidate]:
        kept = await to_thread.run_sync(numbers)
        return beginning(typed, [Candidate(f"revoke {each.text}", each.about) for each in kept])

    return found


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
