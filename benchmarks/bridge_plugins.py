"""An event of each agent that loads a plugin: sent by real Node through the link that the plugin ships with.

The link is a part of the generated plugin, so the benchmark loads the whole plugin, with one line more that exports the
link.  The floor is an echo server in C, asked by Node over a new connection each time, as the link asks.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from agent_hooks.bridges import BRIDGES, open_bridge
from agent_hooks.bridges.base import Bridge
from agent_hooks.installs.generated import plugin_path
from benchmarks.bridge_echo import compiled, listening, on_one_core
from benchmarks.bridge_node import node
from benchmarks.bridge_projects import Resident
from benchmarks.harness import Effort, Row, interleave

WRITE = "from agent_hooks.bridges import open_bridge; from agent_hooks.server.plugin_file import write_plugin; "
EXPORT = "\nexport { ask as askInBenchmark };\n"


def plugin_bridges() -> list[Bridge]:
    """Return the bridges to agents that load a plugin."""
    return [bridge for bridge in map(open_bridge, BRIDGES) if bridge.plugin]


async def plugin_events(folder: Path, server: Resident, effort: Effort) -> list[Row]:
    """Measure an event of each agent in ms, and compare it with an echo."""
    bridges = plugin_bridges()
    links = {bridge.name: _link(folder, server, bridge) for bridge in bridges}
    with ExitStack() as stack:
        stack.enter_context(on_one_core(server.pid))
        echo = stack.enter_context(listening([compiled(folder / "node-echo")], folder / "node-echoes"))
        given = {"links": links, "echo": echo, "line": server.project.request.decode()}
        running = stack.enter_context(node("plugin.mjs", given, server.project.environment))
        rounds = await interleave({name: running.side(name) for name in ("echo", *links)}, effort)
    rows = []
    for name in links:
        ratio = rounds.ratio(name, "echo")
        millis = rounds.seconds(name) * 1e3
        event = f"a plugin event of {name}, p50, bare"
        # On a busy machine the median is mostly the wait for a core, and the best round is the cost of the event itself.
        note = f"from Node, through the plugin's link; {min(rounds.times[name]) * 1e3:.3g} ms in the best round"
        rows.append(Row(event, millis, "ms", must=1, note=note))
        rows.append(Row(event, ratio, note="to a C echo, asked by Node"))
    return rows


def _link(folder: Path, server: Resident, bridge: Bridge) -> dict[str, object]:
    """Write an agent's plugin as an installation does, and beside it the copy that exports its link."""
    project = server.project
    project.run([sys.executable, "-c", f"{WRITE}write_plugin(open_bridge({bridge.name!r}))"])
    shipped = plugin_path(bridge, project.home)
    copy = shipped.with_name(f"{bridge.name}-measured.mjs")
    copy.write_text(shipped.read_text() + EXPORT)
    facts = bridge.facts(str(project.folder), project.environment)
    return {"file": copy.as_uri(), "hook": facts.event, "project": str(project.folder), "payload": facts.sample}
