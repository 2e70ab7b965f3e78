"""`agent-hooks run`, with a model that plays a script."""

from __future__ import annotations

import functools
import json
import sys

import anyio

from agent_hooks.__main__ import main
from chaos.cells import Cell
from chaos.scene import Scene, calls_of

# Responses without a call, for the turns that messages of a hook make.
_MORE = 50


def run(cell: Cell, scene: Scene) -> None:
    """Run the command to its end, which ends the process."""
    script = scene.root / "script.jsonl"
    turns = [
        {"toolCalls": [{"id": call.id, "name": call.tool, "arguments": scene.input(call)}]} for call in calls_of(cell)
    ]
    script.write_text("".join(f"{json.dumps(turn)}\n" for turn in [*turns, *[{"text": "done"}] * _MORE]))
    anyio.run = functools.partial(anyio.run, backend=cell.backend)  # type: ignore[assignment]  # the same, on a backend
    sys.argv = ["agent-hooks", "run", "--print", "--model", f"script:{script}", "go"]
    main()
