"""The session that a run goes on with: chosen by the person, asked about, and with the model that it was used with."""

from __future__ import annotations

from functools import partial

import anyio
import click

from agent_hooks.cli.interactive.labels import session_option
from agent_hooks.cli.modes.base import Start
from agent_hooks.cli.session_check import TITLE, SessionCheck, question
from agent_hooks.cli.streams import can_show_question
from agent_hooks.cli.trusting import confirm
from agent_hooks.errors import AgentHooksError
from agent_hooks.host.model import Model
from agent_hooks.host.models import open_model
from agent_hooks.host.models.keys import KEY_VARIABLES
from agent_hooks.host.session_file import list_sessions
from agent_hooks.ui.harmless import harmless
from agent_hooks.ui.terminal import TerminalUI

CHOOSE = "\0"
"""The value of `--resume` without a path: no path holds this character."""


def settle_session(start: Start, *, model_named: bool) -> Start:
    """Return the start with the session that the person chose, and with its model.

    The person is asked about a session that this machine did not write, if they can be; a mode refuses it without a yes.
    `model_named`: the command names a model, so that of the session does not count.  Raises `SessionError`, and
    `click.UsageError` where a session should be chosen without a terminal.
    """
    if start.resume == CHOOSE:
        start = start._replace(resume=_chosen(start))
    checks = SessionCheck(accept_all=start.trust_session)
    if not can_show_question() or (session := start.resumed(start.sessions_home, checks)) is None:
        return start
    try:
        if not checks.knows(session):
            if not confirm(f"{harmless(question(session))}\n{TITLE}"):
                return start
            checks.wrote(session)
        used = session.last_model()
    finally:
        session.close()
    return start if model_named else _with_model(start, used)


def _chosen(start: Start) -> str:
    """Return the path of the session that the person chooses from a list."""
    sessions = [each for each in list_sessions(start.sessions_home) if each.messages]
    if not can_show_question():
        raise click.UsageError("--resume without a path lets a person choose at a terminal; give the path of a session")
    if not sessions:
        raise click.UsageError(f"there is no session to go on with in {start.sessions_home}")
    options = [session_option(each) for each in sessions]
    index = anyio.run(partial(TerminalUI().choose, "Which session?", options, searches=True))
    if index is None:
        raise click.Abort
    return sessions[index].path


def _with_model(start: Start, used: str | None) -> Start:
    """Return the start with the model of a session, if that is a real one which can be opened here."""
    model = model_of_session(used)
    return start if model is None else start._replace(model=model, model_note=note_on(model))


def model_of_session(used: str | None) -> Model | None:
    """Return the model that a session was used with, if that is a real one which can be opened here.

    Where this returns `None`, the present model goes on, and the host warns of that.
    """
    if used is None or used.partition(":")[0] not in KEY_VARIABLES:
        return None
    try:
        return open_model(used)
    # Its key is not set here, for example.
    except AgentHooksError:
        return None


def note_on(model: Model) -> str:
    """Return the sentence about the model of a session that is gone on with."""
    return f"the model is {model.provider}:{model.id}, as before in this session; another one: /model"
