"""The model and the session of a run.

The command names the model, else the settings do, else it is the default.  At a terminal, the default is
a model of the provider whose key is in the environment.  It is named before anything is sent.  Elsewhere, and without a
key, it is the puppet: a program that runs our command must not send code to a provider only because of a variable.

A session that is resumed keeps the model that it had.
"""

from __future__ import annotations

import os
import re
from functools import partial
from typing import NamedTuple

import anyio
import click

from agent_hooks.cli.interactive.candidates import session_option
from agent_hooks.cli.modes.base import TITLE, SessionCheck, Start, question
from agent_hooks.cli.streams import can_show_question
from agent_hooks.cli.trusting import confirm
from agent_hooks.errors import AgentHooksError, ModelError, SettingsError
from agent_hooks.host.model import Model
from agent_hooks.host.models import KEY_VARIABLES, find_key, open_model
from agent_hooks.host.models.puppet import NO_MODEL, Puppet
from agent_hooks.host.session_file import list_sessions
from agent_hooks.settings import SETTINGS_FILE, agent_home, merge_settings
from agent_hooks.trees import SourceTree
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


DEFAULTS = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5.5",
    "google": "gemini-3.8-flash",
}
"""The model of each provider whose key is in the environment; the first provider with a key counts."""
_ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL", "google": "GOOGLE_GEMINI_BASE_URL"}
_OTHERS = 'another one: --model, /model, or "model" in ~/.agent/settings.json'


class Chosen(NamedTuple):
    """A model, and the sentence that a person at a terminal reads about it before anything is sent, if there is one."""

    model: Model
    note: str | None = None


def choose_model(named: str | None, *, at_terminal: bool) -> Chosen:
    """Return the model of a run; `named`: by the command; `at_terminal`: a person talks to it there.

    Raises `click.UsageError` for a wrong `--model`, and `SettingsError` for a wrong setting.
    """
    if named is not None:
        try:
            return Chosen(open_model(named))
        except ModelError as exc:
            raise click.UsageError(f"--model {named}: {exc}") from None
    home = agent_home()
    if (setting := merge_settings([SourceTree(home)]).model) is not None:
        try:
            return Chosen(open_model(setting))
        except ModelError as exc:
            raise SettingsError(f"key 'model': {exc}", os.path.join(home, SETTINGS_FILE)) from None
    return _of_environment() if at_terminal else Chosen(Puppet(announce=True))


def _of_environment() -> Chosen:
    kind = next((each for each in DEFAULTS if find_key(each)), None)
    if kind is None:
        return Chosen(Puppet(), NO_MODEL)
    variable = next(name for name in KEY_VARIABLES[kind] if os.environ.get(name, "").strip())
    name = f"{kind}:{DEFAULTS[kind]}"
    try:
        model = open_model(name)
    except ModelError as exc:
        return Chosen(Puppet(), f"{variable} is set, but {exc}; {NO_MODEL}")
    # A password in the address is left out.
    address = re.sub("//[^/]*@", "//", os.environ.get(_ADDRESSES[kind], ""))
    to = f"{kind}, at {address}" if address else kind
    return Chosen(
        model, f"the model is {name}, because {variable} is set; your prompts and all it reads go to {to}; {_OTHERS}"
    )
