"""An event that is posted: by Node, in which the other agent is written, over one connection that stays open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_hooks.bridges import open_bridge
from agent_hooks.installs.plan import new_address
from benchmarks.bridge_node import node
from benchmarks.bridge_projects import AGENT, BASE, Project, served
from benchmarks.harness import Effort, Row, interleave

EVENT = "PostToolBatch"


async def posted(folder: Path, settings: dict[str, Any], effort: Effort) -> list[Row]:
    """Compare an event that Node posts with a process that Node starts and that ends at once."""
    project, address = Project(folder, settings), new_address()
    path = folder / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(json.dumps(open_bridge(AGENT).install({}, ["true"], [EVENT], address)))
    payload = {**json.loads(project.payload.read_text()), "hook_event_name": EVENT}
    given = {"url": address.url(AGENT, EVENT), "token": address.token, "body": json.dumps(payload), "command": BASE}
    with served(project), node("post.mjs", given) as running:
        rounds = await interleave({"post": running.side("post"), "base": running.side("spawn")}, effort)
    micros = rounds.seconds("post") * 1e6
    note = f"to base, started by Node; {micros:.0f} µs"
    return [Row("an event by HTTP from Node, bare", rounds.ratio("post", "base"), must=0.1, note=note)]
