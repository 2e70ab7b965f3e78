"""Runs cells, each in a process forked from this one: `python -m chaos.worker` reads names of cells from stdin.

stdout has a JSON object for each.  A fork saves the imports, which take longer than a cell.  `cold` as an argument leaves
the modules that the agent imports late to the agent: a fault may break their import.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import trio  # noqa: F401  # forked programs need it

import agent_hooks
from agent_hooks.cli.commands import run as command  # noqa: F401  # as above
from agent_hooks.cli.main import cli  # noqa: F401  # as above
from agent_hooks.cli.modes import mode
from chaos.cells import Cell
from chaos.faults import FAMILIES
from chaos.places import RUN
from chaos.processes import Program, adopt_orphans, fork, kill_all, leftovers
from chaos.scene import Scene
from chaos.verdict import Observation, judge

# Seconds that a cell may take; one in which no process survives is ended so long after the fault began.
LIMIT = 30.0
NAMED_LIMIT = {"wrapped": 1.5, "host": 1.5, "server": 25.0}
# Seconds until a person interrupts a call that waits for ever.
INTERRUPT = 1.5
# Seconds that processes get to end after the agent.
GRACE = 3.0
# Bound before a fault patches them.
_exit, _join_threads = os._exit, threading._shutdown  # type: ignore[attr-defined]  # Python's own end calls it
_LATE = ("anyio._backends._asyncio", "anyio._backends._trio", "jsonschema_rs")


class _Watch:
    """Watches the program of a cell: when it has to end, and when a person interrupts it."""

    def __init__(self, cell: Cell, scene: Scene, program: Program) -> None:
        self._cell, self._scene, self._program = cell, scene, program
        self._end = time.monotonic() + LIMIT
        self._began: float | None = None
        self._interrupts = 0

    def limit(self) -> float:
        """Return the time at which the program has to end."""
        if self._cell.is_named and self._began is not None:
            return min(self._end, self._began + NAMED_LIMIT[self._cell.place])
        return self._end

    def look(self) -> None:
        """Note when the fault begins, and interrupt a host that waits for ever."""
        now = time.monotonic()
        if self._began is None and self._scene.began.exists():
            self._began = now
        # A person presses Ctrl-C again when the first one does not help.
        due = self._began is not None and now > self._began + INTERRUPT * (self._interrupts + 1)
        if due and self._cell.is_interrupted and self._cell.place == "host":
            self._interrupts += 1
            os.kill(self._program.pid, signal.SIGINT)


def observe(cell: Cell, scene: Scene, program: Program) -> dict[str, Any]:
    """Watch the program of a cell to its end, and return the result."""
    began = time.monotonic()
    watch = _Watch(cell, scene, program)
    ended = program.watch(watch.limit, watch.look)
    server_ended = _end_server(scene)
    left = leftovers(0.0 if cell.is_named else GRACE)
    kill_all()
    program.close()
    seen = Observation(
        ran=scene.ran.read_text().split(),
        results=_results(cell, scene),
        code=program.status if ended else None,
        stderr=program.stderr.text + _server_log(scene),
        left=sorted(left.values()),
        began=scene.began.exists(),
        server_ended=server_ended,
    )
    _remove_server(scene)
    outcome, wrong = judge(cell, seen)
    return {"cell": cell.name, "outcome": outcome, "wrong": wrong, "seconds": round(time.monotonic() - began, 2)}


# ---- the results -----------------------------------------------------------------------------------------------------


def _results(cell: Cell, scene: Scene) -> dict[str, Any]:
    """Return the results by call, and `end` when the agent came to its end."""
    if cell.place == "host":
        return _of_session(scene)
    lines = [json.loads(line) for line in scene.results.read_bytes().splitlines()]
    return {line.get("id", "end"): line for line in lines}


def _of_session(scene: Scene) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in (scene.project / ".agent" / "sessions").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            try:
                message = json.loads(line).get("message", {})
            except ValueError:
                found["session"] = {"text": f"a broken line of the session: {line[:80]!r}", "error": True}
                continue
            if message.get("role") == "toolResult":
                text = "".join(block.get("text", "") for block in message["content"])
                found[message["toolCallId"]] = {"text": text, "error": message["isError"]}
            elif message.get("role") == "assistant" and message.get("stopReason") == "stop":
                found["end"] = {}
    return found


# ---- the server ------------------------------------------------------------------------------------------------------


def _end_server(scene: Scene) -> bool:
    """Ask the server to end; returns whether it did."""
    for path in _server_paths(scene, "lock"):
        with suppress(ValueError, OSError):
            os.kill(pid := int(path.read_text()), signal.SIGTERM)
            return not any(pid == each for each in leftovers(GRACE * 2))
    return True


def _server_paths(scene: Scene, *suffixes: str) -> list[Path]:
    if not scene.server.exists():
        return []
    path = Path(scene.server.read_text())
    return [each for each in path.parent.glob(f"{path.name}.*") if not suffixes or each.suffix[1:] in suffixes]


def _server_log(scene: Scene) -> str:
    """Return the end of the server's log, in which the reports of hooks may hold tracebacks."""
    return "".join(
        f"\nserver: {path.read_bytes()[-4000:].decode(errors='replace')}" for path in _server_paths(scene, "log")
    )


def _remove_server(scene: Scene) -> None:
    for path in _server_paths(scene):
        path.unlink()


# ---- the loop --------------------------------------------------------------------------------------------------------


def _import_all() -> None:
    """Import the modules that the agent imports late."""
    ours = [module.name for module in pkgutil.walk_packages(agent_hooks.__path__, "agent_hooks.")]
    for name in (*_LATE, *ours):
        if not name.endswith("__main__") and ".testing" not in name:
            importlib.import_module(name)


def ends_wholly(cell: Cell) -> bool:
    """Tell whether Python takes all modules down at the end of a cell, which costs two thirds of its time.

    It does so once for each fault and backend inside of the agent, and for each fault that leaves something behind.
    """
    return cell.mode == "inline" and (cell.kind == "observer" or cell.details in FAMILIES["It leaves something behind"])


def _run_and_end(cell: Cell, scene: Scene) -> NoReturn:
    """Run a cell, and end the process as Python does, up to its last `atexit` function."""
    code: object = None
    try:
        RUN[cell.place](cell, scene)
    except SystemExit as exc:
        code = exc.code
    _join_threads()
    # Python prints the exception of such a function, and goes on.
    with suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    _exit(code if isinstance(code, int) else 1 if code else 0)


def main() -> None:
    """Run the cells of stdin.  In a forked child this may return into the cell, so that Python ends as it always does."""
    adopt_orphans()
    mode("print")
    if "cold" not in sys.argv:
        _import_all()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        cell = Cell(*line.strip().split("/"))
        scene = Scene(Path(tempfile.mkdtemp(prefix="agent-hooks-chaos-")))
        scene.write(cell)
        program = fork(str(scene.project), scene.environment())
        if program is None:
            if ends_wholly(cell):
                return RUN[cell.place](cell, scene)
            _run_and_end(cell, scene)
        answer = observe(cell, scene, program)
        shutil.rmtree(scene.root, ignore_errors=True)
        print(json.dumps(answer), flush=True)
    return None


if __name__ == "__main__":
    main()
