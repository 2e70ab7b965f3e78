"""The prompt of print mode, and the text that a pipe or a file gives it on stdin."""

from __future__ import annotations

import os
import select
import stat
import sys

import click

from agent_hooks.cli.streams import tell
from agent_hooks.errors import count
from agent_hooks.host.models.puppet import parse

PATIENCE = 3.0
"""Seconds in which the first bytes must come, where the prompt is given: an open stdin that stays silent hangs no run."""


def print_prompt(prompt: str | None) -> str:
    """Return the prompt of print mode; raises `click.UsageError` when there is none.

    `prompt`: `None` and `-` stand for the text of stdin.  Any other prompt for a model gets that text as an appendix, as
    in `cat FILE | agent-hooks run 'sum this up'`.
    """
    if prompt is None or prompt == "-":
        prompt = _read() if _gives_text(wait=None) else ""
    elif not any(turn.calls for turn in parse(prompt)) and _gives_text(wait=PATIENCE) and (text := _read()).strip():
        tell(f"{count(len(text.splitlines()), 'line')} of stdin go along with the prompt", err=True)
        prompt = f"{prompt}\n\n<stdin>\n{text.rstrip()}\n</stdin>"
    if not prompt.strip():
        raise click.UsageError("give a prompt, as an argument or on stdin:  agent-hooks run '@bash ls'")
    return prompt


def _gives_text(wait: float | None) -> bool:
    """Tell whether stdin is a file, or a pipe or socket with bytes, or its end, within `wait` seconds."""
    if sys.stdin is None or sys.stdin.isatty():
        return False
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    # A closed descriptor, or an object in the place of stdin.
    except (OSError, ValueError):
        return wait is None
    if wait is None or stat.S_ISREG(mode):
        return True
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    if select.select([sys.stdin], [], [], wait)[0]:
        return True
    tell(
        f"no text came on stdin within {wait:g} s, so the prompt goes without it; `< /dev/null` says so at once",
        err=True,
    )
    return False


def _read() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")
