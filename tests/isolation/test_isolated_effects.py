"""`event.effects` in the process of an isolated hook."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_hooks.testing import call_tool
from isolation.isolating import running

pytestmark = pytest.mark.anyio

GATE = """
    from agent_hooks import Block

    def register(api):
        @api.on("before_tool_call")
        async def first(event, ctx):
            if event.effects.runs("doas"):
                return Block("doas")

        @api.on("tool_call")
        async def gate(event, ctx):
            if event.effects.writes("src/a.py") or event.effects.writes("~/x"):
                return Block("protected")
"""


async def test_an_isolated_hook_has_the_effects_of_the_call(tmp_path: Path) -> None:
    """Its process gets the directory, the project's root and the home with the call."""
    (tmp_path / ".git").mkdir()
    async with running(tmp_path, GATE) as started:
        for command, text in (
            ("cd src && echo x > a.py", "protected"),
            ("echo x > ~/x", "protected"),
            ("doas ls", "doas"),
            ("echo x > b.py", "ran"),
        ):
            output = await call_tool(started.runner, "bash", {"command": command})
            assert output.text.startswith(text), command
    assert started.errors == []
