"""The model that a person at a terminal gets without having named one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_hooks.cli.choosing import DEFAULTS
from agent_hooks.host.models import KEY_VARIABLES
from model_server import ModelServer, Say
from running import Command
from tmux import Tmux

pytestmark = pytest.mark.terminal


def test_the_model_is_named_before_anything_is_sent(
    terminal: Callable[..., Tmux], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line stands above the first prompt; a call by hand sends nothing, and a question does."""
    for name in {name for names in KEY_VARIABLES.values() for name in names}:
        monkeypatch.delenv(name, raising=False)
    with ModelServer() as server:
        for name, value in server.environment("openai").items():
            monkeypatch.setenv(name, value)
        tmux = terminal(columns=150)
        tmux.start_agent()
        tmux.sees(f"the model is openai:{DEFAULTS['openai']}, because OPENAI_API_KEY is set")
        tmux.enter("@bash echo by''hand")
        tmux.sees("byhand", times=1)
        assert server.requests == []
        server.play(Say("Good day."))
        tmux.enter("good morning")
        tmux.sees("Good day.")
        assert [request.body["model"] for request in server.requests] == [DEFAULTS["openai"]]
