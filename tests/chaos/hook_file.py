"""The hook file of a cell, with the broken handler; and a hook beside it that is sound."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import NamedTuple

from chaos.cells import Cell


class _Kind(NamedTuple):
    """A kind of handler: its event, the field with the call's input, the form of its answer, and its sound part."""

    event: str
    input: str
    answer: str
    sound: str


_KINDS = {
    "gate": _Kind(
        "tool_call",
        "input",
        '{"block": True, "reason": value}',
        'if "forbidden" in command:\n    return Block("the broken hook forbids it")',
    ),
    "rewriter": _Kind(
        "before_tool_call",
        "params",
        '{"params": value}',
        'if "forbidden" in command:\n    return Rewrite({"command": command.replace("forbidden", "rewritten")})',
    ),
    "result": _Kind("tool_result", "input", '{"details": value}', "return None"),
    "observer": _Kind("after_tool_call", "params", "value", "return None"),
}

_BROKEN = """\
{isolation}
import os
import sys
import threading
import time

from agent_hooks import Block, Rewrite
from agent_hooks.dispatch import handlers

# The runtime waits half a minute for the thread of an aborted handler, at each of the calls that follow.
handlers.THREAD_PATIENCE = 1.0


def answer(value):
    return {answer}


def begin():
    os.close(os.open({began!r}, os.O_CREAT | os.O_WRONLY))


def register(api):
    @api.on("{event}", tool="bash")
    {style} broken(event, ctx):
        command = event.{input}["command"]
        if "trouble" in command:
            # A name of a module would be a local one here, where a fault imports the module.
            begin()
{code}
{sound}
"""
_SOUND = """\
from agent_hooks import Block


def register(api):
    @api.on("tool_call", tool="bash")
    async def sound(event, ctx):
        if "banned" in event.input["command"]:
            return Block("the sound hook forbids it")
"""
# The modules that faults import.
_BESIDE = {
    "_exits.py": "import sys\nsys.exit(0)\n",
    "_wrong_syntax.py": "def broken(:\n",
    "_hangs.py": "import time\ntime.sleep(1e6)\n",
}


def broken_hook(cell: Cell, began: Path) -> str:
    """Return the hook with the fault; `began`: the file that it makes when its call is in trouble."""
    kind = _KINDS[cell.kind]
    return _BROKEN.format(
        isolation='ISOLATION = "process"' if cell.mode == "process" else "",
        answer=kind.answer,
        event=kind.event,
        input=kind.input,
        style="async def" if cell.details.style == "async" else "def",
        began=str(began),
        code=indent(dedent(cell.details.code).strip("\n"), " " * 12),
        sound=indent(kind.sound, " " * 8),
    )


def write_hooks(cell: Cell, directory: Path, began: Path) -> None:
    """Write the broken hook, and after it the sound one, which judges the same calls."""
    directory.mkdir(parents=True)
    (directory / "a_broken.py").write_text(broken_hook(cell, began))
    (directory / "b_sound.py").write_text(_SOUND)
    for name, text in _BESIDE.items():
        (directory / name).write_text(text)
