"""Choose the model of a run: the one that the command names, else the person's setting, else the default.

The default at a terminal is a model of the provider whose key is in the environment, and it is named before anything is
sent.  Elsewhere, and without a key, it is the puppet: a program that runs our command must not send code to a provider
only because of a variable.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import click

from agent_hooks.errors import ModelError, SettingsError
from agent_hooks.host.model import Model
from agent_hooks.host.models import open_model
from agent_hooks.host.models.keys import KEY_VARIABLES, find_key
from agent_hooks.host.models.puppet import NO_MODEL, Puppet
from agent_hooks.settings import SETTINGS_FILE, agent_home, merge_settings
from agent_hooks.trees import SourceTree

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
