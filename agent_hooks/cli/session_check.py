"""A session that this machine did not write is resumed only after a question.

A repository may bring session files, whose messages the model would take for its own conversation.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable

from agent_hooks.errors import SessionError
from agent_hooks.host.session import Session
from agent_hooks.host.session_file import SessionSummary, list_sessions
from agent_hooks.settings import agent_home
from agent_hooks.storage.files import StorageError
from agent_hooks.trust.written import WrittenSessions

FLAG = "--trust-session"
TITLE = "Go on with a session from elsewhere?"

Confirm = Callable[[str, str], Awaitable[bool]]
"""Asks the person yes or no: a title, and a text."""


class SessionCheck:
    """Notes the sessions of this host, and accepts those that may be resumed.

    `accept_all`: the person has said yes beforehand; `confirm`: asks the person, `None` where no person can be asked.
    """

    def __init__(self, *, accept_all: bool = False, confirm: Confirm | None = None) -> None:
        self._written = WrittenSessions(agent_home())
        self._accept_all = accept_all
        self._confirm = confirm

    def wrote(self, session: Session) -> None:
        """Note a session that the host works on; a failure is a message of the session."""
        if session.path is None:
            return
        try:
            self._written.note(session.path, session.id)
        except StorageError as exc:
            session.report(f"{exc}; to go on with this session later, {FLAG} is needed")

    def knows(self, session: Session | SessionSummary) -> bool:
        """Tell whether a session may be resumed without a question."""
        session_id = session.id if isinstance(session, Session) else session.session_id
        return self._accept_all or session.path is None or self._written.noted(session.path, session_id)

    async def accept(self, session: Session) -> None:
        """Return if a session may be resumed, after a question where one is needed; raises `SessionError`."""
        if not self.knows(session) and not (
            self._confirm is not None and await self._confirm(TITLE, question(session))
        ):
            raise refusal(session)

    def check(self, session: Session) -> None:
        """Raise `SessionError`, and close the session, if it may not be resumed without a question."""
        if not self.knows(session):
            session.close()
            raise refusal(session)

    def latest(self, home: str) -> str:
        """Return the session of a directory that was written last, by this machine if there is one.

        Raises `SessionError` when there is none.
        """
        sessions = list_sessions(home)
        if not sessions:
            raise SessionError(f"{home}: there is no session to go on with; leave out --continue")
        return next((each for each in sessions if self.knows(each)), sessions[0]).path


def question(session: Session) -> str:
    """Return the text of the question about a session."""
    return (
        f"{session.path} was not written on this machine. The model takes all of its messages, also those about "
        "finished calls, for its own conversation."
    )


def refusal(session: Session) -> SessionError:
    """Return the error for a session that may not be resumed."""
    path = shlex.quote(os.fspath(session.path or ""))
    return SessionError(
        f"{session.path}: this machine did not write this session, and it may tell the model anything; "
        f"read it, and then: agent-hooks run --resume {path} {FLAG}"
    )
