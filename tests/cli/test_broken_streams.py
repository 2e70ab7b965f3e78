"""Hooks that break the standard streams of the host."""

from __future__ import annotations

import pytest

from running import Command

HOOK = """
import os, sys
def register(api):
    @api.on("tool_call")
    async def breaks(event, ctx):
        {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "sys.stdout.close()",
        "sys.stderr.close()",
        "sys.stdout = sys.stderr = None",
        "full = os.open('/dev/full', os.O_WRONLY); os.dup2(full, 1); os.dup2(full, 2)",
    ],
)
def test_a_hook_that_breaks_a_standard_stream_does_not_change_the_answer(command: Command, line: str) -> None:
    """The answer has a descriptor of its own, and a lost message is no failure of the run."""
    command.add_hook(HOOK.format(line=line))
    assert "   still here" in command("run", "--no-session", "@bash echo still here").stdout
