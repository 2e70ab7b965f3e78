"""Runs cells with several workers at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from chaos.cells import Cell

TESTS = Path(__file__).parent.parent
# Seconds in which a cell must have come to an end; it has a limit of its own, which is shorter.
STUCK = 300.0


class Worker:
    """A process that runs cells one after another; `cold`: it leaves late imports to the agent."""

    def __init__(self, *, cold: bool) -> None:
        self._cold = cold
        self._start()

    def _start(self) -> None:
        path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chaos.worker", *(["cold"] if self._cold else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )

    def run(self, cell: Cell) -> dict[str, Any]:
        """Run a cell and return its result; a worker that ends is replaced."""
        assert self._process.stdin
        assert self._process.stdout
        line = ""
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{cell.name}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._start()
            wrong = ["the process that runs the cells has ended"]
            return {"cell": cell.name, "outcome": "ends", "wrong": wrong, "seconds": 0}
        result: dict[str, Any] = json.loads(line)
        return result

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def run_all(cells: list[Cell], jobs: int) -> Iterator[dict[str, Any]]:
    """Run cells with so many workers, and yield each result when it comes."""
    todo: dict[bool, SimpleQueue[Cell]] = {False: SimpleQueue(), True: SimpleQueue()}
    for cell in cells:
        todo[cell.details.cold].put(cell)
    done: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def work() -> None:
        for cold, queue in todo.items():
            if queue.empty():
                continue
            worker = Worker(cold=cold)
            with suppress(Empty):
                while True:
                    done.put(worker.run(queue.get_nowait()))
            worker.end()

    for _ in range(min(jobs, len(cells))):
        Thread(target=work, daemon=True).start()
    for _ in cells:
        yield done.get(timeout=STUCK)
