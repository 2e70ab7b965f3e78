"""A program in Node, in which many agents are written: it measures its sides on request, one line on its stdin each."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from benchmarks.harness import NotHereError, Side
from benchmarks.peer_runs import ROOT


@contextmanager
def node(script: str, given: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Iterator[Node]:
    """Run a script of `peers/` with facts as its argument, and end it."""
    program = shutil.which("node")
    if program is None:
        raise NotHereError("not installed: Node.js (node)")
    command = [program, str(ROOT / "benchmarks" / "peers" / script), json.dumps(given)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        yield Node(process)
        assert process.stdin is not None
        process.stdin.close()


class Node:
    """A running script."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def side(self, name: str) -> Side:
        """Return the side of that name."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None

        async def side(loops: int) -> float:
            print(name, loops, file=stdin, flush=True)
            line = stdout.readline()
            assert line, f"Node ended before it had measured {name}"
            return float(line)

        return side
