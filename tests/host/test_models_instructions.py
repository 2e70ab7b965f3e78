"""The instructions in the request to a real model."""

from __future__ import annotations

import pytest

from model_server import ModelServer, Say
from running import Command


def test_the_model_gets_the_instructions_and_a_change_counts_from_the_next_prompt(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stand in the system prompt, behind our own text, where transformers see them too."""
    with ModelServer() as server:
        for name, value in server.environment("openai").items():
            monkeypatch.setenv(name, value)
        server.play(Say("one"), Say("two"))
        path = command.project / "AGENTS.md"
        path.write_text("always use tabs")
        client = command.rpc("--model", "openai:m", "--no-session")
        for text, expected in (("hello", "always use tabs"), ("again", "never use tabs")):
            client.send("prompt", message=text)
            client.expect("agent_end")
            messages = server.requests[-1].body["messages"]
            said = "\n".join(str(each["content"]) for each in messages if each["role"] in ("system", "developer"))
            assert said.index("You are a coding agent") < said.index(f"Instructions of {path}:\n\n{expected}")
            path.write_text("never use tabs")
        client.end()
