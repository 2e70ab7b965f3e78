"""An event that is posted: by Node, in which the other agent is written, over one connection that stays open."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.installs.plan import new_address
from benchmarks.bridge_projects import AGENT, BASE, Project, served
from benchmarks.harness import Effort, NotHereError, Row, Side, interleave
from benchmarks.peer_runs import ROOT

EVENT = "PostToolBatch"


async def posted(folder: Path, settings: dict[str, Any], effort: Effort) -> list[Row]:
    """Compare an event that Node posts with a process that Node starts and that ends at once."""
    program = shutil.which("node")
    if program is None:
        raise NotHereError("not installed: Node.js (node)")
    project, address = Project(folder, settings), new_address()
    path = folder / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(json.dumps(open_bridge(AGENT).install({}, ["true"], [EVENT], address)))
    payload = {**json.loads(project.payload.read_text()), "hook_event_name": EVENT}
    given = {"url": address.url(AGENT, EVENT), "token": address.token, "body": json.dumps(payload), "command": BASE}
    with served(project), _node(program, json.dumps(given)) as node:
        rounds = await interleave({"post": _side(node, "post"), "base": _side(node, "spawn")}, effort)
    micros = rounds.seconds("post") * 1e6
    note = f"to base, started by Node; {micros:.0f} µs"
    return [Row("an event by HTTP from Node, bare", rounds.ratio("post", "base"), must=0.1, note=note)]


@contextmanager
def _node(program: str, given: str) -> Iterator[subprocess.Popen[str]]:
    """Run the peer, which measures one of its two sides on request."""
    command = [program, str(ROOT / "benchmarks" / "peers" / "post.mjs"), given]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        yield node
        assert node.stdin is not None
        node.stdin.close()


def _side(node: subprocess.Popen[str], name: str) -> Side:
    async def side(loops: int) -> float:
        assert node.stdin is not None
        assert node.stdout is not None
        print(name, loops, file=node.stdin, flush=True)
        return float(node.stdout.readline())

    return side
