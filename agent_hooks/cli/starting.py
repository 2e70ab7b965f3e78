"""Find out whether a user starts a session, whose own hooks and settings count then as they are."""

from __future__ import annotations

from agent_hooks.trust.ancestors import agent_ancestor, agent_of, ancestors
from agent_hooks.trust.open_sessions import OpenSession, open_processes, open_session


def is_users_start(process: int | None = None, sign: OpenSession | None = None, *, at_terminal: bool) -> bool:
    """Return whether a user starts a session, and no agent does.

    - `process`: the process of another agent, if it is known
    - `sign`: the sign of its session
    - `at_terminal`: a user is there.  Otherwise another session may have started this one, so none is open or recent.
    """
    known = sign is None or process is not None
    if not (at_terminal and known) and open_session(sign) is not None:
        return False
    if sign is None:
        return agent_ancestor() is None
    above = [*ancestors(process)] if process else []
    # One agent may consist of several processes.
    own = next((at for at, each in enumerate(above) if at and agent_of(each) is None), len(above))
    # In a process that has a session already, the agent itself may say that another one begins.
    others = open_processes(sign)
    return not others.intersection(each.pid for each in above) and all(agent_of(each) is None for each in above[own:])
