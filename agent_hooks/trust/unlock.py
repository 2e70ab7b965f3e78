"""Unlock hooks for the agent for a limited time, and tell afterwards which files have changed.

The state holds the contents of the files at its start, so that the changes can be shown as diffs at its end.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

import msgspec

from agent_hooks.errors import AgentHooksError
from agent_hooks.settings import PROJECT_DIRECTORY, agent_home
from agent_hooks.storage.files import write_atomically
from agent_hooks.trust.contents import Edit, contents, differences
from agent_hooks.trust.place import Place
from agent_hooks.trust.unlocked import LONGEST, Unlocked, boot_id, read_state, state_path


def begin(place: Place, seconds: float, *, own: bool = False) -> Unlocked:
    """Unlock the hooks and settings of a place, and with `own` those of the agent home.

    Raises `AgentHooksError` when the time is not between 1 second and the longest, or another project is unlocked.
    """
    if not 1 <= seconds <= LONGEST:
        raise AgentHooksError(f"hooks are unlocked for 1 second to {LONGEST / 3600:g} hours, for example 15m")
    former = read_state(state_path())
    directories = tuple(os.path.join(each, PROJECT_DIRECTORY) for each in dict.fromkeys((*place.projects, place.top)))
    home = agent_home()
    directories = tuple(each for each in directories if os.path.realpath(each) != os.path.realpath(home))
    directories += (home,) if own else ()
    if not directories:
        raise AgentHooksError(
            "the home directory is no project; to unlock your own hooks: agent-hooks unlock 15m --own"
        )
    if former is not None and (former.project != place.top or former.directories != directories):
        raise AgentHooksError(f"{former.project} has been unlocked before; first: agent-hooks unlock --end")
    now = time.time()
    before = former.before if former is not None else contents(directories)
    started = time.monotonic()
    state = Unlocked(place.top, directories, now, now + seconds, started + seconds, boot_id(), before)
    write_atomically(state_path(), msgspec.json.encode(state), secret=True)
    return state


def edits(state: Unlocked) -> list[Edit]:
    """Return the files that differ from their contents at the start, by path."""
    return differences(state.before, contents(state.directories))


def end() -> None:
    """Lock the hooks again."""
    with suppress(FileNotFoundError):
        os.unlink(state_path())
